// What became of the messages of an action. State and page are in the URL.
import { useLocation } from 'preact-iso'
import { api, queryOf } from '../../api/client'
import type { Action, ChatDelivery } from '../../api/types'
import { useData, useRepeat } from '../../app/load'
import { here } from '../../app/late'
import { Empty, Problem, Skeleton, Tag, Time } from '../../ui/basics'
import { pageSize, Pager } from '../../ui/paging'
import { plural } from '../../ui/time'

const states = { waiting: 'Waiting', delivered: 'Delivered', failed: 'Failed', expired: 'Expired' } as const

export function Deliveries({ project, action }: { project: string; action: Action }) {
  const { query, path, route } = useLocation()
  const page = Math.max(1, Number(query.page) || 1)
  const ask = { state: query.state as keyof typeof states | undefined, limit: pageSize, offset: (page - 1) * pageSize }
  const { data, error, loading, reload } = useData(`actions/${project}/deliveries/${action.id}${queryOf(ask)}`, (signal) => api.get('/api/projects/{project_id}/actions/{id}/deliveries', { path: { project_id: project, id: action.id }, query: ask, signal }))
  const set = (changes: Record<string, string>) => route(path + queryOf({ ...query, page: '', ...changes }), true)
  // Messages that wait, and the first one, appear by themselves.
  const waiting = !action.deleted && !query.state && (data?.results?.some((d) => d.state === 'waiting') || (action.post_to_chat && data?.count === 0))
  useRepeat(Boolean(waiting), 2000, { loading, reload })
  const retry = async (d: ChatDelivery) => {
    const page = here()
    try {
      await api.post('/api/projects/{project_id}/actions/{id}/deliveries/{delivery_id}/retry', { path: { project_id: project, id: action.id, delivery_id: d.id } })
      page.say('The message is sent again.')
      reload()
    } catch (e) { page.sayError(e) }
  }
  const list = data?.results ?? []
  return (
    <section class="stack">
      <div class="row">
        <div class="segments" role="group" aria-label="State">
          <button type="button" aria-pressed={!query.state} onClick={() => set({ state: '' })}>All</button>
          {Object.entries(states).map(([id, label]) => <button key={id} type="button" aria-pressed={query.state === id} onClick={() => set({ state: id })}>{label}</button>)}
        </div>
        <span class="muted push">{data ? plural(data.count, 'message') : ' '}</span>
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton rows={4} />}
      {data && list.length === 0 && (
        <Empty title={query.state ? 'No message is in this state' : 'No message has been posted'}>
          {!query.state && <p>{action.post_to_chat ? 'The next event that matches is posted.' : <>Switch messages on under <a href={`${path}?tab=chat`}>Chat</a>; then each event that matches is posted.</>}</p>}
        </Empty>
      )}
      {list.length > 0 && <div class="list" role="list">{list.map((d) => <Row key={d.id} delivery={d} onRetry={() => { void retry(d) }} />)}</div>}
      {data && <Pager page={page} count={data.count} go={(to) => set({ page: String(to) })} />}
    </section>
  )
}

function Row({ delivery: d, onRetry }: { delivery: ChatDelivery; onRetry: () => void }) {
  const tone = d.state === 'delivered' ? 'ok' : d.state === 'waiting' ? 'accent' : 'bad'
  return (
    <div class="delivery" role="listitem">
      <div><Tag tone={tone}>{states[d.state]}</Tag></div>
      <div class="what">
        <p class="text">{d.text_hidden ? <span class="faint">The text is hidden: you may not read events and persons.</span> : d.text}{d.suppressed > 0 && <span class="muted"> and {d.suppressed} more</span>}</p>
        {d.error && <p class="field-error">{d.error}{d.error_code && <span class="mono"> ({d.error_code})</span>}</p>}
        <p class="muted small">{d.notifier}{d.destination && <> → <span class="mono">{d.destination}</span></>} · {plural(d.attempts, 'attempt')}{d.state === 'waiting' && d.next_at && <>, the next <Time at={d.next_at} /></>}</p>
      </div>
      <div class="muted small when"><Time at={d.settled_at ?? d.created_at} /></div>
      <div class="again">{d.state !== 'delivered' && <button type="button" class="button small" onClick={onRetry}>Send again</button>}</div>
    </div>
  )
}
