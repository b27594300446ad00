/** The text format that Prometheus reads, against a strict reader of it, which is itself shown to find faults. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { histogramSamples, metric } from '../../src/parts/metrics/exposition.ts'
import { Histogram } from '../../src/parts/metrics/metrics.ts'
import { parseExposition } from '../support/exposition.ts'

test('a value falls into the first bucket whose bound it does not exceed', () => {
  const histogram = new Histogram([1, 5, 10])
  for (const value of [0, 1, 1.1, 5, 9, 10, 10.1, 1e9]) histogram.observe(value)
  assert.deepEqual(histogramSamples(histogram), [
    [2, { le: '1' }, '_bucket'], [4, { le: '5' }, '_bucket'], [6, { le: '10' }, '_bucket'], [8, { le: '+Inf' }, '_bucket'],
    [0 + 1 + 1.1 + 5 + 9 + 10 + 10.1 + 1e9, {}, '_sum'], [8, {}, '_count']
  ])
})

test('metrics are written as the format wants them', () => {
  const seconds = new Histogram([0.5, 1])
  for (const value of [0.25, 0.75, 0.75, 3]) seconds.observe(value)
  const texts = [
    metric('counter', 'a_total', 'One.', [3], [1e21, { x: 'y', z: '' }]),
    metric('gauge', 'b', 'Two.'),
    metric('histogram', 'c_seconds', 'Three.', ...histogramSamples(seconds, { x: 'y' }))
  ]
  assert.equal(texts.join(''), `# HELP a_total One.
# TYPE a_total counter
a_total 3
a_total{x="y",z=""} 1e+21
# HELP b Two.
# TYPE b gauge
# HELP c_seconds Three.
# TYPE c_seconds histogram
c_seconds_bucket{x="y",le="0.5"} 1
c_seconds_bucket{x="y",le="1"} 3
c_seconds_bucket{x="y",le="+Inf"} 4
c_seconds_sum{x="y"} 4.75
c_seconds_count{x="y"} 4
`)
})

test('any help text or label value is read back as it was', () => {
  for (const text of ['', '\\', '\n', '"', '\\n', '\\\\n"\n', 'a,b="c"}', '{} 1', 'ñ 😀', ' a ']) {
    const [[name, family] = []] = [...parseExposition(metric('gauge', 'a', `x${text}`, [1, { label: text, other: 'b' }]))]
    assert.equal(name, 'a')
    assert.equal(family?.help, `x${text}`)
    assert.deepEqual([...family.samples], [[`a{label=${JSON.stringify(text)},other="b"}`, 1]])
  }
})

const HEAD = '# HELP a A.\n# TYPE a gauge\n'
const HISTOGRAM = '# HELP h H.\n# TYPE h histogram\n'

const WRONG: { readonly [what: string]: string } = {
  'no line end': `${HEAD}a 1`,
  'an empty line': `${HEAD}\na 1\n`,
  'no type': '# HELP a A.\na 1\n',
  'no help': '# TYPE a gauge\na 1\n',
  'a type that there is not': '# HELP a A.\n# TYPE a number\na 1\n',
  'two types': `${HEAD}# TYPE a gauge\na 1\n`,
  'a metric in two places': `${HEAD}a 1\n# HELP b B.\n# TYPE b gauge\nb 1\n${HEAD}a{x="1"} 1\n`,
  'a sample of another metric': `${HEAD}b 1\n`,
  'a sample twice': `${HEAD}a{x="1",y="2"} 1\na{y="2",x="1"} 1\n`,
  'no value': `${HEAD}a\n`,
  'a value that is none': `${HEAD}a one\n`,
  'a hexadecimal value': `${HEAD}a 0x10\n`,
  'an undefined value': `${HEAD}a undefined\n`,
  'a label name with a hyphen': `${HEAD}a{x-y="1"} 1\n`,
  'a metric name with a hyphen': '# HELP a-b A.\n# TYPE a-b gauge\na-b 1\n',
  'a label twice': `${HEAD}a{x="1",x="2"} 1\n`,
  'a label without quotes': `${HEAD}a{x=1} 1\n`,
  'a quote that is not escaped': `${HEAD}a{x="1"2"} 1\n`,
  'a backslash that escapes nothing': `${HEAD}a{x="\\d"} 1\n`,
  'a backslash in a help that escapes nothing': '# HELP a \\d\n# TYPE a gauge\na 1\n',
  'a comma too many': `${HEAD}a{x="1",} 1\n`,
  'a negative counter': '# HELP a_total A.\n# TYPE a_total counter\na_total -1\n',
  'a counter without _total': '# HELP a A.\n# TYPE a counter\na 1\n',
  'a histogram without +Inf': `${HISTOGRAM}h_bucket{le="1"} 1\nh_sum 1\nh_count 1\n`,
  'a histogram that is not cumulative': `${HISTOGRAM}h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n`,
  'a histogram out of order':
    `${HISTOGRAM}h_bucket{le="2"} 1\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n`,
  'a histogram whose count is another': `${HISTOGRAM}h_bucket{le="+Inf"} 1\nh_sum 1\nh_count 2\n`,
  'a histogram without a sum': `${HISTOGRAM}h_bucket{le="+Inf"} 1\nh_count 1\n`,
  'a histogram without a count': `${HISTOGRAM}h_bucket{le="+Inf"} 1\nh_sum 1\n`,
  'a bare sample of a histogram': `${HISTOGRAM}h 1\n`
}

test('the strict reader refuses what a lenient one lets pass', () => {
  for (const [what, text] of Object.entries(WRONG)) assert.throws(() => parseExposition(text), Error, what)
})
