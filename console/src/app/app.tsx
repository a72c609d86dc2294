import type { FunctionComponent } from 'preact'
import { useEffect } from 'preact/hooks'
import { ErrorBoundary, Route, Router, lazy, useLocation } from 'preact-iso'
import { base, pages } from '../pages'
import { Confirmations } from '../ui/dialog'
import { Empty, Problem } from '../ui/basics'
import { Mark } from '../ui/mark'
import { failure, me, projects, safeNext, state } from './session'
import { Shell } from './shell'
import { begin } from './begin'
import { Toasts, sayError } from './toasts'

const SignIn = lazy(() => import('../pages/signin/signin')) as FunctionComponent

// App shows the sign-in page or the shell with the page of the URL.
export function App() {
  useEffect(() => { begin().catch(sayError) }, [])
  return (
    <>
      <Content />
      <Confirmations />
      <Toasts />
    </>
  )
}

function Content() {
  const { path, url, route } = useLocation()
  const outside = path === '/sign-in' || path === '/reset-password' || path === '/invitation'
  const at = state.value
  useEffect(() => {
    if (at === 'out' && !outside) route(`/sign-in?next=${encodeURIComponent(safeNext(url))}`, true)
  }, [at, outside])
  if (outside) return <ErrorBoundary><SignIn /></ErrorBoundary>
  if (at === 'failed' && failure.value) return <main class="sign-in"><div class="card"><h1><Mark /> Guidon</h1><Problem error={failure.value} retry={() => { begin().catch(sayError) }} /></div></main>
  if (at !== 'in') return null
  if (path === '/' || path === '/console' || path === '/console/') return <Start />
  return (
    <Shell>
      <ErrorBoundary onError={sayError}>
        <Router>
          {pages.map((p) => <Route key={p.path} path={`${base}:project${p.path}`} component={p.component} />)}
          <Route default component={NotFound} />
        </Router>
      </ErrorBoundary>
    </Shell>
  )
}

// Start leads to the flags of the project that the user works in.
function Start() {
  const { route } = useLocation()
  const id = me.value?.project?.id ?? projects.value[0]?.id
  useEffect(() => { if (id) route(`${base}${id}/flags`, true) }, [id])
  return id ? null : <Empty title="There is no project yet"><p>Create one: <code>guidon project create NAME</code></p></Empty>
}

function NotFound() {
  return <Empty title="There is no such page"><p>Press <kbd>Ctrl</kbd> <kbd>K</kbd> to go anywhere, or start at the <a href="/">flags</a>.</p></Empty>
}
