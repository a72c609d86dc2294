// Rules of retention while they are edited.
import type { Schemas } from '../../api/types'

type Retention = Pick<Schemas['Retention'], 'keep' | 'events'>

export interface Draft { mode: 'server' | 'ever' | 'age'; keep: string; events: { name: string; keep: string }[] }

export function draftOf(kept: Retention): Draft {
  const mode = kept.keep === null ? 'server' : kept.keep === '0' ? 'ever' : 'age'
  return { mode, keep: mode === 'age' ? (kept.keep ?? '') : '', events: Object.entries(kept.events).map(([name, keep]) => ({ name, keep })).sort((a, b) => a.name.localeCompare(b.name)) }
}

// changeOf returns what the draft changes, as the API takes it: null removes a rule.
export function changeOf(kept: Retention, draft: Draft): Schemas['RetentionChange'] {
  const keep = draft.mode === 'server' ? null : draft.mode === 'ever' ? '0' : draft.keep
  const now: Record<string, string> = Object.fromEntries(draft.events.map((e) => [e.name, e.keep]))
  const events: Record<string, string | null> = {}
  for (const [name, age] of Object.entries(now)) if (kept.events[name] !== age) events[name] = age
  for (const name of Object.keys(kept.events)) if (!(name in now)) events[name] = null
  return { ...(keep !== kept.keep && { keep }), ...(Object.keys(events).length > 0 && { events }) }
}

// repeated returns the name of an event that two rules of the draft have.
export function repeated(draft: Draft): string | undefined {
  return draft.events.find((e, i) => e.name !== '' && draft.events.findIndex((o) => o.name === e.name) < i)?.name
}

// ageWords says an age of the API: "90d" is "90 days".
export function ageWords(age: string): string {
  if (age === '0') return 'for ever'
  const days = /^(\d+)d$/.exec(age)
  return days ? `${days[1]} ${days[1] === '1' ? 'day' : 'days'}` : age
}
