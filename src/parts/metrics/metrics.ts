import type { Ended, Observer } from '../../log.ts'

const REQUEST_SECONDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10
]
const WRITE_SECONDS = [
  0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10
]
const HIGHEST_STATUS = 599

export class Histogram {
  /** Upper bounds, included, ascending; larger values have a bucket of their own. */
  readonly bounds: readonly number[]
  /** Not cumulative. */
  readonly counts: Float64Array
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  observe(value: number): void {
    let bucket = 0
    // ends after the last bound: nothing is greater than undefined
    while (value > this.bounds[bucket]!) bucket++
    this.counts[bucket]!++
    this.sum += value
  }
}

export class Metrics implements Observer {
  readonly routes: Map<string, { readonly byStatus: Float64Array; readonly seconds: Histogram }> =
    new Map()
  readonly malformed: Float64Array = new Float64Array(HIGHEST_STATUS + 1)
  readonly writes: Histogram = new Histogram(WRITE_SECONDS)
  writeErrors = 0

  requestEnded({ route, status, ms }: Pick<Ended, 'route' | 'status' | 'ms'>): void {
    const operation = route?.operation ?? 'none'
    let counts = this.routes.get(operation)
    if (counts === undefined) {
      counts = {
        byStatus: new Float64Array(HIGHEST_STATUS + 1),
        seconds: new Histogram(REQUEST_SECONDS)
      }
      this.routes.set(operation, counts)
    }
    counts.byStatus[status]!++
    counts.seconds.observe(ms / 1000)
  }

  malformedRefused(status: number): void {
    this.malformed[status]!++
  }

  journalWritten(ms: number, isMade: boolean): void {
    this.writes.observe(ms / 1000)
    if (!isMade) this.writeErrors++
  }
}
