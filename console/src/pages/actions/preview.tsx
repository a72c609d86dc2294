// Which of the newest events match what is being edited, and why the others do not.
import { useRef, useState } from 'preact/hooks'
import { api, type ApiError } from '../../api/client'
import type { ActionPreview, ExplainedField, PreviewedEvent } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { projects } from '../../app/session'
import { Code, Empty, Problem, Time } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { operatorOf, valueText } from '../flags/words'
import { complete, writeOf, type Draft } from './draft'
import { matchingWords, previewWords } from './words'

export interface Previewed { data: ActionPreview | undefined; error: ApiError | undefined; loading: boolean; reload: () => void; waiting: boolean; only: string; setOnly: (event: string) => void }

const looked = 100 // events

// usePreview matches the draft with the newest events, a moment after it has changed.
export function usePreview(project: string, draft: Draft): Previewed {
  const [only, setOnly] = useState('')
  const settled = useDebounced(draft.steps, 250)
  const names = new Set(settled.map((s) => s.event))
  const event = names.has(only) ? only : ''
  const steps = settled.map(writeOf)
  const ready = complete({ ...draft, steps: settled })
  const answer = useData(ready ? `action-preview/${project}/${event}/${JSON.stringify(steps)}` : '', (signal) => api.post('/api/projects/{project_id}/actions/preview', { path: { project_id: project }, body: { steps, limit: looked, event: event || null }, signal }))
  const last = useRef(answer.data) // stays while there is no newer one, so that nothing jumps
  if (answer.data) last.current = answer.data
  return { ...answer, data: last.current, error: ready ? answer.error : undefined, waiting: !ready, only: event, setOnly }
}

export function Preview({ project, draft, preview }: { project: string; draft: Draft; preview: Previewed }) {
  const [shown, setShown] = useState<'all' | 'match' | 'not'>('all')
  const { data, error, waiting, only, setOnly } = preview
  const events = [...new Set(draft.steps.map((s) => s.event).filter(Boolean))]
  if (error && !error.attr) return <Problem error={error} retry={preview.reload} />
  if (data && data.checked === 0 && !only) return <NoEvents project={project} event={events[0] ?? 'signed up'} />
  const listed = (e: PreviewedEvent) => (shown === 'all' ? true : shown === 'match' ? e.matches === true : e.matches !== true)
  const results = (data?.results ?? []).filter(listed)
  const words = waiting ? 'Fill in the conditions to see which events match.' : error ? 'Correct the condition to see which events match.' : !data ? ' ' : previewWords(data, only)
  return (
    <section class="preview" aria-label="Recent events">
      <header>
        <div>
          <h2>Recent events</h2>
          <p class="muted" aria-live="polite">{words}</p>
        </div>
        {events.length > 0 && (
          <select aria-label="Which events to look at" value={only} onChange={(e) => setOnly(e.currentTarget.value)}>
            <option value="">All events</option>{events.map((e) => <option key={e} value={e}>Only {e}</option>)}
          </select>
        )}
        <div class="segments" role="group" aria-label="Show">
          {([['all', 'All'], ['match', 'Match'], ['not', 'No match']] as const).map(([id, label]) => <button key={id} type="button" aria-pressed={shown === id} onClick={() => setShown(id)}>{label}</button>)}
        </div>
      </header>
      <div class={`card previewed ${waiting || error ? 'stale' : ''}`}>
        {results.map((e) => <Event key={e.event.uuid} result={e} alternatives={draft.steps.length} />)}
        {data && results.length === 0 && <p class="none muted">{shown === 'match' ? 'None of them matches. Look under “No match” for the reasons.' : data.checked ? 'All of them match.' : 'No such event has been seen yet.'}</p>}
      </div>
    </section>
  )
}

function Event({ result: r, alternatives }: { result: PreviewedEvent; alternatives: number }) {
  return (
    <details>
      <summary>
        <Mark matches={r.matches} />
        <span class="event-name">{r.event.event}</span>
        <span class="muted mono id">{r.event.distinct_id}</span>
        <span class="muted url">{r.event.url}</span>
        <span class="muted small when"><Time at={r.event.timestamp} /></span>
      </summary>
      <div class="reasons">
        {r.steps.map((s, i) => (
          <div key={i}>
            {alternatives > 1 && <p class="small"><Mark matches={s.matches} /> <b>Alternative {i + 1}</b></p>}
            <ul>
              {s.fields.map((f) => <Field key={f.attr} field={f} />)}
              {s.fields.length === 0 && <li>It has no condition: every event matches.</li>}
            </ul>
          </div>
        ))}
        {r.steps.length === 0 && <p>There is no alternative that it could match.</p>}
      </div>
    </details>
  )
}

function Mark({ matches }: { matches: boolean | null | undefined }) {
  const words = matches === null || matches === undefined ? 'not known' : matches ? 'matches' : 'does not match'
  return <span class={`mark-${matches === null || matches === undefined ? 'unknown' : matches}`} title={words}><Icon name={matches === null || matches === undefined ? 'clock' : matches ? 'check' : 'close'} /><span class="visually-hidden">{words}: </span></span>
}

const fieldWords: Record<string, string> = { event: 'Name', url: 'URL', element: 'Element', text: 'Text', href: 'Link', tag_name: 'Tag', selector: 'Selector', properties: 'Property' }

function Field({ field: f }: { field: ExplainedField }) {
  const words = f.matching && f.matching in matchingWords ? matchingWords[f.matching as keyof typeof matchingWords] : f.matching ? operatorOf(f.matching).words : 'is'
  return (
    <li>
      <Mark matches={f.matches} /> {f.key ? <b class="mono">{f.key}</b> : <b>{fieldWords[f.field] ?? f.field}</b>} {f.field !== 'element' && words} {f.expected !== undefined && <span class="mono">{valueText(f.expected)}</span>}
      {f.matches !== true && (
        <span class="muted">
          {': '}{f.reason}{f.hidden ? ' Its value is hidden: you may not read persons.' : f.seen !== undefined ? <> It has <span class="mono">{valueText(f.seen)}</span>.</> : ''}
        </span>
      )}
    </li>
  )
}

function NoEvents({ project, event }: { project: string; event: string }) {
  const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
  return (
    <Empty title="No event has been seen yet">
      <p>With events you see here at once which of them match. Send the first one:</p>
      <Code label="Send an event" text={`curl -X POST ${location.origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify({ api_key: token, event, distinct_id: 'ada' }).replaceAll('\'', '\'\\\'\'')}'`} />
    </Empty>
  )
}
