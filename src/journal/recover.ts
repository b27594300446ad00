/**
 * Reading the journal at start: every line is verified and handed on, and what a crash left at the end is judged.
 *
 * A write that a crash cut was never acknowledged. It leaves an unterminated line, or, where the device wrote its
 * parts out of order, zeros in the place of some. Such a tail is cut off. Anything else that is not as it was written
 * is damage, and nothing is changed: a person has to look.
 */
import { Buffer } from 'node:buffer'
import { Failure } from '../errors.ts'
import { MAX_LINE_BYTES, READ_CHUNK_BYTES } from '../limits.ts'
import { createWriter, type Descriptor, type Files } from './files.ts'
import type { JournalRecord } from './journal.ts'
import type { KeyFinder } from './keys.ts'
import { FIRST_HASH, isChained, openLine, parseLine, startsWrite, type Line } from './line.ts'

/** What a journal's file holds. */
export interface Recovered {
  readonly records: number
  /** The last line's hash. */
  readonly head: string
  /** The length of all whole lines; what follows is the torn tail. */
  readonly goodBytes: number
  /** The length of the torn tail, 0 if there is none. */
  readonly tornBytes: number
}

interface ReadOptions {
  /** Where to stop, in bytes from the file's start. */
  readonly endBytes?: number
  /** Takes the share that is done, 0 to 1, about a hundred times; 1 at the end, however that comes. */
  readonly onProgress?: (share: number) => void
}

/** Called with each record in turn, and with its line as it stands, without its end. */
export type Apply = (record: JournalRecord, text: string) => void

/**
 * Reads a journal and hands on each record in order. Changes nothing. Throws `journal-damaged`, naming line and byte
 * offset, or `key-unknown`; what `apply` throws is taken for damage of that line.
 */
export function readJournal(
  files: Files, path: string, keys: KeyFinder, apply: Apply, options: ReadOptions = {}
): Recovered {
  const { onProgress = () => {}, endBytes = Infinity } = options
  const bytes = Math.min(endBytes, files.stat(path)?.bytes ?? 0)
  const steps = readInSteps(files, path, keys, apply, endBytes)
  let told = 0
  try {
    for (;;) {
      const step = steps.next()
      if (step.done === true) return step.value
      if (step.value - told > bytes / 100) onProgress((told = step.value) / bytes)
    }
  } finally {
    onProgress(1)
  }
}

/** The same a record a step, for who has other things to do in between; each step gives the offset reached. */
export function * readInSteps(
  files: Files, path: string, keys: KeyFinder, apply: Apply, endBytes: number = Infinity
): Generator<number, Recovered, void> {
  const descriptor = files.openToRead(path)
  try {
    let records = 0
    let head = FIRST_HASH
    let goodBytes = 0
    const lines = readLines(files, descriptor, endBytes)
    for (const raw of lines) {
      const line = parse(raw)
      if (line === undefined && isTorn(raw, lines)) {
        return { records, head, goodBytes, tornBytes: files.openStat(descriptor).bytes - goodBytes }
      }
      try {
        if (line === undefined) throw new Error('it is not a line of a journal, but lines follow it')
        apply(verified(line, records + 1, head, keys, path), raw.text)
      } catch (error) {
        if (error instanceof Failure) throw error
        const what = (error as Error).message
        throw new Failure('journal-damaged', `${path}, line ${records + 1} at byte ${raw.offset}: ${what}`)
      }
      records++
      head = line.hash
      goodBytes = raw.offset + raw.text.length + 1
      yield goodBytes
    }
    return { records, head, goodBytes, tornBytes: 0 }
  } finally {
    files.close(descriptor)
  }
}

/**
 * The record of a line that is the next one and whole; throws what is wrong with it, or `key-unknown`, which names the
 * journal by `path`.
 */
export function verified(line: Line, seq: number, previousHash: string, keys: KeyFinder, path: string): JournalRecord {
  if (line.seq !== seq) throw new Error(`its seq is ${line.seq}`)
  if (!isChained(line, previousHash)) throw new Error('its hash does not follow from what stands before it')
  const key = keys.find(line.key)
  if (key === undefined) throw new Failure('key-unknown', `${path}, line ${seq} needs key ${line.key}`)
  return { seq, time: line.time, type: line.type, by: line.by, data: openLine(line, previousHash, key) }
}

interface RawLine {
  readonly offset: number
  /** A character for each byte, whatever it is (latin1): a line of a journal is ASCII. */
  readonly text: string
  /** Whether a line end follows. */
  readonly ended: boolean
}

function parse(raw: RawLine): Line | undefined {
  return raw.ended && raw.text.length <= MAX_LINE_BYTES ? parseLine(raw.text) : undefined
}

/**
 * Whether a malformed line and all that follows it are one write that a crash cut: either no line follows it, or
 * it holds a lost sector and no line that follows started another write. A first line that only
 * looks like one, whole and without zeros, was not cut: something has turned the journal into another form.
 */
function isTorn(first: RawLine, rest: Iterable<RawLine>): boolean {
  let sectorLost = false
  let linesFollow = false
  /** Takes note of a piece; says whether it holds a line that started a write. */
  const startsOther = (raw: RawLine): boolean => {
    // Where the line end before a line was lost, that line is the end of a malformed one.
    const at = Math.max(0, raw.text.lastIndexOf('{"seq":'))
    const line = parse({ ...raw, text: raw.text.slice(at) })
    const malformed = line === undefined ? raw.text : raw.text.slice(0, at)
    sectorLost ||= holdsLostSector(malformed, raw.offset, first.offset)
    linesFollow ||= line !== undefined
    return line !== undefined && startsWrite(line)
  }
  const isOtherForm = first.offset === 0 && first.ended && first.text.startsWith('{"seq":')
  if (startsOther(first) || (isOtherForm && !first.text.includes('\0'))) return false
  for (const raw of rest) if (startsOther(raw)) return false
  return sectorLost || !linesFollow
}

/** What a device writes whole or not at all. */
const SECTOR_BYTES = 512

/**
 * Whether a text holds zeros as a lost sector leaves them: from a sector's beginning, or where the write began, to a
 * sector's end or the end of the text. `offset` is that of the text in the file, `writeOffset` that of the write.
 */
function holdsLostSector(text: string, offset: number, writeOffset: number): boolean {
  for (let start = text.indexOf('\0'); start >= 0;) {
    let end = start
    while (text[end] === '\0') end++
    const startsRight = (offset + start) % SECTOR_BYTES === 0 || offset + start === writeOffset
    if (startsRight && (end === text.length || (offset + end) % SECTOR_BYTES === 0)) return true
    start = text.indexOf('\0', end)
  }
  return false
}

/** A file's lines without their line ends, in pieces of the file that are read as they are needed. */
function * readLines(files: Files, descriptor: Descriptor, endBytes: number): Generator<RawLine, void, void> {
  const chunk = Buffer.allocUnsafe(READ_CHUNK_BYTES)
  let rest = Buffer.alloc(0)
  let offset = 0 // of `rest` in the file
  for (;;) {
    const at = offset + rest.length
    const read = Math.min(files.readAt(descriptor, chunk, at), endBytes - at)
    if (read <= 0) break
    rest = Buffer.concat([rest, chunk.subarray(0, read)])
    let start = 0
    for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a, start)) {
      yield { offset: offset + start, text: rest.toString('latin1', start, end), ended: true }
      start = end + 1
    }
    rest = rest.subarray(start)
    offset += start
    if (rest.length > MAX_LINE_BYTES) {
      yield { offset, text: rest.toString('latin1'), ended: false }
      offset += rest.length
      rest = Buffer.alloc(0)
    }
  }
  if (rest.length > 0) yield { offset, text: rest.toString('latin1'), ended: false }
}

/** Moves the tail of a journal, from `goodBytes` on, into a file of its own, and cuts it off. */
export function cutTail(files: Files, path: string, goodBytes: number, tailPath: string): void {
  copyFile(files, path, tailPath, goodBytes, Infinity, () => {})
  files.truncate(path, goodBytes)
}

/** Copies a part of a file into a new one, durably; leaves nothing behind when it fails. */
export function copyFile(
  files: Files, from: string, to: string, startBytes: number, endBytes: number, onProgress: (reached: number) => void
): void {
  const source = files.openToRead(from)
  try {
    const target = createWriter(files, to)
    try {
      const chunk = Buffer.allocUnsafe(READ_CHUNK_BYTES)
      for (let at = startBytes; ; onProgress(at)) {
        const read = Math.min(files.readAt(source, chunk, at), endBytes - at)
        if (read === 0) break
        target.write(chunk.subarray(0, read))
        at += read
      }
    } catch (error) {
      target.abandon()
      throw error
    }
    target.close()
  } finally {
    files.close(source)
  }
}
