/**
 * Files to import, recognised by their content; `test/operator/import-formats` has a sample of each. Values
 * that an entry has no place for are counted by kind.
 */
import type { Buffer } from 'node:buffer'
import { Failure } from '../../../errors.ts'
import { check, number, optional, sentenceOf } from '../../../store/validate.ts'
import { CREATE_SHAPE, ENTRY_FIELDS, FIELDS } from '../../../store/entry.ts'
import { bitwardenSource } from './bitwarden-json.ts'
import { decodeUtf8, readCsv, type CsvRow, type Separator } from './csv.ts'
import { OWN_HEADER } from './export-formats.ts'
import { foreignRow, type Row, type Source } from './import-row.ts'
import { itemsOf, readJson, type Numbered } from './json-objects.ts'
import { packedAs } from '../commands/journal-files.ts'
import { oneOf } from '../socket/operator-changes.ts'
import { OperatorError } from '../../../command.ts'

/**
 * `first` and `mark` identify the program if other columns do not. Bars separate alternatives: a file has at least one
 * of them, and of a row the first that is not empty counts.
 */
type Format = readonly [
  program: string, first: string, mark: string, sistema: string, url: string, usuario: string, password: string,
  never?: string
]

const BROWSER = 'passkeys, payment cards and addresses'
/** The first format that fits counts. */
const FORMATS: readonly Format[] = [
  ['NordPass', 'name', 'cardholdername', 'name', 'url', 'username', 'password', 'files and passkeys'],
  ['Chrome', 'name', '', 'name', 'url', 'username', 'password', BROWSER],
  ['Firefox', 'url', 'httpRealm', '', 'url', 'username', 'password', BROWSER],
  ['Bitwarden', 'folder|collections', '', 'name', 'login_uri', 'login_username', 'login_password', 'cards, ' +
    'identities, SSH keys, passkeys, former passwords and attachments'],
  ['KeePassXC', 'Group', '', 'Title', 'URL', 'Username', 'Password', 'attachments, additional attributes, former ' +
    'passwords and the recycle bin'],
  ['KeePass 2', 'Account', '', 'Account', 'Web Site', 'Login Name', 'Password', 'groups, attachments, further fields ' +
    'and former passwords'],
  ['Apple', 'Title', '', 'Title', 'URL', 'Username', 'Password', 'passkeys and Wi-Fi passwords'],
  ['1Password', 'Title', '', 'Title', 'Url|Website', 'Username', 'Password', 'anything but logins, nor attachments ' +
    'or further fields'],
  ['LastPass', 'url', '', 'name', 'url', 'username', 'password', 'attachments, passkeys and former passwords'],
  ['Proton Pass', 'type', '', 'name', 'url', 'username|email', 'password', 'attachments, passkeys and further fields'],
  ['Dashlane', 'username', 'title', 'title', 'url', 'username|username2|username3', 'password', 'anything but ' +
    'logins, for which the same export has further files'],
  ['CSV', '', '', 'sistema|system', '', 'usuario|user', 'password']
]
/** They write `\"` and `\\`; KeePass 2 calls it "KeePass CSV (1.x)". */
const WITH_BACKSLASHES = ['KeePass 2']
/** In lower case. */
const NOTES = ['note', 'notes', 'comments', 'extra', 'notas']
/** In lower case; they hold no secrets. */
const IGNORED = new Set([
  'favorite', 'fav', 'type', 'reprompt', 'icon', 'last modified', 'created', 'guid', 'timecreated', 'timelastused',
  'timepasswordchanged', 'createtime', 'modifytime', 'httprealm', 'formactionorigin', 'status', 'id'
])
/** By the start of a name in lower case. */
const KINDS: readonly (readonly [start: RegExp, kind: string])[] = [
  [/^(totp|otp|login_totp)/, 'one-time code'], [/^(fields|custom_fields)$/, 'other field'],
  [/^(folder|group|grouping|category|vault|collections|tags)$/, 'folder'], [/^additional_urls$/, 'further address'],
  [/^(card|cvc|expirydate)/, 'card'], [/^(username|email)/, 'further user name'], [/^archived$/, 'archived']
]

const SEPARATORS: readonly Separator[] = [',', ';', '\t']
const OWN = 'this program'
const OWN_SHAPE = { ...CREATE_SHAPE, status: optional(oneOf(0, 1)), id: optional(number(1, Number.MAX_SAFE_INTEGER)) }
const ALIASES: { readonly [name: string]: string } = { system: 'sistema', user: 'usuario', notes: 'notas' }

/** Throws an `OperatorError`, or `csv-malformed`, that names the line. */
export function readSource(bytes: Buffer): Source {
  const kdbx = bytes.subarray(0, 4).toString('hex') === '03d9a29a'
  if (kdbx) throw new OperatorError('this is a KeePass database: export it as CSV first')
  const packed = packedAs(bytes)
  if (packed !== undefined) throw new OperatorError(`this is no text: ${packed}; unpack it first`)
  // JSON has no byte order mark (RFC 8259 §8.1), but editors write it.
  const json = readJson(bytes.toString('utf8', 0, 3) === '\ufeff' ? bytes.subarray(3) : bytes)
  if (json instanceof Map && (json.has('encrypted') || json.has('items'))) return bitwardenSource(json)
  if (json instanceof Map) return { format: OWN, unit: 'line', rows: ownRows([{ line: 1, object: json }], 'line') }
  if (Array.isArray(json)) return { format: OWN, unit: 'item', rows: ownRows(itemsOf(json), 'item') }
  if (json !== undefined) return { format: OWN, unit: 'line', rows: ownRows(json as Iterable<Numbered>, 'line') }
  const text = decodeUtf8(bytes)
  if (text.trimStart().startsWith('<')) throw unknown('this is XML')
  for (const separator of SEPARATORS) {
    const names = headerOf(text, separator)
    if (names === undefined) continue
    if (isOwnHeader(names)) {
      assertOnce(names, OWN_HEADER)
      return { format: OWN, unit: 'line', rows: ownRows(rowsOf(text, separator, false, row => ownObject(names, row))) }
    }
    const format = FORMATS.find(([, first, ...columns]) => columnsIn(first, [names[0] ?? '']).length > 0 &&
      columns.slice(0, 5).every(column => columnsIn(column!, names).length > 0))
    if (format === undefined) continue
    const [program, , , ...used] = format
    const never = used[4]
    const read = rowReader(names, program, used.slice(0, 4))
    const hasBackslashes = WITH_BACKSLASHES.includes(program)
    return { format: program, unit: 'line', never, rows: rowsOf(text, separator, hasBackslashes, read) }
  }
  const [first] = readCsv(text)
  throw first === undefined ? new OperatorError('there is nothing in it to import') : unknownHeader(first.cells)
}

function headerOf(text: string, separator: Separator): readonly string[] | undefined {
  try {
    const [first] = readCsv(text, separator)
    return first?.cells
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}

function * rowsOf<T>(
  text: string, separator: Separator, hasBackslashes: boolean, read: (row: CsvRow) => T
): Generator<T, void, void> {
  const rows = readCsv(text, separator, hasBackslashes)
  rows.next()
  for (const row of rows) yield read(row)
}

/** Those of the alternatives that are among the names; a format that asks for none has ''. */
function columnsIn(columns: string, names: readonly string[]): readonly string[] {
  return columns.split('|').filter(column => column === '' || names.includes(column))
}

/** Shows known columns only: another could be a password of a file without a header. */
function unknownHeader(names: readonly string[]): OperatorError {
  const known = new Set(FORMATS.flatMap(([, ...columns]) => columns.slice(0, 6).join('|').split('|')))
  known.delete('')
  if (!names.some(name => known.has(name))) return unknown('its first line names no known column')
  const seen = names.slice(0, 20).map(name => known.has(name) ? name : '?').join(',')
  return unknown(`its first line is no known header: ${seen}`)
}

function unknown(what: string): OperatorError {
  const programs = [...new Set(FORMATS.map(([program]) => program))].filter(name => name !== 'CSV').join(', ')
  return new OperatorError(`${what}; known are the CSV exports of ${programs}, any CSV with the columns system, user ` +
    'and password, the unencrypted .json of Bitwarden (Tools, Export vault), and what export writes here')
}

/** Two columns of one name are ambiguous. */
function assertOnce(names: readonly string[], used: readonly string[]): void {
  const twice = used.find(column => names.indexOf(column) !== names.lastIndexOf(column))
  if (twice !== undefined) throw new OperatorError(`its first line has two columns ${twice}; leave one of them out`)
}

/** `used` are the columns of name, address, user name and password. */
function rowReader(
  names: readonly string[], program: string, used: readonly (string | undefined)[]
): (row: CsvRow) => Row {
  const indexOf = (wanted: readonly string[]): number => names.findIndex(name => wanted.includes(name.toLowerCase()))
  const isPlain = program === 'CSV'
  const columns = used.map(column => columnsIn(column ?? '', names).filter(name => name !== ''))
  const places = columns.map(ofOne => ofOne.map(column => names.indexOf(column)))
  if (isPlain) places[1] = [indexOf(['url'])]
  const notes = indexOf(NOTES)
  const status = isPlain ? names.indexOf('status') : -1
  assertOnce(names, [...columns.flat(), ...isPlain ? ['status'] : []])
  const taken = new Set([...places.flat(), notes])
  const others = names.flatMap((name, at) => taken.has(at) || IGNORED.has(name.toLowerCase()) ? [] : [at])
  return ({ line, cells }) => {
    const state = cells[status] || '1'
    if (!['0', '1'].includes(state)) throw new OperatorError(`line ${line}: status must be 1, or 0 if it is deleted`)
    const first = (columns: readonly number[] = []): string =>
      columns.map(at => cells[at] ?? '').find(text => text !== '') ?? ''
    const [name = '', url = '', usuario = '', password = ''] = places.map(first)
    const alternatives = places.flatMap(columns => columns.filter(at => (cells[at] ?? '') !== '').slice(1))
    const dropped = [...others, ...alternatives].filter(at => !['', 'false', '0'].includes(cells[at] ?? ''))
      .map(at => kindOf(names[at]!))
    return foreignRow(line, { name, url, usuario, password, notas: cells[notes] ?? '' }, dropped,
      { isDeleted: state === '0' })
  }
}

function kindOf(column: string): string {
  const name = column.toLowerCase()
  return KINDS.find(([start]) => start.test(name))?.[1] ?? `column ${column}`
}

/** An older version may have written fewer fields. */
function isOwnHeader(names: readonly string[]): boolean {
  const isRequired = (column: string): boolean =>
    !ENTRY_FIELDS.some(field => field === column && !FIELDS[field].isRequired)
  return names[0] === 'id' && names.every(name => OWN_HEADER.some(column => column === name)) &&
    OWN_HEADER.filter(isRequired).every(column => names.includes(column))
}

function ownObject(names: readonly string[], { line, cells }: CsvRow): Numbered {
  const value = (column: string, cell: string): string | number =>
    (column === 'id' || column === 'status') && /^(0|[1-9][0-9]*)$/.test(cell) ? Number(cell) : cell
  const isMissing = (column: string, cell: string): boolean =>
    cell === '' && ENTRY_FIELDS.some(field => field === column && !FIELDS[field].isRequired)
  const given = names.map((column, i) => [column, cells[i]!] as const)
    .filter(([column, cell]) => !isMissing(column, cell))
  return { line, object: new Map(given.map(([column, cell]) => [column, value(column, cell)])) }
}

/** Ids must ascend: no line is there twice, and entries keep their ids in a new store. */
function * ownRows(objects: Iterable<Numbered>, unit = 'line'): Generator<Row, void, void> {
  let last = 0
  for (const { line, object } of objects) {
    const given = new Map([...object].map(([name, value]) => [ALIASES[name] ?? name, value]))
    const checked = check(OWN_SHAPE, given)
    if (!given.has('password')) throw unknown(`${unit} ${line}: this object has no member password`)
    if (!checked.ok) throw new OperatorError(`${unit} ${line}: ${sentenceOf(checked.errors)}`)
    const { id, status = 1, ...fields } = checked.value
    if (id !== undefined && id <= last) {
      throw new OperatorError(`${unit} ${line}: the ids do not ascend; import one export at a time`)
    }
    last = id ?? last
    const dropped = [...given].filter(([name, value]) => !(name in OWN_SHAPE) && value !== '' && value !== null)
    yield { line, entry: { ...fields, status }, isOwn: id !== undefined, dropped: dropped.map(() => 'other member') }
  }
}
