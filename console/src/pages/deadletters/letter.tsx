// One dead letter: why it failed, its event to correct, and the way back.
import { useLayoutEffect, useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { api, queryOf } from '../../api/client'
import { wasRounded } from '../../api/json'
import type { DeadLetter } from '../../api/types'
import { useGuard } from '../../app/guard'
import { forget, remember, useData, useRepeat } from '../../app/load'
import { usePlace } from '../../app/place'
import { here, type Here } from '../../app/late'
import { CopyButton, Empty, Problem, Skeleton, Tag, Time, useTitle } from '../../ui/basics'
import { confirm } from '../../ui/dialog'
import { Icon } from '../../ui/icon'
import { Journey } from '../../ui/journey'
import { editText, readEdit, replayState, sourceWords } from './words'
import '../persons/persons.css'
import './deadletters.css'

export default function Letter() {
  const { params } = useRoute()
  const { project, to } = usePlace()
  const id = params.id ?? ''
  const key = `dead/${project}/one/${id}`
  const { data, error, loading, reload } = useData(key, (signal) => api.get('/api/projects/{project_id}/dead_letters/{id}', { path: { project_id: project, id }, signal }))
  const letter = String(data?.id) === id ? data : undefined
  const waiting = letter?.replay_waiting ?? false
  useRepeat(waiting && !error, 1500, { loading, reload }) // a replay goes on after the answer
  return (
    <>
      <a class="back" href={to('/dead-letters')}><Icon name="back" /> Dead letters</a>
      {error?.status === 404
        ? <Empty alone title="There is no such dead letter"><p>It was replayed with success, deleted, or removed by retention. See <a href={to('/dead-letters')}>all dead letters</a>.</p></Empty>
        : letter ? <Page key={letter.id} letter={letter} onChanged={(d) => { forget(`dead/${project}`); remember(key, d); reload() }} reload={reload} /> : error ? <Problem error={error} retry={reload} /> : <Skeleton rows={5} />}
    </>
  )
}

function Page({ letter: d, onChanged, reload }: { letter: DeadLetter; onChanged: (d: DeadLetter) => void; reload: () => void }) {
  const { project, go } = usePlace()
  const path = { project_id: project, id: d.id }
  const payload = d.payload as Record<string, unknown>
  const own = editText(payload)
  const [text, setText] = useState(own)
  const [base, setBase] = useState(own)
  const [busy, setBusy] = useState('')
  const edit = readEdit(payload, text)
  const changed = text !== base
  const rounded = wasRounded(d)
  useTitle(`${d.event} is a dead letter`)
  useGuard(changed)
  useLayoutEffect(() => { if (own !== base && !changed) { setBase(own); setText(own) } }, [own])

  const save = async (page: Here): Promise<boolean> => {
    if (!('changes' in edit)) return false
    if (Object.keys(edit.changes).length === 0) { setText(own); return true }
    try {
      const saved = await api.patch('/api/projects/{project_id}/dead_letters/{id}', { path, body: edit.changes })
      const now = editText(saved.payload as Record<string, unknown>)
      setBase(now)
      setText(now)
      onChanged(saved)
      return true
    } catch (e) { page.sayError(e); return false }
  }
  const run = async (name: string, what: (page: Here) => Promise<void>) => {
    setBusy(name)
    const page = here()
    try { await what(page) } catch (e) { page.sayError(e) } finally { setBusy('') }
  }
  const leave = (page: Here) => page.leave(() => go('/dead-letters')) // the letter is gone
  const replay = () => run('replay', async (page) => {
    if (changed && !await save(page)) return
    const answer = await api.post('/api/projects/{project_id}/dead_letters/{id}/replay', { path })
    forget(`dead/${project}`)
    if (answer.replayed) {
      page.say(`${d.event} is replayed.`)
      leave(page)
    } else {
      if (answer.failed) page.sayError(new Error(`It failed again: ${answer.failures[0]?.error ?? 'no reason given'}`))
      else page.say('The replay is requested. The server goes on with it.')
      reload()
    }
  })
  const remove = () => run('delete', async (page) => {
    const yes = await confirm({ title: 'Delete this dead letter?', body: <p>{d.source === 'worker' ? 'The event was never stored: it is gone for good.' : `The event never arrives at ${sourceWords(d.source)}.`}</p>, action: 'Delete', danger: true, typed: 'delete' })
    if (!yes) return
    await api.delete('/api/projects/{project_id}/dead_letters/{id}', { path })
    forget(`dead/${project}`)
    page.say('The dead letter is deleted.')
    leave(page)
  })
  return (
    <>
      <div class="page-head letter-head">
        <div><h1 class="mono">{d.event || 'no event'} <Tag tone="bad">dead letter</Tag></h1><p>failed in <b>{sourceWords(d.source)}</b> <Time at={d.failed_at} />{d.attempts > 1 && `, ${d.attempts} times`}</p></div>
        <div class="row">
          <button type="button" class="button danger-quiet" disabled={busy !== ''} onClick={() => { void remove() }}><Icon name="trash" /> Delete</button>
          <button type="button" class="button" disabled={!changed || busy !== '' || !('changes' in edit)} onClick={() => { void run('save', async (page) => { if (await save(page)) page.say('The event is saved.') }) }}>Save</button>
          <button type="button" class="button primary" disabled={busy !== '' || d.replay_waiting || !('changes' in edit)} onClick={() => { void replay() }}>{busy === 'replay' || d.replay_waiting ? 'Replaying…' : changed ? 'Save and replay' : 'Replay'}</button>
        </div>
      </div>
      <Reason letter={d} />
      <div class="profile">
        <section class="card letter-event" aria-label="The event">
          <div class="row"><h2><label for="letter-event">Event</label></h2><span class="push" /><CopyButton text={text} /></div>
          <textarea id="letter-event" class="mono" rows={Math.min(30, text.split('\n').length + 1)} spellcheck={false} autocomplete="off" readOnly={rounded}
            aria-invalid={'error' in edit} aria-describedby="letter-hint" value={text} onInput={(e) => setText(e.currentTarget.value)} />
          {'error' in edit
            ? <p id="letter-hint" class="field-error" role="alert">{edit.error}</p>
            : <p id="letter-hint" class="hint">{rounded ? readOnlyHint : editHint}</p>}
          {changed && <button type="button" class="link small" onClick={() => setText(base)}>Undo the changes</button>}
        </section>
        <Facts letter={d} />
      </div>
    </>
  )
}

const editHint = 'Correct what the error names, then save and replay. The event keeps its id, so it is stored once.'
const readOnlyHint = 'A number here has more digits than a browser can hold, so it can be changed only from a terminal: guidon deadletter edit.'

function Reason({ letter: d }: { letter: DeadLetter }) {
  const state = replayState(d)
  return (
    <div class="problem letter-why">
      <Icon name="alert" />
      <div>
        <p><b class="mono">{d.code}</b> {d.message}</p>
        {state === 'failed' && <p>The last replay failed: {d.replay_error}</p>}
        {state === 'waiting' && <p>A replay was requested <Time at={d.replay_requested_at} /> and goes on.</p>}
      </div>
    </div>
  )
}

function Facts({ letter: d }: { letter: DeadLetter }) {
  const { project, to } = usePlace()
  return (
    <aside class="card letter-facts">
      <dl>
        <dt>Distinct id</dt><dd><a class="mono" href={to('/persons') + queryOf({ search: d.distinct_id })}>{d.distinct_id}</a></dd>
        <dt>Event id</dt><dd class="mono">{d.event_uuid}</dd>
        <dt>Kind of failure</dt><dd>{d.class}</dd>
        <dt>Received</dt><dd><Time at={d.received_at} /></dd>
        <dt>Last failed</dt><dd><Time at={d.failed_at} />{d.attempts > 1 && `, ${d.attempts} times in all`}</dd>
        <dt>First failed</dt><dd><Time at={d.created_at} /></dd>
        <dt>Where it is</dt><dd><Journey project={project} uuid={d.event_uuid} of={d.id} /></dd>
      </dl>
    </aside>
  )
}
