import { useEffect, useRef } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { api, queryOf } from '../../api/client'
import { useData } from '../../app/load'
import { Empty, Problem, Skeleton } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { clockTime, exactTime } from '../../ui/time'
import { usePoll } from './poll'

const lines = 500
const tones: Record<string, string> = { error: 'bad', fatal: 'bad', panic: 'bad', warn: 'warn', warning: 'warn' }

// Logs shows the last lines of an instance, the newest at the end. What a plugin writes is
// shown as text.
export function Logs({ name }: { name: string }) {
  const { query, path, route } = useLocation()
  const end = useRef<HTMLDivElement>(null)
  const follow = query.follow !== 'no'
  const search = (query.search ?? '').toLowerCase()
  const loaded = useData(`plugins/logs/${name}`, (signal) => api.get('/api/plugins/{name}/logs', { path: { name }, query: { lines }, signal }))
  const { data, error, reload } = loaded
  usePoll(loaded, 2_000, follow)
  const set = (changes: Record<string, string>) => route(path + queryOf({ ...query, ...changes }), true)
  const shown = (data?.results ?? []).filter((l) => (!query.level || tones[l.level] === query.level || (query.level === 'warn' && tones[l.level] === 'bad')) && (!search || `${l.level} ${l.message} ${fieldsText(l.fields)}`.toLowerCase().includes(search)))
  const last = shown[shown.length - 1]
  useEffect(() => {
    const box = end.current
    if (box && follow) box.scrollTop = box.scrollHeight
  }, [last?.at, last?.message, shown.length, follow])
  return (
    <>
      <div class="filters" role="search">
        <div class="search"><Icon name="search" /><input type="search" aria-label="Search the log" placeholder="Search the last lines" value={query.search ?? ''} onInput={(e) => set({ search: e.currentTarget.value })} /></div>
        <select aria-label="Level" value={query.level ?? ''} onChange={(e) => set({ level: e.currentTarget.value })}>
          <option value="">Any level</option><option value="warn">Warnings and errors</option><option value="bad">Errors</option>
        </select>
        <label class="check"><input type="checkbox" checked={follow} onChange={(e) => set({ follow: e.currentTarget.checked ? '' : 'no' })} /> Follow</label>
      </div>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton rows={5} />}
      {data && shown.length === 0 && (data.results.length > 0
        ? <Empty title="No lines match"><p><button type="button" class="link" onClick={() => set({ search: '', level: '' })}>Clear the search</button></p></Empty>
        : <Empty title="Nothing was written yet"><p>What the plugin writes to its log and to standard error is here, the last {lines} lines.</p></Empty>)}
      {shown.length > 0 && (
        <div class="log mono" ref={end} tabIndex={0} role="log" aria-label={`Log of ${name}`}>
          {shown.map((l, i) => (
            <div key={`${l.at}${i}`}>
              <time dateTime={l.at} title={exactTime(new Date(l.at))}>{clockTime(new Date(l.at), Date.now())}</time>
              <span class={`level ${tones[l.level] ?? ''}`}>{l.level}</span>
              <span class="message">{l.message}{l.fields && <span class="faint"> {fieldsText(l.fields)}</span>}</span>
            </div>
          ))}
        </div>
      )}
    </>
  )
}


function fieldsText(fields: Record<string, unknown> | undefined): string {
  return Object.entries(fields ?? {}).map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`).join(' ')
}
