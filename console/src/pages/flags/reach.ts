// How many people or groups a flag reaches, from the counts of its conditions.
import type { ConditionSet, Flag } from '../../api/types'
import { exactNumber, plural } from '../../ui/time'
import { percent } from './words'

export interface Reach { affected: number; total: number; estimated: boolean }
export interface Part { set: ConditionSet; by: number | null } // by: the index of the group type that it counts; null for people
export interface FlagReach { count: number; total: number; about: boolean; atMost: boolean }

// partsOf returns what can give a value of the flag: its conditions, and early access.
export function partsOf(flag: Pick<Flag, 'key' | 'filters'>): Part[] {
  const { groups, super_groups, feature_enrollment, aggregation_group_type_index: index } = flag.filters
  const access: ConditionSet[] = feature_enrollment ? [{ properties: [{ key: `$feature_enrollment/${flag.key}`, type: 'person', operator: 'exact', value: ['true'] }], rollout_percentage: 100 }] : super_groups ?? []
  return [...access.map((set) => ({ set, by: null })), ...(groups ?? []).map((set) => ({ set, by: set.aggregation_group_type_index ?? index ?? null }))]
}

// flagReach joins the counts of conditions, each times its share. Those of several conditions
// can be the same people, so their sum is the most that can be reached. A holdout takes some away.
export function flagReach(counted: { reach: Reach; share: number }[], heldOut = false): FlagReach {
  const total = Math.max(0, ...counted.map((c) => c.reach.total))
  const each = counted.map((c) => (c.reach.affected * c.share) / 100)
  const all = each.some((n) => n >= total && total > 0)
  return {
    count: Math.min(total, Math.round(each.reduce((a, b) => a + b, 0))), total,
    about: !all && counted.some((c) => c.reach.estimated || (c.share > 0 && c.share < 100 && c.reach.affected > 0)),
    atMost: heldOut || (!all && each.filter((n) => n > 0).length > 1),
  }
}

// reachText says whom a flag reaches, for each kind of what it counts.
export function reachText(flag: Pick<Flag, 'key' | 'filters'>, parts: Part[], reached: Reach[]): string {
  const kinds = [...new Set(parts.map((p) => p.by))]
  return kinds.map((by) => {
    const counted = parts.flatMap((p, i) => { const reach = reached[i]; return p.by === by && reach ? [{ reach, share: percent(p.set) }] : [] })
    const subject = by === null ? 'person' : 'group'
    const { count, total, about, atMost } = flagReach(counted, Boolean(flag.filters.holdout))
    return total === 0 ? `no ${subject} is known yet` : `${atMost ? 'up to ' : ''}${about ? 'about ' : ''}${countWords(count, total, subject)}`
  }).join(', and ')
}

// countWords returns "18 of 121 people (15%)".
export function countWords(count: number, total: number, subject = 'person'): string {
  const share = (100 * count) / total
  return `${exactNumber(count)} of ${plural(total, subject, subject === 'person' ? 'people' : undefined)} (${share > 0 && share < 1 ? 'under 1' : share > 99 && share < 100 ? 'over 99' : Math.round(share)}%)`
}

export function reachWords(r: Reach, subject = 'person'): string {
  return r.total === 0 ? `no ${subject} is known yet` : `${r.estimated ? 'about ' : ''}${countWords(r.affected, r.total, subject)}`
}
