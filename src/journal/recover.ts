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

/** What an operator can do about damage. */
const WAYS_ON = 'restore a backup, or save what can still be read with the operator\'s command journal salvage'

const NEWER_WAY_ON = 'nothing is damaged: run that version, or restore a backup that this one has made'

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
  const reader = new Reader(files, path, keys, onLine, endBytes)
  const descriptor = files.openToRead(path)
  let unread = Buffer.alloc(0) // what follows the lines that were taken
  try {
    for (;;) {
      const at = reader.goodBytes + unread.length
      // Twice as much of a line that goes on, so that a long one is not copied once for each piece.
      const piece = Buffer.allocUnsafe(Math.max(READ_CHUNK_BYTES, unread.length))
      const read = Math.min(files.readAt(descriptor, piece, at), endBytes - at)
      if (read <= 0) return reader.ended(unread.length > 0)
      unread = Buffer.concat([unread, piece.subarray(0, read)])
      const taken = reader.take(unread)
      if (taken === undefined) return reader.ended(true)
      unread = unread.subarray(taken)
      if (unread.length > MAX_LINE_BYTES) return reader.ended(true)
      yield reader.found()
    }
  } finally {
    files.close(descriptor)
  }
}

/** How far a journal was read. */
class Reader {
  readonly #files: Files
  readonly #path: string
  readonly #keys: KeyFinder
  readonly #onLine: OnLine
  readonly #endBytes: number
  readonly #rewriting = new Rewriting()
  #records = 0
  #head = FIRST_HASH
  #lastWriteBytes = 0
  goodBytes = 0

  constructor(files: Files, path: string, keys: KeyFinder, onLine: OnLine, endBytes: number) {
    this.#files = files
    this.#path = path
    this.#keys = keys
    this.#onLine = onLine
    this.#endBytes = endBytes
  }

  found(tornBytes: number = 0): Recovered {
    const { goodBytes } = this
    return { records: this.#records, head: this.#head, goodBytes, tornBytes, lastWriteBytes: this.#lastWriteBytes }
  }

  /** Takes the lines that bytes begin with, and gives their length; undefined where one has not the form. */
  take(bytes: Buffer): number | undefined {
    const texts: string[] = []
    const lines: Line[] = []
    let start = 0
    let isMalformed = false
    for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
      const text = bytes.toString('latin1', start, end)
      const line = parseEnded(text)
      isMalformed = line === undefined
      if (line === undefined) break
      texts.push(text)
      lines.push(line)
      start = end + 1
    }
    this.#takeLines(texts, lines)
    return isMalformed ? undefined : start
  }

  #takeLines(texts: readonly string[], lines: readonly Line[]): void {
    const { read, fault } = verifyAll(lines, this.#records + 1, this.#head, this.#keys, this.#path)
    try {
      for (const [i, record] of read.entries()) {
        this.#rewriting.take(record)
        this.#onLine(record, texts[i]!)
        if (startsWrite(lines[i]!)) this.#lastWriteBytes = this.goodBytes
        this.#records++
        this.#head = lines[i]!.hash
        this.goodBytes += texts[i]!.length + 1
      }
      if (fault !== undefined) throw fault
    } catch (error) {
      if (error instanceof Failure && error.code === 'journal-newer') throw this.#newer(error.detail)
      // What the system has refused is no fault of the line.
      if (error instanceof Failure || 'syscall' in (error as Error)) throw error
      throw this.#damage((error as Error).message)
    }
  }

  /** What is left has to be nothing, or one torn write; else it is damage. */
  ended(isMore: boolean): Recovered {
    if (this.#rewriting.isOpen) throw this.#damage(`it is damaged or cut off before its record ${WHOLE}`)
    if (!isMore) return this.found()
    let tail = '' // a character for each byte
    const end = Math.min(this.goodBytes + MAX_WRITE_BYTES + 1, this.#endBytes)
    for (const [piece] of readPieces(this.#files, this.#path, this.goodBytes, end)) tail += piece.toString('latin1')
    const lineEnd = tail.indexOf('\n')
    if (lineEnd >= 0 && isOfNewerForm(tail.slice(0, lineEnd), this.#head)) {
      throw this.#newer('this version does not know the form of the line')
    }
    const fault = tornFault(tail, this.goodBytes, this.#records + 1)
    if (fault === undefined) return this.found(tail.length)
    throw this.#damage(`it is not a line of a journal, nor the rest of a torn write: ${fault}`)
  }

  get #place(): string { return `${this.#path}, line ${this.#records + 1} at byte ${this.goodBytes}` }

  #damage(what: string): Failure { return new Failure('journal-damaged', `${this.#place}: ${what}; ${WAYS_ON}`) }

  #newer(what: string): Failure { return new Failure('journal-newer', `${this.#place}: ${what}; ${NEWER_WAY_ON}`) }
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
