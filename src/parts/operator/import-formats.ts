/**
 * The files that entries are imported from, recognised by what is in them: CSV as browsers and password managers export
 * it, Bitwarden's JSON, KeePass' XML, and what this service gives itself: JSON lines, a JSON array, CSV. The headers of
 * CSV as they are written today:
 *
 * - NordPass: name,url,username,password,note,cardholdername,… (some with additional_urls after url)
 * - Chrome, and Edge, Brave, …: name,url,username,password,note (older ones without note)
 * - Firefox: url,username,password,httpRealm,formActionOrigin,guid,timeCreated,timeLastUsed,timePasswordChanged
 * - Bitwarden: folder,favorite,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp
 *   (an organization's: collections instead of folder,favorite)
 * - KeePassXC: Group,Title,Username,Password,URL,Notes,TOTP,Icon,Last Modified,Created
 * - KeePass 2 ("KeePass CSV (1.x)"): Account,Login Name,Password,Web Site,Comments; with backslashes
 * - Apple Passwords and Safari: Title,URL,Username,Password,Notes,OTPAuth
 * - 1Password: Title,Url,Username,Password,OTPAuth,Favorite,Archived,Tags,Notes (or Website instead of Url)
 * - LastPass: url,username,password,totp,extra,name,grouping,fav (older ones without totp)
 * - Proton Pass: type,name,url,email,username,password,note,totp,createTime,modifyTime,vault (older ones without email)
 * - Dashlane: username,username2,username3,title,password,note,url,category,otpUrl
 * - anything else with columns called sistema, usuario and password, and perhaps status
 */
import type { Buffer } from 'node:buffer'
import { Failure } from '../../errors.ts'
import { number } from '../../store/rules.ts'
import { check, optional, sentenceOf } from '../../store/validate.ts'
import { ENTRY_FIELDS, FIELDS } from '../../store/entry.ts'
import { bitwardenSource } from './bitwarden-json.ts'
import { decodeUtf8, readCsv, type CsvRow, type Separator } from './csv.ts'
import { OWN_HEADER } from './export-formats.ts'
import { IMPORTED } from './import-routes.ts'
import { foreignRow, type Row, type Source } from './import-row.ts'
import { jsonKind, readObjects, type Numbered } from './json-objects.ts'
import { keepassSource } from './keepass-xml.ts'
import { OperatorError } from '../command.ts'

/**
 * The columns of a program's file: the first one, where the used ones do not identify it; one that no other program
 * writes; those of a name, or else the host of an address, a user name and a password. Of several, with bars between
 * them, the first that is not empty counts.
 */
type Format = readonly [
  program: string, first: string, mark: string, sistema: string, url: string, usuario: string, password: string
]

/** The first that fits counts. */
const FORMATS: readonly Format[] = [
  ['NordPass', 'name', 'cardholdername', 'name', 'url', 'username', 'password'],
  ['Chrome', 'name', '', 'name', 'url', 'username', 'password'],
  ['Firefox', 'url', 'httpRealm', '', 'url', 'username', 'password'],
  ['Bitwarden', 'folder', '', 'name', 'login_uri', 'login_username', 'login_password'],
  ['Bitwarden', 'collections', '', 'name', 'login_uri', 'login_username', 'login_password'],
  ['KeePassXC', 'Group', '', 'Title', 'URL', 'Username', 'Password'],
  ['KeePass 2', 'Account', '', 'Account', 'Web Site', 'Login Name', 'Password'],
  ['Apple', 'Title', '', 'Title', 'URL', 'Username', 'Password'],
  ['1Password', 'Title', '', 'Title', 'Url', 'Username', 'Password'],
  ['1Password', 'Title', '', 'Title', 'Website', 'Username', 'Password'],
  ['LastPass', 'url', '', 'name', 'url', 'username', 'password'],
  ['Proton Pass', 'type', '', 'name', 'url', 'username|email', 'password'],
  ['Proton Pass', 'type', '', 'name', 'url', 'username', 'password'],
  ['Dashlane', 'username', 'title', 'title', 'url', 'username|username2|username3', 'password'],
  ['CSV', '', '', 'sistema', '', 'usuario', 'password']
]
/** Those that write `\"` and `\\` for a quote and a backslash. */
const WITH_BACKSLASHES = ['KeePass 2']

const SEPARATORS: readonly Separator[] = [',', ';', '\t']
const OWN = 'this program'
const OWN_SHAPE = { ...IMPORTED, status: optional(IMPORTED.status), id: optional(number(1, Number.MAX_SAFE_INTEGER)) }

/** Reads what is to be imported. Throws an `OperatorError`, or `csv-malformed`, that names the line. */
export function readSource(bytes: Buffer): Source {
  // JSON has no byte order mark (RFC 8259 §8.1), but editors put one in front; CSV may have one.
  const json = bytes.toString('utf8', 0, 3) === '\ufeff' ? bytes.subarray(3) : bytes
  const kind = jsonKind(json)
  const bitwarden = kind === 'object' ? bitwardenSource(json) : undefined
  if (bitwarden !== undefined) return bitwarden
  if (kind !== undefined) return { format: OWN, rows: ownRows(readObjects(json)) }
  const text = decodeUtf8(bytes)
  if (text.trimStart().startsWith('<')) return keepassSource(text, unknown('this XML is not that of KeePass'))
  for (const separator of SEPARATORS) {
    const names = headerOf(text, separator)
    if (names === undefined) continue
    if (isOwnHeader(names)) {
      assertOnce(names, OWN_HEADER)
      return { format: OWN, rows: ownRows(rowsOf(text, separator, false, row => ownObject(names, row))) }
    }
    const format = FORMATS.find(([, first, ...columns]) =>
      (first === '' || names[0] === first) && columns.flatMap(columnsIn).every(column => names.includes(column)))
    if (format === undefined) continue
    const [program, , , ...used] = format
    const status = program === 'CSV' ? 'status' : ''
    assertOnce(names, [...used, status].flatMap(columnsIn))
    const places = [...used, status].map(columns => columnsIn(columns).map(column => names.indexOf(column)))
    const hasBackslashes = WITH_BACKSLASHES.includes(program)
    return { format: program, rows: rowsOf(text, separator, hasBackslashes, row => csvRowOf(places, row)) }
  }
  const [first] = readCsv(text)
  throw first === undefined ? new OperatorError('there is nothing in it to import') : unknownHeader(first.cells)
}

/** The cells of the first row; undefined where it cannot be read with this separator. */
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

function columnsIn(columns: string): string[] { return columns.split('|').filter(column => column !== '') }

/** Names the columns that some program has; another one could be a password of a file without a header. */
function unknownHeader(names: readonly string[]): OperatorError {
  const known = new Set(FORMATS.flatMap(([, ...columns]) => columns.flatMap(columnsIn)))
  if (!names.some(name => known.has(name))) return unknown('its first line names no column that is known')
  const seen = names.slice(0, 20).map(name => known.has(name) ? name : '?').join(',')
  return unknown(`its first line reads ${seen}, which is no header that is known`)
}

/** Says what a file must be, and how to get such a one. */
function unknown(what: string): OperatorError {
  const programs = [...new Set(FORMATS.map(([program]) => program))].filter(name => name !== 'CSV').join(', ')
  return new OperatorError(`${what}; known are the CSV exports of ${programs}, any CSV with the columns sistema, ` +
    'usuario and password, the unencrypted .json of Bitwarden (Tools, Export vault), the XML of KeePass 2 (File, ' +
    'Export) and KeePassXC (Database, Export, XML), and what export writes here')
}

/** Refuses a header with two columns of one name that is used: which of them is meant cannot be known. */
function assertOnce(names: readonly string[], used: readonly string[]): void {
  const twice = used.find(column => names.indexOf(column) !== names.lastIndexOf(column))
  if (twice !== undefined) throw new OperatorError(`its first line has two columns ${twice}; leave one of them out`)
}

/** `places`: where the columns of name, address, user name, password and status are. */
function csvRowOf(places: readonly (readonly number[])[], { line, cells }: CsvRow): Row {
  const [name = '', url = '', usuario = '', password = '', status = '1'] =
    places.map(columns => columns.map(at => cells[at] ?? '').find(text => text !== ''))
  if (!['0', '1'].includes(status)) throw new OperatorError(`line ${line}: status must be 1, or 0 where it is deleted`)
  return foreignRow(line, { name, url, usuario, password }, false, status === '0')
}

/** Whether this program has written a header, perhaps a version with fewer fields. */
function isOwnHeader(names: readonly string[]): boolean {
  const isRequired = (column: string): boolean =>
    !ENTRY_FIELDS.some(field => field === column && !FIELDS[field].isRequired)
  return names[0] === 'id' && names.every(name => OWN_HEADER.some(column => column === name)) &&
    OWN_HEADER.filter(isRequired).every(column => names.includes(column))
}

/** A field that an entry need not have is missing where its cell is empty. */
function ownObject(names: readonly string[], { line, cells }: CsvRow): Numbered {
  const value = (column: string, cell: string): string | number =>
    (column === 'id' || column === 'status') && /^(0|[1-9][0-9]*)$/.test(cell) ? Number(cell) : cell
  const isMissing = (column: string, cell: string): boolean =>
    cell === '' && ENTRY_FIELDS.some(field => field === column && !FIELDS[field].isRequired)
  const given = names.map((column, i) => [column, cells[i]!] as const)
    .filter(([column, cell]) => !isMissing(column, cell))
  return { line, object: new Map(given.map(([column, cell]) => [column, value(column, cell)])) }
}

/** Ids must ascend: then no line is there twice, and a new store gives each entry the place that it had. */
function * ownRows(objects: Iterable<Numbered>): Generator<Row, void, void> {
  let last = 0
  for (const { line, object } of objects) {
    const checked = check(OWN_SHAPE, object)
    if (!object.has('password')) throw unknown(`line ${line}: this object has no member password`)
    if (!checked.ok) throw new OperatorError(`line ${line}: ${sentenceOf(checked.errors)}`)
    const { id, status = 1, ...fields } = checked.value
    if (id !== undefined && id <= last) {
      throw new OperatorError(`line ${line}: the ids do not ascend; import one export at a time`)
    }
    last = id ?? last
    yield { line, entry: { ...fields, status }, isOwn: id !== undefined, losesAddress: false }
  }
}
