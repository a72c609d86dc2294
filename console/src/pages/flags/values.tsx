// What a property is compared with: a field for each kind of operator.
import { useId, useState } from 'preact/hooks'
import { Icon } from '../../ui/icon'
import type { Operator } from './words'

interface Props { kind: Operator['value']; value: unknown; suggestions: string[]; onChange: (value: unknown) => void }

export function Values({ kind, value, suggestions, onChange }: Props) {
  const id = useId()
  if (kind === 'none') return <span class="value" />
  const options = <datalist id={id}>{suggestions.map((s) => <option key={s} value={s} />)}</datalist>
  if (kind === 'list') {
    const list = (Array.isArray(value) ? value : value === null || value === undefined || value === '' ? [] : [value]).map(String)
    return <Chips list={list} options={id} onChange={onChange}>{options}</Chips>
  }
  if (kind === 'range') {
    const [from, to] = Array.isArray(value) ? value : ['', '']
    return (
      <span class="value range">
        <input type="number" step="any" aria-label="From" value={String(from ?? '')} onInput={(e) => onChange([numberOf(e.currentTarget.value), to])} /> and
        <input type="number" step="any" aria-label="To" value={String(to ?? '')} onInput={(e) => onChange([from, numberOf(e.currentTarget.value)])} />
      </span>
    )
  }
  const text = Array.isArray(value) ? String(value[0] ?? '') : String(value ?? '')
  const placeholder = kind === 'date' ? '2026-01-31 or -7d' : kind === 'number' ? 'number' : 'text'
  return (
    <span class="value">
      <input aria-label="Value" list={id} inputMode={kind === 'number' ? 'decimal' : 'text'} placeholder={placeholder} value={text} onInput={(e) => onChange(kind === 'number' ? numberOf(e.currentTarget.value) : e.currentTarget.value)} />
      {options}
    </span>
  )
}

// numberOf keeps text that is not a number yet.
function numberOf(text: string): number | string { return text.trim() !== '' && Number.isFinite(Number(text)) && String(Number(text)) === text.trim() ? Number(text) : text }

export function Chips({ list, options, onChange, children, label = 'Value', placeholder = 'add a value' }: { list: string[]; options?: string; onChange: (list: string[]) => void; children?: preact.ComponentChildren; label?: string; placeholder?: string }) {
  const [text, setText] = useState('')
  const add = (entered: string) => {
    const added = entered.split(',').map((s) => s.trim()).filter((s) => s && !list.includes(s))
    if (added.length) onChange([...list, ...added])
    setText('')
  }
  const press = (e: KeyboardEvent) => {
    if (e.key === 'Enter' || (e.key === ',' && text.trim())) {
      e.preventDefault()
      add(text)
    } else if (e.key === 'Backspace' && text === '' && list.length) onChange(list.slice(0, -1))
  }
  return (
    <span class="value chips">
      {list.map((v) => <span key={v} class="chip">{v}<button type="button" aria-label={`Remove ${v}`} onClick={() => onChange(list.filter((o) => o !== v))}><Icon name="close" /></button></span>)}
      <input aria-label={label} list={options} placeholder={list.length ? '' : placeholder} value={text} onKeyDown={press} onBlur={() => add(text)}
        onInput={(e) => { const v = e.currentTarget.value; if ((e as InputEvent).inputType === 'insertReplacementText') add(v); else setText(v) }} />
      {children}
    </span>
  )
}
