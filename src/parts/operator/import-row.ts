/** A row of a file to import, whatever its format. */
import type { EntryRow } from '../../store/entry.ts'

/** A row, the line that it begins in, and what it says. */
export interface Row {
  readonly line: number
  /** Undefined where the row has no password. */
  readonly entry: EntryRow | undefined
  /** Whether this program wrote it: then it is an entry of its own, however much it is like another row. */
  readonly isOwn: boolean
  /** Whether it had an address that the entry has no place for. */
  readonly losesAddress: boolean
}

/** The rows of a file, read one at a time; reading a malformed one throws. */
export interface Source {
  readonly format: string
  readonly rows: Iterable<Row>
}

/** What another program keeps of an entry; what is empty it does not have. */
export interface Foreign {
  readonly name: string
  readonly url: string
  readonly usuario: string
  readonly password: string
}

/** Used for a name that a row does not have: no field of an entry is empty. */
const NAMELESS = '-'

/** The row of an entry in the format of another program, deleted there or not. */
export function foreignRow(
  line: number, { name, url, usuario, password }: Foreign, isOwn: boolean = false, isDeleted: boolean = false
): Row {
  if (password === '') return { line, entry: undefined, isOwn, losesAddress: false }
  return {
    line, isOwn, losesAddress: name !== '' && url !== '',
    entry: {
      password, sistema: name || hostOf(url) || NAMELESS, usuario: usuario || NAMELESS, status: isDeleted ? 0 : 1
    }
  }
}

/** The host of an address, or the text itself where it is none. */
function hostOf(url: string): string { return (URL.canParse(url) && new URL(url).host) || url }
