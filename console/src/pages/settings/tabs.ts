// The tabs of the settings: the end of the URL, the title, and the group they stand in.
// They are apart from their views so that the palette has them without loading those.
export const groups = ['Project', 'Organization', 'You'] as const
export type Group = (typeof groups)[number]

export const tabs = [
  { name: 'general', title: 'General', group: 'Project' },
  { name: 'keys', title: 'Keys', group: 'Project' },
  { name: 'group-types', title: 'Group types', group: 'Project' },
  { name: 'definitions', title: 'Definitions', group: 'Project' },
  { name: 'data', title: 'Retention and quota', group: 'Project' },
  { name: 'log', title: 'Activity log', group: 'Project' },
  { name: 'projects', title: 'Projects', group: 'Organization' },
  { name: 'members', title: 'Members', group: 'Organization' },
  { name: 'roles', title: 'Roles', group: 'Organization' },
  { name: 'sessions', title: 'Sessions', group: 'Organization' },
  { name: 'audit', title: 'Audit log', group: 'Organization' },
  { name: 'profile', title: 'Profile', group: 'You' },
  { name: 'my-keys', title: 'Personal keys', group: 'You' },
  { name: 'my-sessions', title: 'My sessions', group: 'You' },
] as const satisfies readonly { name: string; title: string; group: Group }[]
export type TabName = (typeof tabs)[number]['name']
