/**
 * How fast the program is beside bare `node:http`: `npm run bench` (`-- --help` tells the options). Identical
 * processes differ for their whole lives, so each round has fresh ones; the measure runs a second time as a control,
 * whose spread says how much of a difference is noise.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { measureCurve } from './curve.ts'
import { makeJournal } from './journal.ts'
import { separateCores } from './processes.ts'
import { measureWork, type Bench, type Round } from './measure.ts'
import { printResults, writeCurve, writeReadme, writeResults } from './report.ts'
import { measureStart, type StartRound } from './start.ts'
import { WORKS } from './works.ts'

const OPTIONS = {
  only: { type: 'string' },
  rounds: { type: 'string', default: '5' },
  seconds: { type: 'string', default: '2' },
  records: { type: 'string', default: '200000' },
  folder: { type: 'string', default: tmpdir() },
  curve: { type: 'boolean', default: false },
  readme: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false }
} as const

const START = 'start'
const NAMES = [...Object.keys(WORKS), START]

const HELP = `usage: npm run bench -- [options]

  --only A,B     only these: ${NAMES.join(' ')}
  --rounds N     rounds, each with fresh processes (5)
  --seconds N    how long each is measured in a round, after half of that to warm up (2)
  --records N    records that the program is started on (200000)
  --folder PATH  where data folders are made: durable writes are as fast as that disk (${OPTIONS.folder.default})
  --curve        throughput and p99 over entries, connections and body sizes instead, once each
  --readme       also writes the table into README.md`

class Misuse extends Error {}

interface Choice {
  readonly names: readonly string[]
  readonly rounds: number
  readonly seconds: number
  readonly records: number
  readonly folder: string
  readonly curve: boolean
  readonly readme: boolean
}

function read(args: readonly string[]): Choice | 'help' {
  let values
  try {
    values = parseArgs({ args: [...args], options: OPTIONS }).values
  } catch (error) {
    throw new Misuse((error as Error).message)
  }
  const { only, folder = tmpdir(), curve = false, readme = false } = values
  if (values.help === true) return 'help'
  const names = only?.split(',') ?? NAMES
  const unknown = names.find(name => !NAMES.includes(name))
  if (unknown !== undefined) throw new Misuse(`--only does not know "${unknown}", but ${NAMES.join(', ')}`)
  const positive = (name: 'rounds' | 'seconds' | 'records', isWhole: boolean): number => {
    const value = Number(values[name])
    const isRight = value > 0 && value <= 1e8 && (!isWhole || Number.isInteger(value))
    if (!isRight) throw new Misuse(`--${name} must be a positive ${isWhole ? 'integer' : 'number'}`)
    return value
  }
  return {
    names, folder, curve, readme,
    rounds: positive('rounds', true), seconds: positive('seconds', false), records: positive('records', true)
  }
}

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
    cores: separateCores(), warmMs: seconds * 500, measuredMs: seconds * 1000, path,
    dataFolder: (entries, bodyBytes = 0) => {
      const fresh = path()
      cpSync(original(entries, bodyBytes), fresh, { recursive: true })
      return fresh
    }
  }
}

async function run({ names, rounds, seconds, records, folder, curve, readme }: Choice): Promise<void> {
  const temporary = mkdtempSync(join(folder, 'pes-bench-'))
  process.on('exit', () => rmSync(temporary, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
  const bench = benchIn(temporary, seconds)
  if (curve) { writeCurve(await measureCurve(bench), temporary, bench); return }
  const works = new Map<string, Round[]>()
  const starts: StartRound[] = []
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      console.error(`round ${round + 1} of ${rounds}: ${name}`)
      if (name === START) { starts.push(await measureStart(bench, records)); continue }
      works.set(name, [...works.get(name) ?? [], await measureWork(bench, WORKS[name]!, round)])
    }
  }
  const table = printResults({ works, starts, records, rounds, seconds, folder: temporary, cores: bench.cores })
  writeResults(table, works)
  if (readme) writeReadme(table)
}

try {
  const choice = read(process.argv.slice(2))
  if (choice === 'help') console.log(HELP)
  else await run(choice)
} catch (error) {
  if (!(error instanceof Misuse)) throw error
  console.error(`error: ${error.message}\n\n${HELP}`)
  process.exitCode = 2
}
process.exit()
