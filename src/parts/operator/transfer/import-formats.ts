/**
 * Files to import, recognised by their content; `test/operator/import-formats` has a sample of each. Values
 * that an entry has no place for are counted by kind.
 */
import type { Buffer } from 'node:buffer'
import { Failure } from '../../../errors.ts'
import { check, number, optional, sentenceOf } from '../../../store/validate.ts'
import { CREATE_SHAPE, ENTRY_FIELDS, FIELDS } from '../../../store/entry.ts'
import type { JsonObject } from '../../../http/json.ts'
import { bitwardenSource, isBitwarden } from './bitwarden-json.ts'
import { decodeUtf8, readCsv, type CsvRow, type Separator } from './csv.ts'
import { OWN_HEADER } from './export-formats.ts'
import { foreignRow, type Foreign, type Habits, type Row, type Source } from './import-row.ts'
import { itemsOf, readJson, type Numbered } from './json-objects.ts'
import { packedAs } from '../commands/journal-files.ts'
import { oneOf } from '../socket/operator-changes.ts'
import { OperatorError } from '../../../command.ts'

/**
 * `first` and `mark` identify the program if other columns do not. Bars separate alternatives: a file has at least one
 * of them, and of a row the first that is not empty counts.
 */
interface Format {
  readonly program: string
  readonly first?: string
  readonly mark?: string
  readonly name: string
  readonly url: string
  readonly usuario: string
  readonly password: string
  /** What a file of this program never contains. */
  readonly never?: string
  readonly habits?: Habits
  /** Several addresses in one cell. */
  readonly listsAddresses?: true
  /** It writes `\"` and `\\`. */
  readonly hasBackslashes?: true
}

const BROWSER = 'passkeys, payment cards and addresses'
const REFERENCE = /\{REF:[A-Z]@/i
/** A spreadsheet: nothing is known of columns that it has besides. */
const PLAIN = 'CSV'
/** The first format that fits counts. */
const FORMATS: readonly Format[] = [
  {
    program: 'NordPass', first: 'name', mark: 'cardholdername', name: 'name', url: 'url', usuario: 'username',
    password: 'password', never: 'files and passkeys'
  },
  {
    program: 'Chrome', first: 'name', name: 'name', url: 'url', usuario: 'username', password: 'password',
    never: BROWSER
  },
  {
    program: 'Firefox', first: 'url', mark: 'httpRealm', name: '', url: 'url', usuario: 'username',
    password: 'password', never: BROWSER
  },
  {
    program: 'Bitwarden', first: 'folder|collections', name: 'name', url: 'login_uri', usuario: 'login_username',
    password: 'login_password', listsAddresses: true,
    never: 'cards, identities, SSH keys, passkeys, former passwords and attachments'
  },
  {
    program: 'KeePassXC', first: 'Group', name: 'Title', url: 'URL', usuario: 'Username', password: 'Password',
    never: 'attachments, additional attributes, former passwords and the recycle bin',
    // A path begins with the name of the database's root.
    habits: { reference: REFERENCE, root: /^[^/]*\/?/ }
  },
  {
    // The program calls this "KeePass CSV (1.x)".
    program: 'KeePass 2', first: 'Account', name: 'Account', url: 'Web Site', usuario: 'Login Name',
    password: 'Password', hasBackslashes: true, habits: { reference: REFERENCE },
    never: 'groups, attachments, further fields and former passwords'
  },
  {
    program: '1Password', first: 'Title', mark: 'Favorite|Archived|Tags|Website', name: 'Title',
    url: 'Url|URL|Website', usuario: 'Username', password: 'Password',
    never: 'anything but logins, nor attachments or further fields'
  },
  {
    program: 'Apple', first: 'Title', mark: 'Url|Notes|OTPAuth', name: 'Title', url: 'URL|Url', usuario: 'Username',
    password: 'Password', never: 'passkeys and Wi-Fi passwords'
  },
  {
    program: 'LastPass', first: 'url', name: 'name', url: 'url', usuario: 'username', password: 'password',
    never: 'attachments, passkeys and former passwords',
    habits: { nothing: ['http://', 'http://sn', '(none)'], structured: /^NoteType:[^]*^Password:./m }
  },
  {
    program: 'Proton Pass', first: 'type', name: 'name', url: 'url', usuario: 'username|email', password: 'password',
    listsAddresses: true, never: 'attachments, passkeys and further fields'
  },
  {
    program: 'Dashlane', first: 'username', mark: 'title', name: 'title', url: 'url',
    usuario: 'username|username2|username3', password: 'password',
    never: 'anything but logins, for which the same export has further files'
  }
]
/** In lower case. */
const SYSTEMS = ['sistema', 'system', 'title']
const USERS = ['usuario', 'user', 'username']
const PLAIN_COLUMNS: readonly (readonly string[])[] = [SYSTEMS, ['url'], USERS, ['password']]
const NOTES = ['note', 'notes', 'comment', 'comments', 'extra', 'notas']
/** In lower case; other programs write no secrets there. */
const IGNORED = new Set([
  'favorite', 'fav', 'type', 'reprompt', 'icon', 'last modified', 'created', 'guid', 'timecreated', 'timelastused',
  'timepasswordchanged', 'createtime', 'modifytime', 'httprealm', 'formactionorigin'
])
/** By the start of a name in lower case. */
const KINDS: readonly (readonly [start: RegExp, kind: string])[] = [
  [/^(totp|otp|login_totp)/, 'one-time code'], [/^(fields|custom_fields)$/, 'other field'],
  [/^(folder|group|grouping|grupo|category|vault|collections)$/, 'folder'], [/^tags$/, 'tag'],
  [/^additional_urls$/, 'further address'], [/^(card|cvc|expirydate)/, 'card'],
  [/^(username|email)/, 'further user name'], [/^archived(date)?$/, 'archived']
]

const SEPARATORS: readonly Separator[] = [',', ';', '\t']
/** Excel writes and reads it before the header. */
const SEPARATOR_LINE = /^\ufeff?sep=([,;\t])\r?\n/
const OWN = 'this program'
const OWN_SHAPE = { ...CREATE_SHAPE, status: optional(oneOf(0, 1)), id: optional(number(1, Number.MAX_SAFE_INTEGER)) }
const ALIASES: { readonly [name: string]: string } = { system: 'sistema', user: 'usuario', notes: 'notas' }

/** JSON of other programs, by what their objects have. */
const OTHER_JSON: readonly (readonly [members: readonly string[], sentence: string])[] = [
  [['vaults', 'userId'], 'this is the JSON of Proton Pass: export it as CSV'],
  [['accounts'], 'this is the JSON in a 1PUX file of 1Password: export it as CSV'],
  [['items'], 'this JSON is of no known program: export it there as CSV']
]

/** `keepsGroups`: folders become groups. Throws an `OperatorError`, or `csv-malformed`, that names the line. */
export function readSource(bytes: Buffer, keepsGroups: boolean = true): Source {
  assertText(bytes)
  // JSON has no byte order mark (RFC 8259 §8.1), but editors write it.
  const json = readJson(bytes.toString('utf8', 0, 3) === '\ufeff' ? bytes.subarray(3) : bytes)
  if (json instanceof Map) return sourceOfObject(json, keepsGroups)
  if (Array.isArray(json)) return { format: OWN, unit: 'item', rows: ownRows(itemsOf(json), 'item') }
  if (json !== undefined) return { format: OWN, unit: 'line', rows: ownRows(json as Iterable<Numbered>, 'line') }
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
  throw first === undefined ? new OperatorError('there is nothing in it to import') : unknownHeader(first.cells)
}

/** Throws an `OperatorError` that says which kind of file it is, and what to do. */
function assertText(bytes: Buffer): void {
  const kdbx = bytes.subarray(0, 4).toString('hex') === '03d9a29a'
  if (kdbx) throw new OperatorError('this is a KeePass database: export it as CSV first')
  const packed = packedAs(bytes)
  const names = bytes.subarray(0, 2).toString('latin1') !== 'PK' ? '' : bytes.toString('latin1')
  if (names.includes('export.data')) throw new OperatorError('this is a 1PUX file of 1Password: export it as CSV')
  if (names.includes('Proton Pass/')) throw new OperatorError('this is the zip file of Proton Pass: export it as CSV')
  if (packed !== undefined) throw new OperatorError(`this is no text: ${packed}; unpack it first`)
  const isWide = /^(fffe|feff|00(?!00)..|(?!00)..00)/.test(bytes.toString('hex', 0, 2))
  if (isWide) throw new OperatorError('this is UTF-16: save it as CSV in UTF-8 (Excel: "CSV UTF-8")')
}

function sourceOfObject(json: JsonObject, keepsGroups: boolean): Source {
  const other = OTHER_JSON.find(([members]) => members.every(member => json.has(member)))
  if (isBitwarden(json) && (json.has('items') || other === undefined)) return bitwardenSource(json, keepsGroups)
  if (other !== undefined && !json.has('password')) throw new OperatorError(other[1])
  return { format: OWN, unit: 'line', rows: ownRows([{ line: 1, object: json }], 'line') }
}

/** Undefined if its header is none that is known. */
function sourceOfCsv(text: string, separator: Separator, keepsGroups: boolean): Source | undefined {
  const names = headerOf(text, separator)
  if (names === undefined) return undefined
  if (isOwnHeader(names)) {
    assertOnce(names, OWN_HEADER)
    return { format: OWN, unit: 'line', rows: ownRows(rowsOf(text, separator, false, row => ownObject(names, row))) }
  }
  const format = FORMATS.find(({ first = '', mark = '', name, url, usuario, password }) =>
    columnsIn(first, [names[0] ?? '']).length > 0 &&
    [mark, name, url, usuario, password].every(column => columnsIn(column, names).length > 0))
  const lower = names.map(name => name.toLowerCase())
  const isPlain = [SYSTEMS, USERS, ['password']].every(columns => columns.some(column => lower.includes(column)))
  if (format === undefined && !isPlain) return undefined
  const read = format === undefined ? plainReader(names, keepsGroups) : foreignReader(names, format, keepsGroups)
  const rows = rowsOf(text, separator, format?.hasBackslashes === true, read)
  return { format: format?.program ?? PLAIN, unit: 'line', never: format?.never, rows }
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
  const ofFormats = FORMATS.flatMap(({ first = '', mark = '', name, url, usuario, password }) =>
    [first, mark, name, url, usuario, password].join('|').split('|'))
  const known = new Set([...PLAIN_COLUMNS.flat(), ...ofFormats])
  known.delete('')
  if (!names.some(name => known.has(name))) return unknown('its first line names no known column')
  const seen = names.slice(0, 20).map(name => known.has(name) ? name : '?').join(',')
  return unknown(`its first line is no known header: ${seen}`)
}

function unknown(what: string): OperatorError {
  const programs = FORMATS.map(({ program }) => program).join(', ')
  return new OperatorError(`${what}; known are the CSV exports of ${programs}, any CSV with the columns system, user ` +
    'and password, the unencrypted .json of Bitwarden (Tools, Export vault), and what export writes here')
}

/** Two columns of one name are ambiguous. */
function assertOnce(names: readonly string[], used: readonly string[]): void {
  const twice = used.find(column => names.indexOf(column) !== names.lastIndexOf(column))
  if (twice !== undefined) throw new OperatorError(`its first line has two columns ${twice}; leave one of them out`)
}

type Reader = (row: CsvRow) => Row

/** Where the values of a row stand; of several places the first that is not empty counts. */
interface Places {
  readonly name: readonly number[]
  readonly url: readonly number[]
  readonly usuario: readonly number[]
  readonly password: readonly number[]
  readonly notas: readonly number[]
  readonly otp: readonly number[]
  readonly groups: readonly number[]
}

function placesOf(names: readonly string[], columns: readonly (readonly number[])[]): Places {
  const [name = [], url = [], usuario = [], password = []] = columns
  const used = new Set(columns.flat())
  const ofKind = (kind: string): number[] =>
    names.flatMap((column, at) => used.has(at) || kindOf(column) !== kind ? [] : [at])
  const notas = names.findIndex((column, at) => !used.has(at) && NOTES.includes(column.toLowerCase()))
  return {
    name, url, usuario, password, notas: notas < 0 ? [] : [notas], otp: ofKind('one-time code').slice(0, 1),
    groups: ofKind('folder')
  }
}

/** A spreadsheet's: any value of a column that it has besides is counted. */
function plainReader(names: readonly string[], keepsGroups: boolean): Reader {
  const lower = names.map(name => name.toLowerCase())
  const columns = PLAIN_COLUMNS.map(wanted => lower.flatMap((name, at) => wanted.includes(name) ? [at] : []))
  assertOnce(lower, [...PLAIN_COLUMNS.flat(), 'status'])
  const places = placesOf(names, columns)
  const status = lower.indexOf('status')
  const taken = new Set([...Object.values(places).flat(), status, lower.indexOf('id')])
  const others = names.flatMap((_, at) => taken.has(at) ? [] : [at])
  return ({ line, cells }) => {
    const state = cells[status] || '1'
    if (!['0', '1'].includes(state)) throw new OperatorError(`line ${line}: status must be 1, or 0 if it is deleted`)
    const dropped = others.filter(at => cells[at] !== '').map(at => kindOf(names[at]!))
    const marks = { isDeleted: state === '0', keepsGroups }
    return foreignRow(line, valuesOf(cells, places, [cellOf(cells, places.url)]), dropped, marks)
  }
}

function foreignReader(names: readonly string[], format: Format, keepsGroups: boolean): Reader {
  const { name, url, usuario, password, habits, listsAddresses } = format
  const columns = [name, url, usuario, password].map(ofOne => columnsIn(ofOne, names).filter(column => column !== ''))
  assertOnce(names, columns.flat())
  const places = placesOf(names, columns.map(ofOne => ofOne.map(column => names.indexOf(column))))
  const autofill = names.indexOf('autofillUrls')
  const taken = new Set([...Object.values(places).flat(), autofill])
  const others = names.flatMap((name, at) => taken.has(at) || IGNORED.has(name.toLowerCase()) ? [] : [at])
  return ({ line, cells }) => {
    const cell = cellOf(cells, places.url)
    const urls = [...listsAddresses === true ? addressesIn(cell) : [cell], ...autofillIn(cells[autofill])]
    const alternatives = [places.name, places.usuario, places.password]
      .flatMap(ofOne => ofOne.filter(at => cells[at] !== '').slice(1))
    const dropped = [...others, ...alternatives].filter(at => !['', 'false', '0'].includes(cells[at] ?? ''))
      .map(at => kindOf(names[at]!))
    return foreignRow(line, valuesOf(cells, places, urls), dropped, { keepsGroups }, habits)
  }
}

function cellOf(cells: readonly string[], places: readonly number[]): string {
  return places.map(at => cells[at] ?? '').find(text => text !== '') ?? ''
}

function valuesOf(cells: readonly string[], places: Places, urls: readonly string[]): Foreign {
  const { name, usuario, password, notas, otp, groups } = places
  return {
    name: cellOf(cells, name), urls, usuario: cellOf(cells, usuario), password: cellOf(cells, password),
    notas: cellOf(cells, notas), otp: cellOf(cells, otp), groups: groups.map(at => cells[at] ?? '')
  }
}

/** A comma is also a part of addresses: it separates two only before a scheme. */
function addressesIn(cell: string): readonly string[] { return cell.split(/,\s*(?=[a-z][a-z0-9+.-]*:\/\/)/i) }

/** Of Proton Pass: JSON that has the addresses once more. Another text is one more address. */
function autofillIn(cell: string = ''): readonly string[] {
  return [...cell.matchAll(/"url":("(?:[^"\\]|\\.)*")/g)].map(([, url]) => JSON.parse(url!) as string)
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
