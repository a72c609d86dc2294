// The values of all flags for a person, to choose from. They are much less than the traces.
import { api } from '../../api/client'
import type { Explanation } from '../../api/types'
import type { Groups } from './groups'

export interface FlagValueOf { key: string; value: boolean | string }

// Asked is whom values are asked for, and what is assumed of them.
export interface Asked { id: string; groups: Groups; properties: Record<string, unknown>; groupProperties: Record<string, Record<string, unknown>> }

export function isEmpty({ properties, groupProperties }: Asked): boolean { return Object.keys(properties).length + Object.keys(groupProperties).length === 0 }

// Override is a property that is assumed: of the person, or of the group of a type. stored: its
// value follows the one that is stored, as long as none was typed.
export interface Override { of: string; name: string; value: string; stored?: boolean }

// overridesText returns overrides with a name as the text of a URL; empty without.
export function overridesText(overrides: Override[]): string {
  const named = overrides.filter((o) => o.name !== '')
  return named.length ? JSON.stringify(named.map((o) => [o.of, o.name, o.value])) : ''
}

// overridesOf reads what overridesText returns; what it cannot read is left out.
export function overridesOf(text: string): Override[] {
  try {
    const read: unknown = JSON.parse(text)
    if (!Array.isArray(read)) return []
    return read.flatMap((o: unknown) => (Array.isArray(o) && o.length === 3 && o.every((p): p is string => typeof p === 'string') ? [{ of: String(o[0]), name: String(o[1]), value: String(o[2]) }] : []))
  } catch { return [] }
}

// assumed returns the properties of overrides. Those of a group that is not named are left out.
export function assumed(overrides: Override[], groups: Groups): Pick<Asked, 'properties' | 'groupProperties'> {
  const properties: Asked['properties'] = {}
  const groupProperties: Asked['groupProperties'] = {}
  for (const { of, name, value } of overrides) {
    if (name === '') continue
    if (of === '') properties[name] = valueOfText(value)
    else if (groups[of]) groupProperties[of] = { ...groupProperties[of], [name]: valueOfText(value) }
  }
  return { properties, groupProperties }
}

// valueOfText reads what was typed: JSON values as such, everything else as text.
function valueOfText(text: string): unknown {
  try { return JSON.parse(text) } catch { return text }
}

// entered returns a value as it would be typed.
export function entered(value: unknown): string {
  return typeof value === 'string' && typeof valueOfText(value) === 'string' && !value.startsWith('"') ? value : JSON.stringify(value)
}

// What the server says of a flag that it could not compute.
const failures: Record<NonNullable<Explanation['failure']>, true> = {
  invalid_definition: true, operator_unavailable: true, cohort_unavailable: true, missing_dependency: true, dependency_cycle: true,
  stored_data_unavailable: true, regex_too_large: true, text_too_long: true, evaluation_budget_spent: true,
}
const failed = '!failed' // no variant has an exclamation mark
const chunk = 250

// readValues returns the values that the server answers with for a person in groups. It does not take
// properties to assume, so with some it asks for traces, a few at a time, and keeps the values.
export async function readValues(project: string, asked: Asked, signal: AbortSignal): Promise<FlagValueOf[]> {
  const { id, groups, properties, groupProperties } = asked
  const path = { project_id: project }
  const reasons = await api.get('/api/projects/{project_id}/feature_flags/evaluation_reasons', { path, query: { distinct_id: id, ...(Object.keys(groups).length > 0 && { groups: JSON.stringify(groups) }) }, signal })
  const out = Object.entries(reasons).map(([key, r]): FlagValueOf => ({ key, value: r.evaluation.reason in failures ? failed : r.value ?? false }))
  out.sort((a, b) => (a.key < b.key ? -1 : 1))
  if (isEmpty(asked)) return out
  for (let at = 0; at < out.length; at += chunk) {
    const part = out.slice(at, at + chunk)
    const { flags } = await api.post('/api/projects/{project_id}/feature_flags/explain', { path, body: { distinct_id: id, groups, person_properties: properties, group_properties: groupProperties, flag_keys_to_evaluate: part.map((v) => v.key) }, signal })
    for (const v of part) {
      const e = flags[v.key]
      if (e) v.value = e.computed ? e.value ?? false : failed
    }
  }
  return out
}

// matches reports whether a value is what the filter of the page wants.
export function matches(value: boolean | string, wanted: string): boolean {
  if (wanted === 'on' || wanted === 'off') return value === (wanted === 'on')
  if (wanted === 'failed') return value === failed
  if (wanted === 'variant') return typeof value === 'string' && value !== failed
  return `is ${value}` === wanted
}

// valueNames returns what can be wanted: kinds of values, and the variants that were seen.
export function valueNames(values: FlagValueOf[], wanted: string): Record<string, string> {
  const out: Record<string, string> = { '': 'Any value', on: 'On', off: 'Off', variant: 'A variant', failed: 'Not computed' }
  const variants = new Set<string>()
  for (const v of values) if (typeof v.value === 'string' && v.value !== failed && variants.size < 50) variants.add(v.value)
  for (const v of [...variants].sort()) out[`is ${v}`] = v
  if (wanted.startsWith('is ')) out[wanted] ??= wanted.slice(3)
  return out
}
