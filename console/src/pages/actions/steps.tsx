// The steps of an action: alternatives, of which one must fit. All conditions of a step
// must hold.
import { useId } from 'preact/hooks'
import { Icon } from '../../ui/icon'
import { NameInput } from '../../ui/names'
import { emptyStep, problemAt, textFields, type Matching, type StepDraft, type TextField } from './draft'
import { Filter } from './filter'
import type { Known } from './known'
import { matchingWords } from './words'

interface Props { project: string; steps: StepDraft[]; known: Known; problems: Record<string, string>; onChange: (steps: StepDraft[]) => void }

export function Steps({ project, steps, known, problems, onChange }: Props) {
  const set = (i: number, step: StepDraft) => onChange(steps.map((old, at) => (at === i ? step : old)))
  return (
    <div class="steps">
      {steps.length === 0 && <p class="notice">Without an alternative nothing counts.</p>}
      {steps.map((step, i) => (
        <div key={step.id ?? i}>
          {i > 0 && <p class="or"><span>or</span></p>}
          <Step project={project} index={i} step={step} known={known} problems={problems} onChange={(s) => set(i, s)} onRemove={() => onChange(steps.filter((_, at) => at !== i))} />
        </div>
      ))}
      <div class="row">
        <button type="button" class="button" onClick={() => onChange([...steps, emptyStep()])}><Icon name="plus" /> {steps.length ? 'Or other events' : 'Add events'}</button>
        {steps.length > 1 && <span class="muted small">An event counts once if any of the {steps.length} alternatives matches.</span>}
      </div>
    </div>
  )
}

function Step({ project, index, step, known, problems, onChange, onRemove }: { project: string; index: number; step: StepDraft; known: Known; problems: Record<string, string>; onChange: (s: StepDraft) => void; onRemove: () => void }) {
  const id = useId()
  const at = `steps__${index}__`
  const missing = textFields.filter(({ field }) => step[field] === undefined)
  const without = (field: TextField) => onChange(Object.fromEntries(Object.entries(step).filter(([name]) => name !== field)) as unknown as StepDraft)
  const eventProblem = problems[`${at}event`]
  return (
    <section class="step card" aria-label={`Alternative ${index + 1}`}>
      <div class="step-event">
        <label for={`${id}-event`}>Events named</label>
        <NameInput project={project} kind="event" also={known.events} id={`${id}-event`} placeholder="any event" value={step.event} aria-invalid={Boolean(eventProblem)} onText={(event) => onChange({ ...step, event })} />
        <button type="button" class="icon-button" aria-label="Remove the alternative" title="Remove the alternative" onClick={onRemove}><Icon name="trash" /></button>
      </div>
      {eventProblem && <p class="field-error" role="alert">{eventProblem}</p>}
      {textFields.map(({ field, label, matching, placeholder }) => step[field] !== undefined && (
        <div key={field}>
          <div class="text-condition">
            <span class="label">{label}</span>
            {matching
              ? (
                <select aria-label={`How the ${label.toLowerCase()} is compared`} value={step[matching]} onChange={(e) => onChange({ ...step, [matching]: e.currentTarget.value as Matching })}>
                  {Object.entries(matchingWords).map(([mode, words]) => <option key={mode} value={mode}>{words}</option>)}
                </select>
                )
              : <span class="muted">is</span>}
            <input class="mono" aria-label={label} spellcheck={false} autocomplete="off" placeholder={placeholder} value={step[field]} aria-invalid={Boolean(problems[at + field])} onInput={(e) => onChange({ ...step, [field]: e.currentTarget.value })} />
            <button type="button" class="icon-button" aria-label={`Remove the ${label.toLowerCase()}`} onClick={() => without(field)}><Icon name="close" /></button>
          </div>
          {problems[at + field] && <p class="field-error" role="alert">{problems[at + field]}</p>}
          {matching && step[matching] === 'contains' && /[%_]/.test(step[field] ?? '') && <p class="hint">% stands for any text and _ for any one character.</p>}
        </div>
      ))}
      {step.properties.map((f, i) => (
        <Filter key={i} project={project} filter={f} known={known} error={problemAt(problems, `${at}properties__${i}`)} onChange={(changed) => onChange({ ...step, properties: step.properties.map((old, n) => (n === i ? changed : old)) })}
          onRemove={() => onChange({ ...step, properties: step.properties.filter((_, n) => n !== i) })} />
      ))}
      <div class="row add-condition">
        <span class="faint small">{textFields.some(({ field }) => step[field] !== undefined) || step.properties.length ? 'and' : 'where'}</span>
        <button type="button" class="button quiet small" onClick={() => onChange({ ...step, properties: [...step.properties, { type: 'event', key: '', operator: 'exact', value: [] }] })}><Icon name="plus" /> Property</button>
        {missing.map(({ field, label }) => <button key={field} type="button" class="button quiet small" onClick={() => onChange({ ...step, [field]: '' })}><Icon name="plus" /> {label}</button>)}
      </div>
    </section>
  )
}
