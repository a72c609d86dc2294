// Tabs lead to the parts of a page.
import { useEffect, useRef } from 'preact/hooks'

export interface Tab { href: string; label: string; here: boolean }

export function Tabs({ label, tabs }: { label: string; tabs: Tab[] }) {
  const nav = useHereInView(`${tabs.findIndex((t) => t.here)} of ${tabs.length}`)
  return <nav ref={nav} class="tabs" aria-label={label}>{tabs.map((t) => <a key={t.href} href={t.href} aria-current={t.here ? 'page' : undefined}>{t.label}</a>)}</nav>
}

const fade = 36 // pixels at both ends that fade out

// useHereInView scrolls a row of links, so that the one of the page shows, whenever at changes.
export function useHereInView(at: string) {
  const nav = useRef<HTMLElement>(null)
  useEffect(() => {
    const link = nav.current?.querySelector('[aria-current]')?.getBoundingClientRect()
    const row = nav.current?.getBoundingClientRect()
    if (nav.current && link && row && (link.left < row.left + fade || link.right > row.right - fade)) nav.current.scrollLeft += link.left - row.left - 60
  }, [at])
  return nav
}
