// Where the user is: the project of the URL.
import { useLocation } from 'preact-iso'
import { base, pathOf } from '../pages'

export interface Place {
  project: string
  to: (path: string) => string // the URL of a view of this project
  go: (path: string, replace?: boolean) => void
}

export function usePlace(): Place {
  const { path, route } = useLocation()
  const project = path.startsWith(base) ? (path.slice(base.length).split('/')[0] ?? '') : ''
  const to = (view: string) => pathOf(project, view)
  return { project, to, go: (view, replace) => route(to(view), replace) }
}
