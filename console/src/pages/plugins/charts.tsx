// The last hours of an instance: lag, throughput, errors, and latency where there is no lag.
import { useLocation } from 'preact-iso'
import { api, queryOf } from '../../api/client'
import type { PluginInstance } from '../../api/types'
import { useData, useRepeat } from '../../app/load'
import { Problem } from '../../ui/basics'
import { Chart } from '../../ui/chart'
import { linesOf, NodeChoice, ranges, useNodes } from '../../ui/chart/nodes'
import { graphsOf } from './graphs'

export function Charts({ plugin: p }: { plugin: PluginInstance }) {
  const { query, path, route } = useLocation()
  const range = ranges.find((r) => r.name === query.range) ?? ranges[0]
  const key = `plugins/series/${p.name}/${range.name}`
  const { data, error, loading, reload } = useData(key, (signal) => api.get('/api/health/plugins', { query: { instance: p.name, from: String(Math.floor(Date.now() / 1000) - range.seconds) }, signal }))
  useRepeat(true, 15_000, { loading, reload })
  const shown = useNodes(key, data)
  const own = shown.answer?.instances.find((i) => i.name === p.name)
  const empty = shown.answer && !own && shown.answer.left_out > 0 ? 'The first 32 instances have charts; the metrics have all' : 'Nothing yet: the first values come within half a minute'
  return (
    <section class="stack">
      <div class="charts-head">
        <h2>The last {range.text.replace(/^1 /, '')}</h2>
        <select aria-label="Time shown" value={range.name} onChange={(e) => route(path + queryOf({ ...query, range: e.currentTarget.value === '1h' ? '' : e.currentTarget.value }), true)}>{ranges.map((r) => <option key={r.name} value={r.name}>{r.text}</option>)}</select>
      </div>
      {error && <Problem error={error} retry={reload} />}
      <NodeChoice shown={shown} />
      <div class="charts">
        {graphsOf(p.kind).map((g) => (
          <Chart key={g.title} title={g.title} unit={g.unit} hint={g.hint} kind={g.kind ?? 'line'} stacked={g.kind === 'bars'} sync="plugin" height={120}
            series={shown.answer && linesOf(g.lines, shown.answer.from, shown.answer.step, own?.series ?? [])} empty={empty} />
        ))}
      </div>
    </section>
  )
}
