// Opens pages in Chromium, and serves them from an origin of their own, as a site
// does: requests to the server under test are cross-origin.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'

const executablePath = (process.env.PATH ?? '').split(delimiter)
  .flatMap((dir) => ['chromium', 'chromium-browser'].map((name) => join(dir, name))).find(existsSync)
const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--no-proxy-server']

// open serves files (by path) and calls use with a new page, the origin of the site,
// and a record of what the page did: requests with status, and console errors.
export async function open(files, use) {
  const site = createServer((request, response) => {
    const file = files[new URL(request.url, 'http://site').pathname]
    response.writeHead(file === undefined ? 204 : 200, { 'Content-Type': request.url.endsWith('.js') ? 'text/javascript' : 'text/html; charset=utf-8' })
    response.end(file)
  })
  await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve))
  const profile = mkdtempSync(join(tmpdir(), 'guidon-chromium-'))
  const context = await chromium.launchPersistentContext(profile, { executablePath, args, headless: true })
  try {
    const page = await context.newPage()
    const seen = { requests: [], failures: [], errors: [] }
    page.on('response', (r) => seen.requests.push({ url: r.url(), method: r.request().method(), status: r.status() }))
    page.on('requestfailed', (r) => seen.failures.push(`${r.url()}: ${r.failure()?.errorText}`))
    page.on('console', (m) => m.type() === 'error' && seen.errors.push(m.text()))
    page.on('pageerror', (e) => seen.errors.push(String(e)))
    return await use(page, `http://127.0.0.1:${site.address().port}`, seen)
  } finally {
    await context.close()
    site.close()
    rmSync(profile, { recursive: true, force: true })
  }
}

// bundle returns a module with everything that it imports as one script.
export async function bundle(module) {
  const result = await build({ stdin: { contents: module, resolveDir: process.cwd() }, bundle: true, format: 'iife', write: false, logLevel: 'error' })
  return result.outputFiles[0].text
}
