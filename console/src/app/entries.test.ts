import { expect, it, vi } from 'vitest'
import { entriesOf, fitting, type Entry, type Found } from './entries'

const fixed: Entry[] = [
  { id: '/flags', label: 'Flags', icon: 'flag', run: () => undefined },
  { id: '/settings/members', label: 'Settings: Members (organization)', icon: 'gear', run: () => undefined },
]
const found: Found = {
  flags: [{ id: 1, key: 'new-nav', name: 'The navigation' }],
  actions: [{ id: 2, name: 'Signed up' }],
  cohorts: [{ id: 3, name: 'Early & loud' }],
  persons: [{ uuid: 'p-1', name: 'Grace Hopper', distinct_ids: ['grace', 'anon-7'], properties: { email: 'g@navy.example' } }],
  plugins: [{ name: 'copy', kind: 'sink', use: 'file' }],
  members: [{ user: { first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com' } }, { user: { first_name: '', email: 'admin@localhost' } }],
}
const ids = (text: string, from = found) => entriesOf(text, fixed, from, () => undefined).filter((e) => !e.offer).map((e) => e.id)
const ran = (text: string, id: string) => {
  const go = vi.fn()
  entriesOf(text, fixed, found, go).find((e) => e.id === id)?.run()
  return go.mock.calls
}

it('reaches every kind by its name', () => {
  expect(ids('new-nav')).toEqual(['flag-1'])
  expect(ids('signed')).toEqual(['action-2'])
  expect(ids('loud')).toEqual(['cohort-3'])
  expect(ids('copy')).toEqual(['plugin-copy'])
  expect(ids('lovelace')).toEqual(['member-ada@example.com'])
  expect(ids('admin@')).toEqual(['member-admin@localhost'])
  expect([ids('hopper'), ids('anon-7'), ids('g@navy')]).toEqual([['person-p-1'], ['person-p-1'], ['person-p-1']])
  expect(ran('grace', 'person-p-1')).toEqual([['/persons/p-1']])
  expect(ids('members')).toEqual(['/settings/members'])
})
it('takes the words of a kind too, in any order', () => {
  expect(ids('file plugin')).toEqual(['plugin-copy'])
  expect(ids('cohort early')).toEqual(['cohort-3'])
})
it('leaves out what a former answer found and does not fit', () => {
  expect(ids('nothing like it')).toEqual([])
})
it('shows only pages, flags and actions before something is typed', () => {
  expect(ids(' ')).toEqual(['/flags', '/settings/members', 'flag-1', 'action-2'])
  expect(entriesOf('', fixed, found, () => undefined).some((e) => e.offer)).toBe(false)
})
it('offers to search for what is typed, after what was found', () => {
  expect(entriesOf('ada', fixed, found, () => undefined).map((e) => e.id)).toEqual(['member-ada@example.com', 'persons', 'why', 'letters'])
})
it('encodes what goes into a URL', () => {
  expect(ran('a&b', 'letters')).toEqual([['/dead-letters?search=a%26b']])
  expect(ran('loud', 'cohort-3')).toEqual([['/cohorts?search=Early%20%26%20loud']])
  expect(ran('copy', 'plugin-copy')).toEqual([['/plugins/copy']])
})
it('shows a few of many', () => {
  const plugins = Array.from({ length: 30 }, (_, i) => ({ name: `copy-${i}`, kind: 'sink', use: 'file' }))
  expect(ids('copy', { plugins })).toHaveLength(5)
})
it('finds nothing in what is not known yet', () => {
  expect(ids('copy', {})).toEqual([])
  expect(fitting('', fixed)).toEqual(fixed)
})
