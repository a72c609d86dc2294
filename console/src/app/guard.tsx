// The question before unsaved changes are lost. A page with some holds the guard; every way
// to another page asks it: links, route calls, Back and Forward, and closing the tab. Another
// tab of the same page (the same path with another query) is free.
import { useEffect } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { confirm } from '../ui/dialog'

let guarded: string | null = null // the URL of the page with unsaved changes
let holders = 0 // the parts of the page that have some
let writing = 0 // these, and those that are being sent
let released = false // the user leaves them

// unsaved reports whether something would be lost if the page went now.
export function unsaved(): boolean { return writing > 0 && !released }

// samePage reports whether both URLs show the same page.
export function samePage(a: string, b: string): boolean {
  const path = (url: string) => url.split(/[?#]/, 1)[0]?.replace(/\/+$/, '')
  return path(a) === path(b)
}

// leave runs what leads to the URL, at once or after the question.
export function leave(url: string, run: () => void): void {
  if (guarded === null || samePage(guarded, url)) return run()
  void confirm({ title: 'Leave without saving?', body: <p>The changes on this page are not saved. They are lost if you leave it.</p>, action: 'Leave', danger: true }).then((yes) => {
    if (!yes) return
    unguard()
    run()
  })
}

// unguard lets the next step leave without the question.
export function unguard(): void {
  guarded = null
  released = true
}

// useGuard asks before the page is left while there are unsaved changes, unless they are
// being sent.
export function useGuard(changed: boolean, sending = false): void {
  const { url } = useLocation()
  const asks = changed && !sending
  useEffect(() => {
    if (!changed) return
    if (writing++ === 0) released = false
    return () => { writing-- }
  }, [changed])
  useEffect(() => {
    if (!asks) return
    guarded = url
    holders++
    const ask = (e: BeforeUnloadEvent) => { if (guarded !== null) e.preventDefault() }
    addEventListener('beforeunload', ask)
    return () => {
      if (--holders === 0) guarded = null
      removeEventListener('beforeunload', ask)
    }
  }, [asks])
  useEffect(() => { if (guarded !== null) guarded = url }, [url])
}

// These run before the listeners of the router, which are on the window too.
function onClick(e: MouseEvent): void {
  if (guarded === null || e.defaultPrevented || e.button !== 0 || e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return
  const link = e.composedPath().find((el): el is HTMLAnchorElement => el instanceof HTMLAnchorElement && el.href !== '')
  if (!link || link.origin !== location.origin || link.target || link.getAttribute('href')?.startsWith('#')) return
  const url = link.pathname + link.search
  if (samePage(guarded, url)) return
  e.preventDefault()
  e.stopImmediatePropagation()
  leave(url, () => link.click())
}

function onPopState(e: PopStateEvent): void {
  if (guarded === null) return
  const url = location.pathname + location.search
  if (samePage(guarded, url)) return
  // The browser has gone already: put the page back on top, and go back from there.
  e.stopImmediatePropagation()
  history.pushState(null, '', guarded)
  leave(url, () => history.back())
}

// watchLeaving is called before the router starts.
export function watchLeaving(): void {
  addEventListener('click', onClick, true)
  addEventListener('popstate', onPopState, true)
}
