/** What is lost of a damaged journal, and how that is told. */
import type { LostLines } from '../../journal/journal.ts'
import type { EntryTable } from '../../store/entry-pages.ts'
import type { Loss } from './salvage-state.ts'
import type { Run, Scan } from './salvage-scan.ts'

/** Less than any line, and more than the end of one from its seal on. */
const LESS_THAN_A_LINE_BYTES = 200

/** What is lost before each run, and after the last one; undefined: nothing. */
export interface Losses {
  readonly before: readonly (Loss | undefined)[]
  readonly after: Loss | undefined
  readonly lines: readonly LostLines[]
}

/** What is lost, as far as the numbers of lines and the bytes that are no line show it. */
export function lossesOf(scan: Scan): Losses {
  const { runs, again, bytes, last } = scan
  const free = freeBytes([...runs, ...again], bytes)
  const isInOrder = runs.every((run, i) => i === 0 || run.at >= runs[i - 1]!.end)
  const all = free.reduce((sum, range) => sum + range.bytes, 0)
  const lines: LostLines[] = []
  let explained = 0
  const before = runs.map((run, i) => {
    const end = i === 0 ? 0 : runs[i - 1]!.end
    const from = i === 0 ? 1 : runs[i - 1]!.last + 1
    if (run.first === from) return undefined
    const here = free.filter(range => range.at >= end && range.at < run.at)
    const found = isInOrder ? here.reduce((sum, range) => sum + range.bytes, 0) : all
    if (isInOrder) for (const range of here) explained += range.isLine ? range.bytes : 0
    lines.push({ from, to: run.first - 1, bytes: found })
    return { lines: run.first - from, bytes: found }
  })
  // What no missing line explains may be the newest ones, wherever it is by now.
  const left = free.filter(({ isLine }) => isLine).reduce((sum, range) => sum + range.bytes, 0) - explained
  if (left > 0) lines.push({ from: last + 1, to: null, bytes: left })
  return { before, after: left > 0 ? { lines: 1, bytes: left } : undefined, lines }
}

interface FreeBytes {
  readonly at: number
  readonly bytes: number
  /** Whether a line may have been there. */
  readonly isLine: boolean
}

/** The parts of a file that belong to no line that was opened, without line ends. */
function freeBytes(runs: readonly Pick<Run, 'at' | 'end'>[], bytes: number): readonly FreeBytes[] {
  const found: FreeBytes[] = []
  let at = 0
  for (const run of [...runs].sort((a, b) => a.at - b.at)) {
    if (run.at > at) found.push({ at, bytes: run.at - at, isLine: run.at - at >= LESS_THAN_A_LINE_BYTES })
    at = Math.max(at, run.end + 1)
  }
  if (bytes > at) found.push({ at, bytes: bytes - at, isLine: true })
  return found
}

/** The ids of all entries up to one, as `1-5,7`. */
export function idsUpTo(entries: EntryTable, newest: number): string {
  const ranges: string[] = []
  let first = 0
  for (let id = 1; id <= newest + 1; id++) {
    const isThere = id <= newest && entries.text(id) !== undefined
    if (isThere && first === 0) first = id
    if (isThere || first === 0) continue
    ranges.push(first === id - 1 ? `${first}` : `${first}-${id - 1}`)
    first = 0
  }
  return ranges.join(',')
}
