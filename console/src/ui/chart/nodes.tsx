// Series that each node keeps for itself, in the ranges that nodes keep.
import { useEffect, useState } from 'preact/hooks'
import type { ChartSeries } from './data'

export const ranges = [{ name: '1h', text: '1 hour', seconds: 3600 }, { name: '3h', text: '3 hours', seconds: 10_800 }, { name: '24h', text: '24 hours', seconds: 86_400 }] as const

interface OfNode { node: { id: string; name: string } }
interface Shown<T> { id: string; answer: T | undefined; names: OfNode['node'][]; choose: (id: string) => void }

// useNodes keeps the last series of each node that has answered: behind a balancer it is
// not always the same, and lines of two nodes must not be taken for one. Another range, or
// another plugin, begins anew.
export function useNodes<T extends OfNode>(range: string, answer: T | undefined): Shown<T> {
  const [seen, setSeen] = useState<Record<string, T>>({})
  const [chosen, choose] = useState('')
  useEffect(() => { setSeen({}); choose('') }, [range])
  useEffect(() => { if (answer) setSeen((all) => ({ ...all, [answer.node.id]: answer })) }, [answer])
  const id = chosen && seen[chosen] ? chosen : (Object.keys(seen)[0] ?? '')
  return { id, choose, answer: seen[id], names: Object.values(seen).map((s) => s.node) }
}

// NodeChoice chooses the node, where several have answered.
export function NodeChoice({ shown }: { shown: Shown<OfNode> }) {
  if (shown.names.length < 2) return null
  return <p class="notice">Each node has its own series. These are of <select aria-label="Node" value={shown.id} onChange={(e) => shown.choose(e.currentTarget.value)}>{shown.names.map((n) => <option key={n.id} value={n.id}>{n.name || n.id}</option>)}</select></p>
}

// linesOf returns the named series of an answer as lines of a chart. Those without any value
// are left out.
export function linesOf(lines: Record<string, string>, from: string, step: number, series: { name: string; values: (number | null)[] }[]): ChartSeries[] {
  const first = Date.parse(from) / 1000
  return Object.entries(lines).flatMap(([name, label]) => {
    const found = series.find((s) => s.name === name)
    if (!found?.values.some((v) => v !== null)) return []
    return [{ name: label, points: found.values.map((v, i) => [first + i * step, v] as [number, number | null]) }]
  })
}
