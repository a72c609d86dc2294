import { describe, expect, it } from 'vitest'
import { groupsOf, groupsText } from './groups'

describe('groups in the URL', () => {
  it('come back', () => { expect(groupsOf(groupsText({ company: ' acme ', team: '' }))).toEqual({ company: 'acme' }) })
  it('are left out when there are none', () => { expect(groupsText({ company: ' ' })).toBe('') })
  it('are none in another text', () => { for (const text of ['', '{', 'null', '[1]', '"a"', '{"company": 1}']) expect(groupsOf(text)).toEqual({}) })
})
