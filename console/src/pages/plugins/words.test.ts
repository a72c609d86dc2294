import { describe, expect, it } from 'vitest'
import type { PluginInstance } from '../../api/types'
import { rateOf, rateText, stateOf, waits } from './words'

const sink = (fields: object, delivery: object | null = null): PluginInstance => ({ name: 'a', kind: 'sink', use: 'file', required: false, state: 'ready', since: '', restarts: 0, delivery, ...fields }) as PluginInstance

describe('stateOf', () => {
  it('names what matters most', () => {
    expect(stateOf(sink({}))).toEqual({ word: 'Ready', tone: 'ok' })
    expect(stateOf(sink({}, { state: 'idle', paused: { at: '', reason: '' } })).word).toBe('Paused')
    expect(stateOf(sink({ state: 'quarantined' }, { state: 'idle', paused: { at: '', reason: '' } }))).toEqual({ word: 'Quarantined', tone: 'bad' })
    expect(stateOf(sink({ state: 'handshaken' })).word).toBe('Starting')
    expect(stateOf(sink({}, { state: 'retrying' }))).toEqual({ word: 'Retrying', tone: 'warn' })
    expect(stateOf(sink({}, { state: 'not_flushing' })).word).toBe('Not flushing')
  })
  it('knows who waits for the operator', () => {
    expect(waits(sink({ state: 'misconfigured' }))).toBe(true)
    expect(waits(sink({ state: 'degraded', reason: 'upgrade_failed' }))).toBe(true)
    expect(waits(sink({ state: 'backoff' }))).toBe(false)
  })
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
