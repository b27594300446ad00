/** Parts can be taken out: without one, or without all of them, the program builds and keeps the contract. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PARTS = readdirSync(join(ROOT, 'src', 'parts'), { withFileTypes: true })
  .filter(entry => entry.isDirectory()).map(({ name }) => name)

/** The build script, but for the install of packages. */
const BUILD = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).scripts.build.replace(/^npm run --silent deps && /, '')

/** A copy of the sources in which parts are taken out, one set after the other. */
const tree = mkdtempSync(join(tmpdir(), 'pes-parts-'))
after(() => rmSync(tree, { recursive: true }))

/** Makes the copy whole again, but without parts: their folders, their lines, and with the operator its program. */
function takeOut(parts: readonly string[]): void {
  for (const name of ['src', 'test/api', 'test/support', 'test/tsconfig.json', 'tsconfig.json', 'package.json']) {
    cpSync(join(ROOT, name), join(tree, name), { recursive: true })
  }
  const lines = readFileSync(join(tree, 'src/parts.ts'), 'utf8').split('\n')
  const isKept = (line: string): boolean => !parts.some(part => line.includes(`./parts/${part}/part.ts`))
  const kept = lines.filter(isKept)
  assert.equal(kept.length, lines.length - parts.length, 'each part has one line')
  if (!kept.some(line => line.startsWith('export'))) kept.push('export {}')
  writeFileSync(join(tree, 'src/parts.ts'), kept.join('\n'))
  for (const part of parts) {
    for (const room of ['src', 'dist']) rmSync(join(tree, room, 'parts', part), { recursive: true, force: true })
  }
  if (parts.includes('operator')) for (const file of ['src/admin.ts', 'dist/admin.js']) rmSync(join(tree, file), { force: true })
}

/** Sources as they were read last: most are the same in the next compilation. */
const parsed = new Map<string, ts.SourceFile>()

/** Compiles the copy as `npm run build` does, but for the declarations of packages, which are not checked again. */
function build(): void {
  const file = join(tree, 'tsconfig.json')
  const config = ts.parseJsonConfigFileContent(ts.readConfigFile(file, ts.sys.readFile).config, ts.sys, tree)
  const options = { ...config.options, skipLibCheck: true }
  const host = ts.createCompilerHost(options)
  const { getSourceFile } = host
  host.getSourceFile = (path, ...rest) => {
    const known = parsed.get(path)
    if (known !== undefined && (path.includes('/node_modules/') || known.text === ts.sys.readFile(path))) return known
    const read = getSourceFile(path, ...rest)
    if (read !== undefined) parsed.set(path, read)
    return read
  }
  const program = ts.createProgram(config.fileNames, options, host)
  const problems = [...config.errors, ...ts.getPreEmitDiagnostics(program), ...program.emit().diagnostics]
  assert.deepEqual(problems.map(({ file, messageText }) =>
    `${file?.fileName ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, '; ')}`), [])
}

const ENVIRONMENT = {
  ...process.env, NODE_TEST_CONTEXT: undefined, PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH']}`
}

async function run(program: string, args: readonly string[]): Promise<string> {
  try {
    return (await promisify(execFile)(program, [...args], { cwd: tree, env: ENVIRONMENT })).stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string, stderr?: string }
    return assert.fail(`${program} ${args.join(' ')}\n${stdout}${stderr}`.slice(0, 10_000))
  }
}

symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
for (const parts of [...PARTS.map(part => [part]), PARTS]) {
  const what = parts.length === 1 ? `the part ${parts[0]}` : 'all parts'
  test(`without ${what} the program builds and passes the tests of the contract`, async () => {
    takeOut(parts)
    // The script of package.json must do without the page's browser code; for the others the compiler is enough.
    if (parts === PARTS) await run('sh', ['-c', BUILD])
    else build()
    const printed = await run(process.execPath, ['dist/server.js', '--help'])
    assert.match(printed, /--port N/)
    const report = await run(process.execPath,
      ['--import', 'tsx', '--test-reporter=tap', 'test/api/contract.test.ts'])
    assert.match(report, /^# fail 0$/m)
    assert.ok(Number(/^# pass (\d+)$/m.exec(report)?.[1]) > 20, report.slice(-500))
  })
}
