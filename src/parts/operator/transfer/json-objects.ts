import { Buffer } from 'node:buffer'
import { parseJson, type Json, type JsonObject, type Parsed } from '../../../http/json.ts'
import { endedLines } from '../../../journal/line.ts'
import { MAX_JSON_DEPTH_LEVELS } from '../../../limits.ts'
import { OperatorError } from '../../commands/command.ts'

/** `line` may be a place in a list; both count from 1. */
export interface Numbered {
  readonly line: number
  readonly object: JsonObject
}

/** Undefined if it does not begin as JSON. Throws an `OperatorError` with line and byte. */
export function readJson(
  bytes: Buffer
): JsonObject | readonly Json[] | Iterable<Numbered> | undefined {
  const start = bytes.toString('latin1', 0, 1024).trimStart()[0]
  if (start !== '[' && start !== '{') return undefined
  const whole = parseJson(bytes, MAX_JSON_DEPTH_LEVELS)
  if (whole.ok) return whole.value as JsonObject | readonly Json[]
  const [first] = linesIn(bytes)
  const isLines =
    start === '{' && first !== undefined && parseJson(first.text, MAX_JSON_DEPTH_LEVELS).ok
  return isLines ? objectsIn(bytes) : (valueOf(whole) as never)
}

/** Throws an `OperatorError` if an item is no object. */
export function* itemsOf(list: readonly Json[]): Generator<Numbered, void, void> {
  for (const [i, object] of list.entries()) {
    if (!(object instanceof Map)) throw new OperatorError(`item ${i + 1}: it is not an object`)
    yield { line: i + 1, object }
  }
}

function* objectsIn(bytes: Buffer): Generator<Numbered, void, void> {
  for (const { line, text } of linesIn(bytes)) {
    const object = valueOf(parseJson(text, MAX_JSON_DEPTH_LEVELS), line)
    if (!(object instanceof Map)) throw new OperatorError(`line ${line}: it is not an object`)
    yield { line, object }
  }
}

function* linesIn(
  bytes: Buffer
): Generator<{ readonly line: number; readonly text: Buffer }, void, void> {
  let line = 0
  const all =
    bytes.toString('latin1', bytes.length - 1) === '\n'
      ? bytes
      : Buffer.concat([bytes, Buffer.from('\n')])
  for (const { start, end } of endedLines(all)) {
    line++
    const text = bytes.subarray(start, end)
    if (text.some(byte => ![0x20, 0x09, 0x0d].includes(byte))) yield { line, text }
  }
}

function valueOf(parsed: Parsed<Json>, line?: number): Json {
  if (parsed.ok) return parsed.value
  const { byte, fault } = parsed
  const places = [
    ...(line === undefined ? [] : [`line ${line}`]),
    ...(byte === undefined ? [] : [`byte ${byte}`])
  ]
  throw new OperatorError(`${places.length === 0 ? '' : `${places.join(', ')}: `}it ${fault}`)
}
