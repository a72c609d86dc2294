import { describe, expect, it } from 'vitest'
import type { PluginInstance } from '../../api/types'
import { deadLettersPath, newerConfig, rateOf, rateText, refusedOf, stateOf, waits } from './words'

const sink = (fields: object, delivery: object | null = null): PluginInstance => ({ name: 'a', kind: 'sink', use: 'file', required: false, state: 'ready', since: '', restarts: 0, delivery, ...fields }) as PluginInstance

describe('stateOf', () => {
  it('names what matters most', () => {
    expect(stateOf(sink({}))).toEqual({ word: 'Ready', tone: 'ok' })
    expect(stateOf(sink({}, { state: 'idle', paused: { at: '', reason: '' } })).word).toBe('Paused')
    expect(stateOf(sink({ state: 'quarantined' }, { state: 'idle', paused: { at: '', reason: '' } }))).toEqual({ word: 'Quarantined', tone: 'bad' })
    expect(stateOf(sink({ state: 'handshaken' })).word).toBe('Starting')
    expect(stateOf(sink({}, { state: 'retrying' }))).toEqual({ word: 'Retrying', tone: 'warn' })
    expect(stateOf(sink({}, { state: 'not_flushing' })).word).toBe('Not flushing')
    expect(stateOf(sink({}, { state: 'idle' }), 2)).toEqual({ word: 'Refuses events', tone: 'warn' })
    expect(stateOf(sink({ state: 'backoff' }), 2).tone).toBe('bad')
  })
  it('knows who waits for the operator', () => {
    expect(waits(sink({ state: 'misconfigured' }))).toBe(true)
    expect(waits(sink({ state: 'degraded', reason: 'upgrade_failed' }))).toBe(true)
    expect(waits(sink({ state: 'backoff' }))).toBe(false)
  })
})

it('counts what sinks refused', () => {
  const instances = [{ name: 'hook', series: [{ name: 'lag_seconds', unit: 'seconds', values: [9] }, { name: 'dead_letters', unit: 'number', values: [1, null, 2] }] }, { name: 'copy', series: [] }]
  expect(refusedOf({ instances } as unknown as Parameters<typeof refusedOf>[0])).toEqual({ hook: 3, copy: 0 })
  expect(refusedOf(undefined)).toEqual({})
  expect(deadLettersPath('sink/a b', '1h')).toBe('/dead-letters?source=sink%2Fa+b&time=1h')
})

it('upgrades by the checksum in the config file, if there is one', () => {
  const file = { use: '/opt/p', sha256: 'a', installed_sha256: 'b' }
  expect(newerConfig(sink(file))).toBe('- name: a\n  use: /opt/p\n  sha256: b')
  expect([newerConfig(sink({ ...file, unverified: true })), newerConfig(sink({ ...file, reason: 'upgrade_failed' }))]).toEqual(['', ''])
})

describe('rates', () => {
  it('counts from zero after a restart of the server', () => {
    expect(rateOf([{ at: 0, delivered: 100, lag: 0 }, { at: 1000, delivered: 150, lag: 0 }, { at: 2000, delivered: 10, lag: 0 }])).toBe(30)
    expect(rateOf([{ at: 0, delivered: 100, lag: 0 }])).toBeUndefined()
  })
  it('are short', () => {
    expect(rateText(0)).toBe('0 events/s')
    expect(rateText(2.34)).toBe('2.3 events/s')
  })
})
