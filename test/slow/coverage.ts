/**
 * Line and branch coverage of `src` but the page and etcd, by Node's own means: `npm run test:coverage`. What the
 * tests run in their own process counts, and what the programs run that they start, unless those are killed. Node
 * counts characters of JavaScript, which is why sources and tests are compiled first, and the programs run from there.
 * Prints the code that nothing ran, and fails when a test does, or when less ran than LEAST.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compileTree } from '../support/compiled.ts'

const LEFT_OUT_ROOMS = ['bench', 'etcd', 'fuzz', 'nodes', 'page', 'simulation', 'slow', 'support']
/** They look at the built files themselves, or at memory and time, of which measuring takes some. */
const LEFT_OUT = new Set(['cost', 'hostile', 'package', 'restricted'].map(name => `test/program/${name}.test.js`))

/** Shares of the lines and of the branches; what is missing guards what nothing lets happen, or is told by timing. */
const LEAST = [0.97, 0.96] as const

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

/** Puts together what all processes have run of the sources; gives those by their names in `src`. */
function measuredSources(tree: string, folder: string): readonly (readonly [name: string, source: Source])[] {
  const sources = new Map<string, Source>()
  for (const name of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Measured
    for (const { url, functions } of result) {
      const path = url.startsWith('file:') ? relative(join(tree, 'src'), fileURLToPath(url)) : '..'
      if (/^(\.\.|parts\/(etcd|page)\/)/.test(path)) continue
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
  return [...sources].map(([path, source]) => [path.replace(/\.js$/, '.ts'), source] as const)
}

/** The lines, without their indentation, in which something begins that nothing ran; not where it is only brackets. */
function gapsIn({ text, ran }: Source): ReadonlySet<string> {
  const gaps = new Set<string>()
  for (let start = ran.indexOf(0), end = 0; start >= 0; start = ran.indexOf(0, end)) {
    end = ran.indexOf(1, start)
    if (end < 0) end = text.length
    const first = text.slice(start, end).search(/\w/)
    if (first < 0) continue
    const from = text.lastIndexOf('\n', start + first) + 1
    gaps.add(text.slice(from).split('\n', 1)[0]!.trim())
  }
  return gaps
}

/** How many lines with more than brackets there are and were begun, and how many branches. */
function figuresOf({ text, ran, branches }: Source): readonly number[] {
  const figures = [0, 0, [...branches].filter(start => ran[start] === 1).length, branches.size]
  let at = 0
  for (const line of text.split('\n')) {
    const first = line.search(/\w/)
    if (first >= 0) figures[1]!++
    if (first >= 0 && ran[at + first] === 1) figures[0]!++
    at += line.length + 1
  }
  return figures
}

const share = (part = 0, whole = 0): string => `${part} of ${whole} (${(100 * part / whole).toFixed(1)} %)`

const tree = compileTree()
try {
  for (const name of readdirSync(join(tree, 'dist')).filter(name => name !== 'browser')) {
    rmSync(join(tree, 'dist', name), { recursive: true })
    symlinkSync(join('..', 'src', name), join(tree, 'dist', name))
  }
  const files = readdirSync(join(tree, 'test'), { recursive: true }).map(name => `test/${String(name)}`)
    .filter(name => /^test\/\w+\/.*\.test\.js$/.test(name) && !LEFT_OUT.has(name) && !LEFT_OUT_ROOMS.includes(name.split('/')[1]!))
  const measured = join(tree, 'measured')
  const flags = ['--test', '--experimental-test-coverage', '--test-reporter=tap']
  const { stdout, status } = spawnSync(process.execPath, [...flags, ...files], {
    cwd: tree, encoding: 'utf8', maxBuffer: 2 ** 28, stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_V8_COVERAGE: measured }
  })
  for (const [line] of stdout.matchAll(/^ *not ok .*$/gm)) console.log(line)
  const sources = measuredSources(tree, measured)
  for (const [name, source] of sources) for (const line of gapsIn(source)) console.log(`src/${name}: ${line}`)
  const figures = sources.map(([, source]) => figuresOf(source))
  const [linesRan, lines, branchesRan, branches] = figures.reduce((all, own) => all.map((sum, i) => sum + own[i]!))
  console.log(`lines ${share(linesRan, lines)}, branches ${share(branchesRan, branches)}`)
  const isEnough = linesRan! / lines! >= LEAST[0] && branchesRan! / branches! >= LEAST[1]
  process.exitCode = status === 0 && isEnough ? 0 : 1
} finally {
  rmSync(tree, { recursive: true, force: true })
}
