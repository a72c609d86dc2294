// How often clients asked for the flag, and what it answered. The time is in the URL.
import { useLocation } from 'preact-iso'
import { api, queryOf } from '../../api/client'
import type { Flag } from '../../api/types'
import { useData } from '../../app/load'
import { projects } from '../../app/session'
import { Code, Empty, Problem, Skeleton, Time } from '../../ui/basics'
import { Chart, type ChartSeries } from '../../ui/chart'
import { countText, plural } from '../../ui/time'
import { shadeOf } from './words'

const times = {
  day: { label: '24 hours', days: 1, interval: 'hour' }, '': { label: '7 days', days: 7, interval: 'day' },
  month: { label: '30 days', days: 30, interval: 'day' }, quarter: { label: '90 days', days: 90, interval: 'day' },
} as const
type Span = keyof typeof times
const order: Span[] = ['day', '', 'month', 'quarter']

export function Usage({ project, flag }: { project: string; flag: Flag }) {
  const { query, path, route } = useLocation()
  const chosen: Span = query.time && query.time in times ? query.time as Span : ''
  const { days, interval } = times[chosen]
  // The former answer shows until the next one is there: it says itself of which time it is.
  const { data: answer, error, reload } = useData(`flags/${project}/calls-of/${flag.id}/${chosen}`, async (signal) => ({ time: chosen, data: await api.get('/api/projects/{project_id}/feature_flags/{id}/calls', { path: { project_id: project, id: flag.id }, query: { days, interval }, signal }) }))
  const people = useData(`flags/${project}/usage/${flag.id}/${days}`, async (signal) => ({ days, data: await api.get('/api/projects/{project_id}/feature_flags/{id}/usage', { path: { project_id: project, id: flag.id }, query: { days }, signal }) }))
  if (error) return <Problem error={error} retry={reload} />
  if (!answer) return <Skeleton rows={5} />
  const data = answer.data
  const of = times[answer.time]
  const label = of.label
  const here = projects.value.find((p) => String(p.id) === project)
  const calls = data.results[0]
  const starts = data.intervals.map((at) => Date.parse(at) / 1000)
  const series: ChartSeries[] = (calls?.variants ?? []).map((v) => ({ name: v.response || 'no answer', points: v.data.map((n, i) => [starts[i] ?? 0, n]), shade: shadeOf(flag.filters.multivariate?.variants, v.response) }))
  const zone = here?.timezone
  return (
    <section class="stack">
      <h2 class="visually-hidden">Calls</h2>
      <div class="row">
        <div class="segments" role="group" aria-label="Time">{order.map((t) => <button key={t} type="button" aria-pressed={chosen === t} onClick={() => route(path + queryOf({ ...query, time: t }), true)}>{times[t].label}</button>)}</div>
        {people.data && <span class="push muted small">last called <Time at={people.data.data.last_called_at} /></span>}
      </div>
      {people.error && <Problem error={people.error} retry={people.reload} />}
      {calls && !calls.counted && <p class="notice" role="note">There are too many calls in {label} to count them now. Choose a shorter time.</p>}
      {calls?.counted && calls.calls === 0 && <NoCalls flag={flag} token={here?.api_token ?? 'PROJECT_KEY'} time={label} />}
      {calls && calls.calls > 0 && (
        <>
          <Chart title={`${plural(calls.calls, 'call')} in ${label}`} kind="bars" stacked series={series} height={190} {...(zone && { zone })} hint={`By answer and ${of.interval}${zone ? `, in the time zone ${zone}` : ''}.`} />
          <table class="usage">
            <thead><tr><th>Answer</th><th class="number">Calls</th><th class="number">People</th><th class="number">Share</th></tr></thead>
            <tbody>
              {calls.variants.map((v) => {
                const who = of.interval === 'day' && people.data?.days === of.days ? people.data.data.variants.find((p) => p.response === v.response)?.people : undefined
                return (
                  <tr key={v.response}>
                    <td><svg class="dot" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true"><circle class={`shade-${shadeOf(flag.filters.multivariate?.variants, v.response)}`} cx="5" cy="5" r="5" /></svg> <span class="mono">{v.response || 'no answer'}</span></td>
                    <td class="number">{countText(v.calls)}</td><td class="number">{who === undefined ? '–' : countText(who)}</td><td class="number">{Math.round((100 * v.calls) / calls.calls)}%</td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </>
      )}
    </section>
  )
}

function NoCalls({ flag, token, time }: { flag: Flag; token: string; time: string }) {
  return (
    <Empty title={`No client has reported a call in ${time}`}>
      <p>Client libraries send <code>$feature_flag_called</code> when code asks for a flag. One from a terminal:</p>
      <Code label="Report a call" text={`curl -X POST ${location.origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "event": "$feature_flag_called", "distinct_id": "ada", "properties": {"$feature_flag": "${flag.key}", "$feature_flag_response": true}}'`} />
    </Empty>
  )
}
