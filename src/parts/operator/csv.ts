/**
 * CSV, RFC 4180: rows of cells, with commas between them; a cell in double quotes may contain commas, line ends, and
 * quotes, which are written twice (§2.5 to 2.7).
 *
 * Beyond it: cells may be separated by semicolons or tabs; a quote may be written as \" and a backslash as \\, where
 * the caller knows that the program did so; the text is UTF-8, with or without a byte order mark; a row ends with CR
 * LF, LF or CR; an empty line is no row. Anything else is refused: a guess would be a wrong password.
 */
import { isUtf8 } from 'node:buffer'
import { Failure } from '../../errors.ts'

/** A row and the line that it begins in, counted from 1. */
export interface CsvRow {
  readonly line: number
  readonly cells: readonly string[]
}

/** What separates cells: spreadsheets write a semicolon where the comma is the decimal point. */
export type Separator = ',' | ';' | '\t'

/** More than any program writes; a row of tens of millions would take up all memory. */
const MAX_CELLS = 1_000

/**
 * Reads a text row by row, in time linear in its length. Throws `csv-malformed`, naming line and column (in
 * characters, from 1), also for a row that has not as many cells as the first (§2.4).
 */
export function * readCsv(
  text: string, separator: Separator = ',', hasBackslashes: boolean = false
): Generator<CsvRow, void, void> {
  let columns: number | undefined
  let line = 1
  for (let at = 0; at < text.length;) {
    const { cells, end } = readRow(text, at, separator, hasBackslashes)
    if (end > at) {
      columns ??= cells.length
      const { length } = cells
      if (length !== columns) throw malformed(text, at, `${length} cells, where the first row has ${columns}`)
      yield { line, cells }
    }
    const next = end + (text.startsWith('\r\n', end) ? 2 : 1)
    line += linesOf(text.slice(at, next)).length - 1
    at = next
  }
}

/** Writes a row, its line end included. A cell must be well-formed: UTF-8 has no lone surrogates. */
export function csvRow(cells: readonly string[]): string {
  return `${cells.map(cell => MUST_BE_QUOTED.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell).join(',')}\r\n`
}

/** Besides what the grammar asks for, what would pass for an empty line or for a byte order mark. */
const MUST_BE_QUOTED = /^$|^\ufeff|[",\r\n]/

const PLAIN = { ',': /[^",\r\n]*/y, ';': /[^";\r\n]*/y, '\t': /[^"\t\r\n]*/y }

/** Reads a row from its first character to its end, which is a line end or that of the text. */
function readRow(
  text: string, start: number, separator: Separator, hasBackslashes: boolean
): { cells: string[], readonly end: number } {
  const cells: string[] = []
  const [escape, escaped] = hasBackslashes ? ['\\', /\\(.)/g] as const : ['"', /"(")/g] as const
  for (let at = start; ;) {
    const isQuoted = text[at] === '"'
    const end = isQuoted ? quotedEnd(text, at, escape) : plainEnd(text, at, separator)
    cells.push(isQuoted ? text.slice(at + 1, end - 1).replace(escaped, '$1') : text.slice(at, end))
    if (text[end] !== separator) {
      if (end < text.length && !'\r\n'.includes(text[end]!)) throw malformed(text, end, 'text after a closing quote')
      return { cells, end }
    }
    if (cells.length === MAX_CELLS) throw malformed(text, end, `more than ${MAX_CELLS} cells`)
    at = end + 1
  }
}

/** Within a cell in quotes, a quote is written after `escape`, and so is `escape` itself. */
function quotedEnd(text: string, start: number, escape: '"' | '\\'): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === escape && ['"', escape].includes(text[at + 1]!)) at++
    else if (text[at] === '"') return at + 1
    else if (text[at] === escape) {
      throw malformed(text, at, 'a backslash before something else than a quote or a backslash')
    }
  }
  throw malformed(text, start, 'a quote that is not closed')
}

function plainEnd(text: string, start: number, separator: Separator): number {
  const plain = PLAIN[separator]
  plain.lastIndex = start
  plain.test(text)
  const end = plain.lastIndex
  if (text[end] === '"') throw malformed(text, end, 'a quote in a cell that does not begin with one')
  return end
}

function malformed(text: string, at: number, what: string): Failure {
  const lines = linesOf(text.slice(0, at))
  return new Failure('csv-malformed', `line ${lines.length}, column ${[...lines.at(-1)!].length + 1}: ${what}`)
}

function linesOf(text: string): string[] { return text.split(/\r\n|\r|\n/) }

/** The text of a file; throws `csv-malformed`, naming the place, for what is not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string {
  if (isUtf8(bytes)) return new TextDecoder().decode(bytes)
  // What was decoded, encoded again, first differs from the bytes where these are not UTF-8.
  const readable = new TextEncoder().encode(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes))
  const at = readable.findIndex((byte, i) => byte !== bytes[i])
  const before = new TextDecoder().decode(bytes.subarray(0, at), { stream: true })
  throw malformed(before, before.length, 'what is not UTF-8')
}
