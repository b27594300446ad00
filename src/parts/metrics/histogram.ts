/** A histogram with fixed buckets: how many values there were up to each bound, and their sum. */

/** Takes values of any unit; what it costs is a walk along the bounds, and no memory. */
export class Histogram {
  /** Upper bounds, included, ascending; what is above the last one has a bucket of its own. */
  readonly bounds: readonly number[]
  /** The values in each bucket alone. */
  readonly counts: Float64Array
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  observe(value: number): void {
    let bucket = 0
    while (value > this.bounds[bucket]!) bucket++ // ends after the last bound: nothing is greater than undefined
    this.counts[bucket]!++
    this.sum += value
  }
}
