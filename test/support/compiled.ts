/** Sources and tests as JavaScript, for what runs them often or measures them. */
import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const COMPILER = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')

const newTree = (): string => {
  const tree = mkdtempSync(join(tmpdir(), 'pes-compiled-'))
  chmodSync(tree, 0o755) // programs that run as another user load what is in it
  return tree
}

const compilation = (tree: string): readonly string[] =>
  [COMPILER, '-p', 'test', '--noEmit', 'false', '--sourceMap', '--outDir', tree]

function fill(tree: string): void {
  for (const name of ['src', 'test', 'dist', 'package.json', 'README.md', 'SECURITY.md', 'CHANGELOG.md']) {
    cpSync(join(ROOT, name), join(tree, name), { recursive: true })
  }
  cpSync(join(ROOT, 'dist/parts/page/browser'), join(tree, 'src/parts/page/browser'), { recursive: true }) // where compiled programs look
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
}

/** Compiles `src` and `test` into a folder of its own, beside all that they read; the caller removes it. */
export function compileTree(): string {
  const tree = newTree()
  execFileSync(process.execPath, compilation(tree), { cwd: ROOT })
  fill(tree)
  return tree
}

/** The same while the program is built; the folder goes with this process. Throws what a compiler says. */
export async function buildTree(): Promise<string> {
  const tree = newTree()
  process.on('exit', () => rmSync(tree, { recursive: true, force: true }))
  const said = ({ stdout, stderr }: { stdout: string, stderr: string }): never => { throw new Error(`${stdout}${stderr}`) }
  await Promise.all([
    run('npm', ['run', '--silent', 'build'], { cwd: ROOT }).catch(said),
    run(process.execPath, compilation(tree), { cwd: ROOT }).catch(said)
  ])
  fill(tree)
  return tree
}
