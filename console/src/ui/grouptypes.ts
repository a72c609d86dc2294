// The types of groups of a project.
import { api } from '../api/client'
import type { GroupType } from '../api/types'
import { type Loaded, useData } from '../app/load'

// useTypes loads the group types of a project; nothing while off.
export function useTypes(project: string, on = true): Loaded<GroupType[]> {
  return useData(on ? `groups/${project}/types` : '', (signal) => api.get('/api/projects/{project_id}/groups_types', { path: { project_id: project }, signal }))
}
