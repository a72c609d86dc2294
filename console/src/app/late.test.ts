import { beforeEach, expect, it, vi } from 'vitest'
import { ApiError } from '../api/client'
import { countVisit, here } from './late'
import { toasts } from './toasts'

const place = { pathname: '/console/project/1/flags/new' }
vi.stubGlobal('location', place)
vi.stubGlobal('document', { title: 'New flag · Guidon' })
const go = (path: string) => { place.pathname = path; countVisit() }
const texts = () => toasts.value.map((t) => t.text)
const refused = new ApiError(400, 'invalid', 'The key is taken.')

beforeEach(() => {
  go('/console/project/1/flags/new')
  toasts.value = []
})

it('lets an answer act on the page that asked', () => {
  const page = here()
  const leave = vi.fn()
  page.say('Made.')
  page.sayError(refused)
  page.leave(leave)
  expect([page.stayed(), texts(), leave.mock.calls.length]).toEqual([true, ['Made.', 'The key is taken.'], 1])
})
it('takes another tab of the page for the page', () => {
  const page = here()
  place.pathname += '/' // the query is no part of it
  expect(page.stayed()).toBe(true)
})
it('does nothing on another page, and names the page of what failed', () => {
  const page = here()
  go('/console/project/1/flags')
  const leave = vi.fn()
  page.say('Made.')
  page.leave(leave)
  page.sayError(refused)
  expect([page.stayed(), texts(), leave.mock.calls.length]).toEqual([false, ['New flag: The key is taken.'], 0])
})
it('takes a page that was left and visited again for another one', () => {
  const page = here()
  go('/console/project/1/flags')
  go('/console/project/1/flags/new')
  expect(page.stayed()).toBe(false)
})
