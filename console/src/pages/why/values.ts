// The values of all flags for a person, to choose from. They are much less than the traces.
import { api } from '../../api/client'
import type { Explanation } from '../../api/types'

export interface FlagValueOf { key: string; value: boolean | string }

// What the server says of a flag that it could not compute.
const failures: Record<NonNullable<Explanation['failure']>, true> = {
  invalid_definition: true, operator_unavailable: true, cohort_unavailable: true, missing_dependency: true, dependency_cycle: true,
  stored_data_unavailable: true, regex_too_large: true, text_too_long: true, evaluation_budget_spent: true,
}
const failed = '!failed' // no variant has an exclamation mark
const chunk = 250

// readValues returns the values that the server answers with for a person in groups. It does not take
// properties to assume, so with some it asks for traces, a few at a time, and keeps the values.
export async function readValues(project: string, id: string, properties: Record<string, unknown>, groups: Record<string, string>, signal: AbortSignal): Promise<FlagValueOf[]> {
  const path = { project_id: project }
  const reasons = await api.get('/api/projects/{project_id}/feature_flags/evaluation_reasons', { path, query: { distinct_id: id, ...(Object.keys(groups).length > 0 && { groups: JSON.stringify(groups) }) }, signal })
  const out = Object.entries(reasons).map(([key, r]): FlagValueOf => ({ key, value: r.evaluation.reason in failures ? failed : r.value ?? false }))
  out.sort((a, b) => (a.key < b.key ? -1 : 1))
  if (Object.keys(properties).length === 0) return out
  for (let at = 0; at < out.length; at += chunk) {
    const part = out.slice(at, at + chunk)
    const { flags } = await api.post('/api/projects/{project_id}/feature_flags/explain', { path, body: { distinct_id: id, groups, person_properties: properties, flag_keys_to_evaluate: part.map((v) => v.key) }, signal })
    for (const v of part) {
      const e = flags[v.key]
      if (e) v.value = e.computed ? e.value ?? false : failed
    }
  }
  return out
}

// fits reports whether a value is what the filter of the page wants.
export function fits(value: boolean | string, wanted: string): boolean {
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
