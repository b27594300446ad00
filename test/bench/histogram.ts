/** Latencies in buckets that grow by a constant factor, so that adding one costs nothing that the load would feel. */

const BUCKETS_PER_OCTAVE = 32
const OCTAVES = 32

/** How far a percentile may be from the latency that it stands for, as a factor: half a bucket. */
export const HISTOGRAM_ERROR: number = 2 ** (0.5 / BUCKETS_PER_OCTAVE)

/** Latencies from a microsecond to an hour; what is outside counts as the nearest of them. */
export class Histogram {
  readonly #counts = new Uint32Array(BUCKETS_PER_OCTAVE * OCTAVES)
  #count = 0

  get count(): number { return this.#count }

  /** Adds a latency in milliseconds. */
  add(ms: number): void {
    const bucket = Math.floor(Math.log2(ms * 1000) * BUCKETS_PER_OCTAVE)
    this.#counts[Math.max(0, Math.min(bucket, this.#counts.length - 1))]!++
    this.#count++
  }

  /** The latency, in milliseconds, that this share (0 to 1) of all did not exceed; 0 where there are none. */
  percentileMs(share: number): number {
    let rest = Math.ceil(this.#count * share)
    if (rest === 0) return 0
    const bucket = this.#counts.findIndex(count => (rest -= count) <= 0)
    return 2 ** ((bucket + 0.5) / BUCKETS_PER_OCTAVE) / 1000
  }
}
