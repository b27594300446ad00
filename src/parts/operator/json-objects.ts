/**
 * Objects in JSON, one after the other, so that a large file is never in memory as values: with white space between
 * them, such as JSON lines, or the items of one array.
 */
import type { Buffer } from 'node:buffer'
import { parseJsonObject, type Json } from '../../json/parse.ts'
import { MAX_JSON_DEPTH_LEVELS } from '../../limits.ts'
import { OperatorError } from '../command.ts'

/** An object, and the line that it begins in; lines count from 1. */
export interface Numbered {
  readonly line: number
  readonly object: { readonly [key: string]: Json }
}

interface Place { readonly line: number, readonly column: number }

/** The most bytes that one object may take. */
const MAX_OBJECT_BYTES = 32 * 1024 * 1024

const LINE_FEED = 0x0a, QUOTE = 0x22, COMMA = 0x2c, BACKSLASH = 0x5c, OPEN_ARRAY = 0x5b, CLOSE_ARRAY = 0x5d
const OPENS = [OPEN_ARRAY, 0x7b]
const CLOSES = [CLOSE_ARRAY, 0x7d]
const SPACES = [0x20, 0x09, LINE_FEED, 0x0d]

/** Where the white space ends that begins at an offset (RFC 8259 §2). */
function skipSpace(bytes: Buffer, at: number): number {
  while (SPACES.includes(bytes[at]!)) at++
  return at
}

/** Whether bytes are an array or an object, as far as the first of them tells. */
export function jsonKind(bytes: Buffer): 'array' | 'object' | undefined {
  const first = bytes[skipSpace(bytes, 0)]
  return first === OPEN_ARRAY ? 'array' : first === OPENS[1] ? 'object' : undefined
}

/** Reads objects that follow each other, or the items of one array. Throws an `OperatorError` with line and column. */
export function * readObjects(bytes: Buffer): Generator<Numbered, void, void> {
  let [seen, line, lineStart] = [0, 1, 0]
  /** Of ascending offsets; columns are in bytes. */
  const placeOf = (offset: number): Place => {
    for (; seen < offset; seen++) if (bytes[seen] === LINE_FEED) [line, lineStart] = [line + 1, seen + 1]
    return { line, column: offset - lineStart + 1 }
  }
  const isArray = jsonKind(bytes) === 'array'
  let at = skipSpace(bytes, isArray ? skipSpace(bytes, 0) + 1 : 0)
  for (let isFirst = true; isArray ? !isFirst || bytes[at] !== CLOSE_ARRAY : at < bytes.length; isFirst = false) {
    const end = itemEnd(bytes, at)
    const place = placeOf(at)
    yield { line: place.line, object: parse(bytes.subarray(at, end), place) }
    at = skipSpace(bytes, end)
    if (!isArray) continue
    if (bytes[at] === CLOSE_ARRAY) break
    if (bytes[at] !== COMMA) throw wrong(placeOf(at), 'a comma or the end of the list is missing')
    at = skipSpace(bytes, at + 1)
  }
  const rest = skipSpace(bytes, at + 1)
  if (rest < bytes.length) throw wrong(placeOf(rest), 'there is something after the list')
}

/** Where the value ends that begins at an offset: after its last bracket, or before what cannot be part of it. */
function itemEnd(bytes: Buffer, start: number): number {
  let depth = 0
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === QUOTE) {
      for (at++; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++
    } else if (OPENS.includes(byte)) depth++
    else if (CLOSES.includes(byte) && --depth <= 0) return depth < 0 ? at : at + 1
    else if (byte === COMMA && depth === 0) return at
  }
  return bytes.length
}

function parse(bytes: Buffer, { line, column }: Place): Numbered['object'] {
  if (bytes.length > MAX_OBJECT_BYTES) {
    throw new OperatorError(`line ${line}: one object is larger than an entry can be`)
  }
  const parsed = parseJsonObject(bytes, MAX_JSON_DEPTH_LEVELS)
  if (parsed.ok) return parsed.value
  const before = parsed.line === 1 ? column - 1 : 0
  throw wrong({ line: line + parsed.line - 1, column: parsed.column + before }, `it ${parsed.fault}`)
}

function wrong({ line, column }: Place, what: string): OperatorError {
  return new OperatorError(`line ${line}, column ${column}: ${what}`)
}
