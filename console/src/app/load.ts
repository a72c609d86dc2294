// Loading what a page shows. useData keeps the last answer of each key in memory, shows it
// at once when a page comes back, and asks the server again. While it asks for a changed
// key it keeps showing the former answer, so nothing jumps.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { effect } from '@preact/signals'
import { ApiError } from '../api/client'
import { me } from './session'

const answers = new Map<string, unknown>()
const most = 200

// Another user, or the same one in another organization, must not see the answers of before.
let owner = ''
effect(() => {
  const now = me.value ? `${me.value.id} ${me.value.organization.id}` : ''
  if (now === owner) return
  owner = now
  answers.clear()
})

export interface Loaded<T> {
  data: T | undefined
  error: ApiError | undefined
  loading: boolean
  reload: () => void
}

export function forget(prefix: string): void {
  for (const key of [...answers.keys()]) if (key.startsWith(prefix)) answers.delete(key)
}

export function remember(key: string, value: unknown): void {
  answers.delete(key)
  answers.set(key, value)
  const oldest = answers.keys().next().value
  if (answers.size > most && oldest !== undefined) answers.delete(oldest)
}

// useData loads with fetcher whenever key changes; an empty key loads nothing.
export function useData<T>(key: string, fetcher: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [shown, setShown] = useState<{ key: string; data?: T; error?: ApiError }>({ key })
  const [round, setRound] = useState(0)
  const [loading, setLoading] = useState(true)
  const latest = useRef(fetcher)
  latest.current = fetcher
  useEffect(() => {
    if (!key) return
    const abort = new AbortController()
    setLoading(true)
    latest.current(abort.signal).then(
      (data) => {
        if (abort.signal.aborted) return
        remember(key, data)
        setShown({ key, data })
        setLoading(false)
      },
      (e: unknown) => {
        if (abort.signal.aborted) return
        const error = e instanceof ApiError ? e : new ApiError(0, 'failed', e instanceof Error ? e.message : String(e))
        setShown((last) => (last.key === key && last.data !== undefined ? { ...last, error } : { key, error }))
        setLoading(false)
      },
    )
    return () => abort.abort()
  }, [key, round])
  const reload = useCallback(() => setRound((n) => n + 1), [])
  const kept = answers.get(key) as T | undefined
  const data = shown.key === key && shown.data !== undefined ? shown.data : (kept ?? shown.data)
  return { data, error: shown.key === key ? shown.error : undefined, loading, reload }
}

// useRepeat asks again every ms milliseconds while on, unless the page is hidden or the last
// answer is still to come: asking anew would drop it, and a slow server never be heard.
export function useRepeat(on: boolean, ms: number, { loading, reload }: Pick<Loaded<unknown>, 'loading' | 'reload'>): void {
  const busy = useRef(loading)
  busy.current = loading
  useEffect(() => {
    if (!on) return
    const timer = setInterval(() => { if (!busy.current && !document.hidden) reload() }, ms)
    return () => clearInterval(timer)
  }, [on, ms, reload])
}

// useDebounced returns value once it has not changed for ms milliseconds.
export function useDebounced<T>(value: T, ms = 250): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms)
    return () => clearTimeout(timer)
  }, [value, ms])
  return settled
}
