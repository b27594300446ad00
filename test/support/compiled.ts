/** Sources and tests as JavaScript, for what runs them often or measures them. */
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Compiles `src` and `test` into a folder of its own, beside all that they read; the caller removes it. */
export function compileTree(): string {
  const tree = mkdtempSync(join(tmpdir(), 'pes-compiled-'))
  chmodSync(tree, 0o755) // programs that run as another user load what is in it
  const compiler = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  execFileSync(process.execPath, [compiler, '-p', 'test', '--noEmit', 'false', '--outDir', tree], { cwd: ROOT })
  for (const name of ['src', 'test', 'dist', 'package.json', 'README.md', 'SECURITY.md']) {
    cpSync(join(ROOT, name), join(tree, name), { recursive: true })
  }
  cpSync(join(ROOT, 'dist/parts/page/browser'), join(tree, 'src/parts/page/browser'), { recursive: true }) // where compiled programs look
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
  return tree
}
