/**
 * A strict reader of Prometheus' text format 0.0.4: what a lenient one lets pass, and what the format leaves undefined
 * (a sample twice, lines of a metric apart, a histogram that is none), is an error here.
 */

/** A metric as it was read. A sample's key is its name and its labels, sorted: `a_total{x="1",y="2"}`. */
export interface Family {
  readonly type: string
  readonly help: string
  readonly samples: ReadonlyMap<string, number>
}

interface Sample {
  readonly name: string
  readonly labels: ReadonlyMap<string, string>
  readonly value: number
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const SUFFIXES = ['_bucket', '_sum', '_count']

/** Reads an exposition; throws an error that names the line. */
export function parseExposition(text: string): ReadonlyMap<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  const families = new Map<string, { type: string, help: string, list: Sample[] }>()
  let current = ''
  for (const line of text.slice(0, -1).split('\n')) {
    const fail = (why: string): never => { throw new Error(`${why}: ${line}`) }
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? []
    if (kind === 'HELP') {
      if (families.has(name)) fail('the metric was described before')
      if (!NAME.test(name) || /\\[^\\n]|\\$/.test(rest.replaceAll('\\\\', ''))) fail('not a description')
      families.set(current = name, { type: '', help: unescaped(rest), list: [] })
    } else if (kind === 'TYPE') {
      const family = name === current ? families.get(name) : undefined
      if (family === undefined || family.type !== '') return fail('a type out of its place')
      if (!['counter', 'gauge', 'histogram', 'summary'].includes(rest)) fail('not a type')
      family.type = rest
    } else {
      const sample = parseSample(line) ?? fail('not a sample')
      const family = families.get(current) ?? fail('a sample of no metric')
      if (family.type === '') fail('a sample before its type')
      const names = family.type === 'histogram' ? SUFFIXES.map(suffix => current + suffix)
        : family.type === 'summary' ? [current, `${current}_sum`, `${current}_count`] : [current]
      if (!names.includes(sample.name)) fail('a sample out of its place')
      if (family.type === 'counter' && !(sample.value >= 0)) fail('a counter below 0')
      family.list.push(sample)
    }
  }
  return new Map([...families].map(([name, { type, help, list }]) => {
    if (type === '') throw new Error(`no type: ${name}`)
    if (type === 'counter' && !name.endsWith('_total')) throw new Error(`a counter is not called so: ${name}`)
    const samples = new Map(list.map(sample => [keyOf(sample), sample.value]))
    if (samples.size < list.length) throw new Error(`a sample came twice: ${name}`)
    if (type === 'histogram') checkHistogram(name, list)
    return [name, { type, help, samples }]
  }))
}

function parseSample(line: string): Sample | undefined {
  const [, name = '', inside = '', text = ''] = /^([^{ ]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
  const value = text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number(text)
  const isNumber = /^[+-]?(Inf|(\d+(\.\d+)?(e[+-]?\d+)?))$|^NaN$/.test(text)
  if (!NAME.test(name) || !isNumber) return undefined
  const labels = new Map<string, string>()
  const pairs = [...inside.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^\\"]|\\[\\"n])*)"(?:,(?=.)|$)/gy)]
  if (pairs.reduce((length, [pair]) => length + pair.length, 0) < inside.length) return undefined
  for (const [, label, escaped] of pairs) {
    if (labels.has(label!)) return undefined
    labels.set(label!, unescaped(escaped!))
  }
  return { name, labels, value }
}

function unescaped(text: string): string { return text.replace(/\\(.)/g, (_, one) => one === 'n' ? '\n' : one) }

function keyOf({ name, labels }: Pick<Sample, 'name' | 'labels'>): string {
  const pairs = [...labels].sort(([a], [b]) => a < b ? -1 : 1).map(([label, value]) => `${label}=${JSON.stringify(value)}`)
  return pairs.length === 0 ? name : `${name}{${pairs.join(',')}}`
}

/** Each combination of labels has its buckets in order, cumulative, up to +Inf, and then its sum and its count. */
function checkHistogram(name: string, list: readonly Sample[]): void {
  const groups = new Map<string, Sample[]>()
  for (const sample of list) {
    const labels = new Map([...sample.labels].filter(([label]) => label !== 'le'))
    const key = keyOf({ name, labels })
    groups.set(key, [...groups.get(key) ?? [], sample])
  }
  for (const [key, samples] of groups) {
    const buckets = samples.slice(0, -2)
    const [sum, count] = samples.slice(-2)
    const inOrder = buckets.every((bucket, i) => bucket.name === `${name}_bucket` &&
      (i === 0 || (boundOf(bucket) > boundOf(buckets[i - 1]!) && bucket.value >= buckets[i - 1]!.value)))
    const isWhole = boundOf(buckets.at(-1)) === Infinity && sum?.name === `${name}_sum` &&
      count?.name === `${name}_count` && buckets.at(-1)!.value === count.value
    if (!inOrder || !isWhole || count.labels.has('le')) throw new Error(`not a histogram: ${key}`)
  }
}

function boundOf(bucket: Sample | undefined): number {
  const le = bucket?.labels.get('le') ?? ''
  return le === '+Inf' ? Infinity : le === '' ? NaN : Number(le)
}
