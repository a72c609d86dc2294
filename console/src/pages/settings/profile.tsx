// The user: name, address and password.
import { useState } from 'preact/hooks'
import { api } from '../../api/client'
import { loadAccount, workIn } from '../../app/begin'
import { useGuard } from '../../app/guard'
import { useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { me } from '../../app/session'
import { Field, Problem, Skeleton, Tag } from '../../ui/basics'
import { attempt, levels, Line, myLevel, Part, Refused, useSubmit } from './parts'

export default function Profile() {
  const { visit } = usePlace()
  const [busy, setBusy] = useState(false)
  const { data, error, reload } = useData('settings/session', (signal) => api.get('/api/session', { signal }))
  if (error && !data) return <Problem error={error} retry={reload} />
  if (!data) return <Skeleton rows={4} />
  const change = async (id: string, name: string) => {
    setBusy(true)
    if (await attempt(() => workIn(id), `You work in ${name} now.`)) visit('/')
    setBusy(false)
  }
  return (
    <>
      <Part title="Profile"><Name operator={data.is_operator} /></Part>
      <Part title="Organizations">
        <div class="list" role="list">
          {data.organizations.map((o) => {
            const here = o.id === data.organization.id
            return (
              <Line key={o.id} what={<>{o.name}{here && <Tag tone="accent">here</Tag>}</>} about={here ? `You are ${words(myLevel())}.` : data.session ? null : 'This tab works with a personal key, which is for one organization.'}>
                {!here && data.session && <button type="button" class="button small" aria-label={`Work there: ${o.name}`} disabled={busy} onClick={() => { void change(o.id, o.name) }}>Work there</button>}
              </Line>
            )
          })}
        </div>
      </Part>
      <Part title="Password" text={data.has_password ? 'Your other sessions end when it changes. Keys stay.' : 'You have none: you sign in by link or with a provider.'}>
        {data.session ? <Password key={String(data.has_password)} had={data.has_password} onDone={reload} /> : <p class="notice">This tab works with a personal key. Sign in with a session to change the password: <code>guidon user login-link {me.value?.email}</code> prints a link.</p>}
      </Part>
    </>
  )
}

function words(level: number): string { return level === 1 ? 'a member' : `an ${(levels[level] ?? '').toLowerCase()}` }

function Name({ operator }: { operator: boolean }) {
  const user = me.value
  const [name, setName] = useState(user?.first_name ?? '')
  const [email, setEmail] = useState(user?.email ?? '')
  const changed = name !== (user?.first_name ?? '') || email !== (user?.email ?? '')
  useGuard(changed)
  const { submit, busy, error, at } = useSubmit(async (page) => {
    await api.patch('/api/users/@me', { body: { first_name: name, ...(email !== user?.email && { email }) } })
    await loadAccount()
    setName(me.value?.first_name ?? '') // as the server keeps them
    setEmail(me.value?.email ?? '')
    page.say('Your profile is saved.')
  })
  return (
    <form class="stack" onSubmit={submit}>
      <Field id="my-name" label="Name" error={at('first_name')}><input id="my-name" autocomplete="name" maxLength={150} value={name} onInput={(e) => setName(e.currentTarget.value)} /></Field>
      <Field id="my-email" label="E-mail" error={at('email')} hint={operator ? undefined : 'Operators of the server change it.'}><input id="my-email" type="email" autocomplete="email" required disabled={!operator} value={email} onInput={(e) => setEmail(e.currentTarget.value)} /></Field>
      <Refused error={error} fields={['first_name', 'email']} />
      <div><button type="submit" class="button primary" disabled={busy || !changed}>Save</button></div>
    </form>
  )
}

function Password({ had, onDone }: { had: boolean; onDone: () => void }) {
  const [current, setCurrent] = useState('')
  const [password, setPassword] = useState('')
  useGuard(password !== '') // browsers fill in the present one
  const { submit, busy, error, at } = useSubmit(async (page) => {
    await api.put('/api/users/@me/password', { body: { password, ...(had && { current_password: current }) } })
    setCurrent('')
    setPassword('')
    page.say('The password is set. Your other sessions have ended.')
    onDone()
  })
  return (
    <form class="stack" onSubmit={submit}>
      <input hidden type="email" autocomplete="username" value={me.value?.email} readOnly />
      {had && <Field id="password-now" label="Present password" error={at('current_password')}><input id="password-now" type="password" autocomplete="current-password" required value={current} onInput={(e) => setCurrent(e.currentTarget.value)} /></Field>}
      <Field id="password-new" label="New password" error={at('password')} hint="At least 10 characters."><input id="password-new" type="password" autocomplete="new-password" required minLength={10} maxLength={1024} value={password} onInput={(e) => setPassword(e.currentTarget.value)} /></Field>
      <Refused error={error} fields={['current_password', 'password']} />
      <div><button type="submit" class="button primary" disabled={busy}>Set the password</button></div>
    </form>
  )
}
