// Uses one unmodified posthog-node as an application does and prints the results of
// the client as one JSON object.
//
//   node judge.mjs <package> < task.json
//
// The task: {url, project_key, personal_key, ids: [{id, properties}], run}.
import { readFileSync } from 'node:fs'

const task = JSON.parse(readFileSync(0, 'utf8'))
const { PostHog } = await import(process.argv[2])
const options = { host: task.url, flushAt: 100, flushInterval: 200, requestTimeout: 10000 }

const remote = new PostHog(task.project_key, options)
const local = new PostHog(task.project_key, {
  ...options, personalApiKey: task.personal_key, featureFlagsPollingInterval: 60000,
})
const failures = []
for (const client of [remote, local]) client.on?.('error', (e) => failures.push(String(e)))

const seen = { remote: {}, local: {}, payloads: {}, failures }
await local.reloadFeatureFlags()
for (const { id, properties } of task.ids) {
  const args = { personProperties: properties, disableGeoip: true }
  const answer = await remote.getAllFlagsAndPayloads(id, args)
  seen.remote[id] = answer.featureFlags
  seen.payloads[id] = answer.featureFlagPayloads
  seen.local[id] = await local.getAllFlags(id, { ...args, onlyEvaluateLocally: true })
}

// Stored properties: flags use them once the server has processed the event.
const stored = `${task.run}-stored`
remote.identify({ distinctId: stored, properties: { plan: 'pro', age: 42 } })
for (let n = 0; n < 25; n++) {
  remote.capture({ distinctId: `${task.run}-user-${n % 5}`, event: 'ordered', properties: { n, note: 'naïve 💻 "quoted"' } })
}
remote.alias({ distinctId: stored, alias: `${task.run}-alias` })
remote.groupIdentify({ groupType: 'organization', groupKey: 'acme', properties: { seats: 12 } })
seen.flag = await remote.getFeatureFlag(task.probe, stored, { personProperties: { plan: 'pro', age: 42 } })
await remote.shutdown()
await local.shutdown()
process.stdout.write(JSON.stringify(seen), () => process.exit(0))
