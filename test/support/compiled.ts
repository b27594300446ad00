/**
 * Sources and tests as JavaScript, without their types, which `npm run check` judges. What was transpiled stays in
 * `node_modules/.cache`, so that only what has changed since is transpiled again; each run copies it into a folder of
 * its own, so that nobody who edits or builds meanwhile changes what it runs.
 */
import { execFile } from 'node:child_process'
import {
  chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Also has the durations of the last runs (`run.ts`). */
export const CACHE: string = join(ROOT, 'node_modules', '.cache', 'tests')
const TRANSPILED = join(CACHE, 'transpiled')
/** Which state of each source was transpiled last. */
const STAMPS = join(CACHE, 'stamps.json')

function transpile(): void {
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: (fault: ts.Diagnostic) => {
    throw new Error(ts.flattenDiagnosticMessageText(fault.messageText, '\n'))
  } }
  const config = ts.getParsedCommandLineOfConfigFile(join(ROOT, 'test', 'tsconfig.json'), {}, host)!
  const compilerOptions: ts.CompilerOptions = {
    ...config.options, noEmit: false, sourceMap: true, module: ts.ModuleKind.ESNext
  }
  const old: { readonly [name: string]: string } = existsSync(STAMPS) ? JSON.parse(readFileSync(STAMPS, 'utf8')) : {}
  const stamps: { [name: string]: string } = {}
  const of = (path: string): string => { const { size, mtimeMs } = statSync(path); return `${size} ${mtimeMs}` }
  const compiler = of(join(ROOT, 'package-lock.json')) + of(join(ROOT, 'tsconfig.json'))
  rmSync(STAMPS, { force: true })
  for (const path of config.fileNames) {
    const name = relative(ROOT, path)
    stamps[name] = `${of(path)} ${compiler}`
    if (stamps[name] === old[name]) continue
    const to = join(TRANSPILED, name.replace(/\.ts$/, '.js'))
    const { outputText, sourceMapText } = ts.transpileModule(readFileSync(path, 'utf8'),
      { fileName: basename(name), compilerOptions })
    mkdirSync(dirname(to), { recursive: true })
    writeFileSync(to, outputText)
    writeFileSync(`${to}.map`, sourceMapText!)
  }
  for (const name of Object.keys(old).filter(name => !(name in stamps))) {
    for (const end of ['.js', '.js.map']) rmSync(join(TRANSPILED, name.replace(/\.ts$/, end)), { force: true })
  }
  writeFileSync(STAMPS, JSON.stringify(stamps))
}

/** `src` and `test` in a folder of its own, beside all that they read, from a built program; the caller removes it. */
export function transpiledTree(): string {
  transpile()
  const tree = mkdtempSync(join(tmpdir(), 'pes-compiled-'))
  chmodSync(tree, 0o755) // programs that run as another user load what is in it
  cpSync(TRANSPILED, tree, { recursive: true })
  for (const name of ['src', 'test', 'dist', 'package.json', 'README.md', 'SECURITY.md', 'CHANGELOG.md']) {
    cpSync(join(ROOT, name), join(tree, name), { recursive: true })
  }
  // where compiled programs look
  cpSync(join(ROOT, 'dist/parts/page/browser'), join(tree, 'src/parts/page/browser'), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
  return tree
}

/** The same, once the program is built; the folder goes with this process. Throws what the compiler says. */
export async function buildTree(): Promise<string> {
  const build = promisify(execFile)('npm', ['run', '--silent', 'build'], { cwd: ROOT })
  transpile() // while the program is built
  await build.catch(({ stdout, stderr, message }) => { throw new Error(`${stdout ?? message}${stderr ?? ''}`) })
  const tree = transpiledTree()
  process.on('exit', () => rmSync(tree, { recursive: true, force: true }))
  return tree
}
