// The differences before they are saved, and what both sides changed if someone else
// saved first.
import { useState } from 'preact/hooks'
import type { Flag } from '../../api/types'
import { Dialog } from '../../ui/dialog'
import { changedParts, lines, partWords, type Draft, type Merge, type Part } from './draft'

interface Props { read: { base: Draft; flag: Flag; merge?: Merge }; draft: Draft; busy: boolean; onSave: (final: Draft) => void; onClose: () => void }

export function Review({ read, draft, busy, onSave, onClose }: Props) {
  const [theirs, setTheirs] = useState<Set<Part>>(new Set())
  const final = [...theirs].reduce<Draft>((d, part) => ({ ...d, [part]: read.base[part] }), draft)
  const clashes = new Set(read.merge?.clashes)
  const shown = changedParts(read.base, draft)
  const by = read.flag.last_modified_by
  const choose = (part: Part, their: boolean) => {
    const next = new Set(theirs)
    if (their) next.add(part)
    else next.delete(part)
    setTheirs(next)
  }
  return (
    <Dialog title={read.merge ? 'Someone else saved first' : `Save ${read.flag.key}?`} onClose={onClose} wide>
      {read.merge && (
        <p class="muted">{by ? by.first_name || by.email : 'Another change'} saved version {read.flag.version}. {clashes.size ? 'Both of you changed the marked parts: choose one of each.' : 'Your changes do not touch theirs: they are joined.'}</p>
      )}
      <div class="review">
        {shown.map((part) => (
          <section key={part} class={clashes.has(part) ? 'clash' : ''}>
            <h3>{partWords[part]}</h3>
            <Difference before={lines(read.base, part)} after={lines(draft, part)} />
            {clashes.has(part) && (
              <div class="row" role="radiogroup" aria-label={partWords[part]}>
                <label class="check"><input type="radio" name={part} checked={!theirs.has(part)} onChange={() => choose(part, false)} /> Mine</label>
                <label class="check"><input type="radio" name={part} checked={theirs.has(part)} onChange={() => choose(part, true)} /> Theirs</label>
              </div>
            )}
          </section>
        ))}
      </div>
      <footer>
        <button type="button" class="button" onClick={onClose}>Go on editing</button>
        <button type="button" class="button primary" disabled={busy || changedParts(read.base, final).length === 0} onClick={() => onSave(final)}>Save</button>
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
