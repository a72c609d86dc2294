// The project: name, time zone, key, and code to begin with.
import { useLayoutEffect, useState } from 'preact/hooks'
import { api } from '../../api/client'
import { loadAccount } from '../../app/begin'
import { useGuard } from '../../app/guard'
import { here } from '../../app/late'
import { useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { projects } from '../../app/session'
import { Code, CopyButton, Field, Problem, Skeleton, Time } from '../../ui/basics'
import { confirm } from '../../ui/dialog'
import type { Project } from '../../api/types'
import { attempt, isAdmin, Line, Part, Refused, useSubmit } from './parts'
import { beginWith } from './begin'

export default function General({ project }: { project: string }) {
  const { visit } = usePlace()
  const { data, error, reload } = useData(`settings/${project}/project`, (signal) => api.get('/api/projects/{project_id}', { path: { project_id: project }, signal }))
  if (error && !data) return <Problem error={error} retry={reload} />
  if (!data) return <Skeleton rows={4} />
  const close = async () => {
    const yes = await confirm({ title: `Close ${data.name}?`, body: <><p>Its keys are refused at once: clients get no flags and their events are not taken.</p><p>Nothing it holds is deleted, but it cannot be opened again here.</p></>, action: 'Close the project', danger: true, typed: data.name })
    const page = here()
    if (!yes || !await attempt(() => api.delete('/api/projects/{project_id}', { path: { project_id: project } }), `${data.name} is closed.`)) return
    projects.value = projects.value.filter((p) => p.id !== data.id)
    await loadAccount()
    page.leave(() => visit('/', true))
  }
  return (
    <>
      <Part title="Project key" text="Clients send it with events and when they ask for flags. It is no secret.">
        <div class="list" role="list">
          <Line what={<span class="mono">{data.api_token ?? 'No active key'}</span>} about={<>Project {data.id}, created <Time at={data.created_at} /></>}>{data.api_token && <CopyButton text={data.api_token} />}</Line>
        </div>
      </Part>
      <Part title="Begin" text="Send an event and ask for flags:"><Begin token={data.api_token ?? 'PROJECT_KEY'} /></Part>
      <Part title="Name and data"><Edit key={data.id} project={data} onSaved={reload} /></Part>
      {isAdmin() && <Part title="Close the project" text="Its keys are refused at once. Nothing in the console opens it again." action={<button type="button" class="button danger-quiet" onClick={() => { void close() }}>Close the project</button>} />}
    </>
  )
}

function partsOf(p: Project) { return { name: p.name, timezone: p.timezone, anonymize_ips: p.anonymize_ips } }

function Edit({ project, onSaved }: { project: Project; onSaved: () => void }) {
  const [saved, setSaved] = useState(() => partsOf(project)) // what was loaded, or what was saved since
  const [draft, setDraft] = useState(saved)
  const changed = JSON.stringify(draft) !== JSON.stringify(saved)
  useGuard(changed)
  useLayoutEffect(() => {
    setSaved(partsOf(project))
    if (!changed) setDraft(partsOf(project))
  }, [project])
  const { submit, busy, error, at } = useSubmit(async (page) => {
    setSaved(partsOf(await api.patch('/api/projects/{project_id}', { path: { project_id: project.id }, body: draft })))
    page.say('The project is saved.')
    onSaved()
    await loadAccount()
  })
  const may = isAdmin()
  const zones = Intl.supportedValuesOf('timeZone')
  return (
    <form class="stack" onSubmit={submit}>
      <Field id="project-name" label="Name" error={at('name')}><input id="project-name" required maxLength={200} disabled={!may} value={draft.name} onInput={(e) => setDraft({ ...draft, name: e.currentTarget.value })} /></Field>
      <Field id="project-zone" label="Time zone" error={at('timezone')} hint="Days of charts and dates in conditions.">
        <input id="project-zone" required list="zones" disabled={!may} value={draft.timezone} onInput={(e) => setDraft({ ...draft, timezone: e.currentTarget.value })} />
        <datalist id="zones">{['UTC', ...zones].map((z) => <option key={z} value={z} />)}</datalist>
      </Field>
      <label class="check"><input type="checkbox" disabled={!may} checked={draft.anonymize_ips} onChange={(e) => setDraft({ ...draft, anonymize_ips: e.currentTarget.checked })} /> Do not keep the addresses of clients</label>
      <Refused error={error} fields={['name', 'timezone']} />
      {may ? <div><button type="submit" class="button primary" disabled={busy || !changed}>Save</button></div> : <p class="hint">Admins change these.</p>}
    </form>
  )
}

function Begin({ token }: { token: string }) {
  const all = beginWith(token, location.origin)
  const [chosen, setChosen] = useState('Browser')
  return (
    <div class="stack">
      <div class="segments" role="group" aria-label="Client">{Object.keys(all).map((name) => <button key={name} type="button" aria-pressed={chosen === name} onClick={() => setChosen(name)}>{name}</button>)}</div>
      <Code label={chosen} text={all[chosen] ?? ''} />
    </div>
  )
}
