// Where the user is: the project of the URL.
import { useLocation } from 'preact-iso'
import { base, pathOf } from '../pages'
import { leave } from './guard'

export interface Place {
  project: string
  to: (path: string) => string // the URL of a view of this project
  go: (path: string, replace?: boolean) => void
  visit: (url: string, replace?: boolean) => void // go to any URL; asks before unsaved changes are lost
}

export function usePlace(): Place {
  const { path, route } = useLocation()
  const project = path.startsWith(base) ? (path.slice(base.length).split('/')[0] ?? '') : ''
  const to = (view: string) => pathOf(project, view)
  const visit = (url: string, replace?: boolean) => leave(url, () => route(url, replace))
  return { project, to, visit, go: (view, replace) => visit(to(view), replace) }
}
