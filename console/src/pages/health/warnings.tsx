// What concerns the project: its quota, and events that were dropped or changed.
import { api } from '../../api/client'
import { useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { Problem, Tag, Time } from '../../ui/basics'
import { countText } from '../../ui/time'
import { warningFix } from './words'

export function Warnings() {
  const { project } = usePlace()
  const usage = useData(`health/usage/${project}`, (signal) => api.get('/api/projects/{project_id}/ingestion_usage', { path: { project_id: project }, signal })).data
  const { data, error, reload } = useData(`health/warnings/${project}`, (signal) => api.get('/api/projects/{project_id}/ingestion_warnings', { path: { project_id: project }, query: { limit: 50 }, signal }))
  const limit = usage?.limit ?? null
  return (
    <section class="health-part">
      <h2>Events of this project</h2>
      {usage && limit !== null && <p class={usage.quota_limited ? 'notice' : 'muted'}>{countText(usage.events ?? 0)} of {countText(limit)} events in this {usage.period}{usage.refused > 0 && `, ${countText(usage.refused)} refused`}.{usage.quota_limited && ' No more are taken in this period: raise the quota in the config, or wait.'}</p>}
      {error && <Problem error={error} retry={reload} />}
      {data?.results?.length === 0 && <p class="muted">No event was dropped or changed. When that happens, the reason and what helps are here.</p>}
      {data?.results && data.results.length > 0 && (
        <div class="list health-table" tabIndex={0} role="region" aria-label="Warnings">
          <table>
            <thead><tr><th>What</th><th>Events</th><th>Last</th><th>What helps</th></tr></thead>
            <tbody>
              {data.results.map((w) => (
                <tr key={`${w.type}/${w.key}/${w.first_at}`}>
                  <td><Tag tone={w.severity === 'error' ? 'bad' : 'warn'}>{w.severity === 'error' ? 'dropped' : 'changed'}</Tag> <span class="mono">{w.type}</span>{w.key && <div class="faint small">{w.key}</div>}</td>
                  <td>{countText(w.count)}</td><td><Time at={w.last_at} /></td>
                  <td class="health-fix"><p>{warningFix(w.type)}</p><details><summary>Details</summary><pre>{JSON.stringify(w.details, null, 2)}</pre></details></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}
