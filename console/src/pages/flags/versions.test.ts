import { describe, expect, it } from 'vitest'
import { versionAt } from './versions'

const time = (n: number) => new Date(Date.UTC(2026, 0, 1) + n * 60_000).toISOString()

describe('versionAt', () => {
  const reader = (gone = 0) => {
    const reads: number[] = []
    return { reads, read: (version: number) => { reads.push(version); return Promise.resolve(version > gone ? { version, updated_at: time(version) } : undefined) } }
  }
  it('reads one version if the hint is right', async () => {
    const { reads, read } = reader()
    expect((await versionAt(time(7), 7, 9, read)).version).toBe(7)
    expect(reads).toEqual([7])
  })
  it('finds every version from every hint, and never asks for version 0', async () => {
    for (let wanted = 1; wanted <= 9; wanted++) {
      for (let hint = -3; hint <= 12; hint++) {
        const { reads, read } = reader()
        expect((await versionAt(time(wanted), hint, 9, read)).version).toBe(wanted)
        expect(Math.min(...reads)).toBeGreaterThan(0)
      }
    }
  })
  it('finds a version after those that are not kept', async () => { expect((await versionAt(time(6), 2, 9, reader(5).read)).version).toBe(6) })
  it('fails for a time without a version', async () => { await expect(versionAt(time(2.5), 2, 9, reader().read)).rejects.toThrow('not kept') })
})
