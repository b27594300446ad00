/** Parts can be taken out: without one, or without all of them, the program builds and keeps the contract. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import ts from 'typescript'
import { freshFolder } from '../support/service.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PARTS = readdirSync(join(ROOT, 'src', 'parts'), { withFileTypes: true })
  .filter(entry => entry.isDirectory()).map(({ name }) => name)

/** The build script, but for the install of packages. */
const BUILD = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).scripts.build.replace(/^npm run --silent deps && /, '')

/** Takes parts out of a copy of the sources: their folders, their lines, and with the operator its program. */
function takeOut(tree: string, parts: readonly string[]): void {
  const lines = readFileSync(join(tree, 'src/parts.ts'), 'utf8').split('\n')
  const isKept = (line: string): boolean => !parts.some(part => line.includes(`./parts/${part}/part.ts`))
  const kept = lines.filter(isKept)
  assert.equal(kept.length, lines.length - parts.length, 'each part has one line')
  if (!kept.some(line => line.startsWith('export'))) kept.push('export {}')
  writeFileSync(join(tree, 'src/parts.ts'), kept.join('\n'))
  for (const part of parts) rmSync(join(tree, 'src/parts', part), { recursive: true })
  if (parts.includes('operator')) rmSync(join(tree, 'src/admin.ts'))
}

/** The declarations of packages, which are the same in every copy: reading them takes longer than the sources. */
const declarations = new Map<string, ts.SourceFile | undefined>()

/** Compiles a copy as `npm run build` does, but for the declarations of packages, which are not checked again. */
function build(tree: string): void {
  const file = join(tree, 'tsconfig.json')
  const config = ts.parseJsonConfigFileContent(ts.readConfigFile(file, ts.sys.readFile).config, ts.sys, tree)
  const options = { ...config.options, skipLibCheck: true }
  const host = ts.createCompilerHost(options)
  const { getSourceFile } = host
  host.getSourceFile = (path, ...rest) => {
    if (!path.includes('/node_modules/')) return getSourceFile(path, ...rest)
    if (!declarations.has(path)) declarations.set(path, getSourceFile(path, ...rest))
    return declarations.get(path)
  }
  const program = ts.createProgram(config.fileNames, options, host)
  const problems = [...config.errors, ...ts.getPreEmitDiagnostics(program), ...program.emit().diagnostics]
  assert.deepEqual(problems.map(({ file, messageText }) =>
    `${file?.fileName ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, '; ')}`), [])
}

const ENVIRONMENT = {
  ...process.env, NODE_TEST_CONTEXT: undefined, PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH']}`
}

async function run(cwd: string, program: string, args: readonly string[]): Promise<string> {
  try {
    return (await promisify(execFile)(program, [...args], { cwd, env: ENVIRONMENT })).stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string, stderr?: string }
    return assert.fail(`${program} ${args.join(' ')} in ${cwd}\n${stdout}${stderr}`.slice(0, 10_000))
  }
}

for (const parts of [...PARTS.map(part => [part]), PARTS]) {
  const what = parts.length === 1 ? `the part ${parts[0]}` : 'all parts'
  test(`without ${what} the program builds and passes the tests of the contract`, async t => {
    const tree = join(freshFolder(t), 'tree')
    for (const name of ['src', 'test/api', 'test/support', 'test/tsconfig.json', 'tsconfig.json', 'package.json']) {
      cpSync(join(ROOT, name), join(tree, name), { recursive: true })
    }
    symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
    takeOut(tree, parts)
    // The script of package.json must do without the page's browser code; for the others the compiler is enough.
    if (parts.includes('page')) await run(tree, 'sh', ['-c', BUILD])
    else build(tree)
    const printed = await run(tree, process.execPath, ['dist/server.js', '--help'])
    assert.match(printed, /--port N/)
    const report = await run(tree, process.execPath,
      ['--import', 'tsx', '--test', '--test-reporter=tap', 'test/api/contract.test.ts'])
    assert.match(report, /^# fail 0$/m)
    assert.ok(Number(/^# pass (\d+)$/m.exec(report)?.[1]) > 30, report.slice(-500))
  })
}
