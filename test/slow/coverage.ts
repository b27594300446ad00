/**
 * Line and branch coverage of `src` but its page and `etcd/`, by Node's own means: `npm run test:coverage`. What the
 * tests run in their own process counts, and what the programs run that they start, unless those are killed. Node
 * counts characters of JavaScript, which is why sources and tests are compiled first, and the programs run from there.
 * Prints the code that nothing ran, and fails when a test does, when some of that code has no reason in
 * `uncovered.ts`, or when a reason there has no such code.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compileTree } from '../support/compiled.ts'
import { REASONS } from './uncovered.ts'

const ROOMS = ['api', 'csv', 'embedding', 'http', 'journal', 'json', 'metrics', 'program', 'store']
/** They look at the built files themselves, or at memory, of which measuring takes some. */
const LEFT_OUT = ['hostile', 'many', 'package', 'restricted'].map(name => `program/${name}`)

/** What V8 writes when a process ends: how often each piece of each script ran, the outer pieces before the inner. */
interface Measured {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly {
      readonly ranges: readonly { readonly startOffset: number, readonly endOffset: number, readonly count: number }[]
    }[]
  }[]
}

/** A source as JavaScript: which of its characters ran in any process, and where its pieces begin. */
interface Source {
  readonly text: string
  readonly ran: Uint8Array
  readonly branches: Set<number>
}

/** Puts together what all processes have run of the sources. */
function measuredSources(tree: string, folder: string): ReadonlyMap<string, Source> {
  const sources = new Map<string, Source>()
  for (const name of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Measured
    for (const { url, functions } of result) {
      const path = url.startsWith('file:') ? relative(join(tree, 'src'), fileURLToPath(url)) : '..'
      if (/^(\.\.|etcd\/|web\/)/.test(path)) continue
      const text = sources.get(path)?.text ?? readFileSync(join(tree, 'src', path), 'utf8')
      const source = sources.get(path) ?? { text, ran: new Uint8Array(text.length), branches: new Set() }
      sources.set(path, source)
      const ran = new Uint8Array(text.length)
      for (const { startOffset, endOffset, count } of functions.flatMap(({ ranges }) => ranges)) {
        ran.fill(count > 0 ? 1 : 0, startOffset, endOffset)
        source.branches.add(startOffset)
      }
      for (let i = 0; i < ran.length; i++) source.ran[i]! |= ran[i]!
    }
  }
  return sources
}

/** The pieces that nothing ran, each as the lines of it, but for what is only white space and brackets. */
function gapsIn({ text, ran }: Source): string[][] {
  const gaps: string[][] = []
  for (let start = ran.indexOf(0), end = 0; start >= 0; start = ran.indexOf(0, end)) {
    end = ran.indexOf(1, start)
    if (end < 0) end = text.length
    const lines = text.slice(start, end).split('\n').map(line => line.trim()).filter(line => /\w/.test(line))
    if (lines.length > 0) gaps.push(lines)
  }
  return gaps
}

const tree = compileTree()
try {
  for (const name of readdirSync(join(tree, 'dist')).filter(name => name !== 'web')) {
    rmSync(join(tree, 'dist', name), { recursive: true })
    symlinkSync(join('..', 'src', name), join(tree, 'dist', name))
  }
  const files = ROOMS.flatMap(room => readdirSync(join(tree, 'test', room)).filter(name => name.endsWith('.test.js'))
    .map(name => `${room}/${name.slice(0, -8)}`)).filter(name => !LEFT_OUT.includes(name))
  const flags = ['--test', '--experimental-test-coverage', '--test-reporter=tap']
  const measured = join(tree, 'measured')
  const { stdout, status } = spawnSync(process.execPath, [...flags, ...files.map(name => `test/${name}.test.js`)], {
    cwd: tree, encoding: 'utf8', maxBuffer: 2 ** 28, stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_V8_COVERAGE: measured }
  })
  for (const [line] of stdout.matchAll(/^ *not ok .*$/gm)) console.log(line)
  const reports: string[] = []
  const all = { lines: 0, linesRan: 0, branches: 0, branchesRan: 0 }
  for (const [path, source] of measuredSources(tree, measured)) {
    const name = path.replace(/\.js$/, '.ts')
    const reasons = new Set(Object.keys(REASONS[name] ?? {}))
    const seen = new Set<string>()
    for (const [first = '', ...rest] of gapsIn(source)) {
      seen.add(first)
      if (!reasons.has(first)) reports.push(`src/${name}: nothing ran ${first}${rest.length > 0 ? ` (and ${rest.length} lines)` : ''}`)
    }
    for (const reason of reasons) if (!seen.has(reason)) reports.push(`src/${name}: all of ${reason} ran`)
    let at = 0
    for (const line of source.text.split('\n')) {
      const ran = source.ran.subarray(at, at += line.length + 1)
      if (!/\w/.test(line)) continue
      all.lines++
      if (ran.includes(1)) all.linesRan++
    }
    all.branches += source.branches.size
    for (const start of source.branches) all.branchesRan += source.ran[start]!
  }
  for (const report of reports) console.log(report)
  console.log(all)
  process.exitCode = status === 0 && reports.length === 0 ? 0 : 1
} finally {
  if (!process.env['KEEP']) rmSync(tree, { recursive: true, force: true }); else console.log(tree)
}
