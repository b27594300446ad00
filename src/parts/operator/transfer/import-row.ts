/** A row of a file to import, in any format. */
import type { EntryRow } from '../../../store/entry.ts'

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

export interface Foreign {
  readonly name: string
  readonly url: string
  readonly usuario: string
  readonly password: string
  readonly notas: string
}

/** Required fields must not be empty. */
const NAMELESS = '-'
/** KeePass writes a reference instead of a value. */
const REFERENCE = /\{REF:[A-Z]@/i

/** LastPass writes this without an address. */
const NO_ADDRESS = ['http://', 'http://sn']

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

function hostOf(url: string): string { return (URL.canParse(url) && new URL(url).host) || url }
