// An organization without a project: the frame, and how the first one is made.
import { useState } from 'preact/hooks'
import { api } from '../../api/client'
import { loadAccount } from '../../app/begin'
import { here } from '../../app/late'
import { usePlace } from '../../app/place'
import { me } from '../../app/session'
import { Code, Empty, useTitle } from '../../ui/basics'
import { pathOf } from '../index'
import { isAdmin } from '../settings/parts'

export default function FirstProject() {
  const { visit } = usePlace()
  const [name, setName] = useState('')
  const [busy, setBusy] = useState(false)
  useTitle('First project')
  const make = async () => {
    setBusy(true)
    const page = here()
    try {
      const made = await api.post('/api/projects', { body: { name, timezone: Intl.DateTimeFormat().resolvedOptions().timeZone } })
      await loadAccount()
      page.leave(() => visit(pathOf(made.id, '/flags')))
    } catch (e) {
      setBusy(false)
      page.sayError(e)
    }
  }
  return (
    <Empty alone title={`${me.value?.organization.name || 'The organization'} has no project yet`}>
      <p>A project holds flags, events and persons, and has a key that clients send. {isAdmin() ? 'Most organizations begin with one.' : 'An admin of the organization makes the first one.'}</p>
      {isAdmin() && (
        <form class="first-project" onSubmit={(e) => { e.preventDefault(); if (!busy) void make() }}>
          <input aria-label="Name of the project" required maxLength={200} placeholder="Web shop" value={name} onInput={(e) => setName(e.currentTarget.value)} />
          <button type="submit" class="button primary" disabled={busy}>Create the project</button>
        </form>
      )}
      {isAdmin() && <><p>Or from a terminal with a personal key in <code>PERSONAL_KEY</code>:</p><Code label="Create a project" text={`curl -X POST ${location.origin}/api/projects/ \\\n  -H "Authorization: Bearer $PERSONAL_KEY" -H 'Content-Type: application/json' \\\n  -d '{"name": "Web shop"}'`} /></>}
    </Empty>
  )
}
