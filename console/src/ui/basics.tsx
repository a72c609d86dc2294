// The small parts that all pages use.
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { signal } from '@preact/signals'
import type { ApiError } from '../api/client'
import { say } from '../app/toasts'
import { Icon } from './icon'
import { clockTime, exactTime, relativeTime } from './time'

const now = signal(Date.now())
setInterval(() => { now.value = Date.now() }, 15_000)

// Time shows how long ago, and the time with its zone on hover.
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="faint">never</span>
  const date = new Date(at)
  return <time dateTime={at} title={exactTime(date)}>{relativeTime(date.getTime(), now.value)}</time>
}

// ClockTime shows the time of day, the date if it is another day, and how long ago.
export function ClockTime({ at }: { at: string }) {
  const date = new Date(at)
  return <time class="clock" dateTime={at} title={exactTime(date)}><span class="mono">{clockTime(date, now.value)}</span> <span class="ago">{relativeTime(date.getTime(), now.value)}</span></time>
}

export function Switch({ on, label, disabled, onToggle }: { on: boolean; label: string; disabled?: boolean; onToggle: () => void }) {
  return (
    <button type="button" role="switch" aria-checked={on} aria-label={label} class="switch" disabled={disabled} onClick={(e) => { e.stopPropagation(); onToggle() }}>
      <span />
    </button>
  )
}

export function Tag({ children, tone }: { children: ComponentChildren; tone?: 'ok' | 'warn' | 'bad' | 'accent' }) {
  return <span class={`tag ${tone ?? ''}`}>{children}</span>
}

export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const copy = () => { void navigator.clipboard.writeText(text).then(() => say('Copied.')) }
  return <button type="button" class="button quiet small" onClick={copy}><Icon name="copy" /> {label}</button>
}

export function Code({ text, label }: { text: string; label?: string }) {
  return (
    <figure class="code">
      <figcaption><span>{label}</span><CopyButton text={text} /></figcaption>
      <pre tabIndex={0}><code>{text}</code></pre>
    </figure>
  )
}

// Problem shows why a page has nothing to show, in the server's words, and a way on.
export function Problem({ error, retry }: { error: ApiError; retry?: () => void }) {
  return (
    <div class="problem" role="alert">
      <Icon name="alert" />
      <div>
        <p>{error.message}</p>
        {error.requestId && <p class="faint mono">request {error.requestId}</p>}
        {retry && <button type="button" class="button" onClick={retry}>Try again</button>}
      </div>
    </div>
  )
}

// Empty teaches what a list is for. alone: it is all that the page has.
export function Empty({ title, alone, children }: { title: string; alone?: boolean; children: ComponentChildren }) {
  return <div class="empty">{alone ? <h1>{title}</h1> : <h2>{title}</h2>}{children}</div>
}

// Skeleton takes the place of n rows that are under way. It shows after a moment, so that
// a fast answer does not flicker.
export function Skeleton({ rows = 6 }: { rows?: number }) {
  const [late, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 120)
    return () => clearTimeout(timer)
  }, [])
  return <div class={`skeleton ${late ? 'late' : ''}`} role="status" aria-label="Loading">{Array.from({ length: rows }, (_, i) => <div key={i} />)}</div>
}

export function Field({ label, hint, error, children, id }: { label: string; hint?: ComponentChildren; error?: string | null | undefined; children: ComponentChildren; id: string }) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {error ? <p class="field-error" id={`${id}-error`} role="alert">{error}</p> : hint && <p class="hint">{hint}</p>}
    </div>
  )
}

// useTitle sets the title of the window.
export function useTitle(title: string): void {
  useEffect(() => { document.title = `${title} · Guidon` }, [title])
}
