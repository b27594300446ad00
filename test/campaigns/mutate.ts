/**
 * Mutation trials: one place of `src` is made wrong at a time, in a copy of the tree, and the tests of its module must
 * notice; what does not compile is no mutant. `npm run test:mutants -- PATH…` tries every mutant of files, or of
 * folders, which end in a slash; without a path, a sample over all modules for an hour (`--minutes N`, `--seed N`).
 * Prints those that no test noticed, and a table by module; fails where fewer than nine in ten were.
 */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import ts from 'typescript'
import { transpiledTree } from '../support/compiled.ts'
import { plainName, testFiles } from '../support/test-names.ts'
import { seeded, seedFromEnv, type Random } from '../support/random.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const BROWSER = 'parts/page/browser/'
/** A test that takes that much longer than with the source as it stands is taken for one that never ends. */
const SLOWER = 3
const SLACK_MS = 5_000
const MOST_MS = 600_000
const WANTED_SHARE = 0.9

const DOMAIN = ['store', 'rights', 'entries', 'accounts', 'knowledge', 'api', 'json', 'embedding', 'page-api', 'tables',
  'simulation', 'program/admin']

/**
 * Which tests must notice, by the beginning of a path; the longest that fits counts. A folder stands for its files,
 * and a test of the source's own name comes first. The slowest are last: most mutants do not get that far.
 */
const TESTS: { readonly [path: string]: readonly string[] } = {
  '': ['api', 'embedding', 'tables', 'closing', 'program/settings', 'program/admin', 'readme', 'program', 'model'],
  'http/': ['http', 'api', 'json', 'embedding', 'tables', 'closing', 'fuzz/http', 'program/tls', 'program/output',
    'program/stop',
    'program/slow-reader', 'program/hostile'],
  'journal/': ['journal', 'disk', 'store', 'fuzz/journal', 'tables', 'closing', 'program/compact', 'program/disk',
    'program/lock',
    'program/restricted', 'program/output', 'program/admin', 'model'],
  'store/': DOMAIN,
  'rights/': DOMAIN,
  'entries/': DOMAIN,
  'accounts/': DOMAIN,
  'knowledge/': DOMAIN,
  'parts/': ['operator', 'embedding', 'program', 'model'],
  'parts/operator/rewriting/saved-journal.ts': ['program/admin', 'operator', 'program/transfer', 'program/compact',
    'etcd/keys'],
  'parts/etcd/': ['etcd'],
  'parts/page-api/': ['page-api', 'api/openapi', 'tables'],
  'parts/metrics/': ['metrics', 'api/health', 'api/guards', 'api/openapi', 'tables'],
  'parts/openapi/': ['api/openapi', 'api/guards', 'tables'],
  'parts/operator/': ['api/guards', 'operator', 'store/compact', 'program/admin', 'program', 'tables/once',
    'tables/clocks', 'model'],
  'parts/page/': ['page/asset', 'api/guards', 'tables/settings', 'page/chromium', 'page/chromium-rest'],
  [BROWSER]: ['page/generator', 'page/chromium', 'page/chromium-rest']
}

const MODULES = Object.keys(TESTS).sort((a, b) => b.length - a.length)
const moduleOf = (path: string): string => MODULES.find(one => path.startsWith(one))!

/** The tests that must notice a mistake in a source. */
function testsOf(path: string): string[] {
  const name = path.slice(path.lastIndexOf('/') + 1).replace(/\.ts$/, '')
  const rank = (test: string): number => Number(plainName(`${test}.test.ts`).endsWith(`/${name}`))
  const all = TESTS[moduleOf(path)]!.flatMap(one => {
    const files = testFiles().filter(file => file.startsWith(`${one}/`) || plainName(file) === one)
    return files.map(file => file.replace('.test.ts', ''))
  })
  return [...new Set(all)].sort((a, b) => rank(b) - rank(a))
}

interface Mutant {
  /** The place, as it was and as it is. */
  readonly name: string
  readonly line: number
  readonly text: string
}

const SWAPPED: { readonly [operator: string]: string } = {
  '<': '<=', '<=': '<', '>': '>=', '>=': '>', '===': '!==', '!==': '===', '&&': '||', '||': '&&', '??': '&&',
  '+': '-', '-': '+', '*': '/', '/': '*', '%': '*', '&': '|', '|': '&', '+=': '-=', '-=': '+=', '||=': '&&=',
  '??=': '='
}

/** What a node can be replaced by, one mistake each. */
function mistakes(node: ts.Node): string[] {
  const text = node.getText()
  const { parent } = node
  if (ts.isBinaryExpression(parent) && parent.operatorToken === node) {
    const swapped = SWAPPED[text]
    return swapped === undefined ? [] : [swapped]
  }
  const isCondition = (ts.isIfStatement(parent) || ts.isWhileStatement(parent)) && parent.expression === node ||
    (ts.isConditionalExpression(parent) || ts.isForStatement(parent)) && parent.condition === node
  const negated = isCondition ? [`!(${text})`] : []
  // A larger number that is one too large makes a difference that nobody would call a mistake.
  if (ts.isNumericLiteral(node)) return /^\d\d?$/.test(text) ? [...negated, String(Number(text) + 1)] : negated
  // What has a space is read by people; what a message says is held by the tests of the contract, or by nobody.
  if (ts.isStringLiteral(node) && node.text !== '' && !node.text.includes(' ')) return [...negated, "''"]
  if (ts.isRegularExpressionLiteral(node)) return ['/(?:)/g'.slice(0, text.endsWith('g') ? undefined : -1)]
  if (node.kind === ts.SyntaxKind.TrueKeyword) return ['false']
  if (node.kind === ts.SyntaxKind.FalseKeyword) return ['true']
  if (ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) {
    const operand = node.operand.getText()
    if (node.operator === ts.SyntaxKind.ExclamationToken) return [operand]
    if (node.operator === ts.SyntaxKind.PlusPlusToken) return [...negated, text.replace('++', '--')]
  }
  if (ts.isExpressionStatement(node) || ts.isBreakStatement(node) || ts.isContinueStatement(node)) return ['{}']
  if (ts.isReturnStatement(node)) {
    return node.expression === undefined ? ['{}'] : text === 'return undefined' ? [] : ['return undefined']
  }
  if (ts.isThrowStatement(node)) return ['{}']
  return negated
}

function isOfTypes(node: ts.Node): boolean {
  return ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) || ts.isTypeParameterDeclaration(node)
}

/** Every mutant of a source. */
function mutants(source: string): Mutant[] {
  const file = ts.createSourceFile('source.ts', source, ts.ScriptTarget.ES2023, true)
  const found: Mutant[] = []
  const visit = (node: ts.Node): void => {
    if (isOfTypes(node)) return
    const [start, end] = [node.getStart(), node.getEnd()]
    for (const mistake of mistakes(node)) {
      const text = source.slice(0, start) + mistake + source.slice(end)
      const from = source.lastIndexOf('\n', start) + 1
      const until = (all: string, at: number): number => (all.indexOf('\n', at) + all.length + 1) % (all.length + 1)
      const before = source.slice(from, until(source, end - 1)).replace(/\s+/g, ' ').trim()
      const after = text.slice(from, until(text, start + mistake.length - 1)).replace(/\s+/g, ' ').trim()
      const line = file.getLineAndCharacterOfPosition(start).line + 1
      found.push({ name: `${before} → ${after}`, line, text })
    }
    ts.forEachChild(node, visit)
  }
  ts.forEachChild(file, visit)
  return found
}

let end = (): void => {}
process.on('exit', () => end())

/** Runs a test's file up to its first failure; gives how long it took, undefined where it fails or takes too long. */
function run(tree: string, test: string, limitMs: number): Promise<number | undefined> {
  const args = ['--test-reporter=tap', join('test', `${test}.test.js`)]
  const env = { ...process.env, SEED: '1', NODE_TEST_CONTEXT: undefined }
  const child = spawn(process.execPath, args, { cwd: tree, env, stdio: ['ignore', 'pipe', 'ignore'], detached: true })
  // With the programs that it has started.
  const kill = end = (): void => {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch { /* It has just ended by itself. */ }
  }
  const beganMs = performance.now()
  return new Promise((resolve, reject) => {
    const timer = setTimeout(kill, limitMs)
    let isAll = false
    child.stdout!.setEncoding('utf8').on('data', text => {
      if (/^ *not ok /m.test(text)) kill()
      isAll ||= /^# tests \d/m.test(text)
    })
    child.on('error', reject)
    child.on('exit', () => setTimeout(kill, 100))
    child.on('close', code => {
      clearTimeout(timer)
      resolve(code === 0 && isAll ? performance.now() - beganMs : undefined)
    })
  })
}

const times = new Map<string, number>()

/** Whether a test notices what is wrong in the tree; one that fails also where nothing is wrong says nothing. */
async function isNoticed(tree: string, path: string, put: (text?: string) => void, text: string): Promise<boolean> {
  for (const test of testsOf(path)) {
    if (!times.has(test)) {
      put()
      const ms = await run(tree, test, MOST_MS)
      if (ms === undefined) console.log(`test/${test} fails while nothing is wrong, and is left out`)
      times.set(test, ms ?? -1)
    }
    const ms = times.get(test)!
    try {
      put(text)
    } catch {
      return true // it cannot be built
    }
    if (ms >= 0 && await run(tree, test, ms * SLOWER + SLACK_MS) === undefined) return true
  }
  return false
}

/**
 * Makes the function that says whether a text in the place of a source of a folder compiles; a name may be left over.
 */
function compiler(folder: string): (path: string, text: string) => boolean {
  const { config } = ts.readConfigFile(join(folder, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, folder)
  Object.assign(options, { noUnusedLocals: false, noUnusedParameters: false })
  const host = ts.createCompilerHost(options)
  const read = host.getSourceFile
  const others = new Map<string, ts.SourceFile | undefined>()
  return (path, text) => {
    host.getSourceFile = (name, version) => {
      if (name === path) return ts.createSourceFile(name, text, version)
      if (!others.has(name)) others.set(name, read(name, version))
      return others.get(name)
    }
    const program = ts.createProgram([path], options, host)
    const file = program.getSourceFile(path)
    return program.getSyntacticDiagnostics(file).length + program.getSemanticDiagnostics(file).length === 0
  }
}

function compile(text: string): string {
  const { ESNext: module } = ts.ModuleKind
  const target = ts.ScriptTarget.ES2023
  return ts.transpileModule(text, {
    compilerOptions: { module, target, rewriteRelativeImportExtensions: true, verbatimModuleSyntax: true }
  }).outputText
}

/** A mutant and the file that it is of. */
interface Trial extends Mutant { readonly path: string }

/** Texts and figures alone: no mistake there is a mistake in what the program does. */
const WITHOUT_LOGIC = /(^|[-/])(limits|texts)\.ts$/
const SOURCES = readdirSync(join(ROOT, 'src'), { recursive: true }).map(String)
  .filter(path => path.endsWith('.ts') && !WITHOUT_LOGIC.test(path)).sort()
const trialsOf = (path: string): Trial[] => mutants(readFileSync(join(ROOT, 'src', path), 'utf8')).map(one =>
  ({ ...one, path }))

/** All mutants in an order in which each module has its share early; a small module has a larger one. */
function * sample(random: Random): Generator<Trial> {
  const left = new Map<string, Trial[]>()
  for (const trial of SOURCES.flatMap(trialsOf)) left.set(moduleOf(trial.path),
    [...left.get(moduleOf(trial.path)) ?? [], trial])
  const shares = [...left].map(([module, all]) => [module, Math.sqrt(all.length)] as const)
  const sum = shares.reduce((sum, [, share]) => sum + share, 0)
  while ([...left.values()].some(all => all.length > 0)) {
    let at = random.next() * sum
    const [module] = shares.find(([, share]) => { at -= share; return at < 0 }) ?? shares[0]!
    const all = left.get(module)!
    if (all.length > 0) yield all.splice(random.int(all.length), 1)[0]!
  }
}

const found = new Map<string, { tried: number, noticed: number }>()
const compiles = { ofPage: compiler(join(ROOT, 'src', BROWSER)), ofAllElse: compiler(ROOT) }

async function attempt(tree: string, { path, name, line, text }: Trial): Promise<void> {
  const file = join(ROOT, 'src', path)
  if (!compiles[path.startsWith(BROWSER) ? 'ofPage' : 'ofAllElse'](file, text)) return
  const source = readFileSync(file, 'utf8')
  const put = (changed = source): void => {
    for (const folder of ['src', 'dist']) writeFileSync(join(tree, folder, path.replace(/\.ts$/, '.js')),
      compile(changed))
  }
  const counts = found.get(moduleOf(path)) ?? { tried: 0, noticed: 0 }
  found.set(moduleOf(path), counts)
  try {
    const noticed = await isNoticed(tree, path, put, text)
    counts.tried++
    counts.noticed += Number(noticed)
    if (!noticed) console.log(`src/${path}:${line}: ${name}`)
  } finally {
    put()
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

const { values, positionals } = parseArgs({
  allowPositionals: true, options: { minutes: { type: 'string', default: '60' }, seed: { type: 'string' } }
})
const seed = Number(values.seed ?? seedFromEnv())
const named = SOURCES.filter(path => positionals.some(one => path === one ||
  (one.endsWith('/') && path.startsWith(one))))
const endMs = positionals.length > 0 ? Infinity : performance.now() + Number(values.minutes) * 60_000
if (positionals.length === 0) console.log(`SEED=${seed}`)
const tree = transpiledTree()
process.on('exit', () => rmSync(tree, { recursive: true, force: true }))
for (const trial of positionals.length > 0 ? named.flatMap(trialsOf) : sample(seeded(seed))) {
  if (performance.now() > endMs) break
  await attempt(tree, trial)
}
const rows = [...found].sort(([a], [b]) => a < b ? -1 : 1)
const total = rows.reduce((sum, [, { tried, noticed }]) =>
  ({ tried: sum.tried + tried, noticed: sum.noticed + noticed }), { tried: 0, noticed: 0 })
console.log(['', '| module | mutants | noticed |', '| --- | --- | --- |', ...[...rows, ['all', total] as const]
  .map(([module, { tried, noticed }]) => `| ${module === '' ? 'src' : module} | ${tried} | ${noticed} |`),
    ''].join('\n'))
if (total.noticed < total.tried * WANTED_SHARE) process.exitCode = 1
