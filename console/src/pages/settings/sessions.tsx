// Sessions of browsers: one's own, and those of all members for admins.
import { api, queryOf } from '../../api/client'
import type { Schemas } from '../../api/types'
import { useData } from '../../app/load'
import { useView } from '../../app/place'
import { Empty, Problem, Skeleton, Tag, Time } from '../../ui/basics'
import { confirm } from '../../ui/dialog'
import { pageSize, Pager } from '../../ui/paging'
import { agentWords } from './agents'
import { attempt, Line, Part } from './parts'

type Session = Schemas['Session']
const ways: Record<Session['method'], string> = { password: 'with a password', link: 'by a link', reset: 'by a new password', invitation: 'by an invitation', oidc: 'with a provider' }

function Row({ session: s, onEnd }: { session: Session; onEnd: () => void }) {
  const who = s.user ? s.user.first_name || s.user.email : undefined
  return (
    <Line what={<>{who ?? agentWords(s.user_agent)}{s.current && <Tag tone="accent">this one</Tag>}</>}
      about={<>{who && `${s.user?.email}, ${agentWords(s.user_agent)}, `}{s.client}, signed in {ways[s.method]} <Time at={s.created_at} />, seen <Time at={s.last_seen_at} />, ends <Time at={s.expires_at} /></>}>
      {!s.current && <button type="button" class="button small danger-quiet" aria-label={`End the session of ${who ?? agentWords(s.user_agent)}`} onClick={onEnd}>End</button>}
    </Line>
  )
}

const ask = (who: string) => confirm({ title: 'End the session?', body: <p>{who} must sign in again in that browser.</p>, action: 'End it', danger: true })

export function MySessions() {
  const { data, error, reload } = useData('settings/my-sessions', (signal) => api.get('/api/users/@me/sessions', { query: { limit: 1000 }, signal }))
  const sessions = data?.results ?? []
  const others = sessions.filter((s) => !s.current)
  const end = async (s: Session) => {
    if (await ask('You') && await attempt(() => api.delete('/api/users/@me/sessions/{session_id}', { path: { session_id: s.id } }), 'The session has ended.')) reload()
  }
  const endOthers = async () => {
    if (await confirm({ title: 'End all other sessions?', body: <p>You must sign in again in all other browsers. Personal keys stay.</p>, action: 'End them', danger: true }) &&
      await attempt(() => api.delete('/api/users/@me/sessions'), 'The other sessions have ended.')) reload()
  }
  return (
    <Part title="My sessions" text="Browsers in which you are signed in." action={others.length > 0 && <button type="button" class="button danger-quiet" onClick={() => { void endOthers() }}>End all others</button>}>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton rows={2} />}
      {data && <div class="list" role={sessions.length ? 'list' : undefined}>{sessions.length === 0 && <Empty title="No session"><p>You work with a personal key.</p></Empty>}{sessions.map((s) => <Row key={s.id} session={s} onEnd={() => { void end(s) }} />)}</div>}
    </Part>
  )
}

export function AllSessions() {
  const path = { organization_id: '@current' }
  const { query, path: url, route } = useView()
  const page = Math.max(1, Number(query.page) || 1)
  const { data, error, reload } = useData(`settings/sessions/${page}`, (signal) => api.get('/api/organizations/{organization_id}/sessions', { path, query: { limit: pageSize, offset: (page - 1) * pageSize }, signal }))
  const sessions = data?.results ?? []
  const end = async (s: Session) => {
    if (await ask(s.user?.first_name || s.user?.email || 'The user') && await attempt(() => api.delete('/api/organizations/{organization_id}/sessions/{session_id}', { path: { ...path, session_id: s.id } }), 'The session has ended.')) reload()
  }
  return (
    <Part title="Sessions" text="Browsers in which members are signed in.">
      {error && <Problem error={error} />}
      {!data && !error && <Skeleton rows={3} />}
      {data && !error && <div class="list" role={sessions.length ? 'list' : undefined}>{sessions.length === 0 && <Empty title="No sessions"><p>Only personal keys are in use.</p></Empty>}{sessions.map((s) => <Row key={s.id} session={s} onEnd={() => { void end(s) }} />)}</div>}
      {data && !error && <Pager page={page} count={data.count} go={(n) => route(url + queryOf({ page: n === 1 ? '' : n }), true)} />}
    </Part>
  )
}
