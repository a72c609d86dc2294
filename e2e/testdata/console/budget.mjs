// Loads pages as a browser that has been there before does, each several times, and measures
// through the DevTools protocol: the first contentful paint, shifts of the layout, and the CPU
// time of scripts. A plain page of the same server, measured in between, tells what the machine
// takes for any page at the moment.
import { context, out, page, run, signIn, step, task } from './lib.mjs'

const loads = 8
const paint = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null
const shifts = () => new Promise((done) => {
  let sum = 0
  new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) sum += e.value }).observe({ type: 'layout-shift', buffered: true })
  setTimeout(() => done(sum), 200) // buffered entries come in a task of their own
})

// load opens a URL in a tab of its own and waits until it has what it shows. key signs the tab in.
async function load(url, key, shown) {
  const tab = await context.newPage()
  if (key) await tab.addInitScript((k) => sessionStorage.setItem('guidon.key', k), key)
  const thread = await context.newCDPSession(tab)
  await thread.send('Performance.enable', { timeDomain: 'threadTicks' })
  await tab.goto(url, { waitUntil: 'load' })
  if (shown) await tab.getByRole('heading', { name: shown, level: 1 }).first().waitFor()
  await tab.waitForFunction(() => !document.querySelector('.skeleton'))
  await tab.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0)
  const { metrics } = await thread.send('Performance.getMetrics')
  const seen = { paint: await tab.evaluate(paint), shift: await tab.evaluate(shifts), script: 1000 * metrics.find((m) => m.name === 'ScriptDuration').value }
  await tab.close()
  return seen
}

const best = (values) => Math.min(...values)
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

out.loads = []
await run(async () => {
  await signIn('/flags')
  await page.getByRole('heading', { name: 'Flags', level: 1 }).waitFor()
  for (const [name, path] of [['Flags', '/flags'], ['Why', '/why'], ['Live', '/live'], ['Persons and groups', '/persons'], ['Actions', '/actions'], ['Plugins', '/plugins'], ['Dead letters', '/dead-letters'], ['Health', '/health']]) {
    await step(name, async () => {
      const seen = [], plain = []
      for (let i = 0; i < loads; i++) {
        seen.push(await load(`${task.url}/console/project/1${path}`, task.personal_key, name))
        plain.push((await load(`${task.url}/_readiness`)).paint)
      }
      const of = (what) => seen.map((s) => s[what])
      out.loads.push({ page: name, paint: best(of('paint')), median: median(of('paint')), plain: best(plain), shift: Math.max(...of('shift')), script: best(of('script')) })
    })
  }
})
