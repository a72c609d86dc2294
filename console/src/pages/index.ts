// The pages. A page is one module below src/pages/ with a component as its default
// export; it is loaded when it is first shown. To add a page, add a line here: it gets its
// URL, its place in the sidebar, its shortcut and its entry in the command palette.
import type { FunctionComponent } from 'preact'
import { lazy } from 'preact-iso'
import type { IconName } from '../ui/icon'
import { tabs } from './settings/tabs'

export interface Page {
  path: string // below /console/project/:project
  title: string
  icon?: IconName // in the sidebar
  key?: string // shortcut after g
  command?: string // in the command palette, for pages that are not in the sidebar
  component: FunctionComponent
}

const view = (load: () => Promise<{ default: FunctionComponent }>) => lazy(load) as FunctionComponent

const settings = view(() => import('./settings/settings'))

export const pages: Page[] = [
  { path: '/flags', title: 'Flags', icon: 'flag', key: 'f', component: view(() => import('./flags/list')) },
  { path: '/flags/new', title: 'New flag', command: 'Create a flag', component: view(() => import('./flags/flag')) },
  { path: '/flags/:id', title: 'Flag', component: view(() => import('./flags/flag')) },
  { path: '/actions', title: 'Actions', icon: 'bolt', key: 'a', component: view(() => import('./actions/list')) },
  { path: '/actions/new', title: 'New action', command: 'Create an action', component: view(() => import('./actions/action')) },
  { path: '/actions/:id', title: 'Action', component: view(() => import('./actions/action')) },
  { path: '/why', title: 'Why', icon: 'why', key: 'w', component: view(() => import('./why/why')) },
  { path: '/live', title: 'Live', icon: 'live', key: 'l', component: view(() => import('./live/live')) },
  { path: '/persons', title: 'Persons', icon: 'users', key: 'p', component: view(() => import('./persons/list')) },
  { path: '/persons/:id', title: 'Person', component: view(() => import('./persons/person')) },
  { path: '/cohorts', title: 'Cohorts', command: 'Cohorts', component: view(() => import('./persons/cohorts')) },
  { path: '/groups', title: 'Groups', command: 'Groups', component: view(() => import('./persons/groups')) },
  { path: '/groups/:type', title: 'Groups', component: view(() => import('./persons/groups')) },
  { path: '/groups/:type/group', title: 'Group', component: view(() => import('./persons/group')) },
  { path: '/dead-letters', title: 'Dead letters', icon: 'letter', key: 'd', component: view(() => import('./deadletters/list')) },
  { path: '/dead-letters/:id', title: 'Dead letter', component: view(() => import('./deadletters/letter')) },
  { path: '/health', title: 'Health', icon: 'pulse', key: 'h', component: view(() => import('./health/health')) },
  { path: '/plugins', title: 'Plugins', icon: 'plug', key: 'i', component: view(() => import('./plugins/list')) },
  { path: '/plugins-new', title: 'Enable a plugin', command: 'Enable a plugin', component: view(() => import('./plugins/new')) },
  { path: '/plugins/:name', title: 'Plugin', component: view(() => import('./plugins/plugin')) },
  { path: '/settings', title: 'Settings', icon: 'gear', key: 's', component: settings },
  ...tabs.map((t): Page => ({ path: `/settings/${t.name}`, title: 'Settings', command: `Settings: ${t.title} (${t.group.toLowerCase()})`, component: settings })),
]

export const base = '/console/project/'

// pathOf returns the URL of a view in a project.
export function pathOf(project: string | number, path: string): string { return `${base}${project}${path}` }

// belongsTo reports whether a view of a project is a page, or one of those below it. A URL
// that no page has belongs to none.
export function belongsTo(page: string, view: string): boolean {
  const parts = view.replace(/\/+$/, '').split('/')
  return pages.some(({ path }) => {
    if (path !== page && !path.startsWith(page + '/') && path !== page + '-new') return false
    const names = path.split('/')
    return names.length === parts.length && names.every((name, i) => name.startsWith(':') || name === parts[i])
  })
}
