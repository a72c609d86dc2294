// Turning flags on and off, from the list and from the page of a flag.
import { useEffect, useState } from 'preact/hooks'
import { api, ApiError } from '../../api/client'
import type { ConditionSet, Flag } from '../../api/types'
import { forget } from '../../app/load'
import { here } from '../../app/late'
import { confirm } from '../../ui/dialog'
import { plural } from '../../ui/time'
import { rolloutWords } from './words'

export interface Reach { affected: number; total: number; estimated: boolean }

// readReach counts whom a condition reaches.
export async function readReach(project: string, condition: ConditionSet, groupType: number | null | undefined, signal?: AbortSignal, aside = false): Promise<Reach> {
  const answer = await api.post('/api/projects/{project_id}/feature_flags/user_blast_radius', { path: { project_id: project }, body: { condition, group_type_index: groupType ?? null }, signal, aside })
  return { affected: answer.users_affected, total: answer.total_users, estimated: answer.estimated ?? false }
}

export function reachWords(r: Reach, subject = 'person'): string {
  if (r.total === 0) return `no ${subject} is known yet`
  const share = (100 * r.affected) / r.total
  const people = plural(r.total, subject, subject === 'person' ? 'people' : undefined)
  return `${r.estimated ? 'about ' : ''}${r.affected.toLocaleString('en')} of ${people} (${share > 0 && share < 1 ? 'under 1' : Math.round(share)}%)`
}

// widestReach returns the largest reach of the conditions of a flag, with its rollout.
async function widestReach(project: string, flag: Flag, signal: AbortSignal): Promise<Reach | null> {
  const index = flag.filters.aggregation_group_type_index
  const all = await Promise.all((flag.filters.groups ?? []).slice(0, 10).map((g) => readReach(project, g, g.aggregation_group_type_index ?? index, signal, true)))
  return all.sort((a, b) => b.affected - a.affected)[0] ?? null
}

// Reached says whom the flag reaches, once it is counted, or why that is not known. Nobody has
// to wait for it.
function Reached({ project, flag }: { project: string; flag: Flag }) {
  const [reach, setReach] = useState<Reach | string | null>()
  useEffect(() => {
    const abort = new AbortController()
    widestReach(project, flag, abort.signal).then(setReach, (e: unknown) => { if (!abort.signal.aborted) setReach(e instanceof ApiError ? e.message : null) })
    return () => abort.abort()
  }, [])
  if (reach === null) return null
  if (typeof reach === 'string') return <p role="alert">{reach}</p>
  return <p>{reach ? <>{flag.active ? 'It reaches now' : 'That reaches'} <b>{reachWords(reach)}</b>.</> : <span class="muted">Counting whom it reaches…</span>}</p>
}

// toggle turns a flag on or off after a question that says whom it reaches. It returns the
// changed flag; null if the user has thought better of it.
export async function toggle(project: string, flag: Flag): Promise<Flag | null> {
  const on = !flag.active
  const yes = await confirm({
    title: on ? `Turn ${flag.key} on?` : `Turn ${flag.key} off?`,
    body: (
      <>
        <p>{on ? `It will be on for ${rolloutWords(flag)}.` : 'It will be off for everyone, at once.'}</p>
        <Reached project={project} flag={flag} />
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
