// Does what someone new does, without the documentation: opens the link that the first run
// prints, makes a flag for half of all people, pastes the code that the console shows into
// a page of their own, sees the feature there with the real browser client, and kills it.
// What the hands and the head of a person add is computed with the keystroke-level model
// (Card, Moran and Newell 1980): 1.35 s to decide, 1.1 s to point, 0.4 s to move the hand
// and 0.1 s to press, for each click; 0.28 s for each key.
import { createServer } from 'node:http'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'
import { args, button, executablePath, link, out, page, run, step, task } from './lib.mjs'

const model = { click: 1.35 + 1.1 + 0.4 + 0.1, key: 0.28 }
let hands = 0
const click = async (what) => { hands += model.click; await what.click() }
const type = async (what, text) => { hands += model.click + text.length * model.key; await what.fill(text) }

let source = ''
const site = createServer((request, response) => {
  const script = request.url.endsWith('.js')
  response.writeHead(200, { 'Content-Type': script ? 'text/javascript' : 'text/html; charset=utf-8' })
  response.end(script ? source : '<!doctype html><title>Shop</title><h1>The former checkout</h1><script src="/page.js"></script>')
})
await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve))
const visitors = await chromium.launch({ executablePath, args, headless: true })

// visit opens the page as someone who was never there, and says whether the feature is on.
// Without an active flag the configuration of the client says so, and it asks no further.
async function visit() {
  const context = await visitors.newContext()
  try {
    const tab = await context.newPage()
    const answered = tab.waitForResponse(async (r) => {
      if (!r.url().startsWith(task.url) || r.request().method() === 'OPTIONS') return false
      const path = new URL(r.url()).pathname
      return /^\/(flags|decide)\//.test(path) || (/\/config(\.js)?$/.test(path) && /"hasFeatureFlags":\s*false/.test(await r.text()))
    })
    await tab.goto(`http://127.0.0.1:${site.address().port}/`)
    const response = await answered
    const { flags, featureFlags } = response.request().method() === 'POST' ? await response.json() : {}
    const on = Boolean(flags?.['new-checkout']?.enabled ?? featureFlags?.['new-checkout'])
    await tab.getByRole('heading', { name: on ? 'The new checkout' : 'The former checkout' }).waitFor()
    return on
  } finally {
    await context.close()
  }
}

await run(async () => {
  const begin = performance.now()
  await step('sign in with the printed link', async () => {
    hands += model.click * 2 // the link in the terminal
    await page.goto(task.link)
    await click(button('Sign in with the link'))
    await page.getByRole('heading', { name: 'Make your first flag' }).waitFor()
  })
  await step('a flag on for 50 %', async () => {
    await click(link('New flag').first())
    await type(page.getByLabel('Key', { exact: true }), 'new-checkout')
    if (!await page.getByRole('spinbutton').first().isVisible()) await click(button('Add a condition'))
    await type(page.getByRole('spinbutton').first(), '50')
    await click(button('Create the flag'))
    await page.getByText('new-checkout is made.').waitFor()
  })
  await step('its code in a page', async () => {
    await click(button('Browser'))
    await click(button('Copy'))
    const code = await page.locator('pre').filter({ hasText: 'posthog-js' }).innerText()
    if (!code.includes('// the feature')) throw new Error(`the code has no place for the feature: ${code}`)
    const feature = "document.querySelector('h1').textContent = 'The new checkout'"
    hands += model.click * 4 + feature.length * model.key // an editor: open, paste, type, save
    const made = await build({ stdin: { contents: code.replace('// the feature', feature), resolveDir: process.cwd() }, bundle: true, format: 'iife', write: false, logLevel: 'error' })
    source = made.outputFiles[0].text
  })
  await step('seen by half of the visitors', async () => {
    const seen = []
    for (let i = 0; i < 24; i++) seen.push(await visit())
    hands += model.click * 2
    out.on = seen.filter(Boolean).length
    out.visits = seen.length
  })
  await step('killed', async () => {
    await click(page.getByRole('switch', { name: 'new-checkout is on' }))
    await click(button('Turn off'))
    await page.getByRole('switch', { name: 'new-checkout is off' }).waitFor()
    out.after = 0
    for (let i = 0; i < 8; i++) if (await visit()) out.after++
  })
  out.machine = (performance.now() - begin) / 1000
  out.hands = hands
})
await visitors.close()
site.close()
