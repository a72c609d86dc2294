// Turning flags on and off, from the list and from the page of a flag.
import { useEffect, useState } from 'preact/hooks'
import { api, ApiError } from '../../api/client'
import type { ConditionSet, Flag } from '../../api/types'
import { forget } from '../../app/load'
import { here } from '../../app/late'
import { confirm } from '../../ui/dialog'
import { partsOf, reachText, type Reach } from './reach'
import { rolloutWords } from './words'

// readReach counts whom a condition reaches.
export async function readReach(project: string, condition: ConditionSet, groupType: number | null | undefined, signal?: AbortSignal, aside = false): Promise<Reach> {
  const answer = await api.post('/api/projects/{project_id}/feature_flags/user_blast_radius', { path: { project_id: project }, body: { condition, group_type_index: groupType ?? null }, signal, aside })
  return { affected: answer.users_affected, total: answer.total_users, estimated: answer.estimated ?? false }
}

// countReach counts whom the conditions of a flag reach, in words; empty without conditions.
async function countReach(project: string, flag: Flag, signal: AbortSignal): Promise<string> {
  const parts = partsOf(flag)
  return reachText(flag, parts, await Promise.all(parts.map((p) => readReach(project, p.set, p.by, signal, true))))
}

// Reached says whom the flag reaches, once it is counted, or why that is not known. The question
// can be answered before.
function Reached({ project, flag }: { project: string; flag: Flag }) {
  const [reached, setReached] = useState<{ text: string } | { refused: string } | null>(null)
  useEffect(() => {
    const abort = new AbortController()
    countReach(project, flag, abort.signal).then((text) => setReached({ text }), (e: unknown) => { if (!abort.signal.aborted) setReached({ refused: e instanceof ApiError ? e.message : '' }) })
    return () => abort.abort()
  }, [])
  if (!reached) return <p><span class="muted">Counting whom it reaches…</span></p>
  if ('refused' in reached) return reached.refused ? <p role="alert">{reached.refused}</p> : null
  return reached.text ? <p>{flag.active ? 'It reaches now' : 'That reaches'} <b>{reached.text}</b>.</p> : null
}

// toggle turns a flag on or off after a question that says whom it reaches. It returns the
// changed flag; null if the user has thought better of it. note is said in the question too.
export async function toggle(project: string, flag: Flag, note = ''): Promise<Flag | null> {
  const on = !flag.active
  const yes = await confirm({
    title: on ? `Turn ${flag.key} on?` : `Turn ${flag.key} off?`,
    body: (
      <>
        <p>{on ? `It will be on for ${rolloutWords(flag)}.` : 'It will be off for everyone, at once.'}</p>
        <Reached project={project} flag={flag} />
        {note && <p>{note}</p>}
      </>
    ),
    action: on ? 'Turn on' : 'Turn off',
    danger: !on,
  })
  return yes ? setActive(project, flag, on) : null
}

async function setActive(project: string, flag: Flag, active: boolean): Promise<Flag | null> {
  const page = here()
  try {
    const changed = await api.patch('/api/projects/{project_id}/feature_flags/{id}', { path: { project_id: project, id: flag.id }, body: { active } })
    forget(`flags/${project}`)
    page.say(`${changed.key} is ${active ? 'on' : 'off'}.`)
    return changed
  } catch (e) {
    page.sayError(e)
    return null
  }
}
