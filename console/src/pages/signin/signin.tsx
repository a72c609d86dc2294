// The pages without a session: signing in, setting a password with the token of a reset
// link, and accepting an invitation. Tokens are in the fragment of the URL, which is
// removed at once.
import { useEffect, useRef, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { ApiError, send } from '../../api/client'
import { signInWith, signInWithKey } from '../../app/begin'
import { me, safeNext, state } from '../../app/session'
import { sayError } from '../../app/toasts'
import { Field, useTitle } from '../../ui/basics'
import { Mark } from '../../ui/mark'

interface Methods { password: boolean; link: boolean; password_reset: 'email' | 'printed'; oidc: { name: string; start_url: string } | null }

const oidcErrors: Record<string, string> = {
  oidc_failed: 'The provider did not confirm who you are. Try again.',
  oidc_domain: 'Accounts of this domain cannot sign in here.',
  oidc_unverified: 'The provider has not verified your e-mail address.',
  oidc_no_account: 'There is no account with your e-mail address. Ask for an invitation.',
  oidc_cancelled: 'The sign-in was cancelled at the provider.',
}

// takeFragment returns the values in the fragment of the URL and removes it.
function takeFragment(): URLSearchParams {
  const values = new URLSearchParams(location.hash.slice(1))
  if (location.hash) history.replaceState(null, '', location.pathname + location.search)
  return values
}

export default function SignIn() {
  const { path, query, route } = useLocation()
  const [fragment, setFragment] = useState(takeFragment)
  const [methods, setMethods] = useState<Methods | null>() // null: keys only; undefined: not known yet
  const [error, setError] = useState<ApiError | null>(null)
  const [busy, setBusy] = useState(false)
  const [link, setLink] = useState(() => (path === '/sign-in' ? fragment.get('link') : null)) // kept to try again
  useTitle('Sign in')

  const run = async (signIn: () => Promise<void>) => {
    setBusy(true)
    setError(null)
    try {
      await signIn()
      route(safeNext(query.next ?? null), true)
    } catch (e) {
      if (e instanceof ApiError) setError(e)
      else sayError(e)
      setBusy(false)
    }
  }
  useEffect(() => {
    send('GET', '/api/session/methods').then((m) => setMethods(m as Methods), () => setMethods(null))
  }, [])
  useEffect(() => {
    const failed = fragment.get('error')
    setError(failed ? new ApiError(401, failed, oidcErrors[failed] ?? 'The sign-in failed.') : null)
  }, [fragment])
  useEffect(() => { // a link that is opened in the tab that shows its page loads no document
    const take = () => {
      if (!location.hash) return
      const values = takeFragment()
      setFragment(values)
      setLink(path === '/sign-in' ? values.get('link') : null)
    }
    window.addEventListener('hashchange', take)
    return () => window.removeEventListener('hashchange', take)
  }, [path])

  const signedIn = state.value === 'in' && path === '/sign-in' && !link && !busy
  useEffect(() => { if (signedIn) route(safeNext(query.next ?? null), true) }, [signedIn])

  return (
    <main class="sign-in">
      <div class="card">
        <h1><Mark /> Guidon</h1>
        {path !== '/sign-in' && !fragment.get('token')
          ? <Incomplete />
          : path === '/invitation'
            ? <Accept key={fragment.get('token')} busy={busy} error={error} onSubmit={(name, password) => run(() => signInWith('/api/session/invitation', { id: fragment.get('id'), token: fragment.get('token'), first_name: name, ...(password && { password }) }))} />
            : path === '/reset-password'
              ? <NewPassword key={fragment.get('token')} busy={busy} error={error} onSubmit={(password) => run(() => signInWith('/api/session/password', { token: fragment.get('token'), password }))} />
              : link
                ? <WithLink busy={busy} error={error} onSubmit={() => run(() => signInWith('/api/session/link', { token: link }))} onOther={() => { setError(null); setLink(null) }} />
                : <Choose methods={methods} busy={busy} error={error} run={run} next={query.next} forgot={query.forgot !== undefined} />}
      </div>
    </main>
  )
}

// Incomplete stands for a form without its token, as after a reload.
function Incomplete() {
  return <><p>The link is incomplete, or this page was loaded again: open the link once more.</p><a class="button wide" href="/sign-in">Back to the sign-in</a></>
}

// WithLink signs in by a click only: a link that someone else sent must not end a session
// by being opened.
function WithLink({ busy, error, onSubmit, onOther }: { busy: boolean; error: ApiError | null; onSubmit: () => void; onOther: () => void }) {
  const button = useRef<HTMLButtonElement>(null)
  useEffect(() => button.current?.focus(), [])
  return (
    <form onSubmit={(e) => { e.preventDefault(); onSubmit() }}>
      {error && <p class="field-error" role="alert">{error.message}</p>}
      <p>{state.value === 'in' && me.value ? <>You are signed in as {me.value.email}. The link signs in the user that it was created for instead.</> : 'The link signs in the user that it was created for.'}</p>
      <button ref={button} type="submit" class="button primary wide" disabled={busy}>Sign in with the link</button>
      <button type="button" class="link" onClick={onOther}>Sign in another way</button>
    </form>
  )
}

interface ChooseProps { methods: Methods | null | undefined; busy: boolean; error: ApiError | null; run: (f: () => Promise<void>) => Promise<void>; next: string | undefined; forgot: boolean }

function Choose({ methods, busy, error, run, next, forgot }: ChooseProps) {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [key, setKey] = useState('')
  const [byKey, setByKey] = useState(false)
  const { route } = useLocation()
  const show = (forgotten: boolean) => route(`/sign-in?${new URLSearchParams({ ...(next && { next }), ...(forgotten && { forgot: '1' }) })}`)
  const withKey = byKey || !methods
  if (methods === undefined) return <div class="sign-in-space" />
  const byMail = methods?.password_reset === 'email'
  if (forgot && byMail) return <Forgot email={email} onBack={() => show(false)} />
  return (
    <>
      {error && <p class="field-error" role="alert">{error.message}</p>}
      {methods?.oidc && <a class="button wide" href={`${methods.oidc.start_url}?next=${encodeURIComponent(safeNext(next ?? null))}`}>Continue with {methods.oidc.name}</a>}
      {withKey
        ? (
          <form onSubmit={(e) => { e.preventDefault(); void run(() => signInWithKey(key.trim())) }}>
            <Field id="key" label="Personal API key" hint={<>It stays in this tab. Lost it? <code>guidon key create --user 1</code> prints another.</>}>
              <input id="key" type="password" class="mono" autocomplete="off" required value={key} onInput={(e) => setKey(e.currentTarget.value)} placeholder="phx_…" />
            </Field>
            <button type="submit" class="button primary wide" disabled={busy}>Sign in</button>
          </form>
          )
        : (
          <form onSubmit={(e) => { e.preventDefault(); void run(() => signInWith('/api/session', { email, password })) }}>
            <Field id="email" label="E-mail"><input id="email" type="email" autocomplete="username" required value={email} onInput={(e) => setEmail(e.currentTarget.value)} /></Field>
            <Field id="password" label="Password" hint={byMail ? undefined : <>No password, or forgotten? Ask an administrator: <code>guidon user login-link EMAIL</code> prints a link that signs you in.</>}>
              <input id="password" type="password" autocomplete="current-password" required value={password} onInput={(e) => setPassword(e.currentTarget.value)} />
            </Field>
            <button type="submit" class="button primary wide" disabled={busy}>Sign in</button>
            {byMail && <button type="button" class="link" onClick={() => show(true)}>Forgot the password?</button>}
          </form>
          )}
      {methods && <button type="button" class="link" onClick={() => setByKey(!byKey)}>{byKey ? 'Sign in with e-mail and password' : 'Use a personal API key'}</button>}
    </>
  )
}

// Forgot asks for an e-mail with a link. The answer is the same for every address.
function Forgot({ email: given, onBack }: { email: string; onBack: () => void }) {
  const [email, setEmail] = useState(given)
  const [busy, setBusy] = useState(false)
  const [asked, setAsked] = useState('')
  const [error, setError] = useState<ApiError | null>(null)
  const field = useRef<HTMLInputElement>(null)
  const answer = useRef<HTMLParagraphElement>(null)
  useEffect(() => { field.current?.focus() }, [])
  useEffect(() => { if (asked) answer.current?.focus() }, [asked])
  const ask = async () => {
    setBusy(true)
    setError(null)
    try {
      await send('POST', '/api/session/password_reset', { email })
      setAsked(email)
    } catch (e) {
      if (e instanceof ApiError) setError(e)
      else sayError(e)
    }
    setBusy(false)
  }
  if (asked) {
    return (
      <>
        <p ref={answer} tabIndex={-1} role="status">If {asked} has an account, an e-mail with a link is on its way. The link works once. Nothing after a few minutes? Look among the spam, or ask an administrator.</p>
        <button type="button" class="link" onClick={onBack}>Back to the sign-in</button>
      </>
    )
  }
  return (
    <form onSubmit={(e) => { e.preventDefault(); void ask() }}>
      <p>You get an e-mail with a link that chooses a new password.</p>
      <Field id="forgot-email" label="E-mail" error={error?.message}><input ref={field} id="forgot-email" type="email" autocomplete="username" required value={email} onInput={(e) => setEmail(e.currentTarget.value)} /></Field>
      <button type="submit" class="button primary wide" disabled={busy}>Send the link</button>
      <button type="button" class="link" onClick={onBack}>Back to the sign-in</button>
    </form>
  )
}

function NewPassword({ busy, error, onSubmit }: { busy: boolean; error: ApiError | null; onSubmit: (password: string) => void }) {
  const [password, setPassword] = useState('')
  return (
    <form onSubmit={(e) => { e.preventDefault(); onSubmit(password) }}>
      <Field id="new-password" label="New password" error={error?.message}>
        <input id="new-password" type="password" autocomplete="new-password" required value={password} onInput={(e) => setPassword(e.currentTarget.value)} />
      </Field>
      <button type="submit" class="button primary wide" disabled={busy}>Set the password and sign in</button>
      {error && <a class="button wide" href="/sign-in">Back to the sign-in</a>}
    </form>
  )
}

function Accept({ busy, error, onSubmit }: { busy: boolean; error: ApiError | null; onSubmit: (name: string, password: string) => void }) {
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  return (
    <form onSubmit={(e) => { e.preventDefault(); onSubmit(name, password) }}>
      <p>You are invited. Choose a name and a password.</p>
      {error && error.attr !== 'password' && <p class="field-error" role="alert">{error.message}</p>}
      <Field id="name" label="Name"><input id="name" autocomplete="name" required value={name} onInput={(e) => setName(e.currentTarget.value)} /></Field>
      <Field id="accept-password" label="Password" error={error?.attr === 'password' ? error.message : null}>
        <input id="accept-password" type="password" autocomplete="new-password" value={password} onInput={(e) => setPassword(e.currentTarget.value)} />
      </Field>
      <button type="submit" class="button primary wide" disabled={busy}>Accept and sign in</button>
      {error && <a class="button wide" href="/sign-in">Back to the sign-in</a>}
    </form>
  )
}
