import { describe, expect, it } from 'vitest'
import { sparkPaths, sparkWords } from './spark'

describe('sparkline', () => {
  it('stacks series to the height of the highest stack', () => {
    const [a, b] = sparkPaths([{ name: 'on', values: [5, 0] }, { name: 'off', values: [5, 2] }], 20, 10)
    expect(a).toBe('M1.1 5h7.8v5h-7.8z')
    expect(b).toBe('M1.1 0h7.8v5h-7.8zM11.1 8h7.8v2h-7.8z')
  })
  it('shows one call of many', () => {
    const [a] = sparkPaths([{ name: 'on', values: [1, 100_000] }], 20, 10)
    expect(a).toContain('M1.1 9h7.8v1')
  })
  it('draws nothing for zeros and no numbers', () => {
    expect(sparkPaths([{ name: 'on', values: [0, 0] }], 20, 10)).toEqual([''])
    expect(sparkPaths([], 20, 10)).toEqual([])
  })
  it('says its numbers', () => {
    expect(sparkWords('Calls in 7 days', [{ name: 'true', values: [1, 2] }])).toBe('Calls in 7 days: 3')
    expect(sparkWords('Calls in 7 days', [{ name: 'true', values: [1, 2] }, { name: 'false', values: [4] }])).toBe('Calls in 7 days: 7 (true 3, false 4)')
    expect(sparkWords('Calls in 7 days', [])).toBe('Calls in 7 days: 0')
  })
})
