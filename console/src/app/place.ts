// Where the user is: the project of the URL.
import { useLocation, useRoute } from 'preact-iso'
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

export interface View {
  path: string
  query: Record<string, string>
  route: (url: string, replace?: boolean) => void
}

// useView is useLocation for a page that writes into its own URL later, as a search does
// once the typing pauses. A page that is left stays mounted until the next one is loaded,
// and useLocation has the URL of the next one by then: here path and query stay those of
// the page itself, and route does nothing. It asks the browser for the URL, because an effect of
// the page can run between the click on a link and the rendering that follows.
export function useView(): View {
  const { route } = useLocation()
  const { path, query } = useRoute()
  return { path, query, route: (url, replace) => { if (path === (location.pathname.replace(/\/+$/, '') || '/')) route(url, replace) } }
}
