// The cohorts of a project: named sets of persons that conditions pick. They are made and
// changed with the API.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { api, queryOf } from '../../api/client'
import type { Cohort, Flag } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { usePlace, useView } from '../../app/place'
import { useShortcut } from '../../app/shortcuts'
import { Code, Empty, Problem, Skeleton, Time, useTitle } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { pageSize, Pager } from '../../ui/paging'
import { plural } from '../../ui/time'
import { Kinds } from './kinds'
import { flagsByCohort } from './words'
import './persons.css'

const most = 1000 // flags whose conditions are read

export default function Cohorts() {
  const { query, path, route } = useView()
  const { project } = usePlace()
  const [text, setText] = useState(query.search ?? '')
  const search = useDebounced(text)
  const box = useRef<HTMLInputElement>(null)
  const page = Math.max(1, Number(query.page) || 1)
  useTitle('Cohorts')
  useShortcut('/', 'Search', () => box.current?.focus())
  const set = (changes: Record<string, string>) => route(path + queryOf({ ...query, page: '', ...changes }), true)
  useEffect(() => { if (search.trim() !== (query.search ?? '')) set({ search: search.trim() }) }, [search])
  useLayoutEffect(() => { if (query.search !== undefined && query.search !== text.trim()) setText(query.search) }, [query.search]) // from the palette
  const ask = { search: query.search, limit: pageSize, offset: (page - 1) * pageSize }
  const { data, error, loading, reload } = useData(`cohorts/${project}/list${queryOf(ask)}`, (signal) => api.get('/api/projects/{project_id}/cohorts', { path: { project_id: project }, query: ask, signal }))
  const cohorts = data?.results ?? []
  const count = data?.count ?? 0
  const flags = useData(cohorts.length ? `cohorts/${project}/users` : '', (signal) => api.get('/api/projects/{project_id}/feature_flags', { path: { project_id: project }, query: { limit: most }, signal }))
  const users = flags.data && flagsByCohort(flags.data.results ?? [])
  const clear = () => { setText(''); route(path, true) }
  return (
    <>
      <div class="page-head"><div><h1>Persons and groups</h1><p>{data ? plural(count, query.search ? 'cohort matches' : 'cohort', query.search ? 'cohorts match' : 'cohorts') : 'Sets of persons that conditions pick.'}</p></div></div>
      <Kinds project={project} at="cohorts" />
      <div class="filters" role="search">
        <div class="search"><Icon name="search" /><input ref={box} type="search" aria-label="Search cohorts" placeholder="Search by name" value={text} onInput={(e) => setText(e.currentTarget.value)} /></div>
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <div class="list"><Skeleton rows={8} /></div>}
      {data && cohorts.length === 0 && (query.search
        ? <Empty title="No cohorts match"><p><button type="button" class="link" onClick={clear}>Clear the search</button></p></Empty>
        : page > 1 ? <Empty title="There is no cohort on this page"><p><button type="button" class="link" onClick={() => set({})}>Back to the first page</button></p></Empty> : <Empty title="A cohort is a named set of persons"><HowTo project={project} /></Empty>)}
      {cohorts.length > 0 && (
        <>
          <div class={`list ${loading ? 'stale' : ''}`} role="list">{cohorts.map((c) => <Row key={c.id} cohort={c} users={users ? users.get(c.id) ?? [] : undefined} part={(flags.data?.count ?? 0) > most} />)}</div>
          <Pager page={page} count={count} go={(n) => set({ page: n === 1 ? '' : String(n) })} />
          <details class="cohort-how"><summary>Create another one</summary><HowTo project={project} /></details>
        </>
      )}
    </>
  )
}

function Row({ cohort: c, users, part }: { cohort: Cohort; users: Flag[] | undefined; part: boolean }) {
  const { to } = usePlace()
  const none = part ? `not used by the first ${most.toLocaleString('en')} flags` : 'not used by a flag'
  return (
    <div class="person-row" role="listitem">
      <div class="name cohort"><b>{c.name}</b>{c.description && <p class="muted small">{c.description}</p>}</div>
      <div class="uses">{users === undefined ? '\u00a0' : users.length === 0 ? <span class="faint">{none}</span> : users.slice(0, 3).map((f) => <a key={f.id} class="mono" href={to(`/flags/${f.id}`)}>{f.key}</a>)}{users && users.length > 3 && <span class="faint">and {plural(users.length - 3, 'more flag')}</span>}</div>
      <div class="people muted small">{typeof c.count === 'number' && (c.is_static || c.last_calculation || c.count > 0) ? plural(c.count, 'person', 'people') : 'not counted yet'}</div>
      <div class="seen">{c.is_static ? 'a list' : 'by properties'}, {(c.version ?? 1) > 1 ? 'changed' : 'created'} <Time at={c.updated_at ?? c.created_at} /></div>
    </div>
  )
}

function HowTo({ project }: { project: string }) {
  const { to } = usePlace()
  const line = (body: unknown) => `curl -X POST ${location.origin}/api/projects/${project}/cohorts/ \\\n  -H "Authorization: Bearer $PERSONAL_KEY" -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(body)}'`
  return (
    <>
      <p>Conditions of flags and filters pick a cohort instead of repeating its properties. It is created from a terminal, with a <a href={to('/settings/my-keys')}>personal key</a> in <code>PERSONAL_KEY</code>:</p>
      <Code label="Everyone with a property" text={line({ name: 'Pro customers', filters: { properties: { type: 'AND', values: [{ key: 'plan', type: 'person', operator: 'exact', value: ['pro'] }] } } })} />
      <Code label="A list of persons, by distinct id" text={line({ name: 'Beta testers', is_static: true, distinct_ids: ['ada'] })} />
    </>
  )
}
