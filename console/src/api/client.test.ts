import { describe, expect, it } from 'vitest'
import { errorOf, fillPath, queryOf } from './client'
import { safeNext } from '../app/session'
import { countText, relativeTime } from '../ui/time'

describe('fillPath', () => {
  it('encodes parameters', () => { expect(fillPath('/api/x/{id}/y', { id: 'a/../b?c' })).toBe('/api/x/a%2F..%2Fb%3Fc/y/') })
  it('refuses an empty one, which would stand for the list', () => { expect(() => fillPath('/api/x/{id}', { id: '' })).toThrow() })
})
it('queryOf leaves out what is empty', () => { expect(queryOf({ a: 1, b: '', c: undefined, d: false, e: [1] })).toBe('?a=1&d=false&e=%5B1%5D') })
describe('errorOf', () => {
  it("has the server's own sentence", () => { expect(errorOf(400, '{"detail":"No.","code":"c","attr":"key"}')).toMatchObject({ message: 'No.', code: 'c', attr: 'key', status: 400 }) })
  it('copes with the page of a proxy', () => { expect(errorOf(502, '<html>').message).toContain('502') })
})
describe('safeNext', () => {
  it.each(['/console/project/1/flags?a=b#c', '/'])('takes %s', (path) => { expect(safeNext(path)).toBe(path) })
  it.each(['//evil.example', '/\\evil.example', 'https://evil.example', 'javascript:alert(1)', '/a\nb', '/a\\b', '', null])('refuses %j', (path) => { expect(safeNext(path)).toBe('/') })
})
describe('time', () => {
  const now = Date.UTC(2026, 0, 1)
  it.each([[0, 'just now'], [-45_000, '45 seconds ago'], [-3 * 60_000, '3 minutes ago'], [-26 * 3_600_000, 'yesterday'], [40 * 86_400_000, 'next month']])('%i ms', (ms, words) => { expect(relativeTime(now + ms, now)).toBe(words) })
  it('shortens large numbers', () => { expect([countText(9999), countText(1_234_567)]).toEqual(['9,999', '1.2M']) })
})
