import { api, type ApiError } from '../../api/client'
import type { PluginInstance } from '../../api/types'
import { useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { me } from '../../app/session'
import { Code, Empty, Problem, Skeleton, Tag, Time, useTitle } from '../../ui/basics'
import { valueText } from '../../ui/chart/data'
import { Icon } from '../../ui/icon'
import { Spark } from '../../ui/spark'
import { countText, plural } from '../../ui/time'
import { usePoll, useSamples } from './poll'
import { deadLettersPath, lagWords, rateOf, rateText, refusedOf, stateOf } from './words'
import './plugins.css'

export default function Plugins() { return me.value?.is_operator ? <List /> : <ForOperators /> }

// ForOperators is the page for all others, who need not ask the server to be refused.
export function ForOperators() {
  useTitle('Plugins')
  return <><div class="page-head"><div><h1>Plugins</h1><p>Where events go, and what filters and messages can do.</p></div></div><Sentence /></>
}

// List shows the plugin instances of the server.
function List() {
  const { to } = usePlace()
  useTitle('Plugins')
  const { data, error, loading, reload } = useData('plugins/list', (signal) => api.get('/api/plugins', { signal }))
  usePoll({ loading, reload, error })
  const denied = error?.status === 403
  const recent = useRecent(denied)
  const instances = data?.results ?? []
  return (
    <>
      <div class="page-head">
        <div><h1>Plugins</h1><p>{data ? plural(instances.length, 'instance') : 'Where events go, and what filters and messages can do.'}</p></div>
        {!denied && <a class="button primary" href={to('/plugins-new')}><Icon name="plus" /> Enable a plugin</a>}
      </div>
      {error && <Refused error={error} retry={reload} />}
      {!data && !error && <div class="list"><Skeleton rows={5} /></div>}
      {data && instances.length === 0 && <First />}
      {instances.length > 0 && <div class="list" role="list">{instances.map((p) => <Row key={p.name} plugin={p} recent={recent} href={to(`/plugins/${encodeURIComponent(p.name)}`)} />)}</div>}
    </>
  )
}

// Refused shows why a page of plugins has nothing to show: to users without the right of an
// operator, who are not helped by asking again, in a sentence.
export function Refused({ error, retry }: { error: ApiError; retry: () => void }) {
  if (error.status !== 403) return <Problem error={error} retry={retry} />
  return <Sentence />
}

function Sentence() {
  return <p class="notice" role="note">Plugins are for the operators of this server, because it may serve other organizations too. <code>guidon user operator grant EMAIL</code> gives a user this right.</p>
}

export function StateTag({ plugin, refused = 0 }: { plugin: PluginInstance; refused?: number }) {
  const { word, tone } = stateOf(plugin, refused)
  return tone ? <Tag tone={tone}>{word}</Tag> : <Tag>{word}</Tag>
}

// Recent is what each sink did in the last hour: its lag in seconds, and the events it refused.
interface Recent { lag: Record<string, number[]>; refused: Record<string, number> }

function useRecent(denied: boolean): Recent | undefined {
  const { data, error, loading, reload } = useData(denied ? '' : 'plugins/recent', (signal) => api.get('/api/health/plugins', { query: { names: 'lag_seconds,dead_letters', step: 150 }, signal }))
  usePoll({ loading, reload, error }, 15_000)
  if (!data) return undefined
  const lag = (i: (typeof data.instances)[number]) => (i.series.find((s) => s.name === 'lag_seconds')?.values ?? []).map((v) => v ?? 0)
  return { lag: Object.fromEntries(data.instances.map((i) => [i.name, lag(i)])), refused: refusedOf(data) }
}

// useRefused returns how many events an instance has refused in the last hour.
export function useRefused(name: string, denied: boolean): number {
  const { data, error, loading, reload } = useData(denied ? '' : `plugins/refused/${name}`, (signal) => api.get('/api/health/plugins', { query: { names: 'dead_letters', instance: name }, signal }))
  usePoll({ loading, reload, error }, 15_000)
  return refusedOf(data)[name] ?? 0
}

function lagSpark(lag: number[]): string { return `Lag in the last hour: at most ${valueText(Math.max(0, ...lag), 'seconds')}` }

function Row({ plugin: p, recent, href }: { plugin: PluginInstance; recent: Recent | undefined; href: string }) {
  const { to } = usePlace()
  const lag = recent?.lag[p.name]
  const refused = recent?.refused[p.name] ?? 0
  const rate = rateOf(useSamples(p).slice(-20))
  const d = p.delivery
  return (
    <div class="plugin-row" role="listitem">
      <div class="name">
        <a class="mono" href={href}>{p.name}</a>
        <p title={p.trouble ?? p.use}>{p.trouble ? <span class="trouble">{p.trouble}</span> : `${p.kind}, ${p.use}${p.version ? ` ${p.version}` : ''}`}</p>
      </div>
      <div class="flow">{d && <><span>{rate === undefined ? `${countText(d.delivered)} delivered` : rateText(rate)}</span><span class={d.lag_records > 0 ? '' : 'faint'}>{lagWords(d)}</span></>}</div>
      <div class="lag">{d && <Spark label="Lag" series={lag && [{ name: 'lag', values: lag }]} {...(lag && { say: lagSpark(lag) })} width={88} />}</div>
      <div>{refused > 0 ? <a href={to(deadLettersPath(`sink/${p.name}`, '1h'))} aria-label={`Dead letters of ${p.name}`}><StateTag plugin={p} refused={refused} /></a> : <StateTag plugin={p} />}</div>
      <div class="since"><Time at={p.since} /></div>
    </div>
  )
}

const first = `plugins:
  instances:
    - name: copy
      kind: sink
      use: file
      config: {path: /var/lib/guidon/events.ndjson}`

function First() {
  return (
    <Empty title="Add your first plugin">
      <p>A sink takes every event to another place, a notifier sends messages, a matcher adds operators to filters. Bundled plugins need no installation: enable one here, or in the config file.</p>
      <Code label="In the config file of the server" text={first} />
      <Code label="With a personal key of an operator in PERSONAL_KEY" text={`curl -X PUT ${location.origin}/api/plugins/copy/config/ -H "Authorization: Bearer $PERSONAL_KEY" \\\n  -H 'Content-Type: application/json' -d '{"plugin": "file", "config": {"path": "events.ndjson"}}'`} />
    </Empty>
  )
}
