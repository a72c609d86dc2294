// Evaluates scenarios with PostHog's unmodified web provider for OpenFeature in
// Chromium. All scenarios have one context.
//
//   node posthog-provider.mjs < task.json
import { readFileSync } from 'node:fs'
import { bundle, open } from './chromium.mjs'

const task = JSON.parse(readFileSync(0, 'utf8'))
const script = await bundle(`
  import posthog from 'posthog-js'
  import { OpenFeature } from '@openfeature/web-sdk'
  import { PostHogWebProvider } from '@posthog/openfeature-web-provider'
  Object.assign(window, { posthog, OpenFeature, PostHogWebProvider })
`)
const result = await open({ '/': '<!doctype html><title>OpenFeature</title><script src="/page.js"></script>', '/page.js': script }, async (page, origin) => {
  await page.goto(origin)
  return page.evaluate(async (task) => {
    posthog.init(task.project_key, { api_host: task.url, person_profiles: 'always', disable_external_dependency_loading: true })
    await OpenFeature.setProviderAndWait(new PostHogWebProvider(posthog), task.scenarios[0].context)
    const client = OpenFeature.getClient()
    const methods = { boolean: 'getBooleanDetails', string: 'getStringDetails', object: 'getObjectDetails' }
    return task.scenarios.map(({ key, type, default: fallback }) => {
      const details = client[methods[type]](key, fallback)
      return { value: details.value, variant: details.variant ?? '', reason: details.reason, code: details.errorCode ?? '' }
    })
  }, task)
})
process.stdout.write(JSON.stringify(result), () => process.exit(0))
