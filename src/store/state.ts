/** The state, and the one reducer that makes it: every event ever recorded, reduced in order from the first. */
import { Buffer } from 'node:buffer'
import { Failure } from '../errors.ts'
import { MAX_ENTRY_BYTES } from '../limits.ts'
import { CONTINUATIONS, type Continued, type Event, type JournalRecord } from '../journal/journal.ts'
import type { Decidable } from './commit-loop.ts'
import { entryText, fieldsOf, rowOf, type Entry } from './entry.ts'
import { EntryTable } from './entry-pages.ts'
import { assertKnownEvent, type Events, type KeptUser, type Token, type User } from './events.ts'
import { IndexedOverlay, MapTable, Overlay, type IndexedTable, type Table } from './overlay.ts'
import { ANY_ABILITY, hasAbility } from './session.ts'

/** What commands read: the committed state, or an overlay of it. */
export interface State {
  readonly entries: Table<number, Entry>
  /** The number of the record that changed an entry last; undefined where that is not durable yet. */
  revisionOf(id: number): number | undefined
  /** By id; ids count from 1 without gaps. Found by address, unless removed. */
  readonly users: IndexedTable<number, User, string>
  /** By hash. Found by user. */
  readonly tokens: IndexedTable<string, Token, number>
}

/** The committed state, which is served. */
export interface CommittedState extends State {
  readonly entries: EntryTable
  readonly users: MapTable<number, User, string>
  readonly tokens: MapTable<string, Token, number>
  /** How many records the journals before this one had. */
  earlierRecords: number
  /** When the newest record was made; empty where there is none. */
  recorded: string
}

/** An event whose data has the form that its type asks for; `by` is the user who caused it, null for none. */
export function event<T extends keyof Events>(type: T, by: number | null, data: Events[T]): Event {
  return { type, by, data }
}

const addressOf = ({ email, passwordHash }: User): string | undefined => passwordHash === undefined ? undefined : email
const userIdOf = ({ user }: Token): number => user

export function emptyState(): CommittedState {
  const entries = new EntryTable(entryText)
  return {
    entries,
    revisionOf: id => entries.revisionOf(id),
    users: new MapTable(addressOf),
    tokens: new MapTable(userIdOf),
    earlierRecords: 0, recorded: ''
  }
}

/** What the commit loop decides on. */
export function decidable(state: CommittedState): Decidable<State> {
  return {
    overlay: () => {
      const entries = new Overlay(state.entries)
      return {
        entries,
        revisionOf: id => entries.hasOwn(id) ? undefined : state.revisionOf(id),
        users: new IndexedOverlay(state.users, addressOf),
        tokens: new IndexedOverlay(state.tokens, userIdOf)
      }
    },
    reduce
  }
}

/** The user of an address that was not removed. */
export function userOf({ users }: State, email: string): User | undefined {
  for (const id of users.keysOf(email)) return users.get(id)
  return undefined
}

type Reducers = { readonly [T in keyof Events]: (state: State, data: Events[T]) => void }

const REDUCERS: Reducers = {
  'entry.created': ({ entries }, data) => {
    assertNext(entries, data.id)
    entries.set(data.id, { id: data.id, ...fieldsOf(data), status: 1 })
  },
  'entry.updated': ({ entries }, data) => {
    entries.set(data.id, { ...known(entries, data.id), ...fieldsOf(data) } as Entry)
  },
  'entry.deleted': ({ entries }, { id }) => { entries.set(id, { ...known(entries, id), status: 0 }) },
  'entry.restored': ({ entries }, { id }) => { entries.set(id, { ...known(entries, id), status: 1 }) },
  'entries.imported': ({ entries }, { first, entries: imported }) => {
    assertNext(entries, first)
    for (const [i, row] of imported.entries()) entries.set(first + i, { id: first + i, ...rowOf(row) })
  },
  'entry.purged': ({ entries }, { id }) => { entries.delete(known(entries, id).id) },
  'entries.disclosed': () => {},

  'user.added': (state, { id, email, name, abilities, passwordHash }) => {
    assertNext(state.users, id)
    if (userOf(state, email) !== undefined) throw new Error(`user ${id} has another user's address`)
    state.users.set(id, { id, email, name, abilities, passwordHash, passwords: 1 })
  },
  'password.changed': (state, { id, passwordHash }) => {
    const old = known(state.users, id)
    state.users.set(id, { ...old, passwordHash, passwords: old.passwords + 1 })
    endTokens(state, id)
  },
  'password.rehashed': ({ users }, { id, passwordHash }) => { users.set(id, { ...known(users, id), passwordHash }) },
  'user.removed': (state, { id }) => {
    state.users.set(id, { ...known(state.users, id), passwordHash: undefined })
    endTokens(state, id)
  },

  'user.changed': (state, { id, name, abilities }) => {
    const old = known(state.users, id)
    state.users.set(id, { ...old, name: name ?? old.name, abilities: abilities ?? old.abilities })
    if (abilities !== undefined) narrowTokens(state, id, abilities)
  },

  'token.issued': ({ users, tokens }, { hash, user, abilities, issued, expires }) => {
    known(users, user)
    tokens.set(hash, { user, abilities, issued, expires })
  },
  'token.revoked': ({ tokens }, { hash }) => { tokens.delete(hash) },
  'tokens.revoked': (state, { user }) => endTokens(state, user),

  'journal.begun': () => {},
  'journal.continued': () => {},
  'journal.rewritten': () => {},
  'journal.whole': () => {},
  'entries.kept': ({ entries }, { first, entries: kept }) => {
    assertNext(entries, first)
    for (const [i, row] of kept.entries()) {
      if (row === null) entries.delete(first + i)
      else entries.set(first + i, { id: first + i, ...rowOf(row) })
    }
  },
  'users.kept': ({ users }, { first, users: kept }) => {
    assertNext(users, first)
    for (const [i, user] of kept.entries()) users.set(first + i, { id: first + i, ...user ?? REMOVED, passwords: 1 })
  },
  'tokens.kept': ({ users, tokens }, { tokens: kept }) => {
    for (const { hash, ...token } of kept) {
      known(users, token.user)
      tokens.set(hash, token)
    }
  }
}

/** A removed user of whom a compaction has kept the number alone. */
const REMOVED: Omit<KeptUser, 'passwordHash'> & Pick<User, 'passwordHash'> =
  { email: '', name: '', abilities: [], passwordHash: undefined }

/** Reduces one event into a state or an overlay; the same for replay and for decisions. Throws if it does not fit. */
function reduce(state: State, { type, data }: Pick<Event, 'type' | 'data'>): void {
  assertKnownEvent(type, data)
  REDUCERS[type](state, data as never)
}

/** Where the seconds begin in the text of a time. */
const SECONDS_AT = '2026-01-31T12:00:'.length
const MINUTE_MS = 60_000

/**
 * Reduces a durable record into the committed state. An entry's revision is the number of the record that changed it
 * last, counted over all journals that this one came from: so it is never given twice. Numbers come again where an
 * older copy of a journal is put back; so the milliseconds of the record's minute are in it, too.
 */
export function apply(state: CommittedState, record: JournalRecord): void {
  if (CONTINUATIONS.has(record.type)) state.earlierRecords += (record.data as Continued).records
  state.recorded = record.time
  const ms = Math.round(Number(record.time.slice(SECONDS_AT, -1)) * 1000)
  state.entries.revision = (state.earlierRecords + record.seq) * MINUTE_MS + ms
  reduce(state, record)
}

/** Throws `entry-too-large` where an entry could no longer be exported, or imported. */
export function assertFits(entry: Entry): void {
  const text = entryText(entry)
  // In UTF-8 a UTF-16 unit takes at most three bytes: nearly always there is nothing to count.
  if (text.length * 3 <= MAX_ENTRY_BYTES || Buffer.byteLength(text) <= MAX_ENTRY_BYTES) return
  throw new Failure('entry-too-large', `it may have ${MAX_ENTRY_BYTES} bytes as JSON`)
}

function assertNext(table: Table<number, unknown>, id: number): void {
  if (id !== table.size + 1) throw new Error(`${id} is not the next id`)
}

function known<V>(table: Table<number, V>, id: number): V {
  const value = table.get(id)
  if (value === undefined) throw new Error(`id ${id} does not exist`)
  return value
}

/** A user's tokens keep of their abilities what the user has. */
function narrowTokens({ tokens }: State, user: number, abilities: readonly string[]): void {
  for (const hash of [...tokens.keysOf(user)]) {
    const token = tokens.get(hash)!
    const kept = hasAbility(token.abilities, ANY_ABILITY) ? abilities
      : token.abilities.filter(ability => hasAbility(abilities, ability))
    tokens.set(hash, { ...token, abilities: kept })
  }
}

function endTokens({ tokens }: State, user: number): void {
  for (const hash of tokens.keysOf(user)) tokens.delete(hash)
}
