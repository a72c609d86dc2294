// Names that a project has seen, offered while one is typed. The server is searched, so
// every name can be found in a project with thousands.
import { useId, useState } from 'preact/hooks'
import { api } from '../api/client'
import { useData, useDebounced } from '../app/load'
import { may } from '../app/session'

export type NameKind = 'event' | 'event property' | 'person property' | `group ${number} property` // with the index of its type

async function searchNames(project: string, kind: NameKind, search: string, signal: AbortSignal): Promise<string[]> {
  const ask = { path: { project_id: project }, signal }
  const query = { search, limit: 50, ordering: '-last_seen_at' as const, exclude_hidden: true as never }
  const group = /^group (\d+)/.exec(kind)?.[1]
  const found = kind === 'event'
    ? await api.get('/api/projects/{project_id}/event_definitions', { ...ask, query })
    : await api.get('/api/projects/{project_id}/property_definitions', { ...ask, query: { ...query, ...(group === undefined ? { type: kind === 'event property' ? 'event' as const : 'person' as const } : { type: 'group' as const, group_type_index: Number(group) }) } })
  return (found.results ?? []).map((d) => d.name)
}

// useNames returns the names that fit a text, the latest seen first; none while off. Who may
// not read them gets none.
function useNames(project: string, kind: NameKind, text: string, on = true): string[] {
  const wanted = useDebounced(text.trim(), 150)
  const reads = on && may('read', kind === 'event' ? 'event_definition' : 'property_definition')
  return useData(reads ? `names/${project}/${kind}/${wanted}` : '', (signal) => searchNames(project, kind, wanted, signal)).data ?? []
}

interface Props {
  project: string
  kind: NameKind | null
  also?: string[]
  value: string
  onText: (text: string) => void
  inputRef?: (el: HTMLInputElement | null) => void
  id?: string
  class?: string
  type?: 'text' | 'search'
  placeholder?: string
  required?: boolean
  disabled?: boolean
  'aria-label'?: string
  'aria-invalid'?: boolean
}

// NameInput is a field for a name. kind null offers only the names of also.
export function NameInput({ project, kind, also = [], value, onText, inputRef, type = 'text', ...rest }: Props) {
  const id = useId()
  const [used, setUsed] = useState(false)
  const names = useNames(project, kind ?? 'event', value, used && kind !== null)
  return (
    <>
      <input {...rest} type={type} ref={inputRef ?? null} list={`${id}-names`} autocomplete="off" spellcheck={false} value={value} onFocus={() => setUsed(true)} onInput={(e) => onText(e.currentTarget.value)} />
      <datalist id={`${id}-names`}>{[...new Set([...also, ...names])].map((name) => <option key={name} value={name} />)}</datalist>
    </>
  )
}
