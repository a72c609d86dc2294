import { useState } from 'preact/hooks'
import { api } from '../../api/client'
import type { Person } from '../../api/types'
import { here } from '../../app/late'
import { Dialog } from '../../ui/dialog'

// Split makes each distinct id a person of its own, except for the one that keeps the properties.
export function Split({ project, person, onClose, onDone }: { project: string; person: Person; onClose: () => void; onDone: () => void }) {
  const [main, setMain] = useState(person.distinct_ids[0] ?? '')
  const [busy, setBusy] = useState(false)
  const split = async () => {
    setBusy(true)
    const page = here()
    try {
      await api.post('/api/projects/{project_id}/persons/{id}/split', { path: { project_id: project, id: person.uuid }, body: { main_distinct_id: main || null } })
      page.say(`Its ${person.distinct_ids.length - 1} other distinct ids are persons of their own now.`)
      onDone()
    } catch (e) {
      page.sayError(e)
      setBusy(false)
    }
  }
  return (
    <Dialog title="Split this person?" onClose={onClose}>
      <form onSubmit={(e) => { e.preventDefault(); void split() }}>
        <div class="dialog-text"><p>Each of its {person.distinct_ids.length.toLocaleString('en')} distinct ids becomes a person of its own, with its events. One keeps the properties; the others start without any.</p></div>
        <div class="field typed">
          <label for="split-main">Keeps the properties</label>
          <select id="split-main" class="mono" value={main} onChange={(e) => setMain(e.currentTarget.value)}>
            {person.distinct_ids.map((id) => <option key={id} value={id}>{id}</option>)}
            <option value="">none: the properties are dropped</option>
          </select>
        </div>
        <footer>
          <button type="button" class="button" onClick={onClose}>Cancel</button>
          <button type="submit" class="button danger" disabled={busy}>{busy ? 'Splitting…' : 'Split'}</button>
        </footer>
      </form>
    </Dialog>
  )
}
