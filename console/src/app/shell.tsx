import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { belongsTo, pages, pathOf } from '../pages'
import { Icon } from '../ui/icon'
import { Mark } from '../ui/mark'
import { leave } from './guard'
import { Palette, paletteOpen } from './palette'
import { usePlace } from './place'
import { me, projects } from './session'
import { signOut } from './begin'
import { theme, type Theme } from './theme'
import { sayError } from './toasts'
import { useShortcuts, ShortcutHelp } from './shortcuts'

// Shell is the frame of all pages: sidebar, project, account.
export function Shell({ children }: { children: ComponentChildren }) {
  const { path } = useLocation()
  const { project, to, visit } = usePlace()
  const [open, setOpen] = useState(false)
  useLayoutEffect(() => setOpen(false), [path])
  const opener = useRef<HTMLButtonElement>(null)
  const menu = useMenu(open, opener, () => setOpen(false))
  useShortcuts()
  return (
    <div class="shell">
      <a class="skip" inert={open} href="#content" onClick={(e) => { e.preventDefault(); document.getElementById('content')?.focus() }}>Skip to the content</a>
      <header class="topbar" inert={open}>
        <button ref={opener} type="button" class="icon-button" aria-label="Menu" aria-expanded={open} onClick={() => setOpen(!open)}><Icon name="menu" /></button>
        <Mark /><b>Guidon</b>
        <button type="button" class="icon-button push" aria-label="Search" onClick={() => { paletteOpen.value = true }}><Icon name="search" /></button>
      </header>
      <aside ref={menu} class={`sidebar ${open ? 'open' : ''}`} aria-label="Main">
        <div class="brand"><Mark /><b>Guidon</b>{open && <button type="button" class="icon-button push" aria-label="Close the menu" onClick={() => setOpen(false)}><Icon name="close" /></button>}</div>
        {(project || projects.value.length > 0) && <label class="project-switch">
          <span class="visually-hidden">Project</span>
          <Icon name="project" />
          <select value={project} onChange={(e) => { const id = e.currentTarget.value; e.currentTarget.value = project; visit(pathOf(id, '/flags')) }}>
            {!projects.value.some((p) => String(p.id) === project) && <option value={project}>Project {project}</option>}
            {projects.value.map((p) => <option key={p.id} value={String(p.id)}>{p.name}</option>)}
          </select>
        </label>}
        <button type="button" class="search-button" onClick={() => { paletteOpen.value = true }}><Icon name="search" /> Search <kbd>Ctrl K</kbd></button>
        <nav aria-label="Pages">
          {project && pages.filter((p) => p.icon).map((p) => {
            const here = belongsTo(p.path, path.slice(to('').length))
            return <a key={p.path} href={to(p.path)} aria-current={here ? 'page' : undefined}>{p.icon && <Icon name={p.icon} />}{p.title}</a>
          })}
        </nav>
        <div class="account">
          <ThemeSwitch />
          <div class="who" title={me.value?.email}>{me.value?.first_name || me.value?.email}<span class="faint">{me.value?.organization.name}</span></div>
          <button type="button" class="icon-button" aria-label="Sign out" title="Sign out" onClick={() => leave('/sign-in', () => { signOut().catch(sayError) })}><Icon name="out" /></button>
        </div>
      </aside>
      {open && <div class="shade" onClick={() => setOpen(false)} />}
      <main id="content" tabIndex={-1} inert={open}>{children}</main>
      <Palette />
      <ShortcutHelp />
    </div>
  )
}

const narrow = matchMedia('(max-width: 760px)') // as in layout.css

// useMenu treats the sidebar of a narrow window as a dialog while it is open: it has the focus,
// Escape closes it, and the focus returns to the button. The rest of the page is inert.
function useMenu(open: boolean, opener: RefObject<HTMLButtonElement | null>, close: () => void) {
  const menu = useRef<HTMLElement>(null)
  const latest = useRef(close)
  latest.current = close
  useEffect(() => {
    if (!open) return
    menu.current?.querySelector<HTMLElement>('button, select, a')?.focus()
    const press = (e: KeyboardEvent) => {
      if (e.key !== 'Escape' || document.querySelector('dialog[open]')) return
      e.preventDefault()
      e.stopPropagation()
      latest.current()
    }
    const widen = () => latest.current()
    addEventListener('keydown', press, true)
    narrow.addEventListener('change', widen)
    return () => {
      removeEventListener('keydown', press, true)
      narrow.removeEventListener('change', widen)
      const left = document.activeElement === document.body || menu.current?.contains(document.activeElement)
      if (left) opener.current?.focus({ preventScroll: true })
    }
  }, [open])
  return menu
}

const themes: { value: Theme; label: string; icon: 'system' | 'sun' | 'moon' }[] = [
  { value: 'system', label: 'Theme of the system', icon: 'system' }, { value: 'light', label: 'Light theme', icon: 'sun' }, { value: 'dark', label: 'Dark theme', icon: 'moon' },
]

function ThemeSwitch() {
  return (
    <div class="themes" role="group" aria-label="Theme">
      {themes.map((t) => <button key={t.value} type="button" aria-pressed={theme.value === t.value} aria-label={t.label} title={t.label} onClick={() => { theme.value = t.value }}><Icon name={t.icon} /></button>)}
    </div>
  )
}
