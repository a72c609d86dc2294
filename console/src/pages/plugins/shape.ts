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

// orderOf returns the names of the options: those that are required, then secrets, then all
// others by name.
export function orderOf(node: Node): string[] {
  const rank = (name: string) => (node.required?.includes(name) ? 0 : node.properties?.[name]?.writeOnly ? 1 : 2)
  return Object.keys(node.properties ?? {}).sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))
}

const capitals = new Set(['url', 'id', 'tls', 'api', 'ttl', 'sql', 'http', 'ca', 'json', 'sasl', 'acl', 'aws', 'ip', 'ssl'])

// labelOf returns the name of an option as words: "max_events" is "Max events".
export function labelOf(name: string): string {
  const words = name.split('_').map((w) => (capitals.has(w) ? w.toUpperCase() : w)).join(' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

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
