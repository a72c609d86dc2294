import { describe, expect, it } from 'vitest'
import { ApiError } from '../../api/client'
import type { Event } from '../../api/types'
import { isFinal, reader } from './stream'
import { filtersOf, merge, parametersOf, streamURL, summaryOf } from './words'

const event = (uuid: string, properties = {}): Event => ({ uuid, project_id: 1, event: 'e', distinct_id: 'u', timestamp: '', received_at: '', properties })

describe('a stream', () => {
  it('is read in pieces of any size', () => {
    const text = 'retry: 2000\nid: 4\nevent: ready\ndata: {"position":4}\n\n:\nid: 4\n\nid: 5\nevent: event\ndata: {"a":"é"}\n\n'
    for (const size of [1, 7, 1000]) {
      const read = reader()
      const got = []
      for (let i = 0; i < text.length; i += size) got.push(...read(text.slice(i, i + size)))
      expect(got).toEqual([{ id: '4', name: 'ready', data: '{"position":4}' }, { id: '4', name: '', data: '' }, { id: '5', name: 'event', data: '{"a":"é"}' }])
    }
  })
  it('is asked for again unless it is refused for good', () => {
    for (const [status, final] of [[0, false], [429, false], [503, false], [400, true], [401, true], [403, true], [404, true]] as const) {
      expect(isFinal(new ApiError(status, '', ''))).toBe(final)
    }
  })
})

describe('filters', () => {
  it('are those of the list of events', () => {
    expect(parametersOf(filtersOf({}))).toEqual({})
    expect(parametersOf(filtersOf({ event: 'buy', distinct_id: 'ada', property: 'plan' }))).toEqual({ event: 'buy', distinct_id: 'ada' })
    expect(streamURL('1', filtersOf({ person_id: 'p-1' }))).toBe('/api/projects/1/events/stream/?person_id=p-1')
    expect(parametersOf(filtersOf({ property: 'plan', operator: 'icontains', value: 'pr' }))).toEqual({ properties: '[{"key":"plan","operator":"icontains","value":"pr"}]' })
    expect(parametersOf(filtersOf({ property: 'plan', operator: 'is_set' }))).toEqual({ properties: '[{"key":"plan","operator":"is_set","value":"is_set"}]' })
    expect(filtersOf({ operator: '<script>' }).operator).toBe('exact')
    expect(streamURL('1', filtersOf({ event: 'a b&c' }))).toBe('/api/projects/1/events/stream/?event=a+b%26c')
  })
})

describe('the list', () => {
  it('has each event once, the newest first, and an end', () => {
    const shown = merge([event('1')], [event('2'), event('3'), event('2')], 10)
    expect(shown.map((e) => e.uuid)).toEqual(['2', '3', '1'])
    expect(merge(shown, [event('4'), event('5')], 3).map((e) => e.uuid)).toEqual(['5', '4', '2'])
    expect(merge([], Array.from({ length: 5000 }, (_, i) => event(String(i))), 200)).toHaveLength(200)
  })
  it('says the most telling properties', () => {
    expect(summaryOf(event('1', { $feature_flag: 'nav', $feature_flag_response: true }))).toBe('nav = true')
    expect(summaryOf(event('1', { $current_url: 'https://a.test/x', plan: 'pro' }))).toBe('https://a.test/x')
    expect(summaryOf(event('1', { $lib: 'web', plan: 'pro', n: 3, deep: {}, none: null }))).toBe('plan pro, n 3')
  })
})
