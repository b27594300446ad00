/**
 * What an entry is (contract §2): all that knows fields derives from this file. Optional fields are
 * beyond the contract.
 */

/** The fields that a client gives, and is answered. */
export interface AnsweredFields {
  readonly password: string
  readonly sistema: string
  readonly usuario: string
  readonly url?: string | undefined
  readonly notas?: string | undefined
  /** Who has a list of groups sees the entries of those alone. */
  readonly grupo?: string | undefined
}

/** With the fields that no answer has: they leave by the operator's commands alone. */
export interface EntryFields extends AnsweredFields {
  readonly otp?: string | undefined
}

export type EntryField = keyof EntryFields

export type Check = 'group' | 'otp'

interface FieldOf<F extends EntryField> {
  readonly isRequired: undefined extends EntryFields[F] ? false : true
  readonly isAnswered: F extends keyof AnsweredFields ? true : false
  /**
   * `value`: the name of the value in `--help`. A secret has no flag, which the list of processes
   * would show.
   */
  readonly flag: string
  readonly value: string
  readonly isSecret: boolean
  readonly help: string
  readonly example: string
  /** If not any text is taken: see `entry-shapes.ts`. */
  readonly check?: Check
  readonly pattern?: string
}

/** In the served order. */
export const FIELDS: { readonly [F in EntryField]-?: FieldOf<F> } = {
  password: {
    isRequired: true,
    isAnswered: true,
    flag: 'password',
    value: '',
    isSecret: true,
    help: 'the password',
    example: 'S3cr3ta'
  },
  sistema: {
    isRequired: true,
    isAnswered: true,
    flag: 'system',
    value: 'S',
    isSecret: false,
    help: 'the system that the password is for',
    example: 'correo'
  },
  usuario: {
    isRequired: true,
    isAnswered: true,
    flag: 'user',
    value: 'U',
    isSecret: false,
    help: 'the user name there',
    example: 'ana'
  },
  url: {
    isRequired: false,
    isAnswered: true,
    flag: 'url',
    value: 'URL',
    isSecret: false,
    help: 'the address of the system',
    example: 'https://correo.example.org/'
  },
  notas: {
    isRequired: false,
    isAnswered: true,
    flag: 'notes',
    value: '',
    isSecret: true,
    help: 'notes, in any number of lines',
    example: 'recovery code: 1234-5678'
  },
  grupo: {
    isRequired: false,
    isAnswered: true,
    flag: 'group',
    value: 'G',
    isSecret: false,
    check: 'group',
    pattern: '^([^,@*]*[^,@*\\s][^,@*]*)?$',
    help: 'the group whose members see it',
    example: 'Operations'
  },
  otp: {
    isRequired: false,
    isAnswered: false,
    flag: 'otp',
    value: '',
    isSecret: true,
    check: 'otp',
    pattern: '^$|^[ -]*([A-Za-z2-7][ -]*){2,}[= -]*$|^[Oo][Tt][Pp][Aa][Uu][Tt][Hh]:',
    help: 'the secret of one-time codes, in base32 or as an otpauth address',
    example: 'JBSW Y3DP EHPK 3PXP'
  }
}

/** An id without sign and leading zeros; 0, which no entry has, for any other text. */
export function idIn(text: string): number {
  return /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : 0
}

/** Missing fields stay as they are. */
export type EntryChanges = { readonly [F in EntryField]?: string | undefined }

/** A password entry; `status` 1 is active, 0 is deleted. */
export type Entry = { readonly id: number } & EntryFields & { readonly status: 0 | 1 }

/** An entry as clients and embedders see it. */
export type AnsweredEntry = { readonly id: number } & AnsweredFields & { readonly status: 0 | 1 }

export type EntryRow = Omit<Entry, 'id'>

export const ENTRY_FIELDS = Object.keys(FIELDS) as readonly EntryField[]

export const REQUIRED_FIELDS: readonly EntryField[] = ENTRY_FIELDS.filter(
  field => FIELDS[field].isRequired
)
export const SECRET_FIELDS: readonly EntryField[] = ENTRY_FIELDS.filter(
  field => FIELDS[field].isSecret
)
export const OPEN_FIELDS: readonly EntryField[] = ENTRY_FIELDS.filter(
  field => !FIELDS[field].isSecret
)
const OPTIONAL_FIELDS = ENTRY_FIELDS.filter(field => !FIELDS[field].isRequired)
export const ANSWERED_FIELDS: readonly EntryField[] = ENTRY_FIELDS.filter(
  field => FIELDS[field].isAnswered
)
const UNANSWERED_FIELDS = ENTRY_FIELDS.filter(field => !FIELDS[field].isAnswered)

export function hasMore(given: EntryChanges): boolean {
  for (const field of OPTIONAL_FIELDS) if (given[field] !== undefined) return true
  return false
}

/** In the served order. An empty text clears an optional field. */
export function fieldsOf<T extends EntryChanges>(given: T): Pick<T, EntryField> {
  const found: { [field in EntryField]?: string | undefined } = {}
  for (const field of ENTRY_FIELDS) {
    const value = given[field]
    if (value !== undefined && (value !== '' || FIELDS[field].isRequired)) found[field] = value
  }
  return found as Pick<T, EntryField>
}

export function entryOf(id: number, fields: EntryFields, status: Entry['status']): Entry {
  return { id, ...fieldsOf(fields), status }
}

export function changedEntry(entry: Entry, changes: EntryChanges): Entry {
  return entryOf(entry.id, { ...entry, ...changes } as EntryFields, entry.status)
}

/** In the served order; a field that is not set is undefined. */
export function openFieldsOf(entry: EntryChanges): EntryChanges {
  return Object.fromEntries(OPEN_FIELDS.map(field => [field, entry[field]]))
}

function hasUnanswered(entry: Entry): boolean {
  for (const field of UNANSWERED_FIELDS) if (entry[field] !== undefined) return true
  return false
}

export function answered(entry: Entry): AnsweredEntry {
  if (!hasUnanswered(entry)) return entry
  return Object.fromEntries(
    Object.entries(entry).filter(([field]) => !UNANSWERED_FIELDS.some(one => one === field))
  ) as unknown as AnsweredEntry
}

/** An entry as it is served (contract §2). */
export function entryText(entry: Entry): string {
  return JSON.stringify(answered(entry))
}

/** The fields that `entryText` leaves out, as JSON; empty if none is set. */
export function textBeside(entry: Entry): string {
  if (!hasUnanswered(entry)) return ''
  const given = UNANSWERED_FIELDS.filter(field => entry[field] !== undefined)
  return JSON.stringify(Object.fromEntries(given.map(field => [field, entry[field]])))
}

/**
 * A number: the password of that entry. An object: a password that the entry has or had. `list`: of
 * the active entries in the reader's sight.
 */
export type Tells = number | { readonly id: number; readonly password: string } | 'list'
