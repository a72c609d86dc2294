// Choosing one of many things by name: what is typed is searched on the server.
import { useId, useRef, useState } from 'preact/hooks'
import { useData, useDebounced } from '../app/load'

export interface Choice { id: string; name: string }
export type Search = (text: string, signal: AbortSignal) => Promise<{ count: number; results: Choice[] }>

// Pick is a field with a list of what fits the text. source names what is searched, for the
// memory of answers. shown is the name of what is chosen now.
export function Pick({ label, source, search, value, shown, none, onPick }: { label: string; source: string; search: Search; value: string; shown: string; none: string; onPick: (c: Choice) => void }) {
  const id = useId()
  const [open, setOpen] = useState(false)
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const input = useRef<HTMLInputElement>(null)
  const typed = text.trim()
  const wanted = useDebounced(typed, 150)
  const { data, error } = useData(open ? `${source}/${wanted}` : '', (signal) => search(wanted, signal))
  const words = typed.toLowerCase()
  const found = (data?.results ?? []).filter((c) => wanted === typed || c.name.toLowerCase().includes(words)) // an older answer may not fit
  const chosen = Math.min(at, found.length - 1)
  const show = () => { if (!open) { setOpen(true); setText(''); setAt(0) } }
  const pick = (c: Choice | undefined) => { if (c) { setOpen(false); onPick(c) } }
  const press = (e: KeyboardEvent) => {
    if (e.key === 'Escape' && open) { e.stopPropagation(); setOpen(false) }
    else if (e.key === 'ArrowDown' && !open) show()
    else if (e.key === 'ArrowDown') setAt(Math.min(chosen + 1, found.length - 1))
    else if (e.key === 'ArrowUp' && open) setAt(Math.max(chosen - 1, 0))
    else if (e.key === 'Enter' && open) pick(found[chosen])
    else return
    e.preventDefault()
  }
  const hint = error ? error.message : !data ? 'Searching…' : found.length === 0 ? (typed ? 'Nothing matches.' : none) : data.count > found.length && wanted === typed ? `${(data.count - found.length).toLocaleString('en')} more: type to search` : ''
  return (
    <span class="pick">
      <input ref={input} role="combobox" aria-label={label} aria-expanded={open} aria-controls={id} aria-autocomplete="list" aria-activedescendant={open && found[chosen] ? `${id}-${chosen}` : undefined} autocomplete="off" spellcheck={false}
        placeholder={open && shown ? shown : `Choose a ${label.toLowerCase()}`} value={open ? text : shown} onFocus={show} onClick={show} onBlur={() => setOpen(false)} onKeyDown={press} onInput={(e) => { setOpen(true); setText(e.currentTarget.value); setAt(0) }} />
      {open && (
        <div class="pick-list" onMouseDown={(e) => e.preventDefault()}>
          <ul id={id} role="listbox" aria-label="Matches">
            {found.map((c, i) => <li key={c.id} id={`${id}-${i}`} role="option" aria-selected={i === chosen} class={c.id === value ? 'now' : ''} onMouseMove={() => setAt(i)} onClick={() => pick(c)}>{c.name}</li>)}
          </ul>
          {hint && <p class="faint small" role="status">{hint}</p>}
        </div>
      )}
    </span>
  )
}
