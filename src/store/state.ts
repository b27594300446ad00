/** The state, and the one reducer that makes it: every event ever recorded, applied in order from the first. */
import type { Event } from '../journal/journal.ts'
import type { Applied } from './commit-loop.ts'
import { EntryTable } from './entry-pages.ts'
import type { Entry, Events, KeptUser, Token, User } from './events.ts'
import { Draft, type Collection, type Table } from './drafts.ts'

/** What commands read: the committed state, or a draft of what it will be. */
export interface State {
  readonly entries: Collection<number, Entry>
  /** By id; ids count from 1 without gaps. */
  readonly users: Collection<number, User>
  /** By hash. */
  readonly tokens: Collection<string, Token>
}

/** The committed state, which is served. */
export interface CommittedState extends State {
  readonly entries: EntryTable
}

/** An event whose data has the form that its type asks for; `by` is the user who caused it, null for none. */
export function event<T extends keyof Events>(type: T, by: number | null, data: Events[T]): Event {
  return { type, by, data }
}

export function emptyState(): CommittedState {
  return { entries: new EntryTable(), users: new Map(), tokens: new Map() }
}

/** What the commit loop does with a state. */
export function applied(state: CommittedState): Applied<State> {
  return {
    draft: () => ({
      entries: new Draft(state.entries), users: new Draft(state.users), tokens: new Draft(state.tokens)
    }),
    applyTo: apply,
    apply: record => apply(state, record)
  }
}

/** The user of an address that was not removed. */
export function userOf(state: State, email: string): User | undefined {
  for (const [, user] of state.users.entries()) {
    if (user.email === email && user.passwordHash !== undefined) return user
  }
  return undefined
}

type Appliers = { readonly [T in keyof Events]: (state: State, data: Events[T]) => void }

const APPLIERS: Appliers = {
  'entry.created': ({ entries }, { id, password, sistema, usuario }) => {
    isNext(entries, id)
    entries.set(id, { id, password, sistema, usuario, status: 1 })
  },
  'entry.updated': ({ entries }, { id, password, sistema, usuario }) => {
    const old = known(entries, id)
    entries.set(id, {
      ...old, password: password ?? old.password, sistema: sistema ?? old.sistema, usuario: usuario ?? old.usuario
    })
  },
  'entry.deleted': ({ entries }, { id }) => { entries.set(id, { ...known(entries, id), status: 0 }) },
  'entry.restored': ({ entries }, { id }) => { entries.set(id, { ...known(entries, id), status: 1 }) },
  'entries.imported': ({ entries }, { first, entries: imported }) => {
    isNext(entries, first)
    for (const [i, { password, sistema, usuario, status }] of imported.entries()) {
      entries.set(first + i, { id: first + i, password, sistema, usuario, status })
    }
  },
  'entry.purged': ({ entries }, { id }) => { entries.delete(known(entries, id).id) },
  'entries.disclosed': () => {},

  'user.added': (state, { id, email, name, abilities, passwordHash }) => {
    isNext(state.users, id)
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

  'token.issued': ({ users, tokens }, { hash, user, abilities, issued, expires }) => {
    known(users, user)
    tokens.set(hash, { user, abilities, issued, expires })
  },
  'token.revoked': ({ tokens }, { hash }) => { tokens.delete(hash) },
  'tokens.revoked': (state, { user }) => endTokens(state, user),

  'journal.continued': () => {},
  'entries.kept': ({ entries }, { first, entries: kept }) => {
    isNext(entries, first)
    let id = first
    for (const entry of kept) {
      if (entry === null) entries.delete(id)
      else {
        const { password, sistema, usuario, status } = entry
        entries.set(id, { id, password, sistema, usuario, status })
      }
      id++
    }
  },
  'users.kept': ({ users }, { first, users: kept }) => {
    isNext(users, first)
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

/** Applies one event to a state; the same for replay, for drafts and for commits. Throws if it does not fit. */
export function apply(state: State, { type, data }: Pick<Event, 'type' | 'data'>): void {
  if (!Object.hasOwn(APPLIERS, type)) throw new Error(`a record of type ${type} is not known to this version`)
  APPLIERS[type as keyof Events](state, data as never)
}

function isNext(table: Table<number, unknown>, id: number): void {
  if (id !== table.size + 1) throw new Error(`${id} is not the next id`)
}

function known<V>(table: Table<number, V>, id: number): V {
  const value = table.get(id)
  if (value === undefined) throw new Error(`id ${id} does not exist`)
  return value
}

function endTokens({ tokens }: State, user: number): void {
  for (const [hash, token] of [...tokens.entries()]) if (token.user === user) tokens.delete(hash)
}
