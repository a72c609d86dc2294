// The persons of a project. Search, filters and the page are in the URL.
import { useEffect, useRef, useState } from 'preact/hooks'
import { api, queryOf } from '../../api/client'
import type { Person, PropertyFilter } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { usePlace, useView } from '../../app/place'
import { projects } from '../../app/session'
import { useShortcut } from '../../app/shortcuts'
import { Code, Empty, Problem, Skeleton, Tag, Time, useTitle } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { pageSize, Pager, useRowKeys } from '../../ui/paging'
import { plural } from '../../ui/time'
import { FilterBar } from './filters'
import { Kinds } from './kinds'
import { useSearch, type Search } from './search'
import { filtersOf, idsText } from './words'
import './persons.css'

export default function List() {
  const { query, path, route } = useView()
  const { project, to } = usePlace()
  const [text, setText] = useState(query.search ?? '')
  const typed = useDebounced(text)
  const box = useRef<HTMLInputElement>(null)
  const rows = useRef<HTMLDivElement>(null)
  const page = Math.max(1, Number(query.page) || 1)
  const filters = filtersOf(query.properties)
  useTitle('Persons')
  useShortcut('/', 'Search', () => box.current?.focus())
  useRowKeys(rows, 'person')

  const set = (changes: Record<string, string>) => route(path + queryOf({ ...query, page: '', ...changes }), true)
  useEffect(() => { if (typed.trim() !== (query.search ?? '')) set({ search: typed.trim() }) }, [typed])
  const setFilters = (next: PropertyFilter[]) => set({ properties: next.length ? JSON.stringify(next) : '' })

  const filtered = Boolean(query.search || query.identified || filters.length)
  const conditions = { search: query.search, is_identified: query.identified as boolean | undefined, properties: filters.length ? JSON.stringify(filters) : undefined }
  const ask = { limit: pageSize, offset: (page - 1) * pageSize }
  const all = useData(filtered ? '' : `persons/${project}/list${queryOf(ask)}`, (signal) => api.get('/api/projects/{project_id}/persons', { path: { project_id: project }, query: ask, signal }))
  const key = filtered ? `${project}${queryOf(conditions)}` : ''
  const search = useSearch(project, key, conditions)
  const done = filtered ? search.key !== '' && !search.error : Boolean(all.data) && !all.error
  const error = filtered ? search.error : all.error
  const persons = (filtered ? search.persons : all.data?.results) ?? []
  const loading = filtered ? search.running && search.key !== key : all.loading
  const part = filtered && search.cursor !== null // there is more to look at
  const count = filtered ? persons.length : (all.data?.count ?? 0)
  return (
    <>
      <div class="page-head">
        <div><h1>Persons and groups</h1><p>{done ? `${plural(count, filtered ? 'person matches' : 'person', filtered ? 'persons match' : 'persons')}${part ? ' so far' : ''}` : 'Who has sent events.'}</p></div>
      </div>
      <Kinds project={project} at="persons" />
      <div class="filters" role="search">
        <div class="search"><Icon name="search" /><input ref={box} type="search" aria-label="Search persons" placeholder="Search by distinct id, e-mail or name" value={text} onInput={(e) => setText(e.currentTarget.value)} /></div>
        <select aria-label="Identified" value={query.identified ?? ''} onChange={(e) => set({ identified: e.currentTarget.value })}>
          <option value="">Identified or not</option><option value="true">Identified</option><option value="false">Anonymous</option>
        </select>
      </div>
      <FilterBar project={project} filters={filters} onChange={setFilters} />
      {error && <Problem error={error} retry={filtered ? search.more : all.reload} />}
      {!done && !error && <div class="list"><Skeleton rows={8} /></div>}
      {done && persons.length === 0 && !part && (filtered
        ? <Empty title="No persons match"><p><button type="button" class="link" onClick={() => { setText(''); route(path, true) }}>Clear the search</button></p></Empty>
        : page > 1 ? <Empty title="There are no persons on this page"><p><button type="button" class="link" onClick={() => set({})}>Back to the first page</button></p></Empty> : <First project={project} />)}
      {persons.length > 0 && <div class={`list ${loading ? 'stale' : ''}`} ref={rows} role="list">{persons.map((p) => <Row key={p.uuid} person={p} href={to(`/persons/${p.uuid}`)} />)}</div>}
      {filtered ? part && <More search={search} /> : all.data && <Pager page={page} count={all.data.count} go={(n) => set({ page: n === 1 ? '' : String(n) })} />}
    </>
  )
}

// More says how far a search looked, and goes on with it.
function More({ search }: { search: Search }) {
  return (
    <div class="pager">
      <span role="status">Looked at {search.searched.toLocaleString('en')} of about {(search.total ?? 0).toLocaleString('en')} persons, the newest first{search.running ? '…' : ''}</span>
      {search.running ? <button type="button" class="button" onClick={search.stop}>Stop</button> : <button type="button" class="button" onClick={search.more}>Continue search</button>}
    </div>
  )
}

function Row({ person: p, href }: { person: Person; href: string }) {
  return (
    <div class="person-row" role="listitem">
      <div class="name"><a href={href}>{p.name || 'no name'}</a></div>
      <div class="ids mono" title={p.distinct_ids.slice(0, 20).join('\n')}>{p.distinct_ids.length === 1 && p.distinct_ids[0] === p.name ? '' : idsText(p)}</div>
      <div>{p.is_identified ? <Tag tone="ok">Identified</Tag> : <Tag>Anonymous</Tag>}</div>
      <div class="seen">{p.last_seen_at ? <>seen <Time at={p.last_seen_at} /></> : <>created <Time at={p.created_at} /></>}</div>
    </div>
  )
}

function First({ project }: { project: string }) {
  const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
  return (
    <Empty title="No persons yet">
      <p>A person appears with the first event of a distinct id. <code>$set</code> gives it properties:</p>
      <Code label="Send an event" text={`curl -X POST ${location.origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "event": "signed up", "distinct_id": "ada", "properties": {"$set": {"email": "ada@example.com", "plan": "pro"}}}'`} />
    </Empty>
  )
}
