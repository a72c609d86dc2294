// Opens a site with the HTML snippet of posthog-js in Chromium and uses the library
// as a page does. The scripts come from the server under test.
//
//   node snippet.mjs < task.json
import { readFileSync } from 'node:fs'
import { open } from './chromium.mjs'

const task = JSON.parse(readFileSync(0, 'utf8'))
// The snippet is the loader that posthog-js publishes for pages.
const loader = readFileSync('snippet.js', 'utf8')
const html = (name) => `<!doctype html><title>${name}</title><h1>${name}</h1><button id="buy">Buy</button><a href="/second">Second</a>
<script>${loader}
  posthog.init(${JSON.stringify(task.project_key)}, {
    api_host: ${JSON.stringify(task.url)}, person_profiles: 'always', capture_pageview: true, capture_exceptions: true,
    capture_performance: { web_vitals: true, network_timing: true }, capture_dead_clicks: true, enable_heatmaps: true,
    opt_out_useragent_filter: true, // headless browsers count as bots
    loaded: (posthog) => { window.isLoaded = true },
  })
</script>`
const run = task.run

const result = await open({ '/': html('First'), '/second': html('Second') }, async (page, origin, seen) => {
  const ready = () => page.waitForFunction(() => window.isLoaded && window.posthog.__loaded)
  await page.goto(origin)
  await ready()
  const result = await page.evaluate(async ({ run, probe }) => {
    const call = (start) => new Promise((resolve, reject) => {
      start(resolve)
      setTimeout(() => reject(new Error(`no callback: ${start}`)), 20000)
    })
    await call((done) => posthog.onFeatureFlags(done))
    posthog.identify(`${run}-stored`, { plan: 'pro', age: 42 })
    posthog.group('organization', 'acme', { seats: 12 })
    for (let n = 0; n < 25; n++) posthog.capture('ordered', { n, note: 'naïve 💻 "quoted"' })
    posthog.setPersonPropertiesForFlags({ plan: 'pro', age: 42 }, false)
    await call((done) => { posthog.onFeatureFlags((_, all) => all[probe] === true && done()); posthog.reloadFeatureFlags() })
    const value = posthog.getFeatureFlag(probe)
    const features = await call((done) => posthog.getEarlyAccessFeatures(done, true))
    const before = posthog.getFeatureFlag('early-access')
    posthog.updateEarlyAccessFeatureEnrollment('early-access', true)
    await call((done) => { posthog.onFeatureFlags((_, all) => all['early-access'] === true && done()); posthog.reloadFeatureFlags() })
    const surveys = await call((done) => posthog.getSurveys((list, context) => done({ list, context }), true))
    setTimeout(() => { throw new Error('uncaught on purpose') })
    return { version: posthog.LIB_VERSION ?? posthog.version, flag: value, payload: posthog.getFeatureFlagPayload(probe), features,
      enrolled: [before, posthog.getFeatureFlag('early-access')], surveys }
  }, { run, probe: task.probe })
  await page.click('#buy')
  await page.waitForTimeout(3000) // dead clicks and web vitals are captured after a while
  await page.click('a')
  await ready()
  await page.waitForTimeout(1000)
  await page.goto('about:blank') // the library sends the rest with sendBeacon
  await page.waitForTimeout(500)
  const server = new URL(task.url).origin
  return { ...result,
    missing: seen.requests.filter((r) => r.status >= 400).map((r) => `${r.method} ${r.url} ${r.status}`),
    scripts: [...new Set(seen.requests.filter((r) => r.url.startsWith(server) && /\.js(\?|$)/.test(r.url)).map((r) => new URL(r.url).pathname))],
    failed: seen.failures, errors: seen.errors.filter((e) => !e.includes('uncaught on purpose')) }
})
process.stdout.write(JSON.stringify(result), () => process.exit(0))
