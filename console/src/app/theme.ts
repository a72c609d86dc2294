// Light, dark, or as the system. The style sheet has both colors of each token; the choice
// sets color-scheme on the document.
import { effect, signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'
const name = 'guidon.theme'
const stored = localStorage.getItem(name)
export const theme = signal<Theme>(stored === 'light' || stored === 'dark' ? stored : 'system')

effect(() => {
  document.documentElement.dataset.theme = theme.value
  localStorage.setItem(name, theme.value)
})
