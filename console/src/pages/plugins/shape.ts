// What the form needs of a JSON Schema.
export interface Node {
  type?: string | string[]
  description?: string
  default?: unknown
  enum?: unknown[]
  required?: string[]
  properties?: Record<string, Node>
  items?: Node
  writeOnly?: boolean
}

// stored stands for a secret that the server has; sent back, it keeps the secret.
export const stored = '********* (encrypted)'

export type Kind = 'text' | 'number' | 'boolean' | 'enum' | 'secret' | 'list' | 'object' | 'json'

export function kindOf(node: Node): Kind {
  if (node.enum) return 'enum'
  if (node.type === 'string') return node.writeOnly ? 'secret' : 'text'
  if (node.writeOnly) return 'json'
  if (node.type === 'integer' || node.type === 'number') return 'number'
  if (node.type === 'boolean') return 'boolean'
  if (Array.isArray(node.type) && node.type.includes('string')) return 'text'
  if (node.type === 'array' && node.items?.type === 'string' && !node.items.enum) return 'list'
  if (node.type === 'object' && node.properties) return 'object'
  return 'json'
}
