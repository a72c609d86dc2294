// Opens the pages of a large project while events arrive, and measures each interaction
// through the DevTools protocol: time in scripts, time in styles and layout, CPU time of the
// main thread, and the heap after a collection. On a busy machine most of a time by the clock
// is waiting for a core, so scripts are measured by the clock and in CPU time.
import { context, out, page, run, signIn, step } from './lib.mjs'

out.pages = []
const protocol = await context.newCDPSession(page)
await protocol.send('Performance.enable', { timeDomain: 'timeTicks' })
// A session has one clock: this one counts what the thread used.
const thread = await context.newCDPSession(page)
await thread.send('Performance.enable', { timeDomain: 'threadTicks' })

async function metrics(session) {
  const { metrics } = await session.send('Performance.getMetrics')
  return Object.fromEntries(metrics.map((m) => [m.name, m.value]))
}

// times returns seconds since the page was opened, by the clock and of CPU.
async function times() {
  const [clock, cpu] = await Promise.all([metrics(protocol), metrics(thread)])
  return { script: clock.ScriptDuration, layout: clock.LayoutDuration + clock.RecalcStyleDuration, scriptCPU: cpu.ScriptDuration, taskCPU: cpu.TaskDuration }
}

// quiet waits until what the interaction began is on the page.
async function quiet() {
  await page.waitForFunction(() => !document.querySelector('.skeleton'))
  await page.waitForTimeout(600)
}

// visit measures the interactions of a page; each must end in less than 100 ms of script.
async function visit(name, interactions) {
  await step(name, async () => {
    const seen = { page: name, slowest: '', script: 0, scriptCPU: 0, taskCPU: 0, layout: 0, heap: 0 }
    for (const [what, act] of Object.entries(interactions)) {
      const before = await times()
      await act()
      await quiet()
      const after = await times()
      const took = Object.fromEntries(Object.keys(after).map((k) => [k, (after[k] - before[k]) * 1000]))
      out.steps.push(`${name}, ${what}: script ${took.script.toFixed(0)} ms, of it CPU ${took.scriptCPU.toFixed(0)} ms; all tasks ${took.taskCPU.toFixed(0)} ms of CPU; layout ${took.layout.toFixed(0)} ms`)
      if (took.scriptCPU > seen.scriptCPU) Object.assign(seen, { slowest: what, script: took.script, scriptCPU: took.scriptCPU, taskCPU: took.taskCPU })
      seen.layout = Math.max(seen.layout, took.layout)
    }
    await protocol.send('HeapProfiler.collectGarbage')
    seen.heap = (await metrics(protocol)).JSHeapUsedSize
    out.pages.push(seen)
  })
}

const go = (title) => () => page.locator('nav').getByRole('link', { name: title }).first().click()
const search = (text) => () => page.getByRole('searchbox').first().fill(text)

await run(async () => {
  await signIn('/settings/general')
  await visit('Flags', {
    open: go('Flags'), search: search('flag-49'), clear: search(''), next: () => page.getByRole('button', { name: 'Next' }).click(),
    flag: () => page.locator('.flag-row a').first().click(), 'add a condition': () => page.getByRole('button', { name: 'Add a condition' }).click(),
    leave: async () => {
      await go('Flags')()
      await page.getByRole('button', { name: 'Leave', exact: true }).click()
    },
  })
  await visit('Why', {
    open: go('Why'),
    explain: async () => {
      await page.getByLabel('Distinct id').fill('person-7')
      await page.getByRole('button', { name: 'Explain' }).click()
      await page.getByText('flag-0002', { exact: true }).first().waitFor()
    },
  })
  await visit('Live', { open: go('Live'), 'a second of events': () => page.waitForTimeout(1_000) })
  await visit('Persons', {
    open: go('Persons'), search: search('person-7@example.com'),
    person: () => page.locator('main a[href*="/persons/"]').first().click(),
    'flags of the person': () => page.getByRole('navigation', { name: 'Parts of the person' }).getByRole('link', { name: 'Flags' }).click(),
    'next flags': () => page.getByRole('button', { name: 'Next' }).click(),
  })
  for (const name of ['Actions', 'Plugins', 'Dead letters', 'Health', 'Settings']) await visit(name, { open: go(name) })
})
