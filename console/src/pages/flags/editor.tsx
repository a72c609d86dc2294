// What a flag is made of: name, conditions, variants, payloads, and who gets it.
import { api } from '../../api/client'
import type { Flag } from '../../api/types'
import { useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { say } from '../../app/toasts'
import { Field } from '../../ui/basics'
import { countText, plural } from '../../ui/time'
import { Icon } from '../../ui/icon'
import { useCohort } from '../../ui/picks'
import { useGroupTypes } from '../why/groups'
import { typeWords } from '../persons/words'
import { Condition, focusNext, useKnown } from './condition'
import { decideFor, emptyFilter, type Draft } from './draft'
import { SpecialRules } from './special'
import { Chips } from './values'
import { Payload, Variants } from './variants'

interface Props { project: string; draft: Draft; problems: Record<string, string>; onChange: (d: Draft) => void; flag?: Flag; isNew?: boolean; fixed?: boolean; locked?: boolean }

const focus = (input: HTMLInputElement | null) => input?.focus() // when it appears

export function Editor({ project, draft, problems, onChange, flag, isNew, fixed, locked }: Props) {
  const known = useKnown(project)
  const set = (changes: Partial<Draft>) => onChange({ ...draft, ...changes })
  const setGroup = (i: number, group: Draft['groups'][number]) => set({ groups: draft.groups.map((g, at) => (at === i ? group : g)) })
  const move = (i: number, by: number) => {
    const groups = [...draft.groups]
    const [moved] = groups.splice(i, 1)
    if (moved) groups.splice(i + by, 0, moved)
    set({ groups })
  }
  return (
    <div class="editor">
      <fieldset class="stack" disabled={fixed || locked}>
        {fixed && !locked && <p class="notice" role="note">The conditions have a number that a browser cannot hold exactly, above 9,007,199,254,740,991 or with too many digits; it is shown rounded. Saving it here would change it: edit the conditions with the API.</p>}
        {isNew && (
          <Field id="flag-key" label="Key" hint="Code asks for the flag by this name: letters, digits, - and _." error={problems.key}>
            <input ref={focus} id="flag-key" class="mono" value={draft.key} autocomplete="off" spellcheck={false} placeholder="new-nav" aria-invalid={Boolean(problems.key)} onInput={(e) => set({ key: e.currentTarget.value.replace(/\s+/g, '-') })} />
          </Field>
        )}
        <div class="conditions">
          {draft.groups.map((group, i) => (
            <Condition key={i} project={project} index={i} count={draft.groups.length} set={group} groupType={draft.by} variants={draft.variants} known={known} error={problems[`group-${i}`]}
              onChange={(g) => setGroup(i, g)} onMove={(by) => move(i, by)} onRemove={() => set({ groups: draft.groups.filter((_, at) => at !== i) })} />
          ))}
          <div class="row">
            <button type="button" class="button" onClick={(e) => { if (e.currentTarget.parentElement) focusNext(e.currentTarget.parentElement, '.condition'); set({ groups: [...draft.groups, { properties: [emptyFilter(draft.by)], rollout_percentage: 100 }] }) }}><Icon name="plus" /> Add a condition</button>
            <span class="muted small">The first condition that matches decides. For everyone else it is off.</span>
          </div>
        </div>
        <Variants draft={draft} problems={problems} onChange={onChange} />
        {draft.variants.length === 0 && <section class="card card-body"><Payload name="true" label="Payload" draft={draft} problem={problems['payload-true']} onChange={onChange} /></section>}
        <SpecialRules project={project} draft={draft} known={known} problems={problems} onChange={onChange} />
      </fieldset>
      <aside aria-label="Details"><fieldset class="stack" disabled={locked}>
        <Field id="flag-name" label="Description"><textarea id="flag-name" rows={3} value={draft.name} placeholder="What it is for" onInput={(e) => set({ name: e.currentTarget.value })} /></Field>
        <div class="field"><span class="label">Tags</span><Chips list={draft.tags} label="Tag" placeholder="add a tag" onChange={(tags) => set({ tags: tags.map((t) => t.toLowerCase()) })} /></div>
        <DecidedFor project={project} draft={draft} fixed={fixed} onChange={onChange} />
        <Field id="flag-runtime" label="Clients">
          <select id="flag-runtime" value={draft.runtime} onChange={(e) => set({ runtime: e.currentTarget.value as Draft['runtime'] })}>
            <option value="all">all clients</option><option value="client">browsers and apps</option><option value="server">servers</option>
          </select>
        </Field>
        <label class="check"><input type="checkbox" checked={draft.continuity} onChange={(e) => set({ continuity: e.currentTarget.checked })} /> Keep the value when a visitor signs in</label>
        <label class="check"><input type="checkbox" checked={draft.remote} onChange={(e) => set({ remote: e.currentTarget.checked })} /> Remote config: only the payload counts</label>
        <Uses project={project} draft={draft} />
        {flag && <UsedBy project={project} flag={flag} />}
      </fieldset></aside>
    </div>
  )
}

// DecidedFor chooses whether people or groups get a value; for people without group types.
function DecidedFor({ project, draft, fixed, onChange }: { project: string; draft: Draft; fixed: boolean | undefined; onChange: (d: Draft) => void }) {
  const types = useGroupTypes(project)
  if (types.length === 0 && draft.by === null) return null
  const decide = (by: number | null) => {
    const next = decideFor(draft, by)
    const filters = (d: Draft) => d.groups.reduce((n, g) => n + (g.properties?.length ?? 0), 0)
    const gone = filters(draft) - filters(next)
    if (gone > 0) say(`${plural(gone, 'filter by a cohort is', 'filters by cohorts are')} left out: cohorts hold people.`)
    onChange(next)
  }
  const hint = draft.by === null ? '' : 'All people of a group get its value. Clients name the group when they ask.'
  return (
    <Field id="flag-by" label="Decided for" hint={hint}>
      <select id="flag-by" disabled={fixed} value={draft.by ?? ''} onChange={(e) => decide(e.currentTarget.value === '' ? null : Number(e.currentTarget.value))}>
        <option value="">people</option>
        {types.map((t) => <option key={t.group_type_index} value={t.group_type_index}>{typeWords(t, true)}</option>)}
        {draft.by !== null && !types.some((t) => t.group_type_index === draft.by) && <option value={draft.by}>groups of type {draft.by}</option>}
      </select>
    </Field>
  )
}

// Uses names the cohorts that the conditions read.
function Uses({ project, draft }: { project: string; draft: Draft }) {
  const ids = [...new Set(draft.groups.flatMap((g) => (g.properties ?? []).filter((f) => f.type === 'cohort').map((f) => f.value)))]
  if (!ids.some((id) => typeof id === 'number')) return null
  return <div class="field"><span class="label">Uses cohorts</span><ul>{ids.map((id) => <Used key={String(id)} project={project} id={id} />)}</ul></div>
}

function Used({ project, id }: { project: string; id: unknown }) {
  const { data: c } = useCohort(project, id)
  return c ? <li>{c.name} {c.count !== null && <span class="muted">{countText(c.count)} people</span>}</li> : null
}

// UsedBy names the flags that read this one; a cohort cannot.
function UsedBy({ project, flag }: { project: string; flag: Flag }) {
  const { to } = usePlace()
  const { data } = useData(`flags/${project}/dependents/${flag.id}`, (signal) => api.get('/api/projects/{project_id}/feature_flags/{id}/dependent_flags', { path: { project_id: project, id: flag.id }, signal }))
  return (
    <div class="field">
      <span class="label">Used by</span>
      {data?.length ? <ul>{data.map((f) => <li key={f.id}><a class="mono" href={to(`/flags/${f.id}`)}>{f.key}</a></li>)}</ul> : <span class="muted">{data ? 'No other flag reads it.' : ' '}</span>}
    </div>
  )
}
