// A chart of one or several series in time. uPlot, which draws it, is loaded with the
// first chart.
//
//   <Chart title="Requests" unit="per second" sync="health"
//     series={[{ name: 'capture', points: [[1700000000, 12.5], [1700000015, null]] }]} />
//
// It takes its room before there are values and keeps it: nothing moves when they arrive.
// The legend shows the values under the pointer, else the newest, and of bars the totals. With the keyboard it is
// a slider: the arrows, Home and End move in time, and a screen reader says the values. A
// button shows the numbers as a table.
import { useEffect, useRef, useState } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { theme } from '../app/theme'
import { sayError } from '../app/toasts'
import { Icon } from './icon'
import { align, isEmpty, pointTime, smallestStep, summary, total, valueText, type Aligned, type ChartSeries, type ChartUnit } from './chart/data'
import type { Plot } from './chart/plot'
import './chart/chart.css'

export type { ChartSeries, ChartUnit } from './chart/data'

export interface ChartProps {
  title: string
  series: ChartSeries[] | undefined // undefined while they are loaded
  unit?: ChartUnit // 'number'; 'bytes', 'seconds', 'per second' or 'percent' (0 to 100)
  kind?: 'line' | 'area' | 'bars' // 'line'
  stacked?: boolean // areas or bars on top of each other
  height?: number // of the drawing in pixels, 160
  from?: number // the ends of the time axis in Unix seconds; else those of the points
  to?: number
  max?: number // the end of the value axis; else a little more than the highest value
  zone?: string // of times; else that of the browser
  sync?: string // charts with the same name move their cursors together
  empty?: string // what is said without values
  hint?: string // one sentence below the title
}

const dark = matchMedia('(prefers-color-scheme: dark)')

export function Chart(props: ChartProps) {
  const { title, series, unit = 'number', kind = 'line', height = 160, zone, empty = 'No values yet' } = props
  const place = useSignal<number | null>(null)
  const [table, setTable] = useState(false)
  const shown = series ?? []
  const nothing = isEmpty(shown)
  const data = align(shown)
  const here = Math.min(place.value ?? Infinity, data.times.length - 1)
  const totals = kind === 'bars' && place.value === null
  return (
    <figure class="chart-card card">
      <figcaption>
        <div class="chart-title">
          <h3>{title}</h3>
          <span class="chart-time faint">{here < 0 ? '' : totals ? 'in all' : pointTime(data.times[here] ?? 0, smallestStep(data.times), zone)}</span>
          <button type="button" class="icon-button" aria-pressed={table} aria-label={`${title} as a table`} title="As a table" disabled={nothing} onClick={() => setTable(!table)}><Icon name="table" /></button>
        </div>
        {props.hint && <p class="hint">{props.hint}</p>}
        <Legend data={data} series={shown} unit={unit} here={here} totals={totals} />
      </figcaption>
      {table && !nothing
        ? <Table data={data} series={shown} unit={unit} zone={zone} height={height} title={title} />
        : nothing
          ? <div class="chart-empty" style={{ height: `${height}px` }}>{series && <p class="faint">{empty}</p>}</div>
          : <Drawing {...props} data={data} words={summary(title, shown, unit)} place={place.value} onPlace={(at) => { place.value = at }} />}
    </figure>
  )
}

// at returns the value of a series at a place, or before it where it has none there.
function at(data: Aligned, series: number, place: number): number | null | undefined {
  const row = data.rows[series] ?? []
  while (place > 0 && row[place] === undefined) place--
  return row[place]
}

function Legend({ data, series, unit, here, totals }: { data: Aligned; series: ChartSeries[]; unit: ChartUnit; here: number; totals: boolean }) {
  const value = (i: number) => (here < 0 ? null : totals ? total(data.rows[i] ?? []) : at(data, i, here))
  return (
    <ul class="chart-legend">
      {series.map((s, i) => (
        <li key={s.name}><svg viewBox="0 0 8 8" width="8" height="8" aria-hidden="true"><rect class={`shade-${(s.shade ?? i) % 6}`} width="8" height="8" rx="2" /></svg><span>{s.name}</span><b>{valueText(value(i), unit)}</b></li>
      ))}
    </ul>
  )
}

function Drawing({ unit = 'number', kind = 'line', stacked = false, height = 160, zone, from, to, max, sync, data, words, series, place, onPlace }: ChartProps & { data: Aligned; words: string; place: number | null; onPlace: (place: number | null) => void }) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<Plot | null>(null)
  const names = (series ?? []).map((s) => s.name)
  const shades = (series ?? []).map((s, i) => s.shade ?? i)
  const [colors, setColors] = useState(0)
  useEffect(() => {
    const again = () => setColors((n) => n + 1)
    dark.addEventListener('change', again)
    return () => dark.removeEventListener('change', again)
  }, [])
  useEffect(() => {
    let gone = false
    import('./chart/plot').then(({ draw }) => {
      if (gone || !box.current) return
      plot.current?.destroy()
      plot.current = draw(box.current, { data, names, shades, unit, kind, stacked, height, from, to, max, zone, sync, onCursor: onPlace })
    }, () => { if (!gone) sayError(new Error('The charts could not be loaded. Reload the page.')) })
    return () => { gone = true }
  }, [series, unit, kind, stacked, height, from, to, max, zone, sync, theme.value, colors])
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => { if (entry) plot.current?.resize(entry.contentRect.width) })
    if (box.current) watch.observe(box.current)
    return () => { watch.disconnect(); plot.current?.destroy(); plot.current = null }
  }, [])
  const last = data.times.length - 1
  const here = Math.min(place ?? last, last)
  const move = (e: KeyboardEvent) => {
    const next = { ArrowLeft: here - 1, ArrowRight: here + 1, PageUp: here - 10, PageDown: here + 10, Home: 0, End: last }[e.key]
    if (next === undefined || e.ctrlKey || e.altKey || e.metaKey) return
    e.preventDefault()
    onPlace(Math.max(0, Math.min(last, next)))
    plot.current?.moveTo(Math.max(0, Math.min(last, next)))
  }
  const values = (series ?? []).map((s, i) => `${s.name} ${valueText(at(data, i, here), unit)}`).join(', ')
  return (
    <div ref={box} class="chart-box" style={{ height: `${height}px` }} tabIndex={0} role="slider" aria-label={words} aria-valuemin={0} aria-valuemax={last} aria-valuenow={here}
      aria-valuetext={`${pointTime(data.times[here] ?? 0, smallestStep(data.times), zone)}: ${values}`} onKeyDown={move} onBlur={() => { onPlace(null); plot.current?.moveTo(null) }} />
  )
}

function Table({ data, series, unit, zone, height, title }: { data: Aligned; series: ChartSeries[]; unit: ChartUnit; zone: string | undefined; height: number; title: string }) {
  const step = smallestStep(data.times)
  return (
    <div class="chart-table" style={{ height: `${height}px` }} tabIndex={0} role="region" aria-label={`${title}, newest first`}>
      <table>
        <thead><tr><th scope="col">Time</th>{series.map((s) => <th key={s.name} scope="col">{s.name}</th>)}</tr></thead>
        <tbody>{data.times.map((time, i) => ({ time, i })).reverse().map(({ time, i }) => <tr key={time}><td>{pointTime(time, step, zone)}</td>{series.map((s, n) => <td key={s.name}>{valueText(data.rows[n]?.[i], unit)}</td>)}</tr>)}</tbody>
      </table>
    </div>
  )
}
