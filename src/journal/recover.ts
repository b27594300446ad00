/**
 * Reading a journal: every line is verified and handed on, and what is left at the end is judged. Nothing is changed.
 */
import { Buffer } from 'node:buffer'
import { Failure } from '../errors.ts'
import { MAX_LINE_BYTES, MAX_WRITE_BYTES, READ_CHUNK_BYTES } from '../limits.ts'
import { piecesOf, type Files } from './files.ts'
import { REWRITTEN, WHOLE, type End, type JournalRecord } from './journal.ts'
import type { KeyFinder } from './keys.ts'
import { FIRST_HASH, isChained, isOfNewerForm, openLine, parseLine, startsWrite, type Line } from './line.ts'
import { tornFault } from './torn.ts'

const LINE_FEED = 0x0a

/** What reading a journal's file found; what follows its whole lines is the torn tail. */
export interface Recovered extends End {
  /** The length of the torn tail, 0 if there is none. */
  readonly tornBytes: number
  /** Where the last write begins, which may not have been acknowledged. */
  readonly lastWriteBytes: number
  /** The names of the keys that sealed its lines, that of the first line first. */
  readonly keyNames: ReadonlySet<string>
}

interface ReadOptions {
  /** Where to stop, in bytes from the file's start. */
  readonly endBytes?: number
  /** Gets the share that is done, 0 to 1, again and again; 1 at the end, even after a failure. */
  readonly onProgress?: (share: number) => void
}

/** What an operator can do. */
const WAYS_ON = {
  'journal-damaged': 'restore a backup, or save what can still be read with the operator\'s command journal salvage',
  'journal-newer': 'nothing is damaged: run that version, or restore a backup that this one has made'
}

/** Called with each record in turn, and with its line, without its end. */
export type OnLine = (record: JournalRecord, text: string) => void

/**
 * Reads a journal and hands on each record in order. Changes nothing. Throws `journal-damaged`, naming line and byte
 * offset, or `key-unknown`; what `onLine` throws, unless it is a `Failure`, is taken for damage of that line.
 */
export function readJournal(
  files: Files, path: string, keys: KeyFinder, onLine: OnLine, options: ReadOptions = {}
): Recovered {
  const { onProgress = () => {}, endBytes = Infinity } = options
  const bytes = Math.min(endBytes, files.stat(path)?.bytes ?? 0)
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

/** The same in steps, for callers with other things to do in between; each gives what was read so far. */
export function * readInSteps(
  files: Files, path: string, keys: KeyFinder, onLine: OnLine, endBytes: number = Infinity
): Generator<Recovered, Recovered, void> {
  const reading = new Reading(path, keys, onLine)
  const { found } = reading
  const descriptor = files.openToRead(path)
  try {
    let unread = Buffer.alloc(0) // what follows the lines that were taken
    for (;;) {
      const at = found.goodBytes + unread.length
      // Twice as much of a line that goes on, so that a long one is not copied once for each piece.
      const piece = Buffer.allocUnsafe(Math.max(READ_CHUNK_BYTES, unread.length))
      const read = Math.min(files.readAt(descriptor, piece, at), endBytes - at)
      if (read <= 0) break
      unread = Buffer.concat([unread, piece.subarray(0, read)])
      const { lines, texts, bytes, isMalformed } = linesOf(unread)
      reading.take(lines, texts)
      unread = unread.subarray(bytes)
      if (isMalformed || unread.length > MAX_LINE_BYTES) break
      yield { ...found }
    }
    let tail = '' // what has not the form, a character for each byte
    const end = unread.length === 0 ? 0 : Math.min(found.goodBytes + MAX_WRITE_BYTES + 1, endBytes)
    for (const [piece] of piecesOf(files, descriptor, found.goodBytes, end)) tail += piece.toString('latin1')
    reading.end(tail)
    return { ...found, tornBytes: tail.length }
  } finally {
    files.close(descriptor)
  }
}

/** A journal that is being read. */
class Reading {
  readonly found = {
    records: 0, head: FIRST_HASH, goodBytes: 0, time: null as string | null, tornBytes: 0, lastWriteBytes: 0,
    keyNames: new Set<string>()
  }
  readonly #path: string
  readonly #keys: KeyFinder
  readonly #onLine: OnLine
  /** Whether a journal that was written again has not reached its record `journal.whole` yet. */
  #isPart = false

  constructor(path: string, keys: KeyFinder, onLine: OnLine) {
    this.#path = path
    this.#keys = keys
    this.#onLine = onLine
  }

  /** Verifies lines that follow, and hands their records on, up to the first that is wrong. */
  take(lines: readonly Line[], texts: readonly string[]): void {
    const { found } = this
    const { read, fault } = verifyAll(lines, found.records + 1, found.head, this.#keys, this.#path)
    try {
      for (const [i, record] of read.entries()) {
        const line = lines[i]!
        this.#isPart = isStillPart(this.#isPart, record)
        this.#onLine(record, texts[i]!)
        if (startsWrite(line)) found.lastWriteBytes = found.goodBytes
        found.records++
        found.head = line.hash
        found.time = line.time
        found.goodBytes += texts[i]!.length + 1
        found.keyNames.add(line.key)
      }
      if (fault !== undefined) throw fault
    } catch (error) {
      if (error instanceof Failure && error.code === 'journal-newer') throw this.#refusal(error.code, error.detail)
      // What the system has refused is no fault of the line.
      if (error instanceof Failure || 'syscall' in (error as Error)) throw error
      throw this.#refusal('journal-damaged', (error as Error).message)
    }
  }

  /** Throws unless the journal may end with what follows its last whole line. */
  end(tail: string): void {
    const { head, goodBytes, records } = this.found
    if (this.#isPart) throw this.#refusal('journal-damaged', `it is damaged or cut off before its record ${WHOLE}`)
    if (tail === '') return
    const [line] = tail.split('\n', 1)
    if (line!.length < tail.length && isOfNewerForm(line!, head)) {
      throw this.#refusal('journal-newer', 'this version does not know the form of the line')
    }
    const fault = tornFault(tail, goodBytes, records + 1)
    if (fault === undefined) return
    throw this.#refusal('journal-damaged', `it is not a line of a journal, nor the rest of a torn write: ${fault}`)
  }

  #refusal(code: 'journal-damaged' | 'journal-newer', what: string): Failure {
    const { records, goodBytes } = this.found
    return new Failure(code, `${this.#path}, line ${records + 1} at byte ${goodBytes}: ${what}; ${WAYS_ON[code]}`)
  }
}

/** The lines that bytes begin with, up to the first that has not the form, and the length of them all. */
function linesOf(bytes: Buffer): {
  readonly lines: readonly Line[]
  readonly texts: readonly string[]
  readonly bytes: number
  readonly isMalformed: boolean
} {
  const lines: Line[] = []
  const texts: string[] = []
  let start = 0
  for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
    const text = bytes.toString('latin1', start, end)
    const line = parseLine(text)
    if (line === undefined) return { lines, texts, bytes: start, isMalformed: true }
    lines.push(line)
    texts.push(text)
    start = end + 1
  }
  return { lines, texts, bytes: start, isMalformed: false }
}

/**
 * Whether a journal is a part after a record. A journal that was written again got its name when it was whole: if
 * `journal.whole` is missing, it is damaged, and not torn. Throws if the record does not fit.
 */
function isStillPart(isPart: boolean, { seq, type, data }: JournalRecord): boolean {
  if (type === REWRITTEN) {
    if (seq !== 1) throw new Error(`a record ${type} is always the first`)
    return true
  }
  if (type !== WHOLE) return isPart
  const { records } = data as { readonly records: number }
  if (!isPart || records !== seq - 1) throw new Error(`it says that ${records} records come before it`)
  return false
}

/**
 * The records of lines that follow one another, up to the first that is wrong, and what is wrong with that. Each step
 * is taken for all lines before the next one, which takes a seventh less time than line after line.
 */
function verifyAll(
  lines: readonly Line[], seq: number, head: string, keys: KeyFinder, path: string
): { readonly read: readonly JournalRecord[], readonly fault: unknown } {
  const read: JournalRecord[] = []
  let fault: unknown
  let end = lines.length
  const each = (step: (line: Line, seq: number, previousHash: string) => void): void => {
    let previousHash = head
    for (let i = 0; i < end; i++) {
      try {
        step(lines[i]!, seq + i, previousHash)
      } catch (error) {
        fault = error
        end = i
      }
      previousHash = lines[i]!.hash
    }
  }
  each(checkChain)
  each((line, seq, previousHash) => { read.push(openRecord(line, seq, previousHash, keys, path)) })
  return { read, fault }
}

/** The record of the next line, verified; throws what is wrong with it, or `key-unknown`, which names the journal. */
export function verified(line: Line, seq: number, previousHash: string, keys: KeyFinder, path: string): JournalRecord {
  checkChain(line, seq, previousHash)
  return openRecord(line, seq, previousHash, keys, path)
}

function checkChain(line: Line, seq: number, previousHash: string): void {
  if (line.seq !== seq) throw new Error(`its seq is ${line.seq}`)
  if (!isChained(line, previousHash)) throw new Error('its hash does not follow from the line before it')
}

function openRecord(line: Line, seq: number, previousHash: string, keys: KeyFinder, path: string): JournalRecord {
  const key = keys.find(line.key)
  if (key === undefined) {
    const has = keys.names === undefined ? '' : `; the key file has ${keys.names.join(', ')}`
    throw new Failure('key-unknown', `${path}, line ${seq} needs key ${line.key}${has}`)
  }
  return { seq, time: line.time, type: line.type, by: line.by, data: openLine(line, previousHash, key) }
}
