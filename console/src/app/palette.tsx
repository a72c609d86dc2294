// The command palette reaches every page and every flag.
import { signal } from '@preact/signals'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { api } from '../api/client'
import { pages, pathOf } from '../pages'
import { Icon, type IconName } from '../ui/icon'
import { useData, useDebounced } from './load'
import { usePlace } from './place'
import { projects } from './session'
import { theme } from './theme'

export const paletteOpen = signal(false)

interface Entry { id: string; label: string; detail?: string; icon: IconName; run: () => void }

export function Palette() { return paletteOpen.value ? <Open /> : null }

function Open() {
  const { project, go, visit } = usePlace()
  const ref = useRef<HTMLDialogElement>(null)
  const list = useId()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const wanted = useDebounced(text.trim(), 120)
  const flags = useData(project && `palette/${project}/${wanted}`, (signal) => api.get('/api/projects/{project_id}/feature_flags', { path: { project_id: project }, query: { search: wanted, limit: 8 }, signal }))
  useEffect(() => {
    const dialog = ref.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  const close = () => { paletteOpen.value = false }
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const fits = (label: string) => words.every((w) => label.toLowerCase().includes(w))
  const fixed: Entry[] = [
    ...pages.filter((p) => p.icon ?? p.command).map((p): Entry => ({ id: p.path, label: p.command ?? p.title, icon: p.icon ?? 'plus', run: () => go(p.path) })),
    ...projects.value.filter((p) => String(p.id) !== project).map((p): Entry => ({ id: `project-${p.id}`, label: p.name, detail: 'project', icon: 'project', run: () => visit(pathOf(p.id, '/flags')) })),
    { id: 'light', label: 'Light theme', icon: 'sun', run: () => { theme.value = 'light' } },
    { id: 'dark', label: 'Dark theme', icon: 'moon', run: () => { theme.value = 'dark' } },
  ]
  const entries = [
    ...fixed.filter((e) => fits(`${e.label} ${e.detail ?? ''}`)),
    ...(flags.data?.results ?? []).map((f): Entry => ({ id: `flag-${f.id}`, label: f.key, detail: f.name, icon: 'flag', run: () => go(`/flags/${f.id}`) })),
  ]
  const chosen = Math.min(at, entries.length - 1)
  const choose = (e: Entry | undefined) => { close(); e?.run() }
  const press = (e: KeyboardEvent) => {
    if (e.key === 'ArrowDown') setAt(Math.min(chosen + 1, entries.length - 1))
    else if (e.key === 'ArrowUp') setAt(Math.max(chosen - 1, 0))
    else if (e.key === 'Enter') choose(entries[chosen])
    else return
    e.preventDefault()
  }
  return (
    <dialog ref={ref} class="palette" aria-label="Search or jump to" onCancel={(e) => { e.preventDefault(); close() }} onMouseDown={(e) => { if (e.target === ref.current) close() }}>
      <div class="palette-body">
        <input role="combobox" aria-expanded="true" aria-controls={list} aria-activedescendant={entries[chosen] && `${list}-${chosen}`} aria-label="Search" placeholder="Search pages, flags, projects" value={text}
          onInput={(e) => { setText(e.currentTarget.value); setAt(0) }} onKeyDown={press} />
        <ul id={list} role="listbox" aria-label="Results">
          {entries.map((e, i) => (
            <li key={e.id} id={`${list}-${i}`} role="option" aria-selected={i === chosen} onMouseMove={() => setAt(i)} onClick={() => choose(e)}>
              <Icon name={e.icon} /><span>{e.label}</span><span class="faint">{e.detail}</span>
            </li>
          ))}
          {entries.length === 0 && <li role="option" aria-selected="false" class="faint">Nothing fits.</li>}
        </ul>
      </div>
    </dialog>
  )
}
