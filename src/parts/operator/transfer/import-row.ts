/** A row of a file to import, in any format. */
import type { EntryRow } from '../../../entries/entry.ts'
import { CREATE_SHAPE } from '../../../entries/entry-shapes.ts'

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
  /** What `line` counts. */
  readonly unit: 'line' | 'item'
  /** Undefined: the file holds everything. */
  readonly never?: string | undefined
  readonly rows: Iterable<Row>
}

/** A row as its program writes it; empty texts were not given. */
export interface Foreign {
  readonly name: string
  readonly urls: readonly string[]
  readonly usuario: string
  readonly password: string
  readonly notas: string
  /** The secret of one-time codes, or a text of another form. */
  readonly otp: string
  /** Folders, vaults, collections. */
  readonly groups: readonly string[]
}

/** What a program writes instead of a value. */
export interface Habits {
  /** A text that refers to another entry's value. */
  readonly reference?: RegExp
  /** Addresses and folders that mean that there is none. */
  readonly nothing?: readonly string[]
  /** The start of notes that hold several values, a password among them. */
  readonly structured?: RegExp
  /** Of a folder's path: what stands before its name. */
  readonly root?: RegExp
}

interface Marks {
  readonly isOwn?: boolean
  readonly isDeleted?: boolean
  readonly keepsGroups: boolean
}

/** Required fields must not be empty. */
const NAMELESS = '-'

/**
 * Gives the kind if an entry has no place for the text, as for steam:// addresses of one-time
 * codes.
 */
function faultOf(field: 'otp' | 'grupo', text: string, kind: string): readonly string[] {
  return text === '' || CREATE_SHAPE[field].fault(field, text) === undefined ? [] : [kind]
}

export function foreignRow(
  line: number,
  given: Foreign,
  dropped: readonly string[],
  { isOwn = false, isDeleted = false, keepsGroups }: Marks,
  { reference, nothing = [], structured, root = /^$/ }: Habits = {}
): Row {
  const { name, usuario, password, notas, otp } = given
  const [url = '', ...urls] = given.urls.filter(text => text !== '' && !nothing.includes(text))
  const [group = '', ...groups] = given.groups
    .filter(text => text !== '' && !nothing.includes(text))
    .map(text => text.replace(root, '').trim())
    .filter(text => text !== '')
  const refers = (text: string): boolean => reference?.test(text) === true
  const isUsable = password !== '' && !refers(password)
  const isKept = keepsGroups && faultOf('grupo', group, 'folder').length === 0
  const groupFault = isKept || group === '' ? [] : ['folder']
  const otpFault = faultOf('otp', otp, 'one-time code')
  const kinds = new Set([
    ...dropped,
    ...otpFault,
    ...groupFault,
    ...(urls.some(text => text !== url) ? ['further address'] : []),
    ...(groups.length > 0 ? ['further folder'] : []),
    ...([name, usuario, password, url].some(refers) ? ['reference to another entry'] : [])
  ])
  if (!isUsable) {
    const isStructured = password === '' && structured?.test(notas) === true
    if (password === '')
      kinds.add(isStructured ? 'note of several values, a password among them' : 'no password')
    if (url !== '') kinds.add('address')
    if (notas !== '' && !isStructured) kinds.add('note')
    if (otp !== '') kinds.add('one-time code')
    if (group !== '') kinds.add('folder')
    return { line, isOwn, entry: undefined, dropped: [...kinds] }
  }
  const entry = {
    password,
    sistema: name || hostOf(url) || NAMELESS,
    usuario: usuario || NAMELESS,
    ...(url && { url }),
    ...(notas && { notas }),
    ...(group && groupFault.length === 0 && { grupo: group }),
    ...(otp && otpFault.length === 0 && { otp })
  }
  return { line, isOwn, entry: { ...entry, status: isDeleted ? 0 : 1 }, dropped: [...kinds] }
}

function hostOf(url: string): string {
  return (URL.canParse(url) && new URL(url).host) || url
}
