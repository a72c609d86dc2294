// The profile of a person. Tabs are in the query of the URL.
import { useState } from 'preact/hooks'
import { useLocation, useRoute } from 'preact-iso'
import { api } from '../../api/client'
import type { Person } from '../../api/types'
import { forget, useData } from '../../app/load'
import { usePlace } from '../../app/place'
import { CopyButton, Empty, Problem, Skeleton, Tag, Time, useTitle } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { Tabs } from '../../ui/tabs'
import { Delete } from './delete'
import { Events } from './events'
import { FlagValues } from './flagvalues'
import { Merges } from './merges'
import { Properties } from './properties'
import { Related } from './related'
import { Split } from './split'
import './persons.css'

const tabs = [{ id: '', label: 'Properties' }, { id: 'events', label: 'Events' }, { id: 'flags', label: 'Flags' }, { id: 'groups', label: 'Groups' }, { id: 'merges', label: 'Merges' }]

export default function PersonPage() {
  const { params } = useRoute()
  const { project, to } = usePlace()
  const id = params.id ?? ''
  const { data, error, reload } = useData(`persons/${project}/one/${id}`, (signal) => api.get('/api/projects/{project_id}/persons/{id}', { path: { project_id: project, id }, signal }))
  const person = data?.uuid === id || String(data?.id) === id ? data : undefined
  return (
    <>
      <a class="back" href={to('/persons')}><Icon name="back" /> Persons</a>
      {error?.status === 404
        ? <Empty alone title="There is no such person"><p>It was deleted, or merged into another one. <a href={to('/persons')}>Search for one of its distinct ids</a>.</p></Empty>
        : person ? <Page key={person.uuid} person={person} reload={reload} /> : error ? <Problem error={error} retry={reload} /> : <Skeleton rows={5} />}
    </>
  )
}

function Page({ person, reload }: { person: Person; reload: () => void }) {
  const { project, to, go } = usePlace()
  const { query, path } = useLocation()
  const [asked, setAsked] = useState<'delete' | 'split' | null>(null)
  const tab = query.tab ?? ''
  const name = person.name || 'no name'
  useTitle(name)
  const changed = () => { setAsked(null); forget(`persons/${project}`); reload() }
  return (
    <>
      <div class="page-head person-head">
        <div>
          <h1>{name} {person.is_identified ? <Tag tone="ok">Identified</Tag> : <Tag>Anonymous</Tag>}</h1>
          <p>first seen <Time at={person.created_at} />{person.last_seen_at && <>, last seen <Time at={person.last_seen_at} /></>}</p>
        </div>
        <div class="row">
          {person.distinct_ids[0] !== undefined && <a class="button" href={`${to('/why')}?id=${encodeURIComponent(person.distinct_ids[0])}`}><Icon name="why" /> Why</a>}
          <a class="button" href={`${to('/live')}?person_id=${person.uuid}`}><Icon name="live" /> Live</a>
          {person.distinct_ids.length > 1 && <button type="button" class="button" onClick={() => setAsked('split')}>Split</button>}
          <button type="button" class="button danger-quiet" onClick={() => setAsked('delete')}><Icon name="trash" /> Delete</button>
        </div>
      </div>
      <Tabs label="Parts of the person" tabs={tabs.map((t) => ({ href: t.id ? `${path}?tab=${t.id}` : path, label: t.label, here: tab === t.id }))} />
      {tab === '' && (
        <div class="profile">
          <section class="card" aria-label="Properties"><Properties values={person.properties as Record<string, unknown>} answer={person} /></section>
          <Ids ids={person.distinct_ids} uuid={person.uuid} />
        </div>
      )}
      {tab === 'events' && <Events project={project} person={person} />}
      {tab === 'flags' && <FlagValues project={project} ids={person.distinct_ids} />}
      {tab === 'groups' && <Related project={project} query={{ id: person.uuid }} of="person" />}
      {tab === 'merges' && <Merges project={project} person={person} />}
      {asked === 'split' && <Split project={project} person={person} onClose={() => setAsked(null)} onDone={changed} />}
      {asked === 'delete' && <Delete project={project} person={person} onClose={() => setAsked(null)} onDone={(text, at) => { forget(`persons/${project}`); at.say(text); at.leave(() => go('/persons')) }} />}
    </>
  )
}

const fewIds = 10

function Ids({ ids, uuid }: { ids: string[]; uuid: string }) {
  const [all, setAll] = useState(false)
  const shown = all ? ids : ids.slice(0, fewIds)
  return (
    <aside class="card ids-card" aria-label="Distinct ids">
      <h2>{ids.length === 1 ? 'Distinct id' : `${ids.length.toLocaleString('en')} distinct ids`}</h2>
      <ul>{shown.map((id) => <li key={id}><span class="mono">{id}</span><CopyButton text={id} label="Copy" /></li>)}</ul>
      {ids.length > fewIds && <button type="button" class="link small" aria-expanded={all} onClick={() => setAll(!all)}>{all ? 'Show fewer' : `Show all ${ids.length.toLocaleString('en')}`}</button>}
      <h2>Person id</h2>
      <ul><li><span class="mono">{uuid}</span><CopyButton text={uuid} label="Copy" /></li></ul>
    </aside>
  )
}
