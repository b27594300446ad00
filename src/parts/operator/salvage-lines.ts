/**
 * Finds the remains of lines in a damaged file. A seal covers the hash of the line before, so a line that opens is
 * genuine and follows that line. Head and seal are enough.
 */
import { Buffer } from 'node:buffer'
import { hash as digest } from 'node:crypto'
import { systemCode } from '../../errors.ts'
import type { Files } from '../../journal/files.ts'
import type { JournalRecord } from '../../journal/journal.ts'
import type { KeyFinder } from '../../journal/keys.ts'
import { FIRST_HASH, openLine, parseLine, type Line } from '../../journal/line.ts'
import { MAX_LINE_BYTES, READ_CHUNK_BYTES, SECTOR_BYTES } from '../../limits.ts'

const LINE_FEED = 0x0a
const START = '{"seq":'
const SEALED = '","sealed":"'
const HEAD = /^\{"seq":([1-9][0-9]{0,15}),"time":"[^"]{24}","type":"([a-z]+\.[a-z]+)","by":/
const OWN_HASH = /^,"hash":"([0-9a-f]{64})"\}/
const ANY_HASH = /"hash":"([0-9a-f]{64})"\}/g
/** More than a line's end with its hash. */
const END_CHARACTERS = 128

export interface Piece {
  /** Byte offsets of its start and behind its end. */
  readonly at: number
  readonly end: number
  /** From its head, unverified. */
  readonly claim: { readonly seq: number, readonly type: string } | undefined
  /** Undefined if head or seal is lost. */
  readonly line: Line | undefined
  /** The hash that the next line should follow. */
  readonly hash: string | undefined
}

/** Bytes that the device cannot read count as zeros; `unreadable` gets their number. */
export function * piecesOf(
  files: Files, path: string, unreadable: (bytes: number) => void
): Generator<Piece, void, void> {
  let at = 0
  let held = '' // since the last line feed, from `at` on
  for (const read of chunksOf(files, path, unreadable)) {
    let start = 0
    for (let end = read.indexOf(LINE_FEED); end >= 0; end = read.indexOf(LINE_FEED, start)) {
      held += read.toString('latin1', start, end)
      yield * piecesIn(held, at)
      at += held.length + 1
      held = ''
      start = end + 1
    }
    held += read.toString('latin1', start)
    if (held.length <= MAX_LINE_BYTES) continue
    // No line is this long: keep only its possible start or end.
    const last = held.lastIndexOf(START)
    const cut = last > 0 ? last : held.length - END_CHARACTERS
    yield * piecesIn(held.slice(0, cut), at)
    at += cut
    held = held.slice(cut)
  }
  yield * piecesIn(held, at)
}

/** Each chunk is valid until the next. */
function * chunksOf(
  files: Files, path: string, unreadable: (bytes: number) => void
): Generator<Buffer, void, void> {
  const bytes = files.stat(path)?.bytes ?? 0
  const descriptor = files.openToRead(path)
  const chunk = Buffer.allocUnsafe(READ_CHUNK_BYTES)
  const sector = Buffer.allocUnsafe(SECTOR_BYTES)
  try {
    for (let at = 0; at < bytes;) {
      const size = Math.min(READ_CHUNK_BYTES, bytes - at)
      let read = orZeros(() => files.readAt(descriptor, chunk, at)) ?? 0
      // A failed read says nothing of single sectors.
      for (; read < size && read % SECTOR_BYTES === 0; read += SECTOR_BYTES) {
        chunk.fill(0, read, read + SECTOR_BYTES)
        const got = orZeros(() => files.readAt(descriptor, sector, at + read))
        if (got === undefined) unreadable(Math.min(SECTOR_BYTES, size - read))
        else sector.copy(chunk, read, 0, got)
      }
      yield chunk.subarray(0, Math.min(read, size))
      at += Math.min(read, size)
    }
  } finally {
    files.close(descriptor)
  }
}

function orZeros(read: () => number): number | undefined {
  try {
    return read()
  } catch (error) {
    if (systemCode(error) !== 'EIO') throw error
    return undefined
  }
}

function * piecesIn(text: string, at: number): Generator<Piece, void, void> {
  for (let start = 0; start < text.length;) {
    const next = text.indexOf(START, start + 1)
    const end = next < 0 ? text.length : next
    yield * pieceIn(text.slice(start, end), at + start)
    start = end
  }
}

/** Yields at most the start of one line, and the end of that line or another. */
function * pieceIn(text: string, at: number): Generator<Piece, void, void> {
  const [head, seq, type = ''] = HEAD.exec(text) ?? []
  const claim = head === undefined ? undefined : { seq: Number(seq), type: copied(type) }
  const sealed = claim === undefined ? -1 : text.indexOf(SEALED)
  const close = sealed < 0 ? -1 : text.indexOf('"', sealed + SEALED.length)
  const [tail = '', own] = close < 0 ? [] : OWN_HASH.exec(text.slice(close + 1, close + END_CHARACTERS)) ?? []
  const line = close < 0 ? undefined : parseLine(`${text.slice(0, close + 1)},"hash":"${own ?? FIRST_HASH}"}`)
  // If the seal's quote is lost, this one may belong to a hash.
  const rest = own === undefined ? Math.max(0, close) : close + 1 + tail.length
  const other = [...text.slice(rest).matchAll(ANY_HASH)].at(-1)
  const end = own === undefined ? close : rest // no whole line ends at its seal
  if (claim !== undefined || own !== undefined) {
    yield { at, end: line === undefined ? at + text.length : at + end, claim, line, hash: own && copied(own) }
  }
  if (other !== undefined) {
    yield { at, end: at + text.length, claim: undefined, line: undefined, hash: copied(other[1]!) }
  }
}

/** A substring would keep the whole text in memory. */
function copied(text: string): string { return Buffer.from(text, 'latin1').toString('latin1') }

export interface Opened {
  readonly record: JournalRecord
  readonly hash: string
}

/** Undefined if the line does not follow that hash, or its key is missing. */
export function openPiece({ line }: Piece, previousHash: string | undefined, keys: KeyFinder): Opened | undefined {
  const key = line && keys.find(line.key)
  if (line === undefined || key === undefined || previousHash === undefined) return undefined
  try {
    const { seq, time, type, by, hashedHead } = line
    const record = { seq, time, type, by, data: openLine(line, previousHash, key) }
    return { record, hash: digest('sha256', Buffer.from(previousHash + hashedHead, 'latin1'), 'hex') }
  } catch {
    return undefined
  }
}
