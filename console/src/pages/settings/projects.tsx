// The organization: its name and its projects.
import { useState } from 'preact/hooks'
import { api } from '../../api/client'
import { loadAccount } from '../../app/begin'
import { useGuard } from '../../app/guard'
import { usePlace } from '../../app/place'
import { me, projects } from '../../app/session'
import { pathOf } from '../../pages'
import { Field, Tag, Time } from '../../ui/basics'
import { Dialog } from '../../ui/dialog'
import { Icon } from '../../ui/icon'
import { isAdmin, Line, Part, Refused, useSubmit } from './parts'

export default function Projects({ project }: { project: string }) {
  const [making, setMaking] = useState(false)
  return (
    <>
      <Part title="Projects" text="Flags, events and people of one project are apart from those of the others: one each for an app, or for testing and production."
        action={isAdmin() && <button type="button" class="button primary" onClick={() => setMaking(true)}><Icon name="plus" /> New project</button>}>
        <div class="list" role="list">
          {projects.value.map((p) => (
            <Line key={p.id} what={<><a href={pathOf(p.id, '/flags')}>{p.name}</a>{String(p.id) === project && <Tag tone="accent">here</Tag>}</>} about={<>Project {p.id}, created <Time at={p.created_at} />, {p.timezone}</>}>
              <a class="button small" href={pathOf(p.id, '/settings/general')} aria-label={`Settings of ${p.name}`}>Settings</a>
            </Line>
          ))}
        </div>
      </Part>
      <Part title="Organization"><Name /></Part>
      {making && <Make onClose={() => setMaking(false)} />}
    </>
  )
}

function Make({ onClose }: { onClose: () => void }) {
  const { visit } = usePlace()
  const [name, setName] = useState('')
  const { submit, busy, error, at } = useSubmit(async (page) => {
    const made = await api.post('/api/projects', { body: { name, timezone: Intl.DateTimeFormat().resolvedOptions().timeZone } })
    await loadAccount()
    page.say(`${made.name} is created.`)
    onClose()
    page.leave(() => visit(pathOf(made.id, '/settings/general')))
  })
  return (
    <Dialog title="New project" onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field id="new-project" label="Name" error={at('name')}><input id="new-project" required maxLength={200} placeholder="Web shop, testing" value={name} onInput={(e) => setName(e.currentTarget.value)} /></Field>
        <Refused error={error} fields={['name']} />
        <footer><button type="button" class="button" onClick={onClose}>Cancel</button><button type="submit" class="button primary" disabled={busy}>Create the project</button></footer>
      </form>
    </Dialog>
  )
}

function Name() {
  const organization = me.value?.organization
  const [name, setName] = useState(organization?.name ?? '')
  const changed = name !== (organization?.name ?? '')
  useGuard(changed)
  const { submit, busy, error, at } = useSubmit(async (page) => {
    await api.patch('/api/organizations/{organization_id}', { path: { organization_id: '@current' }, body: { name } })
    await loadAccount()
    setName(me.value?.organization.name ?? '') // as the server keeps it
    page.say('The organization is saved.')
  })
  return (
    <form class="stack" onSubmit={submit}>
      <Field id="organization-name" label="Name" error={at('name')}><input id="organization-name" required maxLength={200} disabled={!isAdmin()} value={name} onInput={(e) => setName(e.currentTarget.value)} /></Field>
      <Refused error={error} fields={['name']} />
      {isAdmin() ? <div><button type="submit" class="button primary" disabled={busy || !changed}>Save</button></div> : <p class="hint">Admins change it.</p>}
    </form>
  )
}
