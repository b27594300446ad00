/** The events that the journal may hold, and users and tokens, which they are about. */
import { Failure } from '../errors.ts'
import { ENTRY_FIELDS, FIELDS as OF_ENTRY, type EntryChanges, type EntryFields, type EntryRow } from './entry.ts'

/** Who may log in (contract §5). A removed user is kept, so that the journal's `by` can still be shown. */
export interface User {
  readonly id: number
  /** In lower case: addresses are compared without case. */
  readonly email: string
  readonly name: string
  /** What tokens issued at login may do. */
  readonly abilities: readonly string[]
  /** A PHC string; undefined once the user was removed. */
  readonly passwordHash: string | undefined
  /** How many passwords the user has had so far. */
  readonly passwords: number
}

/** What is kept of a user who was not removed. */
export type KeptUser = Pick<User, 'email' | 'name' | 'abilities'> & { readonly passwordHash: string }

/** A bearer token; the token itself is kept nowhere. */
export interface Token {
  readonly user: number
  readonly abilities: readonly string[]
  /** When it was issued, and when it ends, if it does: ISO 8601. */
  readonly issued: string
  readonly expires: string | null
  /** What the operator called it. */
  readonly name?: string | undefined
  /** Whether a login gave it. */
  readonly isOfLogin?: true | undefined
}

/** A token with its hash. */
export type KeptToken = Token & { readonly hash: string }

/** What a compaction keeps of an entry: also when its password was set, ISO 8601, if that is known. */
export type KeptRow = EntryRow & { readonly changed?: string | undefined }

const CONTINUED_FIELDS = ['why', 'head', 'records', 'time', 'source', 'archive', 'opened', 'lost'] as const

/**
 * The data of each type of record. Records with fields beyond the contract's three are of the types `fields.…`:
 * versions that would drop those fields do not know these types, and refuse the journal. `hash` is the
 * SHA-256 of a token, 64 hexadecimal digits.
 */
export interface Events {
  'entry.created': EntryFields & { readonly id: number }
  /** The id, and the fields that changed. */
  'entry.updated': EntryChanges & { readonly id: number }
  'entry.deleted': { readonly id: number }
  'entry.restored': { readonly id: number }
  /** The operator had every value of it removed; its id stays unknown. */
  'entry.purged': { readonly id: number }
  /** New entries, with the ids from `first` on. Many in one record, since a record is whole or not at all. */
  'entries.imported': { readonly first: number, readonly entries: readonly EntryRow[] }
  /** The operator was shown passwords: by which command, of how many entries, of which one if it was one. */
  'entries.disclosed': { readonly command: string, readonly entries: number, readonly id?: number | undefined }
  'user.added': Pick<User, 'id' | 'email' | 'name' | 'abilities'> & { readonly passwordHash: string }
  /** A new password: the user's tokens end. */
  'password.changed': { readonly id: number, readonly passwordHash: string }
  /** The same password under stronger parameters. */
  'password.rehashed': { readonly id: number, readonly passwordHash: string }
  /** The user's tokens end. */
  'user.removed': { readonly id: number }
  /** Another name, or other abilities: the user's tokens may do no more than these from then on. */
  'user.changed': { readonly id: number } & Partial<Pick<User, 'name' | 'abilities'>>
  'token.issued': KeptToken
  'token.revoked': { readonly hash: string }
  /** All of a user's tokens end. */
  'tokens.revoked': { readonly user: number }
  /** The operator's `init` has made this journal. */
  'journal.begun': {}
  /** The operator wrote the journal again: how a journal before ended; the second: that which it was written from. */
  'journal.continued': { readonly [F in typeof CONTINUED_FIELDS[number]]?: unknown }
  'journal.rewritten': Events['journal.continued']
  /** What was written from the journal before ends here, after so many records. */
  'journal.whole': { readonly records: number }
  /** What a compaction kept of each id from `first` on; null for what was purged, and for users who were removed. */
  'entries.kept': { readonly first: number, readonly entries: readonly (EntryRow | null)[] }
  'fields.created': Events['entry.created']
  'fields.updated': Events['entry.updated']
  'fields.imported': Events['entries.imported']
  'fields.kept': { readonly first: number, readonly entries: readonly (KeptRow | null)[] }
  'users.kept': { readonly first: number, readonly users: readonly (KeptUser | null)[] }
  'tokens.kept': { readonly tokens: readonly KeptToken[] }
}

/** Whether a type of record is about entries, and about nothing else. */
export function isOfEntries(type: string): boolean { return /^(entry|entries|fields)\./.test(type) }

/** The field that any record of a change has which an operator made: the name of the account, or an empty text. */
export const OPERATOR = 'operator'

type Fields<T> = readonly (keyof T)[]

const FIRST_FIELDS = ENTRY_FIELDS.filter(field => OF_ENTRY[field].isRequired)

/** The fields of each type of record. */
const FIELDS: { readonly [T in keyof Events]: Fields<Events[T]> } = {
  'entry.created': ['id', ...FIRST_FIELDS],
  'entry.updated': ['id', ...FIRST_FIELDS],
  'entry.deleted': ['id'],
  'entry.restored': ['id'],
  'entry.purged': ['id'],
  'entries.imported': ['first', 'entries'],
  'entries.disclosed': ['command', 'entries', 'id'],
  'user.added': ['id', 'email', 'name', 'abilities', 'passwordHash'],
  'password.changed': ['id', 'passwordHash'],
  'password.rehashed': ['id', 'passwordHash'],
  'user.removed': ['id'],
  'user.changed': ['id', 'name', 'abilities'],
  'token.issued': ['hash', 'user', 'abilities', 'issued', 'expires', 'name'],
  'token.revoked': ['hash'],
  'tokens.revoked': ['user'],
  'journal.begun': [],
  'journal.continued': CONTINUED_FIELDS,
  'journal.rewritten': CONTINUED_FIELDS,
  'journal.whole': ['records'],
  'entries.kept': ['first', 'entries'],
  'fields.created': ['id', ...ENTRY_FIELDS],
  'fields.updated': ['id', ...ENTRY_FIELDS],
  'fields.imported': ['first', 'entries'],
  'fields.kept': ['first', 'entries'],
  'users.kept': ['first', 'users'],
  'tokens.kept': ['tokens']
}

const FIRST_ROW: Fields<EntryRow> = [...FIRST_FIELDS, 'status']
const KEPT_ROW: Fields<KeptRow> = [...ENTRY_FIELDS, 'status', 'changed']
const USER_ROW: Fields<KeptUser> = ['email', 'name', 'abilities', 'passwordHash']
const TOKEN_ROW: Fields<KeptToken> = ['hash', 'user', 'abilities', 'issued', 'expires', 'name', 'isOfLogin']

/** The fields of the rows of each type that has some, by the field that holds them. */
const ROWS: { readonly [type: string]: readonly [list: string, fields: readonly string[]] } = {
  'entries.imported': ['entries', FIRST_ROW],
  'entries.kept': ['entries', FIRST_ROW],
  'fields.imported': ['entries', [...ENTRY_FIELDS, 'status']],
  'fields.kept': ['entries', KEPT_ROW],
  'users.kept': ['users', USER_ROW],
  'tokens.kept': ['tokens', TOKEN_ROW]
}

const KNOWN = new Map(Object.entries<readonly string[]>(FIELDS)
  .map(([type, fields]) => [type, new Set([...fields, OPERATOR])]))
const KNOWN_ROWS = new Map(Object.entries(ROWS).map(([type, [list, fields]]) =>
  [type, { list, known: new Set(fields) }]))

/**
 * Throws unless this version knows an event's type and each of its fields. One that a newer version wrote would
 * otherwise be dropped without a word by the next compaction.
 */
export function assertKnownEvent(type: string, data: unknown): asserts type is keyof Events {
  const fields = KNOWN.get(type)
  if (fields === undefined) throw newer(`this version does not know records of type ${type}`)
  assertFields(type, data, fields)
  const rows = KNOWN_ROWS.get(type)
  if (rows === undefined) return
  const { list, known } = rows
  for (const row of (data as { readonly [list: string]: readonly unknown[] })[list]!) assertFields(type, row, known)
}

function newer(what: string): Failure { return new Failure('journal-newer', what) }

function assertFields(type: string, data: unknown, known: ReadonlySet<string>): void {
  for (const field in data as object) {
    if (!known.has(field)) throw newer(`this version does not know each field of a record of type ${type}`)
  }
}
