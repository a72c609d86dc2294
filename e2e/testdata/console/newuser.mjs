// Does what someone new does, without the documentation: opens the link that the first run
// prints, creates a flag for half of all people, saves the page that the console shows as a
// file, opens it with the real browser client from the server, and kills the flag.
// What the hands and the head of a person add is computed with the keystroke-level model
// (Card, Moran and Newell 1980): 1.35 s to decide, 1.1 s to point, 0.4 s to move the hand
// and 0.1 s to press, for each click; 0.28 s for each key.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'
import { args, button, executablePath, link, out, page, run, step, task } from './lib.mjs'

const model = { click: 1.35 + 1.1 + 0.4 + 0.1, key: 0.28 }
let hands = 0
const click = async (what) => { hands += model.click; await what.click() }
const type = async (what, text) => { hands += model.click + text.length * model.key; await what.fill(text) }

const folder = mkdtempSync(join(tmpdir(), 'guidon-page-'))
const file = join(folder, 'page.html')
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
    await tab.goto(pathToFileURL(file).href)
    const response = await answered
    const { flags, featureFlags } = response.request().method() === 'POST' ? await response.json() : {}
    const on = Boolean(flags?.['new-checkout']?.enabled ?? featureFlags?.['new-checkout'])
    await tab.getByRole('heading', { name: on ? 'new-checkout is on' : 'new-checkout is off' }).waitFor()
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
    await page.getByRole('heading', { name: 'Create your first flag' }).waitFor()
  })
  await step('a flag on for 50 %', async () => {
    await click(link('New flag').first())
    await type(page.getByLabel('Key', { exact: true }), 'new-checkout')
    if (!await page.getByRole('spinbutton').first().isVisible()) await click(button('Add a condition'))
    await type(page.getByRole('spinbutton').first(), '50')
    await click(page.getByLabel('Turn it on at once'))
    await click(button('Create and turn on'))
    await page.getByText('new-checkout is created.').waitFor()
  })
  await step('the browser library', async () => {
    const command = (await page.locator('figure', { hasText: 'Install the browser library' }).locator('pre').innerText()).trim()
    if (command !== 'guidon clients install') throw new Error(`the console shows another command: ${command}`)
    hands += model.click + command.length * model.key
    const [, ...words] = command.split(' ')
    execFileSync(task.binary, [...words, '1.449.2'], { cwd: folder, env: { ...process.env, GUIDON_DATA_DIR: task.data }, stdio: ['ignore', 'ignore', 'inherit'] })
  })
  await step('its code in a file', async () => {
    const code = page.locator('figure', { hasText: 'HTML page' })
    await click(code.getByRole('button', { name: 'Copy' }))
    hands += model.click * 4 // an editor: open, paste, save as page.html, open the file
    writeFileSync(file, await code.locator('pre').innerText())
    await page.waitForTimeout(5_000) // the server reads its libraries again
    await page.reload()
    await code.waitFor()
    await page.getByText('Install the browser library').waitFor({ state: 'detached' })
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
rmSync(folder, { recursive: true, force: true })
