import { describe, expect, it } from 'vitest'
import { align, isEmpty, isolated, pointTime, smallestStep, stackUp, summary, tickText, total, valueText } from './data'

describe('align', () => {
  it('puts all series on one axis', () => {
    expect(align([{ name: 'a', points: [[10, 1], [30, null]] }, { name: 'b', points: [[20, 2], [30, 3]] }]))
      .toEqual({ times: [10, 20, 30], rows: [[1, undefined, null], [undefined, 2, 3]] })
  })
  it('has nothing without series', () => { expect(align([])).toEqual({ times: [], rows: [] }) })
})

describe('stackUp', () => {
  it('adds the rows before, with gaps as 0', () => { expect(stackUp([[1, null, 2], [3, 4, undefined]])).toEqual([[1, 0, 2], [4, 4, 2]]) })
})

it('total adds up without gaps', () => { expect([total([1, null, 2.5, undefined]), total([])]).toEqual([3.5, 0]) })

describe('isolated', () => {
  it('finds values between gaps', () => { expect(isolated([1, null, 2, 3, null, 4])).toEqual([0, 5]) })
  it('does not count a time that another series has', () => { expect(isolated([1, undefined, 2, null, undefined, 5, undefined, null])).toEqual([5]) })
})

describe('isEmpty', () => {
  it('sees gaps as nothing and 0 as a value', () => {
    expect(isEmpty([{ name: 'a', points: [[1, null]] }])).toBe(true)
    expect(isEmpty([{ name: 'a', points: [[1, 0]] }])).toBe(false)
  })
})

describe('valueText', () => {
  it.each([
    [0, 'bytes', '0 B'], [1023, 'bytes', '1,023 B'], [1536, 'bytes', '1.5 KiB'], [5 * 2 ** 30, 'bytes', '5 GiB'],
    [0, 'seconds', '0 s'], [0.00025, 'seconds', '250 µs'], [0.001, 'seconds', '1 ms'], [0.0123, 'seconds', '12.3 ms'], [90, 'seconds', '1.5 min'], [7200, 'seconds', '2 h'], [172_800, 'seconds', '2 d'],
    [12.345, 'per second', '12.3/s'], [12_345, 'per second', '12.3K/s'], [42.5, 'percent', '42.5 %'], [1_250_000, 'number', '1.3M'], [9999, 'number', '9,999'],
  ] as const)('says %s %s as %s', (value, unit, text) => { expect(valueText(value, unit)).toBe(text) })
  it('has a dash for a gap', () => { expect(valueText(null, 'bytes')).toBe('–'); expect(valueText(Number.NaN, 'number')).toBe('–') })
})

describe('times', () => {
  const noon = Date.UTC(2026, 10, 23, 12, 0, 30) / 1000
  it('names the zone', () => {
    expect(pointTime(noon, 15, 'UTC')).toBe('23 Nov, 12:00:30 UTC')
    expect(pointTime(noon, 60, 'Europe/Berlin')).toMatch(/^23 Nov, 13:00 (CET|GMT\+1)$/)
    expect(pointTime(noon, 86_400, 'UTC')).toBe('23 Nov 2026')
  })
  it('has the day at midnight', () => {
    expect(tickText(noon, 60, 'UTC')).toBe('12:00')
    expect(tickText(Date.UTC(2026, 10, 23) / 1000, 3600, 'UTC')).toBe('23 Nov')
    expect(tickText(noon, 86_400, 'UTC')).toBe('23 Nov')
  })
  it('finds the step', () => { expect(smallestStep([0, 60, 75])).toBe(15); expect(smallestStep([5])).toBe(60) })
})

describe('summary', () => {
  it('says the newest and the highest', () => {
    expect(summary('Requests', [{ name: 'capture', points: [[1, 30], [2, 12], [3, null]] }, { name: 'decide', points: [] }], 'per second')).toBe('Requests: capture 12/s, at most 30/s; decide no values')
    expect(summary('Requests', [], 'number')).toBe('Requests: no values')
  })
})
