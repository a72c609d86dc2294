// The settings: of the project, of the organization, and of the user. Each tab has its URL.
import type { FunctionComponent } from 'preact'
import { useEffect } from 'preact/hooks'
import { useLocation, useRoute } from 'preact-iso'
import { usePlace } from '../../app/place'
import { Empty, useTitle } from '../../ui/basics'
import { useHereInView } from '../../ui/tabs'
import Data from './data'
import Definitions from './definitions'
import General from './general'
import GroupTypes from './groups'
import Keys from './keys'
import { OrganizationLog, ProjectLog } from './log'
import Members from './members'
import MyKeys from './mykeys'
import Profile from './profile'
import Projects from './projects'
import Roles from './roles'
import { AllSessions, MySessions } from './sessions'
import { groups, tabs, type TabName } from './tabs'
import './settings.css'

const views: Record<TabName, FunctionComponent<{ project: string }>> = {
  general: General, keys: Keys, 'group-types': GroupTypes, definitions: Definitions, data: Data, log: ProjectLog,
  projects: Projects, members: Members, roles: Roles, sessions: AllSessions, audit: OrganizationLog,
  profile: Profile, 'my-keys': MyKeys, 'my-sessions': MySessions,
}

export default function Settings() {
  const { project, to, go } = usePlace()
  const { params } = useRoute()
  const { path } = useLocation()
  const name = params.tab ?? path.split('/')[5] ?? ''
  const nav = useHereInView(name)
  const tab = tabs.find((t) => t.name === name)
  useTitle(tab ? `${tab.title} · Settings` : 'Settings')
  // While the next page loads, this one still shows, with the path of the next one.
  const bare = /\/settings\/?$/.test(path)
  useEffect(() => { if (bare) go('/settings/general', true) }, [bare])
  const View = tab && views[tab.name]
  return (
    <div class="settings">
      <nav ref={nav} aria-label="Settings">
        <h1>Settings</h1>
        {groups.map((group) => (
          <div key={group} role="group" aria-label={group}>
            <h2>{group}</h2>
            {tabs.filter((t) => t.group === group).map((t) => <a key={t.name} href={to(`/settings/${t.name}`)} aria-current={t.name === name ? 'page' : undefined}>{t.title}</a>)}
          </div>
        ))}
      </nav>
      <div class="settings-view" key={`${project}/${name}`}>
        {View ? <View project={project} /> : name !== '' && <Empty title="There is no such setting"><p><a href={to('/settings/general')}>Settings of the project</a></p></Empty>}
      </div>
    </div>
  )
}
