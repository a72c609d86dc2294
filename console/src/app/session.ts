// Who is signed in. A session is in a cookie that scripts cannot read; the page holds its
// CSRF token in memory. A personal key, the other way, is kept for this tab only.
import { signal } from '@preact/signals'
import type { ApiError } from '../api/client'
import type { Me, Project } from '../api/types'

const keyName = 'guidon.key'
const hereName = 'guidon.here'

export type State = 'unknown' | 'out' | 'in' | 'failed' // failed: the server did not say who it is
export const state = signal<State>('unknown')
export const failure = signal<ApiError | null>(null) // why state is failed
export const me = signal<Me | null>(null)
export const projects = signal<Project[]>([])
let csrf = ''
export const scopes = signal<string[] | null>(null) // of the personal key of the tab; null: a session, which has all
export const keyed = signal(false) // who is signed out had pasted a personal key

// may reports whether the key of the tab has the right; write includes read. The server decides;
// the pages only leave out what it would refuse.
export function may(right: 'read' | 'write', object: string): boolean {
  const has = scopes.value
  return has === null || ['*', `${object}:*`, `${object}:write`, `${object}:${right}`].some((s) => has.includes(s))
}

export function personalKey(): string { return sessionStorage.getItem(keyName) ?? '' }

export function usePersonalKey(key: string): void {
  if (key) sessionStorage.setItem(keyName, key)
  else sessionStorage.removeItem(keyName)
}

// wasHere reports whether someone was signed in with this browser when it was used last.
export function wasHere(): boolean { return localStorage.getItem(hereName) !== null }

export function setHere(here: boolean): void {
  if (here) localStorage.setItem(hereName, '1')
  else localStorage.removeItem(hereName)
}

export function setCSRF(token: string): void { csrf = token }

// credentials returns the headers that sign a request.
export function credentials(method: string): Record<string, string> {
  const key = personalKey()
  if (key) return { Authorization: `Bearer ${key}` }
  return method === 'GET' || !csrf ? {} : { 'X-CSRF-Token': csrf }
}

// signedOut forgets who was signed in; the pages show the sign-in page then.
export function signedOut(): void {
  if (personalKey() || state.value !== 'out') keyed.value = personalKey() !== '' // requests under way are refused after it
  setHere(false)
  usePersonalKey('')
  csrf = ''
  me.value = null
  projects.value = []
  scopes.value = null
  state.value = 'out'
}

// safeNext returns where to go after the sign-in: a path of this server, or the start.
export function safeNext(next: string | null): string {
  // eslint-disable-next-line no-control-regex
  return next && /^\/(?![/\\])[^\\\u0000-\u001f\u007f]*$/.test(next) ? next : '/'
}
