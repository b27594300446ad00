/** The text format that Prometheus reads, against a strict reader of it, which is itself shown to find faults. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { histogramSamples, metric } from '../../src/parts/metrics/exposition.ts'
import { Histogram } from '../../src/parts/metrics/metrics.ts'
import { parseExposition } from '../support/exposition.ts'

test('metrics are written as the format wants them, a value in the first bucket whose bound it does not exceed', () => {
  const seconds = new Histogram([0.5, 1])
  for (const value of [0.5, 0.75, 0.75, 3]) seconds.observe(value)
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
c_seconds_sum{x="y"} 5
c_seconds_count{x="y"} 4
`)
})

test('any help text or label value is read back as it was', () => {
  for (const text of ['', '\\', '\n', '"', '\\n', '\\\\n"\n', 'a,b="c"}', '{} 1', 'ñ 😀', ' a ']) {
    const [[name, family] = []] = [...parseExposition(metric('gauge', 'a', `x${text}`,
      [1, { label: text, other: 'b' }]))]
    assert.equal(name, 'a')
    assert.equal(family?.help, `x${text}`)
    assert.deepEqual([...family.samples], [[`a{label=${JSON.stringify(text)},other="b"}`, 1]])
  }
})

test('the reader refuses buckets that do not ascend', () => {
  const unsorted = new Histogram([0.5, 0.25])
  const text = metric('histogram', 'c_seconds', 'Three.', ...histogramSamples(unsorted, {}))
  assert.throws(() => parseExposition(text), /a bucket below the one before/)
})
