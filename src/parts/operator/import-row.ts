/** A row of a file to import, whatever its format. */
import type { EntryRow } from '../../store/entry.ts'

/** A row, where it is, and what it says. */
export interface Row {
  /** The line that it begins in, or its place in a list; both count from 1. */
  readonly line: number
  /** Undefined if it has no password that can be imported. */
  readonly entry: EntryRow | undefined
  /** Whether this program wrote it: then it is an entry of its own, however much it is like another row. */
  readonly isOwn: boolean
  /** The kinds of what it has and an entry has no place for. */
  readonly dropped: readonly string[]
}

/** The rows of a file, read one at a time; reading a malformed row throws. */
export interface Source {
  readonly format: string
  /** What `line` counts. */
  readonly unit: 'line' | 'item'
  /** What such a file never contains; undefined if it holds everything. */
  readonly never?: string | undefined
  readonly rows: Iterable<Row>
}

/** What another program keeps of an entry; what is empty it does not have. */
export interface Foreign {
  readonly name: string
  readonly url: string
  readonly usuario: string
  readonly password: string
  readonly notas: string
}

/** Used for a name that a row does not have: no field that an entry must have is empty. */
const NAMELESS = '-'
/** KeePass writes where a value is instead of the value. */
const REFERENCE = /\{REF:[A-Z]@/i

/** What LastPass writes if there is no address. */
const NO_ADDRESS = ['http://', 'http://sn']

/** The row of an entry in the format of another program; `dropped` are the kinds of what it has besides. */
export function foreignRow(
  line: number, foreign: Foreign, dropped: readonly string[],
  { isOwn = false, isDeleted = false }: { readonly isOwn?: boolean, readonly isDeleted?: boolean } = {}
): Row {
  const { name, usuario, password, notas } = foreign
  const url = NO_ADDRESS.includes(foreign.url) ? '' : foreign.url
  const kinds = new Set(dropped)
  const isReference = REFERENCE.test(password)
  if (isReference || [name, usuario, url].some(text => REFERENCE.test(text))) kinds.add('reference to another entry')
  if (password === '' || isReference) {
    if (password === '') kinds.add('no password')
    if (url !== '') kinds.add('address')
    if (notas !== '') kinds.add('note')
    return { line, isOwn, entry: undefined, dropped: [...kinds] }
  }
  const sistema = name || hostOf(url) || NAMELESS
  const entry = { password, sistema, usuario: usuario || NAMELESS, ...url && { url }, ...notas && { notas } }
  return { line, isOwn, entry: { ...entry, status: isDeleted ? 0 : 1 }, dropped: [...kinds] }
}

/** The host of an address, or the text itself if it is no address. */
function hostOf(url: string): string { return (URL.canParse(url) && new URL(url).host) || url }
