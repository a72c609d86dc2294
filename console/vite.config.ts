import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { defineConfig, type Plugin } from 'vite'

const out = '../core/console/dist'

// The server embeds each file as NAME.br and NAME.gz, and not the file itself.
function compress(): Plugin {
  return {
    name: 'compress',
    apply: 'build',
    closeBundle() {
      for (const entry of readdirSync(out, { recursive: true, withFileTypes: true })) {
        const path = `${entry.parentPath ?? entry.path}/${entry.name}`
        if (!entry.isFile() || entry.name === 'README') continue
        const content = readFileSync(path)
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }))
        writeFileSync(`${path}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length } }))
        rmSync(path)
      }
    },
  }
}

// The licenses of the packages that the console contains, at /console/licenses.txt.
function licenses(): Plugin {
  const texts = new Map<string, string>()
  const add = (name: string) => {
    if (texts.has(name)) return
    const folder = `node_modules/${name}`
    const { version, license, dependencies = {} } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) as { version: string; license: string; dependencies?: Record<string, string> }
    const file = readdirSync(folder).find((entry) => /^licen[sc]e/i.test(entry))
    texts.set(name, `${name} ${version} (${license})\n\n${file ? readFileSync(`${folder}/${file}`, 'utf8') : ''}`)
    Object.keys(dependencies).forEach(add)
  }
  return {
    name: 'licenses',
    apply: 'build',
    generateBundle() {
      const own = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: Record<string, string> }
      Object.keys(own.dependencies).forEach(add)
      this.emitFile({ type: 'asset', fileName: 'licenses.txt', source: [...texts.values()].join(`\n${'-'.repeat(80)}\n\n`) })
    },
  }
}

export default defineConfig({
  base: '/console/',
  plugins: [licenses(), compress()],
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    outDir: out,
    emptyOutDir: false, // README is committed; the build script removes the rest
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 200,
  },
  server: { proxy: Object.fromEntries(['/api', '/decide'].map((path) => [path, process.env.GUIDON_URL ?? 'http://127.0.0.1:8000'])) },
})
