/**
 * Mutation trials: `npm run test:mutants [PATH…]`, files of `src` or folders, ending in a slash. One place of a source
 * is made wrong at a time, in a copy of the tree, and the tests of its room must notice; what does not compile is no
 * mutant. Prints those that no test notices, and fails when there are more of them than have been found to make no
 * difference.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { compileTree } from '../support/compiled.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** A test that takes that much longer than with the source as it stands is taken for one that never ends. */
const SLOWER = 3
const SLACK_MS = 5_000
const MOST_MS = 120_000

/**
 * What is tried, and how many mutants were found to make no difference: a bound where both ways do the same, how much
 * is done at a time to a byte, ASCII read as latin1 or as UTF-8, a name that is durable only if the power fails.
 */
const ALIKE: { readonly [path: string]: number } = {
  'json/': 9, 'journal/': 3, 'disk/': 1, 'http/rate-limit.ts': 1, 'http/head.ts': 0, 'store/accounts.ts': 1,
  'api/guards.ts': 0
}

/** The tests of a source's room, the one of its own name first. Tests of `http` hold guards of `api`, too. */
function testsOf(path: string): string[] {
  const [room = '', name = ''] = path.replace(/\.ts$/, '').split('/')
  const all = (room === 'api' ? ['api', 'http'] : [room]).flatMap(folder =>
    readdirSync(join(ROOT, 'test', folder)).filter(file => file.endsWith('.test.ts'))
      .map(file => `${folder}/${file.replace('.test.ts', '')}`))
  return all.sort((a, b) => Number(b.endsWith(`/${name}`)) - Number(a.endsWith(`/${name}`)))
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
  if (ts.isNumericLiteral(node)) return [...negated, String(Number(text.replaceAll('_', '')) + 1)]
  if (ts.isStringLiteral(node) && node.text !== '') return [...negated, "''"]
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

let running: ChildProcess | undefined

/** Ends the test that runs, with the programs that it has started. */
function end(): void {
  try {
    if (running !== undefined) process.kill(-running.pid!, 'SIGKILL')
  } catch { /* It has just ended by itself. */ }
}
process.on('exit', end)

/** Runs a test's file up to its first failure; gives how long it took, undefined where it fails or takes too long. */
function run(tree: string, test: string, limitMs: number): Promise<number | undefined> {
  const args = ['--test-reporter=tap', join('test', `${test}.test.js`)]
  const child = running = spawn(process.execPath, args, { cwd: tree, stdio: ['ignore', 'pipe', 'ignore'], detached: true })
  const beganMs = performance.now()
  return new Promise((resolve, reject) => {
    const timer = setTimeout(end, limitMs)
    child.stdout!.setEncoding('utf8').on('data', text => { if (/^ *not ok /m.test(text)) end() })
    child.on('error', reject)
    child.on('close', code => {
      clearTimeout(timer)
      running = undefined
      resolve(code === 0 ? performance.now() - beganMs : undefined)
    })
  })
}

/** How long each file takes; throws if one fails while nothing is wrong. */
async function timesOf(tree: string, tests: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const times = new Map<string, number>()
  for (const test of tests) {
    const ms = await run(tree, test, MOST_MS)
    if (ms === undefined) throw new Error(`${test} fails while nothing is wrong`)
    times.set(test, ms)
  }
  return times
}

async function isNoticed(tree: string, times: ReadonlyMap<string, number>): Promise<boolean> {
  for (const [test, ms] of times) {
    if (await run(tree, test, ms * SLOWER + SLACK_MS) === undefined) return true
  }
  return false
}

/** Makes the function that says whether a text in the place of a source compiles; a name may be left over in it. */
function compiler(path: string): (text: string) => boolean {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT)
  Object.assign(options, { noUnusedLocals: false, noUnusedParameters: false })
  const host = ts.createCompilerHost(options)
  const read = host.getSourceFile
  const others = new Map<string, ts.SourceFile | undefined>()
  let program: ts.Program | undefined
  return text => {
    host.getSourceFile = (name, version) => {
      if (name === path) return ts.createSourceFile(name, text, version)
      if (!others.has(name)) others.set(name, read(name, version))
      return others.get(name)
    }
    program = ts.createProgram([path], options, host, program)
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

/** Tries every mutant of a source; gives how many no test has noticed. */
async function tryAll(tree: string, path: string): Promise<number> {
  const target = path.replace(/\.ts$/, '.js')
  const put = (text: string): void => {
    for (const folder of ['src', 'dist']) writeFileSync(join(tree, folder, target), compile(text))
  }
  const source = readFileSync(join(ROOT, 'src', path), 'utf8')
  const compiles = compiler(join(ROOT, 'src', path))
  const all = mutants(source).filter(({ text }) => compiles(text))
  const times = await timesOf(tree, testsOf(path))
  let survivors = 0
  try {
    for (const { name, line, text } of all) {
      put(text)
      if (await isNoticed(tree, times)) continue
      survivors++
      console.log(`src/${path}:${line}: ${name}`)
    }
  } finally {
    put(source)
  }
  console.log(`src/${path}: ${all.length} mutants, ${survivors} not noticed`)
  return survivors
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

const tree = compileTree()
try {
  for (const asked of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(ALIKE)) {
    const sources = asked.endsWith('/')
      ? readdirSync(join(ROOT, 'src', asked)).filter(name => name.endsWith('.ts')).map(name => asked + name) : [asked]
    let survivors = 0
    for (const path of sources) survivors += await tryAll(tree, path)
    const alike = ALIKE[asked] ?? 0
    console.log(`${asked}: ${survivors} not noticed, of which ${alike} make no difference`)
    if (survivors > alike) process.exitCode = 1
  }
} finally {
  rmSync(tree, { recursive: true, force: true })
}
