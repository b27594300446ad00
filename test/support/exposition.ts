/**
 * A strict reader of Prometheus' text format 0.0.4: what a lenient one lets pass, and what the format leaves undefined
 * (a sample twice, lines of a metric apart), is an error here.
 */

/** A metric as it was read. A sample's key is its name and its labels, sorted: `a_total{x="1",y="2"}`. */
export interface Family {
  readonly type: string
  readonly help: string
  readonly samples: ReadonlyMap<string, number>
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^\\\\"\\n]|\\\\[\\\\"n])*"'
const NUMBER = '[+-]?(?:Inf|\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?)|NaN'
const HELP = '(?:[^\\\\\\n]|\\\\[\\\\n])*'
const METRIC = new RegExp(
  `^# HELP (${NAME}) (${HELP})\\n# TYPE \\1 (counter|gauge|histogram|summary)\\n((?:[^#\\n].*\\n)*)$`)
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)\\})? (${NUMBER})$`)
const SUFFIXES: { readonly [type: string]: readonly string[] } =
  { histogram: ['_bucket', '_sum', '_count'], summary: ['', '_sum', '_count'] }

/** Reads an exposition; throws an error that shows the line, or the metric. */
export function parseExposition(text: string): ReadonlyMap<string, Family> {
  const families = new Map<string, Family>()
  for (const block of text.split(/^(?=# HELP )/m)) {
    const [, name = '', help = '', type = '', lines = ''] = METRIC.exec(block) ?? fail('not a metric', block)
    if (families.has(name)) fail('the metric was described before', name)
    if (type === 'counter' && !name.endsWith('_total')) fail('a counter is not called so', name)
    const samples = new Map<string, number>()
    let bound = -Infinity
    for (const line of lines.split('\n').slice(0, -1)) {
      const [, sample = '', inside = '', number = ''] = SAMPLE.exec(line) ?? fail('not a sample', line)
      const value = Number(number.replace('Inf', 'Infinity'))
      if (!(SUFFIXES[type] ?? ['']).includes(sample.slice(name.length)) || !sample.startsWith(name)) {
        fail('a sample out of its place', line)
      }
      if (type === 'counter' && !(value >= 0)) fail('a counter below 0', line)
      if (sample.endsWith('_bucket')) {
        const next = Number(/\ble="([^"]*)"/.exec(inside)?.[1]?.replace('Inf', 'Infinity'))
        if (!(next > bound)) fail('a bucket below the one before', line)
        bound = next === Infinity ? -Infinity : next
      }
      const key = keyOf(sample, inside)
      if (samples.has(key)) fail('a sample came twice', line)
      samples.set(key, value)
    }
    families.set(name, { type, help: unescaped(help), samples })
  }
  return families
}

function fail(why: string, where: string): never { throw new Error(`${why}: ${where}`) }

function unescaped(text: string): string { return text.replace(/\\(.)/g, (_, one) => one === 'n' ? '\n' : one) }

function keyOf(name: string, inside: string): string {
  const pairs = [...inside.matchAll(/(\w+)="((?:[^\\"]|\\.)*)"/g)]
    .map(([, label, value]) => [label!, unescaped(value!)])
  if (new Set(pairs.map(([label]) => label)).size < pairs.length) fail('a label came twice', inside)
  const texts = pairs.map(([label, value]) => `${label}=${JSON.stringify(value)}`).sort()
  return texts.length === 0 ? name : `${name}{${texts.join(',')}}`
}
