import type { EntryRow } from '../../../entries/entry.ts'
import { CREATE_SHAPE, FORMER_SHAPE } from '../../../entries/entry-shapes.ts'
import { hasUnseen } from '../../../rights/groups.ts'

export interface Row {
  /** Its first line, or its place in a list, from 1. */
  readonly line: number
  /** Undefined without a usable password. */
  readonly entry: EntryRow | undefined
  /** This program wrote it: an equal row is another entry. */
  readonly isOwn: boolean
  /** Kinds of values that an entry has no place for. */
  readonly dropped: readonly string[]
}

/** Rows are read one by one; a malformed row throws. */
export interface Source {
  readonly format: string
  readonly unit: 'line' | 'item'
  /** Undefined: the file holds everything. */
  readonly never?: string | undefined
  /** What the file does not tell of its recycle bin. */
  readonly bin?: string | undefined
  readonly rows: Iterable<Row>
}

/** As its program wrote it; empty: not given. */
export interface Foreign {
  readonly name: string
  readonly urls: readonly string[]
  readonly usuario: string
  readonly password: string
  readonly notas: string
  /** The secret of one-time codes, or a text of another form. */
  readonly otp: string
  readonly groups: readonly string[]
}

/** What a program writes instead of values, or for itself. */
export interface Habits {
  /** A text that only this program replaces by a value. */
  readonly placeholder?: RegExp
  /** Addresses and folders that mean that there is none. */
  readonly nothing?: readonly string[]
  /** How notes begin that hold several values, such as a password. */
  readonly structured?: RegExp
  /** Each path of folders begins with the name of the whole. */
  readonly hasRoot?: boolean
  /** By a folder's path. */
  readonly bin?: { readonly name: string; readonly path: RegExp }
}

interface Marks {
  readonly isOwn?: boolean
  readonly isDeleted?: boolean
  readonly keepsGroups: boolean
}

/** Required fields must not be empty. */
const NAMELESS = '-'

/** Firefox keeps the keys of an account there, as if it were a login. */
const FIREFOX_KEYS = 'chrome://FirefoxAccounts'

function rootAndRest(path: string): readonly [root: string, rest: string] {
  const [root = '', ...rest] = path.split('/')
  return [root, rest.join('/')]
}

export function foreignRow(
  line: number,
  given: Foreign,
  dropped: readonly string[],
  { isOwn = false, isDeleted = false, keepsGroups }: Marks,
  { placeholder, nothing = [], structured, hasRoot = false, bin }: Habits = {}
): Row {
  const { name, usuario, password, notas, otp } = given
  const noEntry = (...kinds: readonly string[]): Row => ({
    line,
    isOwn,
    entry: undefined,
    dropped: kinds
  })
  if (!isOwn && given.urls.includes(FIREFOX_KEYS)) return noEntry('keys of a Firefox account')
  if (bin !== undefined && given.groups.some(path => bin.path.test(path)))
    return noEntry(`in a group ${bin.name}`)

  const [url = '', ...urls] = given.urls.filter(text => text !== '' && !nothing.includes(text))
  const paths = given.groups
    .filter(text => text !== '' && !nothing.includes(text))
    .map(path => (hasRoot ? rootAndRest(path) : (['', path] as const)))
  const [group = '', ...groups] = paths
    .map(([, rest]) => rest.trim())
    .filter((text, i, all) => text !== '' && all.indexOf(text) === i)
  const isPlaceholder = (text: string): boolean => placeholder?.test(text) === true
  const shape = isOwn ? FORMER_SHAPE : CREATE_SHAPE
  const isKept = (field: 'otp' | 'grupo', text: string): boolean =>
    text !== '' && shape[field].fault(field, text) === undefined
  const keepsOtp = isKept('otp', otp)
  const keepsGroup = keepsGroups && isKept('grupo', group) && (isOwn || !hasUnseen(group))
  const kinds = new Set([
    ...dropped,
    ...(otp !== '' && !keepsOtp ? ['one-time code'] : []),
    ...(group !== '' && !keepsGroup ? ['folder'] : []),
    ...(urls.some(text => text !== url) ? ['further address'] : []),
    ...(groups.length > 0 ? ['further folder'] : []),
    ...paths.flatMap(([root]) => (root === '' ? [] : [`root group ${root}`])),
    ...([name, usuario, password, url].some(isPlaceholder) ? ['placeholder'] : [])
  ])
  if (password === '' || isPlaceholder(password)) {
    const isStructured = password === '' && structured?.test(notas) === true
    return noEntry(...new Set([...kinds, ...lostWith({ ...given, url, group }, isStructured)]))
  }
  const entry = {
    password,
    sistema: name || hostOf(url) || NAMELESS,
    usuario: usuario || NAMELESS,
    ...(url && { url }),
    ...(notas && { notas }),
    ...(keepsGroup && { grupo: group }),
    ...(keepsOtp && { otp })
  }
  return { line, isOwn, entry: { ...entry, status: isDeleted ? 0 : 1 }, dropped: [...kinds] }
}

/** What is lost with a row that has no usable password. */
function lostWith(
  { password, url, notas, otp, group }: Foreign & { readonly url: string; readonly group: string },
  isStructured: boolean
): readonly string[] {
  const lost: readonly (readonly [isLost: boolean, kind: string])[] = [
    [isStructured, 'note of several values, a password among them'],
    [password === '' && !isStructured, 'no password'],
    [url !== '', 'address'],
    [notas !== '' && !isStructured, 'note'],
    [otp !== '', 'one-time code'],
    [group !== '', 'folder']
  ]
  return lost.flatMap(([isLost, kind]) => (isLost ? [kind] : []))
}

function hostOf(url: string): string {
  return (URL.canParse(url) && new URL(url).host) || url
}
