// Where an event is: accepted, stored, the actions that it matches, and each sink, or why not.
import type { ComponentChildren } from 'preact'
import { api } from '../api/client'
import { useData, useRepeat } from '../app/load'
import { usePlace } from '../app/place'
import { Problem, Time } from './basics'
import { Icon } from './icon'
import { plural } from './time'
import './journey.css'

type Tone = 'ok' | 'warn' | 'bad' | 'none'
const tones = { done: 'ok', skipped: 'none', waiting: 'warn', dead_letter: 'bad' } as const
const marks = { ok: 'check', warn: 'clock', bad: 'alert', none: 'right' } as const
const skipped = {
  event: 'its filter leaves out this event name', project: 'its filter leaves out this project', property: 'its filters of properties leave it out',
  sample: 'it is not in its sample', no_events: 'it has not been sent any event yet',
} as const
const notStored = { waiting: 'Waits to be stored', dropped: 'Dropped, not stored', dead_letter: 'A dead letter, not stored', forgotten: 'Not stored', stored: 'Stored' } as const

// of is the id of the dead letter whose page shows it.
export function Journey({ project, uuid, of }: { project: string; uuid: string; of?: number }) {
  const { to } = usePlace()
  const { data: t, error, loading, reload } = useData(`events/${project}/trace/${uuid}`, (signal) => api.get('/api/projects/{project_id}/events/{uuid}/trace', { path: { project_id: project, uuid }, signal }))
  const shown = t?.uuid === uuid ? t : undefined
  const waiting = shown && (shown.state === 'waiting' || shown.sinks.some((s) => s.state === 'waiting'))
  useRepeat(Boolean(waiting), 2000, { loading, reload })
  if (error && !shown) return <Problem error={error} retry={reload} />
  if (!shown) return <ul class="journey" aria-label="Where it is"><Step tone="none">Looking where it is…</Step></ul>
  return (
    <ul class="journey" aria-label="Where it is">
      {shown.accepted
        ? <Step tone="ok">Accepted <Time at={shown.accepted.at} /> <span class="faint small">record {shown.accepted.journal_seq}{shown.accepted.partition !== undefined && ` of partition ${shown.accepted.partition}`}</span></Step>
        : <Step tone="ok">Accepted; its journal record has been removed</Step>}
      <Step tone={shown.stored ? 'ok' : shown.state === 'waiting' ? 'warn' : 'bad'}>
        {shown.stored ? 'Stored' : notStored[shown.state]}{shown.worker?.error && <span class="muted">: {shown.worker.error}</span>}
      </Step>
      {shown.notices.map((n, i) => <Step key={i} tone={n.dropped ? 'bad' : 'warn'}>{n.dropped ? 'Dropped' : 'Changed'}: {n.type.replaceAll('_', ' ')}</Step>)}
      {shown.actions?.map((a) => <Step key={a.id} tone="ok">Matches the action <a href={to(`/actions/${a.id}`)}>{a.name}</a></Step>)}
      {shown.stored && shown.actions?.length === 0 && <Step tone="none">Matches no action</Step>}
      {shown.sinks.map((s) => (
        <Step key={s.name} tone={tones[s.state]}>
          {s.state === 'done' ? 'Delivered to' : s.state === 'waiting' ? 'Waits for' : s.state === 'skipped' ? 'Not sent to' : 'Not delivered to'} <b>{s.name}</b>
          {s.reason && <span class="muted">: {skipped[s.reason]}</span>}
          {s.state === 'waiting' && s.records_before > 0 && <span class="muted">, after {plural(s.records_before, 'request')}</span>}
          {s.error && <span class="muted">: {s.error}</span>}
        </Step>
      ))}
      {shown.sinks.length === 0 && <Step tone="none">No sink is configured</Step>}
      {shown.dead_letters.map((d) => <Step key={d.id} tone="bad">{d.id === of ? <>This dead letter, of {d.source}</> : <a href={to(`/dead-letters/${d.id}`)}>Dead letter of {d.source}</a>}: {d.message}</Step>)}
    </ul>
  )
}

function Step({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <li class={`journey-${tone}`}><Icon name={marks[tone]} /><span>{children}</span></li>
}
