// Keyboard shortcuts: Ctrl-K anywhere; g and a letter go to a page; others belong to the
// page that is shown.
import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { pages } from '../pages'
import { Dialog } from '../ui/dialog'
import { paletteOpen } from './palette'
import { usePlace } from './place'

const helpOpen = signal(false)
const ofPage = new Map<string, { label: string; run: () => void }>()

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}

// useShortcut gives a key to the page while it is shown.
export function useShortcut(key: string, label: string, run: () => void): void {
  const latest = useRef(run)
  latest.current = run
  useEffect(() => {
    ofPage.set(key, { label, run: () => latest.current() })
    return () => { ofPage.delete(key) }
  }, [key, label])
}

export function useShortcuts(): void {
  const { project, go } = usePlace()
  const latest = useRef<(path: string) => void>(go)
  latest.current = project ? go : () => undefined // without a project there is no page
  useEffect(() => {
    let after = 0
    const press = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
        e.preventDefault()
        paletteOpen.value = !paletteOpen.value
        return
      }
      if (e.key === ' ' && e.target instanceof Element && e.target.closest('button, a, summary, dialog')) return
      if (e.ctrlKey || e.metaKey || e.altKey || typing(e.target) || document.querySelector('dialog[open]')) return
      const page = pages.find((p) => p.key === e.key)
      if (Date.now() - after < 1200 && page) latest.current(page.path)
      else if (e.key === 'g') { after = Date.now(); return }
      else if (e.key === '?') helpOpen.value = true
      else if (ofPage.has(e.key)) ofPage.get(e.key)?.run()
      else return
      after = 0
      e.preventDefault()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}

export function ShortcutHelp() {
  if (!helpOpen.value) return null
  return (
    <Dialog title="Keyboard" onClose={() => { helpOpen.value = false }}>
      <dl class="keys">
        <div><dt><kbd>Ctrl</kbd> <kbd>K</kbd></dt><dd>Search or jump to anything</dd></div>
        {pages.filter((p) => p.key).map((p) => <div key={p.path}><dt><kbd>g</kbd> <kbd>{p.key}</kbd></dt><dd>{p.title}</dd></div>)}
        {[...ofPage].map(([key, s]) => <div key={key}><dt><kbd>{key === ' ' ? 'Space' : key}</kbd></dt><dd>{s.label}</dd></div>)}
        <div><dt><kbd>?</kbd></dt><dd>This list</dd></div>
      </dl>
    </Dialog>
  )
}
