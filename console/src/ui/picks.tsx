// Choosing a cohort or a flag of a project.
import { api } from '../api/client'
import type { Cohort, Flag } from '../api/types'
import { type Loaded, useData } from '../app/load'
import { Pick } from './pick'

const most = 20

export function useCohort(project: string, id: unknown): Loaded<Cohort> {
  return useData(typeof id === 'number' ? `cohorts/${project}/one/${id}` : '', (signal) => api.get('/api/projects/{project_id}/cohorts/{id}', { path: { project_id: project, id: Number(id) }, signal }))
}

export function useFlag(project: string, id: unknown): Loaded<Flag> {
  return useData(id ? `flags/${project}/one/${String(id)}` : '', (signal) => api.get('/api/projects/{project_id}/feature_flags/{id}', { path: { project_id: project, id: String(id) }, signal }))
}

export function CohortPick({ project, id, name, onPick }: { project: string; id: unknown; name?: string | null | undefined; onPick: (id: number) => void }) {
  const { data } = useCohort(project, id)
  const shown = typeof id !== 'number' ? '' : data?.id === id ? data.name ?? '' : name ?? `Cohort ${id}`
  return (
    <Pick label="Cohort" source={`cohorts/${project}/search`} value={String(id)} shown={shown} none="There is no cohort yet." onPick={(c) => onPick(Number(c.id))}
      search={async (text, signal) => {
        const { count, results } = await api.get('/api/projects/{project_id}/cohorts', { path: { project_id: project }, query: { search: text, limit: most }, signal })
        return { count: count ?? 0, results: (results ?? []).map((c) => ({ id: String(c.id), name: c.name ?? '' })) }
      }} />
  )
}

export function FlagPick({ project, id, onPick }: { project: string; id: unknown; onPick: (id: string) => void }) {
  const { data } = useFlag(project, id)
  const shown = !id ? '' : String(data?.id) === String(id) ? data?.key ?? '' : `Flag ${String(id)}`
  return (
    <Pick label="Flag" source={`flags/${project}/search`} value={String(id)} shown={shown} none="There is no flag yet." onPick={(c) => onPick(c.id)}
      search={async (text, signal) => {
        const { count, results } = await api.get('/api/projects/{project_id}/feature_flags', { path: { project_id: project }, query: { search: text, limit: most }, signal })
        return { count, results: (results ?? []).map((f) => ({ id: String(f.id), name: f.key })) }
      }} />
  )
}
