/** Plots as SVG: plain shapes and texts on a white card, so that they read on a dark page as well. */

/** A ratio with its least and greatest value. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** A work beside the measure, and the measure beside itself. */
export interface Bar {
  readonly title: string
  readonly ratio: Spread
  readonly control: Spread
}

/** Values over a quantity; both axes are logarithmic, so all are positive. */
export interface Series {
  readonly name: string
  readonly isMeasure: boolean
  readonly points: readonly (readonly [x: number, y: number])[]
}

/** A small plot of several series. */
export interface Panel {
  readonly title: string
  readonly series: readonly Series[]
}

const COLORS = ['#1f5fa8', '#b3471d']
const GREY = '#8a8f98'
const PALE = '#e3e5e9'
const INK = '#24292f'

type Attributes = { readonly [name: string]: string | number }

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

function shape(name: string, attributes: Attributes, text?: string): string {
  const all = Object.entries(attributes).map(([key, value]) =>
    ` ${key}="${escape(typeof value === 'number' ? String(Math.round(value * 10) / 10) : value)}"`).join('')
  return text === undefined ? `<${name}${all}/>` : `<${name}${all}>${escape(text)}</${name}>`
}

function label(x: number, y: number, text: string, more: Attributes = {}): string {
  return shape('text', { x, y, ...more }, text)
}

function rule(x1: number, y1: number, x2: number, y2: number, stroke: string, more: Attributes = {}): string {
  return shape('line', { x1, y1, x2, y2, stroke, ...more })
}

function card(width: number, height: number, title: string, shapes: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"` +
      ` font-family="system-ui, sans-serif" font-size="12" fill="${INK}" role="img">`,
    shape('title', {}, title),
    shape('rect', { width, height, rx: 6, fill: '#ffffff' }),
    label(20, 28, title, { 'font-size': 15, 'font-weight': 600 }),
    ...shapes,
    '</svg>', ''
  ].join('\n')
}

/** The works as bars beside the measure, which is 1; under each a thin one, the measure beside itself. */
export function speedPlot(title: string, bars: readonly Bar[]): string {
  const [width, left, right, top, step] = [866, 286, 716, 66, 36]
  const bottom = top + bars.length * step
  const limit = Math.max(1.2, ...bars.flatMap(({ ratio, control }) => [ratio.max, control.max]))
  const x = (value: number): number => left + value / limit * (right - left)
  const shapes: string[] = []
  for (let tick = 0; tick <= limit; tick += 0.2) {
    const isMeasure = Math.abs(tick - 1) < 0.01
    shapes.push(
      rule(x(tick), top - 6, x(tick), bottom, isMeasure ? INK : PALE),
      label(x(tick), bottom + 16, tick.toFixed(1), { 'text-anchor': 'middle' }))
  }
  shapes.push(label(x(1), top - 12, 'bare node:http', { 'text-anchor': 'middle' }))
  bars.forEach(({ title, ratio, control }, i) => {
    const y = top + i * step
    const whisker = (spread: Spread, at: number): string =>
      rule(x(spread.min), at, x(spread.max), at, INK, { 'stroke-width': 1.5 })
    shapes.push(
      label(left - 10, y + 16, title, { 'text-anchor': 'end' }),
      shape('rect', { x: left, y: y + 3, width: x(ratio.median) - left, height: 17, fill: COLORS[0]! }),
      whisker(ratio, y + 11.5),
      shape('rect', { x: left, y: y + 22, width: x(control.median) - left, height: 5, fill: '#c9ccd1' }),
      whisker(control, y + 24.5),
      label(right + 12, y + 16, `× ${ratio.median.toFixed(2)}`, { 'font-weight': 600 }),
      label(right + 62, y + 16, `${ratio.min.toFixed(2)}–${ratio.max.toFixed(2)}`, { fill: '#57606a' }))
  })
  const legend = 'wide: the program; thin: bare node:http once more; dark line: from the least round to the greatest'
  shapes.push(label(20, bottom + 40, legend, { fill: '#57606a' }))
  return card(width, bottom + 56, title, shapes)
}

const PANEL = { width: 250, height: 165, gapX: 62, gapY: 74, left: 66, top: 66, columns: 3 }

/** Small plots, three in a row, with one legend. */
export function curvePlot(title: string, panels: readonly Panel[]): string {
  const { width, height, gapX, gapY, left, top, columns } = PANEL
  const rows = Math.ceil(panels.length / columns)
  const shapes = panels.flatMap((panel, i) =>
    panelShapes(panel, left + (i % columns) * (width + gapX), top + Math.floor(i / columns) * (height + gapY)))
  const y = top + rows * (height + gapY) - 14
  let x = left
  const series = new Map(panels.flatMap(panel => panel.series.map((one, i) => [one.name, { ...one, i }])))
  for (const one of series.values()) {
    shapes.push(rule(x, y - 4, x + 26, y - 4, ...stroke(one, one.i)), label(x + 32, y, one.name))
    x += 60 + one.name.length * 7
  }
  return card(left + columns * (width + gapX) - gapX + 32, y + 18, title, shapes)
}

function stroke({ isMeasure }: Series, i: number): [string, Attributes] {
  const color = COLORS[i % COLORS.length]!
  return [isMeasure ? GREY : color, isMeasure
    ? { 'stroke-dasharray': i % COLORS.length === 0 ? '5 3' : '1.5 3', 'stroke-width': 1.5 }
    : { 'stroke-width': 2 }]
}

function panelShapes({ title, series }: Panel, left: number, top: number): string[] {
  const { width, height } = PANEL
  const points = series.flatMap(one => one.points)
  const x = scale(points.map(point => point[0]), left, left + width, 0)
  const y = scale(points.map(point => point[1]), top + height, top, 0.08)
  const shapes = [label(left, top - 10, title, { 'font-weight': 600 })]
  for (const tick of decades(points.map(point => point[1]))) {
    if (!y.holds(tick)) continue
    shapes.push(rule(left, y.at(tick), left + width, y.at(tick), PALE),
      label(left - 6, y.at(tick) + 4, short(tick), { 'text-anchor': 'end', 'font-size': 11 }))
  }
  for (const tick of new Set(points.map(point => point[0]))) {
    shapes.push(rule(x.at(tick), top, x.at(tick), top + height, PALE),
      label(x.at(tick), top + height + 15, short(tick), { 'text-anchor': 'middle', 'font-size': 11 }))
  }
  shapes.push(shape('rect', { x: left, y: top, width, height, fill: 'none', stroke: GREY }))
  series.forEach((one, i) => {
    const [color, more] = stroke(one, i)
    const path = one.points.map(([a, b]) => `${x.at(a).toFixed(1)},${y.at(b).toFixed(1)}`).join(' ')
    shapes.push(shape('polyline', { points: path, fill: 'none', stroke: color, ...more }))
    if (!one.isMeasure) {
      for (const [a, b] of one.points) shapes.push(shape('circle', { cx: x.at(a), cy: y.at(b), r: 3, fill: color }))
    }
  })
  return shapes
}

interface Scale {
  at(value: number): number
  holds(value: number): boolean
}

/** A logarithmic scale that holds all values, with a margin at both ends, a share of the whole. */
function scale(values: readonly number[], from: number, to: number, margin: number): Scale {
  const logs = values.map(Math.log10)
  const least = Math.min(...logs)
  // Values that are nearly the same shall look so: no axis is shorter than a decade and a half.
  const span = Math.max(Math.max(...logs) - least, 1.5)
  const share = (value: number): number => margin + (Math.log10(value) - least) / span * (1 - 2 * margin)
  return { at: value => from + share(value) * (to - from), holds: value => share(value) >= 0 && share(value) <= 1 }
}

/** 1, 2 and 5 of each decade around the values. */
function decades(values: readonly number[]): number[] {
  const first = Math.floor(Math.log10(Math.min(...values)))
  const last = Math.ceil(Math.log10(Math.max(...values))) + 1
  const all = Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i))
  return last - first > 4 ? all : all.flatMap(one => [one, 2 * one, 5 * one])
}

function short(value: number): string {
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(2))} M`
  if (value >= 1e3) return `${Number((value / 1e3).toPrecision(2))} k`
  return String(Number(value.toPrecision(3)))
}
