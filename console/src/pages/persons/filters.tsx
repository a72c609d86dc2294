// Filters of person properties: those that hold, and a form for one more.
import { useId, useState } from 'preact/hooks'
import type { PropertyFilter } from '../../api/types'
import { Icon } from '../../ui/icon'
import { NameInput } from '../../ui/names'
import { useValues } from '../../ui/suggest'
import { filterWords, operatorOf, operators } from '../flags/words'

const offered = operators.filter((o) => o.value !== 'range')

export function FilterBar({ project, filters, onChange }: { project: string; filters: PropertyFilter[]; onChange: (filters: PropertyFilter[]) => void }) {
  const [adding, setAdding] = useState(false)
  return (
    <div class="filter-bar">
      {filters.map((f, i) => (
        <span key={i} class="filter-chip">
          <span>{filterWords(f)}</span>
          <button type="button" aria-label={`Remove the filter ${filterWords(f)}`} onClick={() => onChange(filters.filter((_, at) => at !== i))}><Icon name="close" /></button>
        </span>
      ))}
      {adding
        ? <Form project={project} onAdd={(f) => { onChange([...filters, f]); setAdding(false) }} onCancel={() => setAdding(false)} />
        : <button type="button" class="button quiet small" onClick={() => setAdding(true)}><Icon name="plus" /> Filter by property</button>}
    </div>
  )
}

function Form({ project, onAdd, onCancel }: { project: string; onAdd: (f: PropertyFilter) => void; onCancel: () => void }) {
  const id = useId()
  const [key, setKey] = useState('')
  const [name, setName] = useState('exact')
  const [value, setValue] = useState('')
  const operator = operatorOf(name)
  const values = useValues({ of: 'persons', key }, value)
  const add = () => {
    if (operator.value === 'none') onAdd({ key, type: 'person', operator: name, value: null })
    else onAdd({ key, type: 'person', operator: name, value: operator.value === 'list' ? [value] : value })
  }
  return (
    <form class="filter-form" onSubmit={(e) => { e.preventDefault(); add() }} onKeyDown={(e) => { if (e.key === 'Escape') onCancel() }}>
      <NameInput project={project} kind="person property" class="mono" aria-label="Property" placeholder="plan" required value={key} inputRef={focusOnce} onText={setKey} />
      <select aria-label="Operator" value={name} onChange={(e) => setName(e.currentTarget.value)}>{offered.map((o) => <option key={o.name} value={o.name}>{o.words}</option>)}</select>
      {operator.value !== 'none' && <input class="mono" aria-label="Value" list={`${id}-values`} placeholder={operator.value === 'date' ? '2026-01-31 or -7d' : operator.value === 'number' ? '10' : 'pro'} required autocomplete="off" spellcheck={false} value={value} onInput={(e) => setValue(e.currentTarget.value)} />}
      <datalist id={`${id}-values`}>{values.map((v) => <option key={v} value={v} />)}</datalist>
      <button type="submit" class="button primary">Add</button>
      <button type="button" class="button quiet" onClick={onCancel}>Cancel</button>
    </form>
  )
}

// focusOnce puts the focus into what has just appeared.
function focusOnce(el: HTMLInputElement | null): void {
  if (el && !el.dataset.focused) { el.dataset.focused = '1'; el.focus() }
}
