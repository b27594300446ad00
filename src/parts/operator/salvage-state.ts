/**
 * Makes a whole journal of the records that are left of a damaged one: in their order, by the one reducer. Nothing is
 * guessed. What does not fit is put aside. An id that may have been given is never given again. Where records are lost,
 * those who had access before may have lost it there: so their tokens end, and nobody knows their passwords any more.
 */
import {
  CONTINUATIONS, REWRITTEN, CONTINUED, WHOLE, type Continued, type Event, type JournalRecord
} from '../../journal/journal.ts'
import { ENTRY_FIELDS, FIELDS, type EntryRow } from '../../store/entry.ts'
import { assertKnownEvent, type Events, type KeptToken } from '../../store/events.ts'
import { apply, emptyState, event, userOf, type CommittedState } from '../../store/state.ts'
import { OperatorError } from '../command.ts'
import type { Unnumbered } from './rewrite.ts'

/** How a journal is made of what is left of another. */
export interface RebuildOptions {
  /** When it is made. */
  readonly time: string
  /** A hash of a password that nobody knows. */
  readonly lockedHash: string
  /** Whether tokens and passwords stay as they were before records that are lost. */
  readonly keepsAccess: boolean
  /** Gets each record to be written, once it is applied. */
  readonly write: (record: Unnumbered) => void
  /** Gets what has no place, and why. */
  readonly unplace: (record: JournalRecord, why: string) => void
}

/** Records that are lost together. */
export interface Loss {
  readonly lines: number
  /** The most that they may have taken in the file. */
  readonly bytes: number
}

/** The least that an imported entry takes in a line, a row of what was written again, and a line with a user. */
const LEAST_IMPORTED_BYTES = 70
const LEAST_KEPT_BYTES = 6
const LEAST_USER_BYTES = 350
/** The most ids that are left out at the end, and those that one record says to be lost. */
const MAX_RESERVED_ENTRIES = 1_000_000
const MAX_RESERVED_USERS = 100_000
const FILL_ROWS = 2_000

export class Rebuilding {
  readonly state: CommittedState = emptyState()
  tokensLeftOut = 0
  /** The newest entry that may lack changes: so may all before it. */
  doubtfulIds = 0
  /** The newest user who may have fewer abilities by now: so may all before. */
  doubtfulUsers = 0
  /** The newest record. */
  until: string | null = null
  readonly #options: RebuildOptions
  /** Users whose passwords may have been changed by records that are lost from here on. */
  #open = new Set<number>()
  /** How many entries may be lost since the newest one that is known, and how many users. */
  #lostEntries = 0
  #lostUsers = 0
  /** Entries of which a part was kept so far. */
  readonly #parts = new Set<number>()
  /** Where the journal came from, as its first records say; undefined: that is not known. */
  #origin: 'begun' | Continued['why'] | undefined
  #isInCheckpoint = true
  /** Whether the record that ends a checkpoint is still to come, or is lost. */
  #mustEnd = false

  constructor(options: RebuildOptions) { this.#options = options }

  /** Whether nobody knows a user's password any more. */
  isLocked(user: number): boolean { return this.state.users.get(user)?.passwordHash === this.#options.lockedHash }

  /** What the new journal begins with. */
  begin(first: Unnumbered): void { this.#add(first) }

  /** Records are lost here; `next` comes behind them. */
  lose(loss: Loss, next?: JournalRecord): void {
    const isPlain = this.#origin === 'begun' || !this.#isInCheckpoint
    this.#lostEntries += most(loss, isPlain ? LEAST_IMPORTED_BYTES : LEAST_KEPT_BYTES)
    // Where it is known how many lines are lost, each of them gave one user at most.
    const isCounted = isPlain && next !== undefined
    this.#lostUsers += isCounted ? loss.lines : most(loss, isPlain ? LEAST_USER_BYTES : LEAST_KEPT_BYTES)
    const isWithin = next !== undefined && (next.type.endsWith('.kept') || next.type === WHOLE)
    // Within a checkpoint are no changes, and nobody lost access.
    if (this.#origin === 'compacted' && this.#isInCheckpoint && isWithin) return
    // One line alone is of the checkpoint as long as the record that ends it has not come: it may be that one.
    const isOfCheckpoint = this.#isInCheckpoint && this.#mustEnd && loss.lines === 1 && next !== undefined
    this.#mustEnd = false
    if (isOfCheckpoint) return
    this.doubtfulIds = this.state.entries.size
    this.doubtfulUsers = this.state.users.size
    if (!this.#options.keepsAccess) this.#endAccess()
  }

  /** The next record that is left. */
  take(record: JournalRecord): void {
    const { type, time, by } = record
    this.until = time
    this.#follow(record)
    if (type === WHOLE) return
    this.#assertKnown(record)
    const { entries, users } = idsBefore(record)
    this.#fillEntries(entries)
    this.#fillUsers(Math.max(users, by ?? 0))
    const fitting = this.#fitting(record)
    if (fitting !== undefined) this.#place({ ...fitting, type: type === REWRITTEN ? CONTINUED : type }, record)
  }

  /** Ends the journal: no id is free that may have been given; `nextId` is one that the operator knows to be free. */
  end(nextId: number): void {
    for (const id of this.#parts) this.#dropPart(id)
    const { entries, users } = this.state
    this.#fillEntries(Math.max(entries.size + Math.min(MAX_RESERVED_ENTRIES, this.#lostEntries), nextId - 1))
    this.#fillUsers(users.size + Math.min(MAX_RESERVED_USERS, this.#lostUsers))
  }

  #add(record: Unnumbered): void {
    apply(this.state, { seq: 0, ...record }) // nobody asks this state for revisions
    this.#options.write(record)
  }

  #addOwn(event: Event): void { this.#add({ time: this.#options.time, ...event }) }

  /** Follows what the journal says of where it came from, and whose passwords are known. */
  #follow({ seq, type, data }: JournalRecord): void {
    const isOwn = type.startsWith('journal.')
    if (CONTINUATIONS.has(type)) {
      const { why } = data as Continued
      if (seq === 1 || this.#origin === 're-encrypted') this.#origin = why
      if (seq === 1) this.#mustEnd = why === 'compacted' && type === REWRITTEN
    } else if (seq === 1) {
      this.#origin = 'begun'
    }
    // In one that was salvaged are such rows among changes, up to its end.
    const isMixed = this.#origin === 'salvaged' || this.#origin === undefined
    const isChange = !isOwn && !isMixed && !type.endsWith('.kept') && type !== 'entry.updated'
    if (type === WHOLE || isChange) this.#isInCheckpoint = false
  }

  #assertKnown({ seq, type, data }: JournalRecord): void {
    try {
      assertKnownEvent(type, data)
    } catch (error) {
      throw new OperatorError(`line ${seq}: ${(error as Error).message}; salvage it with the version that wrote it`)
    }
  }

  /** What of a record can be applied; undefined: nothing, and it was put aside. */
  #fitting(record: JournalRecord): JournalRecord | undefined {
    const { type, data } = record
    if (type === 'tokens.kept') {
      const tokens = (data as Events['tokens.kept']).tokens.filter(token => this.#hasUser(token))
      this.tokensLeftOut += (data as Events['tokens.kept']).tokens.length - tokens.length
      return { ...record, data: { tokens } }
    }
    if (type === 'token.issued' && !this.#hasUser(data as KeptToken)) {
      this.tokensLeftOut++
      return this.#unplace(record, 'its user is lost')
    }
    if (type.startsWith('password.') && !this.#hasUser({ user: (data as { readonly id: number }).id })) {
      return this.#unplace(record, 'its user is lost')
    }
    if (type === 'user.added') {
      // Who has the address now shows that the one who had it before was removed.
      const before = userOf(this.state, (data as Events['user.added']).email)
      if (before !== undefined) this.#addOwn(event('user.removed', null, { id: before.id }))
    }
    return record
  }

  #hasUser({ user }: Pick<KeptToken, 'user'>): boolean {
    return this.state.users.get(user)?.passwordHash !== undefined
  }

  #unplace(record: JournalRecord, why: string): undefined {
    this.#options.unplace(record, why)
    return undefined
  }

  #place({ seq: _, ...record }: JournalRecord, asRead: JournalRecord): void {
    try {
      this.#add(record)
    } catch (error) {
      this.#unplace(asRead, (error as Error).message)
      return
    }
    const { type, data } = record
    if (['entry.created', 'entries.imported', 'entries.kept'].includes(type)) this.#lostEntries = 0
    if (['user.added', 'users.kept'].includes(type)) this.#lostUsers = 0
    if (type === 'user.added' || type.startsWith('password.')) this.#open.add((data as { readonly id: number }).id)
    if (type === 'users.kept') {
      const { first, users } = data as Events['users.kept']
      for (const [i, user] of users.entries()) if (user !== null) this.#open.add(first + i)
    }
    if (type === 'entries.kept') {
      const { first, entries } = data as Events['entries.kept']
      for (const [i, row] of entries.entries()) if (row !== null && isPart(row)) this.#parts.add(first + i)
    }
  }

  #endAccess(): void {
    const { users, tokens } = this.state
    this.tokensLeftOut += tokens.size
    const withTokens = new Set([...tokens.entries()].map(([, { user }]) => user))
    for (const id of this.#open) {
      if (users.get(id)?.passwordHash === undefined) continue
      this.#addOwn(event('password.changed', null, { id, passwordHash: this.#options.lockedHash }))
      withTokens.delete(id)
    }
    for (const user of withTokens) this.#addOwn(event('tokens.revoked', null, { user }))
    this.#open = new Set()
  }

  /** An entry whose values were in several records, of which some are lost. */
  #dropPart(id: number): void {
    const entry = this.state.entries.get(id)
    if (entry === undefined || !isPart(entry)) return
    const rest = { seq: 0, time: this.until!, type: 'entries.kept', by: null, data: entry }
    this.#options.unplace(rest, 'a part of it is lost')
    this.#addOwn(event('entry.purged', null, { id }))
  }

  #fillEntries(upTo: number): void {
    for (let { size } = this.state.entries; size < upTo; { size } = this.state.entries) {
      const entries = Array.from({ length: Math.min(FILL_ROWS, upTo - size) }, () => null)
      this.#addOwn(event('entries.kept', null, { first: size + 1, entries }))
    }
  }

  #fillUsers(upTo: number): void {
    for (let { size } = this.state.users; size < upTo; { size } = this.state.users) {
      const users = Array.from({ length: Math.min(FILL_ROWS, upTo - size) }, () => null)
      this.#addOwn(event('users.kept', null, { first: size + 1, users }))
    }
  }
}

/** How many rows there may have been in what is lost. */
function most({ lines, bytes }: Loss, leastBytes: number): number {
  return Math.max(lines, Math.floor(bytes / leastBytes))
}

function isPart(row: EntryRow): boolean {
  return ENTRY_FIELDS.some(field => FIELDS[field].isRequired && row[field] === '')
}

/** The newest ids that a record shows to have been given before it. */
function idsBefore({ type, data }: JournalRecord): { readonly entries: number, readonly users: number } {
  const { id = 0, first = 1, user = 0, tokens = [] } = data as {
    readonly id?: number, readonly first?: number, readonly user?: number, readonly tokens?: readonly KeptToken[]
  }
  if (type === 'users.kept') return { entries: 0, users: first - 1 }
  if (type === 'user.added') return { entries: 0, users: id - 1 }
  if (type === 'entry.created') return { entries: id - 1, users: 0 }
  if (type.startsWith('entr')) return { entries: Math.max(id, first - 1), users: 0 }
  return { entries: 0, users: tokens.reduce((newest, token) => Math.max(newest, token.user), Math.max(id, user)) }
}
