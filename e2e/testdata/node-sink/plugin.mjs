// The answers of the contract: the life of instances, and the work of a sink.
import { log, setLogLevel } from './log.mjs'

const failure = (code, message, kind = 'CLASS_TRANSIENT', more = {}) => ({ class: kind, code, message, source: 'SOURCE_PLUGIN', ...more })

// Refused is an answer of the sink with a class of its own.
export class Refused extends Error {
  constructor (kind, code, message, more) {
    super(message)
    this.answer = failure(code, message, kind, more)
  }
}

function toError (err) {
  if (err instanceof Refused) return err.answer
  if (err.code) return failure('system', `${err.code}: ${err.message}`, 'CLASS_TRANSIENT', { source: 'SOURCE_DOWNSTREAM' })
  log('error', 'the sink failed', { error: String(err.stack) })
  return failure('exception', String(err.message), 'CLASS_INTERNAL')
}

export class Plugin {
  constructor (Sink) {
    this.Sink = Sink
    this.instances = new Map() // by id: { generation, text, config, sink, turn, status, error, since }
    this.draining = false
  }

  // readConfig decodes a config; problems are diagnostics.
  readConfig (message) {
    let config
    try {
      config = JSON.parse(message?.config_json?.length ? message.config_json.toString() : '{}') ?? {}
    } catch (err) {
      return { problems: [{ severity: 'SEVERITY_ERROR', pointer: '', summary: 'the config is not JSON', detail: String(err.message) }] }
    }
    for (const [pointer, value] of Object.entries(message?.secrets ?? {})) setAt(config, pointer, value.toString())
    const problems = this.Sink.problems(config).map(([pointer, summary]) => ({ severity: 'SEVERITY_ERROR', pointer, summary }))
    return { config, problems }
  }

  common () {
    return {
      Info: () => ({
        name: this.Sink.pluginName, version: this.Sink.version, summary: this.Sink.summary, kinds: ['KIND_SINK'], sdk: 'node',
        features: ['plugin/log_level/v1'], max_message_bytes: 64 << 20, multi_instance: true,
        exclusive: true, // Open truncates the file, and Node.js has no lock for it
      }),
      ConfigSchema: () => ({ json_schema: Buffer.from(JSON.stringify(this.Sink.schema)), defaults_json: Buffer.from('{}'), secret_pointers: [] }),
      Validate: ({ config }) => {
        const { problems } = this.readConfig(config)
        return { diagnostics: problems, valid: problems.length === 0 }
      },
      Configure: (request) => this.configure(request),
      Check: () => ({ error: failure('no_check', 'there is no check', 'CLASS_UNSUPPORTED') }),
      Health: ({ instance_ids: ids }) => ({
        serving: !this.draining,
        instances: [...this.instances].filter(([id]) => !ids.length || ids.includes(id)).map(([id, one]) => ({
          instance_id: id, status: this.draining ? 'STATUS_DRAINING' : one.status, error: one.error, since_us: String(one.since * 1000), generation: one.generation,
        })),
      }),
      Drain: async () => {
        this.draining = true
        await Promise.all([...this.instances.values()].map((one) => one.turn))
        return { drained: true }
      },
      Close: async ({ instance_id: id }) => {
        const one = this.instances.get(id)
        this.instances.delete(id)
        if (one) await inTurn(one, () => closeSink(one))
        return { closed: true }
      },
      Metrics: () => ({ collected: true, instances: [] }),
      SetLogLevel: ({ level }) => ({ set: setLogLevel(level) }),
    }
  }

  async configure ({ instance_id: id, generation, config: message }) {
    const one = this.instances.get(id) ?? { generation: 0n, turn: Promise.resolve(), since: Date.now(), status: 'STATUS_STARTING' }
    if (BigInt(generation) < BigInt(one.generation)) {
      return { error: failure('old_generation', `generation ${generation} is older than ${one.generation}`, 'CLASS_INTERNAL') }
    }
    const { config, problems } = this.readConfig(message)
    if (problems.length) return { diagnostics: problems }
    const text = JSON.stringify(config)
    if (one.text !== text || BigInt(generation) !== BigInt(one.generation)) {
      await inTurn(one, () => closeSink(one))
      Object.assign(one, { generation, text, config })
    }
    this.instances.set(id, one)
    return { accepted: true }
  }

  sink () {
    return {
      Open: ({ instance_id: id, committed_through: through }) => this.work(id, (error) => ({ error }), async (one) => {
        await closeSink(one)
        enter(one, 'STATUS_STARTING')
        const sink = new this.Sink(one.config)
        try {
          const properties = await sink.open(BigInt(through))
          one.sink = sink
          enter(one, 'STATUS_READY')
          return { opened: true, properties }
        } catch (err) {
          await sink.close()
          const error = toError(err)
          enter(one, 'STATUS_FAILED', error)
          return { error }
        }
      }),
      WriteBatch: (request) => this.work(request.instance_id, rejected, async (one) => {
        if (!one.sink) return rejected(failure('not_open', 'the instance is not open', 'CLASS_NOT_CONNECTED'))
        return { outcome: 'OUTCOME_COMMITTED', committed_through: request.last_seq, ...await one.sink.write(request) }
      }),
      Flush: ({ instance_id: id, up_to_seq: seq }) => this.work(id, (error) => ({ error }), async (one) => {
        if (!one.sink) return { error: failure('not_open', 'the instance is not open', 'CLASS_NOT_CONNECTED') }
        return { flushed: true, committed_through: seq } // every write is safe at once
      }),
    }
  }

  // work runs a function of one instance after those before it.
  async work (id, refused, run) {
    const one = this.instances.get(id)
    if (!one) return refused(failure('unknown_instance', `there is no instance ${id}`, 'CLASS_NOT_CONNECTED'))
    if (this.draining) return refused(failure('draining', 'the process is ending', 'CLASS_TRANSIENT'))
    return inTurn(one, () => run(one)).catch((err) => refused(toError(err)))
  }

  async closeAll () {
    this.draining = true
    await Promise.all([...this.instances.values()].map((one) => inTurn(one, () => closeSink(one))))
  }
}

const rejected = (error) => ({ outcome: 'OUTCOME_REJECTED', error })

// inTurn runs a function when those before it have ended.
function inTurn (one, run) {
  const out = one.turn.then(run)
  one.turn = out.catch(() => {})
  return out
}

async function closeSink (one) {
  const sink = one.sink
  one.sink = undefined
  if (sink) await sink.close()
}

function enter (one, status, error) {
  Object.assign(one, { status, error, since: Date.now() })
}

// setAt sets the value at a JSON Pointer whose parents exist.
function setAt (tree, pointer, value) {
  const parts = pointer.split('/').slice(1).map((p) => p.replaceAll('~1', '/').replaceAll('~0', '~'))
  const last = parts.pop()
  let at = tree
  for (const part of parts) at = at[part]
  at[last] = value
}
