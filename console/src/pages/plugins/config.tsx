// The config of an instance: a form for those of the API, the YAML for those of the file.
import { useEffect, useState } from 'preact/hooks'
import { api, ApiError } from '../../api/client'
import type { PluginConfig } from '../../api/types'
import { useGuard } from '../../app/guard'
import { forget, remember, useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { here } from '../../app/late'
import { confirm } from '../../ui/dialog'
import { Code, Problem, Skeleton, Time } from '../../ui/basics'
import { Form, hasField, useRefused } from './form'
import type { Node } from './shape'

export function Config({ name, onChanged }: { name: string; onChanged: () => void }) {
  const key = `plugins/config/${name}`
  const { data, error, reload } = useData(key, (signal) => api.get('/api/plugins/{name}/config', { path: { name }, signal }))
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Skeleton rows={4} />
  if (data.managed_by === 'file') return <OfFile config={data} />
  return <Editor key={data.version} config={data} onSaved={(c) => { remember(key, c); reload(); onChanged() }} onReload={reload} />
}

function OfFile({ config: c }: { config: PluginConfig }) {
  return (
    <div class="overview">
      <p class="notice">The config file of the server manages this plugin. Change it there; the server takes the file when it is saved. Secrets are not shown.</p>
      {c.yaml && <Code label="In the config file" text={c.yaml} />}
    </div>
  )
}

function Editor({ config: c, onSaved, onReload }: { config: PluginConfig; onSaved: (c: PluginConfig) => void; onReload: () => void }) {
  const { go } = usePlace()
  const [draft, setDraft] = useState((c.config ?? {}) as Record<string, unknown>)
  const [error, setError] = useState<ApiError | null>(null)
  const [busy, setBusy] = useState(false)
  const [round, setRound] = useState(0) // a discarded draft leaves no text in the fields
  const changed = JSON.stringify(draft) !== JSON.stringify(c.config ?? {})
  useGuard(changed)
  useEffect(() => setError(null), [draft])
  useRefused(error)
  const save = async () => {
    setBusy(true)
    const page = here()
    try {
      const saved = await api.put('/api/plugins/{name}/config', { path: { name: c.name }, body: { plugin: c.plugin, kind: c.kind, config: draft, version: c.version } })
      page.say(`${c.name} is saved. A new process takes over when it works.`)
      onSaved(saved)
    } catch (e) {
      setBusy(false)
      if (e instanceof ApiError && (e.attr || e.conflict) && page.stayed()) setError(e)
      else page.sayError(e)
    }
  }
  const disable = async () => {
    const yes = await confirm({ title: `Disable ${c.name}?`, body: <p>It stops, and its config and secrets are deleted.</p>, action: 'Disable', danger: true, typed: c.name })
    if (!yes) return
    const page = here()
    try {
      await api.delete('/api/plugins/{name}/config', { path: { name: c.name }, query: { version: c.version } })
      forget('plugins/')
      page.say(`${c.name} is disabled.`)
      page.leave(() => go('/plugins'))
    } catch (e) { page.sayError(e) }
  }
  return (
    <form class="config" onSubmit={(e) => { e.preventDefault(); void save() }}>
      <p class="faint">Version {c.version}, <Time at={c.updated_at} />{c.updated_by && ` by ${c.updated_by}`}</p>
      <Form key={round} schema={(c.schema ?? {}) as Node} value={draft} error={error?.attr ? { attr: error.attr, text: error.message } : null} onChange={setDraft} />
      {error && !hasField(c.schema, error.attr ?? '') && <Problem error={error} retry={onReload} />}
      <div class="row">
        <button type="submit" class="button primary" disabled={busy || !changed}>{busy ? 'Saving…' : 'Save'}</button>
        {changed && <button type="button" class="button" onClick={() => { setDraft((c.config ?? {}) as Record<string, unknown>); setRound(round + 1) }}>Discard</button>}
        <button type="button" class="button danger-quiet" onClick={() => { void disable() }}>Disable</button>
      </div>
      {c.yaml && <details><summary>As YAML for the config file</summary><Code label="In the config file" text={c.yaml} /></details>}
    </form>
  )
}
