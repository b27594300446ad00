/**
 * The files that entries are imported from: CSV as browsers and password managers export it, told apart by the header,
 * and this program's own JSON lines and CSV. The headers as they are written today:
 *
 * - Chrome, and Edge, Brave, …: name,url,username,password,note (older ones without note)
 * - Firefox: url,username,password,httpRealm,formActionOrigin,guid,timeCreated,timeLastUsed,timePasswordChanged
 * - Bitwarden: folder,favorite,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp
 *   (an organization's: collections in the place of folder,favorite)
 * - KeePassXC: Group,Title,Username,Password,URL,Notes,TOTP,Icon,Last Modified,Created
 * - 1Password: Title,Url,Username,Password,OTPAuth,Favorite,Archived,Tags,Notes (or Website in the place of Url)
 * - LastPass: url,username,password,totp,extra,name,grouping,fav (older ones without totp)
 */
import { IMPORTED } from '../api/import.ts'
import { csvRow, readCsv, type CsvRow } from '../csv/csv.ts'
import { disk } from '../journal/files.ts'
import { readJsonLines } from '../json/lines.ts'
import { check, number, sentenceOf } from '../json/shape.ts'
import { MAX_IMPORT_FILE_BYTES, MAX_JSON_DEPTH_LEVELS } from '../limits.ts'
import type { Entry, ImportedEntry } from '../store/record.ts'
import { Refusal } from './refusal.ts'

/** A row, the line that it begins in, and what it says; undefined where it holds no password. */
interface Row {
  readonly line: number
  readonly entry: ImportedEntry | undefined
}

/** What a file holds. */
export interface Source {
  readonly format: string
  /** Whether this program wrote it: then each row is an entry of its own, however much it is like another. */
  readonly isOwn: boolean
  readonly rows: readonly Row[]
}

/** A header is known by its first column and the others named here; further ones may stand anywhere between. */
interface Format {
  readonly program: string
  readonly first: string
  /** The columns that give `sistema`: a name or else, or where there are no names, the host of an address. */
  readonly name?: string
  readonly url: string
  readonly usuario: string
  readonly password: string
  /** A column that no other program writes, where the used ones could be another's. */
  readonly mark?: string
}

const FORMATS: readonly Format[] = [
  { program: 'Chrome', first: 'name', name: 'name', url: 'url', usuario: 'username', password: 'password' },
  { program: 'Firefox', first: 'url', mark: 'httpRealm', url: 'url', usuario: 'username', password: 'password' },
  ...['folder', 'collections'].map(first => ({
    program: 'Bitwarden', first, name: 'name', url: 'login_uri', usuario: 'login_username', password: 'login_password'
  })),
  { program: 'KeePassXC', first: 'Group', name: 'Title', url: 'URL', usuario: 'Username', password: 'Password' },
  ...['Url', 'Website'].map(url => ({
    program: '1Password', first: 'Title', name: 'Title', url, usuario: 'Username', password: 'Password'
  })),
  { program: 'LastPass', first: 'url', name: 'name', url: 'url', usuario: 'username', password: 'password' }
]
const OWN = 'this program'
const OWN_HEADER = ['id', 'sistema', 'usuario', 'password', 'status'] as const
const OWN_SHAPE = { ...IMPORTED, id: number(1, Number.MAX_SAFE_INTEGER) }

/** What stands for a name that a row does not have: no field of an entry is empty. */
const NAMELESS = '-'

/** Reads a file to import, whole. Throws a `Refusal`, or `csv-malformed`, that names the line. */
export function readSource(path: string): Source {
  if ((disk.stat(path)?.bytes ?? 0) > MAX_IMPORT_FILE_BYTES) {
    throw new Refusal(`${path} is larger than ${MAX_IMPORT_FILE_BYTES} bytes; split it`)
  }
  const bytes = disk.read(path)
  // JSON has no byte order mark (RFC 8259 §8.1), but editors put one in front; CSV may have one.
  const json = bytes.toString('utf8', 0, 3) === '\ufeff' ? bytes.subarray(3) : bytes
  if (json.find(byte => byte > 0x20) === 0x7b) return { format: OWN, isOwn: true, rows: ownRows(objectsOf(json)) }
  const [header, ...rows] = readCsv(bytes)
  if (header === undefined) throw new Refusal(`${path} is empty`)
  const names = header.cells
  if (OWN_HEADER.every((name, i) => names[i] === name)) {
    return { format: OWN, isOwn: true, rows: ownRows(rows.map(ownObject)) }
  }
  const format = FORMATS.find(({ program: _, first, ...columns }) =>
    names[0] === first && Object.values(columns).every(column => names.includes(column)))
  if (format === undefined) {
    const known = [...new Set(FORMATS.map(({ program }) => program))].join(', ')
    throw new Refusal(`${path} has a header that is not known; known are those of ${known}, and this program's own`)
  }
  return { format: format.program, isOwn: false, rows: rows.map(row => foreignRow(format, names, row)) }
}

function foreignRow({ name, url, usuario, password }: Format, names: readonly string[], { line, cells }: CsvRow): Row {
  const cell = (column: string): string => cells[names.indexOf(column)]!
  if (cell(password) === '') return { line, entry: undefined }
  const sistema = (name === undefined ? '' : cell(name)) || hostOf(cell(url)) || NAMELESS
  return { line, entry: { password: cell(password), sistema, usuario: cell(usuario) || NAMELESS, status: 1 } }
}

/** The host of an address, or what stands there instead of one. */
function hostOf(url: string): string { return (URL.canParse(url) && new URL(url).host) || url }

interface Numbered {
  readonly line: number
  readonly object: { readonly [field: string]: unknown }
}

function * objectsOf(bytes: ReturnType<typeof disk.read>): Generator<Numbered, void, void> {
  for (const { line, parsed } of readJsonLines(bytes, MAX_JSON_DEPTH_LEVELS)) {
    if (!parsed.ok) throw new Refusal(`line ${line}, column ${parsed.column}: it ${parsed.fault}`)
    yield { line, object: parsed.value }
  }
}

function ownObject({ line, cells }: CsvRow): Numbered {
  const value = (column: string, cell: string): string | number =>
    (column === 'id' || column === 'status') && /^(0|[1-9][0-9]*)$/.test(cell) ? Number(cell) : cell
  return { line, object: Object.fromEntries(OWN_HEADER.map((column, i) => [column, value(column, cells[i]!)])) }
}

/** The ids must ascend: then no line is there twice, and a new store gives each entry the place that it had. */
function ownRows(objects: Iterable<Numbered>): Row[] {
  let last = 0
  return Array.from(objects, ({ line, object }) => {
    const checked = check(OWN_SHAPE, object)
    if (!checked.ok) throw new Refusal(`line ${line}: ${sentenceOf(checked.errors)}`)
    const { id, ...entry } = checked.value
    if (id <= last) throw new Refusal(`line ${line}: the ids do not ascend; import one export at a time`)
    last = id
    return { line, entry }
  })
}

/** How entries are written. */
export interface Writer {
  readonly head: string
  /** The text of an entry; throws a `Refusal` for one that cannot be written so. */
  readonly row: (entry: Entry) => string
}

/** The formats of an export by their names. */
export const WRITERS: { readonly [format: string]: Writer } = {
  jsonl: { head: '', row: entry => `${JSON.stringify(entry)}\n` },
  csv: {
    head: csvRow(OWN_HEADER),
    row: entry => {
      const cells = OWN_HEADER.map(column => String(entry[column]))
      if (cells.some(cell => /\p{Surrogate}/u.test(cell))) {
        throw new Refusal(`entry ${entry.id} holds half a character, which CSV cannot hold; use --format jsonl`)
      }
      return csvRow(cells)
    }
  }
}
