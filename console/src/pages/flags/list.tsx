import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { type ReadonlySignal, useSignal } from '@preact/signals'
import { api, queryOf } from '../../api/client'
import type { Flag } from '../../api/types'
import { remember, useData, useDebounced } from '../../app/load'
import { usePlace, useView } from '../../app/place'
import { pathOf } from '../../pages'
import { may, me, projects } from '../../app/session'
import { mayEdit } from './rights'
import { useShortcut } from '../../app/shortcuts'
import { Code, Empty, Problem, Skeleton, Switch, Tag, Time, useTitle } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { pageSize, Pager, useRowKeys } from '../../ui/paging'
import { plural } from '../../ui/time'
import { toggle } from './actions'
import { CallSpark, useCalls, type Calls } from './calls'
import { rolloutWords } from './words'
import './list.css'

const deleted = 'deleted'

// List shows the flags of a project. Search and filters are in the URL.
export default function List() {
  const { query, path, route } = useView()
  const { project, to, go } = usePlace()
  const [text, setText] = useState(query.search ?? '')
  const search = useDebounced(text)
  const box = useRef<HTMLInputElement>(null)
  const rows = useRef<HTMLDivElement>(null)
  const page = Math.max(1, Number(query.page) || 1)
  useTitle('Flags')
  useShortcut('/', 'Search', () => box.current?.focus())
  useShortcut('c', 'Create a flag', () => go('/flags/new'))
  useRowKeys(rows, 'flag')

  const set = (changes: Record<string, string>) => route(path + queryOf({ ...query, page: '', ...changes }), true)
  useEffect(() => { if (search !== (query.search ?? '')) set({ search }) }, [search])

  const ask = {
    search: query.search, active: query.active === deleted ? undefined : query.active as 'true' | undefined, deleted: query.active === deleted || undefined, type: query.type as 'boolean' | undefined, order: query.order,
    created_by_id: query.by === 'me' ? me.value?.id : undefined, tags: query.tag ? JSON.stringify([query.tag]) : undefined, limit: pageSize, offset: (page - 1) * pageSize,
  }
  const key = `flags/${project}/list${queryOf(ask)}`
  const { data, error, reload } = useData(key, (signal) => api.get('/api/projects/{project_id}/feature_flags', { path: { project_id: project }, query: ask, signal }))
  const flags = data?.results ?? []
  const calls = useSignal<Calls>(undefined)
  const called = useCalls(project, flags.map((f) => f.id))
  useEffect(() => { calls.value = called }, [called])
  const filtered = Boolean(query.search || query.active || query.tag || query.type || query.by)
  const ofAll = useData(`flags/${project}/tags`, (signal) => api.get('/api/projects/{project_id}/feature_flags/tags', { path: { project_id: project }, signal }))
  const tags = [...new Set([...(ofAll.data?.results ?? []), ...(query.tag ? [query.tag] : [])])].sort()
  const replace = (changed: Flag | null) => {
    if (!changed || !data) return
    remember(key, { ...data, results: flags.map((f) => (f.id === changed.id ? changed : f)) })
    reload()
  }
  const onToggle = useRef<(flag: Flag) => void>(undefined)
  onToggle.current = (flag) => { void toggle(project, flag).then(replace) }
  // The rows are made once for each answer; calls that arrive change only their own cells.
  const made = useMemo(() => flags.map((f) => <Row key={f.id} flag={f} calls={calls} href={to(`/flags/${f.id}`)} onToggle={() => onToggle.current?.(f)} />), [data, project])
  return (
    <>
      <div class="page-head">
        <div><h1>Flags</h1><p>{data ? plural(data.count, filtered ? 'flag matches' : 'flag', filtered ? 'flags match' : 'flags') : 'For whom which feature is on.'}</p></div>
        {may('write', 'feature_flag') && <a class="button primary" href={to('/flags/new')}><Icon name="plus" /> New flag</a>}
      </div>
      <div class="filters" role="search">
        <div class="search"><Icon name="search" /><input ref={box} type="search" aria-label="Search flags" placeholder="Search by key or name" value={text} onInput={(e) => setText(e.currentTarget.value)} /></div>
        <Filter label="Status" value={query.active} options={{ '': 'Any status', true: 'On', false: 'Off', STALE: 'Stale', [deleted]: 'Deleted' }} onChange={(active) => set({ active })} />
        <Filter label="Type" value={query.type} options={{ '': 'Any type', boolean: 'On or off', multivariant: 'Variants', remote_config: 'Remote config' }} onChange={(type) => set({ type })} />
        {tags.length > 0 && <Filter label="Tag" value={query.tag} options={{ '': 'Any tag', ...Object.fromEntries(tags.map((t) => [t, t])) }} onChange={(tag) => set({ tag })} />}
        <Filter label="Created by" value={query.by} options={{ '': 'Created by anyone', me: 'Created by me' }} onChange={(by) => set({ by })} />
        <Filter label="Order" value={query.order} options={{ '': 'Newest first', '-updated_at': 'Last changed first', key: 'By key' }} onChange={(order) => set({ order })} />
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <div class="list"><Skeleton rows={8} /></div>}
      {data && flags.length === 0 && (filtered || data.count > 0
        ? <Empty title="No flags match"><p><button type="button" class="link" onClick={() => { setText(''); route(path, true) }}>Clear the search</button></p></Empty>
        : <First project={project} />)}
      {flags.length > 0 && (
        <div class="list" ref={rows} role="list">{made}</div>
      )}
      {data && <Pager page={page} count={data.count} go={(to) => set({ page: String(to) })} />}
    </>
  )
}

function Filter({ label, value, options, onChange }: { label: string; value: string | undefined; options: Record<string, string>; onChange: (value: string) => void }) {
  return <select aria-label={label} value={value ?? ''} onChange={(e) => onChange(e.currentTarget.value)}>{Object.entries(options).sort(([a], [b]) => (a === '' ? -1 : b === '' ? 1 : 0)).map(([v, words]) => <option key={v} value={v}>{words}</option>)}</select>
}

export function StatusTag({ flag }: { flag: Flag }) {
  if (flag.deleted) return <Tag tone="bad">Deleted</Tag>
  if (flag.status === 'STALE') return <Tag tone="warn">Stale</Tag>
  return flag.active ? <Tag tone="ok">On</Tag> : <Tag>Off</Tag>
}

function Row({ flag, calls, href, onToggle }: { flag: Flag; calls: ReadonlySignal<Calls>; href: string; onToggle: () => void }) {
  const rollout = rolloutWords(flag)
  const by = flag.last_modified_by ?? flag.created_by
  return (
    <div class="flag-row" role="listitem">
      <Switch on={flag.active} label={`${flag.key} is ${flag.active ? 'on' : 'off'}`} disabled={!mayEdit(flag) || flag.deleted} onToggle={onToggle} />
      <div class="name">
        <a class="mono" href={href}>{flag.key}</a>
        {flag.tags.length > 0 && <span class="tags">{flag.tags.slice(0, 4).map((t) => <Tag key={t}>{t}</Tag>)}</span>}
        {flag.name && <p title={flag.name}>{flag.name}</p>}
      </div>
      <div class="rollout" title={rollout}>{rollout}</div>
      <div class="calls"><CallSpark calls={calls} flag={flag} /></div>
      <div class="status"><StatusTag flag={flag} /></div>
      <div class="who-when"><span>{by ? by.first_name || by.email : 'by a command'}</span> <Time at={flag.updated_at} /></div>
    </div>
  )
}

function First({ project }: { project: string }) {
  const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
  return (
    <Empty title="Create your first flag">
      <p>A flag decides for whom a feature is on. Press <kbd>c</kbd> to create one here, or do it from a terminal, with a <a href={pathOf(project, '/settings/my-keys')}>personal key</a> in <code>PERSONAL_KEY</code>:</p>
      <Code label="Create" text={`curl -X POST ${location.origin}/api/projects/${project}/feature_flags/ \\\n  -H "Authorization: Bearer $PERSONAL_KEY" -H 'Content-Type: application/json' \\\n  -d '{"key": "new-nav", "filters": {"groups": [{"properties": [], "rollout_percentage": 50}]}}'`} />
      <Code label="Ask" text={`curl -X POST '${location.origin}/decide?v=3' -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "distinct_id": "ada"}'`} />
    </Empty>
  )
}
