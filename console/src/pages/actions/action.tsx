// The page of an action, and of a new one. Tabs are in the query of the URL.
import { useEffect, useState } from 'preact/hooks'
import { useLocation, useRoute } from 'preact-iso'
import { api, ApiError } from '../../api/client'
import { wasRounded } from '../../api/json'
import type { Action } from '../../api/types'
import { useGuard } from '../../app/guard'
import { forget, remember, useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { here } from '../../app/late'
import { may } from '../../app/session'
import { Empty, Problem, Skeleton, Tag, Time, useTitle } from '../../ui/basics'
import { confirm } from '../../ui/dialog'
import { Icon } from '../../ui/icon'
import { Review } from '../../ui/review'
import { Tabs } from '../../ui/tabs'
import { Chat } from './chat'
import { Deliveries } from './deliveries'
import { bodyOf, changedParts, compared, draftOf, emptyDraft, merge, problems, type Draft, type Merge } from './draft'
import { Editor } from './editor'
import { History } from './history'
import { Results } from './results'
import '../flags/flag.css'
import './action.css'

const tabs = [{ id: '', label: 'Events' }, { id: 'results', label: 'Results' }, { id: 'chat', label: 'Chat' }, { id: 'deliveries', label: 'Deliveries' }, { id: 'history', label: 'History' }]

interface Reviewed { base: Draft; action: Action; merge?: Merge }

export default function ActionPage() {
  const { params } = useRoute()
  const { path } = useLocation()
  const id = path.endsWith('/actions/new') ? '' : (params.id ?? '')
  return id ? <Existing key={id} id={id} /> : <New />
}

function Existing({ id }: { id: string }) {
  const { project, to } = usePlace()
  const key = `actions/${project}/one/${id}`
  const { data, error, reload } = useData(key, (signal) => api.get('/api/projects/{project_id}/actions/{id}', { path: { project_id: project, id }, signal }))
  if (!data && error?.status === 404) return <><a class="back" href={to('/actions')}><Icon name="back" /> Actions</a><Empty alone title="There is no such action"><p>It may be one of another project. See <a href={to('/actions')}>all actions</a>.</p></Empty></>
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Skeleton rows={5} />
  return <Page key={data.id} action={data} onChanged={(action) => { forget(`actions/${project}`); remember(key, action); reload() }} />
}

// Page edits the action that it has read. A newer version takes its place while nothing is
// edited; else the draft stays, and is joined with the newer version when it is saved.
function Page({ action: loaded, onChanged }: { action: Action; onChanged: (a: Action) => void }) {
  const { project, to } = usePlace()
  const { query, path } = useLocation()
  const [read, setRead] = useState(() => ({ action: loaded, base: draftOf(loaded) }))
  const [draft, setDraft] = useState(read.base)
  const [reviewing, setReviewing] = useState<Reviewed | null>(null)
  const [busy, setBusy] = useState(false)
  const [refused, setRefused] = useState<ApiError | null>(null)
  const { base } = read
  const action = loaded.version < read.action.version ? read.action : loaded
  const changed = changedParts(base, draft)
  const found = { ...problems(draft), ...(refused?.attr && { [refused.attr]: refused.message }) }
  const tab = query.tab ?? ''
  const title = base.name || `Action ${action.id}`
  const target = { project_id: project, id: action.id }
  useTitle(title)
  useGuard(changed.length > 0)
  const edit = (d: Draft) => { setDraft(d); setRefused(null) }
  const adopt = (newer: Action) => {
    const theirs = draftOf(newer)
    setRead({ action: newer, base: theirs })
    edit(theirs)
  }
  useEffect(() => { if (changed.length === 0 && loaded.version > read.action.version) adopt(loaded) }, [loaded, changed.length])
  const review = () => {
    const theirs = draftOf(action)
    setReviewing(action.version === read.action.version ? read : { base: theirs, action, merge: merge(base, draft, theirs) })
  }
  const save = async (final: Draft, from: Reviewed) => {
    setBusy(true)
    const page = here()
    try {
      const answer = await api.patch('/api/projects/{project_id}/actions/{id}', { path: target, body: { ...bodyOf(final, from.base), version: from.action.version } })
      setReviewing(null)
      page.say(`${answer.name ?? 'The action'} is saved.`)
      adopt(answer)
      onChanged(answer)
    } catch (e) {
      if (e instanceof ApiError && e.conflict && page.stayed()) await join(final, from, e)
      else if (e instanceof ApiError && e.attr && page.stayed()) { setReviewing(null); setRefused(e) } else page.sayError(e)
    } finally {
      setBusy(false)
    }
  }
  // Someone else has saved in between: show both changes joined.
  const join = async (mine: Draft, from: Reviewed, conflict: ApiError) => {
    const page = here()
    try {
      const newest = await api.get('/api/projects/{project_id}/actions/{id}', { path: target })
      if (newest.version === from.action.version) throw conflict
      onChanged(newest) // Discard goes back to this one
      const theirs = draftOf(newest)
      setReviewing({ base: theirs, action: newest, merge: merge(from.base, mine, theirs) })
    } catch (e) { page.sayError(e) }
  }
  const setDeleted = async (deleted: boolean) => {
    if (deleted && !await confirm({ title: `Delete ${title}?`, body: <p>It stops to count and to post; waiting messages are dropped. Events stay. It can be restored from the list of deleted actions.</p>, action: 'Delete', danger: true })) return
    const page = here()
    try {
      const answer = await api.patch('/api/projects/{project_id}/actions/{id}', { path: target, body: { deleted } })
      page.say(`${title} is ${deleted ? 'deleted' : 'restored'}.`, deleted ? { label: 'Undo', run: () => { void setDeleted(false) } } : undefined)
      onChanged(answer)
    } catch (e) { page.sayError(e) }
  }
  const edits = tab === '' || tab === 'chat'
  const locked = !may('write', 'action')
  return (
    <>
      <a class="back" href={to('/actions')}><Icon name="back" /> Actions</a>
      <div class="page-head">
        <div>
          <h1>{title} {action.deleted && <Tag tone="bad">Deleted</Tag>} {action.post_to_chat && !action.deleted && <Tag tone="ok">Posts to chat</Tag>}</h1>
          <p>{base.description || 'No description'} · version {action.version}, <Time at={action.updated_at} />{action.created_by && ` · created by ${action.created_by.first_name || action.created_by.email}`}</p>
        </div>
        <div class="row">
          {!locked && (action.deleted
            ? <button type="button" class="button" onClick={() => { void setDeleted(false) }}>Restore</button>
            : <button type="button" class="icon-button" aria-label="Delete the action" title="Delete the action" onClick={() => { void setDeleted(true) }}><Icon name="trash" /></button>)}
        </div>
      </div>
      <Tabs label="Parts of the action" tabs={tabs.map((t) => ({ href: t.id ? `${path}?tab=${t.id}` : path, label: t.label, here: tab === t.id }))} />
      {action.bytecode_error && edits && <p class="notice" role="note">Some of it matches nothing: {action.bytecode_error}</p>}
      {locked && edits && <p class="notice" role="note">You may look at this action, not change it: the key that you work with has no right to change actions.</p>}
      {tab === '' && <Editor project={project} draft={draft} problems={found} locked={locked} fixed={wasRounded(read.action)} onChange={edit} />}
      {tab === 'results' && <Results project={project} action={action} />}
      {tab === 'chat' && <fieldset class="plain" disabled={locked}><Chat project={project} action={read.action} draft={draft} problems={found} changed={changed.length > 0} onChange={edit} /></fieldset>}
      {tab === 'deliveries' && <Deliveries project={project} action={action} />}
      {tab === 'history' && <History project={project} action={action} />}
      {changed.length > 0 && edits && (
        <div class="save-bar" role="region" aria-label="Unsaved changes">
          <span>{Object.values(found)[0] ?? (action.version > read.action.version ? `There are unsaved changes, and version ${action.version} was saved meanwhile.` : 'There are unsaved changes.')}</span>
          <button type="button" class="button" onClick={() => adopt(action)}>Discard</button>
          <button type="button" class="button primary" disabled={Object.keys(found).length > 0} onClick={review}>Review and save</button>
        </div>
      )}
      {reviewing && <Review key={reviewing.action.version} name={reviewing.base.name || 'the action'} of={compared} base={reviewing.base} merge={reviewing.merge} saved={`Version ${reviewing.action.version} was saved meanwhile.`} draft={reviewing.merge?.merged ?? draft} busy={busy} onSave={(final) => { void save(final, reviewing) }} onClose={() => setReviewing(null)} />}
    </>
  )
}

function New() {
  const { project, to, go } = usePlace()
  const [draft, setDraft] = useState(emptyDraft)
  const [busy, setBusy] = useState(false)
  const [tried, setTried] = useState(false)
  const [refused, setRefused] = useState<ApiError | null>(null)
  const found = problems(draft)
  useTitle('New action')
  useGuard(changedParts(emptyDraft, draft).length > 0, busy)
  const create = async (e: Event) => {
    e.preventDefault()
    setTried(true)
    if (Object.keys(found).length) return
    setBusy(true)
    setRefused(null)
    const page = here()
    try {
      const action = await api.post('/api/projects/{project_id}/actions', { path: { project_id: project }, body: bodyOf(draft) })
      forget(`actions/${project}`)
      page.say(`${action.name ?? 'The action'} is created.`)
      page.leave(() => go(`/actions/${action.id}`, true))
    } catch (e) {
      setBusy(false)
      if (e instanceof ApiError && e.attr && page.stayed()) setRefused(e)
      else page.sayError(e)
    }
  }
  return (
    <form onSubmit={(e) => { void create(e) }}>
      <a class="back" href={to('/actions')}><Icon name="back" /> Actions</a>
      <div class="page-head"><div><h1>New action</h1><p>It gives events a name: it counts them, lists who did it, and can post to chat.</p></div></div>
      <Editor project={project} draft={draft} problems={tried ? { ...found, ...(refused?.attr && { [refused.attr]: refused.message }) } : {}} onChange={(d) => { setDraft(d); setRefused(null) }} />
      <div class="row form-end">
        <button type="submit" class="button primary" disabled={busy}>Create the action</button>
        <a href={to('/actions')}>Cancel</a>
        {tried && Object.values(found)[0] && <span class="field-error">{Object.values(found)[0]}</span>}
      </div>
    </form>
  )
}
