// Signing in and out.
import { api, ApiError, send } from '../api/client'
import { failure, me, personalKey, projects, scopes, setCSRF, setHere, signedOut, state, usePersonalKey, wasHere } from './session'

interface SessionAnswer { csrf_token?: string }

// begin finds out who is signed in, by the session of the browser or the key of the tab. A
// browser that was signed out asks for the session alone: it is likely refused.
export async function begin(): Promise<void> {
  try {
    const session = personalKey() ? undefined : loadSession()
    if (!wasHere()) await session
    const [account] = await Promise.all([askAccount(), session])
    takeAccount(account) // the token of the session is there: pages send their first request once the state is in
  } catch (e) {
    if (!(e instanceof ApiError)) throw e
    if (e.status === 401 || e.status === 404) signedOut()
    else if (state.value !== 'in') failed(e)
  }
}

async function loadSession(): Promise<void> {
  const session = (await send('GET', '/api/session')) as SessionAnswer | undefined
  setCSRF(session?.csrf_token ?? '')
}

// failed keeps the key and the session: the server restarts, or cannot be reached.
function failed(e: ApiError): void {
  failure.value = e
  state.value = 'failed'
}

// loadAccount asks again who the user is and what projects there are.
export async function loadAccount(): Promise<void> { takeAccount(await askAccount()) }

async function askAccount() {
  const [user, list, key] = await Promise.all([
    api.get('/api/users/@me'), api.get('/api/projects', { query: { limit: 1000 } }),
    personalKey() ? api.get('/api/personal_api_keys/@current') : null,
  ])
  return { user, list, key }
}

function takeAccount({ user, list, key }: Awaited<ReturnType<typeof askAccount>>): void {
  scopes.value = key?.scopes ?? null
  me.value = user
  projects.value = list.results ?? []
  state.value = 'in'
  if (!personalKey()) setHere(true)
}

// signInWithKey signs this tab in with a personal key. It fails with the server's sentence.
export async function signInWithKey(key: string): Promise<void> {
  usePersonalKey(key)
  try {
    await loadAccount()
  } catch (e) {
    usePersonalKey('')
    throw e
  }
}

// signInWith posts a proof to a path below /api/session and takes the session it answers with.
export async function signInWith(path: string, body: unknown): Promise<void> {
  usePersonalKey('')
  const session = (await send('POST', path, body)) as SessionAnswer | undefined
  setCSRF(session?.csrf_token ?? '')
  await loadAccount()
}

// workIn changes the session over to another organization.
export async function workIn(organization: string): Promise<void> {
  const session = (await send('PATCH', '/api/session', { organization_id: organization })) as SessionAnswer | undefined
  setCSRF(session?.csrf_token ?? '')
  await loadAccount()
}

export async function signOut(): Promise<void> {
  if (!personalKey()) await send('DELETE', '/api/session')
  signedOut()
}
