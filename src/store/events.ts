/** The events that the journal may hold, and their subjects. */
import type { ENTRY_FIELDS } from '../contract.ts'
import type { Continued } from '../journal/journal.ts'

/** A password entry (contract §2). */
export interface Entry {
  readonly id: number
  readonly password: string
  readonly sistema: string
  readonly usuario: string
  /** 1 is active, 0 is deleted. */
  readonly status: 0 | 1
}

/** The fields of an entry that a client gives. */
export type EntryFields = Pick<Entry, typeof ENTRY_FIELDS[number]>

/** Any of them, where the others stay as they are. */
export type EntryChanges = { readonly [F in keyof EntryFields]?: EntryFields[F] | undefined }

/** An entry that is imported: it gets an id of its own. */
export type ImportedEntry = Omit<Entry, 'id'>

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
}

/** The data of each type of record. `hash` is the SHA-256 of a token, 64 hexadecimal digits. */
export interface Events {
  'entry.created': EntryFields & { readonly id: number }
  /** The id, and the fields that changed. */
  'entry.updated': EntryChanges & { readonly id: number }
  'entry.deleted': { readonly id: number }
  'entry.restored': { readonly id: number }
  /** The operator had every value of it removed; its id stays unknown. */
  'entry.purged': { readonly id: number }
  /** New entries, with the ids from `first` on. Many in one record, since a record is whole or not at all. */
  'entries.imported': { readonly first: number, readonly entries: readonly ImportedEntry[] }
  /** The operator was shown passwords: by which command, of how many entries, of which one if it was one. */
  'entries.disclosed': { readonly command: string, readonly entries: number, readonly id?: number | undefined }
  'user.added': Pick<User, 'id' | 'email' | 'name' | 'abilities'> & { readonly passwordHash: string }
  /** A new password: the user's tokens end. */
  'password.changed': { readonly id: number, readonly passwordHash: string }
  /** The same password under stronger parameters. */
  'password.rehashed': { readonly id: number, readonly passwordHash: string }
  /** The user's tokens end. */
  'user.removed': { readonly id: number }
  'token.issued': Token & { readonly hash: string }
  'token.revoked': { readonly hash: string }
  /** All of a user's tokens end. */
  'tokens.revoked': { readonly user: number }
  /** The journal before ended so: it was re-encrypted into this one, or compacted into the state that follows. */
  'journal.continued': Continued
  /** What a compaction kept of each id from `first` on; null for what was purged, and for users who were removed. */
  'entries.kept': { readonly first: number, readonly entries: readonly (ImportedEntry | null)[] }
  'users.kept': { readonly first: number, readonly users: readonly (KeptUser | null)[] }
  'tokens.kept': { readonly tokens: readonly (Token & { readonly hash: string })[] }
}
