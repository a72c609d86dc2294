// The client of the management API. Paths, parameters, bodies and answers have the types
// of api/openapi.yaml, so a page that asks for what the server does not have does not
// compile. It sends the session cookie with the CSRF token, or a personal key.
import type { paths } from './schema.gen'
import type { ApiErrorBody } from './types'
import { credentials, me, setCSRF, signedOut } from '../app/session'
import { parse } from './json'

type Verb = 'get' | 'post' | 'put' | 'patch' | 'delete'
type Operation<P extends keyof paths, V extends Verb> = NonNullable<paths[P][V]>
type JSONOf<R> = R extends { content: { 'application/json': infer T } } ? T : undefined
type Success<O> = O extends { responses: infer R }
  ? R extends { 200: infer A } ? JSONOf<A> : R extends { 201: infer A } ? JSONOf<A> : R extends { 202: infer A } ? JSONOf<A> : undefined
  : never
type PathOf<O> = O extends { parameters: { path: infer T } } ? { [K in keyof T]: string | number } : Record<never, never>
type QueryOf<O> = O extends { parameters: { query?: infer T } } ? T : never
type BodyOf<O> = O extends { requestBody?: { content: { 'application/json': infer T } } } ? T : never
export interface Options<O> {
  path?: PathOf<O>
  query?: QueryOf<O>
  body?: BodyOf<O>
  signal?: AbortSignal | undefined
  aside?: boolean // beside what the user does: a refusal does not sign the tab out
}

// ApiError is an answer of the server that refuses, with the server's own sentence as its
// message. status is 0 if the server was not reached.
export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string, readonly attr: string | null = null, readonly requestId: string | null = null) {
    super(message)
  }
  get conflict(): boolean { return this.status === 409 }
}

// fillPath puts the parameters into a path, each encoded.
export function fillPath(pattern: string, params: Record<string, string | number> = {}): string {
  const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name]
    if (value === undefined || value === '') throw new Error(`${pattern}: no ${name}`)
    return encodeURIComponent(value)
  })
  return path.endsWith('/') ? path : path + '/'
}

// queryOf returns the query with its question mark; undefined, null and empty values are left out.
export function queryOf(values: Record<string, unknown> = {}): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === null || value === '') continue
    query.set(name, typeof value === 'object' ? JSON.stringify(value) : String(value))
  }
  const text = query.toString()
  return text && '?' + text
}

// errorOf reads the error of an answer; one that is not the server's own (of a proxy)
// gets a sentence with its status.
export function errorOf(status: number, text: string, requestId: string | null = null): ApiError {
  try {
    const body = JSON.parse(text) as Partial<ApiErrorBody>
    if (typeof body.detail === 'string') return new ApiError(status, body.code ?? '', body.detail, body.attr ?? null, requestId)
  } catch { /* not JSON */ }
  return new ApiError(status, '', `The server answered with status ${status}.`, null, requestId)
}

// send sends one request and returns the decoded answer.
export async function send(method: string, url: string, body?: unknown, signal?: AbortSignal, aside = false, again = true): Promise<unknown> {
  const who = me.value?.id
  const headers: Record<string, string> = { Accept: 'application/json', ...credentials(method) }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  let answer: Response
  try {
    answer = await fetch(url, { method, headers, body: body === undefined ? null : JSON.stringify(body), signal: signal ?? null, credentials: 'same-origin', redirect: 'error' })
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') throw e
    throw new ApiError(0, 'unreachable', 'The server cannot be reached. Check that it runs, then try again.')
  }
  const text = await answer.text()
  if (answer.ok) return text ? parse(text) : undefined
  const error = errorOf(answer.status, text, answer.headers.get('X-Request-Id'))
  if (error.code === 'csrf_failed' && again) { // the session was made anew, in another tab
    await renew(who ?? (url.startsWith('/api/session') ? null : 0), aside)
    return send(method, url, body, signal, aside, false)
  }
  if (answer.status === 401 && !aside && !url.startsWith('/api/session')) signedOut()
  throw error
}

// renew takes the CSRF token of the session that the browser has now. If another user has
// signed in, in another tab, this one is signed out: it must not act as them. who is the user who
// has sent the request; null for a request to sign in.
async function renew(who: number | null, aside: boolean): Promise<void> {
  try {
    const session = (await send('GET', '/api/session')) as { csrf_token: string; user: { id: number; email: string } }
    if (who !== null && session.user.id !== who) {
      throw new ApiError(401, 'other_user', `${session.user.email} has signed in in this browser. Nothing was changed. Sign in again, or load the page again to go on as ${session.user.email}.`)
    }
    setCSRF(session.csrf_token)
  } catch (e) {
    if (e instanceof ApiError && e.status === 401 && !aside) signedOut()
    throw e
  }
}

function call<V extends Verb>(verb: V) {
  return <P extends keyof paths>(pattern: P, options: Options<Operation<P, V>> = {}): Promise<Success<Operation<P, V>>> => {
    const url = fillPath(pattern, options.path as Record<string, string | number>) + queryOf(options.query as Record<string, unknown>)
    return send(verb.toUpperCase(), url, options.body, options.signal, options.aside) as Promise<Success<Operation<P, V>>>
  }
}

export const api = { get: call('get'), post: call('post'), put: call('put'), patch: call('patch'), delete: call('delete') }
