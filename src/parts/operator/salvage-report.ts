/** What is lost of a damaged journal, and how that is told. */
import type { LostLines } from '../../journal/journal.ts'
import type { EntryTable } from '../../store/entry-pages.ts'
import type { Context } from '../command.ts'
import { before, type EarlierEnd } from './archives.ts'
import type { StandIn } from './salvage-archive.ts'
import type { Loss, Rebuilding } from './salvage-state.ts'
import type { Run, Scan } from './salvage-scan.ts'

/** The most places and records that are shown. */
const MAX_SHOWN = 20
/** What the command ends with where something is lost. */
const LOST = 3

/** Less than any line, and more than the end of one from its seal on. */
const LESS_THAN_A_LINE_BYTES = 200

/** What is lost before each run, and after the last one; undefined: nothing. */
export interface Losses {
  readonly before: readonly (Loss | undefined)[]
  readonly after: Loss | undefined
  readonly lines: readonly LostLines[]
}

/** What is lost, as far as the numbers of lines and the bytes that are no line show it. */
export function lossesOf({ runs, again, bytes, isEnded, last, hasHead }: Scan): Losses {
  const free = freeBytes([...runs, ...again], bytes, isEnded)
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
  // A noted head that is nowhere may be that of a line which is gone from the end without a trace.
  if (left === 0 && hasHead) return { before, after: undefined, lines }
  lines.push({ from: last + 1, to: null, bytes: left })
  // Where they are is not known: they may have been moved to where others are missing, and have been lost there.
  return { before, after: { lines: 1, bytes: all }, lines }
}

interface FreeBytes {
  readonly at: number
  readonly bytes: number
  /** Whether it may be what is left of a line, and not of a hash alone. */
  readonly mayBeLine: boolean
}

/** The parts of a file that belong to no line that was opened, without line ends. */
function freeBytes(runs: readonly Run[], bytes: number, isEnded: boolean): readonly FreeBytes[] {
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
  if (bytes !== at || !isEnded) found.push({ at: Math.min(at, bytes), bytes: Math.max(1, bytes - at), mayBeLine: true })
  return found
}

/** A record that has no place, without what it holds. */
export interface Unplaced {
  readonly line: number
  readonly time: string
  readonly type: string
  readonly id: number | null
  readonly why: string
}

/** What came of it. */
export interface Salvaged {
  readonly scan: Scan
  readonly losses: Losses
  readonly standIn: StandIn | undefined
  readonly missing: EarlierEnd | undefined
  readonly made: Rebuilding
  readonly records: number
  readonly head: string
  readonly unplaced: number
  /** The first of them. */
  readonly named: readonly Unplaced[]
}

/** Prints what came of a salvage; gives the exit code. */
export function report(
  { terminal, flags }: Context, source: string, target: string, salvaged: Salvaged, keepsAccess: boolean
): number {
  const { scan, losses, standIn, missing, made, records, head, unplaced, named } = salvaged
  const { entries, users } = made.state
  const lostLines = losses.lines.reduce((sum, { from, to }) => sum + (to === null ? 0 : to - from + 1), 0)
  const lostBytes = losses.lines.reduce((sum, { bytes }) => sum + bytes, 0)
  const doubtful = idsUpTo(entries, made.doubtfulIds)
  const doubtfulCount = countOf(doubtful)
  const all = [...users.entries()]
  const locked = keepsAccess ? [] : all.filter(([id]) => made.isLocked(id)).map(([, { email }]) => email)
  const there = all.filter(([, { passwordHash }]) => passwordHash !== undefined)
  const mayDoLess = there.filter(([id]) => id <= made.doubtfulUsers).map(([, { email }]) => email)
  const hasLost = losses.lines.length > 0 || unplaced > 0 || scan.missingKeys.length > 0
  const aside = unplaced === 0 ? undefined : `${target}.unplaced.jsonl`
  const result = {
    source, path: target, records, head, lines: scan.lines, opened: scan.opened, lost: losses.lines, lostLines,
    lostBytes, doubtful: scan.doubtful.map(({ first, last }) => ({ from: first, to: last })),
    missingKeys: scan.missingKeys, entries: entries.count, whole: entries.count - doubtfulCount,
    mayLackChanges: doubtful,
    users: there.length, lockedUsers: locked, mayHaveFewerAbilities: mayDoLess,
    tokensLeftOut: made.tokensLeftOut, tokens: made.state.tokens.size,
    until: made.until, nextId: entries.size + 1, unplaced,
    ...aside && { unplacedFile: aside, unplacedRecords: named },
    archive: standIn?.path ?? null, missingArchive: missing ?? null,
    ...flags['head'] !== undefined && { noted: scan.hasHead }
  }
  terminal.show(result, [
    `lines    ${scan.lines} found, ${scan.opened} opened, ${lostLines} known to be lost`,
    ...losses.lines.slice(0, MAX_SHOWN).map(shownLoss),
    ...losses.lines.length > MAX_SHOWN
      ? [`lost     and ${losses.lines.length - MAX_SHOWN} more places; --json names them`] : [],
    ...scan.doubtful.slice(0, MAX_SHOWN).map(({ first, last }) => `doubtful ${first} to ${last} are older than what ` +
      'comes before them: the clock was set back, or they are of another journal'),
    ...missing === undefined ? [] : [`archive  --archive with the journal ${before(missing)}, ${missing.records} ` +
      'records, can give what is lost of the checkpoint'],
    ...missing !== undefined || flags['archive'] === undefined ? [] : [`archive  ${standIn?.path ?? 'not needed'}`],
    ...flags['head'] === undefined ? []
      : [`noted    ${scan.hasHead ? 'the head is there' : 'no line that was opened has the head'}`],
    ...scan.missingKeys.map(key => `key      ${key} is missing; put it into the key file, and begin again`),
    `entries  ${entries.count}, of which ${entries.count - doubtfulCount} are whole`,
    ...doubtful === '' ? [] : [`         these may lack changes: ${shortened(doubtful)}`],
    `users    ${there.length}`,
    ...locked.length === 0 ? [] : [`         these need a new password: ${shortened(locked.join(', '))}`],
    ...mayDoLess.length === 0 ? []
      : [`         these may have had fewer abilities; check user list: ${shortened(mayDoLess.join(', '))}`],
    `tokens   ${made.state.tokens.size}`,
    ...made.tokensLeftOut === 0 ? [] : [`         ${made.tokensLeftOut} are left out, which may have been revoked`],
    `until    ${made.until ?? '-'}`, `next id  ${entries.size + 1}`,
    ...aside === undefined ? [] : [`unplaced ${unplaced} records, kept in ${aside}, which holds passwords`],
    ...named.slice(0, MAX_SHOWN).map(({ line, time, type, id, why }) =>
      `         line ${line}, ${time} ${type}${id === null ? '' : ` ${id}`}: ${why}`),
    ...unplaced > MAX_SHOWN ? [`         and ${unplaced - MAX_SHOWN} more, which that file names`] : [],
    `journal  ${target}: ${records} records, head ${head}`
  ])
  return hasLost ? LOST : 0
}

function shownLoss({ from, to, bytes }: Losses['lines'][number]): string {
  if (to === null) return `lost     perhaps the newest, from ${from} on: ${bytes} bytes are no line`
  return `lost     ${from === to ? from : `${from} to ${to}`}, ${bytes} bytes`
}

function shortened(text: string): string {
  return text.length <= 400 ? text : `${text.slice(0, 400)}… (--json names all)`
}

function countOf(ids: string): number {
  return ids === '' ? 0 : ids.split(',').reduce((sum, range) => {
    const [first, last = first] = range.split('-').map(Number)
    return sum + last! - first! + 1
  }, 0)
}

/** The ids of all entries up to one, as `1-5,7`. */
function idsUpTo(entries: EntryTable, newest: number): string {
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
