import type { FunctionComponent } from 'preact'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { ErrorBoundary, Route, Router, lazy, useLocation } from 'preact-iso'
import { ApiError } from '../api/client'
import { base, pages } from '../pages'
import SignIn from '../pages/signin/signin' // not lazy: the first render must replace the mark of the document
import { Confirmations, Dialog, takeBack } from '../ui/dialog'
import { Empty, Field, Problem } from '../ui/basics'
import { Mark } from '../ui/mark'
import { failure, keyed, me, projects, safeNext, state } from './session'
import { Shell } from './shell'
import { begin, signInWithKey } from './begin'
import { unguard, unsaved } from './guard'
import { countVisit } from './late'
import { Secrets } from './secrets'
import { Toasts, sayError } from './toasts'

const FirstProject = lazy(() => import('../pages/start/start')) as FunctionComponent

// App shows the sign-in page or the shell with the page of the URL.
export function App() {
  useEffect(() => {
    begin().catch(sayError)
    preload(location.pathname)
  }, [])
  return (
    <>
      <Content />
      <Confirmations />
      <Secrets />
      <SessionEnded />
      <Toasts />
    </>
  )
}

function Content() {
  const { path, url, route } = useLocation()
  const outside = path === '/sign-in' || path === '/reset-password' || path === '/invitation'
  const at = state.value
  useLayoutEffect(() => { countVisit(); takeBack() }, [path])
  useEffect(() => {
    if (at === 'out' && !outside && !unsaved()) route(`/sign-in?next=${encodeURIComponent(safeNext(url))}`, true)
  }, [at, outside])
  if (outside) return <ErrorBoundary><SignIn /></ErrorBoundary>
  if (at === 'failed' && failure.value) return <main class="sign-in"><div class="card"><h1><Mark /> Guidon</h1><Problem error={failure.value} retry={() => { begin().catch(sayError) }} /></div></main>
  if (at !== 'in' && !(at === 'out' && unsaved())) return <div class="boot"><Mark /></div> // as in index.html
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

// SessionEnded keeps what was written when the session ends under it.
function SessionEnded() {
  const { url, route } = useLocation()
  const [note, setNote] = useState('')
  const ended = state.value === 'out' && unsaved()
  const [key, setKey] = useState('')
  useEffect(() => { setNote(''); setKey('') }, [ended])
  if (!ended) return null
  const next = `/sign-in?next=${encodeURIComponent(safeNext(url))}`
  const failed = (e: unknown) => { if (e instanceof ApiError) setNote(e.message); else sayError(e) }
  const paste = () => { signInWithKey(key.trim()).catch(failed) }
  const goOn = () => { begin().then(() => { if (state.value === 'out') setNote('Not signed in yet.') }, sayError) }
  return (
    <Dialog title="You are signed out" sticky onClose={goOn}>
      <div class="dialog-text">
        <p>{keyed.value ? 'Your personal key does not work any more. What you have written is still here: paste another key, or sign in in another tab, then go on.' : 'The session has ended. What you have written is still here: sign in in another tab, then go on.'}</p>
        {keyed.value && <form onSubmit={(e) => { e.preventDefault(); paste() }}><Field id="another-key" label="Personal API key"><input id="another-key" class="mono" type="password" autocomplete="off" value={key} onInput={(e) => setKey(e.currentTarget.value)} /></Field></form>}
        <p role="status">{note}</p>
      </div>
      <footer>
        <button type="button" class="button" onClick={() => { unguard(); route(next, true) }}>Leave without saving</button>
        <a class="button" href={next} target="_blank" rel="noopener">Sign in in another tab</a>
        <button type="button" class="button primary" onClick={key.trim() ? paste : goOn}>Go on</button>
      </footer>
    </Dialog>
  )
}

// preload loads the page of a path while the server is asked who is signed in.
function preload(path: string): void {
  const [, below = ''] = /^\/console\/project\/[^/]+(\/.*)$/.exec(path) ?? []
  const page = pages.find((p) => p.path === (below.replace(/\/$/, '') || '/flags')) ?? pages.find((p) => p.path.includes(':') && below.startsWith(p.path.slice(0, p.path.indexOf(':'))))
  void (page?.component as { preload?: () => Promise<unknown> } | undefined)?.preload?.().catch(() => undefined)
}

// Start leads to the flags of the project that the user works in, or has the first one made.
function Start() {
  const { route } = useLocation()
  const id = me.value?.project?.id ?? projects.value[0]?.id
  useEffect(() => { if (id) route(`${base}${id}/flags`, true) }, [id])
  return id ? null : <Shell><ErrorBoundary onError={sayError}><FirstProject /></ErrorBoundary></Shell>
}

function NotFound() {
  return <Empty alone title="There is no such page"><p>Press <kbd>Ctrl</kbd> <kbd>K</kbd> to go anywhere, or start at the <a href="/">flags</a>.</p></Empty>
}
