// Which version of a flag was made at a time.
import type { Flag } from '../../api/types'

type Version = Pick<Flag, 'version' | 'updated_at'>

// versionAt returns the version that was made at a time. It reads the version that hint
// names first, then halves what is left: later versions were made later.
export async function versionAt<V extends Version>(at: string, hint: number, newest: number, read: (version: number) => Promise<V | undefined>): Promise<V> {
  const wanted = Date.parse(at)
  let [low, high] = [1, newest]
  let next = hint
  while (low <= high) {
    const number = Math.min(Math.max(next, low), high)
    const version = await read(number)
    if (version?.updated_at === at) return version
    if (version && Date.parse(version.updated_at ?? '') > wanted) high = number - 1
    else low = number + 1 // older, or not kept
    next = Math.floor((low + high) / 2)
  }
  throw new Error('This version is not kept.')
}
