import { api } from '../../api/client'
import { useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { Code, Empty, Problem, Skeleton, Tag, Time } from '../../ui/basics'
import { projects } from '../../app/session'
import { groupPath } from './paths'
import { useTypes } from '../../ui/grouptypes'
import { typeWords } from './words'

// Related shows the groups in the events of a person, or who shares events with a group.
export function Related({ project, query, of }: { project: string; query: { id: string; group_type_index?: number }; of: 'person' | 'group' }) {
  const { to } = usePlace()
  const types = useTypes(project).data
  const { data, error, reload } = useData(`groups/${project}/related/${query.group_type_index}/${query.id}`, (signal) => api.get('/api/projects/{project_id}/groups/related', { path: { project_id: project }, query, signal }))
  if (error) return <Problem error={error} retry={reload} />
  if (!data) return <Skeleton rows={3} />
  const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
  if (data.length === 0) {
    return (
      <Empty title={`No event of the last 90 days relates this ${of}`}>
        <p>An event belongs to a group by <code>$groups</code>:</p>
        <Code label="Send an event of a group" text={`curl -X POST ${location.origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "event": "paid", "distinct_id": "ada", "properties": {"$groups": {"company": "acme"}}}'`} />
      </Empty>
    )
  }
  const typeName = (index: number) => { const type = types?.find((t) => t.group_type_index === index); return type ? typeWords(type, false) : `type ${index}` }
  return (
    <>
      <div class="list" role="list">
        {data.map((a) => (
          <div key={`${a.type}/${a.id}`} class="person-row" role="listitem">
            {a.type === 'person'
              ? <><div class="name"><a href={to(`/persons/${a.uuid}`)}>{a.name || 'no name'}</a></div><div class="ids mono">{a.distinct_ids[0]}</div><div><Tag>person</Tag></div></>
              : <><div class="name"><a href={to(groupPath(a.group_type_index, a.group_key))}>{String((a.properties as Record<string, unknown>).name ?? a.group_key)}</a></div><div class="ids mono">{a.group_key}</div><div><Tag>{typeName(a.group_type_index)}</Tag></div></>}
            <div class="seen">first seen <Time at={a.created_at} /></div>
          </div>
        ))}
      </div>
      <p class="hint">Related by an event of the last 90 days: at most 1,000 of each kind, found in the newest 100,000 events.</p>
    </>
  )
}
