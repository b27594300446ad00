/**
 * What an entry is (contract §2): which fields a client gives, in the order in which they are served, and their rules.
 * Shapes, events, the reducer, checkpoints, comparison, history, import, export and the description derive from this.
 */
import { optional, text, type Rule } from './validate.ts'

/** The fields that a client gives, all texts; one that may be missing has a `?`. */
export interface EntryFields {
  readonly password: string
  readonly sistema: string
  readonly usuario: string
}

export type EntryField = keyof EntryFields

/** What is said of a field; whether it is required follows from its type. */
interface FieldOf<F extends EntryField> {
  readonly isRequired: undefined extends EntryFields[F] ? false : true
  /** The operator's flag for it, and what follows that in the help; a secret has none. */
  readonly flag: string
  readonly value: string
  readonly isSecret: boolean
  /** What it is, for people. */
  readonly help: string
  readonly example: string
}

/** The same fields, in the order in which they are served. */
export const FIELDS: { readonly [F in EntryField]-?: FieldOf<F> } = {
  password: {
    isRequired: true, flag: 'password', value: '', isSecret: true, help: 'the password', example: 'S3cr3ta'
  },
  sistema: {
    isRequired: true, flag: 'system', value: 'S', isSecret: false, help: 'the system that the password is for',
    example: 'correo'
  },
  usuario: {
    isRequired: true, flag: 'user', value: 'U', isSecret: false, help: 'the user name there', example: 'ana'
  }
}

/** Any of them, where the others stay as they are. */
export type EntryChanges = { readonly [F in EntryField]?: string | undefined }

/** A password entry. Of `status`, 1 is active and 0 is deleted. */
export type Entry = { readonly id: number } & EntryFields & { readonly status: 0 | 1 }

/** An entry that is imported or kept: its place says which id it has. */
export type EntryRow = Omit<Entry, 'id'>

export const ENTRY_FIELDS = Object.keys(FIELDS) as readonly EntryField[]

/** An example of each field. */
export const EXAMPLE = Object.fromEntries(
  ENTRY_FIELDS.map(field => [field, FIELDS[field].example])) as { readonly [F in EntryField]: string }

/** The fields that are given, and nothing else, in their order. */
export function fieldsOf<T extends EntryChanges>(given: T): Pick<T, EntryField> {
  const found: { [field in EntryField]?: string | undefined } = {}
  for (const field of ENTRY_FIELDS) if (given[field] !== undefined) found[field] = given[field]
  return found as Pick<T, EntryField>
}

/** An entry as it is without its id. */
export function rowOf(entry: EntryRow): EntryRow { return { ...fieldsOf(entry), status: entry.status } }

/** An entry as it is served (contract §2). */
export function entryText(entry: Entry): string {
  return JSON.stringify({ id: entry.id, ...fieldsOf(entry), status: entry.status })
}

/** The fields of a new entry (contract §4.3). */
export const CREATE_SHAPE = Object.fromEntries(ENTRY_FIELDS.map(field =>
  [field, FIELDS[field].isRequired ? text : optional(text)])) as { readonly [F in EntryField]: Rule<EntryFields[F]> }

/** The fields of a change (contract §4.4). */
export const UPDATE_SHAPE = Object.fromEntries(ENTRY_FIELDS.map(field =>
  [field, optional(text)])) as { readonly [F in EntryField]: Rule<string | undefined> }
