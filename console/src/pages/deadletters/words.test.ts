import { describe, expect, it } from 'vitest'
import { editText, filterOf, isEmpty, outcome, readEdit, replayState, sourceWords } from './words'

describe('filterOf', () => {
  const now = Date.parse('2026-05-01T10:00:42Z')
  it('takes what the URL has, and nothing else', () => {
    expect(filterOf({ search: 'disk', source: 'sink/lines', tab: 'x', page: '2' }, now)).toEqual({ search: 'disk', source: 'sink/lines' })
  })
  it('counts times from the minute, so that asking again asks the same', () => {
    expect(filterOf({ time: '1h' }, now)).toEqual({ after: '2026-05-01T09:00:00.000Z' })
    expect(filterOf({ time: '1h' }, now + 10_000)).toEqual({ after: '2026-05-01T09:00:00.000Z' })
    expect(filterOf({ time: 'soon' }, now)).toEqual({})
  })
  it('knows when it takes all', () => {
    expect(isEmpty(filterOf({ page: '3' }, now))).toBe(true)
    expect(isEmpty(filterOf({ code: 'x' }, now))).toBe(false)
  })
})

describe('readEdit', () => {
  const payload = { uuid: 'u', project_id: 1, event: 'paid', distinct_id: 'ada', timestamp: '2026-05-01T10:00:00Z', properties: { n: 1, list: [1, 2] }, received_at: 'r' }
  it('finds nothing changed in its own text', () => expect(readEdit(payload, editText(payload))).toEqual({ changes: {} }))
  it('takes only what changed', () => {
    expect(readEdit(payload, editText({ ...payload, distinct_id: 'grace' }))).toEqual({ changes: { distinct_id: 'grace' } })
    expect(readEdit(payload, editText({ ...payload, properties: {} }))).toEqual({ changes: { properties: {} } })
  })
  it('refuses a number that it would round', () => {
    const text = (n: string) => editText(payload).replace('"n": 1', `"n": ${n}`)
    expect(readEdit(payload, text('9007199254740991'))).toEqual({ changes: { properties: { n: 9007199254740991, list: [1, 2] } } })
    expect(readEdit(payload, text('9007199254740993'))).toHaveProperty('error', expect.stringContaining('rounded'))
    expect(readEdit(payload, text('"9007199254740993"'))).toHaveProperty('changes')
  })
  it.each(['{', '[]', 'null', '"x"', '{"event": "paid"}', '{"event":"paid","distinct_id":"ada","timestamp":"x","properties":{},"uuid":"other"}'])('refuses %s', (text) => expect(readEdit(payload, text)).toHaveProperty('error'))
})

it('says what happened', () => {
  expect(outcome({ replayed: 1200, failed: 0, waiting: 0 })).toBe('1,200 replayed')
  expect(outcome({ replayed: 0, failed: 2, waiting: 3 })).toBe('0 replayed, 2 failed again, 3 waiting')
  expect([sourceWords('worker'), sourceWords('sink/lines'), sourceWords('notifier/x')]).toEqual(['worker', 'lines', 'notifier/x'])
  expect(replayState({ replay_waiting: true, replay_error: 'x' })).toBe('waiting')
  expect(replayState({ replay_waiting: false, replay_error: 'x' })).toBe('failed')
  expect(replayState({ replay_waiting: false, replay_error: '' })).toBe('none')
})
