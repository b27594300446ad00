/** The state, and the reducers that make it: every event ever recorded, reduced in order from the first. */
import { Buffer } from 'node:buffer'
import { Failure } from '../errors.ts'
import { MAX_ENTRY_BYTES } from '../limits.ts'
import type { EncodedEvent, JournalRecord } from '../journal/journal.ts'
import { changedEntry, entryText, fieldsOf, rowOf, type Entry } from './entry.ts'
import { Entries, type EntryTable } from './entries.ts'
import { assertKnownEvent, type Events, type KeptUser, type Token, type User } from './events.ts'
import { ANY_ABILITY, covers, tokenId, type Session } from './session.ts'

/** Everything that is served. */
export class State {
  readonly entries: Entries = new Entries()
  /** By id; ids count from 1 without gaps. A removed user stays, without a password. */
  readonly users: Map<number, User> = new Map()
  /** The ids of users who were not removed, by address. */
  readonly addresses: Map<string, number> = new Map()
  readonly tokens: Tokens = new Tokens()
  /** When the newest record was made; empty if there is none. */
  recorded = ''

  /** The user of an address who was not removed. Addresses are compared without case. */
  userOf(email: string): User | undefined { return this.users.get(this.addresses.get(email.toLowerCase()) ?? 0) }

  /** Takes a durable record. Throws if it contradicts those before it, `journal-newer` if a newer version made it. */
  readonly apply = ({ type, data, time, by }: JournalRecord): void => {
    reduce(this, type, data, Date.parse(time), by)
    this.recorded = time
  }

  /** Forgets expired tokens; also in the open configuration, whose journal may hold some. */
  sweep(wallMs: number): void {
    for (const [hash, token] of this.tokens) if (isExpired(token, wallMs)) this.tokens.delete(hash)
  }
}

/** Tokens by their hashes, and the hashes by users: whoever has many costs a change no more than others. */
class Tokens extends Map<string, Token> {
  readonly #hashes = new Map<number, Set<string>>()
  /** When each was last seen by this process, in milliseconds since 1970. */
  readonly #usedMs = new Map<string, number>()

  /** When a token was last used, as far as this process knows; undefined: not since it began. */
  usedMs(hash: string): number | undefined { return this.#usedMs.get(hash) }

  use(hash: string, wallMs: number): void { this.#usedMs.set(hash, wallMs) }

  override set(hash: string, token: Token): this {
    this.#hashes.get(this.get(hash)?.user ?? 0)?.delete(hash)
    const own = this.#hashes.get(token.user) ?? new Set()
    this.#hashes.set(token.user, own.add(hash))
    return super.set(hash, token)
  }

  override delete(hash: string): boolean {
    const { user } = this.get(hash) ?? {}
    if (user !== undefined) this.#hashes.get(user)?.delete(hash)
    this.#usedMs.delete(hash)
    return super.delete(hash)
  }

  /** The hashes of a user's tokens, as they are now. */
  of(user: number): readonly string[] { return [...this.#hashes.get(user) ?? []] }
}

/** What the commands of one write are decided on: the state with the changes of the commands before it. */
export class Draft implements EntryTable {
  readonly #state: State
  readonly #own = new Map<number, Entry | undefined>()
  readonly #revoked = new Set<string>()
  size: number
  /** About how many bytes of entries it holds. */
  bytes = 0

  constructor(state: State) {
    this.#state = state
    this.size = state.entries.size
  }

  get(id: number): Entry | undefined {
    if (!this.#own.has(id)) {
      this.#own.set(id, this.#state.entries.get(id))
      this.bytes += this.#state.entries.text(id)?.length ?? 0
    }
    return this.#own.get(id)
  }

  set(entry: Entry): void {
    this.#own.set(entry.id, entry)
    this.size = Math.max(this.size, entry.id)
  }

  delete(id: number): void { this.#own.set(id, undefined) }

  tagOf(entry: Entry): string { return this.#state.entries.tagOf(entryText(entry)) }

  /** The token of a hash, unless a command before has revoked it. */
  token(hash: string): Token | undefined {
    return this.#revoked.has(hash) ? undefined : this.#state.tokens.get(hash)
  }

  /** Throws `session-changed` if the token was revoked, or may do less, since the session was found. */
  assertStands({ hash, abilities }: Session): void {
    if (this.token(hash)?.abilities !== abilities) throw new Failure('session-changed', `token ${tokenId(hash)}`)
  }

  /** Takes what a command has decided. Events about users stand alone in their write, so nobody looks for them here. */
  take({ type, data }: EncodedEvent): void {
    if (type === 'token.revoked') this.#revoked.add((data as Events['token.revoked']).hash)
    else if (Object.hasOwn(ENTRY_REDUCERS, type)) ENTRY_REDUCERS[type as EntryEvent](this, data as never, 0)
  }
}

/** An event whose data has the form that its type asks for; `by` is the user who caused it, null for none. */
export function event<T extends keyof Events>(type: T, by: number | null, data: Events[T]): EncodedEvent {
  return { type, by, data, json: JSON.stringify(data) }
}

export function isExpired({ expires }: Token, wallMs: number): boolean {
  return expires !== null && Date.parse(expires) <= wallMs
}

/** Throws `entry-too-large` if an entry could not be exported, or imported, any more. */
export function assertFits(entry: Entry): void {
  const text = entryText(entry)
  // In UTF-8 a UTF-16 unit takes at most three bytes: nearly always there is nothing to count.
  if (text.length * 3 <= MAX_ENTRY_BYTES || Buffer.byteLength(text) <= MAX_ENTRY_BYTES) return
  throw new Failure('entry-too-large', `it may have ${MAX_ENTRY_BYTES} bytes as JSON`)
}

type EntryEvent = Extract<keyof Events, `entry.${string}` | `entries.${string}` | `fields.${string}`>
type EntryReducer<D> = (entries: EntryTable, data: D, timeMs: number) => void

const created: EntryReducer<Events['fields.created']> = (entries, data, timeMs) => {
  assertNext(entries, data.id)
  entries.set({ id: data.id, ...fieldsOf(data), status: 1 }, timeMs)
}
const updated: EntryReducer<Events['fields.updated']> = (entries, data, timeMs) =>
  entries.set(changedEntry(known(entries, data.id), data), data.password === undefined ? undefined : timeMs)
const imported: EntryReducer<Events['fields.imported']> = (entries, { first, entries: rows }, timeMs) => {
  assertNext(entries, first)
  for (const [i, row] of rows.entries()) entries.set({ id: first + i, ...rowOf(row) }, timeMs)
}
const kept: EntryReducer<Events['fields.kept']> = (entries, { first, entries: rows }) => {
  assertNext(entries, first)
  for (const [i, row] of rows.entries()) {
    if (row === null) entries.delete(first + i)
    else entries.set({ id: first + i, ...rowOf(row) }, row.changed === undefined ? undefined : Date.parse(row.changed))
  }
}

const ENTRY_REDUCERS: { readonly [T in EntryEvent]: EntryReducer<Events[T]> } = {
  'entry.created': created, 'fields.created': created,
  'entry.updated': updated, 'fields.updated': updated,
  'entry.deleted': (entries, { id }) => entries.set({ ...known(entries, id), status: 0 }),
  'entry.restored': (entries, { id }) => entries.set({ ...known(entries, id), status: 1 }),
  'entry.purged': (entries, { id }) => entries.delete(known(entries, id).id),
  'entries.imported': imported, 'fields.imported': imported,
  'entries.kept': kept, 'fields.kept': kept,
  'entries.disclosed': () => {}
}

type StateEvent = Exclude<keyof Events, EntryEvent>

const REDUCERS: { readonly [T in StateEvent]: (state: State, data: Events[T], by: number | null) => void } = {
  'user.added': (state, { id, email, name, abilities, passwordHash }) => {
    assertNext(state.users, id)
    if (state.addresses.has(email)) throw new Error(`user ${id} has another user's address`)
    state.users.set(id, { id, email, name, abilities, passwordHash, passwords: 1 })
    state.addresses.set(email, id)
  },
  'user.changed': ({ users, tokens }, { id, name, abilities }) => {
    const old = known(users, id)
    users.set(id, { ...old, name: name ?? old.name, abilities: abilities ?? old.abilities })
    if (abilities !== undefined) narrowTokens(tokens, id, abilities)
  },
  'user.removed': ({ users, addresses, tokens }, { id }) => {
    const old = known(users, id)
    users.set(id, { ...old, passwordHash: undefined })
    if (addresses.get(old.email) === id) addresses.delete(old.email)
    endTokens(tokens, id)
  },
  'password.changed': ({ users, tokens }, { id, passwordHash }) => {
    const old = known(users, id)
    users.set(id, { ...old, passwordHash, passwords: old.passwords + 1 })
    endTokens(tokens, id)
  },
  'password.rehashed': ({ users }, { id, passwordHash }) => { users.set(id, { ...known(users, id), passwordHash }) },

  'token.issued': ({ users, tokens }, { hash, user, abilities, issued, expires, name }, by) => {
    known(users, user)
    const more = { ...name !== undefined && { name }, ...by !== null && { isOfLogin: true as const } }
    tokens.set(hash, { user, abilities, issued, expires, ...more })
  },
  'token.revoked': ({ tokens }, { hash }) => { tokens.delete(hash) },
  'tokens.revoked': ({ tokens }, { user }) => endTokens(tokens, user),

  'users.kept': (state, { first, users: kept }) => {
    assertNext(state.users, first)
    for (const [i, user] of kept.entries()) {
      const id = first + i
      state.users.set(id, { id, ...user ?? REMOVED, passwords: 1 })
      if (user !== null) state.addresses.set(user.email, id)
    }
  },
  'tokens.kept': ({ users, tokens }, { tokens: kept }) => {
    for (const { hash, ...token } of kept) {
      known(users, token.user)
      tokens.set(hash, token)
    }
  },
  'journal.begun': () => {},
  'journal.continued': () => {},
  'journal.rewritten': () => {},
  'journal.whole': () => {}
}

/** A removed user of whom a compaction has kept the number alone. */
const REMOVED: Omit<KeptUser, 'passwordHash'> & Pick<User, 'passwordHash'> =
  { email: '', name: '', abilities: [], passwordHash: undefined }

/** The only way that the state changes. */
function reduce(state: State, type: string, data: unknown, timeMs: number, by: number | null): void {
  assertKnownEvent(type, data)
  if (Object.hasOwn(ENTRY_REDUCERS, type)) ENTRY_REDUCERS[type as EntryEvent](state.entries, data as never, timeMs)
  else REDUCERS[type as StateEvent](state, data as never, by)
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
function narrowTokens(tokens: Tokens, user: number, abilities: readonly string[]): void {
  for (const hash of tokens.of(user)) {
    const token = tokens.get(hash)!
    const kept = covers(token.abilities, ANY_ABILITY) ? abilities
      : token.abilities.filter(ability => covers(abilities, ability))
    tokens.set(hash, { ...token, abilities: kept })
  }
}

function endTokens(tokens: Tokens, user: number): void {
  for (const hash of tokens.of(user)) tokens.delete(hash)
}
