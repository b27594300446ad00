/**
 * Recognises files to import by their content (`test/operator/import-formats` has a sample of
 * each), and counts values that an entry has no place for by kind.
 */
import type { Buffer } from 'node:buffer'
import { check, number, optional, sentenceOf } from '../../../rights/validate.ts'
import { ENTRY_FIELDS, FIELDS } from '../../../entries/entry.ts'
import { CREATE_SHAPE, FORMER_SHAPE } from '../../../entries/entry-shapes.ts'
import type { Json, JsonObject } from '../../../http/json.ts'
import { bitwardenSource, isBitwarden } from './bitwarden-json.ts'
import {
  assertOnce,
  columnsIn,
  FORMATS,
  readerOf,
  SPREADSHEET,
  type Format
} from './csv-formats.ts'
import { CsvError, decodeUtf8, readCsv, type CsvRow, type Separator } from './csv.ts'
import { OWN_HEADER } from './export-formats.ts'
import type { Row, Source } from './import-row.ts'
import { itemsOf, readJson, type Numbered } from './json-objects.ts'
import { packedAs } from '../commands/journal-files.ts'
import { oneOf } from '../socket/operator-changes.ts'
import { OperatorError } from '../../commands/command.ts'

const SEPARATORS: readonly Separator[] = [',', ';', '\t']
/** Excel writes and reads it before the header. */
const SEPARATOR_LINE = /^\ufeff?sep=([,;\t])\r?\n/
const OWN = 'this program'
const OWN_SHAPE = {
  ...FORMER_SHAPE,
  status: optional(oneOf(0, 1)),
  id: optional(number(1, Number.MAX_SAFE_INTEGER))
}
const ALIASES: readonly (readonly [alias: string, field: string])[] = [
  ['system', 'sistema'],
  ['user', 'usuario'],
  ['notes', 'notas']
]

const haveAll = (list: Json | undefined, ...members: readonly string[]): boolean =>
  Array.isArray(list) &&
  list.length > 0 &&
  list.every(one => one instanceof Map && members.every(member => one.has(member)))

/** By what only they write. */
const OTHER_JSON: readonly (readonly [is: (file: JsonObject) => boolean, sentence: string])[] = [
  [
    file => file.has('vaults') && file.has('userId'),
    'this is the JSON of Proton Pass: export it as CSV'
  ],
  [
    file => haveAll(file.get('accounts'), 'attrs', 'vaults'),
    'this is the JSON in a 1PUX file of 1Password: export it as CSV'
  ],
  [
    file => file.has('exporterRpId'),
    'this is a file of the Credential Exchange Format: export it as CSV from the program ' +
      'that wrote it'
  ],
  [
    file => file.get('encrypted') === true,
    'this JSON says that it is encrypted, and is of no known program: export it there as ' +
      'CSV, not encrypted'
  ],
  [
    file => file.has('items') || file.has('accounts'),
    'this JSON is of no known program: export it there as CSV'
  ]
]

/** `keepsGroups`: folders become groups. Throws an `OperatorError` that names the line. */
export function readSource(bytes: Buffer, keepsGroups: boolean = true): Source {
  assertText(bytes)
  // JSON has no byte order mark (RFC 8259 §8.1), but editors write it.
  const json = readJson(bytes.toString('utf8', 0, 3) === '\ufeff' ? bytes.subarray(3) : bytes)
  if (json instanceof Map) return sourceOfObject(json, keepsGroups)
  if (Array.isArray(json))
    return { format: OWN, unit: 'item', rows: ownRows(itemsOf(json), 'item') }
  if (json !== undefined)
    return { format: OWN, unit: 'line', rows: ownRows(json as Iterable<Numbered>, 'line') }
  const whole = decodeUtf8(bytes)
  const said = SEPARATOR_LINE.exec(whole)
  // An empty line in its place keeps the numbers of lines.
  const text = said === null ? whole : whole.replace(SEPARATOR_LINE, '\n')
  if (text.trimStart().startsWith('<')) throw unknown('this is XML')
  for (const separator of said === null ? SEPARATORS : [said[1] as Separator]) {
    const source = sourceOfCsv(text, separator, keepsGroups)
    if (source !== undefined) return source
  }
  const [first] = readCsv(text)
  throw first === undefined
    ? new OperatorError('there is nothing in it to import')
    : unknownHeader(first.cells)
}

/** Throws an `OperatorError` that says what the file is, and what to do. */
function assertText(bytes: Buffer): void {
  const kdbx = bytes.subarray(0, 4).toString('hex') === '03d9a29a'
  if (kdbx) throw new OperatorError('this is a KeePass database: export it as CSV first')
  const packed = packedAs(bytes)
  const names = bytes.subarray(0, 2).toString('latin1') !== 'PK' ? '' : bytes.toString('latin1')
  if (names.includes('export.data'))
    throw new OperatorError('this is a 1PUX file of 1Password: export it as CSV')
  if (names.includes('Proton Pass/'))
    throw new OperatorError('this is the zip file of Proton Pass: export it as CSV')
  if (packed !== undefined) throw new OperatorError(`this is no text: ${packed}; unpack it first`)
  const isWide = /^(fffe|feff|00(?!00)..|(?!00)..00)/.test(bytes.toString('hex', 0, 2))
  if (isWide)
    throw new OperatorError('this is UTF-16: save it as CSV in UTF-8 (Excel: "CSV UTF-8")')
}

function sourceOfObject(json: JsonObject, keepsGroups: boolean): Source {
  if (isBitwarden(json)) return bitwardenSource(json, keepsGroups)
  const other = OTHER_JSON.find(([is]) => is(json))
  if (other !== undefined && !json.has('password')) throw new OperatorError(other[1])
  return { format: OWN, unit: 'line', rows: ownRows([{ line: 1, object: json }], 'line') }
}

function sourceOfCsv(text: string, separator: Separator, keepsGroups: boolean): Source | undefined {
  const names = headerOf(text, separator)
  if (names === undefined) return undefined
  if (isOwnHeader(names)) {
    assertOnce(names, OWN_HEADER)
    return {
      format: OWN,
      unit: 'line',
      rows: ownRows(rowsOf(text, separator, false, row => ownObject(names, row)))
    }
  }
  const has = (all: readonly string[], { name, url, usuario, password }: Format): boolean =>
    [name, url, usuario, password].every(columns => columnsIn(columns, all).length > 0)
  const known = FORMATS.find(one => one.header.test(names.join(',')) && has(names, one))
  const lower = names.map(name => name.toLowerCase())
  const isSpreadsheet = has(lower, { ...SPREADSHEET, url: '' })
  const format = known ?? (isSpreadsheet ? SPREADSHEET : undefined)
  if (format === undefined) return undefined
  const { program, never, bin, hasBackslashes = false } = format
  const read = readerOf(names, format, keepsGroups)
  const rows = rowsOf(text, separator, hasBackslashes, read)
  return { format: program, unit: 'line', never, bin, rows }
}

function headerOf(text: string, separator: Separator): readonly string[] | undefined {
  try {
    const [first] = readCsv(text, separator)
    return first?.cells
  } catch (error) {
    if (error instanceof CsvError) return undefined
    throw error
  }
}

function* rowsOf<T>(
  text: string,
  separator: Separator,
  hasBackslashes: boolean,
  read: (row: CsvRow) => T
): Generator<T, void, void> {
  const rows = readCsv(text, separator, hasBackslashes)
  rows.next()
  for (const row of rows) yield read(row)
}

/** Shows only known columns: in a file without a header, others could be passwords. */
function unknownHeader(names: readonly string[]): OperatorError {
  const ofFormats = [SPREADSHEET, ...FORMATS].flatMap(({ name, url, usuario, password }) =>
    [name, url, usuario, password].join('|').split('|')
  )
  const known = new Set(ofFormats)
  known.delete('')
  if (!names.some(name => known.has(name))) return unknown('its first line names no known column')
  const seen = names
    .slice(0, 20)
    .map(name => (known.has(name) ? name : '?'))
    .join(',')
  return unknown(`its first line is no known header: ${seen}`)
}

function unknown(what: string): OperatorError {
  const programs = FORMATS.map(({ program }) => program).join(', ')
  return new OperatorError(
    `${what}; known are the CSV exports of ${programs}, any CSV with the columns system, ` +
      'user and password, the unencrypted .json of Bitwarden (Tools, Export vault), ' +
      'and what export writes here'
  )
}

/** Older versions may have written fewer fields. */
function isOwnHeader(names: readonly string[]): boolean {
  const isRequired = (column: string): boolean =>
    !ENTRY_FIELDS.some(field => field === column && !FIELDS[field].isRequired)
  return (
    names[0] === 'id' &&
    names.every(name => OWN_HEADER.some(column => column === name)) &&
    OWN_HEADER.filter(isRequired).every(column => names.includes(column))
  )
}

function ownObject(names: readonly string[], { line, cells }: CsvRow): Numbered {
  const value = (column: string, cell: string): string | number =>
    (column === 'id' || column === 'status') && /^(0|[1-9][0-9]*)$/.test(cell) ? Number(cell) : cell
  const isMissing = (column: string, cell: string): boolean =>
    cell === '' && ENTRY_FIELDS.some(field => field === column && !FIELDS[field].isRequired)
  const given = names
    .map((column, i) => [column, cells[i]!] as const)
    .filter(([column, cell]) => !isMissing(column, cell))
  return { line, object: new Map(given.map(([column, cell]) => [column, value(column, cell)])) }
}

/** Ids must ascend, so that no line is there twice, and entries keep their ids in a new store. */
function* ownRows(objects: Iterable<Numbered>, unit = 'line'): Generator<Row, void, void> {
  let last = 0
  for (const { line, object } of objects) {
    const { given, lost } = namedAsFields(object)
    if (!given.has('password')) throw unknown(`${unit} ${line}: this object has no member password`)
    const isOwn = given.has('id')
    // Another program may have a word there.
    if (!isOwn && CREATE_SHAPE.otp.fault('otp', given.get('otp') ?? '') !== undefined) {
      given.delete('otp')
      lost.push('one-time code')
    }
    const checked = check(OWN_SHAPE, given)
    if (!checked.ok) throw new OperatorError(`${unit} ${line}: ${sentenceOf(checked.errors)}`)
    const { id, status = 1, ...fields } = checked.value
    if (id !== undefined && id <= last) {
      throw new OperatorError(`${unit} ${line}: the ids do not ascend; import one export at a time`)
    }
    last = id ?? last
    const others = [...given].filter(([name, value]) => !(name in OWN_SHAPE) && isValue(value))
    yield {
      line,
      entry: { ...fields, status },
      isOwn,
      dropped: [...lost, ...others.map(() => 'other member')]
    }
  }
}

const isValue = (value: Json | undefined): boolean =>
  value !== undefined && value !== '' && value !== null

/** An alias counts if its field has no value. */
function namedAsFields(object: JsonObject): { given: Map<string, Json>; lost: string[] } {
  const given = new Map(object)
  const lost: string[] = []
  for (const [alias, field] of ALIASES) {
    const value = object.get(alias)
    if (value === undefined) continue
    given.delete(alias)
    if (!isValue(object.get(field))) given.set(field, value)
    else if (isValue(value) && value !== object.get(field)) lost.push('other member')
  }
  return { given, lost }
}
