// The entries of the command palette: what is typed against all that the console can reach.
import type { IconName } from '../ui/icon'

export interface Entry { id: string; label: string; detail?: string; icon: IconName; run: () => void; offer?: boolean }

// Found is what the server has answered. Flags, actions, cohorts and persons were searched there;
// plugins and members are all there are.
export interface Found {
  flags?: { id: number; key: string; name?: string | null }[] | undefined
  actions?: { id: number; name?: string | null }[] | undefined
  cohorts?: { id: number; name?: string | null }[] | undefined
  persons?: { uuid: string; name?: string | null; distinct_ids: string[]; properties?: unknown }[] | undefined
  plugins?: { name: string; kind: string; use: string }[] | undefined
  members?: { user: { first_name: string; last_name?: string; email: string } }[] | undefined
}

const most = 5 // of a kind that is not searched by the server

// fitting keeps the entries that have every word of the text in their label or detail.
export function fitting(text: string, entries: Entry[]): Entry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  return entries.filter((e) => words.every((w) => `${e.label} ${e.detail ?? ''}`.toLowerCase().includes(w)))
}

// personFits reports whether what the server searches of a person still has every word.
function personFits(text: string, p: NonNullable<Found['persons']>[number]): boolean {
  const { email, name } = (p.properties ?? {}) as { email?: unknown; name?: unknown }
  const all = [p.name, email, name, ...p.distinct_ids].join(' ').toLowerCase()
  return text.toLowerCase().split(/\s+/).every((w) => all.includes(w))
}

// entriesOf returns the entries for a text, the best first: pages and commands, then what was
// found, then what can be searched for the text. A former answer is shown until the next one
// comes: what does not fit any more is left out.
export function entriesOf(text: string, fixed: Entry[], found: Found, go: (path: string) => void): Entry[] {
  const typed = text.trim()
  const encoded = encodeURIComponent(typed)
  const to = (path: string) => () => go(path)
  const named: Entry[] = typed === '' ? [] : [
    ...fitting(typed, (found.plugins ?? []).map((p) => ({ id: `plugin-${p.name}`, label: p.name, detail: `plugin, ${p.kind} ${p.use}`, icon: 'plug', run: to(`/plugins/${encodeURIComponent(p.name)}`) }))).slice(0, most),
    ...fitting(typed, (found.cohorts ?? []).map((c) => ({ id: `cohort-${c.id}`, label: c.name ?? `Cohort ${c.id}`, detail: 'cohort', icon: 'users', run: to(`/cohorts?search=${encodeURIComponent(c.name ?? '')}`) }))),
    ...fitting(typed, (found.members ?? []).map(({ user: u }) => ({ id: `member-${u.email}`, label: [u.first_name, u.last_name].filter(Boolean).join(' ') || u.email, detail: u.first_name || u.last_name ? `member, ${u.email}` : 'member', icon: 'users', run: to('/settings/members') }))).slice(0, most),
  ]
  const persons: Entry[] = typed === '' ? [] : (found.persons ?? []).filter((p) => personFits(typed, p))
    .map((p) => ({ id: `person-${p.uuid}`, label: p.name || (p.distinct_ids[0] ?? p.uuid), detail: `person, ${p.distinct_ids.slice(0, 2).join(', ')}`, icon: 'users', run: to(`/persons/${p.uuid}`) }))
  return [
    ...fitting(typed, fixed),
    ...fitting(typed, (found.flags ?? []).map((f) => ({ id: `flag-${f.id}`, label: f.key, detail: f.name ?? '', icon: 'flag', run: to(`/flags/${f.id}`) }))),
    ...fitting(typed, (found.actions ?? []).map((a) => ({ id: `action-${a.id}`, label: a.name ?? '', detail: 'action', icon: 'bolt', run: to(`/actions/${a.id}`) }))),
    ...named,
    ...persons,
    ...(typed === '' ? [] : [
      { id: 'persons', label: `Search persons for ${typed}`, icon: 'users', run: to(`/persons?search=${encoded}`), offer: true },
      { id: 'why', label: `Why does ${typed} get its values?`, icon: 'why', run: to(`/why?id=${encoded}`), offer: true },
      { id: 'letters', label: `Search dead letters for ${typed}`, icon: 'letter', run: to(`/dead-letters?search=${encoded}`), offer: true },
    ] satisfies Entry[]),
  ]
}
