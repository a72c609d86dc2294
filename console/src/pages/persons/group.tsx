// A group: its properties, and the persons and groups that share events with it.
import { useLocation, useRoute } from 'preact-iso'
import { api, queryOf } from '../../api/client'
import { useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { CopyButton, Empty, Problem, Skeleton, Tag, Time, useTitle } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { Tabs } from '../../ui/tabs'
import { useTypes } from '../../ui/grouptypes'
import { Properties } from './properties'
import { Related } from './related'
import { typeWords } from './words'
import './persons.css'

export default function GroupPage() {
  const { params } = useRoute()
  const { query, path } = useLocation()
  const { project, to } = usePlace()
  const index = Number(params.type)
  const key = query.key ?? ''
  const type = useTypes(project).data?.find((t) => t.group_type_index === index)
  const { data, error, reload } = useData(key && `groups/${project}/one/${index}/${key}`, (signal) => api.get('/api/projects/{project_id}/groups/find', { path: { project_id: project }, query: { group_type_index: index, group_key: key }, signal }))
  const group = data?.group_key === key ? data : undefined
  const name = String((group?.group_properties as Record<string, unknown> | undefined)?.name ?? key)
  const tab = query.tab ?? ''
  useTitle(name || 'Group')
  return (
    <>
      <a class="back" href={to(`/groups/${index}`)}><Icon name="back" /> {type ? typeWords(type, true) : 'Groups'}</a>
      {error?.status === 404 || !key ? <Empty alone title="There is no such group"><p>No event of the project has named it. <a href={to(`/groups/${index}`)}>Search for it</a> by another key.</p></Empty> : error && !group ? <Problem error={error} retry={reload} /> : !group && <Skeleton rows={5} />}
      {group && (
        <>
          <div class="page-head person-head"><div><h1>{name} <Tag>{type ? typeWords(type, false) : 'group'}</Tag></h1><p>first seen <Time at={group.created_at} /></p></div></div>
          <Tabs label="Parts of the group" tabs={[{ href: path + queryOf({ key }), label: 'Properties', here: tab === '' }, { href: path + queryOf({ key, tab: 'related' }), label: 'Persons and groups', here: tab === 'related' }]} />
          {tab === 'related'
            ? <Related project={project} query={{ group_type_index: index, id: key }} of="group" />
            : (
              <div class="profile">
                <section class="card" aria-label="Properties"><Properties values={group.group_properties as Record<string, unknown>} answer={group} what="group" /></section>
                <aside class="card ids-card"><h2>Group key</h2><ul><li><span class="mono">{group.group_key}</span><CopyButton text={group.group_key} label="Copy" /></li></ul></aside>
              </div>
              )}
        </>
      )}
    </>
  )
}
