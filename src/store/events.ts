/** The events that the journal may hold: for each type its data, its fields, and what it does to the state. */
import { Failure } from '../errors.ts'
import type { EncodedEvent, Event } from '../journal/journal.ts'
import type { EntryTable } from './entries.ts'
import {
  changedEntry, ENTRY_FIELDS, entryOf, REQUIRED_FIELDS, type Entry, type EntryChanges, type EntryFields, type EntryRow
} from './entry.ts'
import { ANY_ABILITY, covers } from './session.ts'
import type { KeptToken, KeptUser, Tokens, User } from './users.ts'

/** What a compaction keeps of an entry: also when its password was set, ISO 8601, if that is known. */
export type KeptRow = EntryRow & { readonly changed?: string | undefined }

/** What events change. */
export interface Tables {
  readonly entries: EntryTable
  /** By id; ids count from 1 without gaps. A removed user stays, without a password. */
  readonly users: Map<number, User>
  /** The ids of users who were not removed, by address. */
  readonly addresses: Map<string, number>
  readonly tokens: Tokens
}

const CONTINUED = ['why', 'head', 'records', 'time', 'source', 'archive', 'opened', 'lost'] as const

interface Id { readonly id: number }
interface Rows<R> { readonly first: number, readonly entries: readonly R[] }

/**
 * The data of each type. Records with fields beyond the contract's three are of the types `fields.…`: versions that
 * would drop those fields do not know these types, and refuse the journal.
 */
export interface Events {
  'entry.created': Id & EntryFields
  'fields.created': Id & EntryFields
  'entry.updated': Id & EntryChanges
  'fields.updated': Id & EntryChanges
  'entry.deleted': Id
  'entry.restored': Id
  /** The operator had every value of it removed; its id stays unknown. */
  'entry.purged': Id
  /** New entries, with the ids from `first` on. Many in one record, since a record is whole or not at all. */
  'entries.imported': Rows<EntryRow>
  'fields.imported': Rows<EntryRow>
  /** What a compaction kept of each id from `first` on; null for what was purged, and for users who were removed. */
  'entries.kept': Rows<EntryRow | null>
  'fields.kept': Rows<KeptRow | null>
  'users.kept': { readonly first: number, readonly users: readonly (KeptUser | null)[] }
  'tokens.kept': { readonly tokens: readonly KeptToken[] }
  /** The operator was shown passwords: by which command, of how many entries, of which one if it was one. */
  'entries.disclosed': { readonly command: string, readonly entries: number, readonly id?: number | undefined }
  'user.added': Id & KeptUser
  /** Another name, or other abilities: the user's tokens may do no more than these from then on. */
  'user.changed': Id & { readonly name?: string | undefined, readonly abilities?: readonly string[] | undefined }
  /** The user's tokens end; so they do with a new password. */
  'user.removed': Id
  'password.changed': Id & { readonly passwordHash: string }
  /** The same password, hashed at a higher cost. */
  'password.rehashed': Id & { readonly passwordHash: string }
  'token.issued': KeptToken
  'token.revoked': { readonly hash: string }
  'tokens.revoked': { readonly user: number }
  'journal.begun': {}
  /** The operator wrote the journal again: how a journal before ended; the second: that which it was written from. */
  'journal.continued': { readonly [F in typeof CONTINUED[number]]?: unknown }
  'journal.rewritten': Events['journal.continued']
  /** What was written from the journal before ends here, after so many records. */
  'journal.whole': { readonly records: number }
}

/** The field that any record of a change has which an operator made: the name of the account, or an empty text. */
export const OPERATOR = 'operator'

/** An event whose data has the form that its type asks for; `by` is the user who caused it, null for none. */
export function event<T extends keyof Events>(type: T, by: number | null, data: Events[T]): EncodedEvent {
  return { type, by, data, json: JSON.stringify(data) }
}

/** What an event does to the state; `timeMs` is when it was recorded, `by` the user who caused it. */
type Reduce<D> = (tables: Tables, data: D, timeMs: number, by: number | null) => void

interface EventType<D> {
  readonly fields: readonly (keyof D)[]
  /** The field that holds rows, and the fields of those. */
  readonly rows?: readonly [list: string, fields: readonly string[]]
  readonly reduce: Reduce<D>
}

const ROWS = ['first', 'entries'] as const
const FIRST_ROW = [...REQUIRED_FIELDS, 'status']
const TOKEN = ['hash', 'user', 'abilities', 'issued', 'expires', 'name'] as const
const PASSWORD = ['id', 'passwordHash'] as const

const created: Reduce<Events['entry.created']> = ({ entries }, data, timeMs) => {
  assertNext(entries, data.id)
  entries.set(entryOf(data.id, data, 1), timeMs)
}
const updated: Reduce<Events['entry.updated']> = ({ entries }, data, timeMs) =>
  entries.set(changedEntry(known(entries, data.id), data), data.password === undefined ? undefined : timeMs)
const imported: Reduce<Events['entries.imported']> = ({ entries }, { first, entries: rows }, timeMs) => {
  assertNext(entries, first)
  for (const [i, row] of rows.entries()) entries.set(entryOf(first + i, row, row.status), timeMs)
}
const kept: Reduce<Events['fields.kept']> = ({ entries }, { first, entries: rows }) => {
  assertNext(entries, first)
  for (const [i, row] of rows.entries()) {
    if (row === null) { entries.delete(first + i); continue }
    const changedMs = row.changed === undefined ? undefined : Date.parse(row.changed)
    entries.set(entryOf(first + i, row, row.status), changedMs)
  }
}
const setting = (status: Entry['status']): Reduce<Id> => ({ entries }, { id }) =>
  entries.set({ ...known(entries, id), status })
const nothing = (): void => {}

const TYPES: { readonly [T in keyof Events]: EventType<Events[T]> } = {
  'entry.created': { fields: ['id', ...REQUIRED_FIELDS], reduce: created },
  'fields.created': { fields: ['id', ...ENTRY_FIELDS], reduce: created },
  'entry.updated': { fields: ['id', ...REQUIRED_FIELDS], reduce: updated },
  'fields.updated': { fields: ['id', ...ENTRY_FIELDS], reduce: updated },
  'entry.deleted': { fields: ['id'], reduce: setting(0) },
  'entry.restored': { fields: ['id'], reduce: setting(1) },
  'entry.purged': { fields: ['id'], reduce: ({ entries }, { id }) => entries.delete(known(entries, id).id) },
  'entries.imported': { fields: ROWS, rows: ['entries', FIRST_ROW], reduce: imported },
  'fields.imported': { fields: ROWS, rows: ['entries', [...ENTRY_FIELDS, 'status']], reduce: imported },
  'entries.kept': { fields: ROWS, rows: ['entries', FIRST_ROW], reduce: kept },
  'fields.kept': { fields: ROWS, rows: ['entries', [...ENTRY_FIELDS, 'status', 'changed']], reduce: kept },
  'entries.disclosed': { fields: ['command', 'entries', 'id'], reduce: nothing },
  'user.added': {
    fields: ['id', 'email', 'name', 'abilities', 'passwordHash'],
    reduce: ({ users, addresses }, { id, email, name, abilities, passwordHash }) => {
      assertNext(users, id)
      if (addresses.has(email)) throw new Error(`user ${id} has another user's address`)
      users.set(id, { id, email, name, abilities, passwordHash, passwords: 1 })
      addresses.set(email, id)
    }
  },
  'user.changed': {
    fields: ['id', 'name', 'abilities'],
    reduce: ({ users, tokens }, { id, name, abilities }) => {
      const old = known(users, id)
      users.set(id, { ...old, name: name ?? old.name, abilities: abilities ?? old.abilities })
      if (abilities !== undefined) narrowTokens(tokens, id, abilities)
    }
  },
  'user.removed': {
    fields: ['id'],
    reduce: ({ users, addresses, tokens }, { id }) => {
      const old = known(users, id)
      users.set(id, { ...old, passwordHash: undefined })
      if (addresses.get(old.email) === id) addresses.delete(old.email)
      endTokens(tokens, id)
    }
  },
  'password.changed': {
    fields: PASSWORD,
    reduce: ({ users, tokens }, { id, passwordHash }) => {
      const old = known(users, id)
      users.set(id, { ...old, passwordHash, passwords: old.passwords + 1 })
      endTokens(tokens, id)
    }
  },
  'password.rehashed': {
    fields: PASSWORD,
    reduce: ({ users }, { id, passwordHash }) => { users.set(id, { ...known(users, id), passwordHash }) }
  },
  'token.issued': {
    fields: TOKEN,
    reduce: ({ users, tokens }, { hash, user, abilities, issued, expires, name }, _timeMs, by) => {
      known(users, user)
      const more = { ...name !== undefined && { name }, ...by !== null && { isOfLogin: true as const } }
      tokens.set(hash, { user, abilities, issued, expires, ...more })
    }
  },
  'token.revoked': { fields: ['hash'], reduce: ({ tokens }, { hash }) => { tokens.delete(hash) } },
  'tokens.revoked': { fields: ['user'], reduce: ({ tokens }, { user }) => endTokens(tokens, user) },
  'users.kept': {
    fields: ['first', 'users'], rows: ['users', ['email', 'name', 'abilities', 'passwordHash']],
    reduce: ({ users, addresses }, { first, users: kept }) => {
      assertNext(users, first)
      for (const [i, user] of kept.entries()) {
        const id = first + i
        users.set(id, { id, ...user ?? REMOVED, passwords: 1 })
        if (user !== null) addresses.set(user.email, id)
      }
    }
  },
  'tokens.kept': {
    fields: ['tokens'], rows: ['tokens', [...TOKEN, 'isOfLogin']],
    reduce: ({ users, tokens }, { tokens: kept }) => {
      for (const { hash, ...token } of kept) {
        known(users, token.user)
        tokens.set(hash, token)
      }
    }
  },
  'journal.begun': { fields: [], reduce: nothing },
  'journal.continued': { fields: CONTINUED, reduce: nothing },
  'journal.rewritten': { fields: CONTINUED, reduce: nothing },
  'journal.whole': { fields: ['records'], reduce: nothing }
}

/** A removed user of whom a compaction has kept the number alone. */
const REMOVED = { email: '', name: '', abilities: [], passwordHash: undefined }

/** The same table, as records are looked up in it. */
const KNOWN = new Map(Object.entries(TYPES).map(([type, { fields, rows, reduce }]) => [type, {
  fields: new Set<string>([...fields, OPERATOR]), list: rows?.[0], ofRows: new Set(rows?.[1]),
  isOfEntries: /^(entry|entries|fields)\./.test(type),
  reduce: reduce as Reduce<unknown>
}]))

/** Whether a type of record is about entries, and about nothing else. */
export function isOfEntries(type: string): boolean { return KNOWN.get(type)?.isOfEntries === true }

/** The only way that the state, or a draft of it, changes. Throws if an event contradicts those before it. */
export function reduce(tables: Tables, { type, data, by }: Event, timeMs: number): void {
  KNOWN.get(type)!.reduce(tables, data, timeMs, by)
}

/**
 * Throws unless this version knows an event's type and each of its fields. One that a newer version wrote would
 * otherwise be dropped without a word by the next compaction.
 */
export function assertKnownEvent(type: string, data: unknown): asserts type is keyof Events {
  const known = KNOWN.get(type)
  if (known === undefined) throw new Failure('journal-newer', `this version does not know records of type ${type}`)
  assertFields(type, data, known.fields)
  if (known.list === undefined) return
  for (const row of (data as { readonly [list: string]: readonly unknown[] })[known.list]!) {
    assertFields(type, row, known.ofRows)
  }
}

function assertFields(type: string, data: unknown, known: ReadonlySet<string>): void {
  for (const field in data as object) {
    if (known.has(field)) continue
    throw new Failure('journal-newer', `this version does not know each field of a record of type ${type}`)
  }
}

function assertNext(table: { readonly size: number }, id: number): void {
  if (id !== table.size + 1) throw new Error(`${id} is not the next id`)
}

function known<V>(table: { get(id: number): V | undefined }, id: number): V {
  const value = table.get(id)
  if (value === undefined) throw new Error(`id ${id} does not exist`)
  return value
}

/** A user's tokens keep of their abilities only those that the user has. */
function narrowTokens(tokens: Tables['tokens'], user: number, abilities: readonly string[]): void {
  for (const [hash, token] of tokens) {
    if (token.user !== user) continue
    const kept = covers(token.abilities, ANY_ABILITY) ? abilities
      : token.abilities.filter(ability => covers(abilities, ability))
    tokens.set(hash, { ...token, abilities: kept })
  }
}

function endTokens(tokens: Tables['tokens'], user: number): void {
  for (const [hash, token] of tokens) if (token.user === user) tokens.delete(hash)
}
