/**
 * Reading a journal: every line is verified and handed on, and what is left at the end is judged. Nothing is changed.
 */
import { Buffer } from 'node:buffer'
import { Failure } from '../errors.ts'
import { MAX_LINE_BYTES, MAX_WRITE_BYTES, READ_CHUNK_BYTES } from '../limits.ts'
import { readPieces, type Files } from './files.ts'
import { REWRITTEN, WHOLE, type JournalRecord } from './journal.ts'
import type { KeyFinder } from './keys.ts'
import { FIRST_HASH, isChained, isOfNewerForm, openLine, startsWrite, type Line } from './line.ts'
import { parseEnded, tornFault } from './torn.ts'

const LINE_FEED = 0x0a

/** What reading a journal's file found. */
export interface Recovered {
  readonly records: number
  /** The last line's hash. */
  readonly head: string
  /** The length of all whole lines; what follows is the torn tail. */
  readonly goodBytes: number
  /** The length of the torn tail, 0 if there is none. */
  readonly tornBytes: number
  /** Where the last write begins, which may not have been acknowledged. */
  readonly lastWriteBytes: number
}

interface ReadOptions {
  /** Where to stop, in bytes from the file's start. */
  readonly endBytes?: number
  /** Gets the share that is done, 0 to 1, about a hundred times; 1 at the end, even after a failure. */
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
  let reported = 0
  try {
    for (;;) {
      const step = steps.next()
      if (step.done === true) return step.value
      if (step.value.goodBytes - reported <= bytes / 100) continue
      reported = step.value.goodBytes
      onProgress(reported / bytes)
    }
  } finally {
    onProgress(1)
  }
}

/** The same in steps, for callers with other things to do in between; each gives what was read so far. */
export function * readInSteps(
  files: Files, path: string, keys: KeyFinder, onLine: OnLine, endBytes: number = Infinity
): Generator<Recovered, Recovered, void> {
  const found = { records: 0, head: FIRST_HASH, goodBytes: 0, tornBytes: 0, lastWriteBytes: 0 }
  const rewriting = new Rewriting()
  const refusal = (code: 'journal-damaged' | 'journal-newer', what: string): Failure => new Failure(code,
    `${path}, line ${found.records + 1} at byte ${found.goodBytes}: ${what}; ${WAYS_ON[code]}`)
  const take = (lines: readonly Line[], texts: readonly string[]): void => {
    const { read, fault } = verifyAll(lines, found.records + 1, found.head, keys, path)
    try {
      for (const [i, record] of read.entries()) {
        rewriting.take(record)
        onLine(record, texts[i]!)
        if (startsWrite(lines[i]!)) found.lastWriteBytes = found.goodBytes
        found.records++
        found.head = lines[i]!.hash
        found.goodBytes += texts[i]!.length + 1
      }
      if (fault !== undefined) throw fault
    } catch (error) {
      if (error instanceof Failure && error.code === 'journal-newer') throw refusal(error.code, error.detail)
      // What the system has refused is no fault of the line.
      if (error instanceof Failure || 'syscall' in (error as Error)) throw error
      throw refusal('journal-damaged', (error as Error).message)
    }
  }
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
      take(lines, texts)
      unread = unread.subarray(bytes)
      if (isMalformed || unread.length > MAX_LINE_BYTES) break
      yield { ...found }
    }
    if (rewriting.isOpen) throw refusal('journal-damaged', `it is damaged or cut off before its record ${WHOLE}`)
    if (unread.length === 0) return found
  } finally {
    files.close(descriptor)
  }
  // What is left has to be one torn write; else it is damage.
  let tail = '' // a character for each byte
  const end = Math.min(found.goodBytes + MAX_WRITE_BYTES + 1, endBytes)
  for (const [piece] of readPieces(files, path, found.goodBytes, end)) tail += piece.toString('latin1')
  const [line] = tail.split('\n', 1)
  if (line!.length < tail.length && isOfNewerForm(line!, found.head)) {
    throw refusal('journal-newer', 'this version does not know the form of the line')
  }
  const fault = tornFault(tail, found.goodBytes, found.records + 1)
  if (fault === undefined) return { ...found, tornBytes: tail.length }
  throw refusal('journal-damaged', `it is not a line of a journal, nor the rest of a torn write: ${fault}`)
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
    const line = parseEnded(text)
    if (line === undefined) return { lines, texts, bytes: start, isMalformed: true }
    lines.push(line)
    texts.push(text)
    start = end + 1
  }
  return { lines, texts, bytes: start, isMalformed: false }
}

/**
 * Follows whether all of a journal was read that was written again: its first record says so, and `journal.whole` ends
 * what belongs to it. Such a file got its name when it was whole; so what lacks a part is damaged, and not torn.
 */
class Rewriting {
  /** Whether the record that ends it is still to come. */
  isOpen = false

  /** Throws where a record does not fit. */
  take({ seq, type, data }: JournalRecord): void {
    if (type === REWRITTEN) {
      if (seq !== 1) throw new Error(`a record ${type} is always the first`)
      this.isOpen = true
    } else if (type === WHOLE) {
      const { records } = data as { readonly records: number }
      if (!this.isOpen || records !== seq - 1) throw new Error(`it says that ${records} records come before it`)
      this.isOpen = false
    }
  }
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
