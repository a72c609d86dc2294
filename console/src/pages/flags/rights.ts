// Whether the user may change a flag, and why not. The server decides; the pages only leave out
// what it would refuse.
import type { Flag } from '../../api/types'
import { may } from '../../app/session'

// lockOf says why the user may not change the flag; empty if they may.
export function lockOf(flag: Flag): string {
  if (!may('write', 'feature_flag')) return 'You may look at this flag, not change it: the key that you work with has no right to change flags.'
  if (flag.can_edit) return ''
  const by = flag.created_by
  return `You may look at this flag, not change it: members of this organization change only their own. ${by ? `${by.first_name || by.email}, who created it,` : 'Its creator'} or an admin may change it, or give your role access to it.`
}

export function mayEdit(flag: Flag): boolean { return lockOf(flag) === '' }
