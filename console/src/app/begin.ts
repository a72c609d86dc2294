// Signing in and out.
import { api, ApiError, send } from '../api/client'
import { failure, me, personalKey, projects, setCSRF, signedOut, state, usePersonalKey } from './session'

interface SessionAnswer { csrf_token?: string }

// begin finds out who is signed in, by the session of the browser or the key of the tab.
export async function begin(): Promise<void> {
  try {
    if (!personalKey()) {
      const session = (await send('GET', '/api/session')) as SessionAnswer | undefined
      setCSRF(session?.csrf_token ?? '')
    }
    await loadAccount()
  } catch (e) {
    if (!(e instanceof ApiError)) throw e
    if (e.status === 401 || e.status === 404) signedOut()
    else if (state.value !== 'in') failed(e)
  }
}

// failed keeps the key and the session: the server restarts, or cannot be reached.
function failed(e: ApiError): void {
  failure.value = e
  state.value = 'failed'
}

async function loadAccount(): Promise<void> {
  const [user, list] = await Promise.all([api.get('/api/users/@me'), api.get('/api/projects', { query: { limit: 1000 } })])
  me.value = user
  projects.value = list.results ?? []
  state.value = 'in'
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

export async function signOut(): Promise<void> {
  if (!personalKey()) await send('DELETE', '/api/session')
  signedOut()
}
