// Who is signed in. A session is in a cookie that scripts cannot read; the page holds its
// CSRF token in memory. A personal key, the other way, is kept for this tab only.
import { signal } from '@preact/signals'
import type { ApiError } from '../api/client'
import type { Me, Project } from '../api/types'

const keyName = 'guidon.key'

export type State = 'unknown' | 'out' | 'in' | 'failed' // failed: the server did not say who it is
export const state = signal<State>('unknown')
export const failure = signal<ApiError | null>(null) // why state is failed
export const me = signal<Me | null>(null)
export const projects = signal<Project[]>([])
let csrf = ''

export function personalKey(): string { return sessionStorage.getItem(keyName) ?? '' }

export function usePersonalKey(key: string): void {
  if (key) sessionStorage.setItem(keyName, key)
  else sessionStorage.removeItem(keyName)
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
  usePersonalKey('')
  csrf = ''
  me.value = null
  projects.value = []
  state.value = 'out'
}

// safeNext returns where to go after the sign-in: a path of this server, or the start.
export function safeNext(next: string | null): string {
  // eslint-disable-next-line no-control-regex
  return next && /^\/(?![/\\])[^\\\u0000-\u001f\u007f]*$/.test(next) ? next : '/'
}
