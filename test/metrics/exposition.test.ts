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

