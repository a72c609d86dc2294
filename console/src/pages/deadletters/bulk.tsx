// Replaying or deleting many dead letters: first how many and which, then the progress, then the outcome.
import { useEffect, useRef, useState } from 'preact/hooks'
import { api } from '../../api/client'
import { useData } from '../../app/load'
import { Tag } from '../../ui/basics'
import { usePlace } from '../../app/place'
import { Dialog } from '../../ui/dialog'
import { plural } from '../../ui/time'
import { isEmpty, outcome, sourceWords, type Filter, type Replay } from './words'

export interface Work { kind: 'replay' | 'delete'; filter: Filter }

interface Done { text: string; failures: Replay['failures'] }

export function Bulk({ project, work, onClose }: { project: string; work: Work; onClose: (changed: boolean) => void }) {
  const path = { project_id: project }
  const remove = work.kind === 'delete'
  const [typed, setTyped] = useState('')
  const [running, setRunning] = useState(false)
  const [left, setLeft] = useState<number | null>(null)
  const [done, setDone] = useState<Done | null>(null)
  const [error, setError] = useState('')
  const shown = useRef(true)
  useEffect(() => () => { shown.current = false }, [])
  const dry = useData(`dead/${project}/dry/${JSON.stringify(work)}`, (signal) => api.post('/api/projects/{project_id}/dead_letters/replay', { path, body: { ...work.filter, dry_run: true }, signal }))
  const matched = dry.data?.matched ?? 0

  const countWaiting = async () => (await api.get('/api/projects/{project_id}/dead_letters', { path, query: { replay_waiting: true, limit: 1 } })).count
  // wait follows replays that go on after the answer, until none of them waits.
  const wait = async (first: Replay) => {
    for (let waiting = first.waiting; waiting > 0 && shown.current; waiting = await countWaiting()) {
      setLeft(waiting)
      await new Promise((resolve) => setTimeout(resolve, 1000))
    }
  }
  useEffect(() => { // the answer takes up to ten seconds: count meanwhile
    if (!running || remove) return
    const timer = setInterval(() => { countWaiting().then((n) => { if (n > 0 && shown.current) setLeft(n) }, () => undefined) }, 1000)
    return () => clearInterval(timer)
  }, [running])
  const run = async () => {
    setRunning(true)
    setError('')
    try {
      if (remove) {
        const answer = await api.post('/api/projects/{project_id}/dead_letters/delete', { path, body: { ...work.filter, ...(isEmpty(work.filter) && { all: true }) } })
        setDone({ text: `${answer.deleted.toLocaleString('en')} deleted.`, failures: [] })
      } else {
        const answer = await api.post('/api/projects/{project_id}/dead_letters/replay', { path, body: work.filter })
        await wait(answer)
        setDone({ text: answer.waiting ? `All are settled. Those that failed again are still dead letters.` : `${outcome(answer)}.`, failures: answer.failures })
      }
    } catch (e) {
      setError(e instanceof Error ? e.message : String(e))
    } finally {
      setRunning(false)
    }
  }
  const close = () => onClose(done !== null || running)
  const title = remove ? 'Delete dead letters' : 'Replay dead letters'
  if (done) {
    return (
      <Dialog title={title} onClose={close}>
        <div class="dialog-text" role="status">
          <p><b>{done.text}</b></p>
          {done.failures.length > 0 && <Failures project={project} failures={done.failures} />}
        </div>
        <footer><button type="button" class="button primary" onClick={close}>Done</button></footer>
      </Dialog>
    )
  }
  const ready = matched > 0 && !running && (!remove || typed === 'delete')
  return (
    <Dialog title={title} onClose={close}>
      <form onSubmit={(e) => { e.preventDefault(); if (ready) void run() }}>
        <div class="dialog-text bulk-text">
          {dry.error ? <p class="field-error">{dry.error.message}</p> : !dry.data ? <p class="faint">Counting…</p> : (
            <>
              <p><b>{plural(matched, 'dead letter')}</b> {Object.entries(dry.data.sources).map(([s, n]) => <Tag key={s}>{n.toLocaleString('en')} of {sourceWords(s)}</Tag>)}</p>
              <ul class="failures">{dry.data.sample.slice(0, 5).map((d) => <li key={d.id}><span class="mono">{d.event}</span> of {d.distinct_id}</li>)}{matched > 5 && <li class="faint">and {(matched - Math.min(5, dry.data.sample.length)).toLocaleString('en')} more</li>}</ul>
            </>
          )}
          <p>{remove ? 'They are gone for good: what failed in the worker was never stored, what a sink refused never arrives there.' : 'Each goes again to where it failed, oldest first. Those that succeed leave this list; those that fail again stay, with the new error.'}</p>
        </div>
        {remove && (
          <div class="field typed">
            <label for="bulk-typed">Type <b class="mono">delete</b> to confirm</label>
            <input id="bulk-typed" class="mono" value={typed} autocomplete="off" spellcheck={false} disabled={running} onInput={(e) => setTyped(e.currentTarget.value)} />
          </div>
        )}
        {running && !remove && <div class="progress" role="status"><progress aria-label="Replayed" max={matched} value={left === null ? undefined : matched - Math.min(left, matched)} /><span>{left === null ? 'Replaying…' : `${plural(left, 'replay')} under way. They go on if you close this.`}</span></div>}
        {error && <p class="field-error" role="alert">{error}</p>}
        <footer>
          <button type="button" class="button" onClick={close}>{running ? 'Close' : 'Cancel'}</button>
          <button type="submit" class={`button ${remove ? 'danger' : 'primary'}`} disabled={!ready}>{running ? (remove ? 'Deleting…' : 'Replaying…') : `${remove ? 'Delete' : 'Replay'} ${dry.data ? matched.toLocaleString('en') : ''}`}</button>
        </footer>
      </form>
    </Dialog>
  )
}

const shownFailures = 20

// Failures names the events that failed again, with their new errors.
function Failures({ project, failures }: { project: string; failures: Replay['failures'] }) {
  const { to } = usePlace()
  const shown = failures.slice(0, shownFailures)
  const letter = (id: number, signal: AbortSignal) => api.get('/api/projects/{project_id}/dead_letters/{id}', { path: { project_id: project, id }, signal }).catch(() => undefined)
  const { data } = useData(`dead/${project}/failures/${shown.map((f) => f.id).join()}`, async (signal) => new Map((await Promise.all(shown.map((f) => letter(f.id, signal)))).flatMap((d) => (d ? [[d.id, d] as const] : []))))
  return (
    <>
      <ul class="failures">
        {shown.map((f) => {
          const event = data?.get(f.id)
          return <li key={f.id}><a class="mono" href={to(`/dead-letters/${f.id}`)}>{event?.event || `dead letter ${f.id}`}</a>{event && <span class="muted"> of {event.distinct_id}</span>}: {f.error}</li>
        })}
      </ul>
      {failures.length > shownFailures && <p>and {failures.length - shownFailures} more.</p>}
    </>
  )
}
