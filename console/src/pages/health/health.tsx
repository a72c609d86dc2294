// The page Health: one sentence that says whether all is well, what helps if not, and the
// last hours of the server that answers.
import { useLocation } from 'preact-iso'
import { useEffect, useState } from 'preact/hooks'
import { api } from '../../api/client'
import { useData, useRepeat } from '../../app/load'
import { usePlace } from '../../app/place'
import { me } from '../../app/session'
import { Code, Problem, Skeleton, Time, useTitle } from '../../ui/basics'
import { Chart } from '../../ui/chart'
import { valueText } from '../../ui/chart/data'
import { Icon } from '../../ui/icon'
import { NodeChoice, ranges, useNodes } from '../../ui/chart/nodes'
import { Nodes } from './nodes'
import { refusedOf } from '../plugins/words'
import { Warnings } from './warnings'
import { graphs, headline, hourly, newest, seriesOf, troubles, type DeadLetters, type Readiness, type Series, type Trouble } from './words'
import './health.css'

export default function Health() {
  useTitle('Health')
  const { project, to, go } = usePlace()
  const { query } = useLocation()
  const range = ranges.find((r) => r.name === query.range) ?? ranges[0]
  const operator = me.value?.is_operator === true
  const state = useData(operator ? 'health/state' : '', (signal) => api.get('/api/health', { signal }))
  const denied = !operator || state.error?.status === 403
  const series = useData(denied ? '' : `health/series/${range.name}`, (signal) => api.get('/api/health/series', { query: { from: String(Math.floor(Date.now() / 1000) - range.seconds) }, signal }))
  const hour = useData(denied ? '' : 'health/hour', (signal) => api.get('/api/health/series', { query: { names: hourly, from: String(Math.floor(Date.now() / 1000) - 3600), step: 15 }, signal }))
  const cluster = useData(denied ? '' : 'health/cluster', (signal) => api.get('/api/cluster', { signal }))
  useRepeat(!denied, 15_000, state)
  useRepeat(!denied, 15_000, series)
  useRepeat(!denied, 15_000, hour)
  useRepeat(!denied, 15_000, cluster)
  const dead = useDeadLetters(project, denied)
  const shown = useNodes(range.name, series.data)
  return (
    <>
      <div class="page-head">
        <div><h1>Health</h1><p>{state.data ? <>{state.data.node.name || 'This server'}, version {state.data.node.version}, started <Time at={state.data.node.started_at} /></> : 'Whether the server works, and how the last hours were.'}</p></div>
        {!denied && <div class="row"><select aria-label="Time shown" value={range.name} onChange={(e) => go(`/health?range=${e.currentTarget.value}`, true)}>{ranges.map((r) => <option key={r.name} value={r.name}>{r.text}</option>)}</select></div>}
      </div>
      {denied ? <Denied /> : state.error && <Problem error={state.error} retry={state.reload} />}
      {!denied && !state.data && !state.error && <Skeleton rows={3} />}
      {state.data && !state.error && <Headline found={troubles(state.data.readiness, series.data, hour.data, dead)} to={to} />}
      {state.data && !state.error && <Facts readiness={state.data.readiness} series={series.data} />}
      {series.error && !denied && <Problem error={series.error} retry={series.reload} />}
      {!denied && (
        <section class="stack">
          <h2>The last {range.text.replace(/^1 /, '')}</h2>
          <NodeChoice shown={shown} />
          <div class="charts">
            {graphs.map((g) => <Chart key={g.title} title={g.title} unit={g.unit} hint={g.hint} kind={g.kind ?? 'line'} sync="health" height={140} series={shown.answer && seriesOf(g, shown.answer)} empty="Nothing in this time" />)}
          </div>
        </section>
      )}
      {cluster.data && <Nodes cluster={cluster.data} />}
      <Warnings />
    </>
  )
}

// useDeadLetters returns the dead letters of the last hour.
function useDeadLetters(project: string, denied: boolean): DeadLetters {
  const sinks = useData(denied ? '' : 'health/refused', (signal) => api.get('/api/health/plugins', { query: { names: 'dead_letters' }, signal }))
  const worker = useData(denied ? '' : `health/worker/${project}`, (signal) => api.get('/api/projects/{project_id}/dead_letters', { path: { project_id: project }, query: { source: 'worker', after: new Date(Date.now() - 3_600_000).toISOString(), limit: 1 }, signal }))
  useRepeat(!denied, 15_000, sinks)
  useRepeat(!denied, 15_000, worker)
  return { sinks: refusedOf(sinks.data), worker: worker.data?.count ?? 0 }
}

function Headline({ found, to }: { found: Trouble[]; to: (path: string) => string }) {
  const tone = found.some((t) => t.tone === 'bad') ? 'bad' : found.length ? 'warn' : 'ok'
  return (
    <section class={`headline ${tone}`} role="status">
      <p class="sentence"><Icon name={tone === 'ok' ? 'check' : 'alert'} /> {headline(found)}</p>
      {found.length > 0 && <ul>{found.map((t) => <li key={t.what}><b>{t.what}</b><span>{t.fix}{t.link && <> <a href={to(t.link.path)}>{t.link.text}</a></>}</span></li>)}</ul>}
    </section>
  )
}

function Facts({ readiness: r, series }: { readiness: Readiness; series: Series | undefined }) {
  const free = newest(series, 'disk_free')
  const used = newest(series, 'disk_used')
  const facts: [string, string][] = [
    ['Database', r.database?.state ?? 'unknown'],
    ['Journal', r.journal?.state ?? 'not used'],
    ['Processing', r.ingestion ? `${r.ingestion.live.state}` : 'not on this server'],
    ['Free on disk', free === null ? '–' : `${valueText(free, 'bytes')} of ${valueText(free + (used ?? 0), 'bytes')}`],
    ['Backups', r.backup?.state ?? 'off'],
  ]
  return (
    <>
      <dl class="health-facts">{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
      {r.backup?.state === 'off' && (
        <details class="backups-off">
          <summary>Backups are off: turn them on</summary>
          <p class="muted">The server writes backups by itself once the config file names a time and a place. <code>guidon backup create TARGET</code> writes one now.</p>
          <Code label="guidon.yaml" text={backups} />
        </details>
      )}
    </>
  )
}

const backups = 'backup:\n  every: 6h\n  to: /mnt/backups/guidon   # on another disk than data_dir, or s3://bucket/path/\n  keep: 7'

// Denied is what users without the right of an operator see: the one word that the server
// tells everyone.
function Denied() {
  const [status, setStatus] = useState('')
  useEffect(() => { fetch('/_readiness').then((r) => setStatus(r.ok ? 'The server is ready.' : 'The server is not ready.'), () => setStatus('The server cannot be reached.')) }, [])
  return <div class="notice"><p><b>{status || '\u00a0'}</b></p><p class="muted">Numbers of the server are for its operators, because it may serve other organizations too. Below is what concerns this project.</p></div>
}
