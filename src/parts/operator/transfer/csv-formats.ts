/** CSV files of other programs, by their columns, and how their rows are read. */
import { OperatorError } from '../../../command.ts'
import type { CsvRow } from './csv.ts'
import { foreignRow, type Foreign, type Habits, type Row } from './import-row.ts'

/**
 * `first` and `mark` identify the program if other columns do not. Bars separate alternatives: a
 * file has at least one of them, and of a row the first that is not empty counts.
 */
export interface Format {
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
export const PLAIN = 'CSV'
/** The first format that fits counts. */
export const FORMATS: readonly Format[] = [
  {
    program: 'NordPass',
    first: 'name',
    mark: 'cardholdername',
    name: 'name',
    url: 'url',
    usuario: 'username',
    password: 'password',
    never: 'files and passkeys'
  },
  {
    program: 'Chrome',
    first: 'name',
    name: 'name',
    url: 'url',
    usuario: 'username',
    password: 'password',
    never: BROWSER
  },
  {
    program: 'Firefox',
    first: 'url',
    mark: 'httpRealm',
    name: '',
    url: 'url',
    usuario: 'username',
    password: 'password',
    never: BROWSER
  },
  {
    program: 'Bitwarden',
    first: 'folder|collections',
    name: 'name',
    url: 'login_uri',
    usuario: 'login_username',
    password: 'login_password',
    listsAddresses: true,
    never: 'cards, identities, SSH keys, passkeys, former passwords and attachments'
  },
  {
    program: 'KeePassXC',
    first: 'Group',
    name: 'Title',
    url: 'URL',
    usuario: 'Username',
    password: 'Password',
    never: 'attachments, additional attributes, former passwords and the recycle bin',
    // A path begins with the name of the database's root.
    habits: { reference: REFERENCE, root: /^[^/]*\/?/ }
  },
  {
    // The program calls this "KeePass CSV (1.x)".
    program: 'KeePass 2',
    first: 'Account',
    name: 'Account',
    url: 'Web Site',
    usuario: 'Login Name',
    password: 'Password',
    hasBackslashes: true,
    habits: { reference: REFERENCE },
    never: 'groups, attachments, further fields and former passwords'
  },
  {
    program: '1Password',
    first: 'Title',
    mark: 'Favorite|Archived|Tags|Website',
    name: 'Title',
    url: 'Url|URL|Website',
    usuario: 'Username',
    password: 'Password',
    never: 'anything but logins, nor attachments or further fields'
  },
  {
    program: 'Apple',
    first: 'Title',
    mark: 'Url|Notes|OTPAuth',
    name: 'Title',
    url: 'URL|Url',
    usuario: 'Username',
    password: 'Password',
    never: 'passkeys and Wi-Fi passwords'
  },
  {
    program: 'LastPass',
    first: 'url',
    name: 'name',
    url: 'url',
    usuario: 'username',
    password: 'password',
    never: 'attachments, passkeys and former passwords',
    habits: {
      nothing: ['http://', 'http://sn', '(none)'],
      structured: /^NoteType:[^]*^Password:./m
    }
  },
  {
    program: 'Proton Pass',
    first: 'type',
    name: 'name',
    url: 'url',
    usuario: 'username|email',
    password: 'password',
    listsAddresses: true,
    never: 'attachments, passkeys and further fields'
  },
  {
    program: 'Dashlane',
    first: 'username',
    mark: 'title',
    name: 'title',
    url: 'url',
    usuario: 'username|username2|username3',
    password: 'password',
    never: 'anything but logins, for which the same export has further files'
  }
]
/** In lower case. */
export const SYSTEMS: readonly string[] = ['sistema', 'system', 'title']
export const USERS: readonly string[] = ['usuario', 'user', 'username']
export const PLAIN_COLUMNS: readonly (readonly string[])[] = [SYSTEMS, ['url'], USERS, ['password']]
const NOTES = ['note', 'notes', 'comment', 'comments', 'extra', 'notas']
/** In lower case; other programs write no secrets there. */
const IGNORED = new Set([
  'favorite',
  'fav',
  'type',
  'reprompt',
  'icon',
  'last modified',
  'created',
  'guid',
  'timecreated',
  'timelastused',
  'timepasswordchanged',
  'createtime',
  'modifytime',
  'httprealm',
  'formactionorigin'
])
/** By the start of a name in lower case. */
const KINDS: readonly (readonly [start: RegExp, kind: string])[] = [
  [/^(totp|otp|login_totp)/, 'one-time code'],
  [/^(fields|custom_fields)$/, 'other field'],
  [/^(folder|group|grouping|grupo|category|vault|collections)$/, 'folder'],
  [/^tags$/, 'tag'],
  [/^additional_urls$/, 'further address'],
  [/^(card|cvc|expirydate)/, 'card'],
  [/^(username|email)/, 'further user name'],
  [/^archived(date)?$/, 'archived']
]

/** Those of the alternatives that are among the names; a format that asks for none has ''. */
export function columnsIn(columns: string, names: readonly string[]): readonly string[] {
  return columns.split('|').filter(column => column === '' || names.includes(column))
}

/** Two columns of one name are ambiguous. */
export function assertOnce(names: readonly string[], used: readonly string[]): void {
  const twice = used.find(column => names.indexOf(column) !== names.lastIndexOf(column))
  if (twice !== undefined)
    throw new OperatorError(`its first line has two columns ${twice}; leave one of them out`)
}

export type Reader = (row: CsvRow) => Row

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
    names.flatMap((column, at) => (used.has(at) || kindOf(column) !== kind ? [] : [at]))
  const notas = names.findIndex(
    (column, at) => !used.has(at) && NOTES.includes(column.toLowerCase())
  )
  return {
    name,
    url,
    usuario,
    password,
    notas: notas < 0 ? [] : [notas],
    otp: ofKind('one-time code').slice(0, 1),
    groups: ofKind('folder')
  }
}

/** A spreadsheet's: any value of a column that it has besides is counted. */
export function plainReader(names: readonly string[], keepsGroups: boolean): Reader {
  const lower = names.map(name => name.toLowerCase())
  const columns = PLAIN_COLUMNS.map(wanted =>
    lower.flatMap((name, at) => (wanted.includes(name) ? [at] : []))
  )
  assertOnce(lower, [...PLAIN_COLUMNS.flat(), 'status'])
  const places = placesOf(names, columns)
  const status = lower.indexOf('status')
  const taken = new Set([...Object.values(places).flat(), status, lower.indexOf('id')])
  const others = names.flatMap((_, at) => (taken.has(at) ? [] : [at]))
  return ({ line, cells }) => {
    const state = cells[status] || '1'
    if (!['0', '1'].includes(state))
      throw new OperatorError(`line ${line}: status must be 1, or 0 if it is deleted`)
    const dropped = others.filter(at => cells[at] !== '').map(at => kindOf(names[at]!))
    const marks = { isDeleted: state === '0', keepsGroups }
    return foreignRow(line, valuesOf(cells, places, [cellOf(cells, places.url)]), dropped, marks)
  }
}

export function foreignReader(
  names: readonly string[],
  format: Format,
  keepsGroups: boolean
): Reader {
  const { name, url, usuario, password, habits, listsAddresses } = format
  const columns = [name, url, usuario, password].map(ofOne =>
    columnsIn(ofOne, names).filter(column => column !== '')
  )
  assertOnce(names, columns.flat())
  const places = placesOf(
    names,
    columns.map(ofOne => ofOne.map(column => names.indexOf(column)))
  )
  const autofill = names.indexOf('autofillUrls')
  const taken = new Set([...Object.values(places).flat(), autofill])
  const others = names.flatMap((name, at) =>
    taken.has(at) || IGNORED.has(name.toLowerCase()) ? [] : [at]
  )
  return ({ line, cells }) => {
    const cell = cellOf(cells, places.url)
    const urls = [
      ...(listsAddresses === true ? addressesIn(cell) : [cell]),
      ...autofillIn(cells[autofill])
    ]
    const alternatives = [places.name, places.usuario, places.password].flatMap(ofOne =>
      ofOne.filter(at => cells[at] !== '').slice(1)
    )
    const dropped = [...others, ...alternatives]
      .filter(at => !['', 'false', '0'].includes(cells[at] ?? ''))
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
    name: cellOf(cells, name),
    urls,
    usuario: cellOf(cells, usuario),
    password: cellOf(cells, password),
    notas: cellOf(cells, notas),
    otp: cellOf(cells, otp),
    groups: groups.map(at => cells[at] ?? '')
  }
}

/** A comma is also a part of addresses: it separates two only before a scheme. */
function addressesIn(cell: string): readonly string[] {
  return cell.split(/,\s*(?=[a-z][a-z0-9+.-]*:\/\/)/i)
}

/** Of Proton Pass: JSON that has the addresses once more. Another text is one more address. */
function autofillIn(cell: string = ''): readonly string[] {
  if (cell !== '' && !/^[[{]/.test(cell)) return [cell]
  return [...cell.matchAll(/"url":("(?:[^"\\]|\\.)*")/g)].map(
    ([, url]) => JSON.parse(url!) as string
  )
}

function kindOf(column: string): string {
  const name = column.toLowerCase()
  return KINDS.find(([start]) => start.test(name))?.[1] ?? `column ${column}`
}
