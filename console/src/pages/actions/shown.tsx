// The message of a destination, as its service shows it.
import { api } from '../../api/client'
import type { Action, ChatDestination } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { renderedOf, serviceOf, type Part, type Rendered } from './rendered'

// Shown asks the notifier of the destination for the message that it would send. format is the
// text of the destination, once the server has found no error in it.
export function Shown({ project, action, name, format, destination: d }: { project: string; action: Action; name: string; format: string | undefined; destination: ChatDestination }) {
  const ask = useDebounced(JSON.stringify({ chat_message_format: format, name, id: action.id, notifier: d.notifier, to: d.to ?? '' }), 250)
  const { data, error } = useData(d.notifier && format !== undefined ? `rendered/${project}/${ask}` : '', (signal) => api.post('/api/projects/{project_id}/actions/preview_message', { path: { project_id: project }, body: JSON.parse(ask) as object, signal }))
  const r = data?.rendered
  if (!d.notifier || error) return null
  return (
    <div class="shown" role="group" aria-label={`The message of ${d.notifier}`}>
      <span class="label">{r?.plugin ? `In ${serviceOf(r.plugin)}` : 'As it is sent'}</span>
      {!r ? <div class="message card">{' '}</div> : r.error ? <p class="muted">No preview: {r.error}</p> : <Message rendered={renderedOf(r)} plugin={r.plugin} />}
      {r?.warnings.map((w) => <p key={w} class="hint">{w}</p>)}
    </div>
  )
}

function Message({ rendered: r, plugin }: { rendered: Rendered; plugin: string }) {
  switch (r.kind) {
    case 'mail': return <div class="message card mail"><p><span class="faint">Subject</span> <b>{r.subject}</b></p><p>{r.text}</p></div>
    case 'code': return <pre class="message card sent-json" tabIndex={0}>{r.text}</pre>
  }
  return (
    <div class={`message card as-${plugin}`}>
      <p class="sender"><b>{r.from ?? 'Guidon'}</b>{r.channel && <span class="faint mono">{r.channel}</span>}</p>
      <p>{r.parts.map((p, i) => <Text key={i} part={p} />)}</p>
    </div>
  )
}

// Links cannot be followed: they lead to what is being edited.
function Text({ part: p }: { part: Part }) {
  if (p.href) return <span class="message-link" title={p.href}>{p.text}</span>
  return p.bold ? <b>{p.text}</b> : p.code ? <code>{p.text}</code> : <span>{p.text}</span>
}
