// Personal keys: made, replaced and revoked by their user.
import { useState } from 'preact/hooks'
import { api } from '../../api/client'
import type { Schemas } from '../../api/types'
import { useData } from '../../app/load'
import { makeSecret, type Secret } from '../../app/secrets'
import { personalKey, projects, usePersonalKey } from '../../app/session'
import { Code, Empty, Field, Problem, Skeleton, Tag, Time } from '../../ui/basics'
import { confirm, Dialog } from '../../ui/dialog'
import { Icon } from '../../ui/icon'
import { attempt, endOf, Ends, Line, Part, Refused, useSubmit } from './parts'
import { everything, objects, scopesOf, scopeWords, type Right, type Rights } from './scopes'

type Key = Schemas['PersonalKey']

export default function MyKeys({ project }: { project: string }) {
  const [making, setMaking] = useState(false)
  const { data, error, reload } = useData('settings/my-keys', (signal) => api.get('/api/personal_api_keys', { query: { limit: 1000 }, signal }))
  const keys = data?.results ?? []
  const used = (k: Key) => personalKey() !== '' && k.mask_value.slice(-4) === personalKey().slice(-4)
  const remove = (id: number) => api.delete('/api/personal_api_keys/{id}', { path: { id } })
  const revoke = async (k: Key) => {
    if (await confirm({ title: `Revoke ${k.label}?`, body: <p>What works with it is refused at once. It never works again.{used(k) && ' You work with it in this tab: you are signed out.'}</p>, action: 'Revoke', danger: true, typed: k.label }) &&
      await attempt(() => remove(k.id), `${k.label} is revoked.`)) reload()
  }
  const replace = async (k: Key) => {
    if (!await confirm({ title: `Replace ${k.label}?`, body: <p>You get a new key with the same rights. The present one is refused at once.</p>, action: 'Replace', danger: true })) return
    await attempt(async () => {
      const now = used(k)
      const next = await makeSecret(() => api.post('/api/personal_api_keys', { body: { label: k.label, scopes: k.scopes, project_ids: k.project_ids, expires_at: k.expires_at } }), secretOf)
      if (now && next.value) usePersonalKey(next.value)
      await remove(k.id).finally(reload)
    }, '')
  }
  return (
    <Part title="Personal keys" text="Scripts and tools act as you with them, within the rights of the key."
      action={<button type="button" class="button primary" onClick={() => setMaking(true)}><Icon name="plus" /> New key</button>}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton rows={2} />}
      {data && (
        <div class="list" role={keys.length ? 'list' : undefined}>
          {keys.length === 0 && <Empty title="No personal key yet"><p>Create one to work with the API from a terminal, here in <code>PERSONAL_KEY</code>:</p><Code label="List the flags" text={`curl ${location.origin}/api/projects/${project}/feature_flags/ -H "Authorization: Bearer $PERSONAL_KEY"`} /></Empty>}
          {keys.map((k) => (
            <Line key={k.id} what={<>{k.label} <span class="mono muted">{k.mask_value}</span>{used(k) && <Tag tone="accent">in use here</Tag>}</>}
              about={<>may {scopeWords(k.scopes)}{k.project_ids.length > 0 && ` in ${k.project_ids.map((id) => projects.value.find((p) => p.id === id)?.name ?? `project ${id}`).join(', ')}`}<br />created <Time at={k.created_at} />, used {k.last_used_at ? <Time at={k.last_used_at} /> : 'never'}{k.expires_at && <>, ends <Time at={k.expires_at} /></>}</>}>
              <button type="button" class="button small" aria-label={`Replace ${k.label}`} onClick={() => { void replace(k) }}>Replace</button>
              <button type="button" class="button small danger-quiet" aria-label={`Revoke ${k.label}`} onClick={() => { void revoke(k) }}>Revoke</button>
            </Line>
          ))}
        </div>
      )}
      {making && <Make onClose={() => setMaking(false)} onDone={() => { setMaking(false); reload() }} />}
    </Part>
  )
}

function secretOf(k: Key): Secret { return { title: `The key ${k.label}`, text: 'Copy it now: it is not shown again.', value: k.value ?? '' } }

type Choice = 'all' | 'read' | 'some'

function Make({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [label, setLabel] = useState('')
  const [choice, setChoice] = useState<Choice>('some')
  const [rights, setRights] = useState<Rights>({ feature_flag: 'write' })
  const [only, setOnly] = useState<number[]>([])
  const [end, setEnd] = useState('')
  const scopes = choice === 'all' ? ['*'] : scopesOf(choice === 'read' ? everything('read') : rights)
  const { submit, busy, error, at } = useSubmit(async () => {
    await makeSecret(() => api.post('/api/personal_api_keys', { body: { label, scopes, ...(only.length > 0 && { project_ids: only }), ...endOf(end) } }), secretOf)
    onDone()
  })
  return (
    <Dialog title="New personal key" onClose={onClose} wide>
      <form class="stack" onSubmit={submit}>
        <div class="pair">
          <Field id="my-key-label" label="Label" error={at('label')}><input id="my-key-label" required maxLength={200} placeholder="Deploy script" value={label} onInput={(e) => setLabel(e.currentTarget.value)} /></Field>
          <Ends id="my-key-end" value={end} onChange={setEnd} />
        </div>
        <div class="field">
          <span class="label">It may</span>
          <div class="segments" role="group" aria-label="It may">{([['some', 'Only this'], ['read', 'Read everything'], ['all', 'Do all that you may']] as [Choice, string][]).map(([c, words]) => <button key={c} type="button" aria-pressed={choice === c} onClick={() => setChoice(c)}>{words}</button>)}</div>
        </div>
        {choice === 'some' && (
          <div class="rights">
            {Object.entries(objects).map(([o, words]) => (
              <label key={o}>{words}
                <select value={rights[o] ?? ''} onChange={(e) => setRights({ ...rights, [o]: e.currentTarget.value as Right })}><option value="">no</option><option value="read">read</option><option value="write">read and change</option></select>
              </label>
            ))}
          </div>
        )}
        {projects.value.length > 1 && <div class="field"><span class="label">Only in these projects</span><div class="row">{projects.value.map((p) => <label key={p.id} class="check"><input type="checkbox" checked={only.includes(p.id)} onChange={(e) => setOnly(e.currentTarget.checked ? [...only, p.id] : only.filter((id) => id !== p.id))} /> {p.name}</label>)}</div><p class="hint">None: in all, also those made later.</p></div>}
        <Refused error={error} fields={['label']} />
        <footer><button type="button" class="button" onClick={onClose}>Cancel</button><button type="submit" class="button primary" disabled={busy || scopes.length === 0}>Create the key</button></footer>
      </form>
    </Dialog>
  )
}
