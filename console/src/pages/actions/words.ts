// Actions in plain words.
import type { ActionFilter, ChatDestination, PropertyFilter } from '../../api/types'
import { filterWords, operatorOf, valueText } from '../flags/words'
import type { StepDraft } from './draft'

export const matchingWords = { contains: 'contains', exact: 'is', regex: 'matches the pattern' } as const

const sources: Record<string, string> = { person: 'of the person', group: 'of the group', element: 'of the element' }

export function actionFilterWords(f: ActionFilter): string {
  if (f.type === 'feature') return `flag ${f.key} ${operatorOf(f.operator).words} ${valueText(f.value)}`
  const words = filterWords(f as PropertyFilter)
  const of = sources[f.type ?? '']
  return of && f.key ? words.replace(f.key, () => `${f.key} ${of}`) : words
}

// stepWords says which events match a step: "paid where URL contains /checkout and plan is pro".
export function stepWords(s: StepDraft): string {
  const where: string[] = []
  if (s.url) where.push(`URL ${matchingWords[s.url_matching]} ${s.url}`)
  if (s.tag_name) where.push(`element is ${s.tag_name}`)
  if (s.text) where.push(`text ${matchingWords[s.text_matching]} ${s.text}`)
  if (s.href) where.push(`link ${matchingWords[s.href_matching]} ${s.href}`)
  if (s.selector) where.push(`selector ${s.selector}`)
  where.push(...s.properties.map(actionFilterWords))
  return (s.event || 'any event') + (where.length ? ` where ${where.join(' and ')}` : '')
}

// actionWords says what counts, in one line.
export function actionWords(steps: StepDraft[]): string { return steps.length ? steps.map(stepWords).join(', or ') : 'nothing: it has no events yet' }

export function destinationWords(d: ChatDestination): string {
  return `${d.notifier}${d.to ? ` → ${d.to}` : ''}${d.format ? `: ${d.format}` : ''}`
}

// previewWords says how many of the newest events match.
export function previewWords(p: { checked: number; matched: number; unknown: number }, only: string): string {
  if (p.checked === 0) return 'No such event has been seen yet.'
  const events = (p.checked === 1 ? 'the newest event' : `the newest ${p.checked} events`) + (only && ` named ${only}`)
  const unknown = p.unknown ? ` ${p.unknown} ${p.unknown === 1 ? 'is' : 'are'} not decided.` : ''
  if (p.matched === p.checked) return `${p.checked === 1 ? `The${events.slice(3)} matches` : `All of ${events} match`}.`
  return `${p.matched === 0 ? 'None' : p.matched} of ${events} ${p.matched > 1 ? 'match' : 'matches'}.${unknown}`
}
