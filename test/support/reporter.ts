/** What a run of tests prints: a line a file, failures in full, the totals, and last what was not run and why. */
import { relative } from 'node:path'
import type { run } from 'node:test'
import { fileURLToPath } from 'node:url'

const TEST = fileURLToPath(new URL('..', import.meta.url))

/** A test that has ended. */
interface Ended {
  readonly name: string
  /** Undefined for a file that could not be run. */
  readonly file?: string
  readonly nesting: number
  readonly details: { readonly duration_ms: number, readonly error?: Error & { readonly failureType?: string } }
  /** The reason, where one was given. */
  readonly skip?: string | boolean
  readonly todo?: string | boolean
}

/** The last line of a run: skipped tests by their reasons, and folders of `test` that it left out. */
export function lastLine(skips: ReadonlyMap<string, number>, leftOut: readonly string[]): string {
  const tests = [...skips].map(([reason, count]) => `${count} ${count === 1 ? 'test' : 'tests'} (${reason})`)
  const folders = leftOut.map(name => `test/${name}`).join(', ')
  return `skipped: ${[...tests, ...folders === '' ? [] : [`${folders} (npm test runs them)`]].join('; ') || 'nothing'}\n`
}

/** An error with its causes, without the frames of Node itself. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return `  ${String(error)}`
  const stack = (error.stack ?? String(error)).split('\n').filter(line => !/^ +at .*node:internal/.test(line))
  return [...stack.map(line => `  ${line}`), ...error.cause === undefined ? [] : [textOf(error.cause)]].join('\n')
}

/** The text of a run, piece by piece, as its events come. */
export async function* report(events: ReturnType<typeof run>, leftOut: readonly string[]): AsyncGenerator<string> {
  const skips = new Map<string, number>()
  const failures: string[] = []
  const totals: string[] = []
  let file = { name: '', tests: 0, failures: 0, ms: 0 }
  const endOfFile = (): string => file.name === '' ? ''
    : `${file.failures > 0 ? '✖' : '✔'} ${file.name}: ${file.tests} tests, ${(file.ms / 1000).toFixed(1)} s\n`
  for await (const { type, data } of events as AsyncIterable<{ readonly type: string, readonly data: unknown }>) {
    if (type === 'test:stdout' || type === 'test:stderr') yield (data as { readonly message: string }).message
    if (type === 'test:diagnostic') {
      const { message } = data as { readonly message: string }
      if (/^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/.test(message)) totals.push(`ℹ ${message}\n`)
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const { name, details: { duration_ms: ms, error }, ...ended } = data as Ended
    const path = relative(TEST, ended.file ?? name)
    if (path !== file.name) {
      yield endOfFile()
      file = { name: path, tests: 0, failures: 0, ms: 0 }
    }
    file.tests++
    if (ended.nesting === 0) file.ms += ms
    if (ended.skip !== undefined) {
      const reason = ended.skip === true ? 'no reason given' : String(ended.skip)
      skips.set(reason, (skips.get(reason) ?? 0) + 1)
    }
    if (type === 'test:pass' || ended.todo !== undefined) continue
    file.failures++
    if (error?.failureType === 'subtestsFailed') continue
    failures.push(`✖ ${path}: ${name}\n`)
    yield `${failures.at(-1)}${textOf(error?.cause ?? error)}\n`
  }
  yield `${endOfFile()}\n${failures.length === 0 ? '' : `failed:\n${failures.join('')}\n`}${totals.join('')}`
  yield lastLine(skips, leftOut)
}
