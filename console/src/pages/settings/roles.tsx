// Roles: what their members may do with flags that others made.
import { useState } from 'preact/hooks'
import { api } from '../../api/client'
import type { Schemas } from '../../api/types'
import { useData } from '../../app/load'
import { Empty, Field, Problem, Skeleton, Tag } from '../../ui/basics'
import { confirm, Dialog } from '../../ui/dialog'
import { Icon } from '../../ui/icon'
import { nameOf } from './members'
import { attempt, isAdmin, Line, Part, Refused, useSubmit } from './parts'

type Role = Schemas['Role']
type Level = Role['feature_flags_access_level']
type RoleMember = Schemas['RoleMember']
const path = { organization_id: '@current' }
const access: Record<Level, string> = { 21: 'view only', 37: 'edit' }

export default function Roles() {
  const [editing, setEditing] = useState<Role | 'new' | null>(null)
  const [open, setOpen] = useState<Role | null>(null)
  const { data, error, reload } = useData('settings/roles', (signal) => api.get('/api/organizations/{organization_id}/roles', { path, query: { limit: 1000 }, signal }))
  const roles = data?.results ?? []
  const remove = async (r: Role) => {
    if (await confirm({ title: `Delete ${r.name}?`, body: <p>Its members lose its rights at once.</p>, action: 'Delete', danger: true, typed: r.name }) &&
      await attempt(() => api.delete('/api/organizations/{organization_id}/roles/{role_id}', { path: { ...path, role_id: r.id } }), `${r.name} is deleted.`)) reload()
  }
  return (
    <>
      <Default />
      <Part title="Roles" text="A role gives its members more than the rule above: to edit all flags, or those that name the role."
        action={isAdmin() && <button type="button" class="button" onClick={() => setEditing('new')}><Icon name="plus" /> New role</button>}>
        {error && <Problem error={error} retry={reload} />}
        {!data && !error && <Skeleton rows={2} />}
        {data && (
          <div class="list" role={roles.length ? 'list' : undefined}>
            {roles.length === 0 && <Empty title="No role yet"><p>{isAdmin() ? 'Create one for a team, such as “Release managers”.' : 'Admins create them.'}</p></Empty>}
            {roles.map((r) => {
              const members = listOf<RoleMember>(r.members)
              const flags = listOf<{ id: number; key: string }>(r.associated_flags)
              return (
                <Line key={r.id} what={<>{r.name}<Tag tone={r.feature_flags_access_level === 37 ? 'ok' : undefined}>{access[r.feature_flags_access_level]}</Tag></>}
                  about={<>{members.length ? members.map((m) => nameOf(m.user)).join(', ') : 'no members'}{flags.length > 0 && <>; edits {flags.map((f) => f.key).join(', ')}</>}</>}>
                  {isAdmin() && <button type="button" class="button small" aria-label={`Members of ${r.name}`} onClick={() => setOpen(r)}>Members</button>}
                  {isAdmin() && <button type="button" class="button small" aria-label={`Change ${r.name}`} onClick={() => setEditing(r)}>Change</button>}
                  {isAdmin() && <button type="button" class="button small danger-quiet" aria-label={`Delete ${r.name}`} onClick={() => { void remove(r) }}>Delete</button>}
                </Line>
              )
            })}
          </div>
        )}
      </Part>
      {editing && <Edit role={editing === 'new' ? null : editing} onClose={() => setEditing(null)} onDone={() => { setEditing(null); reload() }} />}
      {open && <RoleMembers role={open} onClose={() => { setOpen(null); reload() }} />}
    </>
  )
}

// listOf reads a list that the API has as a JSON text.
export function listOf<T>(text: string): T[] {
  const list: unknown = JSON.parse(text || '[]')
  return Array.isArray(list) ? (list as T[]) : []
}

function Default() {
  const [busy, setBusy] = useState(false)
  const { data, error, reload } = useData('settings/access', (signal) => api.get('/api/organizations/{organization_id}/resource_access/{resource}', { path: { ...path, resource: 'feature_flags' }, signal }))
  const change = async (level: Level) => {
    const question = level === 37
      ? { title: 'Let all members edit all flags?', body: <p>Members edit flags that others created, without a role.</p> }
      : { title: 'Keep members from flags of others?', body: <p>Members then only view flags that others created, unless a role lets them edit. Admins edit all.</p>, danger: true }
    if (!await confirm({ ...question, action: 'Change' })) return
    setBusy(true)
    await attempt(() => api.patch('/api/organizations/{organization_id}/resource_access/{resource}', { path: { ...path, resource: 'feature_flags' }, body: { access_level: level } }), 'The rule is changed.')
    setBusy(false)
    reload()
  }
  return (
    <Part title="Flags of others" text="What members without a role may do with flags that someone else created.">
      {error && !data && <Problem error={error} retry={reload} />}
      {data && (
        <div class="list" role="list">
          <Line what="Members may">
            {isAdmin()
              ? (
                <select aria-label="Members may" disabled={busy} value={data.access_level} onChange={(e) => { const level = Number(e.currentTarget.value) as Level; e.currentTarget.value = String(data.access_level); void change(level) }}>
                  <option value="37">edit them</option><option value="21">view them only</option>
                </select>
                )
              : <Tag>{access[data.access_level]}</Tag>}
          </Line>
        </div>
      )}
    </Part>
  )
}

function Edit({ role, onClose, onDone }: { role: Role | null; onClose: () => void; onDone: () => void }) {
  const [name, setName] = useState(role?.name ?? '')
  const [level, setLevel] = useState<Level>(role?.feature_flags_access_level ?? 37)
  const { submit, busy, error, at } = useSubmit(async () => {
    const body = { name, feature_flags_access_level: level }
    await (role ? api.patch('/api/organizations/{organization_id}/roles/{role_id}', { path: { ...path, role_id: role.id }, body }) : api.post('/api/organizations/{organization_id}/roles', { path, body }))
    onDone()
  })
  return (
    <Dialog title={role ? `Change ${role.name}` : 'New role'} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field id="role-name" label="Name" error={at('name')}><input id="role-name" required maxLength={200} placeholder="Release managers" value={name} onInput={(e) => setName(e.currentTarget.value)} /></Field>
        <Field id="role-level" label="Flags of others" error={at('feature_flags_access_level')}>
          <select id="role-level" value={level} onChange={(e) => setLevel(Number(e.currentTarget.value) as Level)}>
            <option value="37">Edit all of them</option><option value="21">View; edit those that name the role</option>
          </select>
        </Field>
        <Refused error={error} fields={['name', 'feature_flags_access_level']} />
        <footer><button type="button" class="button" onClick={onClose}>Cancel</button><button type="submit" class="button primary" disabled={busy}>{role ? 'Save' : 'Create the role'}</button></footer>
      </form>
    </Dialog>
  )
}

function RoleMembers({ role, onClose }: { role: Role; onClose: () => void }) {
  const at = { ...path, role_id: role.id }
  const { data, error, reload } = useData(`settings/roles/${role.id}`, (signal) => api.get('/api/organizations/{organization_id}/roles/{role_id}/role_memberships', { path: at, query: { limit: 1000 }, signal }))
  const people = useData('settings/members', (signal) => api.get('/api/organizations/{organization_id}/members', { path, query: { limit: 1000 }, signal }))
  const members = data?.results ?? []
  const others = (people.data?.results ?? []).filter((p) => !members.some((m) => m.user.id === p.user.id))
  const add = async (uuid: string) => { if (uuid && await attempt(() => api.post('/api/organizations/{organization_id}/roles/{role_id}/role_memberships', { path: at, body: { user_uuid: uuid } }), '')) reload() }
  const remove = async (m: RoleMember) => { if (await attempt(() => api.delete('/api/organizations/{organization_id}/roles/{role_id}/role_memberships/{id}', { path: { ...at, id: m.id } }), '')) reload() }
  return (
    <Dialog title={`Members of ${role.name}`} onClose={onClose}>
      {error && <Problem error={error} retry={reload} />}
      <div class="stack">
        {members.length > 0 && (
          <div class="list" role="list">
            {members.map((m) => (
              <Line key={m.id} what={nameOf(m.user)} about={m.user.email}>
                <button type="button" class="button small danger-quiet" aria-label={`Remove ${m.user.email} from the role`} onClick={() => { void remove(m) }}>Remove</button>
              </Line>
            ))}
          </div>
        )}
        {data && members.length === 0 && <p class="muted">No members yet.</p>}
        {others.length > 0 && (
          <select aria-label="Add a member" value="" onChange={(e) => { const uuid = e.currentTarget.value; e.currentTarget.value = ''; void add(uuid) }}>
            <option value="">Add a member…</option>
            {others.map((p) => <option key={p.id} value={p.user.uuid}>{nameOf(p.user)} ({p.user.email})</option>)}
          </select>
        )}
      </div>
      <footer><button type="button" class="button primary" onClick={onClose}>Done</button></footer>
    </Dialog>
  )
}
