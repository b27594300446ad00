/** Files of tests by their names: `program/stop` is `program/stop.test.ts` and `program/stop.ci.test.ts`. */
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const TEST: string = fileURLToPath(new URL('..', import.meta.url))

/** Marks say where a file runs (`run.ts`). */
export function plainName(file: string): string { return file.replace(/(\.(ci|once|newest))*\.test\.ts$/, '') }

/** The paths of all files of tests below `test`, sorted. */
export function testFiles(): readonly string[] {
  return readdirSync(TEST, { recursive: true }).map(String).filter(file => file.endsWith('.test.ts')).sort()
}
