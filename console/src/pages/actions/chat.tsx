// What is posted to chat for each event that matches, and where.
import { useEffect, useRef, useState } from 'preact/hooks'
import { api } from '../../api/client'
import type { Action, ChatDestination, MessagePreview } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { pathOf } from '../../pages'
import { here } from '../../app/late'
import { Code, Field, Switch, Tag } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { columnOf, type Draft } from './draft'
import { Shown } from './shown'

const tokens = ['[action.name]', '[person]', '[event]', '[event.properties.NAME]', '[person.properties.NAME]', '[event.timestamp]']
const config = 'plugins:\n  instances:\n    - name: team\n      kind: notifier\n      use: slack   # or discord, msteams, email, webhook\n      config:\n        url: ${env:SLACK_WEBHOOK_URL}'

interface Props { project: string; action: Action; draft: Draft; problems: Record<string, string>; changed: boolean; onChange: (d: Draft) => void }

export function Chat({ project, action, draft, problems, changed, onChange }: Props) {
  const { data: notifiers } = useData(`notifiers/${project}`, (signal) => api.get('/api/projects/{project_id}/actions/notifiers', { path: { project_id: project }, signal }))
  const set = (changes: Partial<Draft>) => onChange({ ...draft, ...changes })
  const known = notifiers?.results ?? []
  const standard = known.filter((n) => n.default).map((n) => n.name)
  const change = (i: number, d: ChatDestination) => set({ destinations: draft.destinations.map((old, at) => (at === i ? d : old)) })
  const [valid, setValid] = useState<Record<string, string>>({}) // the last texts without an error, by the id of their field
  const accept = (id: string) => (format: string) => setValid((all) => (all[id] === format ? all : { ...all, [id]: format }))
  const targets: ChatDestination[] = draft.destinations.length ? draft.destinations : standard.map((notifier) => ({ notifier, to: '', format: '' }))
  return (
    <div class="chat">
      <label class="row"><Switch on={draft.post} label="Post to chat" onToggle={() => set({ post: !draft.post })} /> Post a message for each event that matches</label>
      <section class="stack">
        <h2>Message</h2>
        <Format project={project} id="format" label="Text" action={action} name={draft.name} value={draft.format} problem={problems.chat_message_format} onValid={accept('format')} onChange={(format) => set({ format })} />
      </section>
      <section class="stack">
        <h2>Destinations</h2>
        {notifiers && known.length === 0 && (
          <div class="notice stack">
            <p>The server has no notifier yet: Slack, Discord, Microsoft Teams, e-mail or a webhook. An operator <a href={pathOf(project, '/plugins-new')}>enables one</a>, or adds it to the config file:</p>
            <Code label="guidon.yaml" text={config} />
          </div>
        )}
        {draft.destinations.length === 0 && known.length > 0 && <p class="muted">{standard.length ? `None is named, so it goes where the server posts by default: ${standard.join(', ')}.` : 'None is named.'}</p>}
        {draft.destinations.length === 0 && known.length > 0 && targets.map((d) => <div key={d.notifier} class="destination card"><b>{d.notifier}</b><Shown project={project} action={action} name={draft.name} format={valid.format} destination={d} /></div>)}
        {draft.destinations.map((d, i) => (
          <div key={i} class="destination card">
            <div class="destination-row">
              <select aria-label="Notifier" value={d.notifier} aria-invalid={Boolean(problems[`chat_destinations__${i}__notifier`])} onChange={(e) => change(i, { ...d, notifier: e.currentTarget.value })}>
                {!known.some((n) => n.name === d.notifier) && <option value={d.notifier}>{d.notifier || 'Choose a notifier'}</option>}
                {known.map((n) => <option key={n.name} value={n.name}>{n.name}{n.available ? '' : ' (does not run)'}</option>)}
              </select>
              <input aria-label="Channel or address" placeholder="its usual channel or address" value={d.to ?? ''} onInput={(e) => change(i, { ...d, to: e.currentTarget.value })} />
              <button type="button" class="icon-button" aria-label="Remove the destination" onClick={() => set({ destinations: draft.destinations.filter((_, at) => at !== i) })}><Icon name="close" /></button>
            </div>
            {['notifier', 'to'].map((f) => problems[`chat_destinations__${i}__${f}`] && <p key={f} class="field-error" role="alert">{problems[`chat_destinations__${i}__${f}`]}</p>)}
            {d.format
              ? <Format project={project} id={`format-${i}`} label="Text for this destination" plain action={action} name={draft.name} value={d.format} problem={problems[`chat_destinations__${i}__format`]} onValid={accept(`format-${i}`)} onChange={(format) => change(i, { ...d, format })} />
              : <button type="button" class="link small" onClick={() => change(i, { ...d, format: draft.format || '[action.name] was triggered by [person]' })}>Give it a text of its own</button>}
            <Shown project={project} action={action} name={draft.name} format={valid[d.format ? `format-${i}` : 'format']} destination={d} />
          </div>
        ))}
        {known.length > 0 && <div><button type="button" class="button" onClick={() => set({ destinations: [...draft.destinations, { notifier: known[0]?.name ?? '', to: '', format: '' }] })}><Icon name="plus" /> Add a destination</button></div>}
      </section>
      {targets.length > 0 && <Test project={project} action={action} changed={changed} />}
    </div>
  )
}

// Format edits a text with tokens, beside what it becomes unless it is plain. A token that the server does not
// know is shown with its place.
function Format({ project, id, label, plain, action, name, value, problem, onValid, onChange }: { project: string; id: string; label: string; plain?: boolean; action: Action; name: string; value: string; problem: string | undefined; onValid: (format: string) => void; onChange: (format: string) => void }) {
  const box = useRef<HTMLTextAreaElement>(null)
  const settled = useDebounced(value, 250)
  const { data, error, loading } = useData(`message/${project}/${action.id}/${name}/${settled}`, async (signal) => ({
    ...await api.post('/api/projects/{project_id}/actions/preview_message', { path: { project_id: project }, body: { chat_message_format: settled, name, id: action.id }, signal }), format: settled,
  }))
  useEffect(() => { if (data?.format === settled && !error) onValid(settled) }, [data, error, settled])
  const wrong = problem ?? (error && !loading && settled === value ? error.message : undefined)
  const column = wrong ? columnOf(wrong) : -1
  const insert = (token: string) => {
    const at = box.current?.selectionStart ?? value.length
    onChange(value.slice(0, at) + token + value.slice(box.current?.selectionEnd ?? at))
    box.current?.focus()
  }
  const show = () => { box.current?.focus(); box.current?.setSelectionRange(column, value.length) }
  return (
    <div class={plain ? '' : 'format'}>
      <Field id={id} label={label}>
        <textarea ref={box} id={id} class="mono" rows={3} maxLength={1200} value={value} placeholder="[action.name] was triggered by [person]" aria-invalid={Boolean(wrong)} aria-describedby={wrong ? `${id}-wrong` : undefined} onInput={(e) => onChange(e.currentTarget.value)} />
        <div class="row tokens">{tokens.map((t) => <button key={t} type="button" class="button quiet small mono" onClick={() => insert(t)}>{t}</button>)}</div>
        {wrong && <p class="field-error" role="alert" id={`${id}-wrong`}>{wrong} {column >= 0 && <button type="button" class="link" onClick={show}>Show it</button>}</p>}
      </Field>
      {!plain && <div class="field" aria-live="polite"><span class="label">Looks like</span><div class={`message card ${wrong ? 'stale' : ''}`}>{data ? <Message message={data} /> : ' '}</div></div>}
    </div>
  )
}

// Message shows the parts of a message. Links are shown and cannot be followed: they lead to
// what is being edited.
function Message({ message }: { message: MessagePreview }) {
  return <p>{message.segments.map((s, i) => (s.href ? <span key={i} class="message-link" title={s.href}>{s.value}</span> : <span key={i}>{s.value}</span>))}</p>
}

interface Result { notifier: string; destination: string; outcome: string; text: string; error_code: string; error: string }

function Test({ project, action, changed }: { project: string; action: Action; changed: boolean }) {
  const [results, setResults] = useState<Result[] | null>(null)
  const [busy, setBusy] = useState(false)
  const send = async () => {
    setBusy(true)
    setResults(null)
    const page = here()
    try {
      setResults((await api.post('/api/projects/{project_id}/actions/{id}/test_notification', { path: { project_id: project, id: action.id }, body: {} })).results)
    } catch (e) { page.sayError(e) } finally { setBusy(false) }
  }
  return (
    <section class="stack" aria-label="Test">
      <h2>Test</h2>
      <div class="row">
        <button type="button" class="button" disabled={busy || changed} onClick={() => { void send() }}>{busy ? 'Sending…' : 'Send a test message'}</button>
        <span class="muted small">{changed ? 'Save the changes first: the test sends what is stored.' : 'About the newest event that matches, to each destination, at once.'}</span>
      </div>
      <div class="stack" aria-live="polite">
        {(results ?? []).map((r, i) => (
          <div key={i} class="card sent">
            <div class="row"><Tag tone={r.outcome === 'delivered' || r.outcome === 'duplicate' ? 'ok' : 'bad'}>{r.outcome === 'delivered' ? 'Delivered' : r.outcome === 'duplicate' ? 'Delivered before' : 'Not delivered'}</Tag><b>{r.notifier}</b>{r.destination && <span class="muted mono">{r.destination}</span>}</div>
            <p>{r.text}</p>
            {r.error && <p class="field-error">{r.error}{r.error_code && <span class="mono"> ({r.error_code})</span>}</p>}
          </div>
        ))}
      </div>
    </section>
  )
}
