// One event beside the list.
import { useEffect, useRef } from 'preact/hooks'
import { api, queryOf } from '../../api/client'
import { wasRounded } from '../../api/json'
import type { Event } from '../../api/types'
import { useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { CopyButton, Problem, Skeleton, Time } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { Journey } from '../../ui/journey'

const sheet = matchMedia('(max-width: 980px)') // as in live.css: it covers the end of the window

// Detail shows an event. earlier is the answer that the first events of the list came in.
export function Detail({ project, uuid, known, earlier, onClose, narrow }: { project: string; uuid: string; known: Event | undefined; earlier: { results: Event[] } | undefined; onClose: () => void; narrow: (changes: Record<string, string>) => void }) {
  const { to } = usePlace()
  const { data, error, reload } = useData(known ? '' : `live/${project}/event/${uuid}`, (signal) => api.get('/api/projects/{project_id}/events/{uuid}', { path: { project_id: project, uuid }, signal }))
  const box = useRef<HTMLElement>(null)
  useEffect(() => { if (sheet.matches) box.current?.focus({ preventScroll: true }) }, [])
  const e = known ?? (data?.uuid === uuid ? data : undefined)
  if (!e) return <aside ref={box} tabIndex={-1} class="card detail" aria-label="Event"><header><h2>Event</h2><Close onClose={onClose} /></header>{error ? <Problem error={error} retry={reload} /> : <Skeleton rows={3} />}</aside>
  const rounded = wasRounded(e) || (earlier !== undefined && wasRounded(earlier) && earlier.results.some((one) => one.uuid === uuid))
  const properties = Object.entries(e.properties as Record<string, unknown>)
  return (
    <aside ref={box} tabIndex={-1} class="card detail" aria-label="Event">
      <header><h2 class="mono">{e.event}</h2><Close onClose={onClose} /></header>
      <p class="muted small">Happened <Time at={e.timestamp} />, received <Time at={e.received_at} /></p>
      <p class="links">
        {e.person_id && <a class="button small" href={to(`/persons/${e.person_id}`)}><Icon name="users" /> Person</a>}
        <a class="button small" href={to('/why') + queryOf({ id: e.distinct_id })}><Icon name="why" /> Why</a>
        <button type="button" class="button small" onClick={() => narrow({ event: e.event })}>Only this name</button>
        <button type="button" class="button small" onClick={() => narrow({ distinct_id: e.distinct_id })}>Only this distinct id</button>
        {e.person_id && <button type="button" class="button small" onClick={() => narrow({ distinct_id: '', person_id: e.person_id ?? '' })}>Only this person</button>}
      </p>
      <h3>Where it is</h3>
      <Journey project={project} uuid={uuid} />
      <h3>Properties</h3>
      <dl class="facts">
        <div><dt>distinct id</dt><dd class="mono">{e.distinct_id}</dd></div>
        <div><dt>uuid</dt><dd class="mono">{e.uuid}</dd></div>
        {properties.map(([name, value]) => <div key={name}><dt class="mono">{name}</dt><dd class="mono">{typeof value === 'string' ? value : JSON.stringify(value)}</dd></div>)}
      </dl>
      {rounded && <p class="hint">A number here has more digits than a browser can hold; it is shown and copied rounded.</p>}
      <CopyButton label="Copy as JSON" text={JSON.stringify(e, null, 2)} />
    </aside>
  )
}

function Close({ onClose }: { onClose: () => void }) {
  return <button type="button" class="icon-button" aria-label="Close the event" onClick={onClose}><Icon name="close" /></button>
}
