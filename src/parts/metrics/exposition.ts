/**
 * `/metrics` in Prometheus' text format 0.0.4
 * (prometheus.io/docs/instrumenting/exposition_formats): a metric's lines are together, HELP and
 * TYPE first; histogram buckets are cumulative and end in `+Inf`. Names follow Prometheus: base
 * units, `_total`.
 */
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks'
import type { Store } from '../../store/store.ts'
import { VERSION } from '../../version.ts'
import type { Load } from '../../part.ts'
import type { Histogram, Metrics } from './metrics.ts'

export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Node's measured delay includes this interval. */
const DELAY_INTERVAL_MS = 10
const QUANTILES = [0.5, 0.9, 0.99]

type Labels = { readonly [name: string]: string }

type Sample = readonly [value: number, labels?: Labels, suffix?: string]

/** The types of Node 20 lack `count`. */
type LoopDelay = IntervalHistogram & { readonly count: number }

/** Escapes texts and label values; names are the program's own. */
export function metric(
  type: 'counter' | 'gauge' | 'histogram' | 'summary',
  name: string,
  help: string,
  ...samples: readonly Sample[]
): string {
  const lines = samples.map(([value, labels = {}, suffix = '']) => {
    const pairs = Object.entries(labels).map(
      ([label, text]) => `${label}="${text.replace(/[\\\n"]/g, escaped)}"`
    )
    return `${name}${suffix}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
  })
  const said = help.replace(/[\\\n]/g, escaped)
  return `# HELP ${name} ${said}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

function escaped(character: string): string {
  return character === '\n' ? '\\n' : `\\${character}`
}

export function watchEventLoop(): LoopDelay {
  const delay = monitorEventLoopDelay({ resolution: DELAY_INTERVAL_MS }) as LoopDelay
  delay.enable()
  return delay
}

export function exposition(
  { routes, malformed, writes, writeErrors }: Metrics,
  delay: LoopDelay,
  store: Store,
  { rateLimitClients, connections, lostLines, certificateEndMs }: Load
): string {
  const { count: entryCount, active: activeCount } = store.state.entries
  const { fault, fullSince, records, waiting } = store.status()
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  return [
    metric('gauge', 'pes_build_info', 'The program and its runtime.', [
      1,
      { version: VERSION, node: process.version }
    ]),
    metric(
      'counter',
      'pes_http_requests_total',
      'Requests that were answered; route is none where no route was reached.',
      ...Array.from(routes, ([route, { byStatus }]) => statusSamples(byStatus, { route })).flat()
    ),
    metric(
      'histogram',
      'pes_http_request_duration_seconds',
      'From the head of a request to its answer.',
      ...Array.from(routes, ([route, { seconds }]) => histogramSamples(seconds, { route })).flat()
    ),
    metric(
      'counter',
      'pes_http_malformed_requests_total',
      'Answers to what was not an HTTP request, or came too late.',
      ...statusSamples(malformed)
    ),
    metric(
      'histogram',
      'pes_journal_write_duration_seconds',
      'Writes to the journal, each of one or more records, until they were durable or had failed.',
      ...histogramSamples(writes)
    ),
    metric('counter', 'pes_journal_write_errors_total', 'Writes to the journal that failed.', [
      writeErrors
    ]),
    metric('gauge', 'pes_journal_records', 'Records in the journal.', [records]),
    metric('gauge', 'pes_journal_queue_length', 'Changes that wait for the journal.', [waiting]),
    metric(
      'gauge',
      'pes_journal_failed',
      '1 while the journal takes no writes, a full disk included.',
      [fault === undefined && fullSince === undefined ? 0 : 1]
    ),
    metric(
      'gauge',
      'pes_entries',
      'Entries in the store.',
      [activeCount, { status: 'active' }],
      [entryCount - activeCount, { status: 'deleted' }]
    ),
    metric('gauge', 'pes_rate_limit_clients', 'Clients in the table of the rate limit.', [
      rateLimitClients
    ]),
    metric('gauge', 'pes_http_connections', 'Open connections.', [connections]),
    metric(
      'counter',
      'pes_access_log_lost_lines_total',
      'Lines of the access log that were lost.',
      [lostLines]
    ),
    ...(certificateEndMs === undefined
      ? []
      : [
          metric(
            'gauge',
            'pes_certificate_end_seconds',
            'When the certificate in TLS_CERT ends, in seconds since 1970.',
            [certificateEndMs / 1000]
          )
        ]),
    metric(
      'summary',
      'nodejs_eventloop_delay_seconds',
      'How late a timer of the event loop was.',
      ...lateness(delay)
    ),
    metric('gauge', 'process_resident_memory_bytes', 'Resident memory.', [rss]),
    metric('gauge', 'nodejs_heap_size_total_bytes', 'The heap.', [heapTotal]),
    metric('gauge', 'nodejs_heap_size_used_bytes', 'What is used of the heap.', [heapUsed]),
    metric('gauge', 'nodejs_external_memory_bytes', 'Memory of buffers outside the heap.', [
      external
    ]),
    metric('counter', 'process_cpu_seconds_total', 'Time on a processor, user and system.', [
      (user + system) / 1e6
    ]),
    metric('gauge', 'process_start_time_seconds', 'When the process began, in Unix time.', [
      performance.timeOrigin / 1000
    ])
  ].join('')
}

export function histogramSamples(
  { counts, bounds, sum }: Histogram,
  labels: Labels = {}
): Sample[] {
  let count = 0
  const buckets = Array.from(counts, (inBucket, i): Sample => [
    (count += inBucket),
    { ...labels, le: String(bounds[i] ?? '+Inf') },
    '_bucket'
  ])
  return [...buckets, [sum, labels, '_sum'], [count, labels, '_count']]
}

function statusSamples(byStatus: Float64Array, labels: Labels = {}): Sample[] {
  return Array.from(byStatus, (count, status): Sample => [
    count,
    { ...labels, status: `${status}` }
  ]).filter(([count]) => count > 0)
}

function lateness(delay: LoopDelay): Sample[] {
  const seconds = (measuredNs: number): number =>
    Math.max(0, measuredNs / 1e9 - DELAY_INTERVAL_MS / 1000)
  return [
    ...QUANTILES.map((quantile): Sample => [
      seconds(delay.percentile(quantile * 100)),
      { quantile: `${quantile}` }
    ]),
    [delay.count === 0 ? 0 : seconds(delay.mean) * delay.count, {}, '_sum'],
    [delay.count, {}, '_count']
  ]
}
