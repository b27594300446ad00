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
export function lossesOf({ runs, again, bytes, last }: Scan): Losses {
  const free = freeBytes([...runs, ...again], bytes)
  const isInOrder = runs.every((run, i) => i === 0 || run.at >= runs[i - 1]!.end)
  // Lines that are there twice may stand where others were.
  const twice = again.reduce((sum, run) => sum + run.end - run.at, 0)
  const all = free.reduce((sum, range) => sum + range.bytes, twice)
  const lines: LostLines[] = []
  const gaps: (readonly [from: number, to: number])[] = []
  const before = runs.map((run, i) => {
    const end = runs[i - 1]?.end ?? -1
    const from = (runs[i - 1]?.last ?? 0) + 1
    if (run.first === from) return undefined
    if (isInOrder) gaps.push([end, run.at])
    const found = isInOrder ? Math.max(0, run.at - end - 1) : all
    lines.push({ from, to: run.first - 1, bytes: found })
    return { lines: run.first - from, bytes: found }
  })
  // What no missing line explains may be the newest ones, wherever it is by now.
  const newest = free.filter(({ at, mayBeLine }) => mayBeLine && !gaps.some(([from, to]) => at > from && at < to))
  const left = newest.reduce((sum, range) => sum + range.bytes, 0)
  if (left === 0) return { before, after: undefined, lines }
  lines.push({ from: last + 1, to: null, bytes: left })
  return { before, after: { lines: 1, bytes: left + twice }, lines }
}

interface FreeBytes {
  readonly at: number
  readonly bytes: number
  /** Whether it may be what is left of a line, and not of a hash alone. */
  readonly mayBeLine: boolean
}

/** The parts of a file that belong to no line that was opened, without line ends. */
function freeBytes(runs: readonly Run[], bytes: number): readonly FreeBytes[] {
  const found: FreeBytes[] = []
  let at = 0
  let head = ''
  for (const run of [...runs].sort((a, b) => a.at - b.at)) {
    const free = run.at - at
    const isHash = run.previousHash === head && free < LESS_THAN_A_LINE_BYTES
    if (free > 0) found.push({ at, bytes: free, mayBeLine: !isHash })
    at = Math.max(at, run.end + 1)
    head = run.head
  }
  // A file whose last line is not ended was cut.
  if (bytes !== at) found.push({ at: Math.min(at, bytes), bytes: Math.max(1, bytes - at), mayBeLine: true })
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
