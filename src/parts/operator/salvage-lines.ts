/**
 * Finds what is left of lines in a damaged file. A line can be opened once the hash of the line before it is known: its
 * seal covers that hash and its own head, so a line that opens is genuine, and follows exactly that line, wherever both
 * are by now. What it takes of a line is all up to the end of its seal; its own hash is computed.
 */
import { Buffer } from 'node:buffer'
import { hash as digest } from 'node:crypto'
import { readPieces, type Files } from '../../journal/files.ts'
import type { JournalRecord } from '../../journal/journal.ts'
import type { KeyFinder } from '../../journal/keys.ts'
import { FIRST_HASH, openLine, parseLine, type Line } from '../../journal/line.ts'
import { MAX_LINE_BYTES } from '../../limits.ts'

export const LINE_FEED = 0x0a
const START = '{"seq":'
const SEALED = '","sealed":"'
const HASH = '"hash":"'
const OWN_HASH = /^,"hash":"([0-9a-f]{64})"\}/
const ANY_HASH = /"hash":"([0-9a-f]{64})"\}/g
/** More than the end of a line with its hash. */
const OVERLAP_BYTES = 128

/** What is left of a line, from the byte `at` up to `end`. */
export interface Piece {
  readonly at: number
  readonly end: number
  /** Its head and seal, which may have been changed; undefined where they are not there. */
  readonly line: Line | undefined
  /** The hash that it says it has. */
  readonly hash: string | undefined
}

/** A line that was opened. */
export interface Opened {
  readonly piece: Piece
  readonly record: JournalRecord
  /** Its hash, and that of the line before. */
  readonly hash: string
  readonly previousHash: string
}

/** The pieces of lines in a part of a file, in its order. */
export function * piecesOf(
  files: Files, path: string, from: number = 0, to: number = Infinity
): Generator<Piece, void, void> {
  let held: Buffer[] = [] // what was read and has no line feed yet, from `at` on
  let at = from
  let heldBytes = 0
  let hasStart = false
  for (const [read, readAt] of readPieces(files, path, from, to)) {
    let start = 0
    for (let end = read.indexOf(LINE_FEED); end >= 0; end = read.indexOf(LINE_FEED, start)) {
      const text = heldBytes === 0 ? read.toString('latin1', start, end)
        : Buffer.concat([...held, read.subarray(start, end)]).toString('latin1')
      yield * piecesIn(text, at)
      held = []
      heldBytes = 0
      hasStart = false
      start = end + 1
      at = readAt + start
    }
    if (start === read.length) continue
    held.push(Buffer.from(read.subarray(start)))
    heldBytes += read.length - start
    hasStart ||= Buffer.concat(held.slice(-2)).includes(START)
    if (hasStart && heldBytes <= MAX_LINE_BYTES) continue
    // No line goes on here: all of it is looked through, but what may be the beginning of one.
    const all = Buffer.concat(held)
    const last = all.lastIndexOf(START)
    const cut = last > 0 ? last : cutOf(all)
    yield * piecesIn(all.toString('latin1', 0, cut), at)
    held = [Buffer.from(all.subarray(cut))]
    at += cut
    heldBytes = all.length - cut
    hasStart = last > 0
  }
  yield * piecesIn(Buffer.concat(held).toString('latin1'), at)
}

/** Where bytes without a line's beginning can be cut without cutting a hash, or what may become one. */
function cutOf(bytes: Buffer): number {
  const end = Math.max(0, bytes.length - OVERLAP_BYTES)
  const hash = bytes.lastIndexOf(HASH, end)
  return hash > end - OVERLAP_BYTES && hash > 0 ? hash : end
}

/** The pieces in a text that should be a line, and may be what is left of several. */
function * piecesIn(text: string, at: number): Generator<Piece, void, void> {
  const whole = text.length > MAX_LINE_BYTES ? undefined : parseLine(text)
  if (whole !== undefined) {
    yield { at, end: at + text.length, line: whole, hash: whole.hash }
    return
  }
  let start = 0
  while (start < text.length) {
    const next = text.indexOf(START, start + 1)
    const end = next < 0 ? text.length : next
    yield * pieceIn(text.slice(start, end), at + start)
    start = end
  }
}

/** What is left of at most one line's beginning, and of the end of that one or another. */
function * pieceIn(text: string, at: number): Generator<Piece, void, void> {
  const sealed = text.startsWith(START) ? text.indexOf(SEALED) : -1
  const close = sealed < 0 ? -1 : text.indexOf('"', sealed + SEALED.length)
  let rest = text
  let restAt = at
  if (close >= 0) {
    const [tail = '', own] = OWN_HASH.exec(text.slice(close + 1, close + 1 + OVERLAP_BYTES)) ?? []
    const line = parseLine(`${text.slice(0, close + 1)},"hash":"${own ?? FIRST_HASH}"}`)
    // The quote may be that of a hash, where the one of the seal is lost.
    const end = own === undefined ? close : close + 1 + tail.length
    restAt = at + end
    rest = text.slice(end)
    if (line !== undefined || own !== undefined) yield { at, end: Math.max(restAt, at + close + 1), line, hash: own }
  }
  for (const { 0: tail, 1: hash, index } of rest.matchAll(ANY_HASH)) {
    yield { at: restAt + index, end: restAt + index + tail.length, line: undefined, hash }
  }
}

/** What a line becomes if it follows the line of that hash; undefined where it does not, or its key is missing. */
export function openPiece(piece: Piece, previousHash: string, keys: KeyFinder): Opened | undefined {
  const { line } = piece
  const key = line && keys.find(line.key)
  if (line === undefined || key === undefined) return undefined
  try {
    const { seq, time, type, by } = line
    const record = { seq, time, type, by, data: openLine(line, previousHash, key) }
    return { piece, record, previousHash, hash: hashAfter(line, previousHash) }
  } catch {
    return undefined
  }
}

/** The hash that a line has if it follows the line of that hash. */
function hashAfter(line: Line, previousHash: string): string {
  return digest('sha256', Buffer.from(previousHash + line.hashedHead, 'latin1'), 'hex')
}
