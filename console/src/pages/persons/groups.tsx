// The groups of a type, or what groups are while the project has none.
import { useEffect, useRef, useState } from 'preact/hooks'
import { useLocation, useRoute } from 'preact-iso'
import { api, queryOf } from '../../api/client'
import { useData, useDebounced } from '../../app/load'
import { usePlace, useView } from '../../app/place'
import { projects } from '../../app/session'
import { useShortcut } from '../../app/shortcuts'
import { Code, Empty, Problem, Skeleton, Time, useTitle } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { pageSize, Pager, useRowKeys } from '../../ui/paging'
import { plural } from '../../ui/time'
import { useTypes } from '../../ui/grouptypes'
import { Kinds } from './kinds'
import { groupPath } from './paths'
import { typeWords } from './words'
import './persons.css'

export default function Groups() {
  const { params } = useRoute()
  const { project } = usePlace()
  const type = params.type ?? ''
  return type ? <List key={`${project}/${type}`} project={project} index={Number(type)} /> : <None project={project} />
}

function List({ project, index }: { project: string; index: number }) {
  const { query, path, route } = useView()
  const { to } = usePlace()
  const [text, setText] = useState(query.search ?? '')
  const search = useDebounced(text)
  const box = useRef<HTMLInputElement>(null)
  const rows = useRef<HTMLDivElement>(null)
  const type = useTypes(project).data?.find((t) => t.group_type_index === index)
  const page = Math.max(1, Number(query.page) || 1)
  useTitle(type ? typeWords(type, true) : 'Groups')
  useShortcut('/', 'Search', () => box.current?.focus())
  useRowKeys(rows, 'group')
  const set = (changes: Record<string, string>) => route(path + queryOf({ ...query, page: '', ...changes }), true)
  useEffect(() => { if (search.trim() !== (query.search ?? '')) set({ search: search.trim() }) }, [search])
  const ask = { group_type_index: index, search: query.search, limit: pageSize, offset: (page - 1) * pageSize }
  const { data, error, loading, reload } = useData(`groups/${project}/list${queryOf(ask)}`, (signal) => api.get('/api/projects/{project_id}/groups', { path: { project_id: project }, query: ask, signal }))
  const groups = data?.results ?? []
  return (
    <>
      <div class="page-head"><div><h1>Persons and groups</h1><p>{data ? plural(data.count, query.search ? 'group matches' : 'group', query.search ? 'groups match' : 'groups') : 'Companies, teams and the like.'}</p></div></div>
      <Kinds project={project} at={String(index)} />
      <div class="filters" role="search">
        <div class="search"><Icon name="search" /><input ref={box} type="search" aria-label="Search groups" placeholder="Search by key or name" value={text} onInput={(e) => setText(e.currentTarget.value)} /></div>
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <div class="list"><Skeleton rows={8} /></div>}
      {data && groups.length === 0 && (query.search
        ? <Empty title="No groups match"><p><button type="button" class="link" onClick={() => { setText(''); route(path, true) }}>Clear the search</button></p></Empty>
        : page > 1 ? <Empty title="There is no group on this page"><p><button type="button" class="link" onClick={() => set({})}>Back to the first page</button></p></Empty> : <HowTo project={project} name={type?.group_type ?? 'company'} title="No group of this type has been seen yet" />)}
      {groups.length > 0 && (
        <div class={`list ${loading ? 'stale' : ''}`} ref={rows} role="list">
          {groups.map((g) => (
            <div key={g.group_key} class="person-row" role="listitem">
              <div class="name"><a href={to(groupPath(index, g.group_key))}>{String((g.group_properties as Record<string, unknown>).name ?? g.group_key)}</a></div>
              <div class="ids mono">{g.group_key}</div>
              <div class="muted small">{plural(Object.keys(g.group_properties).length, 'property', 'properties')}</div>
              <div class="seen">first seen <Time at={g.created_at} /></div>
            </div>
          ))}
        </div>
      )}
      {data && <Pager page={page} count={data.count} go={(n) => set({ page: n === 1 ? '' : String(n) })} />}
    </>
  )
}

function None({ project }: { project: string }) {
  const { to, go } = usePlace()
  const { path } = useLocation()
  const { data: types, error, reload } = useTypes(project)
  const first = types?.[0]
  useTitle('Groups')
  // While the next page loads, this one still shows, with the path of the next one.
  const bare = /\/groups\/?$/.test(path)
  useEffect(() => { if (first && bare) go(`/groups/${first.group_type_index}`, true) }, [first, bare])
  return (
    <>
      <div class="page-head"><div><h1>Persons and groups</h1><p>Companies, teams and the like.</p></div></div>
      <Kinds project={project} at="groups" />
      {error && <Problem error={error} retry={reload} />}
      {types?.length === 0 && <HowTo project={project} name="company" title="Groups are what persons act for" />}
      <p class="visually-hidden"><a href={to('/persons')}>Persons</a></p>
    </>
  )
}

function HowTo({ project, name, title }: { project: string; name: string; title: string }) {
  const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
  return (
    <Empty title={title}>
      <p>A group is a company, a team, a workspace: flags can be rolled out by group. It appears with the first event that names it, and <code>$groupidentify</code> gives it properties:</p>
      <Code label="Create a group" text={`curl -X POST ${location.origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify({ api_key: token, event: '$groupidentify', distinct_id: 'ada', properties: { $group_type: name, $group_key: 'acme', $group_set: { name: 'Acme', seats: 12 } } }).replaceAll("'", "'\\''")}'`} />
    </Empty>
  )
}
