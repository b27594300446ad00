/** What the service measures of itself. Names follow Prometheus: base units, `_total`. */
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks'
import type { Store } from '../../store/store.ts'
import { VERSION } from '../../version.ts'
import type { Observer } from '../../log.ts'
import type { PartContext } from '../part.ts'
import { Histogram, type Metric, type Sample } from './exposition.ts'

const REQUEST_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
const WRITE_SECONDS = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
/** How often the event loop's delay is looked at; what Node measures includes it. */
const DELAY_INTERVAL_MS = 10
const QUANTILES = [0.5, 0.9, 0.99]
const HIGHEST_STATUS = 599

interface RouteCounts {
  readonly byStatus: Float64Array
  readonly seconds: Histogram
}

/** The counters of one service, from its start on. */
export class Metrics implements Observer {
  readonly #routes = new Map<string, RouteCounts>()
  readonly #malformed = new Float64Array(HIGHEST_STATUS + 1)
  readonly #writes = new Histogram(WRITE_SECONDS)
  #writeErrors = 0
  // The types of Node 20 lack its count.
  readonly #loopDelay = monitorEventLoopDelay({ resolution: DELAY_INTERVAL_MS }) as
    IntervalHistogram & { readonly count: number }

  constructor() { this.#loopDelay.enable() }

  requestEnded(operation: string = 'none', status: number, ms: number): void {
    let counts = this.#routes.get(operation)
    if (counts === undefined) {
      counts = { byStatus: new Float64Array(HIGHEST_STATUS + 1), seconds: new Histogram(REQUEST_SECONDS) }
      this.#routes.set(operation, counts)
    }
    counts.byStatus[status]!++
    counts.seconds.observe(ms / 1000)
  }

  malformedRefused(status: number): void { this.#malformed[status]!++ }

  journalWritten(ms: number, isMade: boolean): void {
    this.#writes.observe(ms / 1000)
    if (!isMade) this.#writeErrors++
  }

  close(): void { this.#loopDelay.disable() }

  all(store: Store, { rateLimitClients, connections }: ReturnType<PartContext<object>['load']>): readonly Metric[] {
    const routes = [...this.#routes]
    const { entryCount, activeCount } = store
    const { fault, records, waiting } = store.health()
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
    const { user, system } = process.cpuUsage()
    return [
      gauge('build_info', 'The program and its runtime.', [1, { version: VERSION, node: process.version }]),
      counter('http_requests_total', 'Requests that were answered; route is none where no route was reached.',
        ...routes.flatMap(([route, { byStatus }]) => samplesOf(byStatus, { route }))),
      histogram('http_request_duration_seconds', 'From the head of a request to its answer.',
        ...routes.flatMap(([route, { seconds }]) => seconds.samples({ route }))),
      counter('http_malformed_requests_total', 'Answers to what was not an HTTP request, or came too late.',
        ...samplesOf(this.#malformed, {})),
      histogram('journal_write_duration_seconds',
        'Writes to the journal, each of one or more records, until they were durable or had failed.',
        ...this.#writes.samples()),
      counter('journal_write_errors_total', 'Writes to the journal that failed.', [this.#writeErrors]),
      gauge('journal_records', 'Records in the journal.', [records]),
      gauge('journal_queue_length', 'Changes that wait for the journal.', [waiting]),
      gauge('journal_failed', '1 while the journal takes no writes.', [fault === undefined ? 0 : 1]),
      gauge('entries', 'Entries in the store.',
        [activeCount, { status: 'active' }], [entryCount - activeCount, { status: 'deleted' }]),
      gauge('rate_limit_clients', 'Clients in the table of the rate limit.', [rateLimitClients]),
      gauge('http_connections', 'Open connections.', [connections]),
      summary('nodejs_eventloop_delay_seconds', 'How late a timer of the event loop was.', ...this.#delays()),
      gauge('process_resident_memory_bytes', 'Resident memory.', [rss]),
      gauge('nodejs_heap_size_total_bytes', 'The heap.', [heapTotal]),
      gauge('nodejs_heap_size_used_bytes', 'What is used of the heap.', [heapUsed]),
      gauge('nodejs_external_memory_bytes', 'Memory of buffers outside the heap.', [external]),
      counter('process_cpu_seconds_total', 'Time on a processor, user and system.', [(user + system) / 1e6]),
      gauge('process_start_time_seconds', 'When the process began, in Unix time.', [performance.timeOrigin / 1000])
    ]
  }

  #delays(): Sample[] {
    const delay = this.#loopDelay
    const seconds = (measuredNs: number): number => Math.max(0, measuredNs / 1e9 - DELAY_INTERVAL_MS / 1000)
    return [
      ...QUANTILES.map((quantile): Sample => [seconds(delay.percentile(quantile * 100)), { quantile: `${quantile}` }]),
      [delay.count === 0 ? 0 : seconds(delay.mean) * delay.count, {}, '_sum'], [delay.count, {}, '_count']
    ]
  }
}

type Make = (name: string, help: string, ...samples: readonly Sample[]) => Metric

const metricOf = (type: Metric['type']): Make => (name, help, ...samples) => ({ name, type, help, samples })
const [counter, gauge, histogram, summary] =
  [metricOf('counter'), metricOf('gauge'), metricOf('histogram'), metricOf('summary')]

function samplesOf(byStatus: Float64Array, labels: { readonly route?: string }): Sample[] {
  return Array.from(byStatus, (count, status): Sample => [count, { ...labels, status: `${status}` }])
    .filter(([count]) => count > 0)
}
