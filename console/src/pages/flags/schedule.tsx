// Changes of a flag at a time in the future: the list, a form, and a way to cancel.
import { useState } from 'preact/hooks'
import { api } from '../../api/client'
import type { Flag, Schemas } from '../../api/types'
import { useGuard } from '../../app/guard'
import { forget, useData } from '../../app/load'
import { here } from '../../app/late'
import { Empty, Field, Problem, Skeleton, Tag, Time } from '../../ui/basics'
import { confirm } from '../../ui/dialog'
import { Icon } from '../../ui/icon'
import type { ConditionSet } from '../../api/types'
import { exactTime } from '../../ui/time'
import { Condition, focusInvalid, useKnown } from './condition'
import { conditionProblem, draftOf, keptPayloads, problems, same } from './draft'
import { mayEdit } from './rights'
import { Variants } from './variants'
import { operationWords } from './words'

type Change = Schemas['ScheduledChange']

export function Schedule({ project, flag }: { project: string; flag: Flag }) {
  const [making, setMaking] = useState(false)
  const key = `flags/${project}/schedule/${flag.id}`
  const { data, error, reload } = useData(key, (signal) => api.get('/api/projects/{project_id}/scheduled_changes', { path: { project_id: project }, query: { record_id: flag.id, limit: 100 }, signal }))
  const changed = () => { forget(key); reload(); setMaking(false) }
  const cancel = async (change: Change) => {
    const yes = await confirm({ title: 'Cancel the scheduled change?', body: <p>{operationWords(change.payload)}, at {exactTime(new Date(change.scheduled_at)).split('\n')[0]}. It will not happen.</p>, action: 'Cancel the change', danger: true })
    if (!yes) return
    const page = here()
    try {
      await api.delete('/api/projects/{project_id}/scheduled_changes/{id}', { path: { project_id: project, id: change.id } })
      page.say('The change is canceled.')
      changed()
    } catch (e) { page.sayError(e) }
  }
  if (error) return <Problem error={error} retry={reload} />
  if (!data) return <Skeleton rows={3} />
  const changes = data.results ?? []
  return (
    <section class="stack">
      {mayEdit(flag) && !making && <div class="row"><button type="button" class="button" onClick={() => setMaking(true)}><Icon name="clock" /> Schedule a change</button></div>}
      {making && <Form project={project} flag={flag} onMade={changed} onClose={() => setMaking(false)} />}
      {changes.length === 0 && !making && <Empty title="Nothing is scheduled"><p>A change can take effect at a time in the future: turn the flag on for a launch at night, off after a campaign, add a condition, or change the variants.</p></Empty>}
      {changes.length > 0 && (
        <ul class="history" aria-label="Scheduled changes">
          {changes.map((c) => (
            <li key={c.id} class="card">
              <div class="row">
                <b>{operationWords(c.payload)}</b>
                {c.failure_reason ? <Tag tone="bad">Failed</Tag> : c.executed_at ? <Tag tone="ok">Done</Tag> : <Tag tone="accent">Waiting</Tag>}
                <span class="push muted small"><Time at={c.executed_at ?? c.scheduled_at} /></span>
              </div>
              <div class="row">
                <span class="muted small">{exactTime(new Date(c.scheduled_at)).split('\n')[0]}{c.created_by && `, by ${c.created_by.first_name || c.created_by.email}`}</span>
                {!c.executed_at && mayEdit(flag) && <button type="button" class="link small push" onClick={() => { void cancel(c) }}>Cancel</button>}
              </div>
              {c.failure_reason && <p class="field-error">{c.failure_reason}</p>}
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

// localTime returns a time as a field for a time of the browser's zone takes it.
function localTime(at: Date): string {
  const pad = (n: number) => String(n).padStart(2, '0')
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}T${pad(at.getHours())}:${pad(at.getMinutes())}`
}

const everyone: ConditionSet = { properties: [], rollout_percentage: 100 }

function Form({ project, flag, onMade, onClose }: { project: string; flag: Flag; onMade: () => void; onClose: () => void }) {
  const known = useKnown(project)
  const [first] = useState(() => ({ what: flag.active ? 'off' : 'on', at: localTime(new Date(Date.now() + 3_600_000)) }))
  const [what, setWhat] = useState(first.what)
  const [at, setAt] = useState(first.at)
  const [set, setSet] = useState(everyone)
  const [base] = useState(() => draftOf(flag))
  const [draft, setDraft] = useState(base) // for its variants and payloads
  const [busy, setBusy] = useState(false)
  const [tried, setTried] = useState(false)
  useGuard(what !== first.what || at !== first.at || set !== everyone || draft !== base)
  const time = new Date(at)
  const problem = Number.isNaN(time.getTime()) ? 'Choose a day and a time.' : time.getTime() <= Date.now() ? 'The time must be in the future.' : null
  const wrong = problems(draft, base)
  const unfinished = what === 'condition' ? conditionProblem(set) : what !== 'variants' ? undefined : Object.values(wrong)[0] ?? (draft.variants.length === 0 ? 'Add the variants.' : same([draft.variants, draft.payloads], [base.variants, base.payloads]) ? 'Change the variants.' : undefined)
  const make = async () => {
    setBusy(true)
    const page = here()
    const payload: Change['payload'] = what === 'condition' ? { operation: 'add_release_condition', value: { groups: [set] } } : what === 'variants' ? { operation: 'update_variants', value: { variants: draft.variants, payloads: keptPayloads(draft) } } : { operation: 'update_status', value: what === 'on' }
    try {
      await api.post('/api/projects/{project_id}/scheduled_changes', { path: { project_id: project }, body: { record_id: flag.id, model_name: 'FeatureFlag', payload, scheduled_at: time.toISOString() } })
      page.say('The change is scheduled.')
      onMade()
    } catch (e) {
      setBusy(false)
      page.sayError(e)
    }
  }
  return (
    <form class="card card-body stack" aria-label="Schedule a change" onSubmit={(e) => { e.preventDefault(); setTried(true); if (problem || unfinished) focusInvalid(e.currentTarget); else void make() }}>
      <div class="schedule-form">
        <Field id="schedule-what" label="Change">
          <select id="schedule-what" value={what} onChange={(e) => setWhat(e.currentTarget.value)}><option value="on">Turn on</option><option value="off">Turn off</option><option value="condition">Add a condition</option><option value="variants">Change the variants</option></select>
        </Field>
        <Field id="schedule-at" label="At" error={problem} hint={`in your time zone, ${Intl.DateTimeFormat().resolvedOptions().timeZone}`}>
          <input id="schedule-at" type="datetime-local" value={at} onInput={(e) => setAt(e.currentTarget.value)} />
        </Field>
      </div>
      {what === 'condition' && <Condition title="Then also for" project={project} index={0} count={1} set={set} groupType={flag.filters.aggregation_group_type_index} variants={flag.filters.multivariate?.variants ?? []} known={known} error={tried ? unfinished : undefined} onChange={setSet} onMove={() => undefined} onRemove={() => undefined} />}
      {what === 'variants' && <Variants draft={draft} problems={tried ? wrong : {}} onChange={setDraft} />}
      {what === 'variants' && tried && unfinished && !wrong.variants && <p class="field-error" role="alert">{unfinished}</p>}
      <div class="row">
        <button type="submit" class="button primary" disabled={busy || problem !== null}>Schedule</button>
        <button type="button" class="button" onClick={onClose}>Close</button>
      </div>
    </form>
  )
}
