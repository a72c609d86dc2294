// The values of flags for a person, a page at a time. A project can have thousands of flags, so
// the server is asked for the traces of one page of them. What is searched is in the URL.
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { api, queryOf } from '../../api/client'
import type { Explanation } from '../../api/types'
import { useData, useDebounced } from '../../app/load'
import { useView } from '../../app/place'
import { Empty, Problem, Skeleton, Tag } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { Pager, pageSize } from '../../ui/paging'
import { plural } from '../../ui/time'
import { isEmpty, matches, readValues, valueNames, type Asked } from './values'

// before is the explanation without assumed properties, if there are some.
export interface Shown { flag: Explanation; before: Explanation | undefined }

// round asks again when it changes.
// reasonOf says why a flag has its value.
export function reasonOf(e: Explanation): string { return (e.reason?.description ?? e.failure ?? '').replace(/condition set/i, (words) => words.slice(0, 'condition'.length)) }

interface Props { project: string; asked: Asked; round?: number; none: ComponentChildren; children: (shown: Shown[]) => ComponentChildren }

// useExplained explains flags for whom asked names.
function useExplained(project: string, { id, groups, properties, groupProperties }: Asked, keys: string[] | undefined) {
  const path = { project_id: project }
  const about = JSON.stringify([id, groups, properties, groupProperties])
  return useData(id && keys?.length ? `why/${project}/${about}/${keys.join()}` : '', (signal) => api.post('/api/projects/{project_id}/feature_flags/explain', { path, body: { distinct_id: id, groups, person_properties: properties, group_properties: groupProperties, flag_keys_to_evaluate: keys ?? [] }, signal }))
}

export function ExplainedFlags({ project, asked, round = 0, none, children }: Props) {
  const { query, path, route } = useView()
  const wanted = query.value ?? ''
  const search = query.search ?? query.flag ?? ''
  const [find, setFind] = useState(search)
  const found = useDebounced(find)
  const page = Math.max(1, Number(query.page) || 1)
  const set = (changes: Record<string, string>, replace = false) => route(path + queryOf({ ...query, page: '', ...changes }), replace)
  useEffect(() => { if (found !== search) set({ search: found, flag: '' }, true) }, [found])

  const ask = { search, order: 'key', limit: pageSize, offset: (page - 1) * pageSize }
  const list = useData(wanted ? '' : `flags/${project}/why${queryOf(ask)}`, (signal) => api.get('/api/projects/{project_id}/feature_flags', { path: { project_id: project }, query: ask, signal }))
  const values = useData(wanted ? `why/${project}/${JSON.stringify(asked)}/values` : '', (signal) => readValues(project, asked, signal))
  const matching = wanted ? values.data?.filter((v) => v.key.toLowerCase().includes(search.toLowerCase()) && matches(v.value, wanted)) : undefined
  const count = wanted ? matching?.length : list.data?.count
  const keys = wanted ? matching?.slice((page - 1) * pageSize, page * pageSize).map((v) => v.key) : list.data?.results?.map((f) => f.key)
  const traces = useExplained(project, asked, keys)
  const assumed = !isEmpty(asked)
  const plain = useExplained(project, { ...asked, properties: {}, groupProperties: {} }, assumed ? keys : undefined)
  const source = wanted ? values : list
  const reload = () => { source.reload(); traces.reload() }
  useEffect(() => { if (round > 0) reload() }, [round])
  const error = traces.error ?? source.error
  const loading = source.loading || Boolean(keys?.length) && traces.loading
  const shown = count === 0 ? [] : Object.values(traces.data?.flags ?? {}).sort((a, b) => (a.key < b.key ? -1 : 1)).map((flag) => ({ flag, before: assumed ? plain.data?.flags[flag.key] : undefined }))
  const ready = count === 0 || shown.length > 0
  const changed = shown.filter((s) => wasOf(s) !== null).length
  return (
    <>
      <div class="filters" role="search">
        <div class="search"><Icon name="search" /><input type="search" aria-label="Search flags" placeholder="Search by key" value={find} onInput={(e) => setFind(e.currentTarget.value)} /></div>
        <select aria-label="Flags with the value" value={wanted} onChange={(e) => set({ value: e.currentTarget.value })}>
          {Object.entries(valueNames(values.data ?? [], wanted)).map(([name, words]) => <option key={name} value={name}>{words}</option>)}
        </select>
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!ready && !error && <Skeleton rows={4} />}
      {ready && (
        <div class={`explained ${loading ? 'stale' : ''}`}>
          {count === 0 && (search || wanted
            ? <Empty title="No flags match"><p><button type="button" class="link" onClick={() => { setFind(''); set({ search: '', flag: '', value: '' }, true) }}>Show all flags</button></p></Empty>
            : none)}
          {assumed && count !== 0 && plain.data && <p class="muted small" role="status">{changed === 0 ? 'No value on this page changes.' : `${plural(changed, 'value')} on this page ${changed === 1 ? 'changes' : 'change'}.`}</p>}
          {shown.length > 0 && children(shown)}
          {count !== undefined && count > 0 && count <= pageSize && <p class="muted small">{plural(count, 'flag')}</p>}
          <Pager page={page} count={count ?? 0} go={(to) => set({ page: String(to) })} />
        </div>
      )}
    </>
  )
}

type Tone = 'ok' | 'warn' | 'bad' | 'accent'

function valueOf(e: Explanation): { words: string; tone?: Tone } {
  if (!e.computed) return { words: 'not computed', tone: 'bad' }
  if ((e.gates ?? []).some((g) => g.name === 'active' && g.result !== 'passed')) return { words: 'off' }
  if (!e.served) return { words: 'not served', tone: 'warn' }
  return e.value === true ? { words: 'on', tone: 'ok' } : e.value === false || e.value === null ? { words: 'off' } : { words: String(e.value), tone: 'accent' }
}

// wasOf returns the value without the assumed properties; null if it is the same.
function wasOf({ flag, before }: Shown): string | null {
  const was = before && valueOf(before).words
  return was === undefined || was === valueOf(flag).words ? null : was
}

export function Value({ flag, before }: { flag: Explanation; before?: Explanation | undefined }) {
  const { words, tone } = valueOf(flag)
  const was = wasOf({ flag, before })
  return <span class="row value-tags"><Tag {...(tone && { tone })}>{words}</Tag>{was !== null && <Tag tone="warn">was {was}</Tag>}</span>
}
