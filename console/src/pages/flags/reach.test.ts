import { describe, expect, it } from 'vitest'
import type { ConditionSet } from '../../api/types'
import { flagReach, partsOf, reachText, type Reach } from './reach'

const reach = (affected: number, total = 121, estimated = false): Reach => ({ affected, total, estimated })
const everyone = (share: number): ConditionSet => ({ properties: [], rollout_percentage: share })

describe('flagReach', () => {
  it.each([
    ['the share of one condition', [{ reach: reach(36), share: 50 }], 18, true, false],
    ['a whole condition', [{ reach: reach(36), share: 100 }], 36, false, false],
    ['two conditions are a bound', [{ reach: reach(36), share: 50 }, { reach: reach(40), share: 100 }], 58, true, true],
    ['the sum is bounded by the total', [{ reach: reach(100), share: 100 }, { reach: reach(90), share: 100 }], 121, false, true],
    ['one condition for everyone is exact', [{ reach: reach(36), share: 50 }, { reach: reach(121), share: 100 }], 121, false, false],
    ['a share of 0 adds nothing', [{ reach: reach(36), share: 100 }, { reach: reach(121), share: 0 }], 36, false, false],
    ['an estimate', [{ reach: reach(36, 121, true), share: 100 }], 36, true, false],
    ['no condition', [], 0, false, false],
  ])('%s', (_, counted, count, about, atMost) => { expect(flagReach(counted)).toEqual({ count, total: counted.length ? 121 : 0, about, atMost }) })
  it('a holdout takes some away', () => { expect(flagReach([{ reach: reach(121), share: 100 }], true).atMost).toBe(true) })
})

describe('reachText', () => {
  const of = (filters: object, ...reached: Reach[]) => reachText({ key: 'a', filters } as never, partsOf({ key: 'a', filters } as never), reached)
  it('multiplies by the share', () => { expect(of({ groups: [everyone(50)] }, reach(36))).toBe('about 18 of 121 people (15%)') })
  it('bounds several conditions', () => { expect(of({ groups: [everyone(50), everyone(100)] }, reach(36), reach(40))).toBe('up to about 58 of 121 people (48%)') })
  it('counts people and groups apart', () => {
    expect(of({ groups: [everyone(100), { ...everyone(100), aggregation_group_type_index: 0 }] }, reach(36), reach(2, 3))).toBe('36 of 121 people (30%), and 2 of 3 groups (67%)')
  })
  it('counts early access', () => { expect(of({ groups: [everyone(0)], feature_enrollment: true }, reach(4), reach(121))).toBe('4 of 121 people (3%)') })
  it('says that no one is known', () => { expect(of({ groups: [everyone(50)] }, reach(0, 0))).toBe('no person is known yet') })
})
