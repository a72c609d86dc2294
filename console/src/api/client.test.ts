import { afterEach, describe, expect, it, vi } from 'vitest'
import { effect } from '@preact/signals'
import { errorOf, fillPath, queryOf, send } from './client'
import { inexact, parse, wasRounded } from './json'
import { begin } from '../app/begin'
import { keyed, me, safeNext, setCSRF, setHere, state, usePersonalKey } from '../app/session'
import type { Me } from './types'
import { clockTime, countText, relativeTime } from '../ui/time'

describe('fillPath', () => {
  it('encodes parameters', () => { expect(fillPath('/api/x/{id}/y', { id: 'a/../b?c' })).toBe('/api/x/a%2F..%2Fb%3Fc/y/') })
  it('refuses an empty one, which would stand for the list', () => { expect(() => fillPath('/api/x/{id}', { id: '' })).toThrow() })
})
it('queryOf leaves out what is empty', () => { expect(queryOf({ a: 1, b: '', c: undefined, d: false, e: [1] })).toBe('?a=1&d=false&e=%5B1%5D') })
describe('errorOf', () => {
  it("has the server's own sentence", () => { expect(errorOf(400, '{"detail":"No.","code":"c","attr":"key"}')).toMatchObject({ message: 'No.', code: 'c', attr: 'key', status: 400 }) })
  it('copes with the page of a proxy', () => { expect(errorOf(502, '<html>').message).toContain('502') })
})
describe('numbers', () => {
  it.each(['[9007199254740993]', '{"a":-9007199254740993}', '{"a":12345678901234567890}', '1e999', '0.12345678901234567890'])('%s is rounded', (text) => { expect(inexact(text)).toBe(true) })
  it.each(['[9007199254740991]', '"9007199254740993"', '{"a\\"9007199254740993":1}', '0.1', '33.333333333333336', '1.5e3', '{"t":"2026-01-01T00:00:00.000000Z","n":-12}'])('%s is not', (text) => { expect(inexact(text)).toBe(false) })
  it('is remembered of an answer', () => { expect([wasRounded(parse('{"a":9007199254740993}') as object), wasRounded(parse('{"a":1}') as object)]).toEqual([true, false]) })
})
describe('send', () => {
  const asked: string[] = []
  const serve = (answers: [number, unknown][]) => {
    asked.length = 0
    vi.stubGlobal('fetch', (url: string, options: RequestInit) => {
      asked.push(`${options.method} ${url}`)
      const [status, body] = answers.shift() ?? [500, {}]
      return status ? Promise.resolve(new Response(JSON.stringify(body), { status })) : Promise.reject(new TypeError('refused'))
    })
  }
  const kept = new Map<string, string>()
  const storage = { getItem: (k: string) => kept.get(k) ?? null, setItem: (k: string, v: string) => kept.set(k, v), removeItem: (k: string) => kept.delete(k) }
  vi.stubGlobal('sessionStorage', storage)
  vi.stubGlobal('localStorage', storage)
  const stale = [403, { detail: 'No.', code: 'csrf_failed' }] as [number, unknown]
  const signIn = () => { me.value = { id: 1 } as Me; state.value = 'in'; setCSRF('old') }
  afterEach(() => { usePersonalKey('') })
  it('repeats a change once with the token of a new session of the same user', async () => {
    signIn()
    serve([stale, [200, { csrf_token: 'new', user: { id: 1, email: 'a@b.c' } }], [200, { ok: true }]])
    expect(await send('PATCH', '/x', {})).toEqual({ ok: true })
    expect(asked).toEqual(['PATCH /x', 'GET /api/session', 'PATCH /x'])
  })
  it('does not repeat a change as another user', async () => {
    signIn()
    serve([stale, [200, { csrf_token: 'new', user: { id: 2, email: 'a@b.c' } }]])
    await expect(send('PATCH', '/x', {})).rejects.toMatchObject({ code: 'other_user' })
    expect([asked.length, state.value]).toEqual([2, 'out'])
    serve([stale, [200, { csrf_token: 'new', user: { id: 2, email: 'a@b.c' } }]])
    await expect(send('PATCH', '/x', {})).rejects.toMatchObject({ code: 'other_user' }) // from a dialog that is still open
  })
  it('says what is refused beside the work, and leaves the user in', async () => {
    signIn()
    serve([stale, [200, { csrf_token: 'new', user: { id: 2, email: 'a@b.c' } }]])
    await expect(send('POST', '/x', {}, undefined, true)).rejects.toMatchObject({ code: 'other_user' })
    serve([[401, { detail: 'No.', code: 'not_authenticated' }]])
    await expect(send('POST', '/x', {}, undefined, true)).rejects.toMatchObject({ message: 'No.' })
    expect(state.value).toBe('in')
  })
  it('begin asks for the session alone where nobody was signed in', async () => {
    state.value = 'unknown'
    setHere(false)
    serve([[401, {}]])
    await begin()
    expect([state.value, asked]).toEqual(['out', ['GET /api/session']])
  })
  it.each([true, false])('begin has the token before the pages send anything (signed in before: %s)', async (before) => {
    state.value = 'unknown'
    setHere(before)
    let answer = () => {}
    const held = new Promise<void>((resolve) => { answer = resolve })
    const tokens: (string | undefined)[] = []
    vi.stubGlobal('fetch', async (url: string, options: RequestInit) => {
      if (options.method === 'POST') tokens.push((options.headers as Record<string, string>)['X-CSRF-Token'])
      if (url.startsWith('/api/session')) await held // slower than all others
      return new Response(JSON.stringify(url.startsWith('/api/session') ? { csrf_token: 'late' } : { id: 1, organization: { id: 'o' }, results: [] }))
    })
    const stop = effect(() => { if (state.value === 'in') void send('POST', '/x', {}) }) // a page
    const begun = begin()
    await new Promise((resolve) => { setTimeout(resolve, 20) })
    expect([state.value, tokens]).toEqual(['unknown', []])
    answer()
    await begun
    stop()
    expect([state.value, tokens]).toEqual(['in', ['late']])
  })
  it('remembers that a key was refused, whatever is refused after it', async () => {
    signIn()
    usePersonalKey('phx_1')
    serve([[401, {}], [401, {}]])
    await Promise.allSettled([send('GET', '/x'), send('GET', '/y')])
    expect([state.value, keyed.value]).toEqual(['out', true])
  })
  it.each([[0, 'failed', 'phx_1'], [503, 'failed', 'phx_1'], [401, 'out', '']])('begin with status %i: %s', async (status, at, key) => {
    state.value = 'unknown'
    usePersonalKey('phx_1')
    serve([[status, {}], [status, {}]])
    await begin()
    expect([state.value, kept.get('guidon.key') ?? '']).toEqual([at, key])
  })
})
describe('safeNext', () => {
  it.each(['/console/project/1/flags?a=b#c', '/'])('takes %s', (path) => { expect(safeNext(path)).toBe(path) })
  it.each(['//evil.example', '/\\evil.example', 'https://evil.example', 'javascript:alert(1)', '/a\nb', '/a\\b', '', null])('refuses %j', (path) => { expect(safeNext(path)).toBe('/') })
})
describe('time', () => {
  const now = Date.UTC(2026, 0, 1)
  it.each([[0, 'just now'], [-45_000, '45 seconds ago'], [-3 * 60_000, '3 minutes ago'], [-26 * 3_600_000, 'yesterday'], [40 * 86_400_000, 'next month']])('%i ms', (ms, words) => { expect(relativeTime(now + ms, now)).toBe(words) })
  it('shows the date of another day', () => {
    const noon = new Date(2026, 0, 2, 12, 5, 9)
    expect([clockTime(noon, noon.getTime()), clockTime(noon, noon.getTime() + 86_400_000)]).toEqual(['12:05:09', '2 Jan, 12:05:09'])
  })
  it('shortens large numbers', () => { expect([countText(9999), countText(1_234_567)]).toEqual(['9,999', '1.2M']) })
})
