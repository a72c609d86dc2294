// Words for times.
const steps: [limit: number, seconds: number, unit: Intl.RelativeTimeFormatUnit][] = [
  [60, 1, 'second'], [3600, 60, 'minute'], [86_400, 3600, 'hour'], [30 * 86_400, 86_400, 'day'], [365 * 86_400, 30 * 86_400, 'month'], [Infinity, 365 * 86_400, 'year'],
]
const words = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'long' })

// relativeTime returns the distance of at from now in words: "3 minutes ago".
export function relativeTime(at: number, now: number): string {
  const seconds = (at - now) / 1000
  const distance = Math.abs(seconds)
  if (distance < 10) return 'just now'
  for (const [limit, size, unit] of steps) {
    if (distance < limit) return words.format(Math.trunc(seconds / size), unit)
  }
  return ''
}

// exactTime returns a time with its zone, and the same time in UTC.
export function exactTime(at: Date, zone?: string): string {
  const local = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium', ...(zone && { timeZone: zone }) }).format(at)
  const name = zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone
  return `${local} ${name}\n${at.toISOString()} UTC`
}

// countText returns a number with separators, and thousands in short.
export function countText(n: number): string {
  return n < 10_000 ? n.toLocaleString('en') : new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 }).format(n)
}

export function plural(n: number, one: string, many = one + 's'): string { return `${countText(n)} ${n === 1 ? one : many}` }
