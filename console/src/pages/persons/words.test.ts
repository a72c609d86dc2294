import { describe, expect, it } from 'vitest'
import type { Event, GroupType } from '../../api/types'
import { filtersOf, flagsByCohort, idsText, mergesOf, propertiesOf, typedName, typeWords } from './words'

describe('propertiesOf', () => {
  it('sorts by name, with those of client libraries last', () => {
    expect(propertiesOf({ $os: 'Linux', step10: 1, Step2: true, email: null }).map((p) => p.name)).toEqual(['email', 'Step2', 'step10', '$os'])
  })
  it('tells kinds apart, and folds what is long', () => {
    const [a, b, c, d, e] = propertiesOf({ a: 'x'.repeat(161), b: { c: [1, { d: 2 }] }, c: [], d: 0, e: false })
    expect(a).toMatchObject({ kind: 'text', long: true })
    expect(b).toMatchObject({ kind: 'object', long: true })
    expect(c).toMatchObject({ kind: 'list', text: '[]', long: false })
    expect(d).toMatchObject({ kind: 'number', text: '0' })
    expect(e).toMatchObject({ kind: 'yes-no', text: 'false' })
  })
  it('keeps names that objects have by birth', () => {
    expect(propertiesOf(JSON.parse('{"__proto__": 1, "constructor": "x"}') as Record<string, unknown>).map((p) => [p.name, p.text])).toEqual([['__proto__', '1'], ['constructor', 'x']])
  })
})

describe('filtersOf', () => {
  it('reads what it wrote', () => {
    const filters = [{ key: 'plan', type: 'person', operator: 'exact', value: 'pro' }]
    expect(filtersOf(JSON.stringify(filters))).toEqual(filters)
  })
  it.each([undefined, '', 'x', '{}', '[1, null, {"key": 2}, {"key": ""}]'])('takes %s for no filter', (text) => expect(filtersOf(text)).toEqual([]))
})

describe('typedName', () => {
  it.each([['ada@example.com', 'ada@example.com'], ['Ada Lovelace', 'Ada Lovelace'], ['Ada  L', 'delete'], ['x\ny', 'delete'], ['', 'delete'], [' ada', 'delete'], ['a\u202eb', 'delete'], ['x'.repeat(41), 'delete']])('of %j is %s', (name, want) => expect(typedName(name)).toBe(want))
})

describe('mergesOf', () => {
  const event = (event: string, distinct_id: string, timestamp: string, properties: object) => ({ uuid: timestamp, event, distinct_id, timestamp, properties }) as unknown as Event
  it('reads who was joined with whom', () => {
    expect(mergesOf([
      event('$identify', 'ada', '2026-01-01T00:00:00Z', { $anon_distinct_id: 'anon-1' }),
      event('$identify', 'ada', '2026-01-02T00:00:00Z', {}),
      event('$identify', 'ada', '2026-01-02T00:00:01Z', { $anon_distinct_id: 'ada' }),
      event('$create_alias', 'ada', '2026-01-03T00:00:00Z', { alias: 'ada-phone' }),
      event('$merge_dangerously', 'ada', '2026-01-04T00:00:00Z', { alias: 7 }),
    ]).map((m) => `${m.from} into ${m.into}`)).toEqual(['ada-phone into ada', 'anon-1 into ada'])
  })
})

it('names ids and types', () => {
  expect(idsText({ distinct_ids: [] })).toBe('no distinct id')
  expect(idsText({ distinct_ids: ['a'] })).toBe('a')
  expect(idsText({ distinct_ids: ['a', 'b', 'c'] })).toBe('a and 2 more')
  const type = { group_type: 'company', name_singular: null, name_plural: 'Companies' } as unknown as GroupType
  expect([typeWords(type, false), typeWords(type, true)]).toEqual(['company', 'Companies'])
})

describe('flagsByCohort', () => {
  const pick = (value: unknown, type = 'cohort') => ({ type, value })
  it('names a flag once for each cohort that it picks', () => {
    const a = { key: 'a', filters: { groups: [{ properties: [pick(3), pick('x', 'person')] }, { properties: [pick(3), pick(4)] }] } }
    const b = { key: 'b', filters: { groups: [{ properties: null }, { properties: [pick(4)] }] } }
    expect([...flagsByCohort([a, b, { filters: { groups: null } }])]).toEqual([[3, [a]], [4, [a, b]]])
  })
})
