// Members of the organization with their levels, and open invitations.
import { useEffect, useState } from 'preact/hooks'
import { api } from '../../api/client'
import type { Schemas } from '../../api/types'
import { begin } from '../../app/begin'
import { useData } from '../../app/load'
import { me } from '../../app/session'
import { CopyButton, Empty, Field, Problem, Skeleton, Tag, Time } from '../../ui/basics'
import { confirm, Dialog } from '../../ui/dialog'
import { Icon } from '../../ui/icon'
import { plural } from '../../ui/time'
import { attempt, isAdmin, levels, Line, myLevel, Part, Refused, useSubmit } from './parts'

type Member = Schemas['Member']
type Invite = Schemas['Invite']
const path = { organization_id: '@current' }
export const nameOf = (u: { first_name: string; email: string }) => u.first_name || u.email

export default function Members() {
  return <><MemberList />{isAdmin() && <Invites />}</>
}

function MemberList() {
  const { data, error, reload } = useData('settings/members', (signal) => api.get('/api/organizations/{organization_id}/members', { path, query: { limit: 1000 }, signal }))
  const members = data?.results ?? []
  const change = async (m: Member, level: Member['level']) => {
    const what = level > m.level ? `${nameOf(m.user)} will be able to do more: ${powers[level]}` : `${nameOf(m.user)} will only be able to do this: ${powers[level]}`
    const yes = await confirm({ title: `Make ${nameOf(m.user)} ${level === 1 ? 'a member' : level === 8 ? 'an admin' : 'an owner'}?`, body: <p>{what}</p>, action: 'Change', danger: level < m.level })
    if (yes && await attempt(() => api.patch('/api/organizations/{organization_id}/members/{user_id}', { path: { ...path, user_id: m.user.uuid }, body: { level } }), `${nameOf(m.user)} is ${(levels[level] ?? '').toLowerCase()} now.`) && m.user.id === me.value?.id) await begin()
    reload()
  }
  const remove = async (m: Member) => {
    const self = m.user.id === me.value?.id
    const yes = await confirm({ title: self ? 'Leave the organization?' : `Remove ${nameOf(m.user)}?`, body: <p>{self ? 'You lose' : 'They lose'} the roles, the keys and the sessions in it at once. What they created stays.</p>, action: self ? 'Leave' : 'Remove', danger: true, typed: m.user.email })
    if (!yes || !await attempt(() => api.delete('/api/organizations/{organization_id}/members/{user_id}', { path: { ...path, user_id: m.user.uuid } }), self ? 'You have left.' : `${nameOf(m.user)} is removed.`)) return
    if (self) await begin()
    else reload()
  }
  return (
    <Part title="Members" text={data ? `${plural(data.count, 'person works', 'people work')} in ${me.value?.organization.name}. Everyone sees its projects; admins change keys and members; owners name owners.` : 'Who works in the organization.'}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton rows={3} />}
      {data && (
        <div class="list" role="list">
          {members.map((m) => {
            const self = m.user.id === me.value?.id
            const may = isAdmin() && m.level <= myLevel()
            return (
              <Line key={m.id} what={<>{nameOf(m.user)}{self && <Tag tone="accent">you</Tag>}</>} about={<>{m.user.email}, joined <Time at={m.joined_at} /></>}>
                {may
                  ? <select aria-label={`Level of ${m.user.email}`} value={m.level} onChange={(e) => { const level = Number(e.currentTarget.value) as Member['level']; e.currentTarget.value = String(m.level); void change(m, level) }}><LevelOptions /></select>
                  : <Tag>{levels[m.level]}</Tag>}
                {(may || self) && <button type="button" class="button small danger-quiet" aria-label={self ? 'Leave the organization' : `Remove ${m.user.email}`} onClick={() => { void remove(m) }}>{self ? 'Leave' : 'Remove'}</button>}
              </Line>
            )
          })}
        </div>
      )}
    </Part>
  )
}

// LevelOptions are the levels that the user may give.
function LevelOptions() {
  return <>{Object.entries(levels).filter(([l]) => Number(l) <= myLevel()).map(([l, words]) => <option key={l} value={l}>{words}</option>)}</>
}

const powers: Record<number, string> = {
  1: 'use the projects and create flags, cohorts and actions.',
  8: 'change projects, keys, roles and members, and read the audit log.',
  15: 'all that admins do, and name other owners.',
}

function Invites() {
  const [making, setMaking] = useState(false)
  const [made, setMade] = useState<Invite | null>(null)
  const { data, error, reload } = useData('settings/invites', (signal) => api.get('/api/organizations/{organization_id}/invites', { path, query: { limit: 1000 }, signal }))
  const remove = async (i: Invite) => {
    if (await confirm({ title: `Revoke the invitation of ${i.target_email}?`, body: <p>Its link does not work any more.</p>, action: 'Revoke', danger: true }) &&
      await attempt(() => api.delete('/api/organizations/{organization_id}/invites/{invite_id}', { path: { ...path, invite_id: i.id } }), `The invitation of ${i.target_email} is revoked.`)) reload()
  }
  const invites = data?.results ?? []
  const waiting = invites.some((i) => i.email_state === 'queued' && !i.is_expired)
  useEffect(() => { // until each e-mail has a result
    if (!waiting) return
    const timer = setTimeout(reload, 3000)
    return () => clearTimeout(timer)
  }, [data])
  return (
    <Part title="Invitations" text="A link that works once, within three days. It is sent by e-mail if the server has an SMTP server; otherwise you hand it over."
      action={<button type="button" class="button primary" onClick={() => setMaking(true)}><Icon name="plus" /> Invite</button>}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton rows={1} />}
      {data && (
        <div class="list" role={invites.length ? 'list' : undefined}>
          {invites.length === 0 && <Empty title="No invitations"><p>Invite a colleague: you get a link for them.</p></Empty>}
          {invites.map((i) => (
            <Line key={i.id} what={<>{i.target_email}<Tag>{levels[i.level]}</Tag><InviteState invite={i} /></>}
              about={<>invited <Time at={i.created_at} />{i.created_by && ` by ${nameOf(i.created_by)}`}, {i.is_expired ? 'ended' : 'ends'} <Time at={i.expires_at} /></>}>
              <button type="button" class="button small danger-quiet" aria-label={`Revoke the invitation of ${i.target_email}`} onClick={() => { void remove(i) }}>Revoke</button>
            </Line>
          ))}
        </div>
      )}
      {making && <MakeInvite onClose={() => setMaking(false)} onDone={(i) => { setMaking(false); setMade(i); reload() }} />}
      {made && <LinkDialog invite={made} onClose={() => setMade(null)} />}
    </Part>
  )
}

function InviteState({ invite: i }: { invite: Invite }) {
  if (i.is_expired) return <Tag tone="warn">expired</Tag>
  if (i.email_state === 'off') return null
  return i.email_state === 'failed' ? <Tag tone="bad">{emails.failed}</Tag> : <Tag>{emails[i.email_state]}</Tag>
}

// LinkDialog shows the link of a new invitation, once.
function LinkDialog({ invite: i, onClose }: { invite: Invite; onClose: () => void }) {
  const link = linkOf(i)
  const queued = i.email_state === 'queued'
  return (
    <Dialog title={`The link for ${i.target_email}`} onClose={onClose} sticky>
      <div class="dialog-text">
        {queued && <p>An e-mail with this link is on its way. The list says whether the mail server accepted it.</p>}
        {i.email_state === 'failed' && <p class="field-error">The e-mail could not be sent: the log of the server has the reason.</p>}
        <p>
          {queued ? 'If it does not arrive, hand the link over' : 'Hand it over'} in a way that only they can read. It works once, until <Time at={i.expires_at} />, and is not shown again.
        </p>
        <div class="once"><code>{link}</code><CopyButton text={link} /></div>
      </div>
      <footer><button type="button" class="button primary" onClick={onClose}>Done</button></footer>
    </Dialog>
  )
}

const emails = { off: '', queued: 'e-mail on its way', sent: 'e-mail sent', failed: 'e-mail failed: invite again' }

// linkOf returns the link of a new invitation. A server without the address of its console
// gives the path only.
export function linkOf(i: Invite): string { return i.console_url ? new URL(i.console_url, location.origin).href : '' }

function MakeInvite({ onClose, onDone }: { onClose: () => void; onDone: (i: Invite) => void }) {
  const [email, setEmail] = useState('')
  const [name, setName] = useState('')
  const [level, setLevel] = useState<Invite['level']>(1)
  const { submit, busy, error, at } = useSubmit(async () => { onDone(await api.post('/api/organizations/{organization_id}/invites', { path, body: { target_email: email, level, ...(name && { first_name: name }) } })) })
  return (
    <Dialog title="Invite" onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field id="invite-email" label="E-mail" error={at('target_email')}><input id="invite-email" type="email" required value={email} onInput={(e) => setEmail(e.currentTarget.value)} /></Field>
        <Field id="invite-name" label="Name" hint="They can choose another." error={at('first_name')}><input id="invite-name" value={name} onInput={(e) => setName(e.currentTarget.value)} /></Field>
        <Field id="invite-level" label="Level" hint={powers[level] && `May ${powers[level]}`}>
          <select id="invite-level" value={level} onChange={(e) => setLevel(Number(e.currentTarget.value) as Invite['level'])}><LevelOptions /></select>
        </Field>
        <Refused error={error} fields={['target_email', 'first_name']} />
        <footer><button type="button" class="button" onClick={onClose}>Cancel</button><button type="submit" class="button primary" disabled={busy}>Create the link</button></footer>
      </form>
    </Dialog>
  )
}
