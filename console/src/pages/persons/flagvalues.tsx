import { useLocation } from 'preact-iso'
import { queryOf } from '../../api/client'
import { usePlace } from '../../app/place'
import { Empty } from '../../ui/basics'
import { ExplainedFlags, reasonOf, Value } from '../why/explained'

// FlagValues shows the values of flags for a person. A distinct id of several is chosen in the
// URL: the rollout of a flag depends on it.
export function FlagValues({ project, ids }: { project: string; ids: string[] }) {
  const { to } = usePlace()
  const { query, path, route } = useLocation()
  const id = query.id !== undefined && ids.includes(query.id) ? query.id : (ids[0] ?? '')
  return (
    <>
      {ids.length > 1 && (
        <div class="filters">
          <label class="row">As distinct id <select class="mono" value={id} onChange={(e) => route(path + queryOf({ ...query, id: e.currentTarget.value }), true)}>{ids.slice(0, 200).map((one) => <option key={one} value={one}>{one}</option>)}</select></label>
        </div>
      )}
      <ExplainedFlags project={project} asked={{ id, groups: {}, properties: {}, groupProperties: {} }} none={<Empty title="There are no flags yet"><p>Create one, then see here what it gives this person. <a href={to('/flags')}>See the flags</a>.</p></Empty>}>
        {(shown) => (
          <div class="list" role="list">
            {shown.map(({ flag: f }) => (
              <div key={f.key} class="value-row" role="listitem">
                <div class="name"><a class="mono" href={to('/why') + queryOf({ id, flag: f.key })}>{f.key}</a></div>
                <div><Value flag={f} /></div>
                <div class="muted reason">{reasonOf(f)}</div>
                <span class="link small" aria-hidden="true">Why</span>
              </div>
            ))}
          </div>
        )}
      </ExplainedFlags>
    </>
  )
}
