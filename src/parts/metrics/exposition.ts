/**
 * Prometheus' text format, version 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats): the lines of a metric
 * are together, HELP and TYPE first; the buckets of a histogram are cumulative and end in `+Inf`.
 */
import type { Histogram } from './histogram.ts'

/** The format's content type. */
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Label values by their names. */
type Labels = { readonly [name: string]: string }

/** A metric: what its values mean, and one value for each combination of labels. */
export type Metric =
  | Described & { readonly type: 'counter' | 'gauge', readonly values: readonly Labelled<number>[] }
  | Described & { readonly type: 'histogram', readonly values: readonly Labelled<Histogram>[] }
  | Described & { readonly type: 'summary', readonly values: readonly Labelled<number>[] } & Totals

interface Totals {
  readonly count: number
  readonly sum: number
}

interface Described {
  readonly name: string
  readonly help: string
}

/** A value and its labels. */
export type Labelled<T> = readonly [value: T, labels?: Labels]

/** Writes metrics down. Names are the program's own and not checked; texts and label values are escaped. */
export function exposition(metrics: readonly Metric[]): string {
  const lines: string[] = []
  for (const metric of metrics) {
    const { name, help, type } = metric
    lines.push(`# HELP ${name} ${help.replace(/[\\\n]/g, escaped)}`, `# TYPE ${name} ${type}`)
    if (metric.type === 'histogram') for (const one of metric.values) lines.push(...histogramLines(name, one))
    else for (const [value, labels] of metric.values) lines.push(line(name, labels, value))
    if (metric.type === 'summary') {
      lines.push(line(`${name}_sum`, {}, metric.sum), line(`${name}_count`, {}, metric.count))
    }
  }
  return lines.map(one => `${one}\n`).join('')
}

function histogramLines(name: string, [{ bounds, counts, sum }, labels = {}]: Labelled<Histogram>): string[] {
  let count = 0
  const buckets = [...counts].map((inBucket, i) => {
    count += inBucket
    return line(`${name}_bucket`, { ...labels, le: bounds[i] === undefined ? '+Inf' : String(bounds[i]) }, count)
  })
  return [...buckets, line(`${name}_sum`, labels, sum), line(`${name}_count`, labels, count)]
}

function line(name: string, labels: Labels = {}, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text.replace(/[\\\n"]/g, escaped)}"`)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`
}

function escaped(character: string): string { return character === '\n' ? '\\n' : `\\${character}` }
