/** JSON lines: an object a line, a line feed behind each. An empty line is none; a carriage return is white space. */
import type { Buffer } from 'node:buffer'
import { parseJsonObject, type Json, type Parsed } from './parse.ts'

/** What stands in a line; lines count from 1. */
interface JsonLine {
  readonly line: number
  readonly parsed: Parsed<{ readonly [key: string]: Json }>
}

/** Reads a whole file line by line; `maxDepth` bounds how deep arrays and objects may nest. */
export function * readJsonLines(bytes: Buffer, maxDepth: number): Generator<JsonLine, void, void> {
  let line = 1
  for (let at = 0; at < bytes.length; line++) {
    const found = bytes.indexOf(0x0a, at)
    const end = found < 0 ? bytes.length : found
    const own = bytes.subarray(at, end)
    if (own.some(byte => byte > 0x20)) yield { line, parsed: parseJsonObject(own, maxDepth) }
    at = end + 1
  }
}
