// The pure parts of a chart: one time axis for several series, stacks, and words for
// values and times.
import { countText } from '../time'

export interface ChartSeries {
  name: string
  points: [time: number, value: number | null][] // Unix seconds, ascending; null is a gap
  shade?: number // its color, by default the next one
}
export type ChartUnit = 'number' | 'bytes' | 'seconds' | 'per second' | 'percent'
type Row = (number | null | undefined)[]
export interface Aligned { times: number[]; rows: Row[] }

// align puts all series on one time axis. A time that a series lacks is undefined there,
// and a line goes on through it; null stays a gap.
export function align(series: ChartSeries[]): Aligned {
  const times = [...new Set(series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b)
  const rows = series.map((s) => {
    const values = new Map(s.points)
    return times.map((t) => values.get(t))
  })
  return { times, rows }
}

// stackUp adds to each row the rows before it. Gaps count as 0.
export function stackUp(rows: Row[]): number[][] {
  const sums: number[] = []
  return rows.map((row) => row.map((v, i) => (sums[i] = (sums[i] ?? 0) + (v ?? 0))))
}

// total adds up the values of a row.
export function total(row: Row): number { return row.reduce((sum: number, v) => sum + (v ?? 0), 0) }

// isolated returns the places of values without a neighbour: a line would not show them.
export function isolated(row: ArrayLike<number | null | undefined>): number[] {
  const at: number[] = []
  let before: number | null = null // the last place that is not undefined
  for (let i = 0; i < row.length; i++) {
    if (row[i] === undefined) continue
    let next = i + 1
    while (next < row.length && row[next] === undefined) next++
    if (row[i] != null && (before === null || row[before] == null) && (next >= row.length || row[next] == null)) at.push(i)
    before = i
  }
  return at
}

// isEmpty reports whether no series has a value.
export function isEmpty(series: ChartSeries[]): boolean { return !series.some((s) => s.points.some((p) => p[1] != null)) }

const sizes = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
const spans: [from: number, unit: string, size: number][] = [[86_400, 'd', 86_400], [3600, 'h', 3600], [60, 'min', 60], [1, 's', 1], [1e-3, 'ms', 1e-3], [0, 'µs', 1e-6]]

// valueText returns a value with its unit, in three digits: "1.25 GiB", "12 ms", "3.4/s".
export function valueText(value: number | null | undefined, unit: ChartUnit): string {
  if (value == null || !Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  switch (unit) {
    case 'bytes': {
      const step = size < 1 ? 0 : Math.min(sizes.length - 1, Math.floor(Math.log2(size) / 10))
      return `${digits(value / 1024 ** step)} ${sizes[step]}`
    }
    case 'seconds': {
      if (size === 0) return '0 s'
      const [, name, span] = spans.find(([from]) => size >= from * 0.9995) ?? [0, 's', 1]
      return `${digits(value / span)} ${name}`
    }
    case 'per second': return `${short(value)}/s`
    case 'percent': return `${digits(value)} %`
    default: return short(value)
  }
}

function digits(value: number): string { return value.toLocaleString('en', { maximumFractionDigits: Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0 }) }

function short(value: number): string {
  return Math.abs(value) < 10_000 ? digits(value) : countText(value)
}

// pointTime returns a time with its zone: "23 Nov, 14:05:30 UTC".
export function pointTime(seconds: number, step: number, zone?: string): string {
  const time: Intl.DateTimeFormatOptions = step < 86_400 ? { hour: '2-digit', minute: '2-digit', ...(step < 60 && { second: '2-digit' }), timeZoneName: 'short' } : { year: 'numeric' }
  return format(seconds, { day: 'numeric', month: 'short', ...time }, zone)
}

// tickText returns a time for the axis: the day at midnight, else the hour and minute.
export function tickText(seconds: number, step: number, zone?: string): string {
  const hour = format(seconds, { hour: '2-digit', minute: '2-digit', ...(step < 60 && { second: '2-digit' }) }, zone)
  return step >= 86_400 || /^00:00(:00)?$/.test(hour) ? format(seconds, { day: 'numeric', month: 'short' }, zone) : hour
}

const formats = new Map<string, Intl.DateTimeFormat>()
function format(seconds: number, options: Intl.DateTimeFormatOptions, zone?: string): string {
  const key = JSON.stringify([options, zone])
  let known = formats.get(key)
  if (!known) formats.set(key, (known = new Intl.DateTimeFormat('en-GB', { ...options, ...(zone && { timeZone: zone }) })))
  return known.format(seconds * 1000)
}

// smallestStep returns the smallest distance of two times, or 60 for fewer than two.
export function smallestStep(times: number[]): number {
  let step = Infinity
  for (let i = 1; i < times.length; i++) step = Math.min(step, (times[i] ?? 0) - (times[i - 1] ?? 0))
  return Number.isFinite(step) ? step : 60
}

// summary says what a chart shows: "Requests: capture 12/s, at most 30/s; decide 3/s, at
// most 9/s".
export function summary(title: string, series: ChartSeries[], unit: ChartUnit): string {
  if (isEmpty(series)) return `${title}: no values`
  return `${title}: ` + series.map((s) => {
    const values = s.points.map((p) => p[1]).filter((v): v is number => v != null)
    if (values.length === 0) return `${s.name} no values`
    return `${s.name} ${valueText(values[values.length - 1], unit)}, at most ${valueText(values.reduce((a, b) => Math.max(a, b)), unit)}`
  }).join('; ')
}
