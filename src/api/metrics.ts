/** What the service measures of itself, and how it is called. Names follow Prometheus: base units, `_total`. */
import type { Journal } from '../journal/journal.ts'
import { Histogram } from '../metrics/histogram.ts'
import type { Labelled, Metric } from '../metrics/exposition.ts'
import type { Store } from '../store/store.ts'

const REQUEST_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
const WRITE_SECONDS = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]
const DELAY_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
const HIGHEST_STATUS = 599
/** How often the event loop's delay is looked at. */
const DELAY_INTERVAL_MS = 100

/** What was asked of one route. */
interface RouteCounts {
  /** By status. */
  readonly requests: Float64Array
  readonly seconds: Histogram
}

/** The counters of one service. They only grow, from its start. */
export class Metrics {
  readonly #routes = new Map<string, RouteCounts>()
  readonly #malformed = new Float64Array(HIGHEST_STATUS + 1)
  readonly #writes = new Histogram(WRITE_SECONDS)
  #writeErrors = 0
  readonly #delays = new Histogram(DELAY_SECONDS)

  /** Counts an answer: the operation (undefined: no route had its turn), its status, and how long it took. */
  countRequest(operation: string = 'none', status: number, ms: number): void {
    let counts = this.#routes.get(operation)
    if (counts === undefined) {
      counts = { requests: new Float64Array(HIGHEST_STATUS + 1), seconds: new Histogram(REQUEST_SECONDS) }
      this.#routes.set(operation, counts)
    }
    counts.requests[status]!++
    counts.seconds.observe(ms / 1000)
  }

  /** Counts what was not even a request, by the status that it was answered with. */
  countMalformed(status: number): void { this.#malformed[status]!++ }

  /** Counts a write to the journal, and whether all of it was written. */
  countWrite(ms: number, isWhole: boolean): void {
    this.#writes.observe(ms / 1000)
    if (!isWhole) this.#writeErrors++
  }

  /** Looks at the event loop's delay until the function that it gives is called. `nowMs` never goes back. */
  watchEventLoop(nowMs: () => number): () => void {
    let dueMs = nowMs() + DELAY_INTERVAL_MS
    const timer = setInterval(() => {
      const now = nowMs()
      this.#delays.observe(Math.max(0, now - dueMs) / 1000)
      dueMs = now + DELAY_INTERVAL_MS
    }, DELAY_INTERVAL_MS).unref()
    return () => clearInterval(timer)
  }

  /** What was counted, and what the parts of the service tell at this moment. */
  all({ store, rateLimitClients, connections }: Measured): readonly Metric[] {
    return [...this.#requests(), ...this.#journal(store.journal), ...storeMetrics(store),
      gauge('rate_limit_clients', 'Clients that the rate limit keeps in mind.', [[rateLimitClients]]),
      gauge('http_connections', 'Open connections.', [[connections]]),
      ...this.#process()]
  }

  #requests(): Metric[] {
    const routes = [...this.#routes]
    return [
      counter('http_requests_total', 'Requests that were answered; the route is none where they did not reach one.',
        routes.flatMap(([route, { requests }]) => byStatus(requests, { route }))),
      {
        name: 'http_request_duration_seconds', type: 'histogram', help: 'From the head of a request to its answer.',
        values: routes.map(([route, { seconds }]) => [seconds, { route }])
      },
      counter('http_malformed_requests_total', 'Answers to what was not a request of HTTP, or not in time.',
        byStatus(this.#malformed, {}))
    ]
  }

  #journal(journal: Journal): Metric[] {
    const { fault, records, waiting } = journal.health()
    return [
      {
        name: 'journal_write_duration_seconds', type: 'histogram',
        help: 'Writes to the journal, each of one or more records, until they were durable or had failed.',
        values: [[this.#writes]]
      },
      counter('journal_write_errors_total', 'Writes to the journal that failed.', [[this.#writeErrors]]),
      gauge('journal_records', 'Records in the journal.', [[records]]),
      gauge('journal_queue_length', 'Changes that wait for the journal.', [[waiting]]),
      gauge('journal_latched', 'Whether the journal takes no writes.', [[fault ? 1 : 0]])
    ]
  }

  #process(): Metric[] {
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
    const { user, system } = process.cpuUsage()
    return [
      {
        name: 'nodejs_eventloop_delay_seconds', type: 'histogram', help: 'How late a timer of the event loop was.',
        values: [[this.#delays]]
      },
      gauge('process_resident_memory_bytes', 'Resident memory.', [[rss]]),
      gauge('nodejs_heap_size_total_bytes', 'The heap.', [[heapTotal]]),
      gauge('nodejs_heap_size_used_bytes', 'What is used of the heap.', [[heapUsed]]),
      gauge('nodejs_external_memory_bytes', 'Memory of buffers outside the heap.', [[external]]),
      counter('process_cpu_seconds_total', 'Time on a processor, user and system.', [[(user + system) / 1e6]]),
      gauge('process_start_time_seconds', 'When the process began, in Unix time.', [[performance.timeOrigin / 1000]])
    ]
  }
}

/** What is asked at the moment when the metrics are. */
export interface Measured {
  readonly store: Store
  readonly rateLimitClients: number
  readonly connections: number
}

function storeMetrics({ entryCount, activeCount }: Store): Metric[] {
  return [gauge('entries', 'Entries in the store.',
    [[activeCount, { status: 'active' }], [entryCount - activeCount, { status: 'deleted' }]])]
}

function byStatus(counts: Float64Array, labels: { readonly route?: string }): Labelled<number>[] {
  return [...counts].flatMap((count, status): Labelled<number>[] =>
    count === 0 ? [] : [[count, { ...labels, status: String(status) }]])
}

function counter(name: string, help: string, values: readonly Labelled<number>[]): Metric {
  return { name, help, type: 'counter', values }
}

function gauge(name: string, help: string, values: readonly Labelled<number>[]): Metric {
  return { name, help, type: 'gauge', values }
}
