// Keys of a project: those of clients, which are no secret; secret keys for servers that
// read flags; and the secret token.
import { useState } from 'preact/hooks'
import { api } from '../../api/client'
import type { Schemas } from '../../api/types'
import { loadAccount } from '../../app/begin'
import { useData } from '../../app/load'
import { makeSecret, type Secret } from '../../app/secrets'
import { CopyButton, Empty, Field, Problem, Skeleton, Tag, Time } from '../../ui/basics'
import { confirm, Dialog } from '../../ui/dialog'
import { Icon } from '../../ui/icon'
import { attempt, endOf, Ends, isAdmin, Line, Part, Refused, useSubmit } from './parts'

type SecretScope = Schemas['SecretScope']
const secretScopes: Record<SecretScope, string> = { 'feature_flag:read': 'Read definitions and remote configurations of flags', 'endpoint:read': 'Read endpoints' }

export default function Keys({ project }: { project: string }) {
  return (
    <>
      <ProjectKeys project={project} />
      <SecretKeys project={project} />
      <Token project={project} />
    </>
  )
}

function ProjectKeys({ project }: { project: string }) {
  const path = { project_id: project }
  const [adding, setAdding] = useState(false)
  const { data, error, reload } = useData(`settings/${project}/keys`, (signal) => api.get('/api/projects/{project_id}/keys', { path, query: { limit: 1000 }, signal }))
  const keys = data?.results ?? []
  const good = keys.filter((k) => !k.revoked_at)
  const revoke = async (k: Schemas['ProjectKey']) => {
    const last = good.length === 1
    const body = (
      <>
        <p>Clients with this key are refused at once. It never works again.</p>
        {last && <p>It is the only active key: no client is served until there is another.</p>}
      </>
    )
    const yes = await confirm({ title: `Revoke ${k.label}?`, body, action: 'Revoke', danger: true, typed: k.label })
    if (yes && await attempt(() => api.delete('/api/projects/{project_id}/keys/{id}', { path: { ...path, id: k.id } }), `${k.label} is revoked.`)) { reload(); void loadAccount() }
  }
  return (
    <Part title="Project keys" text="Clients send one with events and when they ask for flags. They are no secrets. A second one lets an old client be cut off alone."
      action={isAdmin() && <button type="button" class="button" onClick={() => setAdding(true)}><Icon name="plus" /> Add a key</button>}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton rows={2} />}
      {data && (
        <div class="list" role="list">
          {keys.map((k) => (
            <Line key={k.id} gone={Boolean(k.revoked_at)} what={<>{k.label || 'No label'} <span class="mono muted">{k.key}</span></>}
              about={k.revoked_at ? <>revoked <Time at={k.revoked_at} /></> : <>created <Time at={k.created_at} />{k.created_by && ` by ${k.created_by.first_name || k.created_by.email}`}</>}>
              {!k.revoked_at && <><CopyButton text={k.key} />{isAdmin() && <button type="button" class="button small danger-quiet" aria-label={`Revoke ${k.label}`} onClick={() => { void revoke(k) }}>Revoke</button>}</>}
            </Line>
          ))}
        </div>
      )}
      {adding && <AddKey project={project} onClose={() => setAdding(false)} onDone={() => { setAdding(false); reload(); void loadAccount() }} />}
    </Part>
  )
}

function AddKey({ project, onClose, onDone }: { project: string; onClose: () => void; onDone: () => void }) {
  const [label, setLabel] = useState('')
  const [key, setKey] = useState('')
  const { submit, busy, error, at } = useSubmit(async () => {
    await api.post('/api/projects/{project_id}/keys', { path: { project_id: project }, body: { label, ...(key && { key }) } })
    onDone()
  })
  return (
    <Dialog title="Add a project key" onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field id="key-label" label="Label" error={at('label')}><input id="key-label" required maxLength={200} placeholder="iOS app" value={label} onInput={(e) => setLabel(e.currentTarget.value)} /></Field>
        <Field id="key-value" label="Key" error={at('key')} hint="Leave it empty for a new one. Enter one that clients have already.">
          <input id="key-value" class="mono" maxLength={64} value={key} onInput={(e) => setKey(e.currentTarget.value.trim())} />
        </Field>
        <Refused error={error} fields={['label', 'key']} />
        <footer><button type="button" class="button" onClick={onClose}>Cancel</button><button type="submit" class="button primary" disabled={busy}>Add the key</button></footer>
      </form>
    </Dialog>
  )
}

function secretOf(k: Schemas['SecretKey']): Secret { return { title: `The secret of ${k.label}`, text: 'Copy it now: it is not shown again.', value: k.value ?? '' } }

function SecretKeys({ project }: { project: string }) {
  const path = { project_id: project }
  const [making, setMaking] = useState(false)
  const { data, error, reload } = useData(`settings/${project}/secret-keys`, (signal) => api.get('/api/projects/{project_id}/project_secret_api_keys', { path, query: { limit: 100 }, signal }))
  const keys = data?.results ?? []
  const roll = async (k: Schemas['SecretKey']) => {
    if (await confirm({ title: `Replace the secret of ${k.label}?`, body: <p>Servers with the present secret are refused at once, until they have the new one.</p>, action: 'Replace', danger: true })) {
      if (await attempt(() => makeSecret(() => api.post('/api/projects/{project_id}/project_secret_api_keys/{id}/roll', { path: { ...path, id: k.id } }), secretOf), '')) reload()
    }
  }
  const revoke = async (k: Schemas['SecretKey']) => {
    if (await confirm({ title: `Delete ${k.label}?`, body: <p>Servers with this key are refused at once. It never works again.</p>, action: 'Delete', danger: true, typed: k.label }) &&
      await attempt(() => api.delete('/api/projects/{project_id}/project_secret_api_keys/{id}', { path: { ...path, id: k.id } }), `${k.label} is deleted.`)) reload()
  }
  return (
    <Part title="Secret keys" text="For servers that read the definitions of flags to decide by themselves. They must not reach browsers and apps."
      action={isAdmin() && <button type="button" class="button" onClick={() => setMaking(true)}><Icon name="plus" /> New secret key</button>}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton rows={1} />}
      {data && (
        <div class="list" role={keys.length ? 'list' : undefined}>
          {keys.length === 0 && <Empty title="No secret key yet"><p>{isAdmin() ? 'Create one for each server, so that each can be cut off alone.' : 'Admins create them.'}</p></Empty>}
          {keys.map((k) => (
            <Line key={k.id} what={<>{k.label} <span class="mono muted">{k.mask_value}</span>{k.scopes.map((s) => <Tag key={s}>{s}</Tag>)}</>}
              about={<SecretTimes of={k} />}>
              {isAdmin() && <button type="button" class="button small" aria-label={`Replace the secret of ${k.label}`} onClick={() => { void roll(k) }}>Replace</button>}
              {isAdmin() && <button type="button" class="button small danger-quiet" aria-label={`Delete ${k.label}`} onClick={() => { void revoke(k) }}>Delete</button>}
            </Line>
          ))}
        </div>
      )}
      {making && <MakeSecretKey project={project} onClose={() => setMaking(false)} onDone={() => { setMaking(false); reload() }} />}
    </Part>
  )
}

function SecretTimes({ of: k }: { of: Schemas['SecretKey'] }) {
  return (
    <>
      created <Time at={k.created_at} />{k.last_rolled_at && <>, replaced <Time at={k.last_rolled_at} /></>},
      {' '}used <Time at={k.last_used_at} />{k.expires_at && <>, ends <Time at={k.expires_at} /></>}
    </>
  )
}

function MakeSecretKey({ project, onClose, onDone }: { project: string; onClose: () => void; onDone: () => void }) {
  const [label, setLabel] = useState('')
  const [scopes, setScopes] = useState<SecretScope[]>(['feature_flag:read'])
  const [end, setEnd] = useState('')
  const { submit, busy, error, at } = useSubmit(async () => {
    await makeSecret(() => api.post('/api/projects/{project_id}/project_secret_api_keys', { path: { project_id: project }, body: { label, scopes, ...endOf(end) } }), secretOf)
    onDone()
  })
  return (
    <Dialog title="New secret key" onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field id="secret-label" label="Label" error={at('label')}><input id="secret-label" required maxLength={200} placeholder="Checkout service" value={label} onInput={(e) => setLabel(e.currentTarget.value)} /></Field>
        <div class="field">
          <span class="label">It may</span>
          {(Object.keys(secretScopes) as SecretScope[]).map((s) => (
            <label key={s} class="check">
              <input type="checkbox" checked={scopes.includes(s)} onChange={(e) => setScopes(e.currentTarget.checked ? [...scopes, s] : scopes.filter((o) => o !== s))} /> {secretScopes[s]}
            </label>
          ))}
        </div>
        <Ends id="secret-end" value={end} onChange={setEnd} />
        <Refused error={error} fields={['label']} />
        <footer><button type="button" class="button" onClick={onClose}>Cancel</button><button type="submit" class="button primary" disabled={busy || scopes.length === 0}>Create the key</button></footer>
      </form>
    </Dialog>
  )
}

// Token is the older kind of secret: one for a project, with a backup while servers change over.
function Token({ project }: { project: string }) {
  const path = { project_id: project }
  const { data, error, reload } = useData(`settings/${project}/project`, (signal) => api.get('/api/projects/{project_id}', { path, signal }))
  const rotate = async () => {
    const former = data?.secret_api_token_backup
    const question = data?.secret_api_token
      ? {
          title: 'Replace the secret token?', action: 'Replace', danger: Boolean(former),
          body: former
            ? <p>The present one stays active as the backup. The former backup, <span class="mono">{former}</span>, is refused at once.</p>
            : <p>The present one stays active as the backup until you revoke it.</p>,
        }
      : { title: 'Create a secret token?', action: 'Create it', body: <p>Servers read all flags of the project with it.</p> }
    if (!await confirm(question)) return
    await attempt(async () => {
      await makeSecret(() => api.patch('/api/projects/{project_id}/rotate_secret_token', { path }), (p) => ({ title: 'The secret token', text: 'Copy it now: it is not shown again.', value: p.secret_api_token ?? '' }))
      reload()
    }, '')
  }
  const drop = async () => {
    if (await confirm({ title: 'Revoke the backup?', body: <p>Servers with <span class="mono">{data?.secret_api_token_backup}</span> are refused at once.</p>, action: 'Revoke', danger: true }) &&
      await attempt(() => api.patch('/api/projects/{project_id}/delete_secret_token_backup', { path }), 'The backup is revoked.')) reload()
  }
  return (
    <Part title="Secret token" text="One secret for the whole project, for clients that know no secret keys. Replacing it keeps the former one as a backup, so that servers can change over."
      action={isAdmin() && data && <button type="button" class="button" onClick={() => { void rotate() }}>{data.secret_api_token ? 'Replace the token' : 'Create a token'}</button>}>
      {error && !data && <Problem error={error} retry={reload} />}
      {data && (data.secret_api_token || data.secret_api_token_backup) && (
        <div class="list" role="list">
          {data.secret_api_token && <Line what={<>Token <span class="mono muted">{data.secret_api_token}</span></>} />}
          {data.secret_api_token_backup && (
            <Line what={<>Backup <span class="mono muted">{data.secret_api_token_backup}</span></>}>
              {isAdmin() && <button type="button" class="button small danger-quiet" onClick={() => { void drop() }}>Revoke the backup</button>}
            </Line>
          )}
        </div>
      )}
    </Part>
  )
}
