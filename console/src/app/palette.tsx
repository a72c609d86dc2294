// The command palette reaches every page, and by name what a project, the organization and
// the server have.
import { signal } from '@preact/signals'
import { useEffect, useId, useState } from 'preact/hooks'
import { api } from '../api/client'
import { pages, pathOf } from '../pages'
import { useModal } from '../ui/dialog'
import { Icon } from '../ui/icon'
import { entriesOf, type Entry, type Found } from './entries'
import { useData, useDebounced } from './load'
import { usePlace } from './place'
import { signOut } from './begin'
import { leave } from './guard'
import { may, me, projects } from './session'
import { theme } from './theme'
import { sayError } from './toasts'

export const paletteOpen = signal(false)

export function Palette() { return paletteOpen.value ? <Open /> : null }

// useFound asks the server for what fits the text, of what the user may read. Plugins and
// members are asked for once: there are few.
function useFound(project: string, text: string): { found: Found; loading: boolean } {
  const path = { project_id: project }
  const any = project !== ''
  const named = any && text !== ''
  const on = {
    flags: any && may('read', 'feature_flag'), actions: any && may('read', 'action'), cohorts: named && may('read', 'cohort'), persons: named && may('read', 'person'),
    members: named && may('read', 'organization'), plugins: named && me.value?.is_operator === true && may('read', 'plugin'),
  }
  const flags = useData(on.flags ? `palette/${project}/${text}` : '', (signal) => api.get('/api/projects/{project_id}/feature_flags', { path, query: { search: text, limit: 8 }, signal }))
  const actions = useData(on.actions ? `palette/${project}/actions/${text}` : '', (signal) => api.get('/api/projects/{project_id}/actions', { path, query: { search: text, limit: 5 }, signal }))
  const cohorts = useData(on.cohorts ? `palette/${project}/cohorts/${text}` : '', (signal) => api.get('/api/projects/{project_id}/cohorts', { path, query: { search: text, limit: 5 }, signal }))
  // With a cursor the server answers soon, with those it found in a part of all persons.
  const persons = useData(on.persons ? `palette/${project}/persons/${text}` : '', (signal) => api.get('/api/projects/{project_id}/persons', { path, query: { search: text, limit: 5, cursor: '0.0.0' }, signal }))
  const members = useData(on.members ? 'palette/members' : '', (signal) => api.get('/api/organizations/{organization_id}/members', { path: { organization_id: '@current' }, query: { limit: 1000 }, signal }))
  const plugins = useData(on.plugins ? 'palette/plugins' : '', (signal) => api.get('/api/plugins', { signal }))
  return {
    found: { flags: flags.data?.results, actions: actions.data?.results, cohorts: cohorts.data?.results, persons: persons.data?.results, members: members.data?.results, plugins: plugins.data?.results },
    loading: (on.flags && flags.loading) || (on.actions && actions.loading) || (on.cohorts && cohorts.loading) || (on.persons && persons.loading) || (on.members && members.loading) || (on.plugins && plugins.loading),
  }
}

function Open() {
  const { project, go, visit } = usePlace()
  const ref = useModal()
  const list = useId()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const wanted = useDebounced(text.trim(), 120)
  const { found, loading } = useFound(project, wanted)
  const [entered, setEntered] = useState(false) // Enter was pressed before the answer came
  const close = () => { paletteOpen.value = false }
  const fixed: Entry[] = [
    ...pages.filter((p) => project && (p.icon ?? p.command)).map((p): Entry => ({ id: p.path, label: p.command ?? p.title, icon: p.icon ?? 'plus', run: () => go(p.path) })),
    ...projects.value.filter((p) => String(p.id) !== project).map((p): Entry => ({ id: `project-${p.id}`, label: p.name, detail: 'project', icon: 'project', run: () => visit(pathOf(p.id, '/flags')) })),
    { id: 'light', label: 'Light theme', icon: 'sun', run: () => { theme.value = 'light' } },
    { id: 'dark', label: 'Dark theme', icon: 'moon', run: () => { theme.value = 'dark' } },
    { id: 'out', label: 'Sign out', icon: 'out', run: () => leave('/sign-in', () => { signOut().catch(sayError) }) },
  ]
  const pending = project !== '' && (text.trim() !== wanted || loading)
  const entries = entriesOf(text, fixed, found, go).filter((e) => project !== '' || !e.offer)
  const chosen = Math.min(at, entries.length - 1)
  const choose = (e: Entry | undefined) => { close(); e?.run() }
  const enter = () => {
    if (pending && at === 0 && (entries[0]?.offer ?? true)) setEntered(true)
    else choose(entries[chosen])
  }
  useEffect(() => { if (entered && !pending) choose(entries[0]) }, [entered, pending])
  const press = (e: KeyboardEvent) => {
    if (e.key === 'ArrowDown') setAt(Math.min(chosen + 1, entries.length - 1))
    else if (e.key === 'ArrowUp') setAt(Math.max(chosen - 1, 0))
    else if (e.key === 'Enter') enter()
    else return
    e.preventDefault()
  }
  return (
    <dialog ref={ref} class="palette" aria-label="Search or jump to" onCancel={(e) => { e.preventDefault(); close() }} onMouseDown={(e) => { if (e.target === ref.current) close() }}>
      <div class="palette-body">
        <input role="combobox" aria-expanded="true" aria-controls={list} aria-activedescendant={entries[chosen] && `${list}-${chosen}`} aria-label="Search" placeholder="Search pages, flags, actions, persons, plugins" value={text}
          onInput={(e) => { setText(e.currentTarget.value); setAt(0); setEntered(false) }} onKeyDown={press} />
        <ul id={list} role="listbox" aria-label="Results">
          {entries.map((e, i) => (
            <li key={e.id} id={`${list}-${i}`} role="option" aria-selected={i === chosen} onMouseMove={() => setAt(i)} onClick={() => choose(e)}>
              <Icon name={e.icon} /><span>{e.label}</span><span class="faint">{e.detail}</span>
            </li>
          ))}
          {entries.length === 0 && <li role="option" aria-selected="false" class="faint">Nothing matches.</li>}
        </ul>
      </div>
    </dialog>
  )
}
