// Conditions in plain words.
import type { ConditionSet, Flag, PropertyFilter, Schemas, Variant } from '../../api/types'
import { plural } from '../../ui/time'

export interface Operator { name: string; words: string; value: 'text' | 'list' | 'number' | 'range' | 'date' | 'json' | 'none'; help?: string }

export const operators: Operator[] = [
  { name: 'exact', words: 'is', value: 'list' },
  { name: 'is_not', words: 'is not', value: 'list' },
  { name: 'icontains', words: 'contains', value: 'text' },
  { name: 'not_icontains', words: 'does not contain', value: 'text' },
  { name: 'icontains_multi', words: 'contains one of', value: 'list' },
  { name: 'not_icontains_multi', words: 'contains none of', value: 'list' },
  { name: 'starts_with', words: 'starts with', value: 'text' },
  { name: 'not_starts_with', words: 'does not start with', value: 'text' },
  { name: 'ends_with', words: 'ends with', value: 'text' },
  { name: 'not_ends_with', words: 'does not end with', value: 'text' },
  { name: 'regex', words: 'matches the pattern', value: 'text' },
  { name: 'not_regex', words: 'does not match the pattern', value: 'text' },
  { name: 'is_set', words: 'is set', value: 'none' },
  { name: 'is_not_set', words: 'is not set', value: 'none' },
  { name: 'gt', words: 'is more than', value: 'number' },
  { name: 'gte', words: 'is at least', value: 'number' },
  { name: 'lt', words: 'is less than', value: 'number' },
  { name: 'lte', words: 'is at most', value: 'number' },
  { name: 'between', words: 'is between', value: 'range' },
  { name: 'not_between', words: 'is not between', value: 'range' },
  { name: 'is_date_before', words: 'is before', value: 'date' },
  { name: 'is_date_after', words: 'is after', value: 'date' },
  { name: 'is_date_exact', words: 'is on', value: 'date' },
  { name: 'semver_eq', words: 'is version', value: 'text' },
  { name: 'semver_neq', words: 'is not version', value: 'text' },
  { name: 'semver_gt', words: 'is newer than version', value: 'text' },
  { name: 'semver_gte', words: 'is version or newer', value: 'text' },
  { name: 'semver_lt', words: 'is older than version', value: 'text' },
  { name: 'semver_lte', words: 'is version or older', value: 'text' },
  { name: 'semver_tilde', words: 'is a patch of version', value: 'text' },
  { name: 'semver_caret', words: 'is compatible with version', value: 'text' },
  { name: 'semver_wildcard', words: 'matches the version', value: 'text' },
]
const byName = new Map(operators.map((o) => [o.name, o]))

// operatorOf returns the operator of a name; one of a plugin has its name as its words.
export function operatorOf(name: string | null | undefined): Operator {
  return byName.get(name ?? 'exact') ?? { name: name ?? 'exact', words: name ?? 'is', value: 'text' }
}

// pluginOperators returns the operators that plugins offer, each once, as the server asks the
// first that has it. The schema of the value says how it is entered.
export function pluginOperators(instances: Schemas['PluginInstance'][]): Operator[] {
  const out = new Map<string, Operator>()
  for (const o of instances.flatMap((p) => p.operators ?? [])) {
    if (!out.has(o.id)) out.set(o.id, { name: o.id, words: o.label || o.id, value: kindOf(o.value_schema), ...(o.doc && { help: o.doc }) })
  }
  return [...out.values()]
}

function kindOf(schema: unknown): Operator['value'] {
  const s = (typeof schema === 'object' && schema !== null ? schema : {}) as { type?: unknown; items?: { type?: unknown }; anyOf?: unknown[]; oneOf?: unknown[] }
  const kinds = (s.anyOf ?? s.oneOf)?.map(kindOf) ?? []
  if (kinds.length) return kinds.includes('json') ? 'json' : kinds.includes('list') ? 'list' : kinds.every((k) => k === kinds[0]) ? kinds[0] ?? 'json' : 'json'
  if (s.type === 'string') return 'text'
  if (s.type === 'number' || s.type === 'integer') return 'number'
  return s.type === 'array' && s.items?.type === 'string' ? 'list' : s.type === 'null' ? 'none' : 'json'
}

export function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.map(valueText).join(' or ')
  if (value === null || value === undefined) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

// hasValue reports whether a value was entered. An operator of a plugin may need none.
function hasValue(f: PropertyFilter): boolean {
  const { value } = f
  if (Array.isArray(value)) return value.length > 0 && value.every((v) => v !== '' && v !== null)
  return value !== '' && value !== undefined && (value !== null || f.type !== 'cohort' && !byName.has(f.operator ?? 'exact'))
}

// filterProblem returns what a filter lacks. Saved without a value it would match nothing, and
// turn the condition off for everyone.
export function filterProblem(f: PropertyFilter): string | undefined {
  if (f.type === 'cohort') return hasValue(f) ? undefined : 'Choose a cohort, or remove the filter.'
  if (f.key === '') return f.type === 'flag' ? 'Choose a flag, or remove the filter.' : 'Choose a property, or remove the filter.'
  return operatorOf(f.operator).value === 'none' || hasValue(f) ? undefined : `Enter a value for ${f.key}, or remove the filter.`
}

export function filterWords(f: PropertyFilter): string {
  if (f.type === 'cohort') return `${f.operator === 'not_in' || f.negation ? 'not in' : 'in'} cohort ${f.cohort_name ?? valueText(f.value)}`
  if (f.type === 'flag') return `flag ${f.key} is ${valueText(f.value)}`
  const operator = operatorOf(f.operator)
  return `${f.key} ${operator.words}${operator.value === 'none' ? '' : ' ' + (operator.value === 'range' && Array.isArray(f.value) ? f.value.map(valueText).join(' and ') : valueText(f.value))}`
}

// shadeOf returns the color of an answer of a flag: that of its variant in the editor, the first
// one for on, and grey for off and no answer.
export function shadeOf(variants: Variant[] | undefined, answer: string): number {
  if (answer === 'false' || answer === '') return grey
  const at = variants?.findIndex((v) => v.key === answer) ?? -1
  if (at >= 0 || answer === 'true') return Math.max(at, 0) % grey
  return [...answer].reduce((sum, c) => sum + (c.codePointAt(0) ?? 0), variants?.length ?? 0) % grey // of a former variant
}
const grey = 5 // the last of the colors, after those of variants

// operationWords says what a scheduled change does.
export function operationWords(payload: Schemas['ScheduledOperation']): string {
  const { operation, value } = payload
  if (operation === 'update_status') return value === true ? 'Turn on' : 'Turn off'
  const parts = typeof value === 'object' ? value as { groups?: ConditionSet[]; variants?: Variant[] } : {}
  if (operation === 'add_release_condition') return `Also for ${(parts.groups ?? []).map((g) => setWords(g)).join(', and for ')}`
  return `Variants: ${(parts.variants ?? []).map((v) => `${v.key} ${v.rollout_percentage ?? 0}%`).join(', ')}`
}

export function percent(set: ConditionSet): number { return set.rollout_percentage ?? 100 }

export function setWords(set: ConditionSet, subject = 'everyone'): string {
  const filters = set.properties ?? []
  const share = percent(set) === 100 ? '' : `${percent(set)}% of `
  const who = filters.length === 0 ? subject : `${filters.some((f) => f.type === 'group') ? 'groups' : 'people'} where ${filters.map(filterWords).join(' and ')}`
  return share + who + (set.variant ? ` get ${set.variant}` : '')
}

// rolloutWords says for whom a flag is on, in one line.
export function rolloutWords(flag: Pick<Flag, 'filters'>): string {
  const groups = flag.filters.groups ?? []
  const variants = flag.filters.multivariate?.variants.length ?? 0
  const first = groups[0]
  const text = !first ? 'no one' : groups.length === 1 ? setWords(first) : `${setWords(first)}, and ${plural(groups.length - 1, 'more condition')}`
  return variants ? `${text} · ${plural(variants, 'variant')}` : text
}
