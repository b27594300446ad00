/** The events that a journal may hold, and their effects. */
import { Failure } from '../errors.ts'
import type { Event } from '../journal/journal.ts'
import type { EntryTable } from '../entries/entry-table.ts'
import {
  changedEntry,
  ENTRY_FIELDS,
  entryOf,
  REQUIRED_FIELDS,
  type Entry,
  type EntryChanges,
  type EntryFields,
  type EntryRow
} from '../entries/entry.ts'
import type { GroupNames } from '../rights/groups.ts'
import {
  authorOf,
  KNOWLEDGE_TYPES,
  namedIn,
  OPERATOR,
  type KnowledgeEvents
} from '../knowledge/knowledge-events.ts'
import { OTHERS, type KnowledgeTable, type Knower } from '../knowledge/knowledge.ts'
import {
  dropAddress,
  endTokens,
  hasAddress,
  narrowTokens,
  setAddress,
  type KeptToken,
  type KeptUser,
  type Token,
  type User
} from '../rights/rights.ts'

/** Times are ISO 8601; `changed`: when the password was set. */
export type KeptRow = EntryRow & {
  readonly changed?: string | undefined
  readonly deleted?: string | undefined
  readonly deletedBy?: Knower | undefined
}

/** Milliseconds since 1970; `by` is undefined if nobody was named. */
export interface Deletion {
  readonly ms: number
  readonly by: Knower | undefined
}

export interface Tables {
  readonly entries: EntryTable
  readonly names: Pick<GroupNames, 'add'>
  /** Of deleted entries, if it is known. */
  readonly deletions: Map<number, Deletion>
  readonly knowledge: KnowledgeTable
  /** By id, from 1 without gaps. Removed users stay, without a password. */
  readonly users: Map<number, User>
  /** Without removed users. */
  readonly addresses: Map<string, number>
  /** By hash. */
  readonly tokens: Map<string, Token>
}

const CONTINUED = ['why', 'head', 'records', 'time', 'source', 'archive', 'opened', 'lost'] as const

interface Id {
  readonly id: number
}
interface Rows<R> {
  readonly first: number
  readonly entries: readonly R[]
}

/**
 * Fields beyond the contract's three make the type `fields.…`: versions that would drop those
 * fields refuse the type.
 */
export interface Events extends KnowledgeEvents {
  'entry.created': Id & EntryFields
  'fields.created': Id & EntryFields
  'entry.updated': Id & EntryChanges
  'fields.updated': Id & EntryChanges
  'entry.deleted': Id
  'entry.restored': Id
  /** All values were removed; the id stays unknown. */
  'entry.purged': Id
  /** One record has many entries, since a record is whole or missing. */
  'entries.imported': Rows<EntryRow>
  'fields.imported': Rows<EntryRow>
  /** Kept by a compaction; null for purged entries and removed users. */
  'entries.kept': Rows<EntryRow | null>
  'fields.kept': Rows<KeptRow | null>
  'users.kept': { readonly first: number; readonly users: readonly (KeptUser | null)[] }
  'tokens.kept': { readonly tokens: readonly KeptToken[] }
  'user.added': Id & KeptUser
  /** Narrows the user's tokens. */
  'user.changed': Id & {
    readonly name?: string | undefined
    readonly abilities?: readonly string[] | undefined
    /** Null: all. */
    readonly groups?: readonly string[] | null | undefined
  }
  /** Ends the user's tokens, as a new password does. */
  'user.removed': Id
  'password.changed': Id & Pick<KeptUser, 'passwordHash' | 'hasNoPassword' | 'isLocked'>
  /** The same password at a higher cost. */
  'password.rehashed': Id & { readonly passwordHash: string }
  /** A second factor, in base32; `step` is that of its first code. */
  'factor.given': Id & { readonly factor: string; readonly step: number }
  'factor.removed': Id
  /** `step`: of the code that the login gave. */
  'token.issued': KeptToken & { readonly step?: number | undefined }
  'token.revoked': { readonly hash: string }
  'tokens.revoked': { readonly user: number }
  'journal.begun': {}
  /** `journal.rewritten` tells its source's end, `journal.continued` an earlier end. */
  'journal.continued': { readonly [F in (typeof CONTINUED)[number]]?: unknown }
  'journal.rewritten': Events['journal.continued']
  /** Ends a copy of the journal before; `records` precede it. */
  'journal.whole': { readonly records: number }
}

type Reduce<D> = (tables: Tables, data: D, timeMs: number, by: number | null) => void

interface EventType<D> {
  readonly fields: readonly (keyof D)[]
  readonly rows?: readonly [list: string, fields: readonly string[]]
  readonly reduce: Reduce<D>
}

const ROWS = ['first', 'entries'] as const
const FIRST_ROW = [...REQUIRED_FIELDS, 'status']
const LOGIN = ['passwordHash', 'hasNoPassword', 'isLocked'] as const
const USER = [
  'email',
  'name',
  'abilities',
  'groups',
  'firstPassword',
  'factor',
  'step',
  ...LOGIN
] as const
const TOKEN = ['hash', 'user', 'abilities', 'groups', 'issued', 'expires', 'name'] as const

/** `setMs`: see `EntryTable.set`. */
function put(tables: Tables, entry: Entry, old?: Entry, setMs?: number, by?: Knower): void {
  const { entries, knowledge } = tables
  knowledge.put(entry, old, by)
  entries.set(entry, setMs)
}

function purge({ entries, knowledge, deletions }: Tables, id: number): void {
  const old = entries.get(id)
  if (old !== undefined) knowledge.purge(old)
  deletions.delete(id)
  entries.delete(id)
}

const created: Reduce<Events['entry.created']> = (tables, data, timeMs, by) => {
  assertNext(tables.entries, data.id)
  put(tables, entryOf(data.id, data, 1), undefined, timeMs, authorOf(tables.knowledge, data, by))
}
const updated: Reduce<Events['entry.updated']> = (tables, data, timeMs, by) => {
  const old = known(tables.entries, data.id)
  const setMs = data.password === undefined ? undefined : timeMs
  put(tables, changedEntry(old, data), old, setMs, authorOf(tables.knowledge, data, by))
}
const imported: Reduce<Events['entries.imported']> = (tables, data, timeMs, by) => {
  const { first, entries: rows } = data
  assertNext(tables.entries, first)
  const author = authorOf(tables.knowledge, data, by)
  for (const [i, row] of rows.entries())
    put(tables, entryOf(first + i, row, row.status), undefined, timeMs, author)
  // These passwords were in use elsewhere.
  if (rows.length > 0) tables.knowledge.tell(OTHERS, [[first, first + rows.length - 1]])
}
const kept: Reduce<Events['fields.kept']> = (tables, { first, entries: rows }) => {
  assertNext(tables.entries, first)
  for (const [i, row] of rows.entries()) {
    const id = first + i
    if (row === null) {
      purge(tables, id)
      continue
    }
    const { changed, deleted, deletedBy, status } = row
    put(
      tables,
      entryOf(id, row, status),
      undefined,
      changed === undefined ? undefined : Date.parse(changed),
      undefined
    )
    if (deleted !== undefined) tables.deletions.set(id, { ms: Date.parse(deleted), by: deletedBy })
  }
}
const deleted: Reduce<Id> = (tables, data, timeMs, by) => {
  const old = known(tables.entries, data.id)
  put(tables, { ...old, status: 0 }, old)
  if (old.status === 1) tables.deletions.set(data.id, { ms: timeMs, by: namedIn(data, by) })
}
const restored: Reduce<Id> = (tables, { id }) => {
  const old = known(tables.entries, id)
  put(tables, { ...old, status: 1 }, old)
  tables.deletions.delete(id)
}
const nothing = (): void => {}

const TYPES: { readonly [T in keyof Events]: EventType<Events[T]> } = {
  'entry.created': { fields: ['id', ...REQUIRED_FIELDS], reduce: created },
  'fields.created': { fields: ['id', ...ENTRY_FIELDS], reduce: created },
  'entry.updated': { fields: ['id', ...REQUIRED_FIELDS], reduce: updated },
  'fields.updated': { fields: ['id', ...ENTRY_FIELDS], reduce: updated },
  'entry.deleted': { fields: ['id'], reduce: deleted },
  'entry.restored': { fields: ['id'], reduce: restored },
  'entry.purged': {
    fields: ['id'],
    reduce: (tables, { id }) => purge(tables, known(tables.entries, id).id)
  },
  'entries.imported': { fields: ROWS, rows: ['entries', FIRST_ROW], reduce: imported },
  'fields.imported': {
    fields: ROWS,
    rows: ['entries', [...ENTRY_FIELDS, 'status']],
    reduce: imported
  },
  'entries.kept': { fields: ROWS, rows: ['entries', FIRST_ROW], reduce: kept },
  'fields.kept': {
    fields: ROWS,
    rows: ['entries', [...ENTRY_FIELDS, 'status', 'changed', 'deleted', 'deletedBy']],
    reduce: kept
  },
  ...KNOWLEDGE_TYPES,
  'user.added': {
    fields: ['id', ...USER],
    reduce: (tables, user) => {
      assertNext(tables.users, user.id)
      if (hasAddress(tables, user.email))
        throw new Error(`user ${user.id} has another user's address`)
      addUser(tables, user.id, user)
    }
  },
  'user.changed': {
    fields: ['id', 'name', 'abilities', 'groups'],
    reduce: ({ users, tokens, names }, { id, name, abilities, groups }) => {
      const old = known(users, id)
      const user = {
        ...old,
        name: name ?? old.name,
        abilities: abilities ?? old.abilities,
        groups: groups === undefined ? old.groups : (groups ?? undefined)
      }
      users.set(id, user)
      names.add(user.groups)
      if (abilities !== undefined || groups !== undefined) narrowTokens(tokens, user)
    }
  },
  'user.removed': {
    fields: ['id'],
    reduce: ({ users, addresses, tokens }, { id }) => {
      const old = known(users, id)
      users.set(id, {
        ...old,
        passwordHash: undefined,
        factor: undefined,
        step: undefined,
        isRemoved: true
      })
      dropAddress(addresses, old)
      endTokens(tokens, id)
    }
  },
  'password.changed': {
    fields: ['id', ...LOGIN],
    reduce: ({ users, tokens }, { id, passwordHash, isLocked }) => {
      const old = known(users, id)
      users.set(id, {
        ...old,
        passwordHash,
        firstPassword: undefined,
        isLocked,
        passwords: old.passwords + 1
      })
      endTokens(tokens, id)
    }
  },
  'password.rehashed': {
    fields: ['id', 'passwordHash'],
    reduce: ({ users }, { id, passwordHash }) => {
      users.set(id, { ...known(users, id), passwordHash })
    }
  },
  'factor.given': {
    fields: ['id', 'factor', 'step'],
    reduce: ({ users }, { id, factor, step }) => {
      users.set(id, { ...known(users, id), factor, step })
    }
  },
  'factor.removed': {
    fields: ['id'],
    reduce: ({ users }, { id }) => {
      users.set(id, { ...known(users, id), factor: undefined, step: undefined })
    }
  },
  'token.issued': {
    fields: [...TOKEN, 'step'],
    reduce: (
      tables,
      { hash, user, abilities, groups, issued, expires, name, step },
      _timeMs,
      by
    ) => {
      if (step !== undefined) tables.users.set(user, { ...known(tables.users, user), step })
      // A user's tokens come from logins, all others from the operator.
      const isOfLogin = by !== null
      const more = {
        ...(groups && { groups }),
        ...(name !== undefined && { name }),
        ...(isOfLogin && { isOfLogin })
      }
      addToken(tables, hash, { user, abilities, issued, expires, ...more })
    }
  },
  'token.revoked': {
    fields: ['hash'],
    reduce: ({ tokens }, { hash }) => {
      tokens.delete(hash)
    }
  },
  'tokens.revoked': { fields: ['user'], reduce: ({ tokens }, { user }) => endTokens(tokens, user) },
  'users.kept': {
    fields: ['first', 'users'],
    rows: ['users', USER],
    reduce: (tables, { first, users: kept }) => {
      assertNext(tables.users, first)
      for (const [i, user] of kept.entries()) {
        const id = first + i
        if (user === null) tables.users.set(id, { id, ...REMOVED })
        else addUser(tables, id, user)
      }
    }
  },
  'tokens.kept': {
    fields: ['tokens'],
    rows: ['tokens', [...TOKEN, 'isOfLogin']],
    reduce: (tables, { tokens }) => {
      for (const { hash, ...token } of tokens) addToken(tables, hash, token)
    }
  },
  'journal.begun': { fields: [], reduce: nothing },
  'journal.continued': { fields: CONTINUED, reduce: nothing },
  'journal.rewritten': { fields: CONTINUED, reduce: nothing },
  'journal.whole': { fields: ['records'], reduce: nothing }
}

/** After a compaction, only the number is left. */
const REMOVED = {
  email: '',
  name: '',
  abilities: [],
  passwordHash: undefined,
  passwords: 1,
  isRemoved: true as const
}

const KNOWN = new Map(
  Object.entries(TYPES).map(([type, { fields, rows, reduce }]) => [
    type,
    {
      fields: new Set<string>([...fields, OPERATOR]),
      list: rows?.[0],
      ofRows: new Set(rows?.[1]),
      reduce: reduce as Reduce<unknown>
    }
  ])
)

/** What a journal may hold. */
export const EVENT_TYPES: readonly string[] = [...KNOWN.keys()]

export function isOfEntries(type: string): boolean {
  return /^(entry|entries|fields)\./.test(type)
}

/** The only way to change the state or a draft. Throws if an event contradicts earlier events. */
export function reduce(tables: Tables, { type, data, by }: Event, timeMs: number): void {
  KNOWN.get(type)!.reduce(tables, data, timeMs, by)
}

/**
 * Throws `journal-newer` for an unknown type or field, which the next compaction would silently
 * drop.
 */
export function assertKnownEvent(type: string, data: unknown): asserts type is keyof Events {
  const known = KNOWN.get(type)
  if (known === undefined)
    throw new Failure('journal-newer', `this version does not know records of type ${type}`)
  assertFields(type, data, known.fields)
  if (known.list === undefined) return
  for (const row of (data as { readonly [list: string]: readonly unknown[] })[known.list]!) {
    assertFields(type, row, known.ofRows)
  }
}

function assertFields(type: string, data: unknown, known: ReadonlySet<string>): void {
  for (const field in data as object) {
    if (known.has(field)) continue
    throw new Failure(
      'journal-newer',
      `this version does not know each field of a record of type ${type}`
    )
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

function addUser({ users, addresses, names }: Tables, id: number, kept: KeptUser): void {
  const { email, name, abilities, groups, passwordHash, firstPassword, factor, step, isLocked } =
    kept
  const user = {
    id,
    email,
    name,
    abilities,
    groups,
    passwordHash,
    passwords: 1,
    firstPassword,
    factor,
    step,
    isLocked
  }
  users.set(id, user)
  setAddress(addresses, user)
  names.add(groups)
}

function addToken({ users, tokens, names }: Tables, hash: string, token: Token): void {
  known(users, token.user)
  tokens.set(hash, token)
  names.add(token.groups)
}
