// The pure parts of the page: which charts there are, what is wrong and what helps.
import type { Schemas } from '../../api/types'
import type { ChartSeries, ChartUnit } from '../../ui/chart'
import { linesOf } from '../../ui/chart/nodes'
import { countText, plural } from '../../ui/time'
import { deadLettersPath, refusedWords } from '../plugins/words'

export type Readiness = Schemas['Readiness']
export type Series = Schemas['HealthSeries']
export interface Graph { title: string; unit: ChartUnit; hint: string; lines: Record<string, string>; kind?: 'area' }

export const graphs: Graph[] = [
  { title: 'Events', unit: 'per second', hint: 'Accepted events are on disk.', lines: { events_accepted: 'accepted', events_processed: 'processed', events_refused: 'refused', dead_letters: 'dead letters' } },
  { title: 'Requests', unit: 'per second', hint: 'By what they ask for.', lines: { capture_requests: 'capture', decide_requests: 'flags', management_requests: 'management' } },
  { title: 'Refused and failed', unit: 'per second', hint: '4xx: wrong requests. 5xx: errors of the server.', lines: { responses_4xx: '4xx', responses_5xx: '5xx', requests_refused: 'over a limit' } },
  { title: 'Backlog', unit: 'seconds', hint: 'Age of the oldest event that waits.', lines: { lag_worker: 'processing', lag_imports: 'imports', lag_sinks: 'slowest sink', lag_clickhouse: 'ClickHouse' } },
  { title: 'Capture latency', unit: 'seconds', hint: 'p99: 99 of 100 requests take less.', lines: { capture_p50: 'p50', capture_p95: 'p95', capture_p99: 'p99' } },
  { title: 'Flag latency', unit: 'seconds', hint: 'p99: 99 of 100 requests take less.', lines: { decide_p50: 'p50', decide_p95: 'p95', decide_p99: 'p99' } },
  { title: 'Database', unit: 'seconds', hint: '99 of 100 take less.', lines: { database_query_p99: 'statement', database_commit_p99: 'commit', journal_append_p99: 'append to the journal' } },
  { title: 'Disk', unit: 'bytes', hint: 'What the server stores.', lines: { database_bytes: 'database', journal_bytes: 'journal' } },
  { title: 'CPU', unit: 'percent', hint: '100 % is one core.', lines: { cpu: 'CPU' }, kind: 'area' },
  { title: 'Memory', unit: 'bytes', hint: 'Of the process, and the part that Go uses.', lines: { memory: 'process', heap: 'heap' } },
]

// seriesOf returns the lines of a graph. Lines without any value are left out, such as the
// file of SQLite on Postgres.
export function seriesOf(graph: Graph, answer: Series): ChartSeries[] { return linesOf(graph.lines, answer.from, answer.step, answer.series) }

// newest returns the last known value of a series.
export function newest(answer: Series | undefined, name: string): number | null {
  return answer?.series.find((s) => s.name === name)?.values.findLast((v) => v !== null) ?? null
}

// hourly are the series that troubles counts over the last hour. Longer steps than the
// server's own are means of what is known, so a count needs its own.
export const hourly = 'events_refused,events_accepted,events_over_quota,events_wrong_key'

// lastHour returns how often something was counted in the last hour of the series. The last
// value of a series can be one that is not known yet.
export function lastHour(answer: Series | undefined, name: string): number {
  if (!answer) return 0
  const values = answer.series.find((s) => s.name === name)?.values ?? []
  const count = Math.max(1, Math.round(3600 / answer.step))
  return Math.round(values.slice(-count).reduce((all: number, v) => all + (v ?? 0), 0) * answer.step)
}

// refusals says how many events were refused, and what helps, once they are a hundredth of
// all: a server that the internet reaches gets some wrong requests every day.
function refusals(hour: Series | undefined): Trouble | null {
  const all = lastHour(hour, 'events_refused')
  if (all === 0 || all < 0.01 * (all + lastHour(hour, 'events_accepted'))) return null
  const quota = lastHour(hour, 'events_over_quota')
  const key = lastHour(hour, 'events_wrong_key')
  const causes: [number, string, string][] = [
    [quota, 'over a quota', 'Raise the quota in the config, or wait for its next period.'],
    [key, 'without a valid project key', 'Compare the key in the client with that of the project.'],
    [Math.max(0, all - quota - key), 'for their body or a limit', 'guidon_ingestion_events_refused_total in /metrics has the reasons, and the answer to the client.'],
  ]
  return {
    tone: 'warn', what: all === 1 ? '1 event was refused in the last hour.' : `${countText(all)} events were refused in the last hour.`,
    fix: causes.filter(([n]) => n > 0).map(([n, why, fix]) => `${countText(n)} ${why}: ${fix}`).join(' '),
  }
}

// Trouble is a problem with what helps, and where to go.
export interface Trouble { tone: 'bad' | 'warn'; what: string; fix: string; link?: { path: string; text: string } }

// DeadLetters are those of the last hour: of each sink, and of the worker in this project.
export interface DeadLetters { sinks: Record<string, number>; worker: number }

const fixes: Record<string, string> = {
  journal: 'Check the disk of data_dir: its space, and errors in the log of the server. Clients repeat what is refused.',
  plugins: 'A required plugin does not work. Its page has the reason and its log.',
  database: 'Check that the database runs and that the server reaches it. Flags are decided from memory meanwhile.',
  server: 'The server is stopping. It answers until requests that are under way have ended.',
}

// newDeadLetters are problems because of the dead letters of the last hour.
function newDeadLetters({ sinks, worker }: DeadLetters): Trouble[] {
  const found = Object.entries(sinks).filter(([, n]) => n > 0).map(([name, n]): Trouble => ({
    tone: 'warn', what: refusedWords(name, n), fix: 'The events are dead letters. Their errors say why; correct and replay them:', link: { path: deadLettersPath(`sink/${name}`, '1h'), text: 'dead letters' },
  }))
  if (worker === 0) return found
  return [...found, { tone: 'warn', what: `${plural(worker, 'event')} of this project could not be processed in the last hour.`, fix: 'Their errors say why; correct and replay them:', link: { path: deadLettersPath('worker', '1h'), text: 'dead letters' } }]
}

// troubles returns all that is wrong, the worst first. hour has the series hourly.
export function troubles(r: Readiness, series: Series | undefined, hour?: Series, dead: DeadLetters = { sinks: {}, worker: 0 }): Trouble[] {
  const found: Trouble[] = Object.entries(r.not_ready ?? {}).map(([part, why]) => ({ tone: 'bad', what: `${part}: ${why}`, fix: fixes[part] ?? 'The log of the server has the cause.' }))
  const bad = (what: string, fix: string) => found.push({ tone: 'bad', what, fix })
  const warn = (what: string, fix: string) => found.push({ tone: 'warn', what, fix })
  const db = r.database
  if (db?.state === 'damaged') bad('The database file is damaged.', db.message ?? 'Restore a backup: guidon restore.')
  if (db?.state === 'lost' || db?.state === 'waiting') bad('PostgreSQL cannot be reached.', db.message ?? fixes.database ?? '')
  if (r.journal?.state === 'damaged' || r.journal?.state === 'replaced') bad(`The journal is ${r.journal.state}: acknowledged events may be missing.`, r.journal.incidents?.[0]?.text ?? 'See guidon journal status; guidon journal acknowledge ends this warning.')
  for (const p of r.plugins?.trouble ?? []) found.push({ tone: 'warn', what: `The plugin ${p.name} is ${p.state}: ${p.trouble}`, fix: 'Its page has the log and what can be done:', link: { path: `/plugins/${encodeURIComponent(p.name)}`, text: p.name } })
  if (r.backup?.state === 'failing' || r.backup?.state === 'overdue') warn(`Backups are ${r.backup.state}.`, r.backup.error ?? 'Check backup.to in the config, and the space there.')
  if (r.events && r.events.state !== 'ok' && r.events.state !== 'starting') warn(`ClickHouse is ${r.events.state}.`, r.events.message ?? 'Events wait in the database until it answers.')
  if (r.geoip && r.geoip.state !== 'ok') warn(`The GeoIP database is ${r.geoip.state}.`, r.geoip.error ?? 'Check geoip.path in the config.')
  const free = newest(series, 'disk_free')
  const used = newest(series, 'disk_used')
  if (free !== null && used !== null && free < 0.1 * (free + used)) warn('Less than a tenth of the disk is free.', 'Add space, shorten the retention of events, or move data_dir. A full disk refuses events.')
  const lag = newest(series, 'lag_worker')
  if (lag !== null && lag > 60) warn(`Events wait for ${Math.round(lag)} seconds before they are processed.`, 'See whether the CPU or the database is busy below. Nothing is lost: events wait on disk.')
  const refused = refusals(hour)
  if (refused) found.push(refused)
  return [...found, ...newDeadLetters(dead)]
}

// headline says in one sentence whether all is well.
export function headline(found: Trouble[]): string {
  const bad = found.filter((t) => t.tone === 'bad').length
  if (found.length === 0) return 'All is well: the server takes events, decides flags and keeps up.'
  if (bad === 0) return `The server works. ${found.length === 1 ? '1 problem needs' : `${found.length} problems need`} attention.`
  return `The server does not work as it should: ${bad === 1 ? '1 problem' : `${bad} problems`}.`
}

const warnings: Record<string, string> = {
  message_size_too_large: 'Send less in one event, such as without whole documents in properties.',
  skipping_event_nested_too_deep: 'Send flatter properties.',
  skipping_event_too_many_properties: 'Put values that differ by event into one property, not names that differ.',
  group_key_too_long: 'Use an id as the key of the group, and its name as a property.',
  event_name_too_long: 'Use a short fixed name, and properties for what differs.',
  distinct_id_too_long: 'Use an id of the user as the distinct id.',
  client_ingestion_warning: 'The client library has reported this itself; its message is in the details.',
}

// warningFix says what helps against a kind of warning.
export function warningFix(type: string): string { return warnings[type] ?? 'The details of the latest case have the reason.' }
