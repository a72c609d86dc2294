import { describe, expect, it } from 'vitest'
import { bodyOf, changedParts, decideFor, draftOf, emptyDraft, filtersOf, jsonProblem, lines, merge, problems, spread, variantSum, type Draft } from './draft'

const draft = (changes: Partial<Draft>): Draft => ({ ...emptyDraft, key: 'new-nav', ...changes })

describe('bodyOf', () => {
  it('has only what differs', () => {
    expect(bodyOf(draft({ name: 'b' }), draft({ name: 'a' }))).toEqual({ name: 'b' })
  })
  it('has the whole filters if a part of them differs, with parts that the page does not know', () => {
    const rest = { aggregation_group_type_index: 1, future: true }
    expect(bodyOf(draft({ rest, variants: [{ key: 'a', rollout_percentage: 100 }] }), draft({ rest })).filters)
      .toEqual({ ...rest, groups: emptyDraft.groups, multivariate: { variants: [{ key: 'a', rollout_percentage: 100 }] }, payloads: {} })
  })
  it('drops payloads that are empty, or of variants that are gone', () => {
    expect(filtersOf(draft({ payloads: { true: ' ', old: '1' } })).payloads).toEqual({})
    expect(filtersOf(draft({ variants: [{ key: 'a', rollout_percentage: 100 }], payloads: { a: '1', true: '2' } })).payloads).toEqual({ a: '1' })
  })
})

describe('decideFor', () => {
  const person = { key: 'plan', type: 'person' as const, operator: 'exact', value: ['pro'] }
  const cohort = { key: 'id', type: 'cohort' as const, operator: 'in', value: 3 }
  const people = draft({ groups: [{ properties: [person, cohort], rollout_percentage: 50 }] })
  it('turns properties into those of groups, without cohorts', () => {
    const filters = filtersOf(decideFor(people, 2))
    expect(filters.aggregation_group_type_index).toBe(2)
    expect(filters.groups).toEqual([{ properties: [{ ...person, type: 'group', group_type_index: 2 }], rollout_percentage: 50 }])
  })
  it('turns them back', () => {
    const back = filtersOf(decideFor(decideFor(people, 2), null))
    expect('aggregation_group_type_index' in back).toBe(false)
    expect(back.groups).toEqual([{ properties: [person], rollout_percentage: 50 }])
  })
  it('is read from a flag', () => {
    expect(draftOf({ filters: { groups: [], aggregation_group_type_index: 1 } } as never).by).toBe(1)
  })
})

describe('merge', () => {
  const base = draft({ name: 'a', tags: [] })
  it('joins changes of different parts', () => {
    const m = merge(base, draft({ name: 'mine', tags: [] }), draft({ name: 'a', tags: ['theirs'] }))
    expect(m.clashes).toEqual([])
    expect([m.merged.name, m.merged.tags]).toEqual(['mine', ['theirs']])
  })
  it('reports a part that both changed', () => {
    expect(merge(base, draft({ name: 'mine' }), draft({ name: 'theirs' })).clashes).toEqual(['name'])
  })
  it('reports no part that both changed alike', () => {
    expect(merge(base, draft({ name: 'same' }), draft({ name: 'same' })).clashes).toEqual([])
  })
})

describe('variants', () => {
  it('spread sums to 100 for every number', () => {
    for (let n = 1; n <= 20; n++) expect(variantSum(spread(Array.from({ length: n }, (_, i) => ({ key: String(i) }))))).toBe(100)
  })
  it('sums without errors of floating point', () => {
    expect(variantSum([{ key: 'a', rollout_percentage: 33.3 }, { key: 'b', rollout_percentage: 33.3 }, { key: 'c', rollout_percentage: 33.4 }])).toBe(100)
  })
})

describe('problems', () => {
  it('has none for a good flag', () => { expect(problems(draft({}))).toEqual({}) })
  it.each([
    ['key', draft({ key: '' })], ['key', draft({ key: 'a b' })],
    ['variants', draft({ variants: [{ key: 'a', rollout_percentage: 99 }] })], ['variants', draft({ variants: [{ key: 'a', rollout_percentage: 50 }, { key: 'a', rollout_percentage: 50 }] })],
    ['payload-true', draft({ payloads: { true: '{' } })], ['group-0', draft({ groups: [{ properties: [{ key: '', value: ['a'] }] }] })],
    ['group-0', draft({ groups: [{ properties: [{ key: 'plan', operator: 'exact', value: [] }] }] })], ['group-0', draft({ groups: [{ properties: [{ key: 'plan', operator: 'icontains', value: '' }] }] })],
    ['group-0', draft({ groups: [{ properties: [{ key: 'age', operator: 'between', value: [1, ''] }] }] })], ['group-0', draft({ groups: [{ properties: [{ key: 'id', type: 'cohort', value: null }] }] })],
    ['group-0', draft({ groups: [{ properties: [], rollout_percentage: 250 }] })], ['group-0', draft({ groups: [{ properties: [], rollout_percentage: NaN }] })],
    ['special-0', draft({ special: { super_groups: [{ properties: [{ key: 'plan', operator: 'exact', value: [] }] }] } })], ['holdout', draft({ special: { holdout: { id: 1, exclusion_percentage: 101 } } })],
    ['variants', draft({ variants: [{ key: 'a', rollout_percentage: 150 }, { key: 'b', rollout_percentage: -50 }] })],
  ])('names %s', (id, d) => { expect(Object.keys(problems(d))).toEqual([id]) })
  it('needs no value for operators without one, and for those of plugins that may have none', () => {
    for (const filter of [{ key: 'plan', operator: 'is_set', value: null }, { key: 'time', operator: 'schedule/now', value: null }, { key: '3', type: 'flag' as const, operator: 'flag_evaluates_to', value: false }, { key: 'n', operator: 'exact', value: [0] }]) {
      expect(problems(draft({ groups: [{ properties: [filter] }] }))).toEqual({})
    }
  })
  it('leaves conditions as they were read to the server', () => {
    const read = draft({ groups: [{ properties: [{ key: 'plan', operator: 'exact', value: [] }] }] })
    expect(problems({ ...read, name: 'other' }, read)).toEqual({})
    expect(Object.keys(problems({ ...read, groups: [...read.groups, { properties: [] }] }, read))).toEqual(['group-0'])
  })
  it('takes empty text as no payload', () => { expect(jsonProblem('  ')).toBeNull() })
})

describe('words', () => {
  it('tells conditions in order', () => {
    expect(lines(draft({ groups: [{ properties: [{ key: 'plan', operator: 'exact', value: ['pro', 'team'] }], rollout_percentage: 25 }, { properties: [], rollout_percentage: 100, variant: 'a' }] }), 'groups'))
      .toEqual(['1. 25% of people where plan is pro or team', '2. everyone get a'])
  })
  it('changes nothing when nothing changed', () => { expect(changedParts(draft({}), draft({}))).toEqual([]) })
})
