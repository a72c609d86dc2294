// The process: its start, its TLS, its log and its end.
import { mkdtempSync } from 'node:fs'
import path from 'node:path'
import grpc from '@grpc/grpc-js'
import { fromJSON } from '@grpc/proto-loader'
import { certificate } from './certificate.mjs'
import contract from './contract.json'
import { log, setLogLevel } from './log.mjs'
import { Plugin } from './plugin.mjs'

const COOKIE = '3f1b7c52-guidon-plugin'
const MAX_MESSAGE = 64 << 20

// unary makes a handler of a function from the request to the answer. What the function
// throws is a bug: the answers of the contract have their own errors.
function unary (answer) {
  return (call, callback) => {
    Promise.resolve().then(() => answer(call.request)).then(
      (out) => callback(null, out),
      (err) => {
        log('error', 'call failed', { error: String(err.stack) })
        callback({ code: grpc.status.UNKNOWN, details: String(err.message) })
      })
  }
}

export function serve (Sink) {
  if (process.env.GUIDON_PLUGIN_COOKIE !== COOKIE) {
    process.stderr.write('This is a plugin of Guidon: the server starts it.\n')
    process.exit(1)
  }
  setLogLevel(process.env.GUIDON_PLUGIN_LOG_LEVEL)
  process.on('SIGINT', () => {})
  const plugin = new Plugin(Sink)
  const end = () => plugin.closeAll().finally(() => process.exit(0))
  process.on('SIGTERM', end)

  const services = fromJSON(contract, { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true })
  const server = new grpc.Server({ 'grpc.max_receive_message_length': MAX_MESSAGE, 'grpc.max_send_message_length': MAX_MESSAGE })
  const add = (name, methods) => {
    const handlers = {}
    for (const [method, answer] of Object.entries(methods)) handlers[method] = unary(answer)
    server.addService(services[name], handlers)
  }
  add('guidon.plugin.v1.PluginService', plugin.common())
  add('guidon.sink.v1.SinkService', plugin.sink())
  add('plugin.GRPCController', { Shutdown: () => { setTimeout(end, 50); return {} } })
  server.addService(services['plugin.GRPCStdio'], { StreamStdio: () => {} })
  add('grpc.health.v1.Health', { Check: () => ({ status: 'SERVING' }) })

  let credentials = grpc.ServerCredentials.createInsecure()
  let suffix = ''
  if (process.env.PLUGIN_CLIENT_CERT) {
    const own = certificate()
    credentials = grpc.ServerCredentials.createSsl(Buffer.from(process.env.PLUGIN_CLIENT_CERT), [{ private_key: own.key, cert_chain: own.pem }], true)
    suffix = own.der.toString('base64').replace(/=+$/, '')
  }
  const socket = path.join(mkdtempSync(path.join(process.env.PLUGIN_UNIX_SOCKET_DIR, 'n')), 's')
  server.bindAsync('unix:' + socket, credentials, (err) => {
    if (err) {
      process.stderr.write(`listen on ${socket}: ${err.message}\n`)
      process.exit(1)
    }
    process.stdout.write(`1|1|unix|${socket}|grpc|${suffix}\n`)
  })
  if (process.env.GUIDON_PLUGIN_WATCH === 'stdin') {
    process.stdin.on('end', end).on('error', end).resume()
  }
}
