// Enabling a bundled plugin. The choice is in the query of the URL.
import { useEffect, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { api, ApiError } from '../../api/client'
import { useGuard } from '../../app/guard'
import { forget, useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { me } from '../../app/session'
import { here } from '../../app/late'
import { Code, Field, Problem, Skeleton, useTitle } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { Form, hasField, useRefused } from './form'
import { ForOperators, Refused } from './list'
import type { Node } from './shape'
import './plugins.css'

export default function NewPlugin() { return me.value?.is_operator ? <New /> : <ForOperators /> }

function New() {
  const { query, path } = useLocation()
  const { to, go } = usePlace()
  const { data, error, reload } = useData('plugins/available', (signal) => api.get('/api/plugins/available', { signal }))
  const chosen = data?.results.find((p) => p.plugin === query.plugin && p.kind === query.kind)
  useTitle('Enable a plugin')
  const back = <a class="back" href={chosen ? path : to('/plugins')}><Icon name="back" /> {chosen ? 'All plugins' : 'Plugins'}</a>
  if (!data) return <>{back}{error ? <Refused error={error} retry={reload} /> : <Skeleton rows={6} />}</>
  if (chosen) return <>{back}<Enable key={chosen.plugin + chosen.kind} {...chosen} done={(name) => go(`/plugins/${name}`)} /></>
  return (
    <>
      {back}
      <div class="page-head"><div><h1>Enable a plugin</h1><p>Bundled plugins need no installation. Custom executables are configured in the config file.</p></div></div>
      {(['sink', 'notifier', 'matcher'] as const).map((kind) => (
        <section key={kind} class="kinds"><h2>{{ sink: 'Sinks take every event', notifier: 'Notifiers send messages', matcher: 'Matchers add operators to filters' }[kind]}</h2>
          <div class="list" role="list">{data.results.filter((p) => p.kind === kind).map((p) => (
            <div class="plugin-choice" role="listitem" key={p.plugin}><a class="mono" href={`${path}?plugin=${encodeURIComponent(p.plugin)}&kind=${kind}`} aria-label={`${p.plugin}, ${kind}`}>{p.plugin}</a><p>{p.description}</p></div>
          ))}</div>
        </section>
      ))}
    </>
  )
}

function Enable({ plugin, kind, description, schema, done }: { plugin: string; kind: 'sink' | 'notifier' | 'matcher'; description: string; schema: unknown; done: (name: string) => void }) {
  const [name, setName] = useState(plugin)
  const [config, setConfig] = useState<Record<string, unknown>>({})
  const [error, setError] = useState<ApiError | null>(null)
  const [busy, setBusy] = useState(false)
  useGuard(!busy && Object.keys(config).length > 0)
  useEffect(() => setError(null), [name, config])
  useRefused(error)
  const enable = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    const page = here()
    try {
      const saved = await api.put('/api/plugins/{name}/config', { path: { name }, body: { plugin, kind, config, version: 0 } })
      forget('plugins/')
      page.say(`${saved.name} is enabled.`)
      page.leave(() => done(saved.name))
    } catch (e) {
      setBusy(false)
      if (e instanceof ApiError && (e.attr || e.conflict) && page.stayed()) setError(e)
      else page.sayError(e)
    }
  }
  const [sentence, yaml] = error?.code === 'managed_by_file' ? error.message.split('\n\n') : []
  return (
    <form class="config" onSubmit={(e) => { void enable(e) }}>
      <div class="page-head"><div><h1 class="mono">{plugin}</h1><p>{description}</p></div></div>
      <Field id="plugin-name" label="Name of the instance" hint="Its place in logs and metrics; a sink remembers by it what it has taken." error={error?.attr === 'name' ? error.message : null}>
        <input id="plugin-name" class="mono" value={name} required aria-invalid={error?.attr === 'name' || undefined} aria-describedby={error?.attr === 'name' ? 'plugin-name-error' : undefined} onInput={(e) => setName(e.currentTarget.value)} />
      </Field>
      <Form schema={(schema ?? {}) as Node} value={config} error={error?.attr ? { attr: error.attr, text: error.message } : null} onChange={setConfig} />
      {yaml ? <div class="overview"><p class="notice">{sentence}</p><Code label="In the config file" text={yaml} /></div>
        : error?.code === 'version_conflict' ? <p class="field-error" role="alert">An instance of that name exists. Choose another name.</p>
          : error && error.attr !== 'name' && !hasField(schema, error.attr ?? '') && <Problem error={error} />}
      <div class="row"><button type="submit" class="button primary" disabled={busy || !name}>{busy ? 'Enabling…' : 'Enable'}</button></div>
    </form>
  )
}
