// Parts that several tabs of the settings use.
import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { ApiError } from '../../api/client'
import { me, personalKey } from '../../app/session'
import { here, type Here } from '../../app/late'

export const levels: Record<number, string> = { 1: 'Member', 8: 'Admin', 15: 'Owner' }

// myLevel is the level of the user in the organization. The server decides; the pages only
// leave out what it would refuse.
export function myLevel(): number { return me.value?.organization.membership_level ?? 0 }
export function isAdmin(): boolean { return myLevel() >= 8 }

export function Part({ title, text, action, children }: { title: string; text?: ComponentChildren; action?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <section class="part">
      <header><div><h2>{title}</h2>{text && <p>{text}</p>}</div>{action}</header>
      {children}
    </section>
  )
}

export function Line({ what, about, children, gone }: { what: ComponentChildren; about?: ComponentChildren; children?: ComponentChildren; gone?: boolean }) {
  return (
    <div class={`line ${gone ? 'gone' : ''}`} role="listitem">
      <div><div class="what">{what}</div>{about && <div class="about">{about}</div>}</div>
      {children && <div class="acts">{children}</div>}
    </div>
  )
}

// attempt runs a change and says what was done, or why not. It reports whether it worked.
export async function attempt(run: () => Promise<unknown>, done: string): Promise<boolean> {
  const page = here()
  try {
    await run()
    if (done) page.say(done)
    return true
  } catch (e) {
    page.sayError(e)
    return false
  }
}

// useSubmit runs the change of a form. error is why the server refused, to be shown at the
// field it names.
export function useSubmit(run: (page: Here) => Promise<void>): { submit: (e: Event) => void; busy: boolean; error: ApiError | null; at: (field: string) => string | null } {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError | null>(null)
  const running = useRef(false)
  const submit = (e: Event) => {
    e.preventDefault()
    if (running.current) return
    running.current = true
    setBusy(true)
    setError(null)
    const page = here()
    run(page).catch((e: unknown) => { if (e instanceof ApiError && page.stayed()) setError(e); else page.sayError(e) }).finally(() => { running.current = false; setBusy(false) })
  }
  return { submit, busy, error, at: (field) => (error?.attr === field ? error.message : null) }
}

// Refused shows why a form was refused, unless one of its fields does.
export function Refused({ error, fields = [] }: { error: ApiError | null; fields?: string[] }) {
  return error && !fields.includes(error.attr ?? '') ? <p class="field-error" role="alert">{error.message}</p> : null
}

const day = 86_400_000

// Ends chooses when a key ends: its value is the number of days, or empty for never.
export function Ends({ id, value, onChange }: { id: string; value: string; onChange: (value: string) => void }) {
  return (
    <div class="field">
      <label for={id}>Ends</label>
      <select id={id} value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        {personalKey() ? <><option value="">With the key you work with</option><option value="never">Never</option></> : <option value="">Never</option>}
        <option value="7">In 7 days</option><option value="30">In 30 days</option><option value="90">In 90 days</option><option value="365">In a year</option>
      </select>
    </div>
  )
}

// endOf returns the field expires_at for a choice of Ends.
export function endOf(choice: string, now = Date.now()): { expires_at?: string | null } {
  if (choice === '') return {}
  return { expires_at: choice === 'never' ? null : new Date(now + Number(choice) * day).toISOString() }
}
