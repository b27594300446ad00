/** The options of the bench. */
import { statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
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

/** The name of the measurement that is no load. */
export const START = 'start'
const NAMES = [...Object.keys(WORKS), START]

/** What `--help` prints. */
export const HELP: string = `usage: npm run bench -- [options]

  --only A,B     only these, and writes no file: ${NAMES.join(' ')}
  --rounds N     rounds, each with fresh processes (5)
  --seconds N    how long each is measured in a round, after a second to warm up (2)
  --records N    records that the program is started on (200000)
  --folder PATH  where data folders are made: durable writes are as fast as that disk (${OPTIONS.folder.default})
  --curve        throughput and p99 over entries, connections and body sizes instead
  --readme       also writes the table into README.md`

/** The command line asks for what is not there. */
export class Misuse extends Error {}

/** What the command line asks for. */
export interface Choice {
  readonly names: readonly string[]
  readonly rounds: number
  readonly seconds: number
  readonly records: number
  readonly folder: string
  readonly curve: boolean
  /** Whether all is measured, so that the results may be written. */
  readonly writes: boolean
  readonly readme: boolean
}

/** Reads a command line; throws a `Misuse` whose message says what is wrong with it. */
export function readOptions(args: readonly string[]): Choice | 'help' {
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
  if (only !== undefined && (curve || readme)) throw new Misuse('--only goes with neither --curve nor --readme')
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) throw new Misuse(`--folder: no ${folder}`)
  const positive = (name: 'rounds' | 'seconds' | 'records', isWhole: boolean): number => {
    const value = Number(values[name])
    const isRight = value > 0 && value <= 1e8 && (!isWhole || Number.isInteger(value))
    if (!isRight) throw new Misuse(`--${name} must be a positive ${isWhole ? 'integer' : 'number'}`)
    return value
  }
  return {
    names, folder, curve, readme, writes: only === undefined,
    rounds: positive('rounds', true), seconds: positive('seconds', false), records: positive('records', true)
  }
}
