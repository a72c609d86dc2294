// One property filter of a step.
import type { ActionFilter } from '../../api/types'
import { Icon } from '../../ui/icon'
import { NameInput } from '../../ui/names'
import { CohortPick } from '../../ui/picks'
import { Values } from '../flags/values'
import { operatorOf, operators } from '../flags/words'
import type { Known } from './known'
import { actionFilterWords } from './words'

interface Props { project: string; filter: ActionFilter; known: Known; error: string | undefined; onChange: (f: ActionFilter) => void; onRemove: () => void }

const kinds: Record<string, string> = { event: 'Event', person: 'Person', cohort: 'Cohort', element: 'Element', group: 'Group', feature: 'Flag' }
const editable = ['event', 'person', 'cohort', 'element']
const elementKeys = ['text', 'tag_name', 'href', 'selector']

export function Filter({ project, filter, known, error, onChange, onRemove }: Props) {
  const kind = filter.type ?? 'event'
  const operator = operatorOf(filter.operator)
  const rekind = (to: string) => onChange(to === 'cohort'
    ? { type: 'cohort', key: 'id', operator: 'in', value: known.cohort?.id ?? null }
    : { type: to, key: to === 'element' ? 'text' : '', operator: 'exact', value: [] })
  const reoperate = (name: string) => {
    const next = operatorOf(name)
    const first = Array.isArray(filter.value) ? filter.value[0] as unknown : filter.value
    const value = next.value === 'none' ? null : next.value === operator.value ? filter.value : next.value === 'list' ? (first === undefined || first === null || first === '' ? [] : [first]) : next.value === 'range' ? [first ?? '', ''] : (first ?? '')
    onChange({ ...filter, operator: name, value: value as ActionFilter['value'] })
  }
  const remove = <button type="button" class="icon-button" aria-label="Remove the property" onClick={onRemove}><Icon name="close" /></button>
  const wrong = error && <p class="field-error" role="alert">{error}</p>
  if (kind === 'feature') return <><div class="row"><span class="mono grow">{actionFilterWords(filter)}</span>{remove}</div>{wrong}</>
  return (
    <>
      <div class="filter">
        <select aria-label="Kind of filter" value={kind} onChange={(e) => rekind(e.currentTarget.value)}>
          {(editable.includes(kind) ? editable : [...editable, kind]).map((k) => <option key={k} value={k}>{kinds[k] ?? k}</option>)}
        </select>
        {kind === 'cohort'
          ? (
            <>
              <select aria-label="Operator" value={filter.operator ?? 'in'} onChange={(e) => onChange({ ...filter, operator: e.currentTarget.value })}><option value="in">is in</option><option value="not_in">is not in</option></select>
              <CohortPick project={project} id={filter.value} onPick={(value) => onChange({ ...filter, value })} />
            </>
            )
          : (
            <>
              <NameInput project={project} kind={kind === 'person' ? 'person property' : kind === 'event' ? 'event property' : null} also={kind === 'element' ? elementKeys : []} class="mono" aria-label="Property" placeholder="property" value={filter.key ?? ''} aria-invalid={Boolean(error)} onText={(key) => onChange({ ...filter, key })} />
              <select aria-label="Operator" value={operator.name} onChange={(e) => reoperate(e.currentTarget.value)}>
                {!operators.includes(operator) && <option value={operator.name}>{operator.words}</option>}
                {operators.map((o) => <option key={o.name} value={o.name}>{o.words}</option>)}
              </select>
              <Values kind={operator.value} value={filter.value} suggestions={kind === 'event' ? known.values.get(filter.key ?? '') ?? [] : []} property={kind === 'event' || kind === 'person' ? { of: kind === 'event' ? 'events' : 'persons', key: filter.key ?? '' } : undefined} onChange={(value) => onChange({ ...filter, value: value as ActionFilter['value'] })} />
            </>
            )}
        {remove}
      </div>
      {wrong}
    </>
  )
}
