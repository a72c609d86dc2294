// How often the action happened, and who did it. Period and page are in the URL.
import { useEffect } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { api, queryOf } from '../../api/client'
import type { Action } from '../../api/types'
import { useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { projects } from '../../app/session'
import { Empty, Problem, Skeleton, Time } from '../../ui/basics'
import { Chart } from '../../ui/chart'
import { Steps } from '../../ui/paging'
import { plural } from '../../ui/time'

interface Period { from: string; interval: 'hour' | 'day' | 'week'; label: string; words: string }
const month: Period = { from: '-29d', interval: 'day', label: 'Month', words: 'in 30 days' }
const periods: Period[] = [
  { from: '-24h', interval: 'hour', label: 'Day', words: 'in 24 hours' }, { from: '-6d', interval: 'day', label: 'Week', words: 'in 7 days' },
  month, { from: '-89d', interval: 'week', label: 'Quarter', words: 'in 90 days' },
]
const pageSize = 100 // of the server

export function Results({ project, action }: { project: string; action: Action }) {
  const { query, path, route } = useLocation()
  const period = periods.find((p) => p.label.toLowerCase() === query.period) ?? month
  const page = Math.max(1, Number(query.page) || 1)
  const zone = projects.value.find((p) => String(p.id) === project)?.timezone
  const at = `${action.id}/${action.version}/${period.label}`
  // The former answer shows until the next one is there: it says itself of which period it is.
  const series = useData(`actions/${project}/series/${at}`, async (signal) => ({ period, ...await api.get('/api/projects/{project_id}/actions/{id}/series', { path: { project_id: project, id: action.id }, query: { interval: period.interval, date_from: period.from }, signal }) }))
  const people = useData(`actions/${project}/people/${at}/${page}`, async (signal) => ({ period, ...await api.get('/api/projects/{project_id}/actions/people', { path: { project_id: project }, query: { entity_type: 'actions', entity_id: String(action.id), date_from: period.from, offset: (page - 1) * pageSize }, signal }) }))
  const counting = series.data?.is_calculating || people.data?.is_calculating
  useEffect(() => {
    if (!counting) return
    const timer = setTimeout(() => { series.reload(); people.reload() }, 2000)
    return () => clearTimeout(timer)
  }, [series.data, people.data])
  const set = (changes: Record<string, string>) => route(path + queryOf({ ...query, ...changes }), true)
  const done = series.data?.progress?.done ?? people.data?.progress?.done
  return (
    <section class="stack">
      <div class="row">
        <div class="segments" role="group" aria-label="Period">{periods.map((p) => <button key={p.label} type="button" aria-pressed={p === period} onClick={() => set({ period: p.label.toLowerCase(), page: '' })}>{p.label}</button>)}</div>
        <span class="muted push" aria-live="polite">{series.data ? `${plural(series.data.count, 'event')} ${series.data.period.words}` : ' '}{counting && ` so far: the history is being counted${done !== undefined ? `, ${Math.round(100 * done)}%` : ''}`}</span>
      </div>
      <h2 class="visually-hidden">How often</h2>
      {series.error && <Problem error={series.error} retry={series.reload} />}
      {series.data?.retained_from && <p class="notice">Events are kept since <Time at={series.data.retained_from} />; older ones are not in the counts.</p>}
      <Chart title={`Events each ${(series.data?.period ?? period).interval}`} kind="bars" series={series.data && [{ name: 'events', points: series.data.results.map((b) => [Date.parse(b.start) / 1000, b.count] as [number, number]) }]} {...(zone && { zone })} empty={`No events match ${(series.data?.period ?? period).words}`} />
      <h2>People</h2>
      {people.error && <Problem error={people.error} retry={people.reload} />}
      {!people.data && !people.error && <Skeleton rows={4} />}
      {people.data && <People people={people.data.results.flatMap((r) => r.people)} words={people.data.period.words} />}
      {people.data && (page > 1 || people.data.next) && <Steps back={page > 1 ? () => set({ page: String(page - 1) }) : undefined} on={people.data.next ? () => set({ page: String(page + 1) }) : undefined}>Page {page}</Steps>}
    </section>
  )
}

function People({ people, words }: { people: { uuid: string; name: string; distinct_ids: string[]; created_at: string }[]; words: string }) {
  const { to } = usePlace()
  if (people.length === 0) return <Empty title={`No persons ${words}`}><p>Look at a longer time, or under Events at why recent events do not match.</p></Empty>
  return (
    <div class="list" role="list">
      {people.map((p) => (
        <div key={p.uuid} class="doer" role="listitem">
          <a href={to(`/persons/${p.uuid}`)}>{p.name || p.distinct_ids[0]}</a>
          <span class="muted mono">{p.distinct_ids.slice(0, 2).join(', ')}{p.distinct_ids.length > 2 && ` and ${p.distinct_ids.length - 2} more`}</span>
          <span class="muted small when">seen first <Time at={p.created_at} /></span>
        </div>
      ))}
    </div>
  )
}
