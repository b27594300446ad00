/** Files of tests in a process, and whether all of their tests were run. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import type { Ended, Told } from './events.ts'

const TEST = fileURLToPath(new URL('..', import.meta.url))
const EVENTS = 'support/events'
/** The longest file takes eleven minutes on a busy machine. */
const FILE_TIMEOUT_MS = 1_200_000
const MAX_OUTPUT_CHARACTERS = 1_000_000

export interface FileResult {
  readonly path: string
  readonly tests: readonly Ended[]
  readonly output: string
  readonly seeds: readonly string[]
  readonly ms: number
  readonly cpuMs: number
  /** What is wrong besides the tests that failed: it ended early, lost tests, did not end. */
  readonly problems: readonly string[]
}

/** Ends a file and every program that it started and left in its group. */
const running = new Set<() => void>()
process.on('exit', () => { for (const end of running) end() })
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

/** How Node runs files: what was compiled beside them, or, in three times the time to begin, the files themselves. */
function argsOf(paths: readonly string[], root: string): readonly string[] {
  const compiled = paths.map(path => join(root, path.replace(/\.ts$/, '.js')))
  const [files, args] = existsSync(compiled[0]!)
    ? [compiled, [`--test-reporter=${join(root, `${EVENTS}.js`)}`]]
    : [paths.map(path => join(root, path)), ['--import', 'tsx', `--test-reporter=${join(TEST, `${EVENTS}.ts`)}`]]
  return [...args, ...files.length === 1 ? files : [join(TEST, 'support/several.js'), ...files]]
}

/** Runs files, their paths below `test`, in one process to its end, or to the limit of its time. */
export async function runFiles(paths: readonly string[], timeoutMs: number = FILE_TIMEOUT_MS,
  root: string = TEST): Promise<FileResult[]> {
  const beganMs = performance.now()
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined }
  const child = spawn(process.execPath, argsOf(paths, root),
    { env, detached: true, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] })
  const kill = (): void => {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch { /* All of them have ended. */ }
  }
  running.add(kill)
  let output = ''
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.setEncoding('utf8').on('data', text => { if (output.length < MAX_OUTPUT_CHARACTERS) output += text })
  }
  let lines = ''
  child.stdio[3]!.on('data', text => { lines += String(text) })
  let isLate = false
  const timer = setTimeout(() => { isLate = true; kill() }, timeoutMs)
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', () => setTimeout(kill, 100)) // what it left running would keep its output open
    child.on('close', (...ended) => resolve(ended))
  })
  clearTimeout(timer)
  running.delete(kill)
  const told = lines.split('\n').slice(0, -1).map(line => JSON.parse(line) as Told)
  const tests = told.flatMap(({ ended }) => ended ?? [])
  const problems = problemsOf(told, tests)
  if (isLate) problems.unshift(`it had not ended after ${timeoutMs / 1000} s`)
  else if (signal !== null) problems.unshift(`it was ended by ${signal}`)
  else if (code !== 0 && !tests.some(({ error }) => error !== undefined)) problems.unshift(`it ended with code ${code}`)
  const seeds = told.flatMap(({ seed }) => seed ?? [])
  const cpuMs = told.reduce((sum, { cpuMs = 0 }) => sum + cpuMs, 0)
  const whole = { tests, output, seeds, ms: performance.now() - beganMs, cpuMs, problems }
  return paths.length === 1 ? [{ path: paths[0]!, ...whole }] : partsOf(paths, whole)
}

/** What of a process belongs to each of its files; what cannot be told apart, to the one whose tests ended last. */
function partsOf(paths: readonly string[], whole: Omit<FileResult, 'path'>): FileResult[] {
  const isIn = ({ file }: Ended, path: string): boolean => file?.endsWith(`/${path.replace(/\.ts$/, '')}.js`) === true
  const last = paths.findLast(path => whole.tests.at(-1) !== undefined && isIn(whole.tests.at(-1)!, path)) ?? paths[0]
  const testsMs = (tests: readonly Ended[]): number => tests.reduce((sum, { nesting, ms }) => sum + (nesting === 0 ? ms
    : 0), 0)
  return paths.map(path => {
    const tests = whole.tests.filter(test => isIn(test, path))
    const share = (testsMs(tests) || 1) / (testsMs(whole.tests) || 1)
    const rest = path === last ? whole : { output: '', seeds: [], problems: [] }
    return {
      path, tests, ms: whole.ms * share, cpuMs: whole.cpuMs * share, output: rest.output, seeds: rest.seeds,
      problems: [...rest.problems, ...tests.length === 0 ? ['it has no tests'] : []]
    }
  })
}

/** What shows that not all tests were run which the process had, or had not yet, registered. */
function problemsOf(told: readonly Told[], tests: readonly Ended[]): string[] {
  const open = new Map<string, number>()
  const count = (name: string, by: number): void => { open.set(name, (open.get(name) ?? 0) + by) }
  for (const { began, ended } of told) {
    if (began !== undefined) count(began, 1)
    if (ended !== undefined) count(ended.name, -1)
  }
  const unfinished = [...open].filter(([, left]) => left > 0).map(([name]) => name)
  const planned = told.reduce((sum, { planned = 0 }) => sum + planned, 0)
  const isAll = told.some(({ isAll }) => isAll)
  return [
    ...isAll ? [] : [`it ended early, after ${tests.length} tests`],
    ...unfinished.length === 0 ? [] : [`not ended: ${unfinished.join('; ')}`],
    ...!isAll || planned === tests.length ? [] : [`of ${planned} tests ${tests.length} ended`],
    ...tests.length === 0 ? ['it has no tests'] : []
  ]
}

const TESTS = ['test', 'it', 'describe', 'inBrowser']

/** The titles of the tests that stand in a source, as patterns: what they take from elsewhere may be anything. */
export function titlesIn(text: string): RegExp[] {
  const found: RegExp[] = []
  const exactly = (parts: readonly string[], ends: string): void => {
    found.push(new RegExp(`^${parts.map(part => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('.*')}${ends}$`, 's'))
  }
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) {
      const { expression: called, arguments: [title] } = node
      const name = ts.isPropertyAccessExpression(called) ? called.name.text : called.getText()
      if (title !== undefined && TESTS.includes(name) && !called.getText().startsWith('/')) {
        const ends = name === 'inBrowser' ? '( \\(\\w+\\))?' : '' // which is named behind it
        if (ts.isStringLiteralLike(title)) exactly([title.text], ends)
        if (ts.isTemplateExpression(title)) exactly([title.head.text,
          ...title.templateSpans.map(({ literal }) => literal.text)], ends)
      }
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile('a.ts', text, ts.ScriptTarget.ES2023, true))
  return found
}

/** A file and what it imports of its own folder, directly or not: where its tests may stand. */
function sourcesOf(path: string, root: string, found: Set<string> = new Set()): ReadonlySet<string> {
  if (found.has(path)) return found
  found.add(path)
  for (const [, name] of readFileSync(join(root, path), 'utf8').matchAll(/\bimport\b[^'\n]*'(\.\/[^']+\.ts)'/g)) {
    const other = join(dirname(path), name!)
    if (existsSync(join(root, other))) sourcesOf(other, root, found)
  }
  return found
}

/**
 * The titles that stand in the files of a run, and that no file of those which import them has reported: tests that
 * were lost on the way. So the number of tests is held without a list of them.
 */
export function lostTests(results: readonly FileResult[], root: string = TEST): string[] {
  const reported = new Map<string, string[]>()
  for (const { path, tests } of results) {
    for (const source of sourcesOf(path, root)) reported.set(source,
      [...reported.get(source) ?? [], ...tests.map(({ name }) => name)])
  }
  return [...reported].flatMap(([path, names]) => titlesIn(readFileSync(join(root, path), 'utf8'))
    .filter(title => !names.some(name => title.test(name))).map(title => `${path}: ${title.source.slice(1, -1)}`))
}
