/**
 * CSV, RFC 4180: a quoted cell may contain commas, line ends, and doubled quotes (§2.5 to 2.7).
 *
 * Beyond it: semicolons or tabs; \" and \\ if the caller expects them; a byte order mark; CR LF, LF
 * or CR; empty lines, which are skipped. Anything else is refused: a guess would be a wrong
 * password.
 */
import { isUtf8 } from 'node:buffer'
import { OperatorError } from '../../commands/command.ts'
import { counted } from '../../../log.ts'

/** `line`: where the row begins, from 1. */
export interface CsvRow {
  readonly line: number
  readonly cells: readonly string[]
}

/** Spreadsheets write semicolons if the comma is the decimal point. */
export type Separator = ',' | ';' | '\t'

/** Tens of millions would take up all memory. */
const MAX_CELLS = 1_000

/**
 * Takes linear time. Throws a `CsvError` with line and column (in characters, from 1), also if a
 * row has another length than the first (§2.4).
 */
export function* readCsv(
  text: string,
  separator: Separator = ',',
  hasBackslashes: boolean = false
): Generator<CsvRow, void, void> {
  let columns: number | undefined
  let line = 1
  for (let at = 0; at < text.length;) {
    const { cells, end } = readRow(text, at, separator, hasBackslashes)
    if (end > at) {
      columns ??= cells.length
      if (cells.length !== columns)
        throw malformed(text, at, lengthFault(cells.length, columns, separator))
      yield { line, cells }
    }
    const next = end + (text.startsWith('\r\n', end) ? 2 : 1)
    line += linesOf(text.slice(at, next)).length - 1
    at = next
  }
}

function lengthFault(length: number, columns: number, separator: Separator): string {
  const fault = `${length} cells, where the first row has ${columns}`
  if (length > columns) return fault
  const name = { ',': 'comma', ';': 'semicolon', '\t': 'tab' }[separator]
  return `${fault}; if its last cells are empty, add ${counted(columns - length, name)} at its end`
}

/** Ends with CR LF. A cell must not have lone surrogates: UTF-8 has none. */
export function csvRow(cells: readonly string[]): string {
  const quoted = cells.map(cell =>
    MUST_BE_QUOTED.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell
  )
  return `${quoted.join(',')}\r\n`
}

/** Includes what would pass for an empty line or a byte order mark. */
const MUST_BE_QUOTED = /^$|^\ufeff|[",\r\n]/

const PLAIN = { ',': /[^",\r\n]*/y, ';': /[^";\r\n]*/y, '\t': /[^"\t\r\n]*/y }

function readRow(
  text: string,
  start: number,
  separator: Separator,
  hasBackslashes: boolean
): { cells: string[]; readonly end: number } {
  const cells: string[] = []
  const [escape, escaped] = hasBackslashes ? (['\\', /\\(.)/g] as const) : (['"', /"(")/g] as const)
  for (let at = start; ;) {
    const isQuoted = text[at] === '"'
    const end = isQuoted ? quotedEnd(text, at, escape) : plainEnd(text, at, separator)
    cells.push(isQuoted ? text.slice(at + 1, end - 1).replace(escaped, '$1') : text.slice(at, end))
    if (text[end] !== separator) {
      if (end < text.length && !'\r\n'.includes(text[end]!))
        throw malformed(text, end, 'text after a closing quote')
      return { cells, end }
    }
    if (cells.length === MAX_CELLS) throw malformed(text, end, `more than ${MAX_CELLS} cells`)
    at = end + 1
  }
}

function quotedEnd(text: string, start: number, escape: '"' | '\\'): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === escape && ['"', escape].includes(text[at + 1]!)) at++
    else if (text[at] === '"') return at + 1
    else if (text[at] === escape) {
      throw malformed(
        text,
        at,
        'a backslash before a character that is neither a quote nor a backslash'
      )
    }
  }
  throw malformed(text, start, 'a quote that is not closed')
}

function plainEnd(text: string, start: number, separator: Separator): number {
  const plain = PLAIN[separator]
  plain.lastIndex = start
  plain.test(text)
  const end = plain.lastIndex
  if (text[end] === '"')
    throw malformed(text, end, 'a quote in a cell that does not begin with one')
  return end
}

export class CsvError extends OperatorError {}

function malformed(text: string, at: number, what: string): CsvError {
  const lines = linesOf(text.slice(0, at))
  const place = `line ${lines.length}, column ${[...lines.at(-1)!].length + 1}`
  return new CsvError(`the file is not valid CSV (RFC 4180): ${place}: ${what}`)
}

function linesOf(text: string): string[] {
  return text.split(/\r\n|\r|\n/)
}

/** Throws a `CsvError` if it is not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string {
  if (isUtf8(bytes)) return new TextDecoder().decode(bytes)
  // Encoded again, the text first differs at what is not UTF-8.
  const readable = new TextEncoder().encode(
    new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  )
  const at = readable.findIndex((byte, i) => byte !== bytes[i])
  const before = new TextDecoder().decode(bytes.subarray(0, at), { stream: true })
  throw malformed(before, before.length, 'a byte that is not UTF-8')
}
