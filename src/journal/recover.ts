/** Reads a journal: verifies every line, hands it on, and judges the end. Changes nothing. */
import { Buffer } from 'node:buffer'
import { Failure } from '../errors.ts'
import { MAX_LINE_BYTES, MAX_WRITE_BYTES, READ_CHUNK_BYTES } from '../limits.ts'
import { piecesOf, type Files } from './files.ts'
import { REWRITTEN, WHOLE, type End, type JournalRecord } from './journal.ts'
import type { KeyFinder } from './keys.ts'
import {
  endedLines,
  FIRST_HASH,
  isChained,
  isOfNewerForm,
  openLine,
  parseLine,
  startsWrite,
  type Line
} from './line.ts'
import { tornFault } from './torn.ts'

/** `tornBytes`: behind the whole lines. */
export interface Recovered extends End {
  readonly tornBytes: number
  /** Where the last write begins, which may not have been acknowledged. */
  readonly lastWriteBytes: number
  /** Of the lines, that of the first line first. */
  readonly keyNames: ReadonlySet<string>
}

export interface ReadOptions {
  /** From the file's start. */
  readonly endBytes?: number
  /** 0 to 1; 1 at the end, even after a failure. */
  readonly onProgress?: (share: number) => void
}

const WAYS_ON = {
  'journal-damaged':
    "restore a backup, or save what can still be read with the operator's command journal salvage",
  'journal-newer':
    'nothing is damaged: run that version, or restore a backup that this one has made'
}

/** `text`: the line without its end. */
export type OnLine = (record: JournalRecord, text: string) => void

/**
 * Throws `journal-damaged` or `journal-newer`, naming line and byte, or `key-unknown`. An error of
 * `onLine` counts as damage, unless it is a `Failure` or the system's.
 */
export function readJournal(
  files: Files,
  path: string,
  keys: KeyFinder,
  onLine: OnLine,
  options: ReadOptions = {}
): Recovered {
  const { onProgress = () => {}, endBytes = Infinity } = options
  const bytes = Math.min(endBytes, files.stat(path)?.size ?? 0)
  const steps = readInSteps(files, path, keys, onLine, endBytes)
  try {
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done === true) return step.value
      if (step.value.goodBytes < bytes) onProgress(step.value.goodBytes / bytes)
    }
  } finally {
    onProgress(1)
  }
}

/** Each step gives what was read so far. */
export function* readInSteps(
  files: Files,
  path: string,
  keys: KeyFinder,
  onLine: OnLine,
  endBytes: number = Infinity
): Generator<Recovered, Recovered, void> {
  const reading = new Reading(path, keys, onLine)
  const descriptor = files.openToRead(path)
  try {
    let unread = Buffer.alloc(0)
    for (;;) {
      const at = reading.goodBytes + unread.length
      // Doubled for a long line, which would otherwise be copied for each piece.
      const piece = Buffer.allocUnsafe(Math.max(READ_CHUNK_BYTES, unread.length))
      const read = Math.min(files.readAt(descriptor, piece, at), endBytes - at)
      if (read <= 0) break
      unread = Buffer.concat([unread, piece.subarray(0, read)])
      const { lines, bytes, isMalformed, fault } = linesOf(unread, reading)
      for (const line of lines) reading.take(line)
      if (fault !== undefined) throw reading.refusal('journal-damaged', fault)
      unread = unread.subarray(bytes)
      if (isMalformed || unread.length > MAX_LINE_BYTES) break
      yield reading
    }
    const tailEnd =
      unread.length === 0 ? 0 : Math.min(reading.goodBytes + MAX_WRITE_BYTES + 1, endBytes)
    let tail = '' // a character for each byte
    for (const piece of piecesOf(files, descriptor, reading.goodBytes, tailEnd))
      tail += piece.toString('latin1')
    reading.end(tail)
    return reading
  } finally {
    files.close(descriptor)
  }
}

class Reading implements Recovered {
  records = 0
  head: string = FIRST_HASH
  goodBytes = 0
  time: string | null = null
  tornBytes = 0
  lastWriteBytes = 0
  readonly keyNames: Set<string> = new Set()
  /** Whether it was written again, and lacks `journal.whole` so far. */
  #isPart = false
  readonly #path: string
  readonly #keys: KeyFinder
  readonly #onLine: OnLine

  constructor(path: string, keys: KeyFinder, onLine: OnLine) {
    this.#path = path
    this.#keys = keys
    this.#onLine = onLine
  }

  /** The line's hash must follow. */
  take(line: Line): void {
    try {
      const record = openRecord(line, this.head, this.#keys, this.#path)
      this.#isPart = isStillPart(this.#isPart, record)
      this.#onLine(record, line.text)
    } catch (error) {
      if (error instanceof Failure && error.code === 'journal-newer')
        throw this.refusal(error.code, error.detail)
      // An error of the system is no fault of the line.
      if (error instanceof Failure || 'syscall' in (error as Error)) throw error
      throw this.refusal('journal-damaged', (error as Error).message)
    }
    if (startsWrite(line)) this.lastWriteBytes = this.goodBytes
    this.records++
    this.head = line.hash
    this.time = line.time
    this.goodBytes += line.text.length + 1
    this.keyNames.add(line.key)
  }

  /** `tail`: what follows the last whole line. Throws unless a crash may have left it. */
  end(tail: string): void {
    if (this.#isPart)
      throw this.refusal('journal-damaged', `it is damaged or cut off before its record ${WHOLE}`)
    if (tail === '') return
    const [first = ''] = tail.split('\n', 1)
    if (first.length < tail.length && isOfNewerForm(first, this.head))
      throw this.refusal('journal-newer', 'this version does not know the form of the line')
    const fault = tornFault(tail, this.goodBytes, this.records + 1)
    if (fault !== undefined) {
      const what = 'it is not a line of a journal, nor the rest of a torn write'
      throw this.refusal('journal-damaged', `${what}: ${fault}`)
    }
    this.tornBytes = tail.length
  }

  /** About the line behind those that were taken. */
  refusal(code: 'journal-damaged' | 'journal-newer', what: string): Failure {
    const where = `${this.#path}, line ${this.records + 1} at byte ${this.goodBytes}`
    return new Failure(code, `${where}: ${what}; ${WAYS_ON[code]}`)
  }
}

/**
 * The lines up to the first that is malformed or has `fault`; their hashes follow from each other.
 * `bytes`: of these lines. All hashes come before the first seal, which makes a start four percent
 * faster than one after the other.
 */
function linesOf(
  unread: Buffer,
  { records, head }: End
): {
  readonly lines: readonly Line[]
  readonly bytes: number
  readonly isMalformed: boolean
  readonly fault?: string
} {
  const lines: Line[] = []
  let bytes = 0
  for (const { start, end } of endedLines(unread)) {
    const line = parseLine(unread.toString('latin1', start, end))
    if (line === undefined) return { lines, bytes, isMalformed: true }
    const fault = chainFault(line, records + lines.length + 1, lines.at(-1)?.hash ?? head)
    if (fault !== undefined) return { lines, bytes, isMalformed: false, fault }
    lines.push(line)
    bytes = end + 1
  }
  return { lines, bytes, isMalformed: false }
}

/** `seq`: the number that the line must have. */
function chainFault(line: Line, seq: number, previousHash: string): string | undefined {
  if (line.seq !== seq) return `its seq is ${line.seq}`
  return isChained(line, previousHash)
    ? undefined
    : 'its hash does not follow from the line before it'
}

/**
 * A journal that is written again gets its name once it is whole: without `journal.whole` it is
 * damaged, not torn. Throws if the record does not fit.
 */
function isStillPart(isPart: boolean, { seq, type, data }: JournalRecord): boolean {
  if (type === REWRITTEN) {
    if (seq !== 1) throw new Error(`a record ${type} is always the first`)
    return true
  }
  if (type !== WHOLE) return isPart
  const { records } = data as { readonly records: number }
  if (!isPart || records !== seq - 1)
    throw new Error(`it says that ${records} records come before it`)
  return false
}

/** `seq`: the number that the line must have. Throws what is wrong with it, or `key-unknown`. */
export function verifyLine(
  line: Line,
  seq: number,
  previousHash: string,
  keys: KeyFinder,
  path: string
): JournalRecord {
  const fault = chainFault(line, seq, previousHash)
  if (fault !== undefined) throw new Error(fault)
  return openRecord(line, previousHash, keys, path)
}

/** Throws if the seal does not open, or `key-unknown`. */
function openRecord(
  line: Line,
  previousHash: string,
  keys: KeyFinder,
  path: string
): JournalRecord {
  const { seq, time, type, by, key: name } = line
  const key = keys.find(name)
  if (key === undefined) {
    const has = keys.names === undefined ? '' : `; the keys there are ${keys.names.join(', ')}`
    throw new Failure('key-unknown', `${path}, line ${seq} needs key ${name}${has}`)
  }
  return { seq, time, type, by, data: openLine(line, previousHash, key) }
}
