// The page of a plugin instance. Tabs are in the query of the URL.
import { useEffect, useState } from 'preact/hooks'
import { useLocation, useRoute } from 'preact-iso'
import { api } from '../../api/client'
import type { PluginInstance } from '../../api/types'
import { remember, useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { me } from '../../app/session'
import { here, type Here } from '../../app/late'
import { confirm } from '../../ui/dialog'
import { Empty, Skeleton, Time, useTitle } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { Tabs } from '../../ui/tabs'
import { Config } from './config'
import { ForOperators, Refused, StateTag, useRefused } from './list'
import { Logs } from './logs'
import { Overview } from './overview'
import { Upgrade } from './upgrade'
import { usePoll } from './poll'
import { isLeftOut, waits } from './words'
import './plugins.css'

const tabs = [{ id: '', label: 'State' }, { id: 'config', label: 'Config' }, { id: 'logs', label: 'Logs' }]

export default function PluginPage() { return me.value?.is_operator ? <Instance /> : <ForOperators /> }

function Instance() {
  const name = decodeURIComponent(useRoute().params.name ?? '')
  const { to } = usePlace()
  const { query, path } = useLocation()
  const tab = query.tab ?? ''
  const [edited, setEdited] = useState(false) // Config stays behind the other tabs, with its changes
  useEffect(() => { if (tab === 'config') setEdited(true) }, [tab])
  const key = `plugins/one/${name}`
  useTitle(name)
  const { data, error, loading, reload } = useData(key, (signal) => api.get('/api/plugins/{name}', { path: { name }, signal }))
  usePoll({ loading, reload, error })
  const refused = useRefused(name, error?.status === 403)
  const back = <a class="back" href={to('/plugins')}><Icon name="back" /> Plugins</a>
  if (!data && error?.status === 404) return <>{back}<Empty alone title="There is no such plugin"><p>It was removed, or was just enabled on another node: then it shows here within half a minute. See <a href={to('/plugins')}>all plugins</a>.</p></Empty></>
  if (!data) return <>{back}{error ? <Refused error={error} retry={reload} /> : <Skeleton rows={5} />}</>
  const changed = (p?: PluginInstance) => { if (p) remember(key, p); reload() }
  return (
    <>
      {back}
      <div class="page-head plugin-head">
        <div>
          <h1 class="mono">{data.name} <StateTag plugin={data} refused={refused} /></h1>
          <p>{data.kind}, {data.use}{data.version && ` ${data.version}`} · {data.state}, last change <Time at={data.since} /></p>
        </div>
        {!isLeftOut(data) && <Actions plugin={data} onChanged={changed} />}
      </div>
      {error && <Refused error={error} retry={reload} />}
      <Tabs label="Parts of the plugin" tabs={tabs.map((t) => ({ href: t.id ? `${path}?tab=${t.id}` : path, label: t.label, here: tab === t.id }))} />
      {tab === '' && <Overview plugin={data} refused={refused} />}
      {(tab === 'config' || edited) && <div hidden={tab !== 'config'}><Config name={data.name} onChanged={reload} /></div>}
      {tab === 'logs' && <Logs name={data.name} />}
    </>
  )
}

function Actions({ plugin: p, onChanged }: { plugin: PluginInstance; onChanged: (p?: PluginInstance) => void }) {
  const [busy, setBusy] = useState('')
  const path = { name: p.name }
  const run = async (what: string, act: (page: Here) => Promise<void>) => {
    setBusy(what)
    const page = here()
    try { await act(page) } catch (e) { page.sayError(e) } finally { setBusy('') }
  }
  const check = () => run('check', async (page) => {
    const { ok, error, latency_ms } = await api.post('/api/plugins/{name}/check', { path })
    if (ok) page.say(`${p.name} works: it answered in ${Math.round(latency_ms)} ms.`)
    else if (page.stayed()) page.sayError(new Error(`The check of ${p.name} failed: ${error ?? 'no reason was given'}`))
  })
  const pause = async () => {
    const yes = await confirm({ title: `Pause ${p.name}?`, body: <p>Batches on their way are completed. Later events wait in the journal, also across restarts, until it is resumed.</p>, action: 'Pause' })
    if (yes) await run('pause', async (page) => { await api.post('/api/plugins/{name}/pause', { path }); page.say(`${p.name} is paused.`); onChanged() })
  }
  const resume = () => run('resume', async (page) => { await api.post('/api/plugins/{name}/resume', { path }); page.say(`${p.name} goes on.`); onChanged() })
  const restart = async () => {
    const yes = await confirm({ title: `Restart ${p.name}?`, body: <p>A new process starts. The old one serves until the new one does; no event is lost.</p>, action: 'Restart' })
    if (yes) await run('restart', async (page) => { onChanged(await api.post('/api/plugins/{name}/restart', { path })); page.say(`${p.name} starts again.`) })
  }
  const upgrade = () => run('upgrade', async (page) => { onChanged(await api.post('/api/plugins/{name}/restart', { path })); page.say(`${p.name} is upgraded when the new process works.`) })
  const release = () => run('release', async (page) => { onChanged(await api.post('/api/plugins/{name}/release', { path })); page.say(`${p.name} tries again.`) })
  return (
    <div class="row wrap">
      {p.installed_sha256 && <Upgrade plugin={p} busy={busy !== ''} onUpgrade={() => { void upgrade() }} />}
      {waits(p) && <button type="button" class="button primary" disabled={busy !== ''} onClick={() => { void release() }}>Release</button>}
      <button type="button" class="button" disabled={busy !== ''} onClick={() => { void check() }}><Icon name="check" /> {busy === 'check' ? 'Checking…' : 'Check'}</button>
      {p.delivery && (p.delivery.paused
        ? <button type="button" class="button primary" disabled={busy !== ''} onClick={() => { void resume() }}><Icon name="play" /> Resume</button>
        : <button type="button" class="button" disabled={busy !== ''} onClick={() => { void pause() }}><Icon name="pause" /> Pause</button>)}
      <button type="button" class="button" disabled={busy !== ''} onClick={() => { void restart() }}><Icon name="restart" /> Restart</button>
    </div>
  )
}
