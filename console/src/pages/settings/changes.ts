// Entries of the audit log in words.
import type { Schemas } from '../../api/types'

type Entry = Schemas['AuditEntry']

// kinds are the kinds of items in the log.
export const kinds: Record<string, string> = {
  FeatureFlag: 'flag', Cohort: 'cohort', Action: 'action', Dashboard: 'dashboard', Person: 'person', Group: 'group', PersonalAPIKey: 'personal key', ProjectAPIKey: 'project key', ProjectSecretAPIKey: 'secret key',
  Project: 'project', Organization: 'organization', OrganizationMembership: 'member', OrganizationInvite: 'invitation', Role: 'role', RoleMembership: 'place in the role', User: 'user', Session: 'session', Plugin: 'plugin',
  DeadLetter: 'dead letter', EventDefinition: 'event definition', PropertyDefinition: 'property definition', GroupType: 'group type', ScheduledChange: 'scheduled change', FeatureFlagRoleAccess: 'access to a flag', NotificationDelivery: 'notification',
}
const verbs: Record<string, string> = { created: 'created', updated: 'changed', replay: 'replayed', retry: 'sent again', split: 'split', delete: 'deleted', check: 'checked', pause: 'paused', resume: 'resumed', restart: 'restarted', release: 'released', rolled: 'replaced', rolled_back: 'rolled back', identity_linked: 'linked a sign-in of', password_changed: 'changed the password of' }

// deeds are the words for what a request did to the item that it names, without its name.
const deeds: Record<string, string> = {
  'FeatureFlag create_static_cohort_for_flag': 'created a cohort of the persons with the flag', 'FeatureFlag dashboard': 'created a dashboard for the flag', 'FeatureFlag enrich_usage_dashboard': 'completed the dashboard of the flag',
  'FeatureFlagRoleAccess created': 'gave a role access to the flag', 'FeatureFlagRoleAccess deleted': 'took the access of a role to the flag', 'Action test_notification': 'sent a test notification of the action',
  'Plugin config': 'changed the settings of the plugin', 'Plugin reload': 'read the config of plugins again',
}

// countedWords says what an entry counts that stands for many requests of a minute: "System"
// is its subject.
function countedWords(e: Pick<Entry, 'activity' | 'scope' | 'detail'>): string | undefined {
  const n = Number(e.detail.trigger?.payload.count ?? 1)
  const reason = e.detail.trigger?.job_id ?? ''
  const because = reasons[reason] ?? (reason && `: ${reason.replaceAll('_', ' ')}`)
  switch (e.activity) {
    case 'sign_in_failed': return `refused ${n === 1 ? 'a sign-in' : `${n} sign-ins`}${because}`
    case 'password_reset_requested': return `${reason && !(reason in reasons) ? 'refused' : 'got'} ${n === 1 ? 'a request' : `${n} requests`} for a new password${e.detail.name ? ` of ${e.detail.name}` : ''}${because}`
    case 'email_failed': return `gave up ${n === 1 ? 'an e-mail' : `${n} e-mails`} with ${e.scope === 'OrganizationInvite' ? 'an invitation' : 'a link for a new password'}${e.detail.name ? ` to ${e.detail.name}` : ''}${reasons[reason] ?? ''}`
    default: return undefined
  }
}
const reasons: Record<string, string> = { other_clients: ', of the other clients of the minute' }

// entryWords says what was done: "changed the flag new-nav". An entry that has the name of a
// request has no name of its item, only its id.
export function entryWords(e: Pick<Entry, 'activity' | 'scope' | 'detail' | 'item_id'>): string {
  const counted = countedWords(e)
  if (counted) return counted
  const kind = kinds[e.scope] ?? e.scope.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase()
  const name = routeOf(e) ? e.item_id : e.detail.name || e.item_id
  if (e.scope === 'Session') return `${e.activity.replaceAll('_', ' ')}${e.detail.name ? `: ${e.detail.name}` : ''}`
  const deed = deeds[`${e.scope} ${e.activity}`]
  if (deed) return name ? `${deed} ${name}` : deed
  if (e.scope === 'Other') return `changed something with ${routeOf(e) || 'a request'}`
  const verb = verbs[e.activity] ?? (/ed$/.test(e.activity) ? e.activity.replaceAll('_', ' ') : '')
  if (!name) return `${verb || e.activity.replaceAll('_', ' ')} ${e.scope === 'DeadLetter' ? 'many dead letters' : `${/^[aeiou]/.test(kind) ? 'an' : 'a'} ${kind}`}`
  return verb ? `${verb} the ${kind} ${name}` : `${kind} ${name}: ${e.activity.replaceAll('_', ' ')}`
}

// routeOf returns the request of an entry that has only that, or nothing. Entries of former
// versions have it in place of the name.
export function routeOf(e: Pick<Entry, 'detail'>): string {
  const { name, trigger } = e.detail
  if (trigger?.job_type === 'request') return trigger.job_id
  return /^[A-Z]+ \/api\//.test(name) ? name : ''
}

const limit = 400

// valueText shows a value of a change: text as it is, other values as JSON, both cut when long.
export function valueText(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'nothing'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > limit ? text.slice(0, limit) + '…' : text
}

export function fieldWords(field: string): string { return field.replaceAll('_', ' ') }

// days are the choices of how far back the log is read.
export const days: Record<string, string> = { '': 'Any time', 1: 'Last day', 7: 'Last 7 days', 30: 'Last 30 days', 90: 'Last 90 days' }

// sinceDays returns the day that is n days before now.
export function sinceDays(n: string | undefined, now = Date.now()): string | undefined {
  return Number(n) > 0 ? new Date(now - Number(n) * 86_400_000).toISOString().slice(0, 10) : undefined
}
