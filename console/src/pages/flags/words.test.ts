import { expect, it } from 'vitest'
import { shadeOf } from './words'

it('gives each variant one color, and grey to off', () => {
  const variants = [{ key: 'control' }, { key: 'test' }] as never
  expect(['control', 'test', 'true', 'false', ''].map((answer) => shadeOf(variants, answer))).toEqual([0, 1, 0, 5, 5])
  expect(shadeOf(undefined, 'true')).toBe(0)
  expect(shadeOf(variants, 'former')).toBeLessThan(5)
  expect(shadeOf(variants, 'former')).toBe(shadeOf(variants, 'former'))
})
