import { Buffer } from 'node:buffer'
import { OperatorError } from '../../commands/command.ts'
import { parseJson, type Json, type JsonObject } from '../../../http/json.ts'
import { MAX_JSON_DEPTH_LEVELS } from '../../../limits.ts'
import type { CsvRow } from './csv.ts'
import { foreignRow, type Habits, type Row } from './import-row.ts'

/**
 * `header`: what only this program writes, with commas between. Bars separate alternatives: a file
 * has at least one of them; of those in a row, the first that is not empty counts.
 */
export interface Format {
  readonly program: string
  readonly header: RegExp
  readonly name: string
  readonly url: string
  readonly usuario: string
  readonly password: string
  /** What its files never contain. */
  readonly never?: string
  /** What its files do not tell of its recycle bin. */
  readonly bin?: string
  readonly habits?: Habits
  /** Several addresses in one cell. */
  readonly listsAddresses?: true
  readonly moreUrls?: string
  /** A column of several folders, separated by commas. */
  readonly listsGroups?: string
  /** It writes `\"` and `\\`. */
  readonly hasBackslashes?: true
}

const BROWSER = 'passkeys, payment cards and addresses'
/** https://keepass.info/help/base/placeholders.html: a value that KeePass puts there. */
const PLACEHOLDER = new RegExp(
  [
    '\\{(REF:[A-Z]@|[SC]:|CMD:|T-[A-Z-]+:|',
    '(TITLE|USERNAME|URL|BASE|PASSWORD|NOTES|UUID|GROUP|PICKCHARS|T(IME)?OTP|HMACOTP|',
    '(DT|DB|ENV)_\\w+)(_[A-Z_]+)?[:}])'
  ].join(''),
  'i'
)
/** The first format that fits counts. */
export const FORMATS: readonly Format[] = [
  {
    program: 'NordPass',
    header: /^name,.*cardholdername/,
    name: 'name',
    url: 'url',
    usuario: 'username',
    password: 'password',
    never: 'files and passkeys'
  },
  {
    program: 'Chrome',
    header: /^name,url,username,password(,|$)/,
    name: 'name',
    url: 'url',
    usuario: 'username',
    password: 'password',
    never: BROWSER
  },
  {
    program: 'Firefox',
    header: /^url,.*httpRealm/,
    name: '',
    url: 'url',
    usuario: 'username',
    password: 'password',
    moreUrls: 'formActionOrigin',
    never: BROWSER
  },
  {
    program: 'Bitwarden',
    header: /^(folder|collections),.*login_uri/,
    name: 'name',
    url: 'login_uri',
    usuario: 'login_username',
    password: 'login_password',
    listsAddresses: true,
    listsGroups: 'collections',
    never: 'cards, identities, SSH keys, passkeys, former passwords and attachments'
  },
  {
    program: 'KeePassXC',
    header: /^Group,Title,Username,Password,URL,Notes(,|$)/,
    name: 'Title',
    url: 'URL',
    usuario: 'Username',
    password: 'Password',
    never: 'attachments, additional attributes and former passwords',
    bin: 'a recycle bin of another name than "Recycle Bin" is a group like any other',
    habits: {
      placeholder: PLACEHOLDER,
      hasRoot: true,
      bin: { name: 'Recycle Bin', path: /^[^/]*\/Recycle Bin(\/|$)/ }
    }
  },
  {
    // The program calls this "KeePass CSV (1.x)".
    program: 'KeePass 2',
    header: /^Account,.*Login Name,.*Web Site/,
    name: 'Account',
    url: 'Web Site',
    usuario: 'Login Name',
    password: 'Password',
    hasBackslashes: true,
    habits: { placeholder: PLACEHOLDER },
    never: 'groups, attachments, further fields and former passwords',
    bin: 'the file does not tell which entries were in the recycle bin'
  },
  {
    program: '1Password',
    header: /^Title,.*Favorite,Archived,Tags/,
    name: 'Title',
    url: 'Url|URL|Website',
    usuario: 'Username',
    password: 'Password',
    never: 'anything but logins, nor attachments or further fields'
  },
  {
    program: 'Apple',
    header: /^Title,(URL|Url),Username,Password(,Notes)?(,OTPAuth)?$/,
    name: 'Title',
    url: 'URL|Url',
    usuario: 'Username',
    password: 'Password',
    never: 'passkeys and Wi-Fi passwords'
  },
  {
    program: 'LastPass',
    header: /^url,.*extra,name,grouping/,
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
    header: /^type,.*createTime,modifyTime/,
    name: 'name',
    url: 'url',
    usuario: 'username|email',
    password: 'password',
    listsAddresses: true,
    moreUrls: 'autofillUrls',
    never: 'attachments, passkeys and further fields'
  },
  {
    program: 'Dashlane',
    header: /^username,.*username2,/,
    name: 'title',
    url: 'url',
    usuario: 'username|username2|username3',
    password: 'password',
    never: 'anything but logins, for which the same export has further files'
  }
]
/** Its columns may be in any case. What else it has is not known. */
export const SPREADSHEET: Format = {
  program: 'CSV',
  header: /^/,
  name: 'sistema|system|title|name',
  url: 'url|website',
  usuario: 'usuario|user|username',
  password: 'password'
}
const NOTES = ['note', 'notes', 'comment', 'comments', 'extra', 'notas']
/** By columns in lower case, what other programs write by themselves. */
const HARMLESS: readonly (readonly [column: RegExp, value: RegExp])[] = [
  [/^(favorite|fav|reprompt)$/, /^(true|false|0|1)$/i],
  [/^archived$/, /^(false|0)$/i],
  [/^(icon|createtime|modifytime|timecreated|timelastused|timepasswordchanged)$/, /^\d+$/],
  [/^(created|last modified)$/, /^\d{4}-\d\d-\d\dT[\d:.]+Z?$/],
  [/^guid$/, /^\{[\da-f-]*\}$/i],
  [/^type$/, /^(login|password|note|alias|card|credit_?card|identity|document|ssh_?key|wifi)$/i]
]
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

/** The alternatives that are among the names; a format that asks for none has ''. */
export function columnsIn(columns: string, names: readonly string[]): readonly string[] {
  return columns.split('|').filter(column => column === '' || names.includes(column))
}

export function assertOnce(names: readonly string[], used: readonly string[]): void {
  const twice = used.find(column => names.indexOf(column) !== names.lastIndexOf(column))
  if (twice !== undefined)
    throw new OperatorError(`its first line has two columns ${twice}; leave one of them out`)
}

export type ReadRow = (row: CsvRow) => Row

/** Of several places, the first that is not empty counts. */
interface Places {
  readonly name: readonly number[]
  readonly url: readonly number[]
  readonly usuario: readonly number[]
  readonly password: readonly number[]
  readonly notas: readonly number[]
  readonly otp: readonly number[]
  readonly groups: readonly number[]
}

function placesOf(names: readonly string[], { name, url, usuario, password }: Format): Places {
  const [names_, urls, users, passwords] = [name, url, usuario, password].map(columns =>
    columnsIn(columns, names)
      .filter(column => column !== '')
      .map(column => names.indexOf(column))
  ) as [number[], number[], number[], number[]]
  const used = new Set([names_, urls, users, passwords].flat())
  const where = (fits: (column: string) => boolean): number[] =>
    names.flatMap((column, at) => (!used.has(at) && fits(column) ? [at] : []))
  return {
    name: names_,
    url: urls,
    usuario: users,
    password: passwords,
    notas: where(column => NOTES.includes(column.toLowerCase())),
    otp: where(column => kindOf(column) === 'one-time code'),
    groups: where(column => kindOf(column) === 'folder')
  }
}

/** Counts each value that an entry has no place for. */
export function readerOf(given: readonly string[], format: Format, keepsGroups: boolean): ReadRow {
  const isPlain = format === SPREADSHEET
  const names = isPlain ? given.map(name => name.toLowerCase()) : given
  const { habits, listsAddresses = false, listsGroups, moreUrls } = format
  const places = placesOf(names, format)
  const { url, groups, name, usuario, password, notas, otp } = places
  const columnOf = (column: string | undefined): number =>
    column === undefined ? -1 : names.indexOf(column)
  const status = isPlain ? columnOf('status') : -1
  const more = columnOf(moreUrls)
  const one = [name, usuario, password]
  assertOnce(
    names,
    [...[...one, url].flat(), status].filter(at => at >= 0).map(at => names[at]!)
  )
  const taken = new Set([...Object.values(places).flat(), status, more])
  const others = names.flatMap((_, at) => (taken.has(at) ? [] : [at]))
  const isHarmless = (at: number, text: string): boolean =>
    isPlain
      ? names[at] === 'id' && /^\d+$/.test(text)
      : HARMLESS.some(
          ([column, value]) => column.test(names[at]!.toLowerCase()) && value.test(text)
        )

  return ({ line, cells }) => {
    const cell = (at: number): string => cells[at] ?? ''
    const first = (of: readonly number[]): string => of.map(cell).find(text => text !== '') ?? ''
    const state = cell(status) || '1'
    if (!['0', '1'].includes(state))
      throw new OperatorError(`line ${line}: status must be 1, or 0 if it is deleted`)

    const lost = [
      ...others.filter(at => cell(at) !== '' && !isHarmless(at, cell(at))),
      ...[...one, notas, otp].flatMap(of =>
        of.filter(at => cell(at) !== '' && cell(at) !== first(of))
      )
    ]
    const row = {
      name: first(name),
      urls: [
        ...url.flatMap(at => (listsAddresses ? addressesIn(cell(at)) : [cell(at)])),
        ...furtherIn(cell(more))
      ],
      usuario: first(usuario),
      password: first(password),
      notas: first(notas),
      otp: first(otp),
      groups: groups.flatMap(at =>
        names[at] === listsGroups
          ? cell(at)
              .split(',')
              .map(text => text.trim())
          : [cell(at)]
      )
    }
    const dropped = lost.map(at => kindOf(given[at]!))
    return foreignRow(line, row, dropped, { isDeleted: state === '0', keepsGroups }, habits)
  }
}

/** A comma may be part of an address: it separates two only before a scheme. */
function addressesIn(cell: string): readonly string[] {
  return cell.split(/,\s*(?=[a-z][a-z0-9+.-]*:\/\/)/i)
}

/** As Proton Pass writes it: a list in JSON, or one address. */
function furtherIn(cell: string): readonly string[] {
  const list = parseJson(Buffer.from(cell), MAX_JSON_DEPTH_LEVELS)
  const isKnown = (one: Json): one is JsonObject =>
    one instanceof Map &&
    [...one].every(([name, value]) => typeof value === (name === 'url' ? 'string' : 'number'))
  return list.ok && Array.isArray(list.value) && list.value.every(isKnown)
    ? list.value.map(one => (one.get('url') ?? '') as string)
    : [cell]
}

function kindOf(column: string): string {
  const name = column.toLowerCase()
  return KINDS.find(([start]) => start.test(name))?.[1] ?? `column ${column}`
}
