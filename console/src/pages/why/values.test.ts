import { expect, test } from 'vitest'
import { fits, valueNames } from './values'

test('fits', () => {
  const values = [true, false, 'control', '!failed', 'on']
  const fitting = (wanted: string) => values.filter((v) => fits(v, wanted))
  expect(fitting('on')).toEqual([true])
  expect(fitting('off')).toEqual([false])
  expect(fitting('variant')).toEqual(['control', 'on'])
  expect(fitting('failed')).toEqual(['!failed'])
  expect(fitting('is on')).toEqual(['on'])
})

test('values to choose from', () => {
  const names = valueNames([{ key: 'a', value: 'test' }, { key: 'b', value: 'control' }, { key: 'c', value: '!failed' }, { key: 'd', value: true }], 'is gone')
  expect(Object.keys(names)).toEqual(['', 'on', 'off', 'variant', 'failed', 'is control', 'is test', 'is gone'])
})
