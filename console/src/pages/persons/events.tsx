// The events of a person, newest first. The server pages by cursor, so the URL has the
// cursor of the page, and the browser's Back leads to newer ones.
import { useEffect, useState } from 'preact/hooks'
import { api, queryOf } from '../../api/client'
import type { Event, Person } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { usePlace, useView } from '../../app/place'
import { Code, Empty, Problem, Skeleton, Time } from '../../ui/basics'
import { projects } from '../../app/session'
import { Icon } from '../../ui/icon'
import { Journey } from '../../ui/journey'
import { NameInput } from '../../ui/names'
import { Steps } from '../../ui/paging'
import { Properties } from './properties'

const size = 50

export function Events({ project, person }: { project: string; person: Person }) {
  const { query, path, route } = useView()
  const [text, setText] = useState(query.event ?? '')
  const name = useDebounced(text.trim(), 350)
  const set = (changes: Record<string, string>, replace: boolean) => route(path + queryOf({ ...query, cursor: '', ...changes }), replace)
  useEffect(() => { if (name !== (query.event ?? '')) set({ event: name }, true) }, [name])
  const ask = { person_id: person.uuid, event: query.event, cursor: query.cursor, limit: size }
  const { data, error, loading, reload } = useData(`events/${project}/of${queryOf(ask)}`, (signal) => api.get('/api/projects/{project_id}/events', { path: { project_id: project }, query: ask, signal }))
  const next = data?.next ? new URL(data.next, location.origin).searchParams.get('cursor') : null
  const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
  return (
    <>
      <div class="filters" role="search">
        <div class="search"><Icon name="search" /><NameInput project={project} kind="event" type="search" aria-label="Name of the event" placeholder="Only events of this name" value={text} onText={setText} /></div>
        <button type="button" class="button" onClick={reload}>Refresh</button>
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <div class="list"><Skeleton rows={6} /></div>}
      {data?.results.length === 0 && (query.event || query.cursor
        ? <Empty title="No events match"><p><button type="button" class="link" onClick={() => { setText(''); set({ event: '' }, true) }}>Show all events</button></p></Empty>
        : <Empty title="No event of this person is stored"><p>Events appear here a moment after they are sent, until retention removes them.</p><Code label="Send an event" text={`curl -X POST ${location.origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify({ api_key: token, event: 'seen', distinct_id: person.distinct_ids[0] ?? 'ada' }).replaceAll("'", "'\\''")}'`} /></Empty>)}
      {data && data.results.length > 0 && <div class={`list ${loading ? 'stale' : ''}`}>{data.results.map((e) => <Row key={e.uuid} project={project} event={e} answer={data} />)}</div>}
      {(next ?? query.cursor) && <Steps words={['Newest', 'Older']} back={query.cursor ? () => set({}, false) : undefined} on={next ? () => set({ cursor: next }, false) : undefined} />}
    </>
  )
}

function Row({ project, event: e, answer }: { project: string; event: Event; answer: object }) {
  const { to } = usePlace()
  const [open, setOpen] = useState(false)
  const url = (e.properties as Record<string, unknown>).$current_url
  return (
    <details class="event-row" onToggle={(t) => setOpen(t.currentTarget.open)}>
      <summary><Icon name="right" /><span class="mono name">{e.event}</span><span class="muted where">{typeof url === 'string' ? url : ''}</span><span class="muted small"><Time at={e.timestamp} /></span></summary>
      {open && (
        <div class="event-body">
          <Journey project={project} uuid={e.uuid} />
          <Properties values={e.properties as Record<string, unknown>} answer={answer} what="event" />
          <p class="hint">Sent as <code>{e.distinct_id}</code>, received <Time at={e.received_at} />, id <code>{e.uuid}</code>. <a href={`${to('/why')}${queryOf({ id: e.distinct_id })}`}>Flags of this distinct id</a></p>
        </div>
      )}
    </details>
  )
}
