// Dead letters: events that the worker or a sink could not take. The filter is in the URL.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { api, queryOf } from '../../api/client'
import type { DeadLetter } from '../../api/types'
import { forget, useData, useDebounced } from '../../app/load'
import { usePlace, useView } from '../../app/place'
import { useShortcut } from '../../app/shortcuts'
import { Code, Empty, Problem, Skeleton, Tag, Time, useTitle } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { pageSize, Pager, useRowKeys } from '../../ui/paging'
import { plural } from '../../ui/time'
import { Bulk, type Work } from './bulk'
import { filterOf, isEmpty, replayState, sourceWords, times } from './words'
import './deadletters.css'

export default function List() {
  const { query, path, route } = useView()
  const { project, to } = usePlace()
  const [chosen, setChosen] = useState<Set<number>>(new Set())
  const [work, setWork] = useState<Work | null>(null)
  const [minute, setMinute] = useState(() => Date.now())
  const box = useRef<HTMLInputElement>(null)
  const rows = useRef<HTMLDivElement>(null)
  const page = Math.max(1, Number(query.page) || 1)
  const filter = filterOf(query, minute)
  useTitle('Dead letters')
  useShortcut('/', 'Search', () => box.current?.focus())
  useRowKeys(rows, 'dead letter')
  const set = (changes: Record<string, string>) => { setChosen(new Set()); route(path + queryOf({ ...query, page: '', ...changes }), true) }
  const ask = { ...filter, limit: pageSize, offset: (page - 1) * pageSize }
  const { data, error, loading, reload } = useData(`dead/${project}/list${queryOf(ask)}`, (signal) => api.get('/api/projects/{project_id}/dead_letters', { path: { project_id: project }, query: ask as Omit<typeof ask, 'ids'>, signal }))
  const sources = useData(`dead/${project}/sources`, (signal) => api.post('/api/projects/{project_id}/dead_letters/replay', { path: { project_id: project }, body: { dry_run: true }, signal }))
  const letters = data?.results ?? []
  const all = isEmpty(filter)
  const refresh = () => { forget(`dead/${project}`); setMinute(Date.now()); reload(); sources.reload() }
  const start = (kind: Work['kind']) => setWork({ kind, filter: chosen.size ? { ids: [...chosen] } : filter })
  const pick = (id: number, on: boolean) => { const next = new Set(chosen); if (on) next.add(id); else next.delete(id); setChosen(next) }
  const words = chosen.size ? `${chosen.size} chosen` : data && data.count > 0 ? `${data.count.toLocaleString('en')} ${all ? 'in all' : data.count === 1 ? 'that matches' : 'that match'}` : ''
  return (
    <>
      <div class="page-head">
        <div><h1>Dead letters</h1><p>{data ? plural(data.count, all ? 'event that could not be processed or delivered' : 'dead letter matches', all ? 'events that could not be processed or delivered' : 'dead letters match') : 'Events that could not be processed or delivered.'}</p></div>
        <button type="button" class="button" onClick={refresh}>Refresh</button>
      </div>
      <Filters key={path} query={query} sources={Object.keys(sources.data?.sources ?? {})} box={box} set={set} />
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <div class="list"><Skeleton rows={8} /></div>}
      {data && letters.length === 0 && !error && (all && page === 1 ? <None /> : <Empty title="No dead letters match"><p><button type="button" class="link" onClick={() => { setChosen(new Set()); route(path, true) }}>Clear the filter</button></p></Empty>)}
      {letters.length > 0 && (
        <>
          <div class="bulk-bar">
            <label class="check"><input type="checkbox" aria-label="Choose all on this page" checked={letters.every((d) => chosen.has(d.id))} onChange={(e) => setChosen(e.currentTarget.checked ? new Set(letters.map((d) => d.id)) : new Set())} /> <span class="muted">{words}</span></label>
            <span class="push" />
            <button type="button" class="button" onClick={() => start('replay')}>Replay {chosen.size ? 'chosen' : 'all'}…</button>
            <button type="button" class="button danger-quiet" onClick={() => start('delete')}>Delete {chosen.size ? 'chosen' : 'all'}…</button>
          </div>
          <div class={`list ${loading ? 'stale' : ''}`} ref={rows} role="list">{letters.map((d) => <Row key={d.id} letter={d} href={to(`/dead-letters/${d.id}`)} chosen={chosen.has(d.id)} onChoose={(on) => pick(d.id, on)} />)}</div>
        </>
      )}
      {data && <Pager page={page} count={data.count} go={(n) => set({ page: n === 1 ? '' : String(n) })} />}
      {work && <Bulk project={project} work={work} onClose={(changed) => { setWork(null); if (changed) { setChosen(new Set()); refresh() } }} />}
    </>
  )
}

function Filters({ query, sources, box, set }: { query: Record<string, string>; sources: string[]; box: { current: HTMLInputElement | null }; set: (changes: Record<string, string>) => void }) {
  const text = useText('search', query, set)
  const event = useText('event', query, set)
  const code = useText('code', query, set)
  const offered = [...new Set([...sources, ...(query.source ? [query.source] : [])])].sort()
  return (
    <div class="filters" role="search">
      <div class="search"><Icon name="search" /><input ref={box} type="search" aria-label="Search dead letters" placeholder="Search in events and errors" {...text} /></div>
      <select aria-label="Where it failed" value={query.source ?? ''} onChange={(e) => set({ source: e.currentTarget.value })}>
        <option value="">Anywhere</option>{offered.map((s) => <option key={s} value={s}>{sourceWords(s)}</option>)}
      </select>
      <select aria-label="Failed" value={query.time ?? ''} onChange={(e) => set({ time: e.currentTarget.value })}>
        <option value="">Any time</option>{Object.entries(times).map(([name, t]) => <option key={name} value={name}>{t.words}</option>)}
      </select>
      <input class="narrow-input" type="search" aria-label="Event" placeholder="Event" {...event} />
      <input class="narrow-input mono" type="search" aria-label="Reason" placeholder="Reason (code)" {...code} />
    </div>
  )
}

// useText keeps a field of the filter in the URL once the typing pauses.
function useText(name: string, query: Record<string, string>, set: (changes: Record<string, string>) => void) {
  const inURL = query[name] ?? ''
  const [text, setText] = useState(inURL)
  const settled = useDebounced(text.trim(), 300)
  useEffect(() => { if (settled !== inURL) set({ [name]: settled }) }, [settled])
  useLayoutEffect(() => { if (inURL !== text.trim() && settled === text.trim()) setText(inURL) }, [inURL])
  return { value: text, autocomplete: 'off', spellcheck: false, onInput: (e: { currentTarget: HTMLInputElement }) => setText(e.currentTarget.value) }
}

function Row({ letter: d, href, chosen, onChoose }: { letter: DeadLetter; href: string; chosen: boolean; onChoose: (on: boolean) => void }) {
  const state = replayState(d)
  return (
    <div class="letter-row" role="listitem">
      <input type="checkbox" aria-label={`Choose ${d.event} ${d.id}`} checked={chosen} onChange={(e) => onChoose(e.currentTarget.checked)} />
      <div class="name"><a class="mono" href={href}>{d.event || 'no event'}</a><p>{d.distinct_id}</p></div>
      <div class="why" title={d.message}><span class="mono">{d.code}</span> {d.message}</div>
      <div class="source"><Tag>{sourceWords(d.source)}</Tag>{state === 'waiting' && <Tag tone="accent">replaying</Tag>}{state === 'failed' && <Tag tone="bad">replay failed</Tag>}</div>
      <div class="seen"><Time at={d.failed_at} />{d.attempts > 1 && `, ${d.attempts} times`}</div>
    </div>
  )
}

function None() {
  return (
    <Empty title="There are no dead letters">
      <p>A dead letter is an event that was accepted and then failed for good: the worker could not process it, or a sink refused it. It waits here with its error, to be corrected and replayed, until retention removes it. The events after it are not held up.</p>
      <Code label="The same from a terminal" text={'guidon deadletter list\nguidon deadletter replay --all --dry-run'} />
    </Empty>
  )
}
