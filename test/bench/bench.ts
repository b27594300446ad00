/**
 * How fast the program is beside bare `node:http`: `npm run bench` (`-- --help` tells the options). Identical
 * processes differ for their whole lives, so each round has fresh ones; the measure runs a second time as a control,
 * whose spread says how much of a difference is noise.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { measureCurve } from './curve.ts'
import { makeJournal } from './journal.ts'
import { measureWork, type Bench, type Round } from './measure.ts'
import { HELP, Misuse, readOptions, START, type Choice } from './options.ts'
import { separateCores } from './processes.ts'
import { printResults, writeCurve, writeReadme, writeResults } from './report.ts'
import { measureStart, type StartRound } from './start.ts'
import { WORKS } from './works.ts'

/** Before that, the compiler is at work on the server's own core, which costs a fresh program more than the measure. */
const WARM_MS = 1_000

/** A bench whose data folders are in a folder: each is a copy of one that was made once. */
function benchIn(folder: string, seconds: number): Bench {
  const made = new Map<string, string>()
  let serial = 0
  const path = (): string => join(folder, String(++serial))
  const original = (entries: number, bodyBytes: number): string => {
    const name = `${entries} ${bodyBytes}`
    const known = made.get(name)
    if (known !== undefined) return known
    const fresh = path()
    makeJournal(fresh, entries, bodyBytes)
    made.set(name, fresh)
    return fresh
  }
  return {
    cores: separateCores(), warmMs: WARM_MS, measuredMs: seconds * 1000, path,
    dataFolder: (entries, bodyBytes) => {
      const fresh = path()
      cpSync(original(entries, bodyBytes), fresh, { recursive: true })
      return fresh
    }
  }
}

async function run({ names, rounds, seconds, records, folder: parent, curve, writes, readme }: Choice): Promise<void> {
  const folder = mkdtempSync(join(parent, 'pes-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 9 }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
  const bench = benchIn(folder, seconds)
  const how = { folder, rounds, seconds, cores: bench.cores }
  if (curve) { writeCurve(await measureCurve(bench, rounds), how); return }
  const works = new Map<string, Round[]>()
  const starts: StartRound[] = []
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      console.error(`round ${round + 1} of ${rounds}: ${name}`)
      if (name === START) { starts.push(await measureStart(bench, records)); continue }
      works.set(name, [...works.get(name) ?? [], await measureWork(bench, WORKS[name]!, round)])
    }
  }
  const table = printResults({ ...how, works, starts, records })
  if (writes) writeResults(table, works)
  if (readme) writeReadme(table)
}

try {
  const choice = readOptions(process.argv.slice(2))
  if (choice === 'help') console.log(HELP)
  else await run(choice)
} catch (error) {
  if (!(error instanceof Misuse)) throw error
  console.error(`error: ${error.message}\n\n${HELP}`)
  process.exitCode = 2
}
process.exit()
