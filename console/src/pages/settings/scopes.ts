// What keys may do, in words. A scope is an object with read or write; write includes read.
export const objects: Record<string, string> = {
  feature_flag: 'Flags', cohort: 'Cohorts', action: 'Actions', dashboard: 'Dashboards', insight: 'Insights', event: 'Events', query: 'Queries', person: 'Persons', group: 'Groups',
  event_definition: 'Event definitions', property_definition: 'Property definitions', plugin: 'Plugins', project: 'Projects and their keys', organization: 'Organization', role: 'Roles', user: 'Own account and keys', activity_log: 'Audit log',
}

export type Right = '' | 'read' | 'write'
export type Rights = Record<string, Right>

// scopesOf returns the scopes of a key with the rights.
export function scopesOf(rights: Rights): string[] {
  return Object.keys(objects).flatMap((object) => (rights[object] ? [`${object}:${rights[object]}`] : []))
}

// everything returns the same right for each object.
export function everything(right: Right): Rights { return Object.fromEntries(Object.keys(objects).map((o) => [o, right])) }

// scopeWords says in a few words what scopes allow.
export function scopeWords(scopes: string[]): string {
  if (scopes.includes('*')) return 'everything'
  const names = (right: string) => scopes.filter((s) => s.endsWith(':' + right)).map((s) => (objects[s.split(':')[0] ?? ''] ?? s).toLowerCase())
  const part = (verb: string, list: string[]) => (list.length === 0 ? [] : [`${verb} ${list.length > 4 ? `${list.slice(0, 3).join(', ')} and ${list.length - 3} more` : list.join(', ')}`])
  return [...part('change', [...names('write'), ...names('*')]), ...part('read', names('read'))].join('; ')
}
