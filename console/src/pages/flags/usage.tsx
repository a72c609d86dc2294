// How often clients asked for the flag, and what it answered.
import { api } from '../../api/client'
import type { Flag, FlagUsage } from '../../api/types'
import { useData } from '../../app/load'
import { projects } from '../../app/session'
import { Code, Empty, Problem, Skeleton, Time } from '../../ui/basics'
import { countText, plural } from '../../ui/time'

export function Usage({ project, flag }: { project: string; flag: Flag }) {
  const { data, error, reload } = useData(`flags/${project}/usage/${flag.id}`, (signal) => api.get('/api/projects/{project_id}/feature_flags/{id}/usage', { path: { project_id: project, id: flag.id }, query: { days: 30 }, signal }))
  if (error) return <Problem error={error} retry={reload} />
  if (!data) return <Skeleton rows={3} />
  if (data.calls === 0) {
    const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
    return (
      <Empty title="No client has reported a call in 30 days">
        <p>Client libraries send <code>$feature_flag_called</code> when code asks for a flag. One from a terminal:</p>
        <Code label="Report a call" text={`curl -X POST ${location.origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "event": "$feature_flag_called", "distinct_id": "ada", "properties": {"$feature_flag": "${flag.key}", "$feature_flag_response": true}}'`} />
      </Empty>
    )
  }
  return (
    <section class="stack">
      <p class="muted">{plural(data.calls, 'call')} in 30 days, the last <Time at={data.last_called_at} />.</p>
      <Chart usage={data} />
      <table class="usage">
        <thead><tr><th>Answer</th><th class="number">Calls</th><th class="number">People</th><th class="number">Share</th></tr></thead>
        <tbody>
          {data.variants.map((v, i) => (
            <tr key={v.response}>
              <td><svg class="dot" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true"><circle class={`shade-${i % 6}`} cx="5" cy="5" r="5" /></svg> <span class="mono">{v.response}</span></td>
              <td class="number">{countText(v.calls)}</td><td class="number">{countText(v.people)}</td><td class="number">{Math.round((100 * v.calls) / data.calls)}%</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

// Chart stacks the calls of each day by answer.
function Chart({ usage }: { usage: FlagUsage }) {
  const totals = usage.days.map((_, i) => usage.variants.reduce((n, v) => n + (v.daily[i] ?? 0), 0))
  const most = Math.max(1, ...totals)
  const width = 100 / usage.days.length
  return (
    <figure class="chart card">
      <svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={`Calls a day, at most ${most}`}>
        {usage.days.map((day, i) => {
          let y = 40
          return usage.variants.map((v, at) => {
            const height = (40 * (v.daily[i] ?? 0)) / most
            y -= height
            return height > 0 && <rect key={day + v.response} class={`shade-${at % 6}`} x={i * width + width * 0.1} y={y} width={width * 0.8} height={height}><title>{`${day}: ${v.response} ${v.daily[i]}`}</title></rect>
          })
        })}
      </svg>
      <figcaption><span>{usage.days[0]}</span><span>at most {countText(most)} a day</span><span>{usage.days[usage.days.length - 1]}</span></figcaption>
    </figure>
  )
}
