// A search of persons: the server answers soon with those it found in a part of all persons,
// and goes on when it is asked to.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, api } from '../../api/client'
import type { Person } from '../../api/types'
import { pageSize } from '../../ui/paging'

export interface Conditions { search?: string; is_identified?: boolean; properties?: string }

const beginning = '0.0.0'

interface Found { key: string; persons: Person[]; cursor: string | null; searched: number; total: number | null; error?: ApiError }

export interface Search extends Found { running: boolean; more: () => void; stop: () => void }

// useSearch searches whenever key changes; with an empty key it does nothing. It keeps showing
// the former persons until the first answer.
export function useSearch(project: string, key: string, conditions: Conditions): Search {
  const [found, setFound] = useState<Found>({ key: '', persons: [], cursor: null, searched: 0, total: null })
  const [running, setRunning] = useState(false)
  const abort = useRef<AbortController | null>(null)
  const last = useRef(found)
  const keep = (next: Found) => { last.current = next; setFound(next) }
  const stop = useCallback(() => { abort.current?.abort(); setRunning(false) }, [])
  // go asks on until a person is found, so that a click does something.
  const go = async (before: Found) => {
    abort.current?.abort()
    const mine = new AbortController()
    abort.current = mine
    setRunning(true)
    let now = before
    try {
      do {
        const page = await api.get('/api/projects/{project_id}/persons', { path: { project_id: project }, query: { ...conditions, limit: pageSize, cursor: now.cursor ?? beginning }, signal: mine.signal })
        if (mine.signal.aborted) return
        now = { key, persons: [...now.persons, ...page.results ?? []], cursor: page.cursor ?? null, searched: page.searched ?? 0, total: page.total ?? null }
        keep(now)
      } while (now.cursor && before.searched > 0 && now.persons.length === before.persons.length)
    } catch (e) {
      if (mine.signal.aborted) return
      keep({ ...now, error: e instanceof ApiError ? e : new ApiError(0, 'failed', e instanceof Error ? e.message : String(e)) })
    }
    setRunning(false)
  }
  const empty: Found = { key, persons: [], cursor: null, searched: 0, total: null }
  useEffect(() => {
    if (key) void go(empty)
    return stop
  }, [key])
  const more = () => { void go(last.current.key === key ? { ...last.current, error: undefined } : empty) }
  return { ...found, running, more, stop }
}
