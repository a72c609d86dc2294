// Words for times.
const steps: [limit: number, seconds: number, unit: Intl.RelativeTimeFormatUnit][] = [
  [60, 1, 'second'], [3600, 60, 'minute'], [86_400, 3600, 'hour'], [30 * 86_400, 86_400, 'day'], [365 * 86_400, 30 * 86_400, 'month'], [Infinity, 365 * 86_400, 'year'],
]
const words = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'long' })

// relativeTime returns the distance of at from now in words: "3 minutes ago". A page takes
// the time every 15 seconds: what is that much later has happened since.
export function relativeTime(at: number, now: number): string {
  const seconds = (at - now) / 1000
  const distance = Math.abs(seconds)
  if (seconds > -10 && seconds < 16) return 'just now'
  for (const [limit, size, unit] of steps) {
    if (distance < limit) return words.format(Math.trunc(seconds / size), unit)
  }
  return ''
}

const full = { dateStyle: 'medium', timeStyle: 'medium' } as const
const local = new Intl.DateTimeFormat('en-GB', full) // making one takes longer than a hundred uses
export const localZone = local.resolvedOptions().timeZone

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const dated = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit' })

// clockTime returns a time of today as "14:03:22", and of another day with the date.
export function clockTime(at: Date, now: number): string {
  const today = at.toDateString() === new Date(now).toDateString()
  return (today ? clock : dated).format(at)
}

// exactTime returns a time with its zone, and the same time in UTC.
export function exactTime(at: Date, zone?: string): string {
  const format = zone ? new Intl.DateTimeFormat('en-GB', { ...full, timeZone: zone }) : local
  return `${format.format(at)} ${zone ?? localZone}\n${at.toISOString()} UTC`
}

const exact = new Intl.NumberFormat('en')
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

// exactNumber returns a number with separators.
export function exactNumber(n: number): string { return n >= 0 && n < 1000 && Number.isInteger(n) ? String(n) : exact.format(n) }

// countText returns a number with separators, and from ten thousand on in short: "12.3K".
export function countText(n: number): string { return n < 10_000 ? exactNumber(n) : compact.format(n) }

export function plural(n: number, one: string, many = one + 's'): string { return `${countText(n)} ${n === 1 ? one : many}` }
