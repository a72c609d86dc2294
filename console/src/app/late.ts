// Answers that arrive late. What a page asked for can be answered after the user has gone
// to another page; then it must not lead away from there, drop what is edited there, or
// praise there what was done elsewhere.
import { samePage, unguard } from './guard'
import { say, sayError } from './toasts'

let visits = 0 // of pages, by this tab

// countVisit is called when another page is shown.
export function countVisit(): void { visits++ }

export interface Here {
  stayed: () => boolean // the page is still shown, without a visit to another one in between
  say: typeof say // nothing once the user has left
  sayError: (e: unknown) => void // names the page once the user has left: what failed must be known
  leave: (go: () => void) => void // goes to another page, without the question about unsaved changes
}

// here returns what an answer may do on the page that is shown now. Take it before waiting.
export function here(): Here {
  const [path, visit, title] = [location.pathname, visits, document.title.split(' · ', 1)[0] ?? '']
  const stayed = () => visit === visits && samePage(path, location.pathname)
  return {
    stayed,
    say: (...toast) => { if (stayed()) say(...toast) },
    sayError: (e) => sayError(e, stayed() ? '' : title),
    leave: (go) => {
      if (!stayed()) return
      unguard()
      go()
    },
  }
}
