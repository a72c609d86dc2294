import { describe, expect, it } from 'vitest'
import { ageWords, changeOf, draftOf, repeated } from './ages'
import { agentWords } from './agents'
import { entryWords, routeOf, sinceDays, valueText } from './changes'
import { endOf } from './parts'
import { listOf } from './roles'
import { everything, objects, scopesOf, scopeWords } from './scopes'

describe('retention', () => {
  const kept = { keep: '90d', events: { b: '1d', a: '0' } }
  it('is unchanged at first', () => { expect(changeOf(kept, draftOf(kept))).toEqual({}) })
  it('sends null for a rule that is gone', () => { expect(changeOf(kept, { ...draftOf(kept), events: [{ name: 'a', keep: '2d' }] })).toEqual({ events: { a: '2d', b: null } }) })
  it.each([['server', null], ['ever', '0']] as const)('knows %s', (mode, keep) => {
    expect(changeOf(kept, { ...draftOf(kept), mode })).toEqual({ keep })
    expect(draftOf({ ...kept, keep }).mode).toBe(mode)
  })
  it('names an event with two rules', () => {
    const events = (...names: string[]) => ({ ...draftOf(kept), events: names.map((name, i) => ({ name, keep: `${i}d` })) })
    expect([events(), events('a', 'b'), events('', ''), events('a', 'b', 'a')].map(repeated)).toEqual([undefined, undefined, undefined, 'a'])
  })
  it('says ages', () => { expect([ageWords('0'), ageWords('1d'), ageWords('90d'), ageWords('36h')]).toEqual(['for ever', '1 day', '90 days', '36h']) })
})

describe('scopes', () => {
  it('are made of rights', () => { expect(scopesOf({ cohort: 'read', feature_flag: 'write', event: '' })).toEqual(['feature_flag:write', 'cohort:read']) })
  it('cover each object', () => { expect(scopesOf(everything('read'))).toHaveLength(Object.keys(objects).length) })
  it.each([[['*'], 'everything'], [['feature_flag:write', 'cohort:read'], 'change flags; read cohorts'], [['action:*'], 'change actions'], [scopesOf(everything('read')), 'read flags, cohorts, actions and 14 more']])('%j: %s', (scopes, words) => { expect(scopeWords(scopes)).toBe(words) })
})

it.each([
  ['Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36', 'Chrome on Linux'],
  ['Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0', 'Edge on Windows'],
  ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15', 'Safari on macOS'],
  ['Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Mobile/15E148 Safari/604.1', 'Chrome on iOS'],
  ['Mozilla/5.0 (Windows NT 10.0; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Windows'], ['curl/8.0', 'curl/8.0'], ['', 'Unknown browser'],
])('agentWords %s', (agent, words) => { expect(agentWords(agent)).toBe(words) })

describe('entries', () => {
  const detail = (name: string) => ({ id: null, changes: null, merge: null, trigger: null, name, short_id: null, type: null })
  it.each([
    ['created', 'FeatureFlag', 'new-nav', 'created the flag new-nav'], ['updated', 'Project', '', 'changed the project 7'],
    ['rolled', 'ProjectSecretAPIKey', 'checkout', 'replaced the secret key checkout'], ['signed_in', 'Session', 'password', 'signed in: password'], ['created', 'NewThing', 'x', 'created the new thing x'],
    ['updated', 'EventDefinition', 'PATCH /api/x/:id', 'changed the event definition 7'], ['deleted', 'GroupType', 'DELETE /api/y', 'deleted the group type 7'],
    ['replay', 'DeadLetter', 'POST /api/projects/:project_id/dead_letters/:id/replay', 'replayed the dead letter 7'], ['pause', 'Plugin', 'POST /api/plugins/:name/pause', 'paused the plugin 7'],
    ['retry', 'NotificationDelivery', 'POST /api/x', 'sent again the notification 7'], ['split', 'Person', 'POST /api/x', 'split the person 7'], ['updated', 'Other', 'PATCH /api/x', 'changed something with PATCH /api/x'],
  ])('%s %s', (activity, scope, name, words) => { expect(entryWords({ activity, scope, item_id: '7', detail: detail(name) })).toBe(words) })
  it('has the request of an entry that has only that', () => {
    const request = { ...detail(''), trigger: { job_type: 'request', job_id: 'PATCH /api/projects/:project_id', payload: {} } }
    expect([routeOf({ detail: request }), routeOf({ detail: detail('new-nav') })]).toEqual(['PATCH /api/projects/:project_id', ''])
    expect(entryWords({ activity: 'updated', scope: 'Project', item_id: '1', detail: request })).toBe('changed the project 1')
    expect(entryWords({ activity: 'rolled_back', scope: 'FeatureFlag', item_id: '4', detail: request })).toBe('rolled back the flag 4')
  })
  it.each([['replay', 'DeadLetter', 'replayed many dead letters'], ['delete', 'DeadLetter', 'deleted many dead letters'], ['created', 'EventDefinition', 'created an event definition']])('%s %s of no item', (activity, scope, words) => {
    expect(entryWords({ activity, scope, item_id: '', detail: detail('POST /api/x') })).toBe(words)
  })
  it.each([
    ['sign_in_failed', 'PersonalAPIKey', 'invalid_api_key', 'invalid_api_key', 3, 'refused 3 sign-ins: invalid api key'],
    ['password_reset_requested', 'User', 'ada@example.com', '', 1, 'got a request for a new password of ada@example.com'],
    ['password_reset_requested', 'User', '', 'throttled', 9, 'refused 9 requests for a new password: throttled'],
    ['password_reset_requested', 'User', '', 'other_clients', 2, 'got 2 requests for a new password, of the other clients of the minute'],
    ['email_failed', 'User', 'ada@example.com', 'reset', 1, 'gave up an e-mail with a link for a new password to ada@example.com'],
  ])('%s of a %s %s (%s)', (activity, scope, name, reason, count, words) => {
    expect(entryWords({ activity, scope, item_id: '7', detail: { ...detail(name), trigger: { job_type: activity, job_id: reason, payload: { count } } } })).toBe(words)
  })
  it('says which e-mail was given up', () => { expect(entryWords({ activity: 'email_failed', scope: 'OrganizationInvite', item_id: '7', detail: detail('ada@example.com') })).toBe('gave up an e-mail with an invitation to ada@example.com') })
  it('shows values', () => { expect([valueText(null), valueText(''), valueText('a'), valueText({ a: [1] }), valueText('x'.repeat(500)).length]).toEqual(['nothing', 'nothing', 'a', '{"a":[1]}', 401]) })
  it('counts days back', () => { expect([sinceDays('7', Date.UTC(2026, 0, 10)), sinceDays(undefined), sinceDays('x')]).toEqual(['2026-01-03', undefined, undefined]) })
})

it('endOf', () => { expect([endOf(''), endOf('never'), endOf('30', Date.UTC(2026, 0, 1))]).toEqual([{}, { expires_at: null }, { expires_at: '2026-01-31T00:00:00.000Z' }]) })
it('listOf reads lists only', () => { expect([listOf('[1]'), listOf(''), listOf('{}')]).toEqual([[1], [], []]) })
