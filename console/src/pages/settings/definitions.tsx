// Names of events and properties that the project ever sent: what they mean, and which to hide.
import { useEffect, useState } from 'preact/hooks'
import { api, queryOf } from '../../api/client'
import type { Schemas } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { useView } from '../../app/place'
import { projects } from '../../app/session'
import { Code, Empty, Field, Problem, Skeleton, Tag, Time } from '../../ui/basics'
import { confirm, Dialog } from '../../ui/dialog'
import { Icon } from '../../ui/icon'
import { pageSize, Pager } from '../../ui/paging'
import { Choice } from './log'
import { attempt, Line, Part, Refused, useSubmit } from './parts'

type Definition = Schemas['Definition'] & { property_type?: Schemas['PropertyDefinition']['property_type'] }
type Type = NonNullable<Schemas['DefinitionChange']['property_type']>
const types: [Type, string][] = [['', 'unknown'], ['String', 'text'], ['Numeric', 'number'], ['Boolean', 'true or false'], ['DateTime', 'date and time']]
const sorts: Record<string, string> = { '': 'Events', event: 'Properties of events', person: 'Properties of persons' }

export default function Definitions({ project }: { project: string }) {
  const { query, path, route } = useView()
  const [text, setText] = useState(query.search ?? '')
  const search = useDebounced(text)
  const [editing, setEditing] = useState<Definition | null>(null)
  const set = (changes: Record<string, string>) => route(path + queryOf({ ...query, page: '', ...changes }), true)
  useEffect(() => { if (search !== (query.search ?? '')) set({ search }) }, [search])
  const page = Math.max(1, Number(query.page) || 1)
  const of = query.of === 'event' || query.of === 'person' ? query.of : ''
  const ask = {
    search: query.search, verified: query.show === 'verified' ? true : query.show === 'unverified' ? false : undefined,
    exclude_hidden: query.show === 'hidden' ? undefined : true, ordering: '-last_seen_at', limit: pageSize, offset: (page - 1) * pageSize,
  }
  const { data, error, reload } = useData(`settings/${project}/definitions/${of}${queryOf(ask)}`, async (signal): Promise<{ count: number; results?: Definition[] }> => (of === ''
    ? api.get('/api/projects/{project_id}/event_definitions', { path: { project_id: project }, query: ask, signal })
    : api.get('/api/projects/{project_id}/property_definitions', { path: { project_id: project }, query: { ...ask, type: of }, signal })))
  const all = data?.results ?? []
  const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
  return (
    <Part title="Definitions" text="Names of events and properties that were ever sent. Describe what they mean; verified ones are offered first, hidden ones not at all.">
      <div class="filters" role="search">
        <div class="search"><Icon name="search" /><input type="search" aria-label="Search definitions" placeholder="Search by name" value={text} onInput={(e) => setText(e.currentTarget.value)} /></div>
        <Choice label="Of" value={of} options={sorts} onChange={(v) => set({ of: v })} />
        <Choice label="Show" value={query.show} options={{ '': 'Not hidden', hidden: 'Also hidden', verified: 'Verified', unverified: 'Not verified' }} onChange={(show) => set({ show })} />
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton rows={6} />}
      {data && !error && (
        <div class="list" role={all.length ? 'list' : undefined}>
          {all.length === 0 && (query.search || query.show
            ? <Empty title="No names match"><p><button type="button" class="link" onClick={() => { setText(''); route(path + queryOf({ of }), true) }}>Clear the search</button></p></Empty>
            : (
              <Empty title="Nothing has been sent yet">
                <p>A name appears with the first event that has it:</p>
                <Code label="Send an event" text={`curl -X POST ${location.origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "event": "signed up", "distinct_id": "ada", "properties": {"plan": "pro"}}'`} />
              </Empty>
              ))}
          {all.map((d) => (
            <Line key={d.id} what={<Name definition={d} />}
              about={<>{d.description && <>{d.description}<br /></>}<Seen at={d.last_seen_at} /></>}>
              <button type="button" class="button small" aria-label={`Edit ${d.name}`} onClick={() => setEditing(d)}>Edit</button>
            </Line>
          ))}
        </div>
      )}
      {data && !error && <Pager page={page} count={data.count} go={(p) => set({ page: p === 1 ? '' : String(p) })} />}
      {editing && <Edit project={project} definition={editing} event={of === ''} onClose={() => setEditing(null)} onDone={() => { setEditing(null); reload() }} />}
    </Part>
  )
}

function Name({ definition: d }: { definition: Definition }) {
  return (
    <>
      <span class="mono">{d.name}</span>
      {d.verified && <Tag tone="ok">verified</Tag>}
      {d.hidden && <Tag tone="warn">hidden</Tag>}
      {d.property_type && <Tag>{d.property_type}</Tag>}
      {d.tags.map((t) => <Tag key={t}>{t}</Tag>)}
    </>
  )
}

function Edit({ project, definition: d, event, onClose, onDone }: { project: string; definition: Definition; event: boolean; onClose: () => void; onDone: () => void }) {
  const [description, setDescription] = useState(d.description)
  const [tags, setTags] = useState(d.tags.join(', '))
  const [verified, setVerified] = useState(d.verified)
  const [hidden, setHidden] = useState(d.hidden)
  const [type, setType] = useState<Type>(d.property_type ?? '')
  const path = { project_id: project, id: d.id }
  const { submit, busy, error, at } = useSubmit(async () => {
    const body = { description, tags: tags.split(',').map((t) => t.trim()).filter(Boolean), verified, hidden }
    await (event
      ? api.patch('/api/projects/{project_id}/event_definitions/{id}', { path, body })
      : api.patch('/api/projects/{project_id}/property_definitions/{id}', { path, body: { ...body, ...(type !== (d.property_type ?? '') && { property_type: type }) } }))
    onDone()
  })
  const forget = async () => {
    if (!await confirm({ title: `Forget ${d.name}?`, body: <p>Its description and tags are lost. What was sent stays; the name comes back when it is sent again.</p>, action: 'Forget', danger: true })) return
    const done = await attempt(() => (event ? api.delete('/api/projects/{project_id}/event_definitions/{id}', { path }) : api.delete('/api/projects/{project_id}/property_definitions/{id}', { path })), `${d.name} is forgotten.`)
    if (done) onDone()
  }
  return (
    <Dialog title={d.name} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field id="definition-text" label="Description" error={at('description')}><textarea id="definition-text" rows={3} maxLength={4000} value={description} onInput={(e) => setDescription(e.currentTarget.value)} /></Field>
        <Field id="definition-tags" label="Tags" hint="Separated by commas." error={at('tags')}><input id="definition-tags" value={tags} onInput={(e) => setTags(e.currentTarget.value)} /></Field>
        {!event && (
          <Field id="definition-type" label="Type of its values" error={at('property_type')}>
            <select id="definition-type" value={type} onChange={(e) => setType(e.currentTarget.value as Type)}>{types.map(([name, words]) => <option key={name} value={name}>{words}</option>)}</select>
          </Field>
        )}
        <div class="row">
          <label class="check"><input type="checkbox" checked={verified} onChange={(e) => setVerified(e.currentTarget.checked)} /> Verified</label>
          <label class="check"><input type="checkbox" checked={hidden} onChange={(e) => setHidden(e.currentTarget.checked)} /> Hidden</label>
        </div>
        <Refused error={error} fields={['description', 'tags', 'property_type']} />
        <footer>
          <button type="button" class="button danger-quiet" onClick={() => { void forget() }}>Forget</button>
          <span class="push" />
          <button type="button" class="button" onClick={onClose}>Cancel</button>
          <button type="submit" class="button primary" disabled={busy}>Save</button>
        </footer>
      </form>
    </Dialog>
  )
}

// Seen says when a name was seen last. The server keeps only the hour.
function Seen({ at }: { at: string }) {
  return Date.now() - Date.parse(at) < 3_600_000 ? <>seen in the last hour</> : <>seen <Time at={at} /></>
}
