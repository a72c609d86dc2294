// A flag while it is being edited: pure functions from and to the API, and between.
import type { ConditionSet, Filters, Flag, FlagWrite, PropertyFilter, Variant } from '../../api/types'
import { isShare, shareProblem } from './percent'
import { filterProblem, setWords } from './words'

export interface Draft {
  key: string
  name: string
  active: boolean
  tags: string[]
  continuity: boolean
  runtime: Flag['evaluation_runtime']
  remote: boolean
  by: number | null // the index of the group type that it is decided for; null for people
  groups: ConditionSet[]
  variants: Variant[]
  payloads: Record<string, string>
  special: Special
  rest: Filters // parts of the filters that the page does not edit
}
// Special are the parts of the filters that come before the conditions, as they were read.
export type Special = { [K in 'super_groups' | 'feature_enrollment' | 'holdout']?: Filters[K] | undefined }
export type Part = Exclude<keyof Draft, 'rest'>
export const parts: Part[] = ['key', 'name', 'active', 'tags', 'by', 'groups', 'variants', 'payloads', 'special', 'continuity', 'runtime', 'remote']
export const partWords: Record<Part, string> = {
  key: 'Key', name: 'Description', active: 'State', tags: 'Tags', by: 'Decided for', groups: 'Conditions', variants: 'Variants', payloads: 'Payloads', special: 'Early access and holdout',
  continuity: 'Kept after sign-in', runtime: 'Clients', remote: 'Remote config',
}

export const emptyDraft: Draft = { key: '', name: '', active: false, tags: [], continuity: false, runtime: 'all', remote: false, by: null, groups: [{ properties: [], rollout_percentage: 100 }], variants: [], payloads: {}, special: {}, rest: {} }

export function draftOf(flag: Flag): Draft {
  const { groups, multivariate, payloads, super_groups, feature_enrollment, holdout, aggregation_group_type_index, ...rest } = flag.filters
  const special: Special = { super_groups, feature_enrollment, holdout } // undefined parts are not sent
  const kept: Record<string, string> = {}
  for (const [name, text] of Object.entries(payloads ?? {})) kept[name] = typeof text === 'string' ? text : JSON.stringify(text)
  return {
    key: flag.key, name: flag.name, active: flag.active, tags: flag.tags, continuity: flag.ensure_experience_continuity, runtime: flag.evaluation_runtime,
    remote: flag.is_remote_configuration ?? false, by: aggregation_group_type_index ?? null, groups: groups ?? [], variants: multivariate?.variants ?? [], payloads: kept, special, rest: rest as Filters,
  }
}

// emptyFilter is one to fill in, of a person or of a group.
export function emptyFilter(by: number | null | undefined): PropertyFilter {
  return { key: '', operator: 'exact', value: [], ...(typeof by === 'number' ? { type: 'group', group_type_index: by } : { type: 'person' }) }
}

function without<T extends object>(o: T, name: keyof T): T { return Object.fromEntries(Object.entries(o).filter(([k]) => k !== name)) as T }

// decideFor returns the draft decided for the groups of a type, or for people. Properties are
// those of the other then; filters by cohorts, which hold people, are left out for groups.
export function decideFor(d: Draft, by: number | null): Draft {
  const turn = (f: PropertyFilter): PropertyFilter => {
    if (f.type === 'flag' || f.type === 'cohort') return f
    return by === null ? { ...without(f, 'group_type_index'), type: 'person' } : { ...f, type: 'group', group_type_index: by }
  }
  const groups = d.groups.map((g) => ({ ...without(g, 'aggregation_group_type_index'), properties: (g.properties ?? []).filter((f) => by === null || f.type !== 'cohort').map(turn) }))
  return { ...d, by, groups }
}

export function filtersOf(d: Draft): Filters {
  return { ...d.rest, ...(d.by !== null && { aggregation_group_type_index: d.by }), ...d.special as Filters, groups: d.groups, multivariate: d.variants.length ? { variants: d.variants } : null, payloads: keptPayloads(d) }
}

// keptPayloads leaves out empty payloads and those of variants that are gone.
export function keptPayloads(d: Draft): Record<string, string> {
  const names = new Set(d.variants.length ? d.variants.map((v) => v.key) : ['true'])
  return Object.fromEntries(Object.entries(d.payloads).filter(([name, text]) => names.has(name) && text.trim() !== ''))
}

// forEveryone reports whether a condition gives everyone a value.
export function forEveryone(d: Draft): boolean { return d.groups.some((g) => !g.properties?.length && (g.rollout_percentage ?? 100) === 100) }

export function same(a: unknown, b: unknown): boolean { return JSON.stringify(a) === JSON.stringify(b) }

function value(d: Draft, part: Part): unknown { return part === 'payloads' ? keptPayloads(d) : d[part] }

export function changedParts(from: Draft, to: Draft): Part[] { return parts.filter((p) => !same(value(from, p), value(to, p))) }

// bodyOf returns the fields to send: those that differ from the flag that was read.
export function bodyOf(to: Draft, from?: Draft): FlagWrite {
  const changed = new Set(from ? changedParts(from, to) : parts)
  const body: FlagWrite = {}
  if (changed.has('key')) body.key = to.key
  if (changed.has('name')) body.name = to.name
  if (changed.has('active')) body.active = to.active
  if (changed.has('tags')) body.tags = to.tags
  if (changed.has('continuity')) body.ensure_experience_continuity = to.continuity
  if (changed.has('runtime')) body.evaluation_runtime = to.runtime
  if (changed.has('remote')) body.is_remote_configuration = to.remote
  if (['by', 'groups', 'variants', 'payloads', 'special'].some((p) => changed.has(p as Part))) body.filters = filtersOf(to)
  return body
}

export interface Merge { merged: Draft; clashes: Part[] }

// merge joins two changes of the same flag. A part that both changed differently is a
// clash; merged has mine there.
export function merge(base: Draft, mine: Draft, theirs: Draft): Merge {
  const merged: Draft = { ...theirs, rest: theirs.rest }
  const clashes: Part[] = []
  const put = <K extends Part>(part: K) => { merged[part] = mine[part] }
  for (const part of changedParts(base, mine)) {
    put(part)
    if (!same(base[part], theirs[part]) && !same(mine[part], theirs[part])) clashes.push(part)
  }
  return { merged, clashes }
}

// lines describes a part for people, one line each, for a comparison.
export function lines(d: Draft, part: Part): string[] {
  switch (part) {
    case 'active': return [d.active ? 'on' : 'off']
    case 'tags': return d.tags.length ? [d.tags.join(', ')] : ['none']
    case 'by': return [d.by === null ? 'people' : `groups of type ${d.by}`]
    case 'groups': return d.groups.length ? d.groups.map((g, i) => `${i + 1}. ${setWords(g)}`) : ['no one']
    case 'variants': return d.variants.length ? d.variants.map((v) => `${v.key} ${v.rollout_percentage ?? 0}%${v.name ? ` (${v.name})` : ''}`) : ['none: on or off']
    case 'payloads': { const kept = Object.entries(keptPayloads(d)); return kept.length ? kept.map(([name, text]) => `${name}: ${text}`) : ['none'] }
    case 'special': return specialLines(d.special)
    case 'continuity': return [d.continuity ? 'yes' : 'no']
    case 'remote': return [d.remote ? 'yes' : 'no']
    default: return [d[part] || 'empty']
  }
}

function specialLines(s: Special): string[] {
  const found: string[] = []
  if (s.feature_enrollment) found.push('people who opted in get it')
  else for (const g of s.super_groups ?? []) found.push(`first: ${setWords(g)}`)
  if (s.holdout) found.push(`${s.holdout.exclusion_percentage ?? 0}% are held out as holdout-${s.holdout.id}`)
  return found.length ? found : ['none']
}

// jsonProblem returns why text is no JSON value; empty text is none.
export function jsonProblem(text: string): string | null {
  if (text.trim() === '') return null
  try {
    JSON.parse(text)
    return null
  } catch (e) {
    return e instanceof Error ? e.message : 'This is not JSON.'
  }
}

export function variantSum(variants: Variant[]): number {
  return Math.round(100 * variants.reduce((sum, v) => sum + (v.rollout_percentage ?? 0), 0)) / 100
}

// spread gives all variants the same share; the first ones get what cannot be divided.
export function spread(variants: Variant[]): Variant[] {
  const share = Math.floor(100 / variants.length)
  const left = 100 - share * variants.length
  return variants.map((v, i) => ({ ...v, rollout_percentage: share + (i < left ? 1 : 0) }))
}

// conditionProblem returns why a condition cannot be saved.
export function conditionProblem(set: ConditionSet): string | undefined {
  const wrong = (set.properties ?? []).map(filterProblem).find((p) => p !== undefined)
  return wrong ?? (isShare(set.rollout_percentage) ? undefined : shareProblem)
}

// problems returns why the draft cannot be saved, by the id of the field. Conditions that are
// those of from, the flag that was read, are left to the server.
export function problems(d: Draft, from?: Draft): Record<string, string> {
  const found: Record<string, string> = {}
  if (!d.key) found.key = 'A flag needs a key.'
  else if (!/^[a-zA-Z0-9_-]+$/.test(d.key)) found.key = 'Only letters, digits, - and _.'
  if (!d.variants.every((v) => isShare(v.rollout_percentage))) found.variants = 'Each share is a number from 0 to 100.'
  else if (d.variants.length && variantSum(d.variants) !== 100) found.variants = `The shares sum to ${variantSum(d.variants)}%; they must sum to 100%.`
  const keys = d.variants.map((v) => v.key)
  if (keys.some((k) => !k)) found.variants = 'Each variant needs a key.'
  else if (new Set(keys).size < keys.length) found.variants = 'Two variants have the same key.'
  for (const [name, text] of Object.entries(d.payloads)) {
    const problem = jsonProblem(text)
    if (problem) found[`payload-${name}`] = problem
  }
  const { super_groups: first, holdout } = d.special
  d.groups.forEach((g, i) => {
    const problem = from && same(from.groups, d.groups) ? undefined : conditionProblem(g)
    if (problem) found[`group-${i}`] = problem
  })
  if (!isShare(holdout?.exclusion_percentage)) found.holdout = shareProblem
  if (!d.special.feature_enrollment && !(from && same(from.special.super_groups, first))) {
    first?.forEach((g, i) => {
      const problem = conditionProblem(g)
      if (problem) found[`special-${i}`] = problem
    })
  }
  return found
}

// compared is how the drafts are reviewed before they are saved.
export const compared = { partWords, changedParts, lines }
