import { describe, expect, it } from 'vitest'
import type { Action } from '../../api/types'
import { bodyOf, changedParts, columnOf, complete, draftOf, emptyDraft, emptyStep, filterProblem, lines, merge, problemAt, problems, stepOf, writeOf, type Draft } from './draft'
import { changeLines, changeWords } from './changes'
import { valuesOf } from '../flags/values'
import { actionWords, destinationWords, previewWords, stepWords } from './words'

const draft = (changes: Partial<Draft>): Draft => ({ ...emptyDraft, name: 'paid', ...changes })

describe('steps', () => {
  const stored = {
    id: 's1', name: 'old', event: 'paid', url: '/checkout', url_matching: 'regex', text: null, text_matching: null, href: '', href_matching: null, selector: null, tag_name: 'button',
    properties: [{ key: 'plan', type: 'event', operator: 'exact', value: ['pro'], future: 1 }],
  }
  it('keep what the page does not edit', () => {
    expect(writeOf(stepOf(stored))).toEqual({ ...stored, url_matching: 'regex', href: null })
  })
  it('write what is empty as no condition', () => {
    expect(writeOf({ ...emptyStep(), url: '' })).toEqual({ name: null, event: null, url: null, url_matching: 'contains', text: null, text_matching: null, href: null, href_matching: null, selector: null, tag_name: null, properties: null })
  })
  it('read filters of older clients as none, which is not saved unless changed', () => {
    expect(stepOf({ event: 'a', properties: { plan: 'pro' } }).properties).toEqual([])
  })
})

describe('changes', () => {
  const action = { name: null, description: 'd', tags: ['a'], steps: [], post_to_chat: true, chat_message_format: '[person]', chat_destinations: [{ notifier: 'team' }] } as unknown as Action
  it('are none after reading', () => { expect(changedParts(draftOf(action), draftOf(action))).toEqual([]) })
  it('ignore an empty condition that was added', () => {
    expect(changedParts(draft({}), draft({ steps: [{ ...emptyStep(), url: '' }] }))).toEqual([])
  })
  it('send only what differs', () => {
    expect(bodyOf(draft({ post: true, destinations: [{ notifier: 'team' }] }), draft({}))).toEqual({ post_to_chat: true, chat_destinations: [{ notifier: 'team', to: '', format: '' }] })
    expect(Object.keys(bodyOf(draft({}))).length).toBe(7)
  })
  it('of different parts are joined, of the same part clash', () => {
    const m = merge(draft({}), draft({ format: 'mine', tags: ['x'] }), draft({ format: 'theirs', description: 'theirs' }))
    expect([m.clashes, m.merged.tags, m.merged.description, m.merged.format]).toEqual([['format'], ['x'], 'theirs', 'mine'])
    expect(merge(draft({}), draft({ format: 'same' }), draft({ format: 'same' })).clashes).toEqual([])
  })
})

describe('problems', () => {
  it('has none for a good action', () => { expect(problems(draft({}))).toEqual({}) })
  it.each([
    ['name', draft({ name: ' ' })],
    ['steps__0__url', draft({ steps: [{ ...emptyStep(), url: '' }] })],
    ['steps__1__properties__0', draft({ steps: [emptyStep(), { ...emptyStep(), properties: [{ key: '', operator: 'exact', value: ['a'] }] }] })],
    ['chat_destinations__0__notifier', draft({ destinations: [{ notifier: '' }] })],
  ])('names %s', (at, d) => { expect(Object.keys(problems(d))).toEqual([at]) })
  it.each([[{ key: 'a', operator: 'exact', value: [] }], [{ key: 'a', operator: 'between', value: [1, ''] }], [{ key: 'a', operator: 'gt' }], [{ type: 'cohort', key: 'id', value: null }]])('sees an incomplete filter: %j', (f) => { expect(filterProblem(f)).not.toBeNull() })
  it.each([[{ key: 'a', operator: 'is_set' }], [{ key: 'a', operator: 'exact', value: false }], [{ key: 'a', operator: 'gt', value: 0 }], [{ type: 'cohort', value: 3 }]])('takes a complete filter: %j', (f) => { expect(filterProblem(f)).toBeNull() })
  it('lets an action without a name be previewed', () => {
    expect([complete(draft({ name: '' })), complete(draft({ steps: [{ ...emptyStep(), text: '' }] }))]).toEqual([true, false])
  })
  it('finds the problem of a row from the position inside of it', () => {
    expect(problemAt({ steps__0__properties__10__value: 'ten', steps__0__properties__1__value: 'bad' }, 'steps__0__properties__1')).toBe('bad')
  })
  it('reads the column of a template', () => { expect([columnOf('Column 8: there is no ].'), columnOf('Too long')]).toEqual([7, -1]) })
})

describe('words', () => {
  const step = { ...emptyStep('paid'), url: '/checkout', properties: [{ key: 'plan', type: 'person', operator: 'exact', value: ['pro', 'team'] }] }
  it('tell a step', () => { expect(stepWords(step)).toBe('paid where URL contains /checkout and plan of the person is pro or team') })
  it('tell alternatives', () => { expect(actionWords([step, emptyStep()])).toMatch(/, or any event$/) })
  it('tell that nothing counts', () => { expect(actionWords([])).toMatch(/^nothing/) })
  it('tell a destination', () => { expect(destinationWords({ notifier: 'team', to: '#sales', format: 'Hi' })).toBe('team → #sales: Hi') })
  it('put one line for each step', () => { expect(lines(draft({ steps: [step, emptyStep('b')] }), 'steps')[1]).toBe('or b') })
  it.each([[0, 0, 'No such'], [1, 1, 'The newest event matches.'], [5, 5, 'All of the newest 5 events match.'], [5, 1, '1 of the newest 5 events matches.'], [5, 0, 'None of the newest 5 events matches.']])('count a preview of %i with %i', (checked, matched, want) => {
    expect(previewWords({ checked, matched, unknown: 0 }, '')).toContain(want)
  })
  it('name the event', () => { expect(previewWords({ checked: 1, matched: 1, unknown: 0 }, 'paid')).toBe('The newest event named paid matches.') })
})

it('offers values of recent events, each once', () => {
  expect([...valuesOf([{ plan: 'pro', a: { b: 1 } }, { plan: 'pro', n: 0 }, { plan: null }])]).toEqual([['plan', ['pro']], ['n', ['0']]])
})

describe('the activity', () => {
  const entry = (activity: string, field?: string, after?: unknown) => ({ activity, detail: { changes: field ? [{ field, before: true, after }] : null } }) as never
  it.each([['created', undefined, undefined, 'created it'], ['updated', 'steps', [], 'changed what counts'], ['updated', 'deleted', false, 'restored it'], ['updated', 'future_field', 1, 'changed future field']])('%s %s', (activity, field, after, want) => {
    expect(changeWords(entry(activity, field, after))).toBe(want)
  })
  it('has lines of each kind of value', () => {
    expect([changeLines('steps', [{ event: 'a' }, { event: 'b', url: '/x' }]), changeLines('post_to_chat', true), changeLines('chat_destinations', [{ notifier: 'team' }]), changeLines('tags', []), changeLines('name', 'x')])
      .toEqual([['a', 'or b where URL contains /x'], ['on'], ['team'], [], ['x']])
  })
})
