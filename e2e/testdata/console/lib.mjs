// What the tests of the console share: Chromium with one page, and what must never be,
// whatever the story: errors in the console (also of the content security policy),
// requests to other origins, refused requests, findings of axe, pages wider than the
// window, and markup from texts that ran. run prints it as JSON with the time of each step.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { chromium } from 'playwright-core'

export const task = JSON.parse(readFileSync(0, 'utf8'))
const axe = readFileSync('node_modules/axe-core/axe.min.js', 'utf8')
export const executablePath = (process.env.PATH ?? '').split(delimiter)
  .flatMap((dir) => ['chromium', 'chromium-browser'].map((name) => join(dir, name))).find(existsSync)
export const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--no-proxy-server']
const patient = { timeout: 30_000 }
export const out = { problems: [], steps: [] }
const profile = mkdtempSync(join(tmpdir(), 'guidon-console-'))
export const context = await chromium.launchPersistentContext(profile, { executablePath, args, headless: true, viewport: { width: 1280, height: 860 } })
context.setDefaultTimeout(patient.timeout)
export const page = await context.newPage()
page.on('console', (m) => { if (m.type() === 'error' && !/Failed to load resource/.test(m.text())) out.problems.push(`console: ${m.text()}`) })
page.on('pageerror', (e) => out.problems.push(`error: ${e}`))
page.on('dialog', (d) => { if (d.type() !== 'beforeunload') out.problems.push(`a text ran as a script: ${d.message()}`); void d.accept() })
page.on('request', (r) => { if (!r.url().startsWith(task.url) && !r.url().startsWith('data:')) out.problems.push(`request to another origin: ${r.url()}`) })
page.on('response', (r) => {
  if (r.status() >= 400 && r.status() !== 401 && !r.url().includes('/api/session')) out.problems.push(`${r.status()} ${r.request().method()} ${r.url()}`)
})

let now = 'start'
// step runs one part of the story. A failure names it.
export async function step(name, run) {
  now = name
  const begin = performance.now()
  await run()
  out.steps.push(`${name}: ${Math.round(performance.now() - begin)} ms`)
}

// check looks at the page in light, dark and narrow, unless the task leaves looks out.
export async function check(name) {
  await page.waitForFunction(() => !document.querySelector('.skeleton'))
  if (!task.looks) return
  for (const mode of ['light', 'dark', 'narrow']) {
    await page.emulateMedia({ colorScheme: mode === 'dark' ? 'dark' : 'light', reducedMotion: 'reduce' })
    await page.setViewportSize(mode === 'narrow' ? { width: 360, height: 800 } : { width: 1280, height: 860 })
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
    if (wide > 0) out.problems.push(`${name}: ${wide} pixels wider than a window of 360`)
    const tall = await page.evaluate(() => {
      const content = document.querySelector('.shell, .sign-in')
      return content ? document.documentElement.scrollHeight - Math.max(window.innerHeight, content.getBoundingClientRect().bottom + window.scrollY) : 0
    })
    if (tall > 2) out.problems.push(`${name}, ${mode}: the page is ${tall} pixels taller than its content`)
    if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(axe)
    // Only colors differ in the dark.
    const rules = mode === 'dark' ? { runOnly: { type: 'rule', values: ['color-contrast'] } } : {}
    const found = await page.evaluate((rules) => window.axe.run(document, { resultTypes: ['violations'], ...rules }), rules)
    for (const v of found.violations) out.problems.push(`${name}, ${mode}: axe ${v.id}: ${v.nodes.map((n) => `${n.html.slice(0, 150)} ${n.any[0]?.message ?? ''}`).join('; ')}`)
    if (task.shots) {
      mkdirSync(task.shots, { recursive: true })
      await page.screenshot({ path: join(task.shots, `${name}-${mode}.png`) })
    }
  }
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  await page.setViewportSize({ width: 1280, height: 860 })
}

export const link = (name) => page.getByRole('link', { name, exact: true })
export const button = (name) => page.getByRole('button', { name, exact: true })

// api asks the server as a script does, with the personal key.
export async function api(method, path, body) {
  const answer = await fetch(task.url + path, {
    method, headers: { Authorization: `Bearer ${task.personal_key}`, 'Content-Type': 'application/json' }, body: body && JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`${method} ${path} by a script: ${answer.status} ${(await answer.text()).slice(0, 300)}`)
  return answer.status === 204 ? null : answer.json()
}

// refused runs a part of the story that provokes answers with a status on purpose.
export async function refused(status, run) {
  const before = out.problems.length
  await run()
  out.problems.splice(before, out.problems.length - before, ...out.problems.slice(before).filter((p) => !p.startsWith(`${status} `)))
}

// signIn signs in with the personal key, or another, and opens a view of project 1: signIn('/persons').
export async function signIn(path = '/flags', key = task.personal_key) {
  await page.goto(task.url + '/')
  await page.locator('#key, #email').waitFor()
  if (await button('Use a personal API key').isVisible()) await button('Use a personal API key').click()
  await page.getByLabel('Personal API key').fill(key)
  await button('Sign in').click()
  await page.locator('.who').first().waitFor()
  await page.goto(`${task.url}/console/project/1${path}`)
}

// run tells the story, closes the browser and prints what was seen.
export async function run(story) {
  try {
    await story()
  } catch (e) {
    out.problems.push(`step "${now}" failed: ${String(e).slice(0, 1200)}; the page shows: ${(await page.locator('body').innerText().catch(() => '')).slice(0, 900)}`)
  } finally {
    await context.close()
    rmSync(profile, { recursive: true, force: true })
  }
  process.stdout.write(JSON.stringify(out))
}
