import { usePlace } from '../../app/place'
import { useTypes } from '../../ui/grouptypes'
import { Tabs } from '../../ui/tabs'
import { typeWords } from './words'

// Kinds leads to the persons, to the groups of each type and to the cohorts.
export function Kinds({ project, at }: { project: string; at: string }) {
  const { to } = usePlace()
  const types = useTypes(project).data
  const tab = (path: string, kind: string, label: string) => ({ href: to(path), label, here: kind === at })
  const groups = types?.length === 0 ? [tab('/groups', 'groups', 'Groups')] : (types ?? []).map((t) => tab(`/groups/${t.group_type_index}`, String(t.group_type_index), typeWords(t, true)))
  return <Tabs label="Persons and groups" tabs={[tab('/persons', 'persons', 'Persons'), ...groups, tab('/cohorts', 'cohorts', 'Cohorts')]} />
}
