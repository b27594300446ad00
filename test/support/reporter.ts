/** What a run of tests prints: a line a file, failures in full, the totals, and last what was not run and why. */
import { lostTests, type FileResult } from './test-file.ts'

/** The last line of a run: skipped tests by their reasons, and files of `test` that this kind of run left out. */
export function lastLine(skips: ReadonlyMap<string, number>, leftOut: readonly string[]): string {
  const tests = [...skips].map(([reason, count]) => `${count} ${count === 1 ? 'test' : 'tests'} (${reason})`)
  const files = leftOut.length === 0 ? [] : [`${leftOut.join(', ')} (npm test -- all runs them)`]
  return `skipped: ${[...tests, ...files].join('; ') || 'nothing'}\n`
}

export function textOf({ path, tests, output, seeds, ms, cpuMs, problems }: FileResult): string {
  const failed = tests.filter(({ error, isOuter }) => error !== undefined && isOuter !== true)
  const isGood = tests.every(({ error }) => error === undefined) && problems.length === 0
  return [
    output, ...failed.map(({ name, error }) => `✖ ${path}: ${name}\n${error}\n`),
    ...problems.map(problem => `✖ ${path}: ${problem}\n`),
    ...isGood ? [] : seeds.map(seed => `${seed}\n`), `${isGood ? '✔'
      : '✖'} ${path}: ${tests.length} tests, ${(ms / 1000).toFixed(1)} s, ${(cpuMs / 1000).toFixed(1)} s of a core\n`
  ].join('')
}

export function endOf(
  results: readonly FileResult[], leftOut: readonly string[], lost: readonly string[] = lostTests(results)
): { readonly text: string, readonly isGood: boolean } {
  const tests = results.flatMap(({ tests }) => tests)
  const failures = results.flatMap(({ path, tests, problems }) => [
    ...tests.filter(({ error, isOuter }) => error !== undefined && isOuter !== true).map(({ name }) => name),
    ...problems
  ].map(what => `✖ ${path}: ${what}\n`)).concat(lost.map(one => `✖ not run: ${one}\n`))
  const skips = new Map<string, number>()
  for (const { skip } of tests) if (skip !== undefined) skips.set(skip, (skips.get(skip) ?? 0) + 1)
  const count = (what: string, number: number): string => `ℹ ${what} ${number}\n`
  const totals = count('tests', tests.length) + count('fail', tests.filter(({ error }) => error !== undefined).length) +
    count('skipped', tests.filter(({ skip }) => skip !== undefined).length)
  const failed = failures.length === 0 ? '' : `failed:\n${failures.join('')}\n`
  return { text: `\n${failed}${totals}${lastLine(skips, leftOut)}`, isGood: failures.length === 0 }
}
