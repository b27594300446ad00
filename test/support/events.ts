/**
 * The reporter in the process of a test's file: tells `test-file.ts`, a JSON line each on descriptor 3, which tests
 * began and ended, how many there were to be, and last that all was told. Where a process ends early, that is missing.
 */
import { existsSync, readFileSync, writeSync } from 'node:fs'
import { SourceMap, type SourceMapping } from 'node:module'

const DESCRIPTOR = 3

/** What a process tells: one of these in each line. */
export interface Told {
  /** A test began: the names of it and of those around it. */
  readonly began?: string
  readonly ended?: Ended
  /** How many tests there were in one, or in the file. */
  readonly planned?: number
  readonly isAll?: boolean
  /** What the process has used of the processor, and the programs that it started and that have ended. */
  readonly cpuMs?: number
  /** A test and the seed of its randomness. */
  readonly seed?: string
}

export interface Ended {
  readonly name: string
  /** Where it stands, as JavaScript. */
  readonly file?: string
  readonly nesting: number
  readonly ms: number
  /** Why it failed; undefined for one that passed or is to be done later. */
  readonly error?: string
  /** Whether it failed only since a test in it did. */
  readonly isOuter?: boolean
  readonly skip?: string
}

/** A frame as it stands in the source: with `--enable-source-maps` a process takes twice as long to begin. */
function inSource(frame: string): string {
  return frame.replace(/(?:file:\/\/)?(\/[^()]+)\.js:(\d+):(\d+)/, (whole, path, line, column) => {
    if (!existsSync(`${path}.js.map`)) return whole
    const map = new SourceMap(JSON.parse(readFileSync(`${path}.js.map`, 'utf8')))
    const { originalLine, originalColumn } = map.findEntry(Number(line) - 1, Number(column) - 1) as SourceMapping
    return `${path}.ts:${originalLine + 1}:${originalColumn + 1}`
  })
}

/** An error with its causes, without the frames of Node itself. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return `  ${String(error)}`
  const stack = (error.stack ?? String(error)).split('\n').filter(line => !/^ +at .*node:internal/.test(line))
  const lines = stack.map(line => `  ${inSource(line)}`)
  return [...lines, ...error.cause === undefined ? [] : [textOf(error.cause)]].join('\n')
}

function tell(told: Told): void {
  const line = Buffer.from(`${JSON.stringify(told)}\n`)
  for (let at = 0; at < line.length;) {
    try {
      at += writeSync(DESCRIPTOR, line, at)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
  }
}

/** Where there is a `/proc`, the time of ended children is in it, in hundredths of a second behind the own one. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  const stat = '/proc/self/stat'
  const ofChildren = existsSync(stat) ? readFileSync(stat, 'utf8').split(') ')[1]!.split(' ').slice(13, 15) : []
  return (user + system) / 1000 + ofChildren.reduce((sum, ticks) => sum + Number(ticks) * 10, 0)
}

/** Node's reporters are generators; what this one yields, which is nothing, goes to standard output. */
export default async function * events(source: AsyncIterable<unknown>): AsyncGenerator<string> {
  let last = '' // what a test has to say follows its end
  for await (const { type, data } of source as AsyncIterable<{ readonly type: string, readonly data: any }>) {
    if (type === 'test:dequeue') tell({ began: data.name })
    if (type === 'test:plan') tell({ planned: data.count })
    if (type === 'test:diagnostic' && /^SEED=/.test(data.message)) tell({ seed: `${data.message} of: ${last}` })
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const { name, file, nesting, skip, todo, details } = data
    last = name
    const { duration_ms: ms, error } = details
    const why = skip === true || skip === '' ? 'no reason given' : skip
    const failed = type === 'test:fail' && todo === undefined
    tell({ ended: {
      name, file, nesting, ms, ...why !== undefined && { skip: String(why) },
      ...failed && { error: textOf(error?.cause ?? error), isOuter: error?.failureType === 'subtestsFailed' }
    } })
  }
  tell({ isAll: true, cpuMs: cpuMs() })
}
