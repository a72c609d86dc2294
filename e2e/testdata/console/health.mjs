// Reads the page Health as an operator, with a server that gets events, and as a user who
// is none.
import { api, check, out, page, refused, run, signIn, step, task } from './lib.mjs'

const expect = (what, ok) => { if (!ok) out.problems.push(what) }
const capture = (event, properties, key = task.project_key) => fetch(`${task.url}/capture/`, {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ api_key: key, event, distinct_id: 'ada', properties }),
})

await run(async () => {
  await signIn()
  await step('all is well', async () => {
    await page.getByRole('heading', { name: 'Flags' }).click()
    await page.keyboard.press('g')
    await page.keyboard.press('h')
    await page.waitForURL(/\/health$/)
    await page.getByRole('status').filter({ hasText: /All is well|The server works/ }).waitFor()
    await page.locator('.chart-box canvas').first().waitFor()
    const alive = page.getByRole('region', { name: 'Nodes' }).getByText('alive')
    await alive.first().waitFor()
    expect('the list has another number of nodes than one', await alive.count() === 1)
    await check('health')
  })
  await step('a chart with the keyboard', async () => {
    const memory = page.getByRole('slider', { name: /^Memory: process/ })
    await memory.focus()
    await page.keyboard.press('Home')
    const text = await memory.getAttribute('aria-valuetext')
    expect(`the chart says ${text}`, /\d\d:\d\d.*: process .*, heap /.test(text))
    await page.getByRole('button', { name: 'Memory as a table' }).click()
    await page.getByRole('region', { name: 'Memory, newest first' }).waitFor()
    expect('the table has no value', /MiB/.test(await page.getByRole('region', { name: 'Memory, newest first' }).innerText()))
    await page.getByLabel('Time shown').selectOption('24h')
    await page.waitForURL(/range=24h/)
  })
  await step('a warning of the project', async () => {
    expect('the event is not taken', (await capture('x'.repeat(500), { [task.hostile]: task.hostile })).ok)
    for (let n = 0; n < 300 && (await api('GET', '/api/projects/1/ingestion_warnings/')).results.length === 0; n++) await new Promise((r) => setTimeout(r, 100))
    await page.reload()
    await page.getByRole('region', { name: 'Warnings' }).waitFor()
    await page.locator('.chart-box canvas').first().waitFor()
    await check('health-warning')
  })
  await step('refused events', async () => {
    const warning = page.getByText(/^\d+ events? (was|were) refused in the last hour/)
    expect('events are refused already', await warning.count() === 0)
    const answers = await Promise.all(Array.from({ length: 3 }, () => capture('x', {}, 'phc_wrong')))
    expect('a wrong key is taken', answers.every((a) => a.status === 401))
    for (let n = 0; n < 600 && !(await api('GET', '/api/health/series?names=events_wrong_key')).series[0].values.some((v) => v > 0); n++) await new Promise((r) => setTimeout(r, 100))
    await page.goto(page.url().replace(/\?.*/, '?range=1h'))
    await page.reload()
    await warning.waitFor()
    await page.getByText('3 without a valid project key').waitFor()
    await check('health-refused')
  })
  await step('without the right of an operator', async () => {
    await page.route('**/api/health/**', (route) => route.fulfill({ status: 403, contentType: 'application/json', body: '{"type":"authentication_error","code":"permission_denied","detail":"Only operators of this server may do this.","attr":null}' }))
    await refused(403, async () => {
      await page.goto(page.url().replace(/\?.*/, '?range=1h'))
      await page.reload()
      await page.getByText('Numbers of the server are for its operators').waitFor()
      await page.getByText('The server is ready.').waitFor()
      expect('charts are shown', await page.locator('.chart-card').count() === 0)
      await check('health-denied')
    })
  })
})
