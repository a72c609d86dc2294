// Who changed the action, when and how.
import { api } from '../../api/client'
import type { Action, ActivityEntry } from '../../api/types'
import { useData } from '../../app/load'
import { Problem, Skeleton } from '../../ui/basics'
import { Difference, HistoryEntry } from '../../ui/review'
import { changeLines, changeWords } from './changes'

export function History({ project, action }: { project: string; action: Action }) {
  const { data, error, reload } = useData(`actions/${project}/activity/${action.id}/${action.version}`, (signal) => api.get('/api/projects/{project_id}/actions/{id}/activity', { path: { project_id: project, id: action.id }, query: { limit: 100 }, signal }))
  if (error) return <Problem error={error} retry={reload} />
  if (!data) return <Skeleton rows={4} />
  return <ol class="history">{(data.results ?? []).map((e) => <Entry key={e.id} entry={e} />)}</ol>
}

function Entry({ entry: e }: { entry: ActivityEntry }) {
  return (
    <HistoryEntry entry={e} words={changeWords(e)}>
      {(e.detail.changes ?? []).filter((c) => c.field !== 'deleted').map((c) => <Difference key={c.field} before={changeLines(c.field, c.before)} after={changeLines(c.field, c.after)} />)}
    </HistoryEntry>
  )
}
