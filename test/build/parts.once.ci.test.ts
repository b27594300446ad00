/** Parts can be taken out: without one, or without all of them, the program builds and keeps the contract. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** The other folders there hold what several parts use. */
const PARTS = readdirSync(join(ROOT, 'src', 'parts')).filter(name =>
  existsSync(join(ROOT, 'src', 'parts', name, 'part.ts')))

/** The build script, but for the install of packages. */
const BUILD = JSON.parse(readFileSync(join(ROOT, 'package.json'),
  'utf8')).scripts.build.replace(/^npm run --silent deps && /, '')

/** A copy of the sources in which parts are taken out, one set after the other. */
const tree = mkdtempSync(join(tmpdir(), 'pes-parts-'))
after(() => rmSync(tree, { recursive: true }))

/** Makes the copy whole again, but without parts: their folders, their lines, and with the operator its program. */
function takeOut(parts: readonly string[]): void {
  for (const name of ['src', 'dist', 'test/api', 'test/support', 'test/tsconfig.json', 'tsconfig.json',
    'package.json']) {
    cpSync(join(ROOT, name), join(tree, name), { recursive: true })
  }
  for (const file of ['src/parts.ts', 'dist/parts.js']) {
    const lines = readFileSync(join(tree, file), 'utf8').split('\n')
    const kept = lines.filter(line => !parts.some(part => line.includes(`./parts/${part}/part.`)))
    assert.equal(kept.length, lines.length - parts.length, 'each part has one line')
    if (!kept.some(line => line.startsWith('export'))) kept.push('export {}')
    writeFileSync(join(tree, file), kept.join('\n'))
  }
  for (const part of parts) {
    for (const top of ['src', 'dist']) rmSync(join(tree, top, 'parts', part), { recursive: true, force: true })
  }
  if (parts.includes('operator')) for (const file of ['src/admin.ts', 'dist/admin.js']) rmSync(join(tree, file),
    { force: true })
}

/** Sources as they were read last: most are the same in the next compilation. */
const parsed = new Map<string, ts.SourceFile>()

/**
 * Checks the types of the copy as `npm run build` does, but not again those of packages. What is built is there
 * already.
 */
function check(): void {
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
  const problems = [...config.errors, ...ts.getPreEmitDiagnostics(program)]
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
  const isAll = parts === PARTS
  const what = isAll ? 'all parts' : `the part ${parts[0]}`
  test(`without ${what} the program builds and starts${isAll ? ', and passes the contract tests' : ''}`, async () => {
    takeOut(parts)
    // The script of package.json must do without the page's browser code; for the others the compiler is enough.
    if (isAll) await run('sh', ['-c', BUILD])
    else check()
    assert.match(await run(process.execPath, ['dist/server.js', '--help']), /--port N/)
    if (!isAll) return
    const report = await run(process.execPath, ['--import', 'tsx', '--test-reporter=tap', 'test/api/contract.test.ts'])
    assert.match(report, /^# fail 0$/m)
    assert.ok(Number(/^# pass (\d+)$/m.exec(report)?.[1]) > 20, report.slice(-500))
  })
}
