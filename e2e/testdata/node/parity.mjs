// Evaluates every flag for every person with an unmodified posthog-node twice,
// remotely and locally, and prints both results.
//
//   TZ=UTC node parity.mjs <package> < task.json
import { readFileSync } from 'node:fs'

const task = JSON.parse(readFileSync(0, 'utf8'))
const { PostHog } = await import(process.argv[2])
const options = { host: task.url, requestTimeout: 10000 }
const remote = new PostHog(task.project_key, options)
const local = new PostHog(task.project_key, {
  ...options, personalApiKey: task.personal_key, featureFlagsPollingInterval: 60000,
})
await local.reloadFeatureFlags()
const seen = { remote: {}, local: {} }
for (const p of task.people) {
  const args = {
    groups: p.groups, personProperties: p.person_properties, groupProperties: p.group_properties, disableGeoip: true,
  }
  // posthog-node sends the device id as a person property.
  if (p.device_id) args.personProperties = { ...args.personProperties, $device_id: p.device_id }
  seen.remote[p.distinct_id] = await remote.getAllFlags(p.distinct_id, args)
  seen.local[p.distinct_id] = await local.getAllFlags(p.distinct_id, { ...args, onlyEvaluateLocally: true })
}
process.stdout.write(JSON.stringify(seen), () => process.exit(0))
