/**
 * Objects in JSON, one after the other, so that a large file is never in memory as values: with white space between
 * them, such as JSON lines, or the items of one array.
 */
import type { Buffer } from 'node:buffer'
import { parseJson, parseJsonObject, type Json, type JsonObject, type Parsed } from '../../http/json.ts'
import { MAX_JSON_DEPTH_LEVELS } from '../../limits.ts'
import { OperatorError } from '../command.ts'

/** An object, and the line that it begins in; lines count from 1. */
export interface Numbered {
  readonly line: number
  readonly object: JsonObject
}

interface Place { readonly line: number, readonly column: number }

/** The most bytes that one object may take. */
const MAX_OBJECT_BYTES = 32 * 1024 * 1024

const LINE_FEED = 0x0a, QUOTE = 0x22, COMMA = 0x2c, BACKSLASH = 0x5c, OPEN_ARRAY = 0x5b, CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d, COLON = 0x3a
const OPENS = [OPEN_ARRAY, OPEN_OBJECT]
const CLOSES = [CLOSE_ARRAY, CLOSE_OBJECT]
const SPACES = [0x20, 0x09, LINE_FEED, 0x0d]

/** Where the white space ends that begins at an offset (RFC 8259 §2). */
function skipSpace(bytes: Buffer, at: number): number {
  while (SPACES.includes(bytes[at]!)) at++
  return at
}

/** Whether bytes are an array or an object, as far as the first of them tells. */
export function jsonKind(bytes: Buffer): 'array' | 'object' | undefined {
  const first = bytes[skipSpace(bytes, 0)]
  if (first === OPEN_ARRAY) return 'array'
  return first === OPEN_OBJECT ? 'object' : undefined
}

/** Where a value is. */
interface Extent { readonly at: number, readonly end: number }

/**
 * Reads objects that follow each other, or the items of one array; or the array that begins at an offset, whatever
 * follows that. Throws an `OperatorError` with line and column.
 */
export function * readObjects(bytes: Buffer, start?: number): Generator<Numbered, void, void> {
  const placeOf = placesIn(bytes)
  const first = start ?? skipSpace(bytes, 0)
  const isArray = bytes[first] === OPEN_ARRAY
  if (start !== undefined && !isArray) throw wrong(placeOf(first), 'it is not a list')
  let at = isArray ? skipSpace(bytes, first + 1) : first
  for (let isFirst = true; isArray ? !isFirst || bytes[at] !== CLOSE_ARRAY : at < bytes.length; isFirst = false) {
    const end = itemEnd(bytes, at)
    const place = placeOf(at)
    yield { line: place.line, object: valueOf(bytes.subarray(at, end), place, parseJsonObject) }
    at = skipSpace(bytes, end)
    if (!isArray) continue
    if (bytes[at] === CLOSE_ARRAY) break
    if (bytes[at] !== COMMA) throw wrong(placeOf(at), 'a comma or the end of the list is missing')
    at = skipSpace(bytes, at + 1)
  }
  const rest = start === undefined ? skipSpace(bytes, at + 1) : bytes.length
  if (rest < bytes.length) throw wrong(placeOf(rest), 'there is something after the list')
}

/**
 * The values of an object's members by their keys, not parsed yet; undefined where the bytes are not one whole object
 * and nothing else.
 */
export function membersOf(bytes: Buffer): ReadonlyMap<string, Extent> | undefined {
  const members = new Map<string, Extent>()
  let at = skipSpace(bytes, 0)
  if (bytes[at] !== OPEN_OBJECT) return undefined
  do {
    const start = skipSpace(bytes, at + 1)
    const colon = keyEnd(bytes, start)
    const key = parseJson(bytes.subarray(start, colon), 1)
    if (!key.ok || typeof key.value !== 'string' || bytes[colon] !== COLON || members.has(key.value)) return undefined
    const value = skipSpace(bytes, colon + 1)
    const end = itemEnd(bytes, value)
    members.set(key.value, { at: value, end })
    at = skipSpace(bytes, end)
  } while (bytes[at] === COMMA)
  return bytes[at] === CLOSE_OBJECT && skipSpace(bytes, at + 1) === bytes.length ? members : undefined
}

/** Parses the value of a member. Throws an `OperatorError` with line and column. */
export function readValue(bytes: Buffer, { at, end }: Extent): Json {
  return valueOf(bytes.subarray(at, end), placesIn(bytes)(at), parseJson)
}

/** Gives the places of ascending offsets; columns are in bytes. */
function placesIn(bytes: Buffer): (offset: number) => Place {
  let [seen, line, lineStart] = [0, 1, 0]
  return offset => {
    for (; seen < offset; seen++) if (bytes[seen] === LINE_FEED) [line, lineStart] = [line + 1, seen + 1]
    return { line, column: offset - lineStart + 1 }
  }
}

/** Where the colon is after a key that begins at an offset. */
function keyEnd(bytes: Buffer, start: number): number {
  if (bytes[start] !== QUOTE) return bytes.length
  return skipSpace(bytes, stringEnd(bytes, start) + 1)
}

/** The closing quote of a string that begins at an offset. */
function stringEnd(bytes: Buffer, start: number): number {
  let at = start + 1
  for (; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++
  return at
}

/** Where the value ends that begins at an offset: after its last bracket, or before what cannot be part of it. */
function itemEnd(bytes: Buffer, start: number): number {
  let depth = 0
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === QUOTE) at = stringEnd(bytes, at)
    else if (OPENS.includes(byte)) depth++
    else if (CLOSES.includes(byte) && --depth <= 0) return depth < 0 ? at : at + 1
    else if (byte === COMMA && depth === 0) return at
  }
  return bytes.length
}

function valueOf<T>(
  bytes: Buffer, { line, column }: Place, parse: (bytes: Buffer, maxDepth: number) => Parsed<T>
): T {
  if (bytes.length > MAX_OBJECT_BYTES) {
    throw new OperatorError(`line ${line}: one object is larger than an entry can be`)
  }
  const parsed = parse(bytes, MAX_JSON_DEPTH_LEVELS)
  if (parsed.ok) return parsed.value
  const before = parsed.line === 1 ? column - 1 : 0
  throw wrong({ line: line + parsed.line - 1, column: parsed.column + before }, `it ${parsed.fault}`)
}

function wrong({ line, column }: Place, what: string): OperatorError {
  return new OperatorError(`line ${line}, column ${column}: ${what}`)
}
