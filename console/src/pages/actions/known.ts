// What the project has, to choose from: events and values of recent ones, and the newest
// cohort. Names are searched where they are typed. What the user may not read is left out.
import { api } from '../../api/client'
import type { Cohort } from '../../api/types'
import { useData } from '../../app/load'
import { may } from '../../app/session'
import { valuesOf } from '../flags/values'

export interface Known { events: string[]; values: Map<string, string[]>; cohort: Cohort | undefined }

const nothing: Known = { events: [], values: new Map(), cohort: undefined }
export function useKnown(project: string): Known {
  const path = { project_id: project }
  const { data } = useData(`known-events/${project}`, async (signal): Promise<Known> => {
    const [recent, cohorts] = await Promise.all([
      may('read', 'event') ? api.get('/api/projects/{project_id}/events', { path, query: { limit: 100 }, signal }).catch(() => null) : null,
      may('read', 'cohort') ? api.get('/api/projects/{project_id}/cohorts', { path, query: { limit: 1 }, signal }).catch(() => null) : null,
    ])
    const found = recent?.results ?? []
    return { events: [...new Set(found.map((e) => e.event))], values: valuesOf(found.map((e) => e.properties as Record<string, unknown>)), cohort: cohorts?.results?.[0] }
  })
  return data ?? nothing
}
