// Properties of the person, or of its groups, that are assumed to be different.
import { useEffect, useState } from 'preact/hooks'
import { api } from '../../api/client'
import type { GroupType } from '../../api/types'
import { useData } from '../../app/load'
import { may } from '../../app/session'
import { Icon } from '../../ui/icon'
import { NameInput } from '../../ui/names'
import { focusNext } from '../flags/condition'
import { typeWords } from '../persons/words'
import type { Groups } from './groups'
import { entered, type Override } from './values'

type Properties = Record<string, unknown>

interface Props { project: string; id: string; groups: Groups; types: GroupType[]; value: Override[]; onChange: (value: Override[]) => void }

export function Overrides({ project, id, groups, types, value, onChange }: Props) {
  const [used, setUsed] = useState(value.length > 0)
  const named = types.filter((t) => groups[t.group_type])
  const path = { project_id: project }
  const person = useData(used && may('read', 'person') ? `why/${project}/stored/${id}` : '', async (signal) => ({ id, properties: (await api.get('/api/projects/{project_id}/persons', { path, query: { distinct_id: id, limit: 1 }, signal })).results?.[0]?.properties as Properties | undefined }))
  const ofGroups = useData(used && named.length > 0 && may('read', 'group') ? `why/${project}/stored-groups/${JSON.stringify(groups)}` : '', async (signal) => {
    const found = await Promise.all(named.map(async (t) => {
      const { results } = await api.get('/api/projects/{project_id}/groups', { path, query: { group_type_index: t.group_type_index, search: groups[t.group_type], limit: 20 }, signal })
      return [t.group_type, results?.find((g) => g.group_key === groups[t.group_type])?.group_properties as Properties | undefined] as const
    }))
    return Object.fromEntries(found)
  })
  // stored returns the value that is stored of a property, as it would be typed.
  const stored = (of: string, name: string): string => {
    const properties = of === '' ? (person.data?.id === id ? person.data.properties : undefined) : ofGroups.data?.[of]
    return properties && Object.hasOwn(properties, name) ? entered(properties[name]) : ''
  }
  const change = (i: number, o: Override) => onChange(value.map((old, at) => (at === i ? o : old)))
  const follow = (o: Override): Override => (o.stored ? { ...o, value: stored(o.of, o.name) } : o)
  useEffect(() => { if (value.some((o) => follow(o).value !== o.value)) onChange(value.map(follow)) }, [person.data, ofGroups.data])
  return (
    <section class="overrides">
      {value.length > 0 && <h2>What if a property were different?</h2>}
      {value.map((o, i) => (
        <div class="row" key={i}>
          {named.length > 0 && (
            <select aria-label="Of" value={o.of} onChange={(e) => change(i, follow({ ...o, of: e.currentTarget.value }))}>
              <option value="">Person</option>
              {named.map((t) => <option key={t.group_type} value={t.group_type}>{typeWords(t, false)}</option>)}
            </select>
          )}
          <NameInput project={project} kind={kindOf(o.of, types)} also={Object.keys((o.of === '' ? person.data?.properties : ofGroups.data?.[o.of]) ?? {})} class="mono" aria-label="Property" placeholder="plan" value={o.name} onText={(name) => change(i, follow({ ...o, name }))} />
          <span>is</span>
          <input class="mono" aria-label="Value" placeholder={stored(o.of, o.name) || 'pro'} value={o.value} onInput={(e) => change(i, { of: o.of, name: o.name, value: e.currentTarget.value })} />
          <button type="button" class="icon-button" aria-label="Remove" onClick={() => onChange(value.filter((_, at) => at !== i))}><Icon name="close" /></button>
        </div>
      ))}
      <button type="button" class="button small" onClick={(e) => { setUsed(true); focusNext(e.currentTarget, '.row'); onChange([...value, { of: '', name: '', value: '', stored: true }]) }}><Icon name="plus" /> Change a property</button>
      {value.length === 0 && <span class="muted small">See which flags change if a property of this person were different.</span>}
    </section>
  )
}

function kindOf(of: string, types: GroupType[]) {
  const index = types.find((t) => t.group_type === of)?.group_type_index
  return index === undefined ? 'person property' as const : `group ${index} property` as const
}
