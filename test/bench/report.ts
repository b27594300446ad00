/** What was measured, as tables and plots, and where they are written. */
import { closeSync, constants, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { Buffer } from 'node:buffer'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Point } from './curve.ts'
import { SIDES, type Report, type Round } from './measure.ts'
import { curvePlot, speedPlot, type Panel, type Spread } from './plot.ts'
import type { Cores } from './processes.ts'
import type { StartRound } from './start.ts'
import { WORKS } from './works.ts'

/** How something was measured. */
export interface How {
  readonly rounds: number
  readonly seconds: number
  /** A folder on the disk that the journals were on. */
  readonly folder: string
  readonly cores: Cores
}

/** All that was measured, and how. */
export interface Results extends How {
  readonly works: ReadonlyMap<string, readonly Round[]>
  readonly starts: readonly StartRound[]
  readonly records: number
}

const RESULTS = fileURLToPath(new URL('results/', import.meta.url))
const README = fileURLToPath(new URL('../../README.md', import.meta.url))
const MARKED = /(?<=^<!-- bench -->\n)[^]*?(?=^<!-- \/bench -->$)/m
/** From here on the load itself may be what is measured. */
const BUSY_LOAD = 0.95

/** The median and the ends of some values; there must be one. */
export function spread(values: readonly number[]): Spread {
  const sorted = Float64Array.from(values).sort()
  const half = sorted.length / 2
  const median = (sorted[Math.ceil(half) - 1]! + sorted[Math.floor(half)]!) / 2
  return { median, min: sorted[0]!, max: sorted.at(-1)! }
}

function ratioOf(rounds: readonly Round[], side: 'program' | 'control'): Spread {
  return spread(rounds.map(round => round[side].rate / round.floor.rate))
}

/** The program beside the shortest way of a change; undefined where nothing is changed. */
function ratioToShortest(rounds: readonly Round[]): Spread | undefined {
  const ratios = rounds.flatMap(({ program, shortest }) => shortest === undefined ? [] : [program.rate / shortest.rate])
  return ratios.length === 0 ? undefined : spread(ratios)
}

function whole(value: number): string { return Math.round(value).toLocaleString('en') }

function ratioText(ratio: Spread | undefined): string {
  if (ratio === undefined) return '–'
  const { median, min, max } = ratio
  return min === max ? median.toFixed(2) : `${median.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})`
}

function percent(share: number): string { return Number.isNaN(share) ? '–' : `${Math.round(share * 100)} %` }

function row(cells: readonly string[]): string { return `| ${cells.join(' | ')} |` }

/** The two rows that a table begins with; only the first column is of words. */
function heading(...names: readonly string[]): string[] {
  return [row(names), row(names.map((_, i) => i === 0 ? '---' : '--:'))]
}

function ms(value: number): string { return value < 10 ? value.toPrecision(2) : whole(value) }

function conditions({ rounds, seconds, folder, cores }: How): string {
  const pinned = cores.server === undefined ? 'nothing pinned to a core' : 'servers on one core, the load on another'
  const often = rounds === 1 ? 'One round' : `Medians of ${rounds} rounds, in brackets the least and the greatest,`
  const processor = cpus()[0]?.model.trim() ?? 'an unknown processor'
  return `${often} of ${seconds} s after one to warm up. Node ${process.versions.node} on ${cpus().length} × ${processor}, ` +
    `${pinned}; a bare durable write of 512 bytes takes ${durableWriteMs(folder).toFixed(3)} ms.`
}

/** What one durable write costs on that disk, the median of many. */
function durableWriteMs(folder: string): number {
  const { O_WRONLY, O_CREAT, O_APPEND, O_DSYNC } = constants
  const file = openSync(join(folder, 'durable'), O_WRONLY | O_CREAT | O_APPEND | O_DSYNC, 0o600)
  const bytes = Buffer.alloc(512)
  const times = Array.from({ length: 200 }, () => {
    const beganMs = performance.now()
    writeSync(file, bytes)
    return performance.now() - beganMs
  })
  closeSync(file)
  return spread(times).median
}

/** Prints the tables, in Markdown, and gives them. */
export function printResults(results: Results): string {
  const { works, starts, records } = results
  const columns = [
    'requests/s', 'bare `node:http`', 'ratio', 'control', 'ratio to the shortest way', 'p50, p99 ms',
    'bare p50, p99 ms', 'load busy', 'others'
  ]
  const tables = [
    ...works.size === 0 ? []
      : [[...heading('work', ...columns), ...[...works].map(([name, rounds]) => workRow(WORKS[name]!.title, rounds))]],
    ...starts.length === 0 ? [] : [startTable(records, starts)]
  ]
  const text = [...tables.map(table => `${table.join('\n')}\n`), conditions(results)].join('\n')
  console.log(text)
  return text
}

function workRow(title: string, rounds: readonly Round[]): string {
  const median = (side: 'program' | 'floor', key: keyof Report): number =>
    spread(rounds.map(round => round[side][key])).median
  const latency = (side: 'program' | 'floor'): string =>
    (['p50Ms', 'p99Ms'] as const).map(key => ms(median(side, key))).join(', ')
  const busy = Math.max(median('program', 'busy'), median('floor', 'busy'))
  return row([
    title, whole(median('program', 'rate')), whole(median('floor', 'rate')), ratioText(ratioOf(rounds, 'program')),
    ratioText(ratioOf(rounds, 'control')), ratioText(ratioToShortest(rounds)), latency('program'), latency('floor'),
    `${percent(busy)}${busy > BUSY_LOAD ? ' (a limit)' : ''}`,
    percent(Math.max(...rounds.flatMap(round => SIDES.map(side => round[side]?.others ?? 0))))
  ])
}

function startTable(records: number, starts: readonly StartRound[]): string[] {
  const seconds = (key: 'startMs' | 'loopMs'): string => (spread(starts.map(one => one[key])).median / 1000).toFixed(2)
  const bytes = starts.map(one => one.bytesAnEntry).filter(one => one !== undefined)
  return [
    ...heading(`start on ${whole(records)} records, chain and seals checked`, 'figure'),
    row(['until it serves', `${seconds('startMs')} s`]),
    row(['a bare loop of `JSON.parse` over the same lines into a Map', `${seconds('loopMs')} s`]),
    row(['ratio', ratioText(spread(starts.map(({ startMs, loopMs }) => startMs / loopMs)))]),
    ...bytes.length === 0 ? []
      : [row(['memory an entry, the peak over that of the empty program', `${whole(spread(bytes).median)} bytes`])]
  ]
}

/** Writes the table, and the plot of the works if there are any. */
export function writeResults(table: string, works: ReadonlyMap<string, readonly Round[]>): void {
  writeFileSync(join(RESULTS, 'speed.md'), `${table}\n`)
  const bars = [...works].map(([name, rounds]) => (
    { title: WORKS[name]!.title, ratio: ratioOf(rounds, 'program'), control: ratioOf(rounds, 'control') }))
  if (bars.length > 0) writeFileSync(join(RESULTS, 'speed.svg'), speedPlot('Requests a second, × bare node:http', bars))
}

/** Writes the table between its marks in the README. */
export function writeReadme(table: string): void {
  const text = readFileSync(README, 'utf8')
  if (!MARKED.test(text)) throw new Error('README.md has no place for the table')
  writeFileSync(README, text.replace(MARKED, () => `${table}\n`))
}

/** Prints the points as a table, and writes it and the plot. */
export function writeCurve(points: readonly Point[], how: How): void {
  const median = (reports: readonly Report[], key: keyof Report): number =>
    spread(reports.map(report => report[key])).median
  const panel = (quantity: string, title: string, key: keyof Report): Panel => ({
    title: `${title} by ${quantity}`,
    series: (['program', 'floor'] as const).flatMap(side => (['get', 'create'] as const).map(work => ({
      name: side === 'program' ? work : `${work}, bare node:http`,
      isMeasure: side === 'floor',
      points: points.filter(one => one.quantity === quantity && one.work === work)
        .map(one => [one.value, median(one[side], key)] as const)
    })))
  })
  const quantities = [...new Set(points.map(one => one.quantity))]
  const panels = [
    ...quantities.map(quantity => panel(quantity, 'requests/s', 'rate')),
    ...quantities.map(quantity => panel(quantity, 'p99 ms', 'p99Ms'))
  ]
  writeFileSync(join(RESULTS, 'curve.svg'), curvePlot('Throughput and p99', panels))
  const table = [
    ...heading('by', 'value', 'work', 'requests/s', 'p99 ms', 'bare requests/s', 'bare p99 ms', 'load busy', 'others'),
    ...points.map(({ quantity, value, work, program, floor }) => row([
      quantity, whole(value), work, whole(median(program, 'rate')), ms(median(program, 'p99Ms')),
      whole(median(floor, 'rate')), ms(median(floor, 'p99Ms')),
      percent(Math.max(median(program, 'busy'), median(floor, 'busy'))),
      percent(Math.max(...[...program, ...floor].map(report => report.others)))
    ])),
    '', conditions(how)
  ].join('\n')
  console.log(table)
  writeFileSync(join(RESULTS, 'curve.md'), `${table}\n`)
}
