// The sink: it appends to a file and syncs it before it answers.
import { open } from 'node:fs/promises'
import { Refused } from './plugin.mjs'

export class Lines {
  static pluginName = 'example/node-lines'
  static version = '0.1.0'
  static summary = 'Appends events to a file.'
  static schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    additionalProperties: false,
    required: ['path'],
    properties: { path: { type: 'string', minLength: 1, description: 'The file to append to.' } },
  }

  // problems returns what is wrong with a config, by JSON Pointer.
  static problems (config) {
    if (typeof config !== 'object' || Array.isArray(config)) return [['', 'want an object']]
    const unknown = Object.keys(config).filter((key) => key !== 'path')
    const problems = unknown.map((key) => ['/' + key.replaceAll('~', '~0').replaceAll('/', '~1'), 'unknown key'])
    if (typeof config.path !== 'string' || !config.path) problems.push(['/path', 'want the path of a file'])
    return problems
  }

  constructor (config) {
    this.path = config.path
  }

  async open () {
    try {
      this.file = await open(this.path, 'a+')
    } catch (err) {
      throw new Refused('CLASS_CONFIG', 'path', err.message, { pointer: '/path' })
    }
    this.end = await this.endOfWholeLines()
    await this.file.truncate(this.end) // the server sends the batch of a torn line again
    return { max_in_flight: 1, ordering: 'ORDERING_TOTAL', dedup: 'DEDUP_NONE', commit: 'COMMIT_IMMEDIATE', durability: 'DURABILITY_LOCAL_DISK' }
  }

  async endOfWholeLines () {
    const buffer = Buffer.alloc(1 << 16)
    for (let end = (await this.file.stat()).size; end > 0;) {
      const begin = Math.max(0, end - buffer.length)
      const { bytesRead } = await this.file.read(buffer, 0, end - begin, begin)
      const newline = buffer.subarray(0, bytesRead).lastIndexOf('\n')
      if (newline >= 0) return begin + newline + 1
      end = begin
    }
    return 0
  }

  async write ({ records }) {
    const text = Buffer.concat((records?.json ?? []).flatMap((event) => [event, Buffer.from('\n')]))
    try {
      await this.file.appendFile(text)
      await this.file.datasync()
    } catch (err) {
      await this.file.truncate(this.end) // the next attempt begins at the same place
      throw err
    }
    this.end += text.length
    return {}
  }

  async close () {
    await this.file?.close()
  }
}
