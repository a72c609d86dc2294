// The drawing, by uPlot. chart.tsx loads this module when the first chart is shown.
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { isolated, smallestStep, stackUp, tickText, valueText, type Aligned, type ChartUnit } from './data'

export interface PlotOptions {
  data: Aligned
  names: string[]
  shades: number[] // the colors of the series
  unit: ChartUnit
  kind: 'line' | 'area' | 'bars'
  stacked: boolean
  height: number
  from: number | undefined
  to: number | undefined
  max: number | undefined
  zone: string | undefined
  sync: string | undefined
  onCursor: (place: number | null) => void
}
export interface Plot { resize: (width: number) => void; moveTo: (place: number | null) => void; destroy: () => void }

// colorOf resolves a token: uPlot draws on a canvas, which does not know var().
function colorOf(at: HTMLElement, token: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${token})`
  at.append(probe)
  const color = getComputedStyle(probe).color
  probe.remove()
  return color
}

const faded = (color: string) => color.replace(/^rgb\(([^)]*)\)$/, (_, parts: string) => `rgba(${parts}, 0.14)`)
const counts = Array.from({ length: 15 }, (_, i) => [1, 2, 5].map((n) => n * 10 ** i)).flat()
const whole = (data: Aligned) => data.rows.every((row) => row.every((v) => v == null || Number.isInteger(v)))
const binary = Array.from({ length: 60 }, (_, i) => 2 ** i)
// Steps of durations: 1, 2, 5 below a minute, then what divides minutes, hours and days.
const durations = [...[1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1].flatMap((n) => [n, 2 * n, 5 * n]), 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800, 432_000, 864_000, 2_592_000]

export function draw(box: HTMLElement, options: PlotOptions): Plot {
  const { data, unit, kind, stacked } = options
  const drawn = stacked ? stackUp(data.rows) : data.rows
  // Of a stack the highest is drawn first, and the lower ones over it.
  const order = options.names.map((_, i) => (stacked ? options.names.length - 1 - i : i))
  const line = colorOf(box, '--line')
  const faint = colorOf(box, '--faint')
  const font = `11px ${getComputedStyle(box).fontFamily}`
  const step = smallestStep(data.times)
  const half = kind === 'bars' ? step / 2 : 0
  const axis = { stroke: faint, font, ticks: { show: false }, grid: { stroke: line, width: 1 } }
  const plot = new uPlot({
    width: Math.max(1, box.clientWidth),
    height: options.height,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: !stacked, size: 7 }, ...(options.sync && { sync: { key: options.sync, setSeries: false } }) },
    scales: {
      x: { time: true, range: (_, low, high) => [(options.from ?? low) - half, (options.to ?? (high > low ? high : low + step)) + half] },
      // An honest axis begins at 0, unless values are below it.
      y: { range: (_, low, high) => [Math.min(0, low ?? 0), options.max ?? (high > 0 ? high * 1.08 : 1)] },
    },
    axes: [
      { ...axis, size: 26, gap: 6, space: 64, grid: { show: false }, values: (_, splits, __, ___, incr) => splits.map((t) => tickText(t, incr, options.zone)) },
      { ...axis, size: 62, // counts have no halves
        ...(unit === 'number' && whole(data) && { incrs: counts }), gap: 6, space: 28, ...(unit === 'bytes' && { incrs: binary }), ...(unit === 'seconds' && { incrs: durations }), values: (_, splits) => splits.map((v) => valueText(v, unit)) },
    ],
    series: [{}, ...order.map((at) => {
      const color = colorOf(box, `--series-${(options.shades[at] ?? at) % 6}`)
      const filled = stacked || kind === 'bars' ? color : kind === 'area' ? faded(color) : undefined
      return {
        label: options.names[at] ?? '', stroke: color, width: kind === 'bars' ? 0 : 1.5,
        ...(filled && { fill: filled }),
        ...(kind === 'bars' && uPlot.paths.bars && { paths: uPlot.paths.bars({ size: [0.82, 64] }) }),
        points: { show: kind !== 'bars', size: 4, fill: color, filter: () => isolated(drawn[at] ?? []) },
      }
    })],
    hooks: { setCursor: [(u) => options.onCursor(u.cursor.idx ?? null)] },
  }, [data.times, ...order.map((at) => drawn[at] ?? [])] as uPlot.AlignedData, box)
  return {
    resize: (width) => plot.setSize({ width: Math.max(1, width), height: options.height }),
    moveTo: (place) => plot.setCursor(place === null ? { left: -10, top: -10 } : { left: plot.valToPos(data.times[place] ?? 0, 'x'), top: 1 }),
    destroy: () => plot.destroy(),
  }
}
