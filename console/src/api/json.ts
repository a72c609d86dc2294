// Reading JSON without losing what a number of JavaScript cannot hold.

const rounded = new WeakSet<object>()
const tokens = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g

// inexact reports whether a JSON text has a number that JavaScript rounds.
export function inexact(text: string): boolean {
  for (const [token] of text.matchAll(tokens)) {
    if (token.startsWith('"') || token.length < 16 && !/e/i.test(token)) continue
    const value = Number(token)
    if (/^-?\d+$/.test(token) ? !Number.isSafeInteger(value) : !Number.isFinite(value) || (token.replace(/\D/g, '').length > 16 && String(value) !== token)) return true
  }
  return false
}

// parse reads a JSON text. wasRounded tells later whether the answer has a rounded number.
export function parse(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (typeof value === 'object' && value !== null && inexact(text)) rounded.add(value)
  return value
}

// wasRounded reports whether an answer of parse differs from its text in a number.
export function wasRounded(answer: object): boolean { return rounded.has(answer) }
