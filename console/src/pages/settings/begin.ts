// beginWith returns code that sends an event and asks for flags, for each client.
export function beginWith(token: string, origin: string): Record<string, string> {
  return {
    Browser: `import posthog from 'posthog-js'\n\nposthog.init('${token}', { api_host: '${origin}' })\nposthog.capture('signed up', { plan: 'pro' })\nposthog.onFeatureFlags((keys) => console.log(keys))`,
    'Node.js': `import { PostHog } from 'posthog-node'\n\nconst client = new PostHog('${token}', { host: '${origin}' })\nclient.capture({ distinctId: 'ada', event: 'signed up', properties: { plan: 'pro' } })\nconsole.log(await client.getAllFlags('ada'))\nawait client.shutdown()`,
    Python: `from posthog import Posthog\n\nclient = Posthog('${token}', host='${origin}')\nclient.capture('signed up', distinct_id='ada', properties={'plan': 'pro'})\nprint(client.get_all_flags('ada'))`,
    Go: `client, err := posthog.NewWithConfig("${token}", posthog.Config{Endpoint: "${origin}"})\nif err != nil {\n\treturn err\n}\ndefer client.Close()\nerr = client.Enqueue(posthog.Capture{DistinctId: "ada", Event: "signed up"})`,
    curl: `curl -X POST ${origin}/capture/ -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "event": "signed up", "distinct_id": "ada", "properties": {"plan": "pro"}}'\n\ncurl -X POST '${origin}/decide?v=3' -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "distinct_id": "ada"}'`,
  }
}
