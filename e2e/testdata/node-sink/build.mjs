// Writes ./lines: the sink, its packages and the messages of the contract in one
// executable file. The first argument is the directory of the .proto files.
import { chmodSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { build } from 'esbuild'
import protobuf from 'protobufjs'

const from = process.argv[2]
const root = new protobuf.Root()

root.resolvePath = (_, target) => protobuf.common.get(target) ? target : path.join(from, target)
root.loadSync(['guidon/sink/v1/sink.proto', 'goplugin/grpc_controller.proto', 'goplugin/grpc_stdio.proto', 'grpc/health/v1/health.proto'], { keepCase: true })
writeFileSync('contract.json', JSON.stringify(root.toJSON()))

await build({
  entryPoints: ['lines.mjs'], outfile: 'lines', bundle: true, platform: 'node', target: 'node20', format: 'cjs',
  banner: { js: '#!/usr/bin/env node' }, logLevel: 'warning',
})
chmodSync('lines', 0o755)
