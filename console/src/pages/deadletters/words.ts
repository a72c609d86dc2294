// Dead letters in words: the filter of the URL, what a replay did, edits.
import { queryOf } from '../../api/client'
import { inexact } from '../../api/json'
import type { DeadLetter, Schemas } from '../../api/types'

export type Filter = Schemas['DeadLetterFilter']
export type Replay = Schemas['Replay']

// Times are choices of how long ago: a link means the same tomorrow.
export const times: Record<string, { words: string; seconds: number }> = {
  '1h': { words: 'Last hour', seconds: 3600 }, '24h': { words: 'Last day', seconds: 86_400 }, '7d': { words: 'Last week', seconds: 7 * 86_400 }, '30d': { words: 'Last month', seconds: 30 * 86_400 },
}

export const fields = ['search', 'source', 'event', 'code', 'distinct_id', 'event_uuid'] as const

// filterOf reads the filter of the URL. A time ago counts from the minute of now.
export function filterOf(query: Record<string, string>, now: number): Filter {
  const out: Filter = {}
  for (const name of fields) if (query[name]) out[name] = query[name]
  const time = times[query.time ?? '']
  if (time) out.after = new Date(Math.floor(now / 60_000) * 60_000 - time.seconds * 1000).toISOString()
  return out
}

export function isEmpty(filter: Filter): boolean { return queryOf(filter) === '' }

// sourceWords names where an event failed.
export function sourceWords(source: string): string {
  return source === 'worker' ? 'worker' : source.startsWith('sink/') ? source.slice(5) : source
}

// outcome says what a replay did.
export function outcome(r: Pick<Replay, 'replayed' | 'failed' | 'waiting'>): string {
  const parts = [`${r.replayed.toLocaleString('en')} replayed`]
  if (r.failed) parts.push(`${r.failed.toLocaleString('en')} failed again`)
  if (r.waiting) parts.push(`${r.waiting.toLocaleString('en')} waiting`)
  return parts.join(', ')
}

// editable are the fields of an event that can change.
export const editable = ['event', 'distinct_id', 'timestamp', 'elements_chain', 'properties'] as const

// editText returns the editable part of an event as the text that is edited.
export function editText(payload: Record<string, unknown>): string {
  const out: Record<string, unknown> = {}
  for (const name of editable) if (name in payload) out[name] = payload[name]
  return JSON.stringify(out, null, 2)
}

export type Edit = { error: string } | { changes: Record<string, unknown> }

// readEdit compares an edited text with the event: the fields that changed, or why it is no event.
export function readEdit(payload: Record<string, unknown>, text: string): Edit {
  let value: unknown
  try { value = JSON.parse(text) } catch (e) { return { error: e instanceof Error ? `This is not JSON: ${e.message}` : 'This is not JSON.' } }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { error: 'An event is a JSON object.' }
  const edited = value as Record<string, unknown>
  const unknown = Object.keys(edited).find((name) => !(editable as readonly string[]).includes(name))
  if (unknown !== undefined) return { error: `An event has no field ${unknown} that can change.` }
  const missing = editable.find((name) => name in payload && !(name in edited))
  if (missing) return { error: `The field ${missing} is missing.` }
  if (text !== editText(payload) && inexact(text)) return { error: 'A number has more digits than a browser can hold, and would be stored rounded. Make it a text, or correct the event from a terminal: guidon deadletter edit.' }
  const changes: Record<string, unknown> = {}
  for (const name of editable) if (name in edited && JSON.stringify(edited[name]) !== JSON.stringify(payload[name])) changes[name] = edited[name]
  return { changes }
}

// replayState says whether a replay of the dead letter is under way or failed.
export function replayState(d: Pick<DeadLetter, 'replay_waiting' | 'replay_error'>): 'waiting' | 'failed' | 'none' {
  return d.replay_waiting ? 'waiting' : d.replay_error ? 'failed' : 'none'
}
