/** What can be asked of the process that has the data folder, as both ends of the operator's program see it. */
import type { JournalLocation, Status } from '../journal/journal.ts'
import type { Issued, ListedToken, ListedUser } from '../store/accounts.ts'
import type { Entry, EntryChanges, EntryFields, EntryRow } from '../store/entry.ts'
import type { Events } from '../store/events.ts'

/** A new key: its name, and whether it seals from now on. */
export interface Rotated { readonly key: string, readonly seals: boolean }

/** What a journal is once it was written again. */
export interface Rewritten {
  readonly path: string
  readonly records: number
  readonly head: string
  readonly bytes: number
  /** Of the journal before. */
  readonly before: { readonly records: number, readonly head: string, readonly bytes: number }
  /** The names of the keys that the journal no longer needs; an archive may. */
  readonly unneeded: readonly string[]
  /** The file that the journal before is kept in; null: it is not kept. */
  readonly archive: string | null
}

/** An entry of a file; `isOwn`: this program wrote it, so it is one of its own however much it is like another row. */
export interface ImportRow extends EntryRow { readonly isOwn: boolean }

/** What an import has done, or would do: the places of rows that exist already, and the id of the first new entry. */
export interface Imported {
  readonly duplicates: readonly number[]
  readonly made: number
  readonly first?: number
}

/** The entries that a command may be about. */
export type Among = 'active' | 'deleted' | 'all'

/**
 * An entry as lists show it, without secrets; if asked for, when its password was set (null: that is not known), and
 * how many other active entries have the same one, with the least id of all of these.
 */
export type Listed = { readonly id: number } & EntryChanges & {
  readonly changed?: string | null
  readonly reused?: number
  readonly sameAs?: number
}

/** The status of a journal and of what is in it. */
export interface FolderStatus extends JournalLocation, Status {
  readonly pid: number
  readonly entries: number
  readonly activeEntries: number
  /** The share of a rewrite that is done. */
  readonly progress: number
  /** The names of the keys that the journal needs, if it is in a file. */
  readonly keys?: readonly string[]
}

/** What was read, and why it was not recorded if passwords were in it and that could not be. */
export interface Disclosed<T> { readonly found: T, readonly unrecorded?: string }

type Email = { readonly email: string }
type Id = { readonly id: number }

/** With `oldDays` entries whose password is older, or of an unknown age; with `isReused` those that share theirs. */
interface Searched {
  readonly text: string | undefined
  readonly among: Among
  readonly oldDays?: number | undefined
  readonly isReused?: 0 | 1 | undefined
}

/** What each operation takes, and what it gives. */
interface Operations {
  status: [{}, FolderStatus]
  listUsers: [{}, readonly ListedUser[]]
  addUser: [Email & { password: string, name: string | undefined, abilities: Names }, ListedUser]
  setPassword: [Email & { password: string }, {}]
  changeUser: [Email & { name: string | undefined, abilities: Names }, {}]
  removeUser: [Email, {}]
  listTokens: [{}, readonly ListedToken[]]
  issueToken: [Email & { abilities: Names, ttlMinutes: number | undefined, name: string | undefined }, Issued]
  revokeToken: [{ id: string }, {}]
  revokeTokens: [Email, {}]
  findEntries: [Searched, readonly Listed[]]
  getEntry: [Id & { command: string | undefined }, Disclosed<Entry>]
  readEntries: [
    { from: number, among: Among, command: string | undefined },
    Disclosed<readonly Entry[]> & { readonly next?: number }
  ]
  addEntry: [EntryFields, Id]
  editEntry: [Id & EntryChanges, {}]
  deleteEntry: [Id, {}]
  restoreEntry: [Id, {}]
  purgeEntry: [Id, {}]
  disclose: [Events['entries.disclosed'], Disclosed<{}>]
  importEntries: [{ rows: readonly ImportRow[], keepsDuplicates: 0 | 1, isTrial: 0 | 1 }, Imported]
  rotateKey: [{}, Rotated]
  rewriteJournal: [{}, Rewritten]
  compactJournal: [{ keepsHistory: 0 | 1 }, Rewritten]
  repairJournal: [{}, Rewritten]
}

type Names = readonly string[] | undefined
export type OperationName = keyof Operations
export type Body<N extends OperationName> = Operations[N][0]
export type Result<N extends OperationName> = Operations[N][1]
