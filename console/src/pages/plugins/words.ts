// Plain words for plugins and their deliveries.
import { queryOf } from '../../api/client'
import type { Delivery, PluginInstance, Schemas } from '../../api/types'
import { countText, plural } from '../../ui/time'

export type Tone = 'ok' | 'warn' | 'bad' | undefined

const broken = ['quarantined', 'incompatible', 'untrusted', 'misconfigured']
const beginning = ['discovered', 'verified', 'starting', 'handshaken', 'configured', 'draining']

// stateOf returns the one state that matters most of an instance and its delivery. refused is
// the number of events that it has refused in the last hour.
export function stateOf(p: PluginInstance, refused = 0): { word: string; tone: Tone } {
  if (broken.includes(p.state)) return { word: capital(p.state), tone: 'bad' }
  if (p.state === 'backoff') return { word: 'Waits to restart', tone: 'bad' }
  if (p.delivery?.paused) return { word: 'Paused', tone: 'warn' }
  if (beginning.includes(p.state)) return { word: p.state === 'draining' ? 'Stopping' : 'Starting', tone: undefined }
  if (p.state === 'stopped') return { word: 'Stopped', tone: undefined }
  const sent = p.delivery?.state
  if (sent === 'retrying' || sent === 'throttled' || sent === 'misconfigured' || sent === 'not_flushing') return { word: capital(sent), tone: 'warn' }
  if (p.state === 'degraded') return { word: 'Degraded', tone: 'warn' }
  if (refused > 0) return { word: 'Refuses events', tone: 'warn' }
  return { word: 'Ready', tone: 'ok' }
}

// isLeftOut reports whether an instance is only stored: there is no process to act on.
export function isLeftOut(p: PluginInstance): boolean { return p.reason === 'not_valid' || p.reason === 'managed_by_file' }

// waits reports whether an instance waits for someone to release it.
export function waits(p: PluginInstance): boolean { return broken.includes(p.state) || p.reason === 'upgrade_failed' }

function capital(word: string): string { return word[0]?.toUpperCase() + word.slice(1).replaceAll('_', ' ') }

export function lagWords(d: Delivery): string {
  return d.lag_records === 0 ? 'No lag' : `${plural(d.lag_records, 'request')} behind`
}

// refusedOf returns how many events each sink has refused, by name, from a series of counts.
export function refusedOf(series: Schemas['PluginSeries'] | undefined): Record<string, number> {
  const count = (values: (number | null)[]) => values.reduce((all: number, v) => all + (v ?? 0), 0)
  return Object.fromEntries((series?.instances ?? []).map((i) => [i.name, count(i.series.find((s) => s.name === 'dead_letters')?.values ?? [])]))
}

// refusedWords says that a sink has refused events; they are dead letters.
export function refusedWords(name: string, n: number): string { return `${name} refused ${plural(n, 'event')} in the last hour.` }

// deadLettersPath is the view of the dead letters of a sink, or of the worker.
export function deadLettersPath(source: string, time = ''): string { return '/dead-letters' + queryOf({ source, time }) }

// newerConfig returns the lines that upgrade an instance to the installed file; "" if it runs
// without a checksum, or if they are there already and the upgrade has failed.
export function newerConfig(p: PluginInstance): string {
  if (p.unverified || p.reason === 'upgrade_failed') return ''
  return `- name: ${p.name}\n  use: ${p.use}\n  sha256: ${p.installed_sha256 ?? ''}`
}

export interface Sample { at: number; delivered: number; lag: number }

// rateOf returns the events in a second between the first and the last sample; a count that
// has begun anew, with the server, counts from zero.
export function rateOf(samples: Sample[]): number | undefined {
  const first = samples[0]
  const last = samples[samples.length - 1]
  if (!first || !last || last.at - first.at < 500) return undefined
  let events = 0
  for (let i = 1; i < samples.length; i++) {
    const was = samples[i - 1]?.delivered ?? 0
    const is = samples[i]?.delivered ?? 0
    events += is >= was ? is - was : is
  }
  return (events * 1000) / (last.at - first.at)
}

export function rateText(rate: number): string {
  return `${rate > 0 && rate < 10 ? rate.toFixed(1) : countText(Math.round(rate))} events/s`
}
