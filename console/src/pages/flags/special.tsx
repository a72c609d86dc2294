// What comes before the conditions of a flag: people who opted in or out themselves, and a
// share of people who are held out.
import type { ConditionSet } from '../../api/types'
import { Condition, type Known } from './condition'
import type { Draft, Special } from './draft'
import { Percent } from './percent'

interface Props { project: string; draft: Draft; known: Known; problems: Record<string, string>; onChange: (d: Draft) => void }

// access returns how people opt in: not, by the property of the flag, or by a condition.
export function access(s: Special): 'none' | 'property' | 'condition' {
  return s.feature_enrollment ? 'property' : s.super_groups?.length ? 'condition' : 'none'
}

export function SpecialRules({ project, draft, known, problems, onChange }: Props) {
  const { special } = draft
  const set = (changes: Partial<Special>) => onChange({ ...draft, special: { ...special, ...changes } })
  const optIn: ConditionSet = { properties: [{ key: `$feature_enrollment/${draft.key || 'KEY'}`, type: 'person', operator: 'exact', value: ['true'] }], rollout_percentage: 100 }
  const how = access(special)
  const choose = (to: string) => set({ feature_enrollment: to === 'property' ? true : special.feature_enrollment === undefined ? undefined : false, super_groups: to === 'condition' ? [optIn] : special.super_groups === undefined ? undefined : null })
  const share = special.holdout?.exclusion_percentage ?? 10
  const all = special.super_groups ?? []
  const change = (i: number, g: ConditionSet) => set({ super_groups: all.map((old, at) => (at === i ? g : old)) })
  return (
    <details class="card card-body special" open={how !== 'none' || Boolean(special.holdout)}>
      <summary>Early access and holdout</summary>
      <div class="stack">
        <div class="field">
          <label for="flag-access">Early access</label>
          <select id="flag-access" value={how} onChange={(e) => choose(e.currentTarget.value)}>
            <option value="none">not offered</option><option value="property">for people who opted in</option><option value="condition">by a condition that comes first</option>
          </select>
          <p class="hint">{how === 'none' ? 'The conditions above decide for everyone.' : how === 'property' ? <>The property <code>{`$feature_enrollment/${draft.key || 'KEY'}`}</code> of a person decides: <code>true</code> gives the flag, any other value takes it; without it the conditions decide.</> : 'For people who have its first property it decides alone, before all other conditions.'}</p>
        </div>
        {how === 'condition' && all.map((group, i) => (
          <Condition key={i} title={i === 0 ? 'First of all, if' : 'Then if'} project={project} index={i} count={1} set={group} groupType={null} variants={[]} known={known} error={problems[`special-${i}`]}
            onChange={(g) => change(i, g)} onMove={() => undefined} onRemove={() => undefined} />
        ))}
        <label class="check"><input type="checkbox" checked={Boolean(special.holdout)} onChange={(e) => set({ holdout: e.currentTarget.checked ? { id: 1, exclusion_percentage: 10 } : null })} /> Hold out a share of people</label>
        {problems.holdout && <p class="field-error" role="alert">{problems.holdout}</p>}
        {special.holdout && (
          <div class="row holdout">
            <label for="holdout-share">Share</label><Percent id="holdout-share" value={share} onChange={(n) => set({ holdout: { ...special.holdout, exclusion_percentage: n } })} />
            <label for="holdout-id">Number</label><input id="holdout-id" type="number" min={1} step={1} value={String(special.holdout.id ?? '')} onInput={(e) => { const n = e.currentTarget.valueAsNumber; if (Number.isSafeInteger(n) && n > 0) set({ holdout: { ...special.holdout, id: n } }) }} />
            <span class="hint">They get <code>holdout-{String(special.holdout.id ?? '')}</code>. Flags with holdouts of the same share hold out the same people.</span>
          </div>
        )}
      </div>
    </details>
  )
}
