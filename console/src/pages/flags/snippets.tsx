import { useState } from 'preact/hooks'
import type { Flag } from '../../api/types'
import { projects } from '../../app/session'
import { Code } from '../../ui/basics'

// snippetsFor returns code that asks for a flag, for six clients.
export function snippetsFor(key: string, token: string, origin: string, multivariate: boolean): Record<string, string> {
  const js = multivariate ? `const variant = posthog.getFeatureFlag('${key}')` : `if (posthog.isFeatureEnabled('${key}')) {\n  // the feature\n}`
  return {
    Browser: `import posthog from 'posthog-js'\n\nposthog.init('${token}', { api_host: '${origin}' })\nposthog.onFeatureFlags(() => {\n  ${js.replaceAll('\n', '\n  ')}\n})`,
    'Node.js': `import { PostHog } from 'posthog-node'\n\nconst client = new PostHog('${token}', { host: '${origin}' })\nconst value = await client.getFeatureFlag('${key}', 'ada')`,
    Python: `from posthog import Posthog\n\nclient = Posthog('${token}', host='${origin}')\nvalue = client.get_feature_flag('${key}', 'ada')`,
    Go: `import "github.com/posthog/posthog-go"\n\nclient, err := posthog.NewWithConfig("${token}", posthog.Config{Endpoint: "${origin}"})\nif err != nil {\n\treturn err\n}\nvalue, err := client.GetFeatureFlag(posthog.FeatureFlagPayload{Key: "${key}", DistinctId: "ada"})`,
    OpenFeature: `// OFREP: any provider of the OpenFeature Remote Evaluation Protocol\nimport { OFREPProvider } from '@openfeature/ofrep-provider'\nimport { OpenFeature } from '@openfeature/server-sdk'\n\nawait OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: '${origin}', headers: [['Authorization', 'Bearer ${token}']] }))\nconst value = await OpenFeature.getClient().get${multivariate ? 'String' : 'Boolean'}Value('${key}', ${multivariate ? "'control'" : 'false'}, { targetingKey: 'ada' })`,
    curl: `curl -X POST '${origin}/decide?v=3' -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "distinct_id": "ada"}'`,
  }
}

export function Snippets({ project, flag }: { project: string; flag: Flag }) {
  const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
  const all = snippetsFor(flag.key, token, location.origin, Boolean(flag.filters.multivariate?.variants.length))
  const [chosen, setChosen] = useState('Browser')
  return (
    <div class="stack">
      <div class="segments" role="group" aria-label="Client">{Object.keys(all).map((name) => <button key={name} type="button" aria-pressed={chosen === name} onClick={() => setChosen(name)}>{name}</button>)}</div>
      <Code label={chosen} text={all[chosen] ?? ''} />
    </div>
  )
}
