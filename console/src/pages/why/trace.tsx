// The trace of one flag as a tree: what the evaluator checked, in its order.
import type { Explanation, ExplainedFilter, ExplainedSet } from '../../api/types'
import { Tag } from '../../ui/basics'
import { Icon } from '../../ui/icon'
import { operatorOf, valueText } from '../flags/words'
import { Value } from './explained'

const gateWords: Record<string, string> = { active: 'is active', contexts: 'is for this client', definition: 'has a valid definition', enrolment: 'early access', holdout: 'holdout', conditions: 'conditions' }
const sources: Record<string, string> = {
  override: 'from the request', location: 'from the address', stored: 'stored', missing: 'not known', identity: 'the identity', several: 'several properties', cohort: 'the cohort', flag: 'another flag', unreadable: 'not readable',
}

export function Trace({ explanation: e }: { explanation: Explanation }) {
  return (
    <div class="trace">
      <p class="muted small">Version {e.version}; {e.subject} <span class="mono">{e.identifier.value}</span> ({e.identifier.source.replaceAll('_', ' ')}).{e.payload && <> Payload <code>{e.payload}</code></>}</p>
      <ul class="tree">
        {(e.gates ?? []).filter((g) => g.name !== 'conditions').map((g) => <li key={g.name}><Mark result={g.result === 'passed' ? 'true' : g.result === 'failed' ? 'unknown' : 'decided'} /> {gateWords[g.name] ?? g.name}{g.detail && <span class="muted">: {g.detail}</span>}</li>)}
        {(e.conditions ?? []).map((c) => <Condition key={c.index} set={c} />)}
        {e.variant && (
          <li>
            <Mark result="decided" /> variant <b class="mono">{e.variant.key}</b>{e.variant.override ? ' by the condition' : ''}
            {e.variant.hash !== undefined && <Bucket hash={e.variant.hash} intervals={e.variant.intervals ?? []} />}
          </li>
        )}
        {(e.depends_on ?? []).map((d) => <li key={d.key}><Mark result="flag" /> reads flag <b class="mono">{d.key}</b> <Value flag={d} /><Trace explanation={d} /></li>)}
      </ul>
    </div>
  )
}

function Mark({ result }: { result: string }) {
  const name = result === 'true' ? 'check' : result === 'false' ? 'close' : result === 'decided' ? 'right' : result === 'flag' ? 'flag' : 'clock'
  const words = { true: 'holds', false: 'does not hold', unknown: 'not known', not_reached: 'not reached', decided: 'decided', flag: 'flag' }[result] ?? result
  return <span class={`mark-${result}`}><Icon name={name} /><span class="visually-hidden">{words}: </span></span>
}

function Condition({ set }: { set: ExplainedSet }) {
  const share = set.rollout_percentage ?? 100
  const filters = set.filters ?? []
  return (
    <li class={set.result === 'not_reached' ? 'off' : ''}>
      <Mark result={set.result} /> condition {set.index + 1}{set.result === 'not_reached' ? <span class="muted">: not reached</span> : filters.length === 0 && <span class="muted">: everyone</span>}
      <ul>
        {filters.map((f, i) => <Filter key={i} filter={f} />)}
        {set.result !== 'not_reached' && (share < 100 || set.hash !== undefined) && (
          <li>
            {set.hash === undefined ? <Mark result="not_reached" /> : <Mark result={set.hash * 100 <= share ? 'true' : 'false'} />} {share}% rollout
            {set.hash !== undefined && <Bucket hash={set.hash} threshold={set.threshold ?? share / 100} />}
          </li>
        )}
      </ul>
    </li>
  )
}

function Filter({ filter: f }: { filter: ExplainedFilter }) {
  const operator = operatorOf(f.operator)
  return (
    <li>
      <Mark result={f.result} />{' '}
      {f.type === 'cohort' ? <>{f.negated || f.operator === 'not_in' ? 'not in' : 'in'} cohort <b>{valueText(f.expected)}</b></> : <><b class="mono">{f.key}</b> {operator.words} {operator.value !== 'none' && <b class="mono">{valueText(f.expected)}</b>}</>}
      <span class="muted">
        {f.hidden ? ' value hidden: the key lacks the right to read persons' : f.source === 'missing' ? ' not known for this person' : f.seen !== null && f.seen !== undefined && f.type !== 'cohort' ? <>: they have <span class="mono">{valueText(f.seen)}</span> ({sources[f.source] ?? f.source})</> : null}
        {f.plugin && <> by plugin {f.plugin}</>}{f.why && <>: {f.why}</>}
      </span>
      {f.filters?.length ? <ul>{f.filters.map((c, i) => <Filter key={i} filter={c} />)}</ul> : null}
    </li>
  )
}

// Bucket shows where the hash of the person falls.
function Bucket({ hash, threshold, intervals }: { hash: number; threshold?: number; intervals?: { key: string; from: number; to: number; picked: boolean }[] }) {
  const parts = intervals?.map((v) => ({ from: v.from, to: v.to, picked: v.picked })) ?? [{ from: 0, to: threshold ?? 1, picked: hash <= (threshold ?? 1) }]
  return (
    <span class="bucket">
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={`Hash ${hash.toFixed(4)}${threshold !== undefined ? `, threshold ${threshold}` : ''}`}>
        <rect class="all" width="100" height="8" />
        {parts.map((p, i) => <rect key={i} class={p.picked ? 'picked' : 'other'} x={100 * p.from} width={Math.max(0, 100 * (p.to - p.from) - (intervals ? 0.5 : 0))} height="8" />)}
        <rect class="here" x={Math.min(99.2, 100 * hash)} width="0.8" height="8" />
      </svg>
      <Tag>hash {hash.toFixed(3)}</Tag>
    </span>
  )
}
