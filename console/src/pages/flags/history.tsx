// Versions of a flag, who saved them, and the way back.
import { useState } from 'preact/hooks'
import { api, ApiError } from '../../api/client'
import type { ActivityEntry, Flag } from '../../api/types'
import { useData } from '../../app/load'
import { here } from '../../app/late'
import { Problem, Skeleton, Tag } from '../../ui/basics'
import { Dialog } from '../../ui/dialog'
import { Difference, HistoryEntry } from '../../ui/review'
import { mayEdit } from './rights'
import { versionAt } from './versions'
import { changedParts, draftOf, lines, partWords } from './draft'

export function History({ project, flag, onChanged }: { project: string; flag: Flag; onChanged: (flag: Flag) => void }) {
  const path = { project_id: project, id: flag.id }
  const [entry, setEntry] = useState<{ at: string; hint: number } | null>(null)
  const { data, error, reload } = useData(`flags/${project}/activity/${flag.id}/${flag.version}`, (signal) => api.get('/api/projects/{project_id}/feature_flags/{id}/activity', { path, query: { limit: 100 }, signal }))
  if (error) return <Problem error={error} retry={reload} />
  if (!data) return <Skeleton rows={4} />
  const entries = data.results ?? []
  return (
    <ol class="history">
      {entries.map((e, i) => {
        const newest = e.created_at === flag.updated_at
        const made = e.activity === 'created' || Boolean(e.detail.changes?.length) // a version
        const earlier = made && Date.parse(e.created_at) < Date.parse(flag.updated_at)
        return (
          <HistoryEntry key={e.id} entry={e} words={actionWords(e)}>
            {(e.detail.changes ?? []).map((c) => <Change key={c.field} field={c.field} before={c.before} after={c.after} />)}
            <div class="row">
              {newest && <Tag tone="ok">version {flag.version}, now</Tag>}
              {earlier && mayEdit(flag) && <button type="button" class="link small" onClick={() => setEntry({ at: e.created_at, hint: flag.version - i })}>Compare and roll back</button>}
            </div>
          </HistoryEntry>
        )
      })}
      {entry && <Rollback project={project} flag={flag} entry={entry} onClose={() => setEntry(null)} onChanged={onChanged} />}
    </ol>
  )
}

// readVersion returns a version of a flag; undefined if there is none.
async function readVersion(project: string, id: number, version: number, signal: AbortSignal): Promise<Flag | undefined> {
  try {
    return await api.get('/api/projects/{project_id}/feature_flags/{id}/versions/{version}', { path: { project_id: project, id, version }, signal })
  } catch (e) {
    if (e instanceof ApiError && e.status === 404) return undefined
    throw e
  }
}

function actionWords(e: ActivityEntry): string {
  if (e.activity === 'created') return 'created it'
  if (e.activity === 'deleted') return 'deleted it'
  const fields = (e.detail.changes ?? []).map((c) => fieldWords(c.field))
  return fields.length ? `changed ${fields.join(', ')}` : `${e.activity} it`
}

function fieldWords(field: string): string { return ({ filters: 'conditions', active: 'state', name: 'description' })[field] ?? field.replaceAll('_', ' ') }

function Change({ field, before, after }: { field: string; before?: unknown; after?: unknown }) {
  if (field === 'filters') {
    const from = draftOf({ filters: before ?? {} } as Flag)
    const to = draftOf({ filters: after ?? {} } as Flag)
    const parts = changedParts(from, to).filter((p) => p === 'groups' || p === 'variants' || p === 'payloads')
    return <>{parts.map((p) => <Difference key={p} before={lines(from, p)} after={lines(to, p)} />)}</>
  }
  const text = (v: unknown) => (v === null || v === undefined || v === '' || (Array.isArray(v) && v.length === 0) ? [] : Array.isArray(v) && v.every((e) => typeof e === 'string') ? [v.join(', ')] : [typeof v === 'boolean' && field === 'active' ? (v ? 'on' : 'off') : typeof v === 'string' ? v : JSON.stringify(v)])
  return <Difference before={text(before)} after={text(after)} />
}

// Rollback compares the flag with the version that an entry made. Entries have no number of
// a version, and there are versions without an entry: the version is the one with its time.
function Rollback({ project, flag, entry, onClose, onChanged }: { project: string; flag: Flag; entry: { at: string; hint: number }; onClose: () => void; onChanged: (flag: Flag) => void }) {
  const path = { project_id: project, id: flag.id }
  const [busy, setBusy] = useState(false)
  const { data, error } = useData(`flags/${project}/version/${flag.id}/${entry.at}`, (signal) => versionAt(entry.at, entry.hint, flag.version, (version) => readVersion(project, flag.id, version, signal)))
  const version = data?.version ?? 0
  const now = draftOf(flag)
  const then = data && draftOf(data)
  const parts = then ? changedParts(now, then) : []
  const roll = async () => {
    setBusy(true)
    const page = here()
    try {
      const changed = await api.post('/api/projects/{project_id}/feature_flags/{id}/rollback', { path, body: { version } })
      page.say(`${changed.key} is as it was at version ${version}.`)
      onClose()
      onChanged(changed)
    } catch (e) {
      setBusy(false)
      page.sayError(e)
    }
  }
  return (
    <Dialog title={data ? `Back to version ${version}?` : 'Back to this version?'} onClose={onClose} wide>
      {error && <Problem error={error} />}
      <div class="review">
        {then && parts.length === 0 && <p class="muted">The flag is as it was at version {version}.</p>}
        {then && parts.map((p) => <section key={p}><h3>{partWords[p]}</h3><Difference before={lines(now, p)} after={lines(then, p)} /></section>)}
      </div>
      <footer>
        <button type="button" class="button" onClick={onClose}>Cancel</button>
        <button type="button" class="button primary" disabled={busy || parts.length === 0} onClick={() => { void roll() }}>Roll back</button>
      </footer>
    </Dialog>
  )
}
