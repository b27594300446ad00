/**
 * Rebuilds the state of a damaged journal without guesses: records that do not fit are put aside, ids that may have
 * been given stay unused, and access that may have ended stays ended.
 */
import type { JournalRecord } from '../../../journal/journal.ts'
import type { KeyFinder } from '../../../journal/keys.ts'
import { FIRST_HASH, hashOf, isChained, openLine, type Line } from '../../../journal/line.ts'
import { ENTRY_FIELDS, FIELDS } from '../../../store/entry.ts'
import { assertKnownEvent, event, isOfEntries, type Events } from '../../../store/events.ts'
import { State } from '../../../store/state.ts'
import type { KeptToken } from '../../../store/users.ts'
import { CONTINUATIONS, type Continued, type LostLines } from '../commands/journal-files.ts'
import type { Hash, Head, Remains } from './salvage-lines.ts'

/** `after` and `before` are the times of the records around the lost lines. */
export interface Loss extends LostLines {
  readonly after: string | null
  readonly before: string | null
}

/** A record that was read, but does not fit. */
export interface Unplaced extends JournalRecord { readonly why: string }

/** Types that change neither users nor passwords. */
const HARMLESS = /^(entry|entries|fields|token|tokens|journal)\./
const LEAST_ROW_BYTES = 6
/** The most ids to leave out for lines lost at the end. */
const MOST_FREE = { entries: 1_000_000, users: 100_000 }
const FILL_ROWS = 2_000

export class Salvaging {
  readonly state: State = new State()
  readonly losses: Loss[] = []
  readonly unplaced: Unplaced[] = []
  readonly missingKeys: Set<string> = new Set()
  readonly gone: (readonly [first: number, last: number])[] = []
  lines = 0
  opened = 0
  last = 0
  head: string = FIRST_HASH
  until: string | null = null
  mayLackUsers = false
  mayLackChanges = false
  readonly #keys: KeyFinder
  #noted: string | undefined
  /** The last hash that was read: the next line follows that, or the last opened line. */
  #hash: string = FIRST_HASH
  /** The line before the next hash, if its key is missing, and if it follows without a gap. */
  #locked: Line | undefined
  #next: Pick<Head, 'end' | 'seq'> | undefined
  /** Types of unopened lines. */
  readonly #claims = new Map<number, string>()
  /** The end of the last opened line, and of the lines that follow it without a gap. */
  #end = 0
  #seamlessEnd = 0
  #seamlessLast = 0
  /** Ids that may be lost since the last record that gave one. */
  #free = { entries: 0, users: 0 }

  constructor(keys: KeyFinder, noted?: string) {
    this.#keys = keys
    this.#noted = noted === FIRST_HASH ? undefined : noted
  }

  /** Whether the noted head was found, here or as the end of an earlier journal. */
  get hasHead(): boolean { return this.#noted === undefined }

  take(remains: Remains): void {
    if ('hash' in remains) this.#takeHash(remains)
    else this.#takeHead(remains)
  }

  /** `nextId`: the operator knows that it is free. */
  end(bytes: number, nextId: number): void {
    const isSeamless = this.#seamlessEnd === bytes && this.hasHead
    const to = isSeamless ? this.#seamlessLast : null
    if (to === null || to > this.last) this.#lose(to, Math.max(0, bytes - this.#end), null)
    for (const data of [...this.state.entries.entries()]) {
      if (ENTRY_FIELDS.every(field => !FIELDS[field].isRequired || data[field] !== '')) continue
      const record = { seq: this.last, time: this.until!, type: 'entries.kept', by: null, data }
      this.unplaced.push({ ...record, why: 'a part of it is lost' })
      this.#apply(event('entry.purged', null, { id: data.id }))
      this.gone.push([data.id, data.id])
    }
    for (const [hash, { user }] of [...this.state.tokens.entries()]) {
      if (!this.#hasUser(user)) this.#apply(event('token.revoked', null, { hash }))
    }
    const { entries, users } = this.state
    this.#fill('entries', Math.max(entries.size + Math.min(MOST_FREE.entries, this.#free.entries), nextId - 1))
    this.#fill('users', users.size + Math.min(MOST_FREE.users, this.#free.users))
  }

  /** Revokes all tokens. If given a hash, also locks all users and gives their addresses. */
  endAccess(lockedHash: string | undefined): readonly string[] {
    const there = [...this.state.users.entries()].filter(([id]) => this.#hasUser(id))
    for (const [id] of there) {
      this.#apply(lockedHash === undefined ? event('tokens.revoked', null, { user: id })
        : event('password.changed', null, { id, passwordHash: lockedHash }))
    }
    return lockedHash === undefined ? [] : there.map(([, { email }]) => email)
  }

  #takeHead({ at, end, seq, type, line }: Head): void {
    this.lines++
    this.#locked = undefined
    const record = line && this.#open(line)
    if (record !== undefined) this.#follow(record, at, end)
    else if (!this.#claims.has(seq)) this.#claims.set(seq, type)
    const isNext = line !== undefined && (record !== undefined || seq === this.#seamlessLast + 1)
    this.#next = isNext && at === this.#seamlessEnd ? { end, seq } : undefined
  }

  #takeHash({ at, end, hash }: Hash): void {
    const [locked, next] = [this.#locked, this.#next]
    if (locked !== undefined && isChained({ ...locked, hash }, this.#hash)) this.missingKeys.add(locked.key)
    if (at === this.#end + 1) this.#end = end + 1
    if (at === (next?.end ?? NaN) + 1) {
      this.#seamlessEnd = end + 1
      this.#seamlessLast = Math.max(this.#seamlessLast, next!.seq)
    }
    this.#hash = hash
    this.#locked = this.#next = undefined
  }

  /** Undefined if the line follows neither hash, or its key is missing. */
  #open(line: Line): JournalRecord | undefined {
    const { seq, time, type, by } = line
    const key = this.#keys.find(line.key)
    if (key === undefined) this.#locked = line
    for (const before of key === undefined ? [] : new Set([this.#hash, this.head])) {
      try {
        const data = openLine(line, before, key!)
        this.#hash = hashOf(line, before)
        return { seq, time, type, by, data }
      } catch {
        // the other hash may open it
      }
    }
    return undefined
  }

  #follow(record: JournalRecord, at: number, end: number): void {
    const { seq, time, type, data } = record
    const ended = CONTINUATIONS.has(type) ? (data as Continued).head : undefined
    if ([this.#hash, ended].includes(this.#noted)) this.#noted = undefined
    if (seq <= this.last) return // repeated, or of an older copy
    if (seq > this.last + 1) this.#lose(seq - 1, Math.max(0, at - this.#end), time)
    this.#end = end
    this.#seamlessEnd = at
    this.#seamlessLast = this.last = seq
    this.head = this.#hash
    this.until = time
    this.opened++
    this.#reduce(record)
  }

  /** `to` is null if unknown. */
  #lose(to: number | null, bytes: number, before: string | null): void {
    const from = this.last + 1
    this.losses.push({ from, to, bytes, after: this.until, before })
    const types = to === null ? [''] : Array.from({ length: to - from + 1 }, (_, i) => this.#claims.get(from + i) ?? '')
    this.mayLackUsers ||= types.some(type => !HARMLESS.test(type))
    this.mayLackChanges ||= types.some(type => type === '' || isOfEntries(type))
    this.#free.entries += idsIn(types, bytes, /^(entry|fields)\.created$/, /^$|^(entries|fields)\.(imported|kept)$/)
    this.#free.users += idsIn(types, bytes, /^user\.added$/, /^$|^users\.kept$/)
    this.#claims.clear()
  }

  #reduce(record: JournalRecord): void {
    const { type, data } = record
    assertKnownEvent(type, data)
    const before = idsBefore(record)
    this.#fill('entries', before.entries)
    this.#fill('users', before.users)
    // The address is taken again, so the record that removed its former user is lost.
    const former = type === 'user.added' ? this.state.userOf((data as Events['user.added']).email) : undefined
    if (former !== undefined) this.#apply(event('user.removed', null, { id: former.id }))
    const { entries, users } = this.state
    const had = { entries: entries.size, users: users.size }
    const user = userIn(record)
    try {
      if (user !== undefined && !this.#hasUser(user)) throw new Error('its user is lost')
      this.#apply(record)
    } catch (error) {
      this.unplaced.push({ ...record, why: (error as Error).message })
    }
    if (entries.size > had.entries) this.#free.entries = 0
    if (users.size > had.users) this.#free.users = 0
  }

  #hasUser(id: number): boolean { return this.state.users.get(id)?.passwordHash !== undefined }

  #apply({ type, by, data }: Pick<JournalRecord, 'type' | 'by' | 'data'>): void {
    this.state.apply({ seq: 0, time: this.until!, type, by, data })
  }

  #fill(what: 'entries' | 'users', upTo: number): void {
    const from = this.state[what].size + 1
    this.#free[what] = Math.max(0, this.#free[what] - Math.max(0, upTo - from + 1))
    if (what === 'entries' && upTo >= from) this.gone.push([from, upTo])
    for (let first = from; first <= upTo; first += FILL_ROWS) {
      const rows = Array.from({ length: Math.min(FILL_ROWS, upTo - first + 1) }, () => null)
      this.#apply(what === 'entries' ? event('entries.kept', null, { first, entries: rows })
        : event('users.kept', null, { first, users: rows }))
    }
  }
}

/** The most ids that lost lines gave: of `many`, as many as their bytes could hold. The type '' is unknown. */
function idsIn(types: readonly string[], bytes: number, one: RegExp, many: RegExp): number {
  if (types.some(type => many.test(type))) return Math.max(types.length, Math.floor(bytes / LEAST_ROW_BYTES))
  return types.filter(type => one.test(type)).length
}

/** This user must exist, else the record is put aside. */
function userIn({ type, data }: Pick<JournalRecord, 'type' | 'data'>): number | undefined {
  if (type === 'token.issued') return (data as KeptToken).user
  return type.startsWith('password.') || type === 'user.changed' ? (data as Events['user.changed']).id : undefined
}

/** The record proves that ids up to these were given before. */
function idsBefore({ type, data }: Pick<JournalRecord, 'type' | 'data'>): { entries: number, users: number } {
  const { id = 0, first = 1, user = 0, tokens = [] } = data as {
    readonly id?: number, readonly first?: number, readonly user?: number, readonly tokens?: readonly KeptToken[]
  }
  if (type === 'users.kept') return { entries: 0, users: first - 1 }
  if (type === 'user.added') return { entries: 0, users: id - 1 }
  if (/\.created$/.test(type)) return { entries: id - 1, users: 0 }
  if (isOfEntries(type)) return { entries: Math.max(id, first - 1), users: 0 }
  return { entries: 0, users: tokens.reduce((newest, token) => Math.max(newest, token.user), Math.max(id, user)) }
}
