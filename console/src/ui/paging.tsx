// Pages of a list, and moving through its rows with the keyboard.
import type { ComponentChildren, RefObject } from 'preact'
import { useShortcut } from '../app/shortcuts'
import { exactNumber } from './time'

export const pageSize = 50

// Pager leads through the pages of a list with a count; nothing if there is one page.
export function Pager({ page, count, size = pageSize, go }: { page: number; count: number; size?: number; go: (page: number) => void }) {
  if (count <= size && page === 1) return null
  const more = page * size < count
  return (
    <Steps back={page > 1 ? () => go(page - 1) : undefined} on={more ? () => go(page + 1) : undefined}>
      {exactNumber(Math.min((page - 1) * size + 1, count))} to {exactNumber(Math.min(page * size, count))} of {exactNumber(count)}
    </Steps>
  )
}

// Steps leads back and on; a way that does not exist is disabled.
export function Steps({ back, on, words = ['Previous', 'Next'], children }: { back: (() => void) | undefined; on: (() => void) | undefined; words?: [string, string]; children?: ComponentChildren }) {
  return (
    <div class="pager">
      <button type="button" class="button" disabled={!back} onClick={back}>{words[0]}</button>
      <span>{children}</span>
      <button type="button" class="button" disabled={!on} onClick={on}>{words[1]}</button>
    </div>
  )
}

// useRowKeys gives a list the keys j and k: the next and the previous link of its rows.
export function useRowKeys(list: RefObject<HTMLElement | null>, noun: string): void {
  useShortcut('j', `Next ${noun}`, () => moveFocus(list.current, 1))
  useShortcut('k', `Previous ${noun}`, () => moveFocus(list.current, -1))
}

function moveFocus(list: HTMLElement | null, by: number): void {
  const links = [...(list?.querySelectorAll<HTMLElement>('.name a') ?? [])]
  const at = links.indexOf(document.activeElement as HTMLElement)
  links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + by))]?.focus()
}
