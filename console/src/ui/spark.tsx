// A sparkline: counts in time as small stacked bars. It always takes the same room, with
// or without numbers, so that nothing moves when they arrive.
import { countText } from './time'

export interface SparkSeries { name: string; values: number[]; shade?: number } // shade: its color, by default the next one

// sparkPaths returns a path of bars for each series, each on top of the series before it.
// The highest stack has the full height; a count above zero is at least one pixel high.
export function sparkPaths(series: SparkSeries[], width: number, height: number): string[] {
  const points = Math.max(0, ...series.map((s) => s.values.length))
  const tops = Array.from({ length: points }, (_, i) => series.reduce((sum, s) => sum + (s.values[i] ?? 0), 0))
  const most = Math.max(1, ...tops)
  const step = width / Math.max(1, points)
  const bar = Math.max(1, step * 0.78)
  const y = tops.map(() => height)
  return series.map((s) => s.values.map((n, i) => {
    if (n <= 0) return ''
    const high = Math.max(1, (height * n) / most)
    y[i] = Math.max(0, (y[i] ?? height) - high)
    return `M${round(i * step + (step - bar) / 2)} ${round(y[i] ?? 0)}h${round(bar)}v${round(high)}h${round(-bar)}z`
  }).join(''))
}

function round(n: number): number { return Math.round(n * 100) / 100 }

// sparkWords says what a sparkline shows: "Calls in 7 days: 120 (true 80, false 40)".
export function sparkWords(label: string, series: SparkSeries[]): string {
  const sums = series.map((s) => s.values.reduce((a, b) => a + b, 0))
  const parts = series.length > 1 ? ` (${series.map((s, i) => `${s.name} ${countText(sums[i] ?? 0)}`).join(', ')})` : ''
  return `${label}: ${countText(sums.reduce((a, b) => a + b, 0))}${parts}`
}

// Spark draws one or several series; without series it draws the empty line, as while they
// are loaded. label says what is counted and in what time: "Calls in 7 days".
// say replaces the words for values that are no counts.
export function Spark({ series, label, say, width = 96, height = 24 }: { series: SparkSeries[] | undefined; label: string; say?: string; width?: number; height?: number }) {
  const words = series && (say ?? sparkWords(label, series))
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role={words ? 'img' : undefined} aria-label={words} aria-hidden={words ? undefined : true}>
      {words && <title>{words}</title>}
      <path class="spark-base" d={`M0 ${height - 0.5}H${width}`} />
      {series && sparkPaths(series, width, height - 1).map((d, i) => d && <path key={i} class={`shade-${(series[i]?.shade ?? i) % 6}`} d={d} />)}
    </svg>
  )
}
