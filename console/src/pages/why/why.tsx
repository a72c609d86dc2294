// Why a person gets the values of flags: the trace that the evaluator writes, as a tree.
// Who is asked about, and which flags are shown, is in the URL. A project can have thousands
// of flags, so the server is asked for the traces of one page of them.
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { api, queryOf } from '../../api/client'
import type { Explanation } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { usePlace, useView } from '../../app/place'
import { may, projects } from '../../app/session'
import { Code, Empty, Field, Problem, Skeleton, Tag, useTitle } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { Pager, pageSize } from '../../ui/paging'
import { plural } from '../../ui/time'
import { GroupFields, groupsOf, groupsText, useGroupTypes } from './groups'
import { Trace } from './trace'
import { fits, readValues, valueNames } from './values'
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
  const { query, path, route } = useView()
  const { project } = usePlace()
  const id = query.id ?? ''
  const [text, setText] = useState(id)
  const [overrides, setOverrides] = useState<Override[]>([])
  const settled = useDebounced(overrides, 300)
  useTitle('Why')
  const properties = propertiesOf(settled)
  const types = useGroupTypes(project)
  const groups = groupsOf(query.groups ?? '')
  const [members, setMembers] = useState(groups)
  const named = groupsText(members)
  useLayoutEffect(() => { setText(id); setMembers(groups) }, [project, id, query.groups]) // by a link or Back
  const recent = useData(may('read', 'person') ? `recent/${project}` : '', (signal) => api.get('/api/projects/{project_id}/persons', { path: { project_id: project }, query: { limit: 20 }, signal }))
  const wanted = query.value ?? ''
  const search = query.search ?? query.flag ?? ''
  const [find, setFind] = useState(search)
  const found = useDebounced(find)
  const page = Math.max(1, Number(query.page) || 1)
  const set = (changes: Record<string, string>, replace = false) => route(path + queryOf({ ...query, page: '', ...changes }), replace)
  useEffect(() => { if (found !== search) set({ search: found, flag: '' }, true) }, [found])

  const person = `why/${project}/${id}/${JSON.stringify(properties)}/${groupsText(groups)}`
  const ask = { search, order: 'key', limit: pageSize, offset: (page - 1) * pageSize }
  const list = useData(wanted ? '' : `flags/${project}/why${queryOf(ask)}`, (signal) => api.get('/api/projects/{project_id}/feature_flags', { path: { project_id: project }, query: ask, signal }))
  const values = useData(id && wanted ? `${person}/values` : '', (signal) => readValues(project, id, properties, groups, signal))
  const fitting = wanted ? values.data?.filter((v) => v.key.toLowerCase().includes(search.toLowerCase()) && fits(v.value, wanted)) : undefined
  const count = wanted ? fitting?.length : list.data?.count
  const keys = wanted ? fitting?.slice((page - 1) * pageSize, page * pageSize).map((v) => v.key) : list.data?.results?.map((f) => f.key)
  const traces = useData(id && keys?.length ? `${person}/${keys.join()}` : '', (signal) => api.post('/api/projects/{project_id}/feature_flags/explain', { path: { project_id: project }, body: { distinct_id: id, groups, person_properties: properties, flag_keys_to_evaluate: keys ?? [] }, signal }))
  const source = wanted ? values : list
  const error = traces.error ?? source.error
  const loading = source.loading || Boolean(keys?.length) && traces.loading
  const reload = () => { source.reload(); traces.reload() }
  const flags = count === 0 ? [] : Object.values(traces.data?.flags ?? {}).sort((a, b) => (a.key < b.key ? -1 : 1))
  const ready = count === 0 || flags.length > 0
  const change = (i: number, o: Override) => setOverrides(overrides.map((old, at) => (at === i ? o : old)))
  return (
    <>
      <div class="page-head"><div><h1>Why</h1><p>See every flag's value for a person, and how it came about.</p></div></div>
      <form class="why-form" onSubmit={(e) => { e.preventDefault(); if (text.trim() === id && named === (query.groups ?? '')) reload(); else set({ id: text.trim(), groups: named }) }}>
        <Field id="distinct-id" label="Distinct id">
          <input id="distinct-id" class="mono" list="recent" required autocomplete="off" spellcheck={false} value={text} placeholder="ada" onInput={(e) => setText(e.currentTarget.value)} />
        </Field>
        <datalist id="recent">{(recent.data?.results ?? []).map((p) => <option key={p.uuid} value={p.distinct_ids[0] ?? ''}>{p.name}</option>)}</datalist>
        <GroupFields project={project} types={types} value={members} onChange={setMembers} />
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
      {!id && <Start project={project} people={(recent.data?.results ?? []).map((p) => p.distinct_ids[0] ?? '').filter(Boolean).slice(0, 8)} choose={(chosen) => set({ id: chosen, groups: named })} />}
      {id && (
        <div class="filters" role="search">
          <div class="search"><Icon name="search" /><input type="search" aria-label="Search flags" placeholder="Search by key" value={find} onInput={(e) => setFind(e.currentTarget.value)} /></div>
          <select aria-label="Flags with the value" value={wanted} onChange={(e) => set({ value: e.currentTarget.value })}>
            {Object.entries(valueNames(values.data ?? [], wanted)).map(([name, words]) => <option key={name} value={name}>{words}</option>)}
          </select>
        </div>
      )}
      {id && !ready && !error && <Skeleton rows={4} />}
      {id && ready && (
        <div class={`explained ${loading ? 'stale' : ''}`}>
          {count === 0 && (search || wanted
            ? <Empty title="No flag fits"><p><button type="button" class="link" onClick={() => { setFind(''); set({ search: '', flag: '', value: '' }, true) }}>Show all flags</button></p></Empty>
            : <Empty title="No flag is there"><p>Make a flag, then see here who gets it and why.</p></Empty>)}
          {flags.map((f) => <One key={f.key} explanation={f} first={query.flag === f.key} />)}
          {count !== undefined && count > 0 && count <= pageSize && <p class="muted small">{plural(count, 'flag')}</p>}
          <Pager page={page} count={count ?? 0} go={(to) => set({ page: String(to) })} />
        </div>
      )}
    </>
  )
}

// One makes the tree when it is opened: most are not.
function One({ explanation: e, first }: { explanation: Explanation; first: boolean }) {
  const [open, setOpen] = useState(first)
  return (
    <details class="card one" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="right" />
        <span class="mono name">{e.key}</span>
        <Value e={e} />
        <span class="muted reason">{e.reason?.description ?? e.failure ?? ''}</span>
      </summary>
      {open && <Trace explanation={e} />}
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
    return <Empty title="Pick a person, or type any distinct id"><p class="why-people">{people.map((p) => <button key={p} type="button" class="button small mono" onClick={() => choose(p)}>{p}</button>)}</p></Empty>
  }
  return (
    <Empty title="Type any distinct id">
      <p>Nobody has been seen in this project yet. A person appears with the first event:</p>
      <Code label="Send an event" text={`curl -X POST ${location.origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "event": "signed up", "distinct_id": "ada", "properties": {"$set": {"plan": "pro"}}}'`} />
    </Empty>
  )
}
