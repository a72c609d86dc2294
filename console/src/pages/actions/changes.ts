// Entries of the activity log in plain words.
import type { ActivityEntry, ChatDestination } from '../../api/types'
import { stepOf } from './draft'
import { destinationWords, stepWords } from './words'

const fields: Record<string, string> = { steps: 'what counts', post_to_chat: 'chat messages', chat_message_format: 'the message', chat_destinations: 'the destinations', pinned_at: 'the pin', tags: 'the tags', name: 'the name', description: 'the description' }

export function changeWords(e: Pick<ActivityEntry, 'activity' | 'detail'>): string {
  if (e.activity === 'created') return 'created it'
  if (e.activity === 'deleted') return 'deleted it'
  const changes = e.detail.changes ?? []
  if (changes.some((c) => c.field === 'deleted' && c.after === false)) return 'restored it'
  return changes.length ? `changed ${changes.map((c) => fields[c.field] ?? c.field.replaceAll('_', ' ')).join(', ')}` : `${e.activity} it`
}

// changeLines describes a value of a field, one line each.
export function changeLines(field: string, value: unknown): string[] {
  if (value === null || value === undefined || value === '') return []
  if (typeof value === 'boolean') return [value ? 'on' : 'off']
  if (!Array.isArray(value)) return [typeof value === 'string' ? value : JSON.stringify(value)]
  if (field === 'steps') return value.map((s, i) => (i === 0 ? '' : 'or ') + stepWords(stepOf(s as object)))
  if (field === 'chat_destinations') return value.map((d) => destinationWords(d as ChatDestination))
  return value.length ? [value.join(', ')] : []
}
