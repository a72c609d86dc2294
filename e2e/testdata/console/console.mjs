// Works with the console in Chromium as a person does, and prints what it saw as JSON:
// the time of each step, and everything that must not be: errors in the console (also of
// the content security policy), requests to other origins, findings of axe, pages wider
// than the window, and markup from texts that ran.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { chromium } from 'playwright-core'

const task = JSON.parse(readFileSync(0, 'utf8'))
const axe = readFileSync('node_modules/axe-core/axe.min.js', 'utf8')
const executablePath = (process.env.PATH ?? '').split(delimiter)
  .flatMap((dir) => ['chromium', 'chromium-browser'].map((name) => join(dir, name))).find(existsSync)
const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--no-proxy-server']
const patient = { timeout: 30_000 }
const out = { problems: [], steps: [], firstBytes: 0, firstContent: 0 }
const profile = mkdtempSync(join(tmpdir(), 'guidon-console-'))
const context = await chromium.launchPersistentContext(profile, { executablePath, args, headless: true, viewport: { width: 1280, height: 860 } })
context.setDefaultTimeout(patient.timeout)
const page = await context.newPage()
page.on('console', (m) => { if (m.type() === 'error' && !/Failed to load resource/.test(m.text())) out.problems.push(`console: ${m.text()}`) })
page.on('pageerror', (e) => out.problems.push(`error: ${e}`))
page.on('dialog', (d) => { if (d.type() !== 'beforeunload') out.problems.push(`a text ran as a script: ${d.message()}`); void d.accept() })
page.on('request', (r) => { if (!r.url().startsWith(task.url) && !r.url().startsWith('data:')) out.problems.push(`request to another origin: ${r.url()}`) })
page.on('response', (r) => {
  if (r.status() >= 400 && r.status() !== 401 && !r.url().includes('/api/session')) out.problems.push(`${r.status()} ${r.request().method()} ${r.url()}`)
})

let now = 'start'
// step runs one part of the story. A failure names it.
async function step(name, run) {
  now = name
  const begin = performance.now()
  await run()
  out.steps.push(`${name}: ${Math.round(performance.now() - begin)} ms`)
}

// check looks at the page in light, dark and narrow.
async function check(name) {
  await page.waitForFunction(() => !document.querySelector('.skeleton'))
  for (const mode of ['light', 'dark', 'narrow']) {
    await page.emulateMedia({ colorScheme: mode === 'dark' ? 'dark' : 'light', reducedMotion: 'reduce' })
    await page.setViewportSize(mode === 'narrow' ? { width: 360, height: 800 } : { width: 1280, height: 860 })
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
    if (wide > 0) out.problems.push(`${name}: ${wide} pixels wider than a window of 360`)
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

const link = (name) => page.getByRole('link', { name, exact: true })
const button = (name) => page.getByRole('button', { name, exact: true })

try {
  await step('sign in', async () => {
    const bytes = []
    const count = async (r) => bytes.push((await r.request().sizes()).responseBodySize)
    const counting = []
    const onResponse = (r) => { if (!r.url().includes('/api/')) counting.push(count(r)) }
    page.on('response', onResponse)
    await page.goto(task.url + '/', { waitUntil: 'networkidle' })
    await page.locator('#key, #email').waitFor()
    await check('sign-in')
    if (await button('Use a personal API key').isVisible()) await button('Use a personal API key').click()
    await page.getByLabel('Personal API key').fill('phx_wrong')
    await button('Sign in').click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Personal API key').fill(task.personal_key)
    await button('Sign in').click()
    await page.getByRole('heading', { name: 'Flags' }).waitFor()
    await page.waitForLoadState('networkidle')
    page.off('response', onResponse)
    await Promise.all(counting)
    out.firstBytes = bytes.reduce((a, b) => a + b, 0)
  })
  await step('list', async () => {
    await page.locator('.flag-row', { hasText: task.hostile }).waitFor()
    await check('flags')
    await page.getByRole('searchbox').fill('nothing-has-this')
    await page.getByText('No flag fits').waitFor()
    await page.getByRole('searchbox').fill('')
    await page.locator('.flag-row', { hasText: task.hostile }).waitFor()
  })
  await step('create', async () => {
    await page.keyboard.press('Escape')
    await page.getByRole('heading', { name: 'Flags' }).click()
    await page.keyboard.press('c')
    await page.getByLabel('Key', { exact: true }).fill('made-here')
    await button('Add a filter').click()
    await page.getByLabel('Property').fill('plan')
    await page.getByLabel('Value', { exact: true }).fill('pro')
    await page.getByLabel('Value', { exact: true }).press('Enter')
    await page.getByText(/Matches .* of /).waitFor()
    await page.getByRole('spinbutton').first().fill('50')
    await check('new')
    await button('Create the flag').click()
    await page.getByText('made-here is made.').waitFor()
    await check('code')
  })
  await step('edit', async () => {
    await link('Conditions').click()
    await button('Add variants').click()
    await page.getByLabel('Payload of test').fill('{"a": ')
    await page.getByText(/JSON/).first().waitFor()
    await page.getByLabel('Payload of test').fill('{"a": 1}')
    await check('edit')
    await button('Review and save').click()
    await page.getByText('+ test: {"a": 1}').waitFor()
    await check('review')
    await button('Save').click()
    await page.getByText('made-here is saved as version 2.').waitFor()
  })
  const id = () => page.url().match(/flags\/(\d+)/)[1]
  const byScript = async (changes) => {
    const answer = await fetch(`${task.url}/api/projects/1/feature_flags/${id()}/`, {
      method: 'PATCH', headers: { Authorization: `Bearer ${task.personal_key}`, 'Content-Type': 'application/json' }, body: JSON.stringify(changes),
    })
    if (!answer.ok) throw new Error(`PATCH by a script: ${answer.status}`)
  }
  await step('stay', async () => {
    const url = page.url()
    const description = page.getByLabel('Description', { exact: true })
    await description.fill('not saved')
    const stays = async (how, go) => {
      await go()
      await page.getByRole('heading', { name: 'Leave without saving?' }).waitFor()
      await button('Cancel').click()
      if (page.url() !== url || await description.inputValue() !== 'not saved') out.problems.push(`${how} loses unsaved changes: ${page.url()}`)
    }
    await stays('the sidebar', () => link('Flags').last().click())
    await stays('a shortcut', async () => {
      await page.getByRole('heading', { name: 'made-here' }).click()
      await page.keyboard.press('g')
      await page.keyboard.press('w')
    })
    await stays('the palette', async () => {
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: 'Search' }).fill('why')
      await page.keyboard.press('Enter')
    })
    await link('History').click() // another tab of the page keeps them
    await page.getByText('version 2, now').waitFor()
    await link('Conditions').click()
    await page.getByText('There are unsaved changes.').waitFor()
    await stays('Back', () => page.evaluate(() => history.go(-4))) // before the page, past its tabs
    await check('stay')
    await page.evaluate(() => history.back())
    await page.getByRole('heading', { name: 'Leave without saving?' }).waitFor()
    await button('Leave').click()
    await page.getByRole('heading', { name: 'Leave without saving?' }).waitFor({ state: 'detached' })
    await page.waitForURL((u) => u.href !== url)
    await page.goto(url)
    await page.getByText('version 2,').waitFor()
  })
  await step('merge', async () => {
    await page.getByLabel('Description', { exact: true }).fill('by hand')
    await byScript({ name: 'by a script', tags: ['script'] })
    const refused = out.problems.length
    await button('Review and save').click()
    await button('Save').click()
    await page.getByRole('heading', { name: 'Someone else saved first' }).waitFor()
    out.problems.splice(refused, out.problems.length - refused, ...out.problems.slice(refused).filter((p) => !p.startsWith('409 PATCH')))
    await page.getByText('by hand').first().waitFor()
    await check('merge')
    await button('Save').click()
    await page.getByText('made-here is saved as version 4.').waitFor()
    await page.getByText('script', { exact: true }).first().waitFor()
  })
  await step('roll back', async () => {
    await byScript({ created_at: '2020-01-01T00:00:00Z' }) // a version without an entry
    await page.reload()
    await page.getByText('version 5,').waitFor()
    await link('History').click()
    await button('Compare and roll back').nth(1).click()
    await page.getByRole('heading', { name: 'Back to version 3?' }).waitFor()
    await button('Cancel').click()
    if (await button('Compare and roll back').count() !== 4) out.problems.push('an entry without changes offers to roll back')
    await check('history')
    await button('Compare and roll back').last().click()
    await button('Roll back').click()
    await page.getByText('made-here is as it was at version 1.').waitFor()
  })
  await step('kill', async () => {
    await page.getByRole('switch', { name: 'made-here is on' }).click()
    await page.getByText('It reaches now').waitFor()
    await check('kill')
    await button('Cancel').click()
    const counts = '**/user_blast_radius/'
    await page.route(counts, () => {}) // never answered: nobody waits for it
    await page.getByRole('switch', { name: 'made-here is on' }).click()
    await page.getByText('Counting whom it reaches').waitFor()
    await button('Turn off').click()
    await page.getByRole('switch', { name: 'made-here is off' }).waitFor()
    await page.unroute(counts)
  })
  await step('usage', async () => {
    await link('Usage').click()
    await page.getByText('No client has reported a call').waitFor()
    await check('usage')
  })
  await step('why', async () => {
    await page.getByRole('heading', { name: 'made-here' }).click()
    await page.keyboard.press('g')
    await page.keyboard.press('w')
    await page.getByLabel('Distinct id').fill('ada')
    await button('Explain').click()
    await page.getByText('new-nav', { exact: true }).click()
    await page.locator('details[open]').getByText('condition 1').waitFor()
    await check('why')
    await page.getByText('What if a property were different?').click()
    await button('Change a property').click()
    await page.getByLabel('Property').fill('plan')
    await page.getByLabel('Value', { exact: true }).fill('pro')
    await page.locator('details[open]').getByText('from the request').first().waitFor()
  })
  await step('palette', async () => {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Search' }).fill('made')
    await page.getByRole('option', { name: 'made-here' }).waitFor()
    await check('palette')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'made-here' }).waitFor()
  })
  await step('large number', async () => {
    const made = page.url()
    await link('Flags').first().click()
    await page.getByText('large', { exact: true }).click()
    await page.getByText('a number that a browser cannot hold exactly').waitFor()
    if (await button('Add a condition').isEnabled()) out.problems.push('conditions with a rounded number can be edited')
    await check('large')
    await page.getByLabel('Description', { exact: true }).fill('described')
    await button('Review and save').click()
    await button('Save').click()
    await page.getByText('large is saved as version 2.').waitFor()
    const read = await fetch(`${task.url}/api/projects/1/feature_flags/${id()}/`, { headers: { Authorization: `Bearer ${task.personal_key}` } })
    if (!(await read.text()).includes('9007199254740993')) out.problems.push('saving the description changed a number in the conditions')
    await page.goto(made)
    await page.getByRole('heading', { name: 'made-here' }).waitFor()
  })
  await step('delete', async () => {
    await button('Delete the flag').click()
    if (await button('Delete').isEnabled()) out.problems.push('a flag can be deleted without typing its key')
    await page.getByLabel(/Type/).fill('made-here')
    await button('Delete').click()
    await page.getByText('made-here is deleted.').waitFor()
  })
  await step('invitation', async () => {
    const answer = await fetch(`${task.url}/api/organizations/@current/invites/`, {
      method: 'POST', headers: { Authorization: `Bearer ${task.personal_key}`, 'Content-Type': 'application/json' }, body: JSON.stringify({ target_email: 'ada@example.com', level: 15 }),
    })
    const { id, token } = await answer.json()
    await button('Sign out').click()
    await page.goto(`${task.url}/invitation#id=${id}&token=${token}`)
    await page.getByLabel('Name').fill('Ada')
    await page.getByLabel('Password').fill('correct horse battery')
    await check('invitation')
    if (page.url().includes(token)) out.problems.push('the token stays in the URL')
    await button('Accept and sign in').click()
    await page.getByText('new-nav', { exact: true }).waitFor()
    await page.reload()
    await page.getByRole('switch', { name: 'new-nav is on' }).click()
    await button('Turn off').click()
    await page.getByText('new-nav is off.').waitFor()
    await button('Sign out').click()
  })
  await step('password', async () => {
    await page.locator('#email').fill('ada@example.com')
    await page.locator('#password').fill('correct horse battery')
    await button('Sign in').click()
    await page.getByText('new-nav', { exact: true }).waitFor()
  })
  await step('link', async () => {
    let asked = 0
    page.on('request', (r) => { if (r.url().endsWith('/api/session/link/') || r.url().endsWith('/api/session/link')) asked++ })
    await page.goto('about:blank')
    await page.goto(`${task.url}/sign-in#link=${task.link}`)
    await page.getByText('You are signed in as ada@example.com.').waitFor()
    if (asked) out.problems.push('opening a link signs in without a click')
    if (page.url().includes(task.link)) out.problems.push('the link stays in the URL')
    await check('link')
    await page.route('**/api/session/link', (r) => r.fulfill({ status: 503, body: '' }), { times: 1 })
    await button('Sign in with the link').click()
    await page.getByText('The server answered with status 503.').waitFor()
    await button('Sign in with the link').click()
    await page.getByText('new-nav', { exact: true }).waitFor()
    await page.locator('.who[title="admin@localhost"]').waitFor()
  })
  await step('another user', async () => {
    const other = await context.newPage()
    const answer = await other.goto(task.url + '/').then(() => other.evaluate(() => fetch('/api/session', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ email: 'ada@example.com', password: 'correct horse battery' }) }).then((r) => r.status)))
    if (answer !== 200 && answer !== 201) throw new Error(`sign in as ada: ${answer}`)
    const refused = out.problems.length
    await page.getByRole('switch', { name: 'hostile is on' }).click()
    await button('Turn off').click()
    await page.getByText('ada@example.com has signed in in this browser.').waitFor()
    out.problems.splice(refused, out.problems.length - refused, ...out.problems.slice(refused).filter((p) => !p.startsWith('403 ')))
    await page.reload()
    await page.locator('.who[title="ada@example.com"]').waitFor()
    await page.getByRole('switch', { name: 'hostile is on' }).waitFor()
    await other.close()
  })
  await step('restart', async () => {
    const down = (url) => url.pathname.startsWith('/api/') && !url.pathname.endsWith('/methods')
    await page.route(down, (r) => r.abort())
    await page.reload()
    await page.getByText('The server cannot be reached.').first().waitFor()
    await check('unreachable')
    await page.unroute(down)
    await button('Try again').click()
    await page.locator('.who[title="ada@example.com"]').waitFor()
  })
  await step('first content', async () => {
    await context.clearCookies()
    const fresh = await context.newPage()
    await fresh.goto(task.url + '/sign-in')
    await fresh.locator('#key, #email').waitFor()
    out.firstContent = await fresh.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1)
    await fresh.close()
  })
} catch (e) {
  out.problems.push(`step "${now}" failed: ${String(e).slice(0, 1200)}; the page shows: ${(await page.locator('body').innerText().catch(() => '')).slice(0, 900)}`)
} finally {
  await context.close()
  rmSync(profile, { recursive: true, force: true })
}
process.stdout.write(JSON.stringify(out))
