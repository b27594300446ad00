/**
 * Sources and tests as JavaScript, for what runs them often or measures them. What was compiled stays in
 * `node_modules/.cache`, so that only what has changed since is compiled again; each run copies it into a folder of its
 * own, so that nobody who edits or compiles meanwhile changes what it runs.
 */
import { execFile, execFileSync } from 'node:child_process'
import {
  chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Also has the durations of the last runs (`run.ts`). */
export const CACHE: string = join(ROOT, 'node_modules', '.cache', 'tests')
const COMPILED = join(CACHE, 'compiled')
/** What was compiled last. */
const STAMP = join(CACHE, 'stamp')
const COMPILER = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
const COMPILATION = [
  COMPILER, '-p', 'test', '--noEmit', 'false', '--sourceMap', '--outDir', COMPILED,
  '--incremental', '--tsBuildInfoFile', join(CACHE, 'tsbuildinfo')
]

/** A text that another state of the sources has not: each file with its size and the time of its last change. */
function stampOf(): string {
  const files = ['src', 'test'].flatMap(folder =>
    readdirSync(join(ROOT, folder), { recursive: true }).map(name => join(folder, String(name))))
  return ['package-lock.json', 'tsconfig.json', ...files].filter(name => /\.(ts|js|json)$/.test(name)).sort()
    .map(name => {
      const { size, mtimeMs } = statSync(join(ROOT, name))
      return `${name} ${size} ${mtimeMs}\n`
    }).join('')
}

/** Throws what the compiler says. */
async function compile(): Promise<void> {
  const stamp = stampOf()
  if (existsSync(STAMP) && readFileSync(STAMP, 'utf8') === stamp) return
  rmSync(STAMP, { force: true })
  mkdirSync(CACHE, { recursive: true })
  await run(process.execPath, COMPILATION, { cwd: ROOT })
  for (const name of readdirSync(COMPILED, { recursive: true }).map(String)) {
    const source = join(ROOT, name.replace(/\.js(\.map)?$/, '.ts'))
    if (source.endsWith('.ts') && !existsSync(source)) rmSync(join(COMPILED, name))
  }
  writeFileSync(STAMP, stamp)
}

function copyOfCompiled(): string {
  const tree = mkdtempSync(join(tmpdir(), 'pes-compiled-'))
  chmodSync(tree, 0o755) // programs that run as another user load what is in it
  cpSync(COMPILED, tree, { recursive: true })
  for (const name of ['src', 'test', 'dist', 'package.json', 'README.md', 'SECURITY.md', 'CHANGELOG.md']) {
    cpSync(join(ROOT, name), join(tree, name), { recursive: true })
  }
  // where compiled programs look
  cpSync(join(ROOT, 'dist/parts/page/browser'), join(tree, 'src/parts/page/browser'), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
  return tree
}

/** Compiles `src` and `test` into a folder of its own, beside all that they read; the caller removes it. */
export function compileTree(): string {
  execFileSync(process.execPath, COMPILATION, { cwd: ROOT })
  return copyOfCompiled()
}

/** The same while the program is built; the folder goes with this process. Throws what a compiler says. */
export async function buildTree(): Promise<string> {
  const said = ({ stdout, stderr, message }: { stdout?: string, stderr?: string, message: string }): never => {
    throw new Error(`${stdout ?? message}${stderr ?? ''}`)
  }
  await Promise.all([run('npm', ['run', '--silent', 'build'], { cwd: ROOT }).catch(said), compile().catch(said)])
  const tree = copyOfCompiled()
  process.on('exit', () => rmSync(tree, { recursive: true, force: true }))
  return tree
}
