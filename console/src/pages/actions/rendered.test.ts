import { describe, expect, it } from 'vitest'
import { markdown, renderedOf, serviceOf } from './rendered'

describe('a message', () => {
  const of = (plugin: string, sent: unknown) => renderedOf({ plugin, body: typeof sent === 'string' ? sent : JSON.stringify(sent) })
  it('is rich text in Slack', () => {
    const elements = [{ type: 'link', text: 'Paid', url: 'https://g.test/a' }, { type: 'text', text: ' by *ada* ' }, { type: 'text', text: 'x', style: { bold: true } }]
    expect(of('slack', { channel: '#sales', text: 'Paid by', blocks: [{ type: 'rich_text', elements: [{ type: 'rich_text_section', elements }] }] }))
      .toEqual({ kind: 'chat', channel: '#sales', parts: [{ text: 'Paid', href: 'https://g.test/a' }, { text: ' by *ada* ' }, { text: 'x', bold: true }] })
  })
  it('is Markdown in Discord', () => {
    expect(of('discord', { content: '[sign\\_up](<https://g.test/a_(b%29>) by **ada@example.com**`a\'b` \\(and 3 more\\)', username: 'Guidon' }))
      .toEqual({ kind: 'chat', from: 'Guidon', parts: [{ text: 'sign_up', href: 'https://g.test/a_(b%29' }, { text: ' by ' }, { text: 'ada@example.com', bold: true }, { text: "a'b", code: true }, { text: ' (and 3 more)' }] })
  })
  it('is a card or a text in Teams', () => {
    const inlines = [{ type: 'TextRun', text: 'Paid', selectAction: { type: 'Action.OpenUrl', url: 'https://g.test' } }, { type: 'TextRun', text: 'ada', weight: 'Bolder' }]
    expect(of('msteams', { attachments: [{ content: { body: [{ type: 'RichTextBlock', inlines }] } }] })).toEqual({ kind: 'chat', parts: [{ text: 'Paid', href: 'https://g.test' }, { text: 'ada', bold: true }] })
    expect(of('msteams', { text: '&lt;b&gt; **x**' })).toEqual({ kind: 'chat', parts: [{ text: '<b> ' }, { text: 'x', bold: true }] })
  })
  it('is a subject and a text in an e-mail', () => { expect(of('email', { subject: 'Paid: ada', text: 'ada paid', html: '<p>' })).toEqual({ kind: 'mail', subject: 'Paid: ada', text: 'ada paid' }) })
  it('is JSON for a webhook, and what is not known is shown as it is sent', () => {
    expect(of('webhook', { type: 'x' })).toEqual({ kind: 'code', text: '{\n  "type": "x"\n}' })
    expect(of('slack', { other: 1 })).toEqual({ kind: 'code', text: '{\n  "other": 1\n}' })
    expect(of('mine', 'hello')).toEqual({ kind: 'code', text: 'hello' })
    expect([serviceOf('msteams'), serviceOf('mine')]).toEqual(['Microsoft Teams', 'mine'])
  })
  it('cannot be markup by a text of an event', () => {
    expect(markdown('\\<script\\> \\[a\\]\\(b\\) \\*\\*c\\*\\*')).toEqual([{ text: '<script> [a](b) **c**' }])
  })
})
