/** The operations of the process that has the data folder, typed for both ends. */
import type { FileStat } from '../../journal/files.ts'
import type { JournalLocation, Status } from '../../journal/journal.ts'
import type { KnownUser, Unrecorded } from '../../knowledge/exposure.ts'
import type { Issued, ListedToken, ListedUser } from '../../accounts/listed.ts'
import type { Entry, EntryChanges, EntryField, EntryFields, EntryRow } from '../../entries/entry.ts'
import type { Abilities, GivenGroups } from '../../accounts/account-shapes.ts'

export class Lines {
  readonly pieces: Iterable<string>
  constructor(pieces: Iterable<string>) {
    this.pieces = pieces
  }
}

/** `seals`: it seals records from now on. */
export interface Rotated {
  readonly key: string
  readonly seals: boolean
}

/** `isOwn`: this program wrote the row, so it is an entry even if another row is equal. */
export interface ImportRow extends EntryRow {
  readonly isOwn: boolean
}

/**
 * `isNew`: nothing has the group yet. `seenBy`: the addresses of users who have it in their list.
 */
export interface ImportedGroup {
  readonly name: string
  readonly entries: number
  readonly isNew: boolean
  readonly seenBy: readonly string[]
}

/** `duplicates`: places of rows that exist already. `first`: the first new id. */
export interface Imported {
  readonly duplicates: readonly number[]
  readonly groups: readonly ImportedGroup[]
  readonly made: number
  readonly first?: number
}

export type Among = 'active' | 'deleted' | 'all'

/**
 * `changed`: when the password was set; null: unknown. `reused`: how many other active entries have
 * it. `sameAs`: the least id that has it. `exposedTo`: users who know it and may not be told it any
 * more, as a place in `FoundEntries.lists`.
 */
export type Listed = { readonly id: number } & EntryChanges & {
    readonly changed?: string | null
    readonly reused?: number
    readonly sameAs?: number
    readonly status?: 'active' | 'deleted'
    readonly exposedTo?: number
    readonly unrecordedBefore?: string
  }

/** Of a part of the entries. `lists`: ids of `users`. `next`: where to go on. */
export interface FoundEntries {
  readonly found: readonly Listed[]
  readonly lists: readonly (readonly number[])[]
  readonly users: readonly KnownUser[]
  readonly next?: number
}

/**
 * Of a user: how many present passwords, with those of deleted entries; and which ones others may
 * know.
 */
export interface Knows {
  readonly knows: number
  readonly unrecordedBefore: Unrecorded
}

export interface FolderStatus extends JournalLocation, Status {
  readonly pid: number
  readonly entries: number
  readonly activeEntries: number
  /** How long the last start read the journal. */
  readonly readMs: number
  /** The file that has the journal's name now: a compaction replaces it. */
  readonly file?: FileStat | undefined
}

/** The entry of a change, as it is afterwards. */
export type Named = { readonly id: number } & Pick<EntryFields, 'sistema' | 'usuario'>

/** Those that no entry, user or token has yet. */
export interface NewGroups {
  readonly newGroups: readonly string[]
}

/** False: it was so already, and nothing is recorded. */
export type Changed = { readonly isChanged: boolean }

export const UNCHANGED = 'nothing changed'

type Email = { readonly email: string }
type Id = { readonly id: number }

/** `from`: the first id. `oldDays` also finds passwords of unknown age. */
export interface Searched {
  readonly from: number
  readonly text: string | undefined
  readonly among: Among
  readonly oldDays?: number | undefined
  readonly isReused?: boolean
  readonly isExposed?: boolean
}

interface SocketOperations {
  status: [{}, FolderStatus]
  listUsers: [{}, readonly ListedUser[]]
  addUser: [
    Email & Rights & { password: string | undefined; name: string | undefined },
    ListedUser & NewGroups
  ]
  /** All or none. `taken`: the addresses that exist already. A trial adds none. */
  addUsers: [
    { users: readonly NewUser[]; isTrial: boolean },
    { users: readonly ListedUser[]; taken: readonly string[] } & NewGroups
  ]
  setPassword: [Email & { password: string | undefined }, Changed]
  changeUser: [Email & { name: string | undefined } & Rights, Changed & NewGroups & Knows]
  removeUser: [Email, Changed & Knows]
  giveFactor: [Email & { factor: string; code: string }, Changed]
  removeFactor: [Email, Changed]
  listTokens: [{}, readonly ListedToken[]]
  issueToken: [
    Email & Rights & { ttlMinutes: number | undefined; name: string | undefined },
    Issued & NewGroups
  ]
  revokeToken: [{ id: string }, Changed]
  revokeTokens: [Email, Changed]
  /** `isExposed` also finds what others may know. */
  findEntries: [Searched, FoundEntries]
  /** Secrets are shown to `command`: all, or one field. Undefined: none. */
  getEntry: [Id & { command: string | undefined; field?: EntryField | undefined }, Entry]
  getCode: [Id, Named & { readonly code: string; readonly seconds: number }]
  /** With secrets. Each page is recorded in the step that reads it. */
  readEntries: [
    { from: number; among: Among; command: string },
    { readonly found: readonly Entry[]; readonly next?: number }
  ]
  addEntry: [EntryFields, Named]
  editEntry: [Id & EntryChanges, Named & Changed]
  deleteEntry: [Id, Named & Changed]
  restoreEntry: [Id, Named & Changed]
  /** Who knew its password, as `findEntries` says it. */
  purgeEntry: [
    Id,
    Named & { readonly exposedTo: readonly KnownUser[]; readonly unrecordedBefore?: string }
  ]
  /** `command` has read values from the journal: those that an entry has and had, or all. */
  disclose: [
    { command: string; id?: number | undefined; former?: readonly string[] | undefined },
    {}
  ]
  /** Empties the list of rows. */
  importEntries: [{ rows: ImportRow[]; keepsDuplicates: boolean; isTrial: boolean }, Imported]
  rotateKey: [{}, Rotated]
  rescueJournal: [{ damage: string | undefined }, Lines]
  rescueKeys: [{}, { readonly keys: readonly string[] }]
  confirmRescue: [{ head: string }, {}]
}

/** The program made the password. */
export type NewUser = Email &
  Rights & { readonly name: string | undefined; readonly password: string }

type Rights = { readonly abilities: Abilities; readonly groups: GivenGroups }
export type OperationName = keyof SocketOperations
export type RequestBody<N extends OperationName> = SocketOperations[N][0]
export type Result<N extends OperationName> = SocketOperations[N][1]
