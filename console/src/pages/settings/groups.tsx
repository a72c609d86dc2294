// Types of groups, such as companies, of which a project has five at most.
import { useState } from 'preact/hooks'
import { api } from '../../api/client'
import type { Schemas } from '../../api/types'
import { useData } from '../../app/load'
import { projects } from '../../app/session'
import { Code, Empty, Field, Problem, Skeleton, Time } from '../../ui/basics'
import { confirm, Dialog } from '../../ui/dialog'
import { Icon } from '../../ui/icon'
import { attempt, Line, Part, Refused, useSubmit } from './parts'

type GroupType = Schemas['GroupType']

export default function GroupTypes({ project }: { project: string }) {
  const [editing, setEditing] = useState<GroupType | 'new' | null>(null)
  const { data, error, reload } = useData(`settings/${project}/group-types`, (signal) => api.get('/api/projects/{project_id}/groups_types', { path: { project_id: project }, signal }))
  const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
  const remove = async (g: GroupType) => {
    if (await confirm({ title: `Delete ${g.group_type}?`, body: <p>Its groups and their properties go with it. Flags that use it no longer reach anyone by it.</p>, action: 'Delete', danger: true, typed: g.group_type }) &&
      await attempt(() => api.delete('/api/projects/{project_id}/groups_types/{index}', { path: { project_id: project, index: g.group_type_index } }), `${g.group_type} is deleted.`)) reload()
  }
  const types = data ?? []
  return (
    <Part title="Group types" text="What persons belong to, such as companies: flags can be on for a whole group. A project has five at most."
      action={types.length < 5 && <button type="button" class="button" onClick={() => setEditing('new')}><Icon name="plus" /> New type</button>}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton rows={2} />}
      {data && (
        <div class="list" role={types.length ? 'list' : undefined}>
          {types.length === 0 && <Empty title="No group type yet"><p>The first event that names a group makes its type:</p><Code label="Send a group" text={`curl -X POST ${location.origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "event": "$groupidentify", "distinct_id": "ada", "properties": {"$group_type": "company", "$group_key": "acme", "$group_set": {"plan": "pro"}}}'`} /></Empty>}
          {types.map((g) => (
            <Line key={g.group_type_index} what={<>{g.group_type}{g.name_plural && <span class="muted">{g.name_singular}, {g.name_plural}</span>}</>} about={<>index {g.group_type_index}, created <Time at={g.created_at} /></>}>
              <button type="button" class="button small" aria-label={`Rename ${g.group_type}`} onClick={() => setEditing(g)}>Rename</button>
              <button type="button" class="button small danger-quiet" aria-label={`Delete ${g.group_type}`} onClick={() => { void remove(g) }}>Delete</button>
            </Line>
          ))}
        </div>
      )}
      {editing && <Edit project={project} type={editing === 'new' ? null : editing} onClose={() => setEditing(null)} onDone={() => { setEditing(null); reload() }} />}
    </Part>
  )
}

function Edit({ project, type, onClose, onDone }: { project: string; type: GroupType | null; onClose: () => void; onDone: () => void }) {
  const [name, setName] = useState(type?.group_type ?? '')
  const [one, setOne] = useState(type?.name_singular ?? '')
  const [many, setMany] = useState(type?.name_plural ?? '')
  const { submit, busy, error, at } = useSubmit(async () => {
    const names = { name_singular: one || null, name_plural: many || null }
    await (type
      ? api.patch('/api/projects/{project_id}/groups_types/{index}', { path: { project_id: project, index: type.group_type_index }, body: { ...names, ...(name !== type.group_type && { group_type: name }) } })
      : api.post('/api/projects/{project_id}/groups_types', { path: { project_id: project }, body: { group_type: name, ...names } }))
    onDone()
  })
  return (
    <Dialog title={type ? `Rename ${type.group_type}` : 'New group type'} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field id="group-name" label="Type" error={at('group_type')} hint={type ? 'Clients send this name: change it there, too.' : 'The name that clients send.'}><input id="group-name" class="mono" required placeholder="company" value={name} onInput={(e) => setName(e.currentTarget.value)} /></Field>
        <div class="pair">
          <Field id="group-one" label="Shown for one" error={at('name_singular')}><input id="group-one" placeholder="Company" value={one} onInput={(e) => setOne(e.currentTarget.value)} /></Field>
          <Field id="group-many" label="Shown for many" error={at('name_plural')}><input id="group-many" placeholder="Companies" value={many} onInput={(e) => setMany(e.currentTarget.value)} /></Field>
        </div>
        <Refused error={error} fields={['group_type', 'name_singular', 'name_plural']} />
        <footer><button type="button" class="button" onClick={onClose}>Cancel</button><button type="submit" class="button primary" disabled={busy}>{type ? 'Save' : 'Create the type'}</button></footer>
      </form>
    </Dialog>
  )
}
