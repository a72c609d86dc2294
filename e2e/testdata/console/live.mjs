// Watches events arrive.
import { api, button, check, context, out, page, run, signIn, step, task } from './lib.mjs'

const expect = (what, ok) => { if (!ok) out.problems.push(what) }
const rows = page.locator('.live-row')
const row = (text) => rows.filter({ hasText: text }).first()
const state = (text) => page.locator('.live-status b', { hasText: text }).waitFor()

async function send(events) {
  const answer = await fetch(`${task.url}/batch/`, {
    method: 'POST', headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ api_key: task.project_key, batch: events.map((e) => ({ distinct_id: 'ada', properties: {}, ...e })) }),
  })
  if (!answer.ok) throw new Error(`batch: ${answer.status} ${await answer.text()}`)
}

await run(async () => {
  await signIn('/flags')
  await step('nothing yet', async () => {
    await page.getByRole('heading', { name: 'Flags' }).click()
    await page.keyboard.press('g')
    await page.keyboard.press('l')
    await page.getByRole('heading', { name: 'Send an event and watch it arrive' }).waitFor()
    await state('Live')
    const line = await page.locator('.empty code').innerText()
    expect('the line has the key of the project', line.includes(task.project_key))
    await check('live-empty')
    const [, body] = /-d '(.*)'$/s.exec(line)
    await fetch(`${task.url}/capture/`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
    await row('signed up').waitFor()
  })
  await step('events arrive', async () => {
    await send([
      { event: 'bought', distinct_id: 'bob', properties: { plan: 'pro', note: task.hostile, $set: { email: 'bob@example.com' } } },
      { event: task.hostile, distinct_id: task.hostile },
      { event: '$pageview', properties: { $current_url: 'https://shop.example.com/cart?step=2' } },
      { event: '$feature_flag_called', properties: { $feature_flag: 'new-nav', $feature_flag_response: 'blue' } },
    ])
    await row('new-nav = blue').waitFor()
    expect(`${await rows.count()} rows, want 5`, await rows.count() === 5)
  })
  await step('the journey of one', async () => {
    await row('bought').click()
    const detail = page.getByRole('complementary', { name: 'Event' })
    const journey = detail.getByRole('list', { name: 'Where it is' })
    await journey.getByText('Stored', { exact: true }).waitFor()
    await journey.getByText('Matches the action').waitFor()
    await journey.getByText(/^Accepted/).waitFor()
    await journey.getByText(/^Delivered to/).waitFor()
    await detail.getByText('pro', { exact: true }).waitFor()
    expect('the link to Why', (await detail.getByRole('link', { name: 'Why' }).getAttribute('href')).endsWith('/why?id=bob'))
    const person = (await api('GET', '/api/projects/1/persons/?distinct_id=bob')).results[0]
    expect('the link to the person', (await detail.getByRole('link', { name: 'Person' }).getAttribute('href')).endsWith(`/persons/${person.uuid}`))
    await check('live')
    await page.reload()
    await detail.getByText('pro', { exact: true }).waitFor() // the event is in the URL
    await row('bought').click()
    await page.keyboard.press('Escape')
    await detail.waitFor({ state: 'detached' })
  })
  await step('filters', async () => {
    await page.getByLabel('Name of the event').fill('bought')
    await page.waitForURL(/event=bought/)
    await row('bob').waitFor()
    await page.waitForFunction(() => document.querySelectorAll('.live-row').length === 1)
    await state('Live')
    await send([{ event: 'other' }, { event: 'bought', distinct_id: 'eve' }])
    await row('eve').waitFor()
    expect('another event is not shown', await rows.count() === 2)
    await page.getByLabel('Name of the event').fill('')
    await page.getByLabel('Property', { exact: true }).fill('plan')
    await page.getByLabel('Value').fill('pro')
    await page.waitForURL(/property=plan.*value=pro/)
    await page.waitForFunction(() => document.querySelectorAll('.live-row').length === 2) // bob's, and that of the line
    await state('Live')
    await send([{ event: 'viewed', properties: { plan: 'free' } }, { event: 'viewed', distinct_id: 'zoe', properties: { plan: 'pro' } }])
    await row('zoe').waitFor()
    expect('only those with the property', await rows.count() === 3)
    await check('live-filtered')
    await row('zoe').click()
    await button('Only this distinct id').click()
    await page.waitForURL(/distinct_id=zoe/)
    await page.goBack()
    await page.waitForFunction(() => document.querySelectorAll('.live-row').length === 3)
    await page.goto(`${task.url}/console/project/1/live`)
    await state('Live')
  })
  await step('pause', async () => {
    await page.getByRole('heading', { name: 'Live' }).click()
    await row('zoe').waitFor()
    await page.keyboard.press('Space')
    await state('Paused')
    await send([{ event: 'while paused' }])
    await page.getByText('1 new event', { exact: true }).waitFor()
    expect('nothing moves while paused', await row('while paused').count() === 0)
    await page.keyboard.press('Space')
    await row('while paused').waitFor()
  })
  await step('a small window', async () => {
    await page.setViewportSize({ width: 360, height: 800 })
    await row('while paused').click()
    const detail = page.getByRole('complementary', { name: 'Event' })
    await detail.getByText('Stored', { exact: true }).waitFor()
    const box = await detail.boundingBox()
    expect(`the event is at ${JSON.stringify(box)}, out of sight`, box && box.y < 800 && box.y + box.height <= 801)
    expect('the event has not the focus', await detail.evaluate((el) => el.contains(document.activeElement)))
    await check('live-sheet')
    await page.setViewportSize({ width: 360, height: 800 })
    await button('Close the event').click()
    await page.waitForFunction(() => document.activeElement?.classList.contains('live-row'))
    await button('Menu').click()
    const inert = () => page.evaluate(() => document.getElementById('content').inert)
    expect('the content behind the menu is not inert', await inert())
    await page.waitForFunction(() => document.querySelector('.sidebar').contains(document.activeElement)) // the focus moves after the paint
    await page.keyboard.press('Escape')
    await page.locator('.sidebar.open').waitFor({ state: 'detached' })
    await page.waitForFunction(() => document.activeElement?.getAttribute('aria-label') === 'Menu')
    expect('the content stays inert', !await inert())
    await page.setViewportSize({ width: 1280, height: 860 })
  })
  await step('a person with several ids', async () => {
    const person = (await api('GET', '/api/projects/1/persons/?distinct_id=bob')).results[0]
    await page.goto(`${task.url}/console/project/1/persons/${person.uuid}`)
    await page.getByRole('main').getByRole('link', { name: 'Live' }).click()
    await page.waitForURL((url) => url.searchParams.get('person_id') === person.uuid)
    await page.locator('.live-person', { hasText: 'bob@example.com' }).waitFor()
    await state('Live')
    await send([{ event: 'someone else', distinct_id: 'eve' }, { event: '$identify', distinct_id: 'bob', properties: { $anon_distinct_id: 'bob-phone' } }])
    await row('$identify').waitFor()
    expect('events of others are shown', await row('someone else').count() === 0)
    await button('All persons').click()
    await row('someone else').waitFor()
  })
  await step('500 events a second', async () => {
    const cdp = await context.newCDPSession(page)
    await cdp.send('Performance.enable')
    const metrics = async () => Object.fromEntries((await cdp.send('Performance.getMetrics')).metrics.map((m) => [m.name, m.value]))
    const before = await metrics()
    await page.evaluate(() => {
      window.longest = 0
      new PerformanceObserver((list) => { for (const e of list.getEntries()) window.longest = Math.max(window.longest, e.duration) }).observe({ type: 'longtask' })
    })
    const begin = performance.now()
    const batches = task.looks ? 12 : 2 // of half a second
    for (let i = 0; i < batches; i++) {
      await send(Array.from({ length: 250 }, (_, n) => ({ event: `load ${n % 7}`, distinct_id: `person ${n}`, properties: { $current_url: `https://shop.example.com/${i}/${n}`, plan: 'pro', price: n } })))
      await new Promise((done) => { setTimeout(done, Math.max(0, begin + (i + 1) * 500 - performance.now())) })
    }
    await send([{ event: 'the last one' }])
    await row('the last one').waitFor()
    const seconds = (performance.now() - begin) / 1000
    const after = await metrics()
    const script = 1000 * (after.ScriptDuration - before.ScriptDuration) / seconds
    const busy = 1000 * (after.TaskDuration - before.TaskDuration) / seconds
    const heap = after.JSHeapUsedSize / 2 ** 20
    const longest = await page.evaluate(() => window.longest)
    out.steps.push(`500 events/s: ${script.toFixed(0)} ms of script and ${busy.toFixed(0)} ms of work a second, longest task ${longest.toFixed(0)} ms, heap ${heap.toFixed(1)} MiB, ${after.Nodes} nodes`)
    expect(`${await rows.count()} rows`, await rows.count() <= 200)
    expect(`heap ${heap} MiB`, heap < 150)
    await check('live-load')
  })
  await step('a new connection goes on where the old one ended', async () => {
    await context.setOffline(true)
    await send([{ event: 'before offline ends' }])
    await context.setOffline(false)
    await row('before offline ends').waitFor()
    await state('Live')
  })
  await step('a revoked key ends it', async () => {
    const made = await api('POST', '/api/personal_api_keys/', { label: 'second', scopes: ['*'] })
    await page.evaluate((key) => sessionStorage.setItem('guidon.key', key), made.value)
    await page.reload()
    await state('Live')
    await api('DELETE', `/api/personal_api_keys/${made.id}/`)
    await page.locator('#key, #email').first().waitFor()
  })
})
