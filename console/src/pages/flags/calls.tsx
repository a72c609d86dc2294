// How often flags were called, in time.
import { useMemo } from 'preact/hooks'
import type { ReadonlySignal } from '@preact/signals'
import { api } from '../../api/client'
import type { Flag, Schemas } from '../../api/types'
import { useData } from '../../app/load'
import { Spark, type SparkSeries } from '../../ui/spark'
import { shadeOf } from './words'

export type Calls = Map<number, Schemas['FlagCalls']['results'][number]> | undefined // by id; undefined while they are loaded

// useCalls loads the calls of the flags of a list in one request, by id.
export function useCalls(project: string, ids: number[]): Calls {
  const list = [...ids].sort((a, b) => a - b).join(',')
  const { data } = useData(list ? `flags/${project}/calls/${list}` : '', (signal) => api.get('/api/projects/{project_id}/feature_flags/calls', { path: { project_id: project }, query: { ids: list, days: 7 }, signal }))
  return useMemo(() => data && new Map(data.results.map((r) => [r.id, r])), [data])
}

// CallSpark draws the calls of one flag when they arrive.
export function CallSpark({ calls: all, flag }: { calls: ReadonlySignal<Calls>; flag: Flag }) {
  const calls = all.value?.get(flag.id)
  const series: SparkSeries[] | undefined = calls?.variants.map((v) => ({ name: v.response || 'no answer', values: v.data, shade: shadeOf(flag.filters.multivariate?.variants, v.response) }))
  if (calls && !calls.counted) return <span class="spark-none faint" title="It has too many calls to count them here; see its usage.">many calls</span>
  return <Spark series={series} label="Calls in 7 days" />
}
