// The actions of a project. Search and filters are in the URL.
import { useEffect, useRef, useState } from 'preact/hooks'
import { api, queryOf } from '../../api/client'
import type { Action } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { usePlace, useView } from '../../app/place'
import { pathOf } from '../../pages'
import { may, me, projects } from '../../app/session'
import { useShortcut } from '../../app/shortcuts'
import { Code, Empty, Problem, Skeleton, Tag, Time, useTitle } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { pageSize, Pager, useRowKeys } from '../../ui/paging'
import { Spark } from '../../ui/spark'
import { plural } from '../../ui/time'
import { draftOf } from './draft'
import { actionWords } from './words'
import './list.css'

export default function List() {
  const { query, path, route } = useView()
  const { project, to, go } = usePlace()
  const [text, setText] = useState(query.search ?? '')
  const search = useDebounced(text)
  const box = useRef<HTMLInputElement>(null)
  const rows = useRef<HTMLDivElement>(null)
  const page = Math.max(1, Number(query.page) || 1)
  useTitle('Actions')
  useShortcut('/', 'Search', () => box.current?.focus())
  useShortcut('c', 'Create an action', () => go('/actions/new'))
  useRowKeys(rows, 'action')

  const set = (changes: Record<string, string>) => route(path + queryOf({ ...query, page: '', ...changes }), true)
  useEffect(() => { if (search !== (query.search ?? '')) set({ search }) }, [search])

  const mine = query.by === 'me'
  const ask = {
    search: query.search, tags: query.tag, created_by_id: mine ? me.value?.id : undefined, deleted: query.deleted === 'true' || undefined,
    limit: pageSize, offset: (page - 1) * pageSize,
  }
  const { data, error, reload } = useData(`actions/${project}/list${queryOf(ask)}`, (signal) => api.get('/api/projects/{project_id}/actions', { path: { project_id: project }, query: ask, signal }))
  const actions = data?.results ?? []
  const counts = useCounts(project, actions)
  const filtered = Boolean(query.search || query.tag || query.by || query.deleted)
  const tags = [...new Set([...actions.flatMap((a) => a.tags), ...(query.tag ? [query.tag] : [])])].sort()
  return (
    <>
      <div class="page-head">
        <div><h1>Actions</h1><p>{data ? plural(data.count, query.deleted ? 'deleted action' : filtered ? 'action matches' : 'action', query.deleted ? 'deleted actions' : filtered ? 'actions match' : 'actions') : 'Named events, with counts and chat messages.'}</p></div>
        {may('write', 'action') && <a class="button primary" href={to('/actions/new')}><Icon name="plus" /> New action</a>}
      </div>
      <div class="filters" role="search">
        <div class="search"><Icon name="search" /><input ref={box} type="search" aria-label="Search actions" placeholder="Search by name or description" value={text} onInput={(e) => setText(e.currentTarget.value)} /></div>
        {tags.length > 0 && (
          <select aria-label="Tag" value={query.tag ?? ''} onChange={(e) => set({ tag: e.currentTarget.value })}><option value="">Any tag</option>{tags.map((t) => <option key={t} value={t}>{t}</option>)}</select>
        )}
        <select aria-label="Created by" value={query.by ?? ''} onChange={(e) => set({ by: e.currentTarget.value })}><option value="">Created by anyone</option><option value="me">Created by me</option></select>
        <select aria-label="State" value={query.deleted ?? ''} onChange={(e) => set({ deleted: e.currentTarget.value })}><option value="">In use</option><option value="true">Deleted</option></select>
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <div class="list"><Skeleton rows={8} /></div>}
      {data && actions.length === 0 && (filtered
        ? <Empty title={query.deleted ? 'No action is deleted' : 'No actions match'}><p><button type="button" class="link" onClick={() => { setText(''); route(path, true) }}>{query.deleted ? 'Show the actions in use' : 'Clear the search'}</button></p></Empty>
        : page > 1 ? <Empty title="There is no action on this page"><p><button type="button" class="link" onClick={() => set({})}>Back to the first page</button></p></Empty> : <First project={project} />)}
      {actions.length > 0 && <div class="list" ref={rows} role="list">{actions.map((a) => <Row key={a.id} action={a} counts={counts?.get(a.id)} href={to(`/actions/${a.id}`)} />)}</div>}
      {data && <Pager page={page} count={data.count} go={(to) => set({ page: String(to) })} />}
    </>
  )
}

interface Counts { counts: number[]; error?: string }

// useCounts reads the counts of 14 days of all actions of the page, and again while some are
// still being counted.
function useCounts(project: string, actions: Action[]): Map<number, Counts> | undefined {
  const ids = actions.map((a) => a.id).sort((a, b) => a - b).join(',')
  const { data, reload } = useData(ids && `actions/${project}/counts/${ids}`, (signal) => api.get('/api/projects/{project_id}/actions/series', { path: { project_id: project }, query: { ids, date_from: '-13d' }, signal }))
  const counting = data?.results.some((r) => r.is_calculating)
  useEffect(() => {
    if (!counting) return
    const timer = setTimeout(reload, 3000)
    return () => clearTimeout(timer)
  }, [data])
  return data && new Map(data.results.map((r) => [r.id, r]))
}

function Row({ action, counts, href }: { action: Action; counts: Counts | undefined; href: string }) {
  const words = actionWords(draftOf(action).steps)
  const by = action.created_by
  return (
    <div class="action-row" role="listitem">
      <div class="name">
        <a href={href}>{action.name || `Action ${action.id}`}</a>
        {action.tags.length > 0 && <span class="tags">{action.tags.slice(0, 4).map((t) => <Tag key={t}>{t}</Tag>)}</span>}
        <p title={words}>{words}</p>
      </div>
      <div class="counts">{counts?.error ? <span class="faint small" title={counts.error}>unknown</span> : <Spark label="Events in 14 days" series={counts && [{ name: 'events', values: counts.counts }]} />}</div>
      <div class="status">
        {action.deleted ? <Tag tone="bad">Deleted</Tag> : action.bytecode_error ? <span title={action.bytecode_error}><Tag tone="warn">Broken</Tag></span> : action.post_to_chat ? <Tag tone="ok">Posts to chat</Tag> : <span class="faint small">No messages</span>}
      </div>
      <div class="who-when">{by ? by.first_name || by.email : 'a deleted user'}, <Time at={action.updated_at} /></div>
    </div>
  )
}

function First({ project }: { project: string }) {
  const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
  return (
    <Empty title="Create your first action">
      <p>An action gives events a name, such as “Signed up”: it counts them, lists who did it, and posts to chat. Press <kbd>c</kbd> to create one here, or do it from a terminal, with a <a href={pathOf(project, '/settings/my-keys')}>personal key</a> in <code>PERSONAL_KEY</code>:</p>
      <Code label="Create" text={`curl -X POST ${location.origin}/api/projects/${project}/actions/ \\\n  -H "Authorization: Bearer $PERSONAL_KEY" -H 'Content-Type: application/json' \\\n  -d '{"name": "Signed up", "steps": [{"event": "signed up"}]}'`} />
      <Code label="Send an event" text={`curl -X POST ${location.origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "event": "signed up", "distinct_id": "ada"}'`} />
    </Empty>
  )
}
