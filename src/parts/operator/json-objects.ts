/**
 * Objects in JSON, one after the other, so that a large file is never in memory as values: a line each (JSON
 * lines; an empty line is none), or the items of one array.
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

/** Reads JSON lines, or the items of an array. Throws an `OperatorError` that names line and column. */
export function * readObjects(bytes: Buffer): Generator<Numbered, void, void> {
  if (jsonKind(bytes) === 'array') return yield * items(bytes)
  let line = 1
  for (let at = 0; at < bytes.length; line++) {
    const found = bytes.indexOf(LINE_FEED, at)
    const end = found < 0 ? bytes.length : found
    if (skipSpace(bytes, at) < end) yield { line, object: parse(bytes.subarray(at, end), line, 0) }
    at = end + 1
  }
}

function * items(bytes: Buffer): Generator<Numbered, void, void> {
  const place = new Place(bytes)
  let at = skipSpace(bytes, skipSpace(bytes, 0) + 1)
  for (let isFirst = true; bytes[at] !== CLOSE_ARRAY || !isFirst; isFirst = false) {
    const end = itemEnd(bytes, at)
    const { line, column } = place.of(at)
    yield { line, object: parse(bytes.subarray(at, end), line, column - 1) }
    at = skipSpace(bytes, end)
    if (bytes[at] === CLOSE_ARRAY) break
    if (bytes[at] !== COMMA) throw wrong(place.of(at), 'a comma or the end of the list is missing')
    at = skipSpace(bytes, at + 1)
  }
  const rest = skipSpace(bytes, at + 1)
  if (rest < bytes.length) throw wrong(place.of(rest), 'there is something after the list')
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

function parse(bytes: Buffer, line: number, before: number): Numbered['object'] {
  if (bytes.length > MAX_OBJECT_BYTES) {
    throw new OperatorError(`line ${line}: one object is larger than an entry can be`)
  }
  const parsed = parseJsonObject(bytes, MAX_JSON_DEPTH_LEVELS)
  if (parsed.ok) return parsed.value
  const column = parsed.column + (parsed.line === 1 ? before : 0)
  throw wrong({ line: line + parsed.line - 1, column }, `it ${parsed.fault}`)
}

function wrong({ line, column }: { readonly line: number, readonly column: number }, what: string): OperatorError {
  return new OperatorError(`line ${line}, column ${column}: ${what}`)
}

/** Gives lines and columns of ascending offsets, columns in bytes. */
class Place {
  readonly #bytes: Buffer
  #line = 1
  #lineStart = 0

  constructor(bytes: Buffer) { this.#bytes = bytes }

  of(offset: number): { readonly line: number, readonly column: number } {
    for (;;) {
      const end = this.#bytes.indexOf(LINE_FEED, this.#lineStart)
      if (end < 0 || end >= offset) return { line: this.#line, column: offset - this.#lineStart + 1 }
      this.#line++
      this.#lineStart = end + 1
    }
  }
}
