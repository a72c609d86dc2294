// Dialogs. The browser keeps the focus inside and closes on Escape.
import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { signal } from '@preact/signals'
import { Icon } from './icon'

// useModal opens a dialog, at the first field of its form, and gives the focus back when it closes: to the element that had it,
// or to the content if that is gone. The dialog has left the document by then, so the browser
// does not.
export function useModal(): RefObject<HTMLDialogElement | null> {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = ref.current
    const opener = document.activeElement
    dialog?.showModal()
    dialog?.querySelector<HTMLElement>('form :is(input:not([type="radio"], [type="checkbox"]), select, textarea):enabled')?.focus()
    return () => {
      dialog?.close()
      if (opener === document.body) return
      for (const to of [opener, document.getElementById('content')]) {
        if (document.activeElement === document.body && to instanceof HTMLElement) to.focus({ preventScroll: true })
      }
    }
  }, [])
  return ref
}

// A sticky dialog shows what is not shown again: only its buttons close it.
export function Dialog({ title, children, onClose, wide, sticky }: { title: string; children: ComponentChildren; onClose: () => void; wide?: boolean; sticky?: boolean }) {
  const ref = useModal()
  const id = useId()
  return (
    <dialog ref={ref} class={wide ? 'wide' : ''} aria-labelledby={id} onCancel={(e) => { e.preventDefault(); if (!sticky) onClose() }}
      onClose={() => { if (sticky) ref.current?.showModal() }} // browsers close at a second Escape without asking
      onMouseDown={(e) => { if (e.target === ref.current && !sticky) onClose() }}>
      <div class="dialog-body">
        <header><h2 id={id}>{title}</h2><button type="button" class="icon-button" aria-label="Close" onClick={onClose}><Icon name="close" /></button></header>
        {children}
      </div>
    </dialog>
  )
}

export interface Question {
  title: string
  body: ComponentChildren
  action: string
  danger?: boolean
  typed?: string // must be typed to go on
}
const asked = signal<(Question & { answer: (yes: boolean) => void }) | null>(null)

// confirm asks before something that people feel at once.
export function confirm(question: Question): Promise<boolean> {
  asked.value?.answer(false)
  return new Promise((resolve) => {
    asked.value = { ...question, answer: (yes) => { asked.value = null; resolve(yes) } }
  })
}

// takeBack closes a question that was not answered: its page is left.
export function takeBack(): void { asked.value?.answer(false) }

export function Confirmations() {
  const question = asked.value
  return question && <Ask key={question.title} question={question} answer={question.answer} />
}

function Ask({ question, answer }: { question: Question; answer: (yes: boolean) => void }) {
  const [typed, setTyped] = useState('')
  const ready = !question.typed || typed === question.typed
  return (
    <Dialog title={question.title} onClose={() => answer(false)}>
      <form onSubmit={(e) => { e.preventDefault(); if (ready) answer(true) }}>
        <div class="dialog-text">{question.body}</div>
        {question.typed && (
          <div class="field">
            <label for="confirm-typed">Type <b class="mono">{question.typed}</b> to confirm</label>
            <input id="confirm-typed" class="mono" value={typed} autocomplete="off" onInput={(e) => setTyped(e.currentTarget.value)} />
          </div>
        )}
        <footer>
          <button type="button" class="button" onClick={() => answer(false)}>Cancel</button>
          <button type="submit" class={`button ${question.danger ? 'danger' : 'primary'}`} disabled={!ready}>{question.action}</button>
        </footer>
      </form>
    </Dialog>
  )
}
