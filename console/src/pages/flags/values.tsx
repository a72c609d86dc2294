// What a property is compared with: a field for each kind of operator.
import { useId, useState } from 'preact/hooks'
import { Icon } from '../../ui/icon'
import { useValues, type Property } from '../../ui/suggest'
import type { Operator } from './words'

const mostValues = 30

// valuesOf returns the values of each property in texts that a list can offer.
export function valuesOf(all: Record<string, unknown>[]): Map<string, string[]> {
  const values = new Map<string, string[]>()
  for (const properties of all) {
    for (const [name, value] of Object.entries(properties)) {
      if (value === null || typeof value === 'object' || String(value).length > 200) continue
      const seen = values.get(name) ?? []
      if (seen.length < mostValues && !seen.includes(String(value))) values.set(name, [...seen, String(value)])
    }
  }
  return values
}

// onTyped has the list with the text that is still being typed; null once there is none.
interface Props { kind: Operator['value']; value: unknown; suggestions: string[]; property?: Property | undefined; invalid?: boolean; onChange: (value: unknown) => void; onTyped?: (value: string[] | null) => void }

export function Values({ kind, value, suggestions, property, invalid, onChange, onTyped }: Props) {
  const id = useId()
  const [typed, setTyped] = useState<string | null>(null) // in the field with the focus
  const offered = useValues(property, kind === 'none' || kind === 'range' || kind === 'json' ? null : typed, suggestions)
  if (kind === 'none') return <span class="value" />
  const options = <datalist id={id}>{offered.map((s) => <option key={s} value={s} />)}</datalist>
  if (kind === 'list') {
    const list = (Array.isArray(value) ? value : value === null || value === undefined || value === '' ? [] : [value]).map(String)
    return <Chips list={list} options={id} invalid={invalid} onType={(text) => { setTyped(text); onTyped?.(text.trim() === '' ? null : withText(list, text)) }} onChange={onChange}>{options}</Chips>
  }
  if (kind === 'range') {
    const [from, to] = Array.isArray(value) ? value : ['', '']
    return (
      <span class="value range">
        <input type="number" step="any" aria-label="From" aria-invalid={invalid} value={String(from ?? '')} onInput={(e) => onChange([numberOf(e.currentTarget.value), to])} /> and
        <input type="number" step="any" aria-label="To" aria-invalid={invalid} value={String(to ?? '')} onInput={(e) => onChange([from, numberOf(e.currentTarget.value)])} />
      </span>
    )
  }
  if (kind === 'json') return <JSONValue value={value} invalid={invalid} onChange={onChange} />
  const text = Array.isArray(value) ? String(value[0] ?? '') : String(value ?? '')
  const placeholder = kind === 'date' ? '2026-01-31 or -7d' : kind === 'number' ? 'number' : 'text'
  return (
    <span class="value">
      <input aria-label="Value" list={id} aria-invalid={invalid} onFocus={() => setTyped(text)} inputMode={kind === 'number' ? 'decimal' : 'text'} placeholder={placeholder} value={text} onInput={(e) => { setTyped(e.currentTarget.value); onChange(kind === 'number' ? numberOf(e.currentTarget.value) : e.currentTarget.value) }} />
      {options}
    </span>
  )
}

// JSONValue keeps text that is not JSON yet; the server says what is wrong with it.
function JSONValue({ value, invalid, onChange }: { value: unknown; invalid: boolean | undefined; onChange: (value: unknown) => void }) {
  const [text, setText] = useState(typeof value === 'string' ? value : value === null || value === undefined || Array.isArray(value) && value.length === 0 ? '' : JSON.stringify(value))
  const change = (entered: string) => {
    setText(entered)
    try { onChange(JSON.parse(entered)) } catch { onChange(entered) }
  }
  return <span class="value"><input class="mono" aria-label="Value as JSON" aria-invalid={invalid} placeholder="{…}" spellcheck={false} value={text} onInput={(e) => change(e.currentTarget.value)} /></span>
}

// numberOf keeps text that is not a number yet.
function numberOf(text: string): number | string { return text.trim() !== '' && Number.isFinite(Number(text)) && String(Number(text)) === text.trim() ? Number(text) : text }

// withText returns a list with the values of a text that are new, split at commas.
export function withText(list: string[], text: string): string[] {
  return [...new Set([...list, ...text.split(',').map((s) => s.trim()).filter(Boolean)])]
}

export function Chips({ list, options, invalid, onType, onChange, children, label = 'Value', placeholder = 'add a value' }: { list: string[]; options?: string; invalid?: boolean | undefined; onType?: (text: string) => void; onChange: (list: string[]) => void; children?: preact.ComponentChildren; label?: string; placeholder?: string }) {
  const [text, setText] = useState('')
  const add = (entered: string) => {
    const joined = withText(list, entered)
    if (joined.length > list.length) onChange(joined)
    else if (entered) onType?.('')
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
      <input aria-label={label} list={options} aria-invalid={invalid} placeholder={list.length ? '' : placeholder} value={text} onKeyDown={press} onFocus={() => onType?.(text)} onBlur={() => add(text)}
        onInput={(e) => { const v = e.currentTarget.value; onType?.(v); if ((e as InputEvent).inputType === 'insertReplacementText') add(v); else setText(v) }} />
      {children}
    </span>
  )
}
