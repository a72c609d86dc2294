// The form of a config, made from the JSON Schema of the plugin. What it has no field for
// is edited as JSON.
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ApiError } from '../../api/client'
import { Field } from '../../ui/basics'
import { kindOf, labelOf, orderOf, stored, type Node } from './shape'

// useRefused leads to the field that the server refuses.
export function useRefused(error: ApiError | null): void {
  useEffect(() => { if (error?.attr) document.querySelector<HTMLElement>('.config [aria-invalid]')?.focus() }, [error])
}

// hasField reports whether the form has a field that shows an error.
export function hasField(schema: unknown, attr: string): boolean {
  const [root, name = ''] = attr.split('.')
  return root === 'config' && name in ((schema as Node | null)?.properties ?? {})
}

interface Props { schema: Node; value: Record<string, unknown>; error: { attr: string; text: string } | null; onChange: (value: Record<string, unknown>) => void; at?: string }

export function Form({ schema, value, error, onChange, at = 'config' }: Props) {
  const required = schema.required ?? []
  const names = orderOf(schema)
  if (names.length === 0) return <p class="faint">This plugin has no options.</p>
  return (
    <div class="config-form">
      {names.map((name) => {
        const node = schema.properties?.[name] ?? {}
        const set = (v: unknown) => {
          const others = Object.entries(value).filter(([key]) => key !== name)
          onChange(Object.fromEntries(v === undefined ? others : [...others, [name, v]]))
        }
        return <Option key={name} name={name} at={`${at}.${name}`} node={node} required={required.includes(name)} value={value[name]} error={error} onChange={set} />
      })}
    </div>
  )
}

interface OptionProps { name: string; at: string; node: Node; required: boolean; value: unknown; error: Props['error']; onChange: (value: unknown) => void }

function Option({ name, at, node, required, value, error, onChange }: OptionProps) {
  const id = at.replaceAll('.', '-')
  const kind = kindOf(node)
  const wrong = error && (error.attr === at || error.attr.startsWith(at + '.')) ? error.text : null
  const invalid = wrong ? { 'aria-invalid': true, 'aria-describedby': `${id}-error` } as const : {}
  const shown = typeof node.default === 'string' ? node.default : JSON.stringify(node.default)
  const hint = [node.description, shown && !required && kind !== 'enum' && kind !== 'boolean' ? `Default: ${shown}.` : ''].filter(Boolean).join(' ')
  const words = labelOf(name)
  const label = required ? `${words} (required)` : words
  if (kind === 'object') {
    return (
      <fieldset class="config-group"><legend>{words}</legend>{hint && <p class="hint">{hint}</p>}
        <Form schema={node} value={(value ?? {}) as Record<string, unknown>} error={error} at={at} onChange={(v) => onChange(Object.keys(v).length ? v : undefined)} />
      </fieldset>
    )
  }
  if (kind === 'boolean') {
    return (
      <div class="field">
        <label class="check" for={id}><input id={id} type="checkbox" checked={(value ?? node.default ?? false) === true} onChange={(e) => onChange(e.currentTarget.checked)} {...invalid} /> {words}</label>
        {wrong ? <p class="field-error" id={`${id}-error`} role="alert">{wrong}</p> : hint && <p class="hint">{hint}</p>}
      </div>
    )
  }
  return <Field id={id} label={label} hint={hint} error={wrong}><Input id={id} name={name} required={required} kind={kind} node={node} value={value} invalid={invalid} onChange={onChange} /></Field>
}

function Input({ id, name, required, kind, node, value, invalid, onChange }: { id: string; name: string; required: boolean; kind: string; node: Node; value: unknown; invalid: object; onChange: (value: unknown) => void }) {
  const text = value === undefined || value === null ? '' : String(value)
  switch (kind) {
    case 'enum':
      return <select id={id} value={text} onChange={(e) => { const v = e.currentTarget.value; onChange(v === '' ? undefined : node.enum?.find((o) => String(o) === v)) }} {...invalid}><option value="">{node.default === undefined ? 'Choose' : `Default (${String(node.default)})`}</option>{node.enum?.map((o) => <option key={String(o)} value={String(o)}>{String(o)}</option>)}</select>
    case 'secret':
      return <Secret id={id} name={name} required={required} value={value} text={text} invalid={invalid} onChange={onChange} />
    case 'number':
      return <input id={id} inputMode="decimal" value={text} placeholder={node.default === undefined ? '' : String(node.default)} onInput={(e) => { const t = e.currentTarget.value.trim(); onChange(t === '' ? undefined : Number.isFinite(Number(t)) ? Number(t) : t) }} {...invalid} />
    case 'list':
      return <textarea id={id} rows={3} placeholder="One per line" value={Array.isArray(value) ? value.join('\n') : ''} onInput={(e) => { const t = e.currentTarget.value; onChange(t === '' ? undefined : t.split('\n')) }} {...invalid} />
    case 'json':
      return <JSONInput id={id} value={value} invalid={invalid} onChange={onChange} />
  }
  return <input id={id} value={text} placeholder={node.default === undefined ? '' : String(node.default)} onInput={(e) => onChange(e.currentTarget.value === '' ? undefined : e.currentTarget.value)} {...invalid} />
}

function Secret({ id, name, required, value, text, invalid, onChange }: { id: string; name: string; required: boolean; value: unknown; text: string; invalid: object; onChange: (value: unknown) => void }) {
  const [replacing, setReplacing] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => { if (replacing) input.current?.focus() }, [replacing])
  if (value === stored) {
    return (
      <div class="row">
        <span class="tag ok">Set</span>
        <button type="button" class="link" id={id} aria-label={`Replace ${labelOf(name)}`} onClick={() => { setReplacing(true); onChange(undefined) }}>Replace</button>
        {!required && <button type="button" class="link" aria-label={`Remove ${labelOf(name)}`} onClick={() => onChange(undefined)}>Remove</button>}
      </div>
    )
  }
  return <input ref={input} id={id} type="password" autocomplete="new-password" value={text} onInput={(e) => onChange(e.currentTarget.value || undefined)} {...invalid} />
}

function JSONInput({ id, value, invalid, onChange }: { id: string; value: unknown; invalid: object; onChange: (value: unknown) => void }) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2))
  const take = (t: string) => {
    setText(t)
    try { onChange(t.trim() === '' ? undefined : JSON.parse(t)) } catch { onChange(t) } // the server says that it must be something else
  }
  return <textarea id={id} class="mono" rows={4} placeholder="JSON" value={text} onInput={(e) => take(e.currentTarget.value)} {...invalid} />
}
