// Evaluates scenarios with the unmodified core of OpenFeature's OFREP providers for
// JavaScript: the types that it checks are those of a server provider.
//
//   node ofrep-core.mjs < task.json
import { readFileSync } from 'node:fs'
import { OFREPApi, handleEvaluationError, toResolutionDetails } from '@openfeature/ofrep-core'

const task = JSON.parse(readFileSync(0, 'utf8'))
const api = new OFREPApi({ baseUrl: task.url, headers: [['X-API-Key', task.project_key]] })
const types = { integer: 'number', float: 'number' }
const results = []
for (const { key, type, default: fallback, context } of task.scenarios) {
  const answer = await api.postEvaluateFlag(key, { context }).catch((error) => error)
  const details = answer.httpStatus === 200 ? toResolutionDetails(answer.value, fallback) : handleEvaluationError(answer.value ?? answer, fallback)
  const mismatch = !details.errorCode && typeof details.value !== (types[type] ?? type)
  results.push({ value: details.value, variant: details.variant ?? '', reason: details.reason, code: mismatch ? 'TYPE_MISMATCH' : details.errorCode ?? '' })
}
process.stdout.write(JSON.stringify(results), () => process.exit(0))
