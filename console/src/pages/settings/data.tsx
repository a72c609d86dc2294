// How long events are kept, and how many may come.
import { useLayoutEffect, useState } from 'preact/hooks'
import { api } from '../../api/client'
import type { Schemas } from '../../api/types'
import { useGuard } from '../../app/guard'
import { useData } from '../../app/load'
import { projects } from '../../app/session'
import { Code, Field, Problem, Skeleton, Time } from '../../ui/basics'
import { confirm } from '../../ui/dialog'
import { Icon } from '../../ui/icon'
import { countText, plural } from '../../ui/time'
import { NameInput } from '../../ui/names'
import { ageWords, changeOf, draftOf, repeated, type Draft } from './ages'
import { isAdmin, Part, Refused, useSubmit } from './parts'

type Retention = Schemas['Retention']

export default function Data({ project }: { project: string }) {
  const { data, error, reload } = useData(`settings/${project}/retention`, (signal) => api.get('/api/projects/{project_id}/retention', { path: { project_id: project }, signal }))
  return (
    <>
      <Part title="Retention" text="Events older than this are deleted, for ever. Their age is that of their timestamp.">
        {error && !data && <Problem error={error} retry={reload} />}
        {!data && !error && <Skeleton rows={3} />}
        {data && <Rules project={project} kept={data} onSaved={reload} />}
      </Part>
      <Usage project={project} />
    </>
  )
}

function Rules({ project, kept: loaded, onSaved }: { project: string; kept: Retention; onSaved: () => void }) {
  const path = { project_id: project }
  const [kept, setKept] = useState(loaded) // what was loaded, or what was saved since
  const [draft, setDraft] = useState<Draft>(() => draftOf(kept))
  const change = changeOf(kept, draft)
  const changed = Object.keys(change).length > 0
  const twice = repeated(draft)
  useGuard(changed || twice !== undefined)
  useLayoutEffect(() => { // before an input can come between
    setKept(loaded)
    if (!changed && twice === undefined) setDraft(draftOf(loaded))
  }, [loaded])
  const { submit, busy, error } = useSubmit(async (page) => {
    const preview = await api.post('/api/projects/{project_id}/retention/preview', { path, body: change })
    const name = projects.value.find((p) => String(p.id) === project)?.name ?? project
    const yes = await confirm({
      title: preview.events ? `Delete ${plural(preview.events, 'event')} now?` : 'Change the retention?',
      body: preview.events
        ? <><p>{plural(preview.events, 'event')} {preview.events === 1 ? 'is' : 'are'} older than the new rules allow. They are deleted at once and cannot be brought back.</p><p>{preview.oldest_kept ? <>The oldest event that stays is from <Time at={preview.oldest_kept} />.</> : 'No event stays.'}</p></>
        : <p>No event is old enough to be deleted now. Later ones are, when they reach the age.</p>,
      action: preview.events ? 'Delete them and save' : 'Save', danger: preview.events > 0, ...(preview.events > 0 && { typed: name }),
    })
    if (!yes) return
    const after = await api.patch('/api/projects/{project_id}/retention', { path, body: change })
    setKept(after)
    setDraft(draftOf(after))
    page.say('The retention is saved.')
    onSaved()
  })
  const may = isAdmin()
  const rule = (i: number, part: Partial<Draft['events'][number]>) => setDraft({ ...draft, events: draft.events.map((e, at) => (at === i ? { ...e, ...part } : e)) })
  return (
    <form class="stack" onSubmit={submit}>
      <div class="pair">
        <Field id="keep" label="Events are kept">
          <select id="keep" disabled={!may} value={draft.mode} onChange={(e) => setDraft({ ...draft, mode: e.currentTarget.value as Draft['mode'] })}>
            <option value="server">as the server does: {ageWords(kept.server_keep)}</option><option value="ever">for ever</option><option value="age">for a time</option>
          </select>
        </Field>
        {draft.mode === 'age' && <Field id="keep-age" label="Time" hint="Days such as 90d, hours such as 36h."><input id="keep-age" required disabled={!may} placeholder="90d" value={draft.keep} onInput={(e) => setDraft({ ...draft, keep: e.currentTarget.value.trim() })} /></Field>}
      </div>
      {draft.events.map((e, i) => (
        <div key={i} class="rule">
          <NameInput project={project} kind="event" aria-label="Event" required disabled={!may} placeholder="event" value={e.name} onText={(name) => rule(i, { name })} />
          <input aria-label={`Time of ${e.name || 'the event'}`} required disabled={!may} placeholder="30d, or 0 for ever" value={e.keep} onInput={(ev) => rule(i, { keep: ev.currentTarget.value.trim() })} />
          {may && <button type="button" class="icon-button" aria-label={`Remove the rule of ${e.name || 'the event'}`} onClick={() => setDraft({ ...draft, events: draft.events.filter((_, at) => at !== i) })}><Icon name="close" /></button>}
        </div>
      ))}
      {twice !== undefined && <p class="field-error" role="alert">Two rules are for the event {twice}: remove one of them.</p>}
      <Refused error={error} />
      {may
        ? <div class="row"><button type="submit" class="button primary" disabled={busy || !changed || twice !== undefined}>Preview and save</button><button type="button" class="button" onClick={() => setDraft({ ...draft, events: [...draft.events, { name: '', keep: '' }] })}><Icon name="plus" /> Another rule for an event</button></div>
        : <p class="hint">Admins change it.</p>}
      <p class="hint">
        {kept.oldest_event ? <>The oldest event is from <Time at={kept.oldest_event} />. </> : 'There is no event yet. '}
        {kept.last_run && (kept.last_run.finished_at ? <>The last deletion, <Time at={kept.last_run.finished_at} />, removed {plural(kept.last_run.deleted_events, 'event')}.</> : <>A deletion is under way: {plural(kept.last_run.deleted_events, 'event')} so far.</>)}
      </p>
    </form>
  )
}

function Usage({ project }: { project: string }) {
  const { data, error, reload } = useData(`settings/${project}/usage`, (signal) => api.get('/api/projects/{project_id}/ingestion_usage', { path: { project_id: project }, signal }))
  return (
    <Part title="Quota" text="How many events the project may send in a period.">
      {error && !data && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton rows={1} />}
      {data && data.limit === null && (
        <div class="stack">
          <p class="muted">There is no quota: all events are taken, and none are counted here. The configuration of the server sets one:</p>
          <Code label="guidon.yaml" text={`ingestion:\n  quota:\n    period: month\n    projects: {"${project}": 1000000}`} />
        </div>
      )}
      {data && data.limit !== null && (
        <div class="card"><div class="card-body stack">
          <div class="row"><b>{countText(data.events ?? 0)}</b> of {countText(data.limit)} events this {data.period}<span class="push muted">until <Time at={data.period_end} /></span></div>
          <progress max={data.limit} value={Math.min(data.events ?? 0, data.limit)} aria-label="Used" />
          {data.quota_limited ? <p class="field-error">No more events are taken until then.</p> : null}
          {data.refused > 0 && <p class="muted">{plural(data.refused, 'event')} {data.refused === 1 ? 'was' : 'were'} refused in this period.</p>}
        </div></div>
      )}
    </Part>
  )
}
