/**
 * How fast the program is beside bare `node:http`: `npm run bench`. Identical processes differ for their whole lives,
 * so each round has fresh ones; the measure runs a second time as a control, whose spread says how much is noise.
 */
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { JOURNAL_FILE } from '../../../src/journal/folder.ts'
import { BODY_BYTES, makeJournal } from './journal.ts'
import type { LoadReport } from './load.ts'
import {
  floorOf, Load, othersMs, parseLoopMs, peakBytes, separateCores, serveFloor, serveProgram, type Served
} from './servers.ts'
import { CURVE, requestBytes, WORKS, type Work } from './works.ts'

const { values } = parseArgs({
  options: {
    only: { type: 'string' }, curve: { type: 'boolean', default: false }, help: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '5' }, seconds: { type: 'string', default: '2' },
    records: { type: 'string', default: '200000' }, folder: { type: 'string', default: tmpdir() }
  }
})
const HELP = `usage: npm run bench -- [options]
  --only A,B     only these, and writes no file: ${Object.keys(WORKS).join(' ')} start
  --rounds N     rounds, each with fresh processes (5)
  --seconds N    how long each is measured in a round, after a second to warm up (2)
  --records N    records that the program is started on (200000)
  --folder PATH  where data folders are made: durable writes are as fast as that disk (${tmpdir()})
  --curve        over the number of entries, of connections, and the size of a body, instead`

/** Before that, the compiler is at work on the server's own core, which costs a fresh program more than the measure. */
const WARM_MS = 1_000
/** The share of a core that others may use, and how often they are given the time to end. */
const [QUIET, ATTEMPTS] = [0.05, 3]
const SIDES = ['program', 'floor', 'control', 'shortest'] as const

type Side = typeof SIDES[number]
/** With how busy the machine was with others; 1 is a whole core, NaN is not known. */
type Report = LoadReport & { readonly others: number }
type Round = { readonly [S in Side]?: Report }
type Start = { readonly [figure in 'startMs' | 'loopMs' | 'bytesAnEntry']: number }

const cores = separateCores()
const [rounds, seconds, records] = [Number(values.rounds), Number(values.seconds), Number(values.records)]
const folder = mkdtempSync(join(values.folder ?? tmpdir(), 'pes-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 9 }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

let serial = 0
const freshPath = (): string => join(folder, String(++serial))

function dataFolder(entries: number, bodyBytes: number): string {
  const original = join(folder, `${entries}-${bodyBytes}`)
  if (!existsSync(original)) makeJournal(original, entries, bodyBytes)
  const path = freshPath()
  cpSync(original, path, { recursive: true })
  return path
}

/** Measures a work once, in fresh processes; which side comes first changes with the round's number. */
async function measure(work: Work, round: number): Promise<Round> {
  const data = dataFolder(work.entries, work.bodyBytes)
  const program = await serveProgram(data, cores)
  const serving: [Side, Served][] = [['program', program]]
  const load = new Load(cores)
  try {
    const floor = await floorOf(program.port, work.samples)
    for (const side of SIDES.slice(1)) {
      if (side === 'shortest' && work.samples.every(({ method }) => method === 'GET')) continue
      serving.push([side, await serveFloor(floor, freshPath(), cores, side === 'shortest' ? freshPath() : undefined)])
    }
    const reports: { [S in Side]?: Report } = {}
    for (let i = 0; i < serving.length; i++) {
      const [side, server] = serving[(i + round) % serving.length]!
      reports[side] = await measureQuietly(load, server, work)
    }
    return reports
  } finally {
    await Promise.all([load.end(), ...serving.map(([, server]) => server.stop())])
    rmSync(data, { recursive: true })
  }
}

/** A load on a server; where others disturbed it, once more, and then the quietest counts. */
async function measureQuietly(load: Load, server: Served, { connections, requests }: Work): Promise<Report> {
  const order = {
    port: server.port, connections, warmMs: WARM_MS, measuredMs: seconds * 1000, requests: requests.map(requestBytes)
  }
  let quietest: Report | undefined
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const [beganMs, before] = [performance.now(), othersMs(server, load)]
    const report = await load.run(order)
    const others = (othersMs(server, load) - before) / (performance.now() - beganMs)
    if (quietest === undefined || others < quietest.others) quietest = { ...report, others }
    if (!(quietest.others > QUIET)) break
  }
  return quietest!
}

/** Starts the program on so many records, once; the memory is the peak over that on a single one. */
async function measureStart(): Promise<Start> {
  const started = async (entries: number): Promise<{ startMs: number, peak: number, loopMs: number }> => {
    const data = dataFolder(entries, BODY_BYTES)
    const loopMs = await parseLoopMs(join(data, JOURNAL_FILE), cores)
    const program = await serveProgram(data, cores)
    const peak = peakBytes(program)
    await program.stop()
    rmSync(data, { recursive: true })
    return { startMs: program.startMs, peak, loopMs }
  }
  const one = await started(1)
  const full = await started(records)
  return { startMs: full.startMs, loopMs: full.loopMs, bytesAnEntry: (full.peak - one.peak) / (records - 1) }
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
const heading = (...names: readonly string[]): string[] => [row(names),
  row(names.map((_, i) => i === 0 ? '---' : '--:'))]
const whole = (value: number): string => Math.round(value).toLocaleString('en')
const ms = (value: number): string => value < 10 ? value.toPrecision(2) : whole(value)
const percent = (share: number): string => Number.isNaN(share) ? '–' : `${Math.round(share * 100)} %`
const median = (values: readonly number[]): number => {
  const all = [...values].sort((a, b) => a - b)
  return (all[Math.ceil(all.length / 2) - 1]! + all[Math.floor(all.length / 2)]!) / 2
}
const spread = (values: readonly number[]): string => values.length === 0 ? '–'
  : `${median(values).toFixed(2)} (${Math.min(...values).toFixed(2)}–${Math.max(...values).toFixed(2)})`

function workRow(title: string, all: readonly Round[]): string {
  const of = (side: Side, key: keyof Report): number => median(all.map(round => round[side]![key]))
  const ratio = (a: Side, b: Side): string =>
    spread(all.flatMap(round => round[a] && round[b] ? [round[a].rate / round[b].rate] : []))
  const latency = (side: Side): string => `${ms(of(side, 'p50Ms'))}, ${ms(of(side, 'p99Ms'))}`
  return row([
    title, whole(of('program', 'rate')), whole(of('floor', 'rate')), ratio('program', 'floor'),
    ratio('control', 'floor'),
    ratio('program', 'shortest'), latency('program'), latency('floor'),
    percent(Math.max(of('program', 'busy'), of('floor', 'busy'))),
    percent(Math.max(...all.flatMap(round => SIDES.map(side => round[side]?.others ?? 0))))
  ])
}

function report(works: ReadonlyMap<string, readonly Round[]>, starts: readonly Start[]): string {
  const columns = ['requests/s', 'bare `node:http`', 'ratio', 'control', 'ratio to the shortest way', 'p50, p99 ms',
    'bare p50, p99 ms', 'load busy', 'others']
  const each = (key: keyof Start): number => median(starts.map(start => start[key]))
  return [
    ...works.size === 0 ? [] : [...heading('work', ...columns), ...[...works].map(one => workRow(...one)), ''],
    ...starts.length === 0 ? [] : [
      ...heading(`start on ${whole(records)} records, chain and seals checked`, 'figure'),
      row(['until it serves', `${(each('startMs') / 1000).toFixed(2)} s`]),
      row(['a bare loop of `JSON.parse` over the same lines into a Map', `${(each('loopMs') / 1000).toFixed(2)} s`]),
      row(['ratio', spread(starts.map(({ startMs, loopMs }) => startMs / loopMs))]),
      row(['memory an entry, the peak over that of the empty program', `${whole(each('bytesAnEntry'))} bytes`]), ''
    ],
    `Medians of ${rounds} rounds, in brackets the least and the greatest, of ${seconds} s after one to warm up. ` +
      `Node ${process.versions.node} on ${cpus().length} × ${cpus()[0]?.model.trim()}, ` +
      `${cores.server === undefined ? 'nothing pinned to a core' : 'servers on one core, the load on another'}.`, ''
  ].join('\n')
}

const known = values.curve ? CURVE : WORKS
const names = values.only?.split(',') ?? [...Object.keys(known), ...values.curve ? [] : ['start']]
const isWrong = ![rounds, seconds, records].every(value => value > 0) ||
  !names.every(name => name === 'start' || known[name])
if (values.help || isWrong) {
  console.log(HELP)
  process.exit(values.help ? 0 : 2)
}
const works = new Map<string, Round[]>()
const starts: Start[] = []
for (let round = 0; round < rounds; round++) {
  for (const name of names) {
    console.error(`round ${round + 1} of ${rounds}: ${name}`)
    if (name === 'start') { starts.push(await measureStart()); continue }
    const { title } = known[name]!
    works.set(title, [...works.get(title) ?? [], await measure(known[name]!, round)])
  }
}
const text = report(works, starts)
console.log(text)
if (values.only === undefined) writeFileSync(new URL(`results/${values.curve ? 'curve' : 'speed'}.md`, import.meta.url),
  text)
process.exit()
