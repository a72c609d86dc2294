// Variants with a bar that sums to 100, and payloads.
import type { Variant } from '../../api/types'
import { Icon } from '../../ui/icon'
import { jsonProblem, spread, variantSum, type Draft } from './draft'
import { isShare, Percent } from './percent'

interface Props { draft: Draft; problems: Record<string, string>; onChange: (d: Draft) => void }

// drawn is the share of a variant in the bar; none while it is no share.
const drawn = (v: Variant) => (isShare(v.rollout_percentage) ? v.rollout_percentage ?? 0 : 0)

export function Variants({ draft, problems, onChange }: Props) {
  const set = (variants: Variant[]) => onChange({ ...draft, variants })
  const change = (i: number, changes: Partial<Variant>) => {
    const renamed = changes.key
    const old = draft.variants[i]?.key
    const variants = draft.variants.map((v, at) => (at === i ? { ...v, ...changes } : v))
    if (renamed === undefined || old === undefined) return set(variants)
    const payloads = Object.fromEntries(Object.entries(draft.payloads).map(([name, text]) => [name === old ? renamed : name, text]))
    const groups = draft.groups.map((g) => (g.variant === old ? { ...g, variant: renamed } : g))
    onChange({ ...draft, variants, payloads, groups })
  }
  const add = () => {
    const names = draft.variants.length ? [`variant-${draft.variants.length}`] : ['control', 'test']
    set(spread([...draft.variants, ...names.map((key) => ({ key, rollout_percentage: 0 }))]))
  }
  const sum = variantSum(draft.variants)
  const wrong = problems.variants !== undefined
  const badKey = (v: Variant) => v.key === '' || draft.variants.some((o) => o !== v && o.key === v.key)
  if (draft.variants.length === 0) {
    return <div class="row"><button type="button" class="button" onClick={add}><Icon name="plus" /> Add variants</button><span class="muted small">Without variants the flag is on or off.</span></div>
  }
  return (
    <section class="card card-body variants" aria-label="Variants">
      <header class="row"><h2>Variants</h2><span class={sum === 100 ? 'muted' : 'field-error'}>{Number.isNaN(sum) ? '' : `sum ${sum}%`}</span><button type="button" class="button quiet small push" onClick={() => set(spread(draft.variants))}>Same shares</button></header>
      <svg class="variant-bar" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={draft.variants.map((v) => `${v.key} ${v.rollout_percentage ?? 0}%`).join(', ')}>
        {draft.variants.map((v, i) => {
          const before = draft.variants.slice(0, i).reduce((n, o) => n + drawn(o), 0)
          return <rect key={i} class={`shade-${i % 5}`} x={before} width={Math.max(0, drawn(v) - 0.4)} height="6" />
        })}
      </svg>
      {problems.variants && <p class="field-error" role="alert">{problems.variants}</p>}
      {draft.variants.map((v, i) => (
        <div class="variant" key={i}>
          <svg class="dot" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true"><circle class={`shade-${i % 5}`} cx="5" cy="5" r="5" /></svg>
          <input class="mono" aria-label="Key of the variant" value={v.key} placeholder="key" aria-invalid={wrong && badKey(v)} onInput={(e) => change(i, { key: e.currentTarget.value })} />
          <input aria-label={`Description of ${v.key}`} value={v.name ?? ''} placeholder="description" onInput={(e) => change(i, { name: e.currentTarget.value })} />
          <Percent label={`Share of ${v.key}`} value={v.rollout_percentage ?? 0} invalid={wrong && !draft.variants.some(badKey)} onChange={(n) => change(i, { rollout_percentage: n })} />
          <button type="button" class="icon-button" aria-label={`Remove ${v.key}`} onClick={() => set(draft.variants.filter((_, at) => at !== i))}><Icon name="trash" /></button>
          <Payload name={v.key} label={`Payload of ${v.key}`} draft={draft} problem={problems[`payload-${v.key}`]} onChange={onChange} />
        </div>
      ))}
      <button type="button" class="button quiet small add" onClick={add}><Icon name="plus" /> Add a variant</button>
    </section>
  )
}

// Payload edits the JSON text of a variant, and checks it while typing.
export function Payload({ name, label, draft, problem, onChange }: { name: string; label: string; draft: Draft; problem: string | undefined; onChange: (d: Draft) => void }) {
  const text = draft.payloads[name] ?? ''
  const set = (value: string) => onChange({ ...draft, payloads: { ...draft.payloads, [name]: value } })
  const wrong = problem ?? jsonProblem(text)
  const id = `payload-${name}`
  const tidy = () => { try { set(JSON.stringify(JSON.parse(text), null, 2)) } catch { /* the problem is shown */ } }
  return (
    <div class="payload">
      <div class="row"><label class="label" for={id}>{label}</label>{text && !wrong && <button type="button" class="link small" onClick={tidy}>Tidy</button>}</div>
      <textarea id={id} class="mono" rows={Math.min(10, Math.max(1, text.split('\n').length))} placeholder="none, or a JSON value" spellcheck={false} value={text} aria-invalid={Boolean(wrong)} onInput={(e) => set(e.currentTarget.value)} />
      {wrong && <p class="field-error">{wrong}</p>}
    </div>
  )
}
