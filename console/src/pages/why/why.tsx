// Why a person gets the values of flags: the trace that the evaluator writes, as a tree.
// Whom it is about, what is assumed of them, and which flags are shown, is in the URL.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { api, queryOf } from '../../api/client'
import { useData, useDebounced } from '../../app/load'
import { usePlace, useView } from '../../app/place'
import { may, projects } from '../../app/session'
import { Code, Empty, Field, useTitle } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { ExplainedFlags, reasonOf, type Shown, Value } from './explained'
import { GroupFields, groupsOf, groupsText, useGroupTypes } from './groups'
import { Overrides } from './overrides'
import { Trace } from './trace'
import { assumed, overridesOf, overridesText } from './values'
import './why.css'

export default function Why() {
  const { query, path, route } = useView()
  const { project } = usePlace()
  const id = query.id ?? ''
  const [text, setText] = useState(id)
  useTitle('Why')
  const types = useGroupTypes(project)
  const groups = groupsOf(query.groups ?? '')
  const [members, setMembers] = useState(groups)
  const named = groupsText(members)
  useLayoutEffect(() => { setText(id); setMembers(groups) }, [project, id, query.groups]) // by a link or Back
  const recent = useData(may('read', 'person') ? `recent/${project}` : '', (signal) => api.get('/api/projects/{project_id}/persons', { path: { project_id: project }, query: { limit: 20 }, signal }))
  const set = (changes: Record<string, string>, replace = false) => route(path + queryOf({ ...query, page: '', ...changes }), replace)

  const [overrides, setOverrides] = useState(() => overridesOf(query.assume ?? ''))
  const settled = useDebounced(overridesText(overrides), 300)
  const written = useRef(query.assume ?? '')
  useEffect(() => {
    if (settled === written.current) return
    written.current = settled
    set({ assume: settled }, true)
  }, [settled])
  useLayoutEffect(() => {
    if ((query.assume ?? '') === written.current) return
    written.current = query.assume ?? ''
    setOverrides(overridesOf(written.current))
  }, [query.assume])
  const asked = { id, groups, ...assumed(overridesOf(query.assume ?? ''), groups) }
  const [round, setRound] = useState(0)
  const explain = (e: Event) => {
    e.preventDefault()
    if (text.trim() !== id || named !== (query.groups ?? '')) return set({ id: text.trim(), groups: named })
    setRound(round + 1)
  }
  const people = (recent.data?.results ?? []).map((p) => p.distinct_ids[0] ?? '').filter(Boolean)
  return (
    <>
      <div class="page-head"><div><h1>Why</h1><p>See every flag's value for a person, and how it came about.</p></div></div>
      <form class="why-form" onSubmit={explain}>
        <Field id="distinct-id" label="Distinct id">
          <input id="distinct-id" class="mono" list="recent" required autocomplete="off" spellcheck={false} value={text} placeholder="ada" onInput={(e) => setText(e.currentTarget.value)} />
        </Field>
        <datalist id="recent">{(recent.data?.results ?? []).map((p) => <option key={p.uuid} value={p.distinct_ids[0] ?? ''}>{p.name}</option>)}</datalist>
        <GroupFields project={project} types={types} value={members} onChange={setMembers} />
        <button type="submit" class="button primary">Explain</button>
      </form>
      {!id && <Start project={project} people={people.slice(0, 8)} choose={(chosen) => set({ id: chosen, groups: named })} />}
      {id && <Overrides key={`${project}/${id}`} project={project} id={id} groups={groups} types={types} value={overrides} onChange={setOverrides} />}
      {id && (
        <ExplainedFlags key={project} project={project} asked={asked} round={round} none={<Empty title="There are no flags yet"><p>Create a flag, then see here who gets it and why.</p></Empty>}>
          {(shown) => shown.map((s) => <One key={s.flag.key} shown={s} first={query.flag === s.flag.key} />)}
        </ExplainedFlags>
      )}
    </>
  )
}

// One draws the tree when it is opened: most are not.
function One({ shown, first }: { shown: Shown; first: boolean }) {
  const [open, setOpen] = useState(first)
  const e = shown.flag
  return (
    <details class="card one" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="right" />
        <span class="mono name">{e.key}</span>
        <Value {...shown} />
        <span class="muted reason">{reasonOf(e)}</span>
      </summary>
      {open && <Trace explanation={e} />}
    </details>
  )
}

function Start({ project, people, choose }: { project: string; people: string[]; choose: (id: string) => void }) {
  const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
  if (people.length) {
    return <Empty title="Pick a person, or type any distinct id"><p class="why-people">{people.map((p) => <button key={p} type="button" class="button small mono" onClick={() => choose(p)}>{p}</button>)}</p></Empty>
  }
  return (
    <Empty title="Type any distinct id">
      <p>No person has been seen in this project yet. A person appears with the first event:</p>
      <Code label="Send an event" text={`curl -X POST ${location.origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "event": "signed up", "distinct_id": "ada", "properties": {"$set": {"plan": "pro"}}}'`} />
    </Empty>
  )
}
