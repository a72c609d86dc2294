// Events as they arrive. Filters and the event that is looked at are in the URL.
import type { VNode } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { api, queryOf } from '../../api/client'
import type { Event } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { usePlace, useView } from '../../app/place'
import { projects } from '../../app/session'
import { useShortcut } from '../../app/shortcuts'
import { ClockTime, Code, Empty, Problem, useTitle } from '../../ui/basics'
import { NameInput, type NameKind } from '../../ui/names'
import { useValues } from '../../ui/suggest'
import { Icon } from '../../ui/icon'
import { localZone, plural } from '../../ui/time'
import { Detail } from './detail'
import { type Live, useLive } from './follow'
import { type Filters, filtersOf, operators, parametersOf, streamURL, summaryOf, takesValue } from './words'
import './live.css'

export default function LivePage() {
  const { query, path, route } = useView()
  const { project } = usePlace()
  const [paused, setPaused] = useState(false)
  const filters = filtersOf(query)
  const key = `live/${project}/${JSON.stringify(parametersOf(filters))}`
  const before = useData(key, (signal) => api.get('/api/projects/{project_id}/events', { path: { project_id: project }, query: { ...parametersOf(filters), limit: 50 }, signal }))
  const [asked, setAsked] = useState<{ key: string; list: Event[] }>({ key: '', list: [] })
  useEffect(() => { if (before.data && !before.loading) setAsked({ key, list: before.data.results }) }, [before.data, before.loading])
  const live = useLive(streamURL(project, filters), paused, asked.key === key ? asked.list : undefined)
  const set = (changes: Record<string, string>, replace = false) => route(path + queryOf({ ...query, ...changes }), replace)
  const isFiltered = Object.keys(parametersOf(filters)).length > 0
  useTitle('Live')
  useShortcut(' ', 'Pause or resume', () => setPaused(!paused))
  useShortcut('Escape', 'Close the event', () => { if (query.e) set({ e: '' }, true) })
  return (
    <>
      <div class="page-head">
        <div><h1>Live</h1><p>Events as they are stored, from every server.</p></div>
        <button type="button" class="button" aria-pressed={paused} onClick={() => setPaused(!paused)}><Icon name={paused ? 'play' : 'pause'} /> {paused ? 'Resume' : 'Pause'} <kbd>Space</kbd></button>
      </div>
      <FilterBar key={project} project={project} filters={filters} set={set} />
      {filters.person_id && <OfPerson project={project} id={filters.person_id} onRemove={() => set({ person_id: '' }, true)} />}
      <Status live={live} paused={paused} />
      {live.state === 'refused' && live.error && <Problem error={live.error} retry={() => location.reload()} />}
      {before.error && live.state !== 'refused' && <Problem error={before.error} retry={before.reload} />}
      <div class={`live ${query.e ? 'with-detail' : ''}`}>
        <List list={live.list} selected={query.e ?? ''} choose={(uuid) => set({ e: uuid }, Boolean(query.e))} />
        {query.e && <Detail key={query.e} project={project} uuid={query.e} known={live.list.find((e) => e.uuid === query.e)} earlier={before.data} onClose={() => { set({ e: '' }); document.getElementById(rowId(query.e ?? ''))?.focus({ preventScroll: true }) }} narrow={(changes) => set(changes)} />}
      </div>
      {live.list.length === 0 && asked.key === key && live.state !== 'refused' && (isFiltered
        ? <Empty title="No events match yet"><p>Events that match appear here when they are stored.{filters.event && ' The filter compares the whole name of the event.'} <button type="button" class="link" onClick={() => route(path)}>Show all events</button></p></Empty>
        : <Start project={project} />)}
    </>
  )
}

function Start({ project }: { project: string }) {
  const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
  return (
    <Empty title="Send an event and watch it arrive">
      <p>This page shows each event of the project within a second. Paste this into a terminal:</p>
      <Code label="Send an event" text={`curl -X POST ${location.origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "event": "signed up", "distinct_id": "ada", "properties": {"plan": "pro"}}'`} />
    </Empty>
  )
}

const stateWords = { connecting: 'Connecting', live: 'Live', lost: 'Reconnecting', refused: 'Stopped' } as const

// OfPerson is the filter of one person with all distinct ids.
function OfPerson({ project, id, onRemove }: { project: string; id: string; onRemove: () => void }) {
  const { to } = usePlace()
  const { data } = useData(`persons/${project}/one/${id}`, (signal) => api.get('/api/projects/{project_id}/persons/{id}', { path: { project_id: project, id }, signal }))
  return (
    <p class="live-person">
      <span>Events of <a href={to(`/persons/${id}`)}>{data?.name || id}</a>{data && `, ${plural(data.distinct_ids.length, 'distinct id')}`}</span>
      <button type="button" class="link" onClick={onRemove}>All persons</button>
    </p>
  )
}

// Status says whether the page is live, and what it does not show.
function Status({ live, paused }: { live: Live; paused: boolean }) {
  const { rate, slow, unread, costly } = live.skipped
  const state = live.state === 'live' && paused ? 'paused' : live.state
  return (
    <p class="live-status" role="status">
      <span class={`dot ${state}`} />
      <b>{paused && live.state === 'live' ? 'Paused' : stateWords[live.state]}</b>
      {paused && <span>{plural(live.waiting, 'new event')}</span>}
      {live.state === 'lost' && live.error && <span class="muted">{live.error.message}</span>}
      {rate + slow > 0 && <span class="muted">{plural(rate + slow, 'more event')} matched; the page shows a sample of at most 500 a second</span>}
      {unread > 0 && <span class="muted">{plural(unread, 'event')} of the project arrived too fast to be read here</span>}
      {costly > 0 && <span class="muted">{plural(costly, 'event')} took the filters too much work and may be missing; simpler filters help</span>}
      {live.gap && <span class="muted">events between two connections are missing</span>}
      <span class="faint small push">times in {localZone}</span>
    </p>
  )
}

// List shows the newest events. A row that has not changed keeps its node, so a batch costs
// only its own rows.
function List({ list, selected, choose }: { list: Event[]; selected: string; choose: (uuid: string) => void }) {
  const nodes = useRef(new WeakMap<Event, VNode>())
  const latest = useRef(choose)
  latest.current = choose
  const row = (e: Event) => {
    if (e.uuid === selected) return <Row key={e.uuid} event={e} selected choose={(uuid) => latest.current(uuid)} />
    let node = nodes.current.get(e)
    if (!node) {
      node = <Row key={e.uuid} event={e} selected={false} choose={(uuid) => latest.current(uuid)} />
      nodes.current.set(e, node)
    }
    return node
  }
  if (!list.length) return null
  return <ol class="list live-list" aria-label="Events, the newest first">{list.map(row)}</ol>
}

function rowId(uuid: string): string { return `event-${uuid}` }

function Row({ event: e, selected, choose }: { event: Event; selected: boolean; choose: (uuid: string) => void }) {
  return (
    <li>
      <button type="button" id={rowId(e.uuid)} class="live-row" aria-current={selected ? 'true' : undefined} onClick={() => choose(e.uuid)}>
        <ClockTime at={e.timestamp} />
        <span class="mono name">{e.event}</span>
        <span class="mono muted who-id">{e.distinct_id}</span>
        <span class="faint what">{summaryOf(e)}</span>
      </button>
    </li>
  )
}

function FilterBar({ project, filters, set }: { project: string; filters: Filters; set: (changes: Record<string, string>, replace?: boolean) => void }) {
  const [draft, setDraft] = useState(filters)
  const settled = useDebounced(draft, 400)
  const url = JSON.stringify(filters)
  const sent = useRef(url)
  useLayoutEffect(() => { if (sent.current !== url) { sent.current = url; setDraft(filters) } }, [url]) // by a link or Back
  useEffect(() => {
    const next = JSON.stringify(settled)
    if (settled !== draft || next === sent.current) return
    sent.current = next
    set({ ...settled, operator: settled.property ? settled.operator : '' }, true)
  }, [settled])
  const values = useValues({ of: 'events', key: draft.property, event: draft.event }, draft.property ? draft.value : null)
  const input = (name: keyof Filters, label: string, placeholder: string, list?: string) => (
    <input class="mono" type="search" aria-label={label} placeholder={placeholder} list={list} autocomplete="off" spellcheck={false} value={draft[name]} onInput={(e) => setDraft({ ...draft, [name]: e.currentTarget.value })} />
  )
  const named = (name: 'event' | 'property', kind: NameKind, label: string, placeholder: string) => (
    <NameInput project={project} kind={kind} class="mono" type="search" aria-label={label} placeholder={placeholder} value={draft[name]} onText={(text) => setDraft({ ...draft, [name]: text })} />
  )
  return (
    <div class="filters live-filters" role="search">
      {named('event', 'event', 'Name of the event', 'Any event (whole name)')}
      {input('distinct_id', 'Distinct id', 'Any distinct id')}
      {named('property', 'event property', 'Property', 'Any property')}
      {draft.property && <select aria-label="Comparison" value={draft.operator} onChange={(e) => setDraft({ ...draft, operator: e.currentTarget.value })}>{operators.map(([name, words]) => <option key={name} value={name}>{words}</option>)}</select>}
      {draft.property && takesValue(draft.operator) && input('value', 'Value', 'Value', 'live-values')}
      <datalist id="live-values">{values.map((v) => <option key={v} value={v} />)}</datalist>
    </div>
  )
}
