// The pages. A page is one module below src/pages/ with a component as its default
// export; it is loaded when it is first shown. To add a page, add a line here: it gets its
// URL, its place in the sidebar, its shortcut and its entry in the command palette.
import type { FunctionComponent } from 'preact'
import { lazy } from 'preact-iso'
import type { IconName } from '../ui/icon'

export interface Page {
  path: string // below /console/project/:project
  title: string
  icon?: IconName // in the sidebar
  key?: string // shortcut after g
  command?: string // in the command palette, for pages that are not in the sidebar
  component: FunctionComponent
}

const view = (load: () => Promise<{ default: FunctionComponent }>) => lazy(load) as FunctionComponent

export const pages: Page[] = [
  { path: '/flags', title: 'Flags', icon: 'flag', key: 'f', component: view(() => import('./flags/list')) },
  { path: '/flags/new', title: 'New flag', command: 'Create a flag', component: view(() => import('./flags/flag')) },
  { path: '/flags/:id', title: 'Flag', component: view(() => import('./flags/flag')) },
  { path: '/why', title: 'Why', icon: 'why', key: 'w', component: view(() => import('./why/why')) },
]

export const base = '/console/project/'

// pathOf returns the URL of a view in a project.
export function pathOf(project: string | number, path: string): string { return `${base}${project}${path}` }
