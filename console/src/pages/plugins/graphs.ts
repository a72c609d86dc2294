// Which charts an instance has, by its kind.
import type { ChartUnit } from '../../ui/chart'

export interface Graph { title: string; unit: ChartUnit; hint: string; lines: Record<string, string>; kind?: 'area' | 'bars' }

const latency: Graph = { title: 'Latency', unit: 'seconds', hint: 'p99: 99 of 100 calls take less.', lines: { call_p50: 'p50', call_p99: 'p99' } }

const sink: Graph[] = [
  { title: 'Lag', unit: 'seconds', hint: 'Age of the oldest event that it does not have.', lines: { lag_seconds: 'behind' }, kind: 'area' },
  { title: 'Requests behind', unit: 'number', hint: 'Requests with events that it does not have.', lines: { lag_requests: 'requests' }, kind: 'area' },
  { title: 'Throughput', unit: 'per second', hint: 'Events that it has confirmed.', lines: { delivered: 'events' } },
  { title: 'Errors', unit: 'number', hint: 'A batch that failed is sent again. A refused event becomes a dead letter.', lines: { call_errors: 'failed batches', dead_letters: 'dead letters', restarts: 'restarts' }, kind: 'bars' },
]

const notifier: Graph[] = [
  { title: 'Throughput', unit: 'per second', hint: 'Calls, and messages that were delivered.', lines: { calls: 'calls', delivered: 'messages' } },
  latency,
  { title: 'Errors', unit: 'number', hint: 'A message that failed is tried again for a while.', lines: { failed_messages: 'failed messages', call_errors: 'failed calls', restarts: 'restarts' }, kind: 'bars' },
]

const matcher: Graph[] = [
  { title: 'Throughput', unit: 'per second', hint: 'Calls with questions. Answers from memory need none.', lines: { calls: 'calls' } },
  latency,
  { title: 'Errors', unit: 'number', hint: 'A flag that needs an answer and gets none is left out.', lines: { call_errors: 'failed calls', restarts: 'restarts' }, kind: 'bars' },
]

export function graphsOf(kind: string): Graph[] { return kind === 'notifier' ? notifier : kind === 'matcher' ? matcher : sink }
