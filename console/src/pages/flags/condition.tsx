// One condition: filters that all hold, the share of those who match, and the reach.
import { useId, useMemo, useState } from 'preact/hooks'
import { api } from '../../api/client'
import type { Cohort, ConditionSet, Flag, PropertyFilter, Variant } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { may, me } from '../../app/session'
import { Icon } from '../../ui/icon'
import { NameInput } from '../../ui/names'
import { CohortPick, FlagPick, useFlag } from '../../ui/picks'
import { countText } from '../../ui/time'
import { readReach } from './actions'
import { emptyFilter } from './draft'
import { isShare, Percent, shareProblem } from './percent'
import { reachWords } from './reach'
import { filterProblem, type Operator, operatorOf, operators, percent, pluginOperators } from './words'
import { Values, valuesOf } from './values'

interface Props {
  project: string
  index: number
  count: number
  set: ConditionSet
  groupType: number | null | undefined
  variants: Variant[]
  known: Known
  error: string | undefined
  title?: string // in place of If
  onChange: (set: ConditionSet) => void
  onMove: (by: number) => void
  onRemove: () => void
}

export function Condition({ project, index, count, set, groupType, variants, known, error, title, onChange, onMove, onRemove }: Props) {
  const filters = set.properties ?? []
  const change = (i: number, f: PropertyFilter) => onChange({ ...set, properties: filters.map((old, at) => (at === i ? f : old)) })
  const by = set.aggregation_group_type_index ?? groupType
  const share = percent(set)
  const id = useId()
  const [typed, setTyped] = useState<{ at: number; value: string[] } | null>(null) // with the text that is not a value yet
  const counted = useMemo(() => (typed ? { ...set, properties: filters.map((f, at) => (at === typed.at ? { ...f, value: typed.value } : f)) } : set), [set, typed])
  return (
    <section class="condition card" aria-label={title ?? `Condition ${index + 1}`}>
      <header>
        <b>{title ?? (index === 0 ? 'If' : 'Else if')}</b>
        <span class="push" />
        {count > 1 && <button type="button" class="icon-button" aria-label="Move up" disabled={index === 0} onClick={() => onMove(-1)}><Icon name="up" /></button>}
        {count > 1 && <button type="button" class="icon-button" aria-label="Move down" disabled={index === count - 1} onClick={() => onMove(1)}><Icon name="down" /></button>}
        {count > 1 && <button type="button" class="icon-button" aria-label="Remove the condition" onClick={onRemove}><Icon name="trash" /></button>}
      </header>
      {filters.length === 0 && <p class="muted">Everyone matches.</p>}
      {filters.map((f, i) => (
        <div key={i}>
          {i > 0 && <div class="and">and</div>}
          <Filter project={project} filter={f} by={by} known={known} checked={Boolean(error)} onTyped={(value) => setTyped(value && { at: i, value })} onChange={(changed) => { setTyped(null); change(i, changed) }} onRemove={() => { setTyped(null); onChange({ ...set, properties: filters.filter((_, at) => at !== i) }) }} />
        </div>
      ))}
      {error && error !== shareProblem && <p class="field-error" role="alert">{error}</p>}
      <button type="button" class="button quiet small add" onClick={(e) => { focusNext(e.currentTarget, '.filter');  onChange({ ...set, properties: [...filters, emptyFilter(by)] }) }}><Icon name="plus" /> Add a filter</button>
      <div class="share">
        <label for={`${id}-share`}>Roll out to</label>
        <input type="range" min={0} max={100} step={1} value={isShare(share) ? share : 0} aria-label="Share of those who match" onInput={(e) => onChange({ ...set, rollout_percentage: Number(e.currentTarget.value) })} />
        <Percent id={`${id}-share`} value={share} onChange={(n) => onChange({ ...set, rollout_percentage: n })} />
        {variants.length > 0 && (
          <select aria-label="Variant" value={set.variant ?? ''} onChange={(e) => onChange({ ...set, variant: e.currentTarget.value || null })}>
            <option value="">any variant</option>
            {variants.map((v) => <option key={v.key} value={v.key}>always {v.key}</option>)}
          </select>
        )}
      </div>
      {!isShare(share) && <p class="field-error" role="alert">{shareProblem}</p>}
      <ReachLine project={project} set={counted} groupType={groupType} />
    </section>
  )
}

// focusInvalid moves the focus to the first field of a form that is marked as wrong.
export function focusInvalid(form: Element | null): void {
  requestAnimationFrame(() => setTimeout(() => form?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()))
}

// focusNext moves the focus into the row that a button adds before itself, once it is there.
export function focusNext(button: HTMLElement, rows: string): void {
  const list = button.parentElement
  requestAnimationFrame(() => setTimeout(() => {
    const fields = [...(list?.querySelectorAll(rows) ?? [])].at(-1)?.querySelectorAll<HTMLElement>('input, select')
    const first = [...(fields ?? [])].find((f) => f.tagName === 'INPUT') ?? fields?.[0]
    first?.focus()
  }))
}

function ReachLine({ project, set, groupType }: { project: string; set: ConditionSet; groupType: number | null | undefined }) {
  const now = useMemo(() => ({ set, index: set.aggregation_group_type_index ?? groupType }), [set, groupType])
  const { set: settled, index } = useDebounced(now, 300) // together: groups have other properties
  const who = { ...settled, rollout_percentage: null, variant: null }
  const complete = !(who.properties ?? []).some(filterProblem)
  const { data, error } = useData(complete ? `reach/${project}/${index}/${JSON.stringify(who)}` : '', (signal) => readReach(project, who, index, signal))
  const subject = typeof index === 'number' ? 'group' : 'person'
  const share = isShare(percent(set)) ? percent(set) : 0
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

// Known is what the project has, to choose from: operators of plugins, values of properties
// of some persons, and the newest cohort and flag. Names are searched where they are typed.
export interface Known { operators: Operator[]; values: Map<string, string[]>; cohort: Cohort | undefined; flag: Flag | undefined }

const nothing: Known = { operators: [], values: new Map(), cohort: undefined, flag: undefined }

export function useKnown(project: string): Known {
  const path = { project_id: project }
  const { data } = useData(`known/${project}`, async (signal): Promise<Known> => {
    const [persons, cohorts, flags, plugins] = await Promise.all([
      may('read', 'person') ? api.get('/api/projects/{project_id}/persons', { path, query: { limit: 200 }, signal }).catch(() => null) : null,
      api.get('/api/projects/{project_id}/cohorts', { path, query: { limit: 1 }, signal }).catch(() => null),
      api.get('/api/projects/{project_id}/feature_flags', { path, query: { limit: 1 }, signal }).catch(() => null),
      me.value?.is_operator && may('read', 'plugin') ? api.get('/api/plugins', { signal }).catch(() => null) : null,
    ])
    const values = valuesOf((persons?.results ?? []).map((p) => (p.properties ?? {}) as Record<string, unknown>))
    return { operators: pluginOperators(plugins?.results ?? []), values, cohort: cohorts?.results?.[0], flag: flags?.results?.[0] }
  })
  return data ?? nothing
}

interface FilterProps { project: string; filter: PropertyFilter; by: number | null | undefined; known: Known; checked: boolean; onChange: (f: PropertyFilter) => void; onTyped: (value: string[] | null) => void; onRemove: () => void }

// Filter is a row of a condition. checked marks the fields that lack something.
function Filter({ project, filter, by, known, checked, onChange, onTyped, onRemove }: FilterProps) {
  const wrong = checked && filterProblem(filter) !== undefined
  const type = filter.type ?? 'person'
  const ofGroup = typeof by === 'number'
  const operatorNamed = (name: string | null | undefined) => known.operators.find((o) => o.name === name) ?? operatorOf(name)
  const operator = operatorNamed(filter.operator)
  const retype = (to: string) => {
    if (to === 'cohort') onChange({ key: 'id', type: 'cohort', operator: 'in', value: known.cohort?.id ?? null })
    else if (to === 'flag') onChange({ key: String(known.flag?.id ?? ''), type: 'flag', operator: 'flag_evaluates_to', value: true })
    else onChange(emptyFilter(to === 'group' ? by ?? filter.group_type_index : null))
  }
  const reoperate = (name: string) => {
    const next = operatorNamed(name)
    const first = Array.isArray(filter.value) ? filter.value[0] : filter.value
    const value = next.value === 'none' ? null : next.value === operator.value ? filter.value : next.value === 'list' ? (first === undefined || first === null || first === '' ? [] : [first]) : next.value === 'range' ? [first ?? '', ''] : next.value === 'json' ? '' : (first ?? '')
    onChange({ ...filter, operator: name, value: value as PropertyFilter['value'] })
  }
  return (
    <div class="filter">
      <select aria-label="Kind of filter" value={type} onChange={(e) => retype(e.currentTarget.value)}>
        {(ofGroup || type === 'group') && <option value="group">Group</option>}
        {(!ofGroup || type === 'person') && <option value="person">Person</option>}
        {(!ofGroup || type === 'cohort') && <option value="cohort">Cohort</option>}
        <option value="flag">Flag</option>
      </select>
      {type === 'cohort'
        ? (
          <>
            <select aria-label="Operator" value={filter.operator ?? 'in'} onChange={(e) => onChange({ ...filter, operator: e.currentTarget.value })}><option value="in">is in</option><option value="not_in">is not in</option></select>
            <CohortPick project={project} id={filter.value} name={filter.cohort_name} onPick={(value) => onChange({ ...filter, value, cohort_name: undefined as never })} />
          </>
          )
        : type === 'flag'
          ? (
            <FlagFilter project={project} filter={filter} onChange={onChange} />
            )
          : (
            <>
              <NameInput project={project} kind={type === 'person' ? 'person property' : typeof filter.group_type_index === 'number' ? `group ${filter.group_type_index} property` : null} class="mono" aria-label="Property" placeholder="property" aria-invalid={wrong && filter.key === ''} value={String(filter.key)} onText={(key) => onChange({ ...filter, key })} />
              <select aria-label="Operator" value={operator.name} title={operator.help} onChange={(e) => reoperate(e.currentTarget.value)}>
                {!operators.includes(operator) && !known.operators.includes(operator) && <option value={operator.name}>{operator.words}</option>}
                {operators.map((o) => <option key={o.name} value={o.name}>{o.words}</option>)}
                {known.operators.length > 0 && <optgroup label="From plugins">{known.operators.map((o) => <option key={o.name} value={o.name}>{o.words}</option>)}</optgroup>}
              </select>
              <Values kind={operator.value} value={filter.value} suggestions={known.values.get(String(filter.key)) ?? []} invalid={wrong && filter.key !== ''} property={type === 'person' ? { of: 'persons', key: String(filter.key) } : undefined} onTyped={onTyped} onChange={(value) => onChange({ ...filter, value: value as PropertyFilter['value'] })} />
            </>
            )}
      <button type="button" class="icon-button" aria-label="Remove the filter" onClick={onRemove}><Icon name="close" /></button>
    </div>
  )
}

// FlagFilter asks for the value of another flag.
function FlagFilter({ project, filter, onChange }: { project: string; filter: PropertyFilter; onChange: (f: PropertyFilter) => void }) {
  const { data } = useFlag(project, filter.key)
  const variants = String(data?.id) === String(filter.key) ? data?.filters.multivariate?.variants ?? [] : []
  const value = String(filter.value)
  return (
    <>
      <FlagPick project={project} id={filter.key} onPick={(key) => onChange({ ...filter, key, value: true })} />
      <select aria-label="Value of the flag" value={value} onChange={(e) => { const v = e.currentTarget.value; onChange({ ...filter, value: v === 'true' ? true : v === 'false' ? false : v }) }}>
        <option value="true">is on</option><option value="false">is off</option>
        {[...new Set([...variants.map((v) => v.key), ...(value === 'true' || value === 'false' ? [] : [value])])].map((v) => <option key={v} value={v}>is {v}</option>)}
      </select>
    </>
  )
}
