import { useLocation } from 'preact-iso'
import { api, queryOf } from '../../api/client'
import { useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { Empty, Problem, Skeleton } from '../../ui/basics'
import { Value } from '../why/why'

// FlagValues shows the values of flags for a person. A distinct id of several is chosen in the
// URL: the rollout of a flag depends on it.
export function FlagValues({ project, ids }: { project: string; ids: string[] }) {
  const { to } = usePlace()
  const { query, path, route } = useLocation()
  const id = query.id !== undefined && ids.includes(query.id) ? query.id : (ids[0] ?? '')
  const { data, error, reload } = useData(id && `why/${project}/${id}/{}`, (signal) => api.post('/api/projects/{project_id}/feature_flags/explain', { path: { project_id: project }, body: { distinct_id: id, person_properties: {} }, signal }))
  const flags = Object.values(data?.flags ?? {}).sort((a, b) => a.key.localeCompare(b.key))
  if (error) return <Problem error={error} retry={reload} />
  if (!data) return <Skeleton rows={4} />
  return (
    <>
      {ids.length > 1 && (
        <div class="filters">
          <label class="row">As distinct id <select class="mono" value={id} onChange={(e) => route(path + queryOf({ ...query, id: e.currentTarget.value }), true)}>{ids.slice(0, 200).map((one) => <option key={one} value={one}>{one}</option>)}</select></label>
        </div>
      )}
      {flags.length === 0 && <Empty title="No flag is active"><p>Flags that are off are not evaluated. <a href={to('/flags')}>See all flags</a>.</p></Empty>}
      {flags.length > 0 && (
        <div class="list" role="list">
          {flags.map((f) => (
            <div key={f.key} class="value-row" role="listitem">
              <div class="name"><a class="mono" href={to('/why') + queryOf({ id, flag: f.key })}>{f.key}</a></div>
              <div><Value e={f} /></div>
              <div class="muted reason">{f.reason?.description ?? f.failure ?? ''}</div>
              <span class="link small" aria-hidden="true">Why</span>
            </div>
          ))}
        </div>
      )}
    </>
  )
}
