/**
 * Prometheus' text format, version 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats): the lines of a metric
 * are together, HELP and TYPE first; the buckets of a histogram are cumulative and end in `+Inf`.
 */

/** The format's content type. */
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Label values by their names. */
type Labels = { readonly [name: string]: string }

/** A value, its labels, and what follows the metric's name. */
export type Sample = readonly [value: number, labels?: Labels, suffix?: string]

/** A metric: what its values mean, and one value for each combination of labels. */
export interface Metric {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  readonly help: string
  readonly samples: readonly Sample[]
}

/** Writes metrics down. Names are the program's own and not checked; texts and label values are escaped. */
export function exposition(metrics: readonly Metric[]): string {
  return metrics.flatMap(({ name, type, help, samples }) => [
    `# HELP ${name} ${help.replace(/[\\\n]/g, escaped)}`, `# TYPE ${name} ${type}`,
    ...samples.map(([value, labels = {}, suffix = '']) => {
      const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text.replace(/[\\\n"]/g, escaped)}"`)
      return `${name}${suffix}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`
    })
  ]).map(line => `${line}\n`).join('')
}

function escaped(character: string): string { return character === '\n' ? '\\n' : `\\${character}` }

/** How many values there were up to each bound, and their sum; what it costs is a walk along the bounds. */
export class Histogram {
  /** Upper bounds, included, ascending; what is above the last one has a bucket of its own. */
  readonly #bounds: readonly number[]
  /** The values in each bucket alone. */
  readonly #counts: Float64Array
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Float64Array(bounds.length + 1)
  }

  observe(value: number): void {
    let bucket = 0
    while (value > this.#bounds[bucket]!) bucket++ // ends after the last bound: nothing is greater than undefined
    this.#counts[bucket]!++
    this.#sum += value
  }

  samples(labels: Labels = {}): Sample[] {
    let count = 0
    const buckets = Array.from(this.#counts, (inBucket, i): Sample =>
      [count += inBucket, { ...labels, le: String(this.#bounds[i] ?? '+Inf') }, '_bucket'])
    return [...buckets, [this.#sum, labels, '_sum'], [count, labels, '_count']]
  }
}
