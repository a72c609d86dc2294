import { describe, expect, it } from 'vitest'
import { kindOf } from './shape'

describe('kindOf', () => {
  it('has a field for each shape, and JSON for the others', () => {
    expect(kindOf({ type: 'string' })).toBe('text')
    expect(kindOf({ type: 'string', writeOnly: true })).toBe('secret')
    expect(kindOf({ type: 'string', enum: ['a'] })).toBe('enum')
    expect(kindOf({ type: 'integer' })).toBe('number')
    expect(kindOf({ type: ['integer', 'string'] })).toBe('text')
    expect(kindOf({ type: 'array', items: { type: 'string' } })).toBe('list')
    expect(kindOf({ type: 'array', items: { type: 'object' } })).toBe('json')
    expect(kindOf({ type: 'object', properties: {} })).toBe('object')
    expect(kindOf({ type: 'object', writeOnly: true })).toBe('json')
    expect(kindOf({})).toBe('json')
  })
})
