import { describe, expect, it } from 'vitest'
import { graphs, headline, newest, seriesOf, troubles, type Series } from './words'

const answer = (values: Record<string, (number | null)[]>): Series => ({
  node: { id: 'n', name: 'box', version: '1', started_at: '2026-11-23T00:00:00Z' }, from: '2026-11-23T12:00:00Z', step: 15,
  series: Object.entries(values).map(([name, v]) => ({ name, unit: 'seconds', values: v })),
})

describe('seriesOf', () => {
  const backlog = graphs.find((g) => g.title === 'Backlog')
  it('leaves out what the server does not have', () => {
    if (!backlog) throw new Error('no graph')
    expect(seriesOf(backlog, answer({ lag_worker: [0, null], lag_sinks: [null, null] }))).toEqual([{ name: 'processing', points: [[1795435200, 0], [1795435215, null]] }])
  })
})

describe('newest', () => {
  it('is the last known value', () => {
    expect(newest(answer({ cpu: [1, 2, null] }), 'cpu')).toBe(2)
    expect(newest(answer({ cpu: [null] }), 'cpu')).toBe(null)
    expect(newest(undefined, 'cpu')).toBe(null)
  })
})

describe('troubles', () => {
  it('has none on a server that works', () => {
    const found = troubles({ status: 'ready', journal: { state: 'ok' }, database: { state: 'ok' }, backup: { state: 'off', running: false }, plugins: { trouble: [] } }, answer({ disk_free: [50], disk_used: [50], lag_worker: [1] }))
    expect(found).toEqual([])
    expect(headline(found)).toMatch(/^All is well/)
  })
  it('has the failing parts with the fix', () => {
    const found = troubles({ status: 'not ready', not_ready: { journal: 'The journal takes no events.' } }, undefined)
    expect(found[0]?.what).toBe('journal: The journal takes no events.')
    expect(found[0]?.fix).toMatch(/disk/)
    expect(headline(found)).toBe('The server does not work as it should: 1 problem.')
  })
  it('says how many events were refused, and what helps', () => {
    const found = troubles({ status: 'ready' }, undefined, answer({ events_refused: [null, 4, 0], events_over_quota: [0, 1, 0], events_wrong_key: [0, 2, 0] }))
    expect(found.map((t) => t.what)).toEqual(['60 events were refused in the last hour.'])
    expect(found[0]?.fix).toMatch(/^15 over a quota: .* 30 without a valid project key: .* 15 for their body/)
    expect(troubles({ status: 'ready' }, undefined, answer({ events_refused: [0, null] }))).toEqual([])
  })
  it('ends an hour after the last refused event, and needs a hundredth of all', () => {
    const hour = Array<number>(240).fill(0)
    expect(troubles({ status: 'ready' }, undefined, answer({ events_refused: [1, ...hour.slice(1)] }))).toHaveLength(1)
    expect(troubles({ status: 'ready' }, undefined, answer({ events_refused: [1, ...hour] }))).toEqual([])
    expect(troubles({ status: 'ready' }, undefined, answer({ events_refused: [1], events_accepted: [99] }))).toHaveLength(1)
    expect(troubles({ status: 'ready' }, undefined, answer({ events_refused: [1], events_accepted: [101] }))).toEqual([])
  })
  it('warns of new dead letters, with a link to them', () => {
    const found = troubles({ status: 'ready' }, undefined, undefined, { sinks: { hook: 3, copy: 0 }, worker: 1 })
    expect(found.map((t) => [t.what, t.link?.path])).toEqual([
      ['hook refused 3 events in the last hour.', '/dead-letters?source=sink%2Fhook&time=1h'], ['1 event of this project could not be processed in the last hour.', '/dead-letters?source=worker&time=1h'],
    ])
    expect(headline(found)).toBe('The server works. 2 problems need attention.')
  })
  it('warns before the disk is full, and of plugins and backlogs', () => {
    const found = troubles({ status: 'degraded', plugins: { trouble: [{ name: 'copy', state: 'backoff', trouble: 'exit 1' }] } }, answer({ disk_free: [5], disk_used: [95], lag_worker: [90] }))
    expect(found.map((t) => t.tone)).toEqual(['warn', 'warn', 'warn'])
    expect(headline(found)).toBe('The server works. 3 problems need attention.')
  })
})
