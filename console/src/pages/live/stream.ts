// Following server-sent events with fetch, which also takes a personal key, and keeps the
// server's own sentence when it refuses.
import { ApiError, errorOf } from '../../api/client'
import { credentials, signedOut } from '../../app/session'

export interface Message { id: string; name: string; data: string }

// reader returns a function that takes pieces of a stream and returns the messages that
// they complete.
export function reader(): (text: string) => Message[] {
  let rest = ''
  let message: Message = { id: '', name: '', data: '' }
  return (text) => {
    const out: Message[] = []
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line === '') {
        if (message.name || message.id) out.push(message) // an id alone moves the position
        message = { id: '', name: '', data: '' }
      } else if (line.startsWith('data: ')) message.data += line.slice(6)
      else if (line.startsWith('event: ')) message.name = line.slice(7)
      else if (line.startsWith('id: ')) message.id = line.slice(4)
    }
    return out
  }
}

export interface Handlers {
  open: () => void
  message: (m: Message) => void
  lost: (e: ApiError, again: boolean) => void // again: it connects again
}

// isFinal reports whether asking again would be refused again.
export function isFinal(e: ApiError): boolean { return e.status >= 400 && e.status < 500 && e.status !== 429 }

const pauses = [500, 1000, 2000, 5000, 10_000]

// follow keeps a stream open until the signal aborts or the server refuses for good.
export async function follow(url: string, handlers: Handlers, signal: AbortSignal): Promise<void> {
  let last = ''
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      await once(url, last, signal, { ...handlers, message: (m) => { failures = 0; if (m.id) last = m.id; if (m.name) handlers.message(m) } })
      handlers.lost(new ApiError(0, 'ended', 'The server ended the stream.'), true)
    } catch (e) {
      if (signal.aborted) return
      const error = e instanceof ApiError ? e : new ApiError(0, 'unreachable', 'The server cannot be reached.')
      if (error.status === 401) signedOut()
      handlers.lost(error, !isFinal(error))
      if (isFinal(error)) return
    }
    await new Promise((done) => { setTimeout(done, pauses[Math.min(failures, pauses.length - 1)]) })
  }
}

async function once(url: string, last: string, signal: AbortSignal, handlers: Handlers): Promise<void> {
  const headers: Record<string, string> = { Accept: 'text/event-stream', ...credentials('GET'), ...(last && { 'Last-Event-ID': last }) }
  const answer = await fetch(url, { headers, signal, credentials: 'same-origin', redirect: 'error', cache: 'no-store' })
  if (!answer.ok || !answer.body) throw errorOf(answer.status, await answer.text(), answer.headers.get('X-Request-Id'))
  handlers.open()
  const input = answer.body.getReader()
  const decoder = new TextDecoder()
  const messages = reader()
  for (;;) {
    const { done, value } = await input.read()
    if (done) return
    for (const m of messages(decoder.decode(value, { stream: true }))) handlers.message(m)
  }
}
