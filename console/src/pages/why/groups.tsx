// The groups that a client names beside the distinct id: flags by groups are decided for them.
import { useId, useState } from 'preact/hooks'
import { api } from '../../api/client'
import type { GroupType } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { may } from '../../app/session'
import { Field } from '../../ui/basics'
import { useTypes } from '../../ui/grouptypes'
import { typeWords } from '../persons/words'

export type Groups = Record<string, string> // keys by group type

// groupsOf reads the groups of a URL; a text that has none is an empty one.
export function groupsOf(text: string): Groups {
  try {
    const read: unknown = JSON.parse(text)
    if (typeof read !== 'object' || read === null || Array.isArray(read)) return {}
    return Object.fromEntries(Object.entries(read).filter((e): e is [string, string] => typeof e[1] === 'string' && e[1] !== ''))
  } catch { return {} }
}

// groupsText returns what groupsOf reads; empty without groups.
export function groupsText(groups: Groups): string {
  const named = Object.entries(groups).map(([type, key]) => [type, key.trim()] as const).filter(([, key]) => key !== '')
  return named.length ? JSON.stringify(Object.fromEntries(named)) : ''
}

// useGroupTypes returns the group types of a project; none without the right to read them.
export function useGroupTypes(project: string): GroupType[] {
  return useTypes(project, may('read', 'group')).data ?? []
}

interface Props { project: string; types: GroupType[]; value: Groups; onChange: (groups: Groups) => void }

export function GroupFields({ project, types, value, onChange }: Props) {
  return <>{types.map((t) => <GroupField key={t.group_type_index} project={project} type={t} value={value[t.group_type] ?? ''} onChange={(key) => onChange({ ...value, [t.group_type]: key })} />)}</>
}

function GroupField({ project, type, value, onChange }: { project: string; type: GroupType; value: string; onChange: (key: string) => void }) {
  const id = useId()
  const [used, setUsed] = useState(false)
  const search = useDebounced(value.trim())
  const query = { group_type_index: type.group_type_index, search, limit: 20 }
  const { data } = useData(used && may('read', 'group') ? `groups/${project}/named/${type.group_type_index}/${search}` : '', (signal) => api.get('/api/projects/{project_id}/groups', { path: { project_id: project }, query, signal }))
  return (
    <Field id={id} label={typeWords(type, false)}>
      <input id={id} class="mono" list={`${id}-keys`} autocomplete="off" spellcheck={false} placeholder="none" value={value} onFocus={() => setUsed(true)} onInput={(e) => onChange(e.currentTarget.value)} />
      <datalist id={`${id}-keys`}>{(data?.results ?? []).map((g) => <option key={g.group_key} value={g.group_key} />)}</datalist>
    </Field>
  )
}
