// Pure parts of the page Live.
import { queryOf } from '../../api/client'
import type { Event } from '../../api/types'

export interface Filters { event: string; distinct_id: string; person_id: string; property: string; operator: string; value: string }

export const operators: [name: string, words: string][] = [['exact', 'is'], ['is_not', 'is not'], ['icontains', 'contains'], ['is_set', 'is set'], ['is_not_set', 'is not set']]

export function takesValue(operator: string): boolean { return !operator.endsWith('set') }

// filtersOf reads the filters of a URL.
export function filtersOf(query: Record<string, string>): Filters {
  const operator = operators.some(([name]) => name === query.operator) ? (query.operator ?? 'exact') : 'exact'
  return { event: query.event ?? '', distinct_id: query.distinct_id ?? '', person_id: query.person_id ?? '', property: query.property ?? '', operator, value: query.value ?? '' }
}

// parametersOf returns the parameters of the list of events and of its stream.
export function parametersOf(f: Filters): { event?: string; distinct_id?: string; person_id?: string; properties?: string } {
  const complete = f.property && (f.value || !takesValue(f.operator))
  return {
    ...(f.event && { event: f.event }),
    ...(f.distinct_id && { distinct_id: f.distinct_id }),
    ...(f.person_id && { person_id: f.person_id }),
    ...(complete && { properties: JSON.stringify([{ key: f.property, operator: f.operator, value: takesValue(f.operator) ? f.value : f.operator }]) }),
  }
}

export function streamURL(project: string, f: Filters): string {
  return `/api/projects/${encodeURIComponent(project)}/events/stream/${queryOf(parametersOf(f))}`
}

// merge puts new events, the latest last, before those shown and keeps the newest.
export function merge(shown: Event[], added: Event[], most: number): Event[] {
  const seen = new Set<string>()
  const out: Event[] = []
  for (const e of [...added.slice(-most).reverse(), ...shown]) {
    if (out.length === most) break
    if (seen.has(e.uuid)) continue
    seen.add(e.uuid)
    out.push(e)
  }
  return out
}

// summaryOf returns what tells most about an event in one line.
export function summaryOf(e: Event): string {
  const p = e.properties as Record<string, unknown>
  const flag = p.$feature_flag
  if (typeof flag === 'string') return `${flag} = ${String(p.$feature_flag_response)}`
  if (typeof p.$current_url === 'string') return p.$current_url
  return Object.entries(p).filter(([name, v]) => !name.startsWith('$') && v !== null && typeof v !== 'object').slice(0, 3).map(([name, v]) => `${name} ${String(v)}`).join(', ')
}
