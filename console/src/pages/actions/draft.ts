// An action while it is being edited: pure functions from and to the API, and between.
import type { Action, ActionFilter, ActionStepWrite, ActionWrite, ChatDestination } from '../../api/types'
import { operatorOf } from '../flags/words'
import { destinationWords, stepWords } from './words'

// Conditions of a step on one text. An absent one is not shown; an empty one is, and must
// be filled in or removed.
export type TextField = 'url' | 'text' | 'href' | 'selector' | 'tag_name'
export type Matching = 'contains' | 'exact' | 'regex'
export interface StepDraft extends Partial<Record<TextField, string>> {
  id?: string
  name: string // kept; the page does not edit it
  event: string // empty: any event
  url_matching: Matching
  text_matching: Matching
  href_matching: Matching
  properties: ActionFilter[]
}

export interface Draft {
  name: string
  description: string
  tags: string[]
  steps: StepDraft[]
  post: boolean
  format: string
  destinations: ChatDestination[]
}
export type Part = keyof Draft
export const parts: Part[] = ['name', 'description', 'tags', 'steps', 'post', 'format', 'destinations']
export const partWords: Record<Part, string> = {
  name: 'Name', description: 'Description', tags: 'Tags', steps: 'What counts', post: 'Chat messages', format: 'Message', destinations: 'Destinations',
}

export const textFields: { field: TextField; label: string; matching?: 'url_matching' | 'text_matching' | 'href_matching'; placeholder: string }[] = [
  { field: 'url', label: 'URL', matching: 'url_matching', placeholder: '/checkout' },
  { field: 'text', label: 'Text of the element', matching: 'text_matching', placeholder: 'Sign up' },
  { field: 'href', label: 'Link of the element', matching: 'href_matching', placeholder: '/pricing' },
  { field: 'selector', label: 'CSS selector', placeholder: 'form button.primary' },
  { field: 'tag_name', label: 'Tag of the element', placeholder: 'button' },
]

export function emptyStep(event = ''): StepDraft {
  return { name: '', event, url_matching: 'contains', text_matching: 'exact', href_matching: 'exact', properties: [] }
}
export const emptyDraft: Draft = { name: '', description: '', tags: [], steps: [emptyStep()], post: false, format: '', destinations: [] }

type StepLike = { [K in keyof ActionStepWrite]?: unknown }

export function stepOf(s: StepLike): StepDraft {
  const text = (v: unknown) => (typeof v === 'string' ? v : '')
  const mode = (v: unknown, otherwise: Matching): Matching => (v === 'contains' || v === 'exact' || v === 'regex' ? v : otherwise)
  const step = emptyStep(text(s.event))
  for (const { field } of textFields) if (text(s[field])) step[field] = text(s[field])
  if (s.id) step.id = text(s.id)
  step.name = text(s.name)
  step.url_matching = mode(s.url_matching, 'contains')
  step.text_matching = mode(s.text_matching, 'exact')
  step.href_matching = mode(s.href_matching, 'exact')
  step.properties = Array.isArray(s.properties) ? (s.properties as ActionFilter[]) : []
  return step
}

export function draftOf(a: Action): Draft {
  return {
    name: a.name ?? '', description: a.description, tags: a.tags, steps: a.steps.map(stepOf), post: a.post_to_chat, format: a.chat_message_format,
    destinations: a.chat_destinations.map(destinationOf),
  }
}

// destinationOf has each field as text.
export function destinationOf(d: ChatDestination): ChatDestination { return { notifier: d.notifier, to: d.to ?? '', format: d.format ?? '' } }

// writeOf returns a step as the API takes it; what is empty is no condition.
export function writeOf(s: StepDraft): ActionStepWrite {
  return {
    ...(s.id && { id: s.id }), name: s.name || null, event: s.event || null, url: s.url || null, url_matching: s.url_matching,
    text: s.text || null, text_matching: s.text ? s.text_matching : null, href: s.href || null, href_matching: s.href ? s.href_matching : null,
    selector: s.selector || null, tag_name: s.tag_name || null, properties: s.properties.length ? s.properties : null,
  }
}

export function same(a: unknown, b: unknown): boolean { return JSON.stringify(a) === JSON.stringify(b) }

function value(d: Draft, part: Part): unknown {
  return part === 'steps' ? d.steps.map(writeOf) : part === 'destinations' ? d.destinations.map(destinationOf) : d[part]
}

export function changedParts(from: Draft, to: Draft): Part[] { return parts.filter((p) => !same(value(from, p), value(to, p))) }

// bodyOf returns the fields to send: those that differ from the action that was read.
export function bodyOf(to: Draft, from?: Draft): ActionWrite {
  const changed = new Set(from ? changedParts(from, to) : parts)
  const body: ActionWrite = {}
  if (changed.has('name')) body.name = to.name
  if (changed.has('description')) body.description = to.description
  if (changed.has('tags')) body.tags = to.tags
  if (changed.has('steps')) body.steps = to.steps.map(writeOf)
  if (changed.has('post')) body.post_to_chat = to.post
  if (changed.has('format')) body.chat_message_format = to.format
  if (changed.has('destinations')) body.chat_destinations = to.destinations.map(destinationOf)
  return body
}

export interface Merge { merged: Draft; clashes: Part[] }

// merge joins two changes of the same action. A part that both changed differently is a
// clash; merged has mine there.
export function merge(base: Draft, mine: Draft, theirs: Draft): Merge {
  const merged: Draft = { ...theirs }
  const clashes: Part[] = []
  const put = <K extends Part>(part: K) => { merged[part] = mine[part] }
  for (const part of changedParts(base, mine)) {
    put(part)
    if (!same(value(base, part), value(theirs, part)) && !same(value(mine, part), value(theirs, part))) clashes.push(part)
  }
  return { merged, clashes }
}

// lines describes a part for people, one line each, for a comparison.
export function lines(d: Draft, part: Part): string[] {
  switch (part) {
    case 'tags': return d.tags.length ? [d.tags.join(', ')] : ['none']
    case 'steps': return d.steps.length ? d.steps.map((s, i) => `${i === 0 ? '' : 'or '}${stepWords(s)}`) : ['nothing']
    case 'post': return [d.post ? 'on' : 'off']
    case 'destinations': return d.destinations.length ? d.destinations.map(destinationWords) : ['those of the server']
    case 'format': return [d.format || 'the usual one']
    default: return [d[part] || 'empty']
  }
}

// filterProblem returns why a filter is not complete.
export function filterProblem(f: ActionFilter): string | null {
  if (f.type === 'cohort') return f.value === null || f.value === undefined || f.value === '' ? 'Choose a cohort, or remove the row.' : null
  if (!f.key) return 'Choose a property, or remove the row.'
  if (operatorOf(f.operator).value === 'none') return null
  const v = f.value
  const empty = v === null || v === undefined || v === '' || (Array.isArray(v) && (v.length === 0 || v.includes('')))
  return empty ? 'Fill in a value, or remove the row.' : null
}

// problems returns why the draft cannot be saved, by the position that the server names in
// its errors: steps__0__url.
export function problems(d: Draft): Record<string, string> {
  const found: Record<string, string> = {}
  if (!d.name.trim()) found.name = 'An action needs a name.'
  d.steps.forEach((s, i) => {
    for (const { field } of textFields) if (s[field] === '') found[`steps__${i}__${field}`] = 'Fill it in, or remove the row.'
    s.properties.forEach((f, at) => {
      const problem = filterProblem(f)
      if (problem) found[`steps__${i}__properties__${at}`] = problem
    })
  })
  d.destinations.forEach((one, i) => { if (!one.notifier) found[`chat_destinations__${i}__notifier`] = 'Choose a notifier, or remove the row.' })
  return found
}

// complete reports whether all steps are filled in, so that a preview makes sense.
export function complete(d: Draft): boolean { return !Object.keys(problems(d)).some((p) => p.startsWith('steps')) }

// problemAt returns the problem of a position or of what is in it.
export function problemAt(found: Record<string, string>, position: string): string | undefined {
  const at = Object.keys(found).find((p) => p === position || p.startsWith(position + '__'))
  return at === undefined ? undefined : found[at]
}

// columnOf returns the column that a problem of a template names, from 0; -1 without one.
export function columnOf(problem: string): number { return Number(/^Column (\d+):/.exec(problem)?.[1] ?? 0) - 1 }

// compared is how the drafts are reviewed before they are saved.
export const compared = { partWords, changedParts, lines }
