import { expect, it } from 'vitest'
import { leave, samePage } from './guard'

it.each([['/a/1', '/a/1?tab=usage', true], ['/a/1/', '/a/1#x', true], ['/a/1', '/a/2', false], ['/a/1', '/a', false]])('samePage %s %s', (a, b, same) => { expect(samePage(a, b)).toBe(same) })
it('goes at once without unsaved changes', () => {
  let gone = false
  leave('/elsewhere', () => { gone = true })
  expect(gone).toBe(true)
})
