/**
 * Rebuilds the state of a damaged journal without guesses: records that do not fit are put aside, ids that may have
 * been given stay unused, and access that may have ended stays ended.
 */
import type { JournalRecord } from '../../journal/journal.ts'
import type { KeyFinder } from '../../journal/keys.ts'
import { FIRST_HASH, isChained } from '../../journal/line.ts'
import { ENTRY_FIELDS, FIELDS, type EntryRow } from '../../store/entry.ts'
import { assertKnownEvent, event, isOfEntries, type Events } from '../../store/events.ts'
import { State } from '../../store/state.ts'
import type { KeptToken } from '../../store/users.ts'
import { OperatorError } from '../command.ts'
import { CONTINUATIONS, type Continued, type LostLines } from './journal-files.ts'
import { openPiece, type Opened, type Piece } from './salvage-lines.ts'

/** `after` and `before` are the times of the records around the lost lines. */
export interface Loss extends LostLines {
  readonly after: string | null
  readonly before: string | null
}

export interface Unplaced extends Omit<JournalRecord, 'seq'> {
  readonly line: number
  readonly why: string
}

/** Types that change neither users nor passwords. */
const HARMLESS = new RegExp('^(entry\\.(created|updated|deleted|restored|purged)|entries\\.(imported|kept|disclosed)|' +
  'fields\\.(created|updated|imported|kept)|' +
  'token\\.(issued|revoked)|tokens\\.(revoked|kept)|journal\\.(begun|continued|rewritten|whole))$')
/** Types that give one id, and those that give many. */
const CREATED: readonly string[] = ['entry.created', 'fields.created']
const ROWS_OF_ENTRIES: readonly string[] = ['entries.imported', 'entries.kept', 'fields.imported', 'fields.kept']
const LEAST_ROW_BYTES = 6
/** The most ids to leave out for lines lost at the end. */
const MOST_FREE = { entries: 1_000_000, users: 100_000 }
const FILL_ROWS = 2_000

/** The most new rows in a lost line, whose type may be unknown. */
function rowsIn(
  type: string | undefined, one: readonly string[], many: readonly string[], bytes: number
): number {
  if (type === undefined || many.includes(type)) return Math.max(1, Math.floor(bytes / LEAST_ROW_BYTES))
  return one.includes(type) ? 1 : 0
}

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
  #previousHash: string | undefined = FIRST_HASH
  /** Types of unopened lines. */
  readonly #claims = new Map<number, string>()
  /** The end of the last opened line, and of those that follow it without a gap. */
  #end = -1
  #seamlessEnd = -1
  #seamlessLast = 0
  /** Ids that may be lost since the last record that gave one. */
  #free = { entries: 0, users: 0 }

  constructor(keys: KeyFinder, noted?: string) {
    this.#keys = keys
    this.#noted = noted === FIRST_HASH ? undefined : noted
  }

  /** Whether the noted head was found, here or as the end of an earlier journal. */
  get hasHead(): boolean { return this.#noted === undefined }

  take(piece: Piece): void {
    const { at, end, claim, line, hash } = piece
    if (claim !== undefined) this.lines++
    const before = this.#previousHash
    // Behind repeated lines the next line follows the newest.
    const opened = openPiece(piece, before, this.#keys) ?? openPiece(piece, this.head, this.#keys)
    // A malformed line may be several, of which only the first shows its number.
    const isNext = opened === undefined ? line !== undefined && claim?.seq === this.#seamlessLast + 1 : true
    if (isNext && at === this.#seamlessEnd + 1) {
      this.#seamlessEnd = end
      this.#seamlessLast = Math.max(this.#seamlessLast, claim!.seq)
    }
    this.#previousHash = opened?.hash ?? hash
    if (opened !== undefined) return this.#follow(opened, at, end)
    if (claim !== undefined && !this.#claims.has(claim.seq)) this.#claims.set(claim.seq, claim.type)
    const isLocked = line !== undefined && this.#keys.find(line.key) === undefined
    if (isLocked && before !== undefined && isChained(line, before)) this.missingKeys.add(line.key)
  }

  /** `nextId`: the operator knows that it is free. */
  end(bytes: number, nextId: number): void {
    const isSeamless = this.#seamlessEnd + 1 === bytes && this.hasHead
    const to = isSeamless ? this.#seamlessLast : null
    if (to === null || to > this.last) this.#lose(to, Math.max(0, bytes - this.#end - 1), null)
    for (const entry of [...this.state.entries.entries()]) if (isPart(entry)) this.#dropPart(entry.id, entry)
    for (const [hash, { user }] of [...this.state.tokens.entries()]) {
      if (!this.#hasUser(user)) this.#apply(event('token.revoked', null, { hash }))
    }
    const { entries, users } = this.state
    const free = Math.min(MOST_FREE.entries, this.#free.entries)
    this.#fill('entries', Math.max(entries.size + free, nextId - 1))
    this.#fill('users', users.size + Math.min(MOST_FREE.users, this.#free.users))
  }

  /** Revokes all tokens. If given a hash, also locks all users and gives their addresses. */
  endAccess(lockedHash: string | undefined): readonly string[] {
    const there = [...this.state.users.entries()].filter(([, { passwordHash }]) => passwordHash !== undefined)
    for (const [id] of there) {
      this.#apply(lockedHash === undefined ? event('tokens.revoked', null, { user: id })
        : event('password.changed', null, { id, passwordHash: lockedHash }))
    }
    return lockedHash === undefined ? [] : there.map(([, { email }]) => email)
  }

  #follow({ record, hash }: Opened, at: number, end: number): void {
    const { seq, time } = record
    const ended = CONTINUATIONS.has(record.type) ? (record.data as Continued).head : undefined
    if ([hash, ended].includes(this.#noted)) this.#noted = undefined
    if (seq <= this.last) return // repeated, or of an older copy
    if (seq > this.last + 1) this.#lose(seq - 1, Math.max(0, at - this.#end - 1), time)
    this.#end = this.#seamlessEnd = end
    this.#seamlessLast = this.last = seq
    this.head = hash
    this.until = time
    this.opened++
    this.#reduce(record)
  }

  /** `to` is null if unknown. */
  #lose(to: number | null, bytes: number, before: string | null): void {
    const from = this.last + 1
    this.losses.push({ from, to, bytes, after: this.until, before })
    const types: (string | undefined)[] = to === null ? [undefined] : []
    for (let seq = from; seq <= (to ?? 0); seq++) types.push(this.#claims.get(seq))
    for (const type of new Set(types)) {
      const isKnown = type !== undefined && HARMLESS.test(type)
      if (!isKnown) this.mayLackUsers = true
      if (!isKnown || isOfEntries(type)) this.mayLackChanges = true
    }
    // Any of the lost lines may have had all bytes of the gap.
    for (const type of types) {
      this.#free.entries += rowsIn(type, CREATED, ROWS_OF_ENTRIES, bytes)
      this.#free.users += rowsIn(type, ['user.added'], ['users.kept'], bytes)
    }
    this.#claims.clear()
  }

  #reduce({ seq, ...record }: JournalRecord): void {
    const { type, data, by } = record
    try {
      assertKnownEvent(type, data)
    } catch (error) {
      throw new OperatorError(`line ${seq}: ${(error as Error).message}; salvage it with the version that wrote it`)
    }
    const before = idsBefore(record)
    this.#fill('entries', before.entries)
    this.#fill('users', Math.max(before.users, by ?? 0))
    // The address is taken again, so the record that removed its former user is lost.
    const former = type === 'user.added' ? this.state.userOf((data as Events['user.added']).email) : undefined
    if (former !== undefined) this.#apply(event('user.removed', null, { id: former.id }))
    const { entries, users } = this.state
    const had = { entries: entries.size, users: users.size }
    try {
      const user = userIn(record)
      if (user !== undefined && !this.#hasUser(user)) throw new Error('its user is lost')
      this.#apply(record)
    } catch (error) {
      this.unplaced.push({ line: seq, ...record, why: (error as Error).message })
    }
    if (entries.size > had.entries) this.#free.entries = 0
    if (users.size > had.users) this.#free.users = 0
  }

  #hasUser(id: number): boolean { return this.state.users.get(id)?.passwordHash !== undefined }

  #apply(record: Pick<JournalRecord, 'type' | 'by' | 'data'>): void {
    this.state.apply({ seq: 0, time: this.until!, ...record })
  }

  /** For an entry of several records, of which some are lost. */
  #dropPart(id: number, data: EntryRow): void {
    const record = { time: this.until!, type: 'entries.kept', by: null, data }
    this.unplaced.push({ line: this.last, ...record, why: 'a part of it is lost' })
    this.#apply(event('entry.purged', null, { id }))
    this.gone.push([id, id])
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

function isPart(row: EntryRow): boolean {
  return ENTRY_FIELDS.some(field => FIELDS[field].isRequired && row[field] === '')
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
  if (CREATED.includes(type)) return { entries: id - 1, users: 0 }
  if (isOfEntries(type)) return { entries: Math.max(id, first - 1), users: 0 }
  return { entries: 0, users: tokens.reduce((newest, token) => Math.max(newest, token.user), Math.max(id, user)) }
}
