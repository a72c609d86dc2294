import { signal } from '@preact/signals'
import { Icon } from '../ui/icon'

interface Toast { id: number; kind: 'ok' | 'bad'; text: string; action?: { label: string; run: () => void } | undefined }
export const toasts = signal<Toast[]>([])
let next = 1

function add(toast: Omit<Toast, 'id'>, ms: number): void {
  const id = next++
  toasts.value = [...toasts.value.slice(-3), { ...toast, id }]
  setTimeout(() => dismiss(id), ms)
}
function dismiss(id: number): void { toasts.value = toasts.value.filter((t) => t.id !== id) }

export function say(text: string, action?: Toast['action']): void { add({ kind: 'ok', text, action }, action ? 10_000 : 4_000) }

// sayError shows the server's own sentence, after the page or the thing that it is about.
export function sayError(e: unknown, about = ''): void {
  if (e instanceof DOMException && e.name === 'AbortError') return
  const text = e instanceof Error ? e.message : String(e)
  add({ kind: 'bad', text: about ? `${about}: ${text}` : text }, 12_000)
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((t) => (
        <div key={t.id} class={`toast ${t.kind}`}>
          <Icon name={t.kind === 'ok' ? 'check' : 'alert'} />
          <span>{t.text}</span>
          {t.action && <button type="button" class="link" onClick={() => { t.action?.run(); dismiss(t.id) }}>{t.action.label}</button>}
          <button type="button" class="icon-button" aria-label="Dismiss" onClick={() => dismiss(t.id)}><Icon name="close" /></button>
        </div>
      ))}
    </div>
  )
}
