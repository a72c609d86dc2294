// The properties of a person, a group or an event.
import { useState } from 'preact/hooks'
import { wasRounded } from '../../api/json'
import { CopyButton } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { propertiesOf, type Property } from './words'

const manyProperties = 12

// Properties shows values in a table. answer is what the values came in: it tells whether a
// number was too large for JavaScript.
export function Properties({ values, answer, what = 'person' }: { values: Record<string, unknown>; answer?: object | undefined; what?: string }) {
  const [text, setText] = useState('')
  const all = propertiesOf(values)
  const wanted = text.trim().toLowerCase()
  const shown = wanted ? all.filter((p) => p.name.toLowerCase().includes(wanted) || p.text.toLowerCase().includes(wanted)) : all
  if (all.length === 0) return <p class="no-properties muted">This {what} has no properties.</p>
  return (
    <div class="properties">
      {all.length > manyProperties && (
        <div class="filters"><div class="search"><Icon name="search" /><input type="search" aria-label="Search the properties" placeholder={`Search ${all.length} properties`} value={text} onInput={(e) => setText(e.currentTarget.value)} /></div></div>
      )}
      <dl>{shown.map((p) => <Row key={p.name} property={p} />)}</dl>
      {shown.length === 0 && <p class="no-properties muted">No properties match.</p>}
      {answer && wasRounded(answer) && <p class="hint">A number here has more digits than a browser can hold; it is shown rounded.</p>}
    </div>
  )
}

function Row({ property: p }: { property: Property }) {
  const [open, setOpen] = useState(false)
  const folded = p.long && !open
  return (
    <div class="property">
      <dt class="mono">{p.name}</dt>
      <dd>
        <div class={`property-value mono ${p.kind} ${folded ? 'folded' : ''}`}>{p.text === '' ? <span class="faint">empty text</span> : p.text}</div>
        {p.long && <button type="button" class="link small" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? 'Show less' : 'Show all'}</button>}
      </dd>
      <dd class="property-copy"><CopyButton text={p.text} label={`Copy ${p.name}`} /></dd>
    </div>
  )
}
