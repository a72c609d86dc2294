// Code that asks for a flag, for each client that is tested with the server.
import { useEffect, useState } from 'preact/hooks'
import type { Flag } from '../../api/types'
import { projects } from '../../app/session'
import { Code } from '../../ui/basics'

const page = 'HTML page'

// snippetsFor returns the code by client.
export function snippetsFor(key: string, token: string, origin: string, multivariate: boolean): Record<string, string> {
  const js = multivariate ? `const variant = posthog.getFeatureFlag('${key}')` : `if (posthog.isFeatureEnabled('${key}')) {\n  // the feature\n}`
  const shown = multivariate
    ? `const variant = posthog.getFeatureFlag('${key}')\n      if (variant) document.querySelector('h1').textContent = '${key} is ' + variant`
    : `if (posthog.isFeatureEnabled('${key}')) {\n        document.querySelector('h1').textContent = '${key} is on'\n      }`
  return {
    [page]: `<!doctype html>\n<title>${key}</title>\n<h1>${key} is off</h1>\n<script>\n  function start() {\n    posthog.init('${token}', { api_host: '${origin}' })\n    posthog.onFeatureFlags(() => {\n      ${shown}\n    })\n  }\n</script>\n<script async src="${origin}/static/array.js" onload="start()"></script>\n`,
    'npm, browser': `// npm install posthog-js\nimport posthog from 'posthog-js'\n\nposthog.init('${token}', { api_host: '${origin}' })\nposthog.onFeatureFlags(() => {\n  ${js.replaceAll('\n', '\n  ')}\n})`,
    'Node.js': `// npm install posthog-node\nimport { PostHog } from 'posthog-node'\n\nconst client = new PostHog('${token}', { host: '${origin}' })\nconst value = await client.getFeatureFlag('${key}', 'ada')`,
    Python: `# pip install posthog\nfrom posthog import Posthog\n\nclient = Posthog('${token}', host='${origin}')\nvalue = client.get_feature_flag('${key}', 'ada')`,
    Go: `import "github.com/posthog/posthog-go"\n\nclient, err := posthog.NewWithConfig("${token}", posthog.Config{Endpoint: "${origin}"})\nif err != nil {\n\treturn err\n}\nvalue, err := client.GetFeatureFlag(posthog.FeatureFlagPayload{Key: "${key}", DistinctId: "ada"})`,
    Java: `// com.posthog:posthog-server\nimport com.posthog.server.*;\n\nPostHogInterface client = PostHog.with(PostHogConfig.builder("${token}").host("${origin}").build());\nObject value = client.getFeatureFlag("ada", "${key}", PostHogFeatureFlagOptions.builder().build());`,
    Rust: `// cargo add posthog-rs\nuse posthog_rs::{ClientOptionsBuilder, EvaluateFlagsOptions};\n\nlet options = ClientOptionsBuilder::default().api_key("${token}".to_string()).host("${origin}").build()?;\nlet client = posthog_rs::client(options).await;\nlet flags = client.evaluate_flags("ada", EvaluateFlagsOptions::default()).await?;\nlet value = flags.get_flag("${key}");`,
    OpenFeature: `// OFREP: any provider of the OpenFeature Remote Evaluation Protocol\nimport { OFREPProvider } from '@openfeature/ofrep-provider'\nimport { OpenFeature } from '@openfeature/server-sdk'\n\nawait OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: '${origin}', headers: [['Authorization', 'Bearer ${token}']] }))\nconst value = await OpenFeature.getClient().get${multivariate ? 'String' : 'Boolean'}Value('${key}', ${multivariate ? "'control'" : 'false'}, { targetingKey: 'ada' })`,
    curl: `curl -X POST '${origin}/decide?v=3' -H 'Content-Type: application/json' \\\n  -d '{"api_key": "${token}", "distinct_id": "ada"}'`,
  }
}

// useLibrary reports whether the server has the browser library; true until that is known. It
// answers with a script that names the command, which is not to be cached, as long as it has none.
function useLibrary(): boolean {
  const [missing, setMissing] = useState(false)
  useEffect(() => {
    const abort = new AbortController()
    const look = async () => {
      const answer = await fetch('/static/array.js', { signal: abort.signal })
      setMissing(answer.ok && answer.headers.get('Cache-Control') === 'no-store')
      abort.abort()
    }
    look().catch(() => undefined) // it is also served by another address, or aborted
    return () => abort.abort()
  }, [])
  return !missing
}

export function Snippets({ project, flag }: { project: string; flag: Flag }) {
  const token = projects.value.find((p) => String(p.id) === project)?.api_token ?? 'PROJECT_KEY'
  const all = snippetsFor(flag.key, token, location.origin, Boolean(flag.filters.multivariate?.variants.length))
  const [chosen, setChosen] = useState(page)
  const installed = useLibrary()
  return (
    <div class="stack">
      {!flag.active && <p class="notice" role="note">The flag is off: clients get no value, or false. Turn it on with the switch above.</p>}
      <div class="segments" role="group" aria-label="Client">{Object.keys(all).map((name) => <button key={name} type="button" aria-pressed={chosen === name} onClick={() => setChosen(name)}>{name}</button>)}</div>
      {chosen === page && !installed && <><p>The page loads the browser library from this server, which has none yet. Run this once where the server runs:</p><Code label="Install the browser library" text="guidon clients install" /></>}
      {chosen === page && <p>Save it as <code>page.html</code> and open the file.</p>}
      <Code label={chosen} text={all[chosen] ?? ''} />
    </div>
  )
}
