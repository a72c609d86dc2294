// A message as a service shows it, read from what the notifier of that service sends.
import type { MessagePreview } from '../../api/types'

export interface Part { text: string; href?: string; bold?: boolean; code?: boolean }
export type Rendered =
  | { kind: 'chat'; parts: Part[]; channel?: string; from?: string }
  | { kind: 'mail'; subject: string; text: string }
  | { kind: 'code'; text: string }

const services: Record<string, string> = { slack: 'Slack', discord: 'Discord', msteams: 'Microsoft Teams', email: 'E-mail', webhook: 'Webhook' }

// serviceOf names the service of a plugin.
export function serviceOf(plugin: string): string { return services[plugin] ?? plugin }

interface Slack { channel?: string; blocks: { elements: { elements: { text?: string; url?: string; style?: { bold?: boolean; code?: boolean } }[] }[] }[] }
interface Discord { content: string; username?: string }
interface Teams { text?: string; attachments?: { content: { body: { inlines: { text: string; weight?: string; fontType?: string; selectAction?: { url: string } }[] }[] } }[] }
interface Mail { subject: string; text: string }

// renderedOf reads what a notifier sends. What it does not know is shown as it is sent.
export function renderedOf(r: Pick<NonNullable<MessagePreview['rendered']>, 'plugin' | 'body'>): Rendered {
  let sent: unknown
  try { sent = JSON.parse(r.body) } catch { return { kind: 'code', text: r.body } }
  try {
    switch (r.plugin) {
      case 'slack': {
        const { channel, blocks } = sent as Slack
        return { kind: 'chat', parts: blocks.flatMap((b) => b.elements.flatMap((s) => s.elements.map(slackPart))), ...(channel && { channel }) }
      }
      case 'discord': {
        const { content, username } = sent as Discord
        return { kind: 'chat', parts: markdown(content), ...(username && { from: username }) }
      }
      case 'msteams': {
        const { text, attachments } = sent as Teams
        const runs = attachments?.flatMap((a) => a.content.body.flatMap((b) => b.inlines))
        return { kind: 'chat', parts: runs ? runs.map((t) => part(t.text, t.selectAction?.url, t.weight === 'Bolder', t.fontType === 'Monospace')) : markdown(text ?? '') }
      }
      case 'email': {
        const { subject, text } = sent as Mail
        if (typeof subject === 'string') return { kind: 'mail', subject, text }
      }
    }
  } catch { /* of another version */ }
  return { kind: 'code', text: JSON.stringify(sent, null, 2) }
}

function slackPart(e: Slack['blocks'][number]['elements'][number]['elements'][number]): Part { return part(e.text ?? '', e.url, e.style?.bold, e.style?.code) }

function part(text: string, href?: string, bold?: boolean, code?: boolean): Part {
  return { text, ...(href && { href }), ...(bold && { bold }), ...(code && { code }) }
}

// A link, bold, code, an escaped character or an entity, as the notifiers write them.
const marks = /\[((?:\\.|[^\]\\])*)\]\(<?([^)>]*)>?\)|\*\*((?:\\.|[^\\])*?)\*\*|`([^`]*)`|\\(.)|&(lt|gt|amp);/gs

// markdown reads the part of Markdown that notifiers write.
export function markdown(text: string): Part[] {
  const out: Part[] = []
  const plain = (t: string) => {
    const last = out[out.length - 1]
    if (t && last && Object.keys(last).length === 1) last.text += t
    else if (t) out.push({ text: t })
  }
  let end = 0
  for (const m of text.matchAll(marks)) {
    const [all, label, href, bold, code, escaped, entity] = m
    plain(text.slice(end, m.index))
    end = m.index + all.length
    if (label !== undefined) out.push(part(unescape(label), href))
    else if (bold !== undefined) out.push(part(unescape(bold), undefined, true))
    else if (code !== undefined) out.push(part(code, undefined, false, true))
    else plain(escaped ?? { lt: '<', gt: '>', amp: '&' }[entity as 'lt' | 'gt' | 'amp'])
  }
  plain(text.slice(end))
  return out
}

function unescape(text: string): string { return markdown(text).map((p) => p.text).join('') }
