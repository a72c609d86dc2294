// Uses an unmodified posthog-node with the secret key of a project.
//
//   node secret.mjs <package> < task.json
import { readFileSync } from 'node:fs'

const task = JSON.parse(readFileSync(0, 'utf8'))
const { PostHog } = await import(process.argv[2])
const client = new PostHog(task.project_key, { host: task.url, secretKey: task.secret_key, featureFlagsPollingInterval: 60000, requestTimeout: 10000 })
const failures = []
client.on('error', (e) => failures.push(String(e)))
await client.reloadFeatureFlags()
const local = await client.getAllFlags(task.id, { personProperties: task.properties, onlyEvaluateLocally: true, disableGeoip: true })
const config = await client.getRemoteConfigPayload(task.config)
await client.shutdown()
process.stdout.write(JSON.stringify({ local, config, failures }), () => process.exit(0))
