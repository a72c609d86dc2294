// Secrets that the server shows once. They show wherever the user is when the answer comes,
// also on another page than the one that asked, and stay until they are kept.
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { signal } from '@preact/signals'
import { CopyButton } from '../ui/basics'
import { Dialog } from '../ui/dialog'

export interface Secret { title: string; text: ComponentChildren; value: string }

const shown = signal<Secret[]>([])
const asked = signal(0) // requests whose answers have one

// makeSecret runs a request whose answer has a secret, and shows it. The browser asks before
// the tab is closed in between.
export async function makeSecret<T>(run: () => Promise<T>, secretOf: (answer: T) => Secret): Promise<T> {
  asked.value++
  try {
    const answer = await run()
    shown.value = [...shown.value, secretOf(answer)]
    return answer
  } finally {
    asked.value--
  }
}

export function Secrets() {
  const [first] = shown.value
  const held = asked.value > 0 || first !== undefined
  useEffect(() => {
    if (!held) return
    const ask = (e: BeforeUnloadEvent) => e.preventDefault()
    addEventListener('beforeunload', ask)
    return () => removeEventListener('beforeunload', ask)
  }, [held])
  return first ? <ShownOnce key={first.value} secret={first} onClose={() => { shown.value = shown.value.slice(1) }} /> : null
}

// ShownOnce shows a secret. Escape and a click beside it do not close it.
function ShownOnce({ secret, onClose }: { secret: Secret; onClose: () => void }) {
  return (
    <Dialog title={secret.title} onClose={onClose} sticky>
      <div class="dialog-text"><p>{secret.text}</p><div class="once"><code class="mono">{secret.value}</code><CopyButton text={secret.value} /></div></div>
      <footer><button type="button" class="button primary" onClick={onClose}>Done</button></footer>
    </Dialog>
  )
}
