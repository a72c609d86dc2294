// What changes before it is saved, part by part, and what both sides changed if someone else
// saved first; and what an entry of a history changed.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { ActivityEntry } from '../api/types'
import { Time } from './basics'
import { Dialog } from './dialog'
import './review.css'

// Parts says how a draft D is compared: its parts, their names, and their lines.
export interface Parts<D extends object, P extends keyof D & string> {
  partWords: Record<P, string>
  changedParts: (from: D, to: D) => P[]
  lines: (d: D, part: P) => string[]
}

interface Props<D extends object, P extends keyof D & string> {
  name: string
  of: Parts<D, P>
  base: D
  draft: D
  merge?: { clashes: P[] } | undefined
  saved: string // who saved which version first
  busy: boolean
  onSave: (final: D) => void
  onClose: () => void
}

// Review shows the parts that a draft changes; of a part that both sides changed, one is chosen.
export function Review<D extends object, P extends keyof D & string>({ name, of, base, draft, merge, saved, busy, onSave, onClose }: Props<D, P>) {
  const [theirs, setTheirs] = useState<Set<P>>(new Set())
  const final = [...theirs].reduce<D>((d, part) => ({ ...d, [part]: base[part] }), draft)
  const clashes = new Set(merge?.clashes)
  const choose = (part: P, their: boolean) => {
    const next = new Set(theirs)
    if (their) next.add(part)
    else next.delete(part)
    setTheirs(next)
  }
  return (
    <Dialog title={merge ? 'Someone else saved first' : `Save ${name}?`} onClose={onClose} wide>
      {merge && <p class="muted">{saved} {clashes.size ? 'Both of you changed the marked parts: choose one of each.' : 'Your changes do not touch theirs: they are joined.'}</p>}
      <div class="review">
        {of.changedParts(base, draft).map((part) => (
          <section key={part} class={clashes.has(part) ? 'clash' : ''}>
            <h3>{of.partWords[part]}</h3>
            <Difference before={of.lines(base, part)} after={of.lines(draft, part)} />
            {clashes.has(part) && (
              <div class="row" role="radiogroup" aria-label={of.partWords[part]}>
                <label class="check"><input type="radio" name={part} checked={!theirs.has(part)} onChange={() => choose(part, false)} /> Mine</label>
                <label class="check"><input type="radio" name={part} checked={theirs.has(part)} onChange={() => choose(part, true)} /> Theirs</label>
              </div>
            )}
          </section>
        ))}
      </div>
      <footer>
        <button type="button" class="button" onClick={onClose}>Go on editing</button>
        <button type="button" class="button primary" disabled={busy || of.changedParts(base, final).length === 0} onClick={() => onSave(final)}>Save</button>
      </footer>
    </Dialog>
  )
}

// Difference shows the lines that are gone and new; those on both sides stay.
export function Difference({ before, after }: { before: string[]; after: string[] }) {
  const gone = before.filter((l) => !after.includes(l))
  return (
    <pre class="difference" tabIndex={0}>
      {gone.map((l) => <del key={l}>- {l}{'\n'}</del>)}
      {after.map((l) => (before.includes(l) ? <span key={l}>  {l}{'\n'}</span> : <ins key={l}>+ {l}{'\n'}</ins>))}
    </pre>
  )
}

// HistoryEntry says who did what and when; what it changed is inside.
export function HistoryEntry({ entry: e, words, children }: { entry: ActivityEntry; words: string; children: ComponentChildren }) {
  return (
    <li class="card">
      <div class="row"><b>{e.user.first_name || e.user.email || 'Guidon'}</b><span class="muted">{words}</span><span class="push muted small"><Time at={e.created_at} /></span></div>
      {children}
    </li>
  )
}
