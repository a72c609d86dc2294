import { expect, test } from 'vitest'
import { assumed, entered, matches, overridesOf, overridesText, valueNames } from './values'

test('matches', () => {
  const values = [true, false, 'control', '!failed', 'on']
  const matching = (wanted: string) => values.filter((v) => matches(v, wanted))
  expect(matching('on')).toEqual([true])
  expect(matching('off')).toEqual([false])
  expect(matching('variant')).toEqual(['control', 'on'])
  expect(matching('failed')).toEqual(['!failed'])
  expect(matching('is on')).toEqual(['on'])
})

test('values to choose from', () => {
  const names = valueNames([{ key: 'a', value: 'test' }, { key: 'b', value: 'control' }, { key: 'c', value: '!failed' }, { key: 'd', value: true }], 'is gone')
  expect(Object.keys(names)).toEqual(['', 'on', 'off', 'variant', 'failed', 'is control', 'is test', 'is gone'])
})

test('overrides in a URL', () => {
  const overrides = [{ of: '', name: 'plan', value: 'pro' }, { of: 'company', name: 'seats', value: '5' }]
  expect(overridesOf(overridesText([...overrides, { of: '', name: '', value: 'x' }]))).toEqual(overrides)
  for (const text of ['', '{', '{}', '[1]', '[["a"]]', '[[1,2,3]]']) expect(overridesOf(text)).toEqual([])
  expect(overridesText([])).toBe('')
})

test('assumed properties', () => {
  const overrides = [{ of: '', name: 'age', value: '5' }, { of: '', name: 'plan', value: 'pro' }, { of: 'company', name: 'vip', value: 'true' }, { of: 'team', name: 'x', value: '1' }]
  expect(assumed(overrides, { company: 'acme' })).toEqual({ properties: { age: 5, plan: 'pro' }, groupProperties: { company: { vip: true } } })
})

test('a stored value as it is typed', () => {
  for (const value of ['pro', '5', 'true', '"x"', 5, true, null, { a: 1 }, '']) {
    expect(assumed([{ of: '', name: 'p', value: entered(value) }], {}).properties.p).toEqual(value)
  }
})
