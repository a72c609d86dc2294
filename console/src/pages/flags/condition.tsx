// One condition: filters that all hold, the share of those who match, and the reach.
import { useId } from 'preact/hooks'
import { api } from '../../api/client'
import type { Cohort, ConditionSet, PropertyFilter, Variant } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { Icon } from '../../ui/icon'
import { countText } from '../../ui/time'
import { readReach, reachWords } from './actions'
import { operatorOf, operators, percent } from './words'
import { Values } from './values'

interface Props {
  project: string
  index: number
  count: number
  set: ConditionSet
  groupType: number | null | undefined
  variants: Variant[]
  known: Known
  error: string | undefined
  onChange: (set: ConditionSet) => void
  onMove: (by: number) => void
  onRemove: () => void
}

export function Condition({ project, index, count, set, groupType, variants, known, error, onChange, onMove, onRemove }: Props) {
  const filters = set.properties ?? []
  const change = (i: number, f: PropertyFilter) => onChange({ ...set, properties: filters.map((old, at) => (at === i ? f : old)) })
  const share = percent(set)
  const id = useId()
  return (
    <section class="condition card" aria-label={`Condition ${index + 1}`}>
      <header>
        <b>{index === 0 ? 'If' : 'Else if'}</b>
        <span class="push" />
        {count > 1 && <button type="button" class="icon-button" aria-label="Move up" disabled={index === 0} onClick={() => onMove(-1)}><Icon name="up" /></button>}
        {count > 1 && <button type="button" class="icon-button" aria-label="Move down" disabled={index === count - 1} onClick={() => onMove(1)}><Icon name="down" /></button>}
        {count > 1 && <button type="button" class="icon-button" aria-label="Remove the condition" onClick={onRemove}><Icon name="trash" /></button>}
      </header>
      {filters.length === 0 && <p class="muted">Everyone matches.</p>}
      {filters.map((f, i) => (
        <div key={i}>
          {i > 0 && <div class="and">and</div>}
          <Filter filter={f} known={known} onChange={(changed) => change(i, changed)} onRemove={() => onChange({ ...set, properties: filters.filter((_, at) => at !== i) })} />
        </div>
      ))}
      {error && <p class="field-error" role="alert">{error}</p>}
      <button type="button" class="button quiet small add" onClick={() => onChange({ ...set, properties: [...filters, { key: '', type: 'person', operator: 'exact', value: [] }] })}><Icon name="plus" /> Add a filter</button>
      <div class="share">
        <label for={`${id}-share`}>Roll out to</label>
        <input type="range" min={0} max={100} step={1} value={share} aria-label="Share of those who match" onInput={(e) => onChange({ ...set, rollout_percentage: Number(e.currentTarget.value) })} />
        <span class="percent"><input id={`${id}-share`} type="number" min={0} max={100} step="any" value={share} onInput={(e) => { const n = e.currentTarget.valueAsNumber; if (n >= 0 && n <= 100) onChange({ ...set, rollout_percentage: n }) }} />%</span>
        {variants.length > 0 && (
          <select aria-label="Variant" value={set.variant ?? ''} onChange={(e) => onChange({ ...set, variant: e.currentTarget.value || null })}>
            <option value="">any variant</option>
            {variants.map((v) => <option key={v.key} value={v.key}>always {v.key}</option>)}
          </select>
        )}
      </div>
      <ReachLine project={project} set={set} groupType={groupType} />
    </section>
  )
}

function ReachLine({ project, set, groupType }: { project: string; set: ConditionSet; groupType: number | null | undefined }) {
  const settled = useDebounced(set, 300)
  const who = { ...settled, rollout_percentage: null, variant: null }
  const index = set.aggregation_group_type_index ?? groupType
  const complete = (who.properties ?? []).every((f) => f.key !== '' && (operatorOf(f.operator).value === 'none' || !(Array.isArray(f.value) && f.value.length === 0) && f.value !== '' && f.value !== null))
  const { data, error } = useData(complete ? `reach/${project}/${index}/${JSON.stringify(who)}` : '', (signal) => readReach(project, who, index, signal))
  const subject = typeof index === 'number' ? 'group' : 'person'
  const share = percent(set)
  const text = !complete ? 'Fill in the filters to see whom it reaches.'
    : error ? error.message
      : !data ? ' '
        : data.total === 0 ? `No ${subject} is known yet.`
          : share === 100 ? `Matches ${reachWords(data, subject)}.`
            : `Matches ${reachWords(data, subject)}; about ${countText(Math.round((data.affected * share) / 100))} of them get it.`
  const width = data && data.total && complete ? (100 * data.affected) / data.total : 0
  return (
    <div class={`reach ${error ? 'bad' : ''}`} aria-live="polite">
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class="all" width="100" height="4" /><rect class="match" width={width} height="4" /><rect class="get" width={(width * share) / 100} height="4" /></svg>
      <p>{text}</p>
    </div>
  )
}

// Known is what the project has seen, to choose from.
export interface Known { properties: string[]; values: Map<string, string[]>; cohorts: Cohort[]; flags: { id: number; key: string; variants: string[] }[] }

export function useKnown(project: string): Known {
  const path = { project_id: project }
  const { data } = useData(`known/${project}`, async (signal): Promise<Known> => {
    const [definitions, persons, cohorts, flags] = await Promise.all([
      api.get('/api/projects/{project_id}/property_definitions', { path, query: { type: 'person', limit: 500, exclude_hidden: true as never }, signal }).catch(() => null),
      api.get('/api/projects/{project_id}/persons', { path, query: { limit: 200 }, signal }).catch(() => null),
      api.get('/api/projects/{project_id}/cohorts', { path, query: { limit: 500 }, signal }).catch(() => null),
      api.get('/api/projects/{project_id}/feature_flags', { path, query: { limit: 500 }, signal }).catch(() => null),
    ])
    const values = new Map<string, string[]>()
    for (const person of persons?.results ?? []) {
      for (const [name, value] of Object.entries((person.properties ?? {}) as Record<string, unknown>)) {
        if (value === null || typeof value === 'object') continue
        const seen = values.get(name) ?? []
        if (seen.length < 30 && !seen.includes(String(value))) values.set(name, [...seen, String(value)])
      }
    }
    return {
      properties: (definitions?.results ?? []).map((d) => d.name), values, cohorts: cohorts?.results ?? [],
      flags: (flags?.results ?? []).map((f) => ({ id: f.id, key: f.key, variants: f.filters.multivariate?.variants.map((v) => v.key) ?? [] })),
    }
  })
  return data ?? { properties: [], values: new Map(), cohorts: [], flags: [] }
}

function Filter({ filter, known, onChange, onRemove }: { filter: PropertyFilter; known: Known; onChange: (f: PropertyFilter) => void; onRemove: () => void }) {
  const id = useId()
  const type = filter.type ?? 'person'
  const operator = operatorOf(filter.operator)
  const retype = (to: string) => {
    if (to === 'cohort') onChange({ key: 'id', type: 'cohort', operator: 'in', value: known.cohorts[0]?.id ?? null })
    else if (to === 'flag') onChange({ key: String(known.flags[0]?.id ?? ''), type: 'flag', operator: 'flag_evaluates_to', value: true })
    else onChange({ key: '', type: to as 'person', operator: 'exact', value: [] })
  }
  const reoperate = (name: string) => {
    const next = operatorOf(name)
    const first = Array.isArray(filter.value) ? filter.value[0] : filter.value
    const value = next.value === 'none' ? null : next.value === operator.value ? filter.value : next.value === 'list' ? (first === undefined || first === null || first === '' ? [] : [first]) : next.value === 'range' ? [first ?? '', ''] : (first ?? '')
    onChange({ ...filter, operator: name, value: value as PropertyFilter['value'] })
  }
  return (
    <div class="filter">
      <select aria-label="Kind of filter" value={type} onChange={(e) => retype(e.currentTarget.value)}>
        <option value="person">Person</option><option value="cohort">Cohort</option><option value="flag">Flag</option>{type === 'group' && <option value="group">Group</option>}
      </select>
      {type === 'cohort'
        ? (
          <>
            <select aria-label="Operator" value={filter.operator ?? 'in'} onChange={(e) => onChange({ ...filter, operator: e.currentTarget.value })}><option value="in">is in</option><option value="not_in">is not in</option></select>
            <select aria-label="Cohort" value={String(filter.value ?? '')} onChange={(e) => onChange({ ...filter, value: Number(e.currentTarget.value) })}>
              {!known.cohorts.some((c) => c.id === filter.value) && <option value={String(filter.value ?? '')}>{filter.cohort_name ?? 'Choose a cohort'}</option>}
              {known.cohorts.map((c) => <option key={c.id} value={String(c.id)}>{c.name}</option>)}
            </select>
          </>
          )
        : type === 'flag'
          ? (
            <>
              <select aria-label="Flag" value={String(filter.key)} onChange={(e) => onChange({ ...filter, key: e.currentTarget.value, value: true })}>
                {!known.flags.some((f) => String(f.id) === String(filter.key)) && <option value={String(filter.key)}>{filter.key || 'Choose a flag'}</option>}
                {known.flags.map((f) => <option key={f.id} value={String(f.id)}>{f.key}</option>)}
              </select>
              <select aria-label="Value of the flag" value={String(filter.value)} onChange={(e) => { const v = e.currentTarget.value; onChange({ ...filter, value: v === 'true' ? true : v === 'false' ? false : v }) }}>
                <option value="true">is on</option><option value="false">is off</option>
                {known.flags.find((f) => String(f.id) === String(filter.key))?.variants.map((v) => <option key={v} value={v}>is {v}</option>)}
              </select>
            </>
            )
          : (
            <>
              <input class="mono" aria-label="Property" list={`${id}-names`} placeholder="property" value={String(filter.key)} onInput={(e) => onChange({ ...filter, key: e.currentTarget.value })} />
              <datalist id={`${id}-names`}>{known.properties.map((p) => <option key={p} value={p} />)}</datalist>
              <select aria-label="Operator" value={operator.name} onChange={(e) => reoperate(e.currentTarget.value)}>
                {!operators.includes(operator) && <option value={operator.name}>{operator.words}</option>}
                {operators.map((o) => <option key={o.name} value={o.name}>{o.words}</option>)}
              </select>
              <Values kind={operator.value} value={filter.value} suggestions={known.values.get(String(filter.key)) ?? []} onChange={(value) => onChange({ ...filter, value: value as PropertyFilter['value'] })} />
            </>
            )}
      <button type="button" class="icon-button" aria-label="Remove the filter" onClick={onRemove}><Icon name="close" /></button>
    </div>
  )
}
