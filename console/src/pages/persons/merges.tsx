import { api } from '../../api/client'
import type { Event, Person } from '../../api/types'
import { useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { Empty, Problem, Skeleton, Tag, Time } from '../../ui/basics'
import { mergeEvents, mergesOf } from './words'

const most = 100

// Merges shows which events asked to join distinct ids in this person. The server keeps no
// record of merges besides the events and the distinct ids that a person has now.
export function Merges({ project, person }: { project: string; person: Person }) {
  const { to } = usePlace()
  const { data, error, reload } = useData(`persons/${project}/merges/${person.uuid}`, async (signal) => {
    const pages = await Promise.all(mergeEvents.map((event) => api.get('/api/projects/{project_id}/events', { path: { project_id: project }, query: { person_id: person.uuid, event, limit: most }, signal })))
    return { events: pages.flatMap((p): Event[] => p.results), more: pages.some((p) => p.next !== null) }
  })
  if (error) return <Problem error={error} retry={reload} />
  if (!data) return <Skeleton rows={3} />
  const merges = mergesOf(data.events)
  const own = new Set(person.distinct_ids)
  if (merges.length === 0) {
    return (
      <Empty title="No stored event joined this person with another">
        <p>Persons are joined by <code>$identify</code> after a sign-in, and by <code>$create_alias</code>. Its distinct {person.distinct_ids.length === 1 ? 'id is' : 'ids are'} {person.distinct_ids.slice(0, 5).map((id, i) => <>{i > 0 && ', '}<code>{id}</code></>)}{person.distinct_ids.length > 5 && ' and more'}.</p>
      </Empty>
    )
  }
  return (
    <>
      <p class="notice">From the stored events: which asked to make two distinct ids one person. The server keeps no other record of merges; those of events that retention has removed are gone.</p>
      <ol class="merges list">
        {merges.map((m) => (
          <li key={m.uuid}>
            <div class="joined"><span class="mono">{m.from}</span> <span class="faint">into</span> <span class="mono">{m.into}</span></div>
            <div>{own.has(m.from) && own.has(m.into) ? <Tag tone="ok">one person</Tag> : <span title="The server refused it, or the person was split since."><Tag tone="warn">not one person now</Tag></span>}</div>
            <div class="muted small"><code>{m.event}</code> <Time at={m.at} /></div>
          </li>
        ))}
      </ol>
      {data.more && <p class="hint">These are the newest {most} of each kind. <a href={`${to(`/persons/${person.uuid}`)}?tab=events&event=%24identify`}>All events</a></p>}
    </>
  )
}
