/** Programs of others that tests need: where they are, and why a test that needs one is skipped. */
import { execFileSync, spawnSync } from 'node:child_process'

/** Why tests that need these programs are skipped; false if all are there. */
export function missing(...programs: readonly string[]): string | false {
  for (const program of programs) {
    try {
      execFileSync('which', [program], { stdio: 'ignore' })
    } catch {
      return `${program} is not installed`
    }
  }
  return false
}

const found = spawnSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' })
/** Python itself: a version manager's wrapper costs a tenth of a second at each start. */
export const PYTHON: string = found.stdout?.trim() || 'python3'
export const NO_PYTHON: string | false = found.status === 0 ? false : 'python3 is not installed'
