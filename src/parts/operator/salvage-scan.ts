/**
 * Which lines of a damaged file can be opened, and in which order they were written: first look. Lines that follow one
 * another in the file, each opened by the hash of the one before, are kept as one run; so what is kept in memory grows
 * with the damage, and not with the file.
 */
import { Buffer } from 'node:buffer'
import { readPieces, type Files } from '../../journal/files.ts'
import { CONTINUATIONS, WHOLE, type Continued, type JournalRecord } from '../../journal/journal.ts'
import type { KeyFinder } from '../../journal/keys.ts'
import { FIRST_HASH, isChained } from '../../journal/line.ts'
import { OperatorError } from '../command.ts'
import { LINE_FEED, openPiece, piecesOf, type Opened, type Piece } from './salvage-lines.ts'

/** Lines that were opened one after the other. */
export interface Run {
  at: number
  end: number
  /** The hash before the first line, and that of the last. */
  readonly previousHash: string
  head: string
  readonly first: number
  last: number
  /** When its first and last records were made that are not the journal's own. */
  since: string | undefined
  until: string | undefined
  /** Its last line with a part of a checkpoint, and the one that ends what was written again; 0: none. */
  kept: number
  whole: number
}

/** What was found. */
export interface Scan {
  readonly runs: readonly Run[]
  /** Runs whose numbers are taken: lines that are there twice, or what is left of another journal. */
  readonly again: readonly Run[]
  /** Runs that contradict those, or are older than what comes before them and not alone in their places. */
  readonly foreign: readonly Run[]
  /** Placed, and older than what comes before: the clock was set back in lost lines, or they are another journal's. */
  readonly doubtful: readonly Run[]
  readonly bytes: number
  /** Whether its last byte is the end of a line. */
  readonly isEnded: boolean
  /** How many pieces of lines there are, and how many lines were opened, each once. */
  readonly lines: number
  readonly opened: number
  /** The highest number of a line that was opened. */
  readonly last: number
  /** The names of the keys that are missing. */
  readonly missingKeys: readonly string[]
  /** Whether the noted head, if there is one, is of a line opened or the one before it, or ended a journal before. */
  readonly hasHead: boolean
}

/** How often a line is tried behind a hash of which nothing is known but that it is somewhere in the file. */
const MAX_TRIES = 200_000

/** Looks through a file. */
export function scanDamaged(
  files: Files, path: string, keys: KeyFinder, onProgress: (share: number) => void = () => {}, head?: string
): Scan {
  const bytes = files.stat(path)?.bytes ?? 0
  const first = new FirstLook(keys, head)
  let reported = 0
  for (const piece of piecesOf(files, path, 0, bytes)) {
    first.take(piece)
    if (piece.end - reported > bytes / 100) onProgress((reported = piece.end) / bytes)
  }
  onProgress(1)
  const runs = [...first.runs, ...openLost(files, path, keys, first)]
  const { lines, missingKeys, hasHead } = first
  const placed = place(runs, run => openRun(files, path, keys, run))
  const opened = placed.runs.reduce((sum, run) => sum + run.last - run.first + 1, 0)
  const last = placed.runs.at(-1)?.last ?? 0
  const isEnded = endsLine(files, path, bytes)
  return { ...placed, bytes, isEnded, lines, opened, last, missingKeys: [...missingKeys], hasHead }
}

function endsLine(files: Files, path: string, bytes: number): boolean {
  for (const [piece] of readPieces(files, path, bytes - 1, bytes)) return piece[0] === LINE_FEED
  return false
}

/** A line that does not follow the one before it in the file. */
interface Lost {
  readonly piece: Piece
  /** Where it stands among the other hashes. */
  readonly seq: number
}

class FirstLook {
  readonly runs: Run[] = []
  readonly lost: Lost[] = []
  /** Hashes of pieces without a head. */
  readonly tails: string[] = []
  readonly missingKeys = new Set<string>()
  lines = 0
  hasHead = false
  readonly #keys: KeyFinder
  readonly #noted: string | undefined
  #run: Run | undefined
  #previousHash: string | undefined = FIRST_HASH

  constructor(keys: KeyFinder, noted: string | undefined) {
    this.#keys = keys
    this.#noted = noted
    this.hasHead = noted === undefined || noted === FIRST_HASH
  }

  take(piece: Piece): void {
    const { line, hash } = piece
    if (line === undefined) {
      if (hash !== undefined) this.tails.push(copied(hash))
      this.#run = undefined
      this.#previousHash = hash
      return
    }
    this.lines++
    const before = this.#previousHash
    const opened = before === undefined ? undefined : openPiece(piece, before, this.#keys)
    if (opened !== undefined) return this.#extend(opened)
    this.#run = undefined
    this.#previousHash = hash
    const isLocked = this.#keys.find(line.key) === undefined
    if (isLocked && before !== undefined && isChained(line, before)) this.missingKeys.add(line.key)
    else this.lost.push({ piece: shortOf(piece), seq: line.seq })
  }

  /** Looks whether an opened line shows the noted head. */
  note({ record, hash, previousHash }: Opened): void {
    const ended = CONTINUATIONS.has(record.type) ? (record.data as Continued).head : undefined
    this.hasHead ||= [hash, previousHash, ended].includes(this.#noted)
  }

  #extend(opened: Opened): void {
    const { seq, type } = opened.record
    this.note(opened)
    const run = this.#run
    // Bytes between two lines, but for the line end, end a run: they may be what is left of another line.
    const isNext = run?.head === opened.previousHash && seq === run.last + 1 && opened.piece.at === run.end + 1
    if (run === undefined || !isNext) {
      this.runs.push(this.#run = runOf(opened))
    } else {
      run.end = opened.piece.end
      run.head = opened.hash
      run.last = seq
      const time = timeOf(opened.record)
      run.since ??= time
      run.until = time ?? run.until
      if (type.endsWith('.kept')) run.kept = seq
      if (type === WHOLE) run.whole = seq
    }
    this.#previousHash = opened.hash
  }
}

function runOf({ piece: { at, end }, record, hash, previousHash }: Opened): Run {
  const time = timeOf(record)
  const { seq, type } = record
  const kept = type.endsWith('.kept') ? seq : 0
  const whole = type === WHOLE ? seq : 0
  const ends = { at, end, previousHash: copied(previousHash), head: hash }
  return { ...ends, first: seq, last: seq, since: time, until: time, kept, whole }
}

/**
 * When a record was made. Behind the first line of a journal that was sealed again are older ones; after a compaction
 * none.
 */
function timeOf(record: JournalRecord): string | undefined {
  const isCompaction = CONTINUATIONS.has(record.type) && (record.data as Continued).why === 'compacted'
  return record.type.startsWith('journal.') && !(isCompaction && record.seq === 1) ? undefined : copied(record.time)
}

/** Opens the lines whose predecessor is elsewhere in the file; each becomes a run of its own. */
function openLost(files: Files, path: string, keys: KeyFinder, first: FirstLook): readonly Run[] {
  const { runs, lost, tails } = first
  const hashes = new Map<number, Set<string>>([[0, new Set([FIRST_HASH])]])
  const know = (seq: number, hash: string | undefined): void => {
    if (hash === undefined) return
    const known = hashes.get(seq)
    if (known === undefined) hashes.set(seq, new Set([hash]))
    else known.add(hash)
  }
  for (const run of runs) know(run.last, run.head)
  for (const { seq, piece } of lost) know(seq, piece.hash)
  // One that is there twice follows a line within a run.
  const wanted = new Set(lost.map(({ seq }) => seq - 1))
  for (const run of runs.filter(({ first, last }) => lost.some(({ seq }) => seq > first && seq <= last))) {
    for (const { record, hash } of openRun(files, path, keys, run)) if (wanted.has(record.seq)) know(record.seq, hash)
  }
  const found: Run[] = []
  let tries = MAX_TRIES
  let left = lost.sort((a, b) => a.seq - b.seq)
  const isLeft = ({ seq, piece }: Lost): boolean => {
    const candidates = [...hashes.get(seq - 1) ?? [], ...tails.slice(0, Math.max(0, tries))]
    tries -= candidates.length
    const again = piecesOf(files, path, piece.at, piece.end).next().value
    const opened = again && candidates.map(hash => openPiece(again, hash, keys)).find(one => one !== undefined)
    if (opened === undefined) return true
    found.push(runOf(opened))
    first.note(opened)
    know(seq, opened.hash)
    return false
  }
  for (const isLast of [false, true]) {
    // What is left may be the beginning of one line with the end of another, whose hash it then has.
    if (isLast) for (const { piece: { hash } } of left) if (hash !== undefined) tails.push(hash)
    for (let before = -1; before !== left.length;) {
      before = left.length
      left = left.filter(isLeft)
    }
  }
  return found
}

/** A piece without what it holds: it can be read again. */
function shortOf({ at, end, hash }: Piece): Piece {
  return { at, end, hash: hash && copied(hash), line: undefined }
}

/** A text of its own: a part of another one would keep that, a whole line, in memory. */
export function copied(text: string): string { return Buffer.from(text, 'latin1').toString('latin1') }

/** Puts runs in the order of their numbers, each line once. */
function place(all: readonly Run[], open: OpenRun): Pick<Scan, 'runs' | 'again' | 'foreign' | 'doubtful'> {
  const left = [...all].sort((a, b) => a.first - b.first || b.last - a.last || a.at - b.at)
  const runs: Run[] = []
  const again: Run[] = []
  const foreign: Run[] = []
  const doubtful: Run[] = []
  let until = ''
  for (let i = 0; i < left.length; i++) {
    const before = runs.at(-1)
    preferLinked(left, i, before)
    const run = left[i]!
    if (before !== undefined && run.last <= before.last) {
      again.push(run)
      continue
    }
    const isLinked = before !== undefined && run.previousHash === before.head
    const isOlder = !isLinked && run.since !== undefined && run.since < until
    const rest = before !== undefined && run.first <= before.last ? restOf(run, before, open) : run
    const isDoubtful = isOlder && rest === run
    const isClaimed = isDoubtful && [before!, ...foreign, ...left.slice(i + 1, i + 2)]
      .some(({ first, last }) => first <= run.last && last >= run.first - 1) // one that ends there should lead to it
    if (rest === undefined || isClaimed) {
      foreign.push(run)
      continue
    }
    if (isDoubtful) doubtful.push(run)
    // What comes before the rest is there twice.
    if (rest !== run) again.push({ ...run, end: rest.at - 1, last: before!.last, head: before!.head })
    runs.push(rest)
    until = rest.until ?? until
  }
  return { runs, again, foreign, doubtful }
}

/** Of several runs that could come next, takes the one that follows the last line placed. */
function preferLinked(left: Run[], i: number, before: Run | undefined): void {
  const { first } = left[i]!
  for (let n = i; n < left.length && left[n]!.first === first; n++) {
    if (left[n]!.previousHash !== before?.head) continue
    const [linked] = left.splice(n, 1)
    left.splice(i, 0, linked!)
    return
  }
}

/** What a run has behind the end of another one; undefined where it has another line in that one's place. */
function restOf(run: Run, before: Run, open: OpenRun): Run | undefined {
  for (const opened of open(run)) {
    const { seq } = opened.record
    if (seq === before.last && opened.hash !== before.head) return undefined
    if (seq > before.last) {
      return { ...run, at: opened.piece.at, previousHash: opened.previousHash, first: seq }
    }
  }
  return undefined
}

type OpenRun = (run: Run) => Iterable<Opened>

/** The lines of a run, opened again. */
export function * openRun(files: Files, path: string, keys: KeyFinder, run: Run): Generator<Opened, void, void> {
  let hash = run.previousHash
  for (const piece of piecesOf(files, path, run.at, run.end)) {
    const opened = openPiece(piece, hash, keys)
    if (opened === undefined) throw new OperatorError(`${path} was changed meanwhile`)
    yield opened
    hash = opened.hash
  }
}
