// The audit log of the project or of the organization: who changed what, when and from where.
import { useLocation } from 'preact-iso'
import { api, queryOf } from '../../api/client'
import type { Schemas } from '../../api/types'
import { useData } from '../../app/load'
import { projects } from '../../app/session'
import { Empty, Problem, Skeleton, Time } from '../../ui/basics'
import { pageSize, Pager } from '../../ui/paging'
import { days, entryWords, fieldWords, kinds, routeOf, sinceDays, valueText } from './changes'
import { nameOf } from './members'
import { Part } from './parts'

type Entry = Schemas['AuditEntry']

export function ProjectLog({ project }: { project: string }) { return <Log project={project} title="Activity log" text="Who changed what in this project." /> }
export function OrganizationLog() { return <Log title="Audit log" text="Who changed what in the organization and all its projects, with sign-ins." /> }

function Log({ project, title, text }: { project?: string; title: string; text: string }) {
  const { query, path, route } = useLocation()
  const set = (changes: Record<string, string>) => route(path + queryOf({ ...query, page: '', ...changes }), true)
  const page = Math.max(1, Number(query.page) || 1)
  const ask = { scope: query.scope, user: query.user ? Number(query.user) : undefined, start_date: sinceDays(query.days), activity: query.activity, page, limit: pageSize }
  const { data, error, reload, loading } = useData(`settings/log/${project ?? ''}${queryOf(ask)}`, (signal) => (project
    ? api.get('/api/projects/{project_id}/activity_log', { path: { project_id: project }, query: ask, signal })
    : api.get('/api/organizations/{organization_id}/activity_log', { path: { organization_id: '@current' }, query: ask, signal })))
  const people = useData('settings/members', (signal) => api.get('/api/organizations/{organization_id}/members', { path: { organization_id: '@current' }, query: { limit: 1000 }, signal }))
  const filtered = Boolean(query.scope || query.user || query.days || query.activity)
  return (
    <Part title={title} text={text}>
      {!(error?.status === 403) && (
        <div class="filters" role="search">
          <Choice label="Kind" value={query.scope} options={{ '': 'Everything', ...kinds }} onChange={(scope) => set({ scope })} />
          <Choice label="Done" value={query.activity} options={{ '': 'Any change', created: 'Created', updated: 'Changed', deleted: 'Deleted', signed_in: 'Signed in', sign_in_failed: 'Sign-in failed', password_reset_requested: 'New password asked for', email_failed: 'E-mail given up' }} onChange={(activity) => set({ activity })} />
          <Choice label="By" value={query.user} options={{ '': 'Anyone', ...Object.fromEntries((people.data?.results ?? []).map((m) => [m.user.id, nameOf(m.user)])) }} onChange={(user) => set({ user })} />
          <Choice label="Since" value={query.days} options={days} onChange={(d) => set({ days: d })} />
        </div>
      )}
      {error && (error.status === 403 ? <Problem error={error} /> : <Problem error={error} retry={reload} />)}
      {!data && !error && <Skeleton rows={8} />}
      {data && !error && (
        <div class={`list ${loading ? 'stale' : ''}`} role={data.results.length ? 'list' : undefined}>
          {data.results.length === 0 && (filtered
            ? <Empty title="No entries match"><p><button type="button" class="link" onClick={() => route(path, true)}>Clear the filters</button></p></Empty>
            : <Empty title="Nothing has been changed yet"><p>Every change appears here, with who made it and what was before.</p></Empty>)}
          {data.results.map((e) => <Row key={e.id} entry={e} inProject={Boolean(project)} />)}
        </div>
      )}
      {data && !error && <Pager page={page} count={data.total_count} go={(p) => set({ page: p === 1 ? '' : String(p) })} />}
    </Part>
  )
}

export function Choice({ label, value, options, onChange }: { label: string; value: string | undefined; options: Record<string, string>; onChange: (value: string) => void }) {
  return <select aria-label={label} value={value ?? ''} onChange={(e) => onChange(e.currentTarget.value)}>{'' in options && <option value="">{options['']}</option>}{Object.entries(options).filter(([v]) => v !== '').map(([v, words]) => <option key={v} value={v}>{words}</option>)}</select>
}

function Row({ entry: e, inProject }: { entry: Entry; inProject: boolean }) {
  const changes = e.detail.changes ?? []
  const where = !inProject && e.project_id !== null ? (projects.value.find((p) => p.id === e.project_id)?.name ?? `project ${e.project_id}`) : ''
  const head = (
    <>
      <span><b>{e.user.first_name || e.user.email || 'The command line'}</b> {entryWords(e)}{where && <span class="muted"> in {where}</span>}</span>
      <span class="muted small push"><Time at={e.created_at} /></span>
    </>
  )
  return (
    <div class="entry" role="listitem"><details>
      <summary>{head}</summary>
      <dl>
        {changes.map((c) => <div key={c.field}><dt>{fieldWords(c.field)}</dt><dd><del>{valueText(c.before)}</del> <ins>{valueText(c.after)}</ins></dd></div>)}
        <div><dt>From</dt><dd>{[e.client_address || 'the command line', e.personal_api_key_id !== null && `with key ${e.personal_api_key_id}`, e.user_agent].filter(Boolean).join(', ')}</dd></div>
        {routeOf(e) && <div><dt>By</dt><dd><span class="mono">{routeOf(e)}</span>{e.item_id && ` of ${e.item_id}`}</dd></div>}
        {e.request_id && <div><dt>Request</dt><dd class="mono">{e.request_id}</dd></div>}
        <div><dt>Entry</dt><dd>{e.sequence === null ? 'not sealed yet' : <>number {e.sequence}, sealed as <span class="mono">{e.hash.slice(0, 16)}</span></>}</dd></div>
      </dl>
    </details></div>
  )
}
