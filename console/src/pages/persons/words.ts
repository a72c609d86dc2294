// What persons and groups have, in words: properties in order, filters of the URL, merges.
import type { Event, GroupType, Person, PropertyFilter } from '../../api/types'

export interface Property { name: string; kind: 'text' | 'number' | 'yes-no' | 'nothing' | 'list' | 'object'; text: string; long: boolean }

const longText = 160
const order = new Intl.Collator('en', { numeric: true, sensitivity: 'base' })

// propertiesOf returns the properties by name, those of client libraries ($) last.
export function propertiesOf(values: Record<string, unknown>): Property[] {
  const reserved = (name: string) => (name.startsWith('$') ? 1 : 0)
  return Object.keys(values)
    .sort((a, b) => reserved(a) - reserved(b) || order.compare(a, b) || (a < b ? -1 : 1))
    .map((name) => propertyOf(name, values[name]))
}

function propertyOf(name: string, value: unknown): Property {
  if (value === null || value === undefined) return { name, kind: 'nothing', text: 'null', long: false }
  if (typeof value === 'object') {
    const text = JSON.stringify(value, null, 2)
    return { name, kind: Array.isArray(value) ? 'list' : 'object', text, long: text.length > longText || text.split('\n').length > 6 }
  }
  const text = String(value)
  const kind = typeof value === 'number' ? 'number' : typeof value === 'boolean' ? 'yes-no' : 'text'
  return { name, kind, text, long: text.length > longText || text.split('\n').length > 4 }
}

// filtersOf reads the filters of the URL; what is not a filter is left out.
export function filtersOf(text: string | undefined): PropertyFilter[] {
  try {
    const list: unknown = JSON.parse(text ?? '[]')
    if (!Array.isArray(list)) return []
    return list.filter((f): f is PropertyFilter => typeof f === 'object' && f !== null && typeof (f as PropertyFilter).key === 'string' && (f as PropertyFilter).key !== '')
  } catch { return [] }
}

// typedName returns what is typed to delete someone: the name, if a person can type it.
export function typedName(name: string): string {
  return name.length <= 40 && /^[\x21-\x7e]+( [\x21-\x7e]+)*$/.test(name) ? name : 'delete'
}

// idsText returns the first distinct id and how many there are besides.
export function idsText(person: Pick<Person, 'distinct_ids'>): string {
  const [first, ...rest] = person.distinct_ids
  return rest.length ? `${first} and ${rest.length.toLocaleString('en')} more` : (first ?? 'no distinct id')
}

// typeWords returns the name of the groups of a type: one, or many.
export function typeWords(type: GroupType, many: boolean): string {
  return (many ? type.name_plural : type.name_singular) || type.group_type
}

// mergeEvents ask the server to join two distinct ids in one person.
export const mergeEvents = ['$identify', '$create_alias', '$merge_dangerously']

export interface Merge { uuid: string; event: string; at: string; from: string; into: string }

// mergesOf returns what events asked to join, newest first. An $identify without another
// id joins nothing.
export function mergesOf(events: Event[]): Merge[] {
  return events.flatMap((e): Merge[] => {
    const p = e.properties as Record<string, unknown>
    const other = e.event === '$identify' ? p.$anon_distinct_id : p.alias
    if (typeof other !== 'string' || other === '' || other === e.distinct_id) return []
    return [{ uuid: e.uuid, event: e.event, at: e.timestamp, from: other, into: e.distinct_id }]
  }).sort((a, b) => Date.parse(b.at) - Date.parse(a.at))
}

interface Conditions { groups?: { properties?: { type?: string | undefined; value?: unknown }[] | null | undefined }[] | null | undefined }

// flagsByCohort returns the flags whose conditions pick each cohort, by its id.
export function flagsByCohort<F extends { filters?: Conditions | undefined }>(flags: F[]): Map<number, F[]> {
  const found = new Map<number, F[]>()
  for (const flag of flags) {
    const picked = (flag.filters?.groups ?? []).flatMap((g) => g.properties ?? []).filter((p) => p.type === 'cohort').map((p) => Number(p.value))
    for (const id of new Set(picked)) found.set(id, [...(found.get(id) ?? []), flag])
  }
  return found
}
