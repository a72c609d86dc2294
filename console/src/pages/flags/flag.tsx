// The page of a flag, and of a new one. Tabs are in the query of the URL.
import { useEffect, useRef, useState } from 'preact/hooks'
import { useLocation, useRoute } from 'preact-iso'
import { api, ApiError } from '../../api/client'
import { wasRounded } from '../../api/json'
import type { Flag } from '../../api/types'
import { useGuard } from '../../app/guard'
import { here } from '../../app/late'
import { forget, remember, useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { Empty, Problem, Skeleton, Switch, Time, useTitle } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { confirm } from '../../ui/dialog'
import { Review } from '../../ui/review'
import { Tabs } from '../../ui/tabs'
import { toggle } from './actions'
import { bodyOf, changedParts, compared, draftOf, emptyDraft, forEveryone, merge, problems, type Draft, type Merge } from './draft'
import { focusInvalid } from './condition'
import { Editor } from './editor'
import { StatusTag } from './list'
import { History } from './history'
import { lockOf } from './rights'
import { Usage } from './usage'
import { Schedule } from './schedule'
import { Snippets } from './snippets'
import { rolloutWords } from './words'
import './flag.css'

const tabs = [{ id: '', label: 'Conditions' }, { id: 'usage', label: 'Usage' }, { id: 'schedule', label: 'Schedule', live: true }, { id: 'history', label: 'History' }, { id: 'code', label: 'Code', live: true }]

export default function FlagPage() {
  const { params } = useRoute()
  const { path } = useLocation()
  const id = path.endsWith('/flags/new') ? '' : (params.id ?? '')
  return id ? <Existing key={id} id={id} /> : <New />
}

function Existing({ id }: { id: string }) {
  const { project, to } = usePlace()
  const key = `flags/${project}/one/${id}`
  const { data, error, reload } = useData(key, (signal) => api.get('/api/projects/{project_id}/feature_flags/{id}', { path: { project_id: project, id }, signal }))
  if (!data && error?.status === 404) return <><a class="back" href={to('/flags')}><Icon name="back" /> Flags</a><Empty alone title="There is no such flag"><p>It may be one of another project. See <a href={to('/flags')}>all flags</a>.</p></Empty></>
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Skeleton rows={5} />
  return <Page key={data.id} flag={data} back={to('/flags')} onChanged={(flag) => { forget(`flags/${project}`); remember(key, flag); reload() }} />
}

// Page edits the flag that it has read. A newer version takes its place while nothing is
// edited; else the draft stays, and is joined with the newer version when it is saved.
function Page({ flag: loaded, back, onChanged }: { flag: Flag; back: string; onChanged: (flag: Flag) => void }) {
  const { project, to, go } = usePlace()
  const { query, path } = useLocation()
  const [read, setRead] = useState(() => ({ flag: loaded, base: draftOf(loaded) }))
  const [draft, setDraft] = useState(read.base)
  const { base } = read
  const flag = loaded.version < read.flag.version ? read.flag : loaded
  const [reviewing, setReviewing] = useState<{ base: Draft; flag: Flag; merge?: Merge } | null>(null)
  const [busy, setBusy] = useState(false)
  const changed = changedParts(base, draft)
  const [tried, setTried] = useState(false)
  const found = problems(draft, base)
  const tab = query.tab ?? ''
  useTitle(flag.key)
  useGuard(changed.length > 0)
  const adopt = (newer: Flag) => {
    const theirs = draftOf(newer)
    setRead({ flag: newer, base: theirs })
    setDraft(theirs)
    setTried(false)
  }
  const took = (newer: Flag) => {
    if (changed.length === 0) adopt(newer)
    onChanged(newer)
  }
  // Turning the flag on or off is saved alone. What is edited stays, and needs no merge if no one
  // else has saved.
  const flip = async () => {
    const newer = await toggle(project, flag, changed.length > 0 ? 'The changes on this page are not saved with it; they stay.' : '')
    if (!newer) return
    if (changed.length > 0 && newer.version === read.flag.version + 1) {
      setRead({ flag: newer, base: draftOf(newer) })
      setDraft((d) => ({ ...d, active: newer.active }))
    }
    took(newer)
  }
  useEffect(() => { if (changed.length === 0 && loaded.version > read.flag.version) adopt(loaded) }, [loaded, changed.length])
  const review = () => {
    setTried(true)
    if (Object.keys(found).length > 0) return focusInvalid(document.querySelector('.editor'))
    const theirs = draftOf(flag)
    setReviewing(flag.version === read.flag.version ? read : { base: theirs, flag, merge: merge(base, draft, theirs) })
  }

  const save = async (final: Draft, from: { base: Draft; flag: Flag }) => {
    setBusy(true)
    const page = here()
    try {
      const body = { ...bodyOf(final, from.base), version: from.flag.version, original_flag: from.flag as never }
      const answer = await api.patch('/api/projects/{project_id}/feature_flags/{id}', { path: { project_id: project, id: flag.id }, body })
      setReviewing(null)
      page.say(`${answer.key} is saved as version ${answer.version}.`)
      adopt(answer)
      onChanged(answer)
    } catch (e) {
      if (e instanceof ApiError && e.conflict && page.stayed()) await reload(final, from, e)
      else page.sayError(e)
    } finally {
      setBusy(false)
    }
  }
  // Someone else has saved in between: show both changes joined.
  const reload = async (mine: Draft, from: { base: Draft; flag: Flag }, refused: ApiError) => {
    const page = here()
    try {
      const newest = await api.get('/api/projects/{project_id}/feature_flags/{id}', { path: { project_id: project, id: flag.id } })
      if (newest.version === from.flag.version) throw refused
      const theirs = draftOf(newest)
      setReviewing({ base: theirs, flag: newest, merge: merge(from.base, mine, theirs) })
      onChanged(newest)
    } catch (e) { page.sayError(e) }
  }
  const remove = async () => {
    const yes = await confirm({ title: `Delete ${flag.key}?`, body: <p>Clients get no value for it from now on. It can be restored from the list of deleted flags.</p>, action: 'Delete', danger: true, typed: flag.key })
    if (!yes) return
    const page = here()
    try {
      await api.patch('/api/projects/{project_id}/feature_flags/{id}', { path: { project_id: project, id: flag.id }, body: { deleted: true } })
      forget(`flags/${project}`)
      page.say(`${flag.key} is deleted.`)
      page.leave(() => go('/flags'))
    } catch (e) { page.sayError(e) }
  }
  const restore = async () => {
    const body = <p>{flag.active ? `It will be on for ${rolloutWords(flag)}, at once.` : 'It will be off, as it was.'}</p>
    if (!await confirm({ title: `Restore ${flag.key}?`, body, action: 'Restore' })) return
    const page = here()
    try {
      const answer = await api.patch('/api/projects/{project_id}/feature_flags/{id}', { path: { project_id: project, id: flag.id }, body: { deleted: false } })
      page.say(`${answer.key} is restored.`)
      took(answer)
    } catch (e) { page.sayError(e) }
  }
  const by = reviewing?.flag.last_modified_by
  const locked = lockOf(flag)
  return (
    <>
      <a class="back" href={back}><Icon name="back" /> Flags</a>
      <div class="page-head flag-head">
        <div>
          <h1 class="mono">{flag.key} <StatusTag flag={flag} /></h1>
          <p>{flag.name || 'No description'} · version {flag.version}, <Time at={flag.updated_at} />{flag.last_modified_by && ` by ${flag.last_modified_by.first_name || flag.last_modified_by.email}`}</p>
        </div>
        <div class="row">
          {!flag.deleted && <label class="row">{flag.active ? 'On' : 'Off'} <Switch on={flag.active} label={`${flag.key} is ${flag.active ? 'on' : 'off'}`} disabled={locked !== ''} onToggle={() => { void flip() }} /></label>}
          {!flag.deleted && <a class="button" href={`${to('/why')}?flag=${encodeURIComponent(flag.key)}`}><Icon name="why" /> Why</a>}
          {!locked && flag.deleted && <button type="button" class="button" onClick={() => { void restore() }}>Restore</button>}
          {!locked && !flag.deleted && <button type="button" class="icon-button" aria-label="Delete the flag" title="Delete the flag" onClick={() => { void remove() }}><Icon name="trash" /></button>}
        </div>
      </div>
      <Tabs label="Parts of the flag" tabs={tabs.filter((t) => !flag.deleted || !t.live).map((t) => ({ href: t.id ? `${path}?tab=${t.id}` : path, label: t.label, here: tab === t.id }))} />
      {locked && (tab === '' || tab === 'schedule') && <p class="notice" role="note">{locked}</p>}
      {tab === 'usage' && <Usage project={project} flag={flag} />}
      {tab === 'schedule' && <Schedule project={project} flag={flag} />}
      {tab === 'history' && <History project={project} flag={flag} onChanged={took} />}
      {tab === 'code' && <Snippets project={project} flag={flag} />}
      {tab === '' && flag.deleted && <p>It was {flag.active ? 'on' : 'off'} when it was deleted, with the conditions: {rolloutWords(flag)}. Clients get no value for it. Restore it to change it.</p>}
      {tab === '' && !flag.deleted && <Editor key={read.flag.version} fixed={wasRounded(read.flag)} locked={locked !== ''} project={project} draft={draft} problems={tried ? found : {}} onChange={setDraft} flag={flag} />}
      {changed.length > 0 && tab === '' && (
        <div class="save-bar" role="region" aria-label="Unsaved changes">
          <span>{Object.values(found)[0] ?? (flag.version > read.flag.version ? `There are unsaved changes, and version ${flag.version} was saved meanwhile.` : 'There are unsaved changes.')}</span>
          <button type="button" class="button" onClick={() => adopt(flag)}>Discard</button>
          <button type="button" class="button primary" onClick={review}>Review and save</button>
        </div>
      )}
      {reviewing && <Review key={reviewing.flag.version} name={reviewing.flag.key} of={compared} base={reviewing.base} merge={reviewing.merge} saved={`${by?.first_name || by?.email || 'Another change'} saved version ${reviewing.flag.version}.`} draft={reviewing.merge?.merged ?? draft} busy={busy} onSave={(final) => { void save(final, reviewing) }} onClose={() => setReviewing(null)} />}
    </>
  )
}

function New() {
  const { project, to, go } = usePlace()
  const [draft, setDraft] = useState(emptyDraft)
  const [busy, setBusy] = useState(false)
  const [tried, setTried] = useState(false)
  const [refused, setRefused] = useState<ApiError | null>(null)
  const form = useRef<HTMLFormElement>(null)
  const found = problems(draft)
  useTitle('New flag')
  useGuard(changedParts(emptyDraft, draft).length > 0, busy)
  const create = async (e: Event) => {
    e.preventDefault()
    setTried(true)
    if (Object.keys(found).length) return focusInvalid(form.current)
    setBusy(true)
    setRefused(null)
    const page = here()
    try {
      const flag = await api.post('/api/projects/{project_id}/feature_flags', { path: { project_id: project }, body: { ...bodyOf(draft), key: draft.key } })
      forget(`flags/${project}`)
      page.say(flag.active ? `${flag.key} is created.` : `${flag.key} is created, turned off.`)
      page.leave(() => go(`/flags/${flag.id}?tab=code`, true))
    } catch (e) {
      setBusy(false)
      if (e instanceof ApiError && e.attr === 'key' && page.stayed()) {
        setRefused(e)
        focusInvalid(form.current)
      }
      else page.sayError(e)
    }
  }
  return (
    <form ref={form} noValidate onSubmit={(e) => { void create(e) }}>
      <a class="back" href={to('/flags')}><Icon name="back" /> Flags</a>
      <div class="page-head"><div><h1>New flag</h1><p>It decides for whom a feature is on.</p></div></div>
      <Editor project={project} draft={draft} isNew problems={tried ? { ...found, ...(refused && { key: refused.message }) } : {}} onChange={(d) => { setDraft(d); if (d.key !== draft.key) setRefused(null) }} />
      <div class="row form-end">
        <button type="submit" class="button primary" disabled={busy}>{!draft.active ? 'Create the flag' : forEveryone(draft) ? 'Create and turn on for everyone' : 'Create and turn on'}</button>
        <label class="check"><input type="checkbox" checked={draft.active} onChange={(e) => setDraft({ ...draft, active: e.currentTarget.checked })} /> Turn it on at once</label>
      </div>
    </form>
  )
}
