/** A round of a work: the program, the measure, and the measure again, each for a while, one after the other. */
import { rmSync } from 'node:fs'
import { BODY_BYTES } from './journal.ts'
import type { LoadOrder, LoadReport } from './load.ts'
import {
  floorOf, Load, othersMs, requestBytes, serveFloor, serveProgram, type Cores, type Served
} from './processes.ts'
import type { Work } from './works.ts'

/** Where and how long is measured. */
export interface Bench {
  readonly cores: Cores
  readonly warmMs: number
  readonly measuredMs: number
  /** A path at which nothing stands yet. */
  path(): string
  /** A fresh data folder of so many entries, each of a body of so many bytes. */
  dataFolder(entries: number, bodyBytes: number): string
}

/**
 * What is measured beside each other: the program, bare `node:http`, the same once more, and the same with nothing but
 * the shortest way of a change to the disk.
 */
export const SIDES: readonly (keyof Round)[] = ['program', 'floor', 'control', 'shortest']

/** What the load says, and how busy others kept the machine meanwhile: 1 is a whole core; NaN is not known. */
export interface Report extends LoadReport {
  readonly others: number
}

/** What others may do without being in the way, as a share of a core, and how often they are given the time to end. */
const QUIET = 0.05
const ATTEMPTS = 3

/** The reports of a round; where nothing is changed there is no shortest way. */
export interface Round {
  readonly program: Report
  readonly floor: Report
  readonly control: Report
  readonly shortest?: Report
}

/** Measures a work once, in fresh processes; which side comes first changes with the round's number. */
export async function measureWork(bench: Bench, work: Work, round: number): Promise<Round> {
  const sides = SIDES.filter(side => side !== 'shortest' || hasChanges(work))
  const reports = await measureSides(bench, work, sides.map((_, i) => sides[(i + round) % sides.length]!))
  return reports as Round
}

function hasChanges({ samples }: Work): boolean { return samples.some(({ method }) => method === 'POST') }

/** Measures some of the sides, in that order. */
export async function measureSides(
  bench: Bench, work: Work, sides: readonly (keyof Round)[], bodyBytes: number = BODY_BYTES
): Promise<Partial<Round>> {
  const { cores, warmMs, measuredMs } = bench
  const folder = bench.dataFolder(work.entries, bodyBytes)
  const journal = bench.path()
  const servers: Served[] = []
  const load = new Load(cores)
  try {
    const program = await serveProgram(folder, cores)
    servers.push(program)
    const floor = await floorOf(program.port, work.samples)
    const requests = work.requests.map(requestBytes)
    const serving = new Map<keyof Round, Served>([['program', program]])
    for (const side of sides.filter(side => side !== 'program')) {
      const served = await serveFloor(floor, bench.path(), cores, side === 'shortest' ? journal : undefined)
      servers.push(served)
      serving.set(side, served)
    }
    const reports: { -readonly [S in keyof Round]?: Report } = {}
    for (const side of sides) {
      const served = serving.get(side)!
      const order = { port: served.port, connections: work.connections, warmMs, measuredMs, requests }
      reports[side] = await measureQuietly(served, load, order)
    }
    return reports
  } finally {
    await Promise.all([load.end(), ...servers.map(server => server.stop())])
    for (const made of [folder, journal]) rmSync(made, { recursive: true, force: true })
  }
}

/** A load on a server; where others disturbed it, once more, and then the quietest counts. */
async function measureQuietly(served: Served, load: Load, order: LoadOrder): Promise<Report> {
  let quietest: Report | undefined
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const [beganMs, before = NaN] = [performance.now(), othersMs(served, load)]
    const report = await load.run(order)
    const after = othersMs(served, load) ?? NaN
    const others = (after - before) / (performance.now() - beganMs)
    if (quietest === undefined || others < quietest.others) quietest = { ...report, others }
    if (!(quietest.others > QUIET)) break
  }
  return quietest!
}
