// The values of a property, offered while a value is typed. The list of the browser shows them,
// which works with the keyboard.
import { api } from '../api/client'
import { useData, useDebounced } from '../app/load'
import { usePlace } from '../app/place'

export interface Property { of: 'persons' | 'events'; key: string; event?: string }

const most = 30

// useValues asks for the values that contain what is typed, once typing pauses; null, before the
// field has the focus, asks for nothing. An answer that is not needed any more is cancelled.
// known are offered until the server answers, and if it does not.
export function useValues(property: Property | undefined, typed: string | null, known: string[] = []): string[] {
  const { project } = usePlace()
  const asked = useDebounced(property?.key && typed !== null ? JSON.stringify([property.of, property.key, property.event ?? '', typed]) : '', 200)
  const { data } = useData(asked && `values/${project}/${asked}`, async (signal) => {
    const [of, key, event, value] = JSON.parse(asked) as [Property['of'], string, string, string]
    const path = { project_id: project }
    return { asked, values: of === 'events'
      ? await api.get('/api/projects/{project_id}/events/values', { path, query: { key, value: value || undefined, event_name: event || undefined }, signal })
      : await api.get('/api/projects/{project_id}/persons/values', { path, query: { key, value: value || undefined }, signal }) }
  })
  const same = data && asked && (JSON.parse(data.asked) as string[])[1] === property?.key
  return [...new Set([...(same ? data.values.map((v) => String(v.name)) : []), ...known])].slice(0, most)
}
