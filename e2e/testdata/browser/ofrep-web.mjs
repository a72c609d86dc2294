// Uses the unmodified OFREP web provider of OpenFeature in Chromium.
//
//   node ofrep-web.mjs scenarios < task.json   evaluates scenarios
//   node ofrep-web.mjs stream < task.json      waits for a change by the event stream
import { readFileSync } from 'node:fs'
import { bundle, open } from './chromium.mjs'

const task = JSON.parse(readFileSync(0, 'utf8'))
const script = await bundle(`
  import { OpenFeature } from '@openfeature/web-sdk'
  import { OFREPWebProvider } from '@openfeature/ofrep-web-provider'
  Object.assign(window, { OpenFeature, OFREPWebProvider })
`)
const page = '<!doctype html><title>OFREP</title><script src="/page.js"></script>'

async function scenarios(page) {
  return page.evaluate(async (task) => {
    const results = []
    const provider = new OFREPWebProvider({ baseUrl: task.url, headers: [['Authorization', `Bearer ${task.project_key}`]], cacheMode: 'disabled' })
    await OpenFeature.setProviderAndWait(provider, task.scenarios[0].context)
    const client = OpenFeature.getClient()
    const methods = { boolean: 'getBooleanDetails', string: 'getStringDetails', integer: 'getNumberDetails', float: 'getNumberDetails', object: 'getObjectDetails' }
    let current = JSON.stringify(task.scenarios[0].context)
    for (const { key, type, default: fallback, context } of task.scenarios) {
      if (JSON.stringify(context) !== current) {
        current = JSON.stringify(context)
        await OpenFeature.setContext(context)
      }
      const details = client[methods[type]](key, fallback)
      results.push({ value: details.value, variant: details.variant ?? '', reason: details.reason, code: details.errorCode ?? '' })
    }
    return results
  }, task)
}

async function stream(page, origin, seen) {
  const streams = []
  page.on('request', (r) => r.headers().accept === 'text/event-stream' && streams.push(new URL(r.url()).pathname))
  const before = await page.evaluate(async (task) => {
    const provider = new OFREPWebProvider({ baseUrl: task.url, headers: [['Authorization', `Bearer ${task.project_key}`]], cacheMode: 'disabled' })
    await OpenFeature.setProviderAndWait(provider, { targetingKey: 'ada' })
    window.changed = new Promise((resolve) => OpenFeature.addHandler('PROVIDER_CONFIGURATION_CHANGED', resolve))
    return OpenFeature.getClient().getBooleanValue('plain-flag', true)
  }, task)
  for (const deadline = Date.now() + 20000; streams.length === 0 && Date.now() < deadline;) await page.waitForTimeout(50)
  const { method, path, body } = task.change
  const answer = await fetch(task.url + path, {
    method, body: JSON.stringify(body), headers: { Authorization: `Bearer ${task.personal_key}`, 'Content-Type': 'application/json' },
  })
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status}`)
  const after = await page.evaluate(async () => {
    const value = () => OpenFeature.getClient().getBooleanValue('plain-flag', false)
    for (const deadline = Date.now() + 20000; value() !== true && Date.now() < deadline;) {
      await Promise.race([window.changed, new Promise((resolve) => setTimeout(resolve, 100))])
    }
    return value()
  })
  return { before, after, streams, failures: seen.errors }
}

const result = await open({ '/': page, '/page.js': script }, async (page, origin, seen) => {
  await page.goto(origin)
  return (process.argv[2] === 'stream' ? stream : scenarios)(page, origin, seen)
})
process.stdout.write(JSON.stringify(result), () => process.exit(0))
