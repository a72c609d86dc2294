// Deleting a person, typed, with the outcome that the server gives.
import { useState } from 'preact/hooks'
import { api, ApiError } from '../../api/client'
import type { Person } from '../../api/types'
import { here, type Here } from '../../app/late'
import { Dialog } from '../../ui/dialog'
import { typedName } from './words'

// outcome: refused is why the server did not delete; pending is a deletion that it has
// recorded and carries out later.
type Outcome = { kind: 'refused' | 'pending'; text: string }

export function Delete({ project, person, onClose, onDone }: { project: string; person: Person; onClose: () => void; onDone: (text: string, page: Here) => void }) {
  const [typed, setTyped] = useState('')
  const [events, setEvents] = useState(true)
  const [busy, setBusy] = useState(false)
  const [outcome, setOutcome] = useState<Outcome | null>(null)
  const word = typedName(person.name)
  const shown = word === person.name ? person.name : 'this person'
  const ids = person.distinct_ids.length
  const remove = async () => {
    setBusy(true)
    setOutcome(null)
    const page = here()
    try {
      await api.delete('/api/projects/{project_id}/persons/{id}', { path: { project_id: project, id: person.uuid }, query: { delete_events: events } })
      onDone(events ? `${shown} is deleted, with all events.` : `${shown} is deleted. The events are kept.`, page)
    } catch (e) {
      const pending = e instanceof ApiError && e.code === 'erasure_pending'
      if (e instanceof ApiError && e.status === 404) onDone(`${shown} is deleted.`, page)
      else if (!page.stayed()) page.sayError(e)
      else setOutcome({ kind: pending ? 'pending' : 'refused', text: e instanceof Error ? e.message : String(e) })
    } finally {
      setBusy(false)
    }
  }
  if (outcome?.kind === 'pending') {
    return (
      <Dialog title="The deletion goes on" onClose={onClose}>
        <div class="dialog-text"><p>{outcome.text}</p><p>It is recorded: neither a restart nor a restored backup brings the person back. Until it is done the person may still be seen here.</p></div>
        <footer><button type="button" class="button primary" onClick={() => onDone(`${shown} is being deleted.`, here())}>Understood</button></footer>
      </Dialog>
    )
  }
  return (
    <Dialog title={`Delete ${shown}?`} onClose={() => { if (!busy) onClose() }}>
      <form onSubmit={(e) => { e.preventDefault(); if (typed === word && !busy) void remove() }}>
        <div class="dialog-text">
          <p>The person goes with its properties and {ids === 1 ? 'its distinct id' : `its ${ids.toLocaleString('en')} distinct ids`}. This cannot be undone. An event that is sent later makes a new person.</p>
          <label class="check"><input type="checkbox" checked={events} disabled={busy} onChange={(e) => setEvents(e.currentTarget.checked)} /> Delete its events and dead letters, too</label>
        </div>
        <div class="field typed">
          <label for="delete-typed">Type <b class="mono">{word}</b> to confirm</label>
          <input id="delete-typed" class="mono" value={typed} autocomplete="off" spellcheck={false} disabled={busy} onInput={(e) => setTyped(e.currentTarget.value)} />
        </div>
        {outcome && <p class="field-error" role="alert">{outcome.text}</p>}
        {busy && <p class="hint" role="status">Deleting…</p>}
        <footer>
          <button type="button" class="button" disabled={busy} onClick={onClose}>Cancel</button>
          <button type="submit" class="button danger" disabled={typed !== word || busy}>{busy ? 'Deleting…' : events ? 'Delete person and events' : 'Delete person'}</button>
        </footer>
      </form>
    </Dialog>
  )
}
