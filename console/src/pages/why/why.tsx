// Why a person gets the values of flags: the trace that the evaluator writes, as a tree.
// Who is asked about is in the URL.
import { useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { api, queryOf } from '../../api/client'
import type { Explanation } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { usePlace } from '../../app/place'
import { projects } from '../../app/session'
import { Code, Empty, Field, Problem, Skeleton, Tag, useTitle } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { Trace } from './trace'
import './why.css'

interface Override { name: string; value: string }

// propertiesOf reads what was typed: JSON values as such, everything else as text.
export function propertiesOf(overrides: Override[]): Record<string, unknown> {
  const out: Record<string, unknown> = {}
  for (const { name, value } of overrides) {
    if (!name) continue
    try { out[name] = JSON.parse(value) } catch { out[name] = value }
  }
  return out
}

export default function Why() {
  const { query, path, route } = useLocation()
  const { project } = usePlace()
  const id = query.id ?? ''
  const [text, setText] = useState(id)
  const [overrides, setOverrides] = useState<Override[]>([])
  const settled = useDebounced(overrides, 300)
  useTitle('Why')
  const properties = propertiesOf(settled)
  const recent = useData(`recent/${project}`, (signal) => api.get('/api/projects/{project_id}/persons', { path: { project_id: project }, query: { limit: 20 }, signal }))
  const key = id && `why/${project}/${id}/${JSON.stringify(properties)}`
  const { data, error, loading, reload } = useData(key, (signal) => api.post('/api/projects/{project_id}/feature_flags/explain', { path: { project_id: project }, body: { distinct_id: id, person_properties: properties }, signal }))
  const set = (changes: Record<string, string>) => route(path + queryOf({ ...query, ...changes }))
  const flags = Object.values(data?.flags ?? {}).sort((a, b) => a.key.localeCompare(b.key))
  const change = (i: number, o: Override) => setOverrides(overrides.map((old, at) => (at === i ? o : old)))
  return (
    <>
      <div class="page-head"><div><h1>Why</h1><p>See every flag's value for a person, and how it came about.</p></div></div>
      <form class="why-form" onSubmit={(e) => { e.preventDefault(); if (text.trim() === id) reload(); else set({ id: text.trim() }) }}>
        <Field id="distinct-id" label="Distinct id">
          <input id="distinct-id" class="mono" list="recent" required autocomplete="off" spellcheck={false} value={text} placeholder="ada" onInput={(e) => setText(e.currentTarget.value)} />
        </Field>
        <datalist id="recent">{(recent.data?.results ?? []).map((p) => <option key={p.uuid} value={p.distinct_ids[0] ?? ''}>{p.name}</option>)}</datalist>
        <button type="submit" class="button primary">Explain</button>
      </form>
      {id && (
        <details class="overrides" open={overrides.length > 0}>
          <summary>What if a property were different?</summary>
          {overrides.map((o, i) => (
            <div class="row" key={i}>
              <input class="mono" aria-label="Property" placeholder="plan" value={o.name} onInput={(e) => change(i, { ...o, name: e.currentTarget.value })} /> is
              <input class="mono" aria-label="Value" placeholder="pro" value={o.value} onInput={(e) => change(i, { ...o, value: e.currentTarget.value })} />
              <button type="button" class="icon-button" aria-label="Remove" onClick={() => setOverrides(overrides.filter((_, at) => at !== i))}><Icon name="close" /></button>
            </div>
          ))}
          <button type="button" class="button small" onClick={() => setOverrides([...overrides, { name: '', value: '' }])}><Icon name="plus" /> Change a property</button>
        </details>
      )}
      {error && <Problem error={error} retry={reload} />}
      {!id && <Start project={project} people={(recent.data?.results ?? []).map((p) => p.distinct_ids[0] ?? '').filter(Boolean).slice(0, 8)} choose={(chosen) => { setText(chosen); set({ id: chosen }) }} />}
      {id && !data && !error && <Skeleton rows={4} />}
      {id && data && (
        <div class={`explained ${loading ? 'stale' : ''}`}>
          {flags.length === 0 && <Empty title="No flag is active"><p>Flags that are off are not evaluated.</p></Empty>}
          {flags.map((f) => <One key={f.key} explanation={f} open={query.flag === f.key} />)}
        </div>
      )}
    </>
  )
}

function One({ explanation: e, open }: { explanation: Explanation; open: boolean }) {
  return (
    <details class="card one" open={open}>
      <summary>
        <Icon name="right" />
        <span class="mono name">{e.key}</span>
        <Value e={e} />
        <span class="muted reason">{e.reason?.description ?? e.failure ?? ''}</span>
      </summary>
      <Trace explanation={e} />
    </details>
  )
}

export function Value({ e }: { e: Explanation }) {
  if (!e.computed) return <Tag tone="bad">not computed</Tag>
  if ((e.gates ?? []).some((g) => g.name === 'active' && g.result !== 'passed')) return <Tag>off</Tag>
  if (!e.served) return <Tag tone="warn">not served</Tag>
  return e.value === true ? <Tag tone="ok">on</Tag> : e.value === false || e.value === null ? <Tag>off</Tag> : <Tag tone="accent">{e.value}</Tag>
}

function Start({ project, people, choose }: { project: string; people: string[]; choose: (id: string) => void }) {
  const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
  if (people.length) {
    return <Empty title="Pick a person, or type any distinct id"><p class="people">{people.map((p) => <button key={p} type="button" class="button small mono" onClick={() => choose(p)}>{p}</button>)}</p></Empty>
  }
  return (
    <Empty title="Type any distinct id">
      <p>Nobody has been seen in this project yet. A person appears with the first event:</p>
      <Code label="Send an event" text={`curl -X POST ${location.origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "event": "signed up", "distinct_id": "ada", "properties": {"$set": {"plan": "pro"}}}'`} />
    </Empty>
  )
}
