import type { Entries, EntryTable } from '../entries/entry-table.ts'
import type { Entry } from '../entries/entry.ts'
import { Failure } from '../errors.ts'
import type { EncodedEvent, JournalRecord } from '../journal/journal.ts'
import type { Knowledge, KnowledgeDraft } from '../knowledge/knowledge.ts'
import { GroupNames } from '../rights/groups.ts'
import {
  addressOf,
  isExpired,
  tokenId,
  type Session,
  type Token,
  type User
} from '../rights/rights.ts'
import type { Clock } from './clock.ts'
import type { Deletion, EventTypes, Tables } from './events.ts'

export class State implements Tables {
  readonly events: EventTypes
  /** Of all that lists depend on. */
  readonly clock: Clock
  readonly names: GroupNames
  readonly entries: Entries
  readonly knowledge: Knowledge
  readonly deletions: Map<number, Deletion> = new Map()
  readonly users: Map<number, User> = new Map()
  readonly addresses: Map<string, number> = new Map()
  readonly tokens: Map<string, Token> = new Map()
  /** Time of the last record; empty without one. */
  recorded = ''
  /** When users' rights last changed, by the clock. */
  rights = 0

  constructor(
    events: EventTypes,
    { clock, names, entries, knowledge }: Pick<State, 'clock' | 'names' | 'entries' | 'knowledge'>
  ) {
    this.events = events
    this.clock = clock
    this.names = names
    this.entries = entries
    this.knowledge = knowledge
  }

  /**
   * Ignores case, and how accents are encoded. An old journal may have two users that differ in
   * that alone.
   */
  userOf(email: string): User | undefined {
    return this.users.get(
      this.addresses.get(email.toLowerCase()) ?? this.addresses.get(addressOf(email)) ?? 0
    )
  }

  /** Throws as `EventTypes` does. */
  readonly apply = (record: JournalRecord): void => {
    this.events.assertKnown(record.type, record.data)
    this.events.reduce(this, record, Date.parse(record.time))
    this.recorded = record.time
    if (this.events.changesRights(record)) this.rights = ++this.clock.now
  }

  /** The journal of the open configuration may hold expired tokens, too. */
  sweep(wallMs: number): void {
    for (const [hash, token] of this.tokens) if (isExpired(token, wallMs)) this.tokens.delete(hash)
  }
}

/** The state with the changes of earlier commands of the write. */
export class Draft implements EntryTable {
  readonly #state: State
  readonly #nowMs: number
  readonly #tables: Tables
  readonly #own = new Map<number, Entry | undefined>()
  /** With the names of earlier changes of this write. */
  readonly names: GroupNames
  readonly knowledge: KnowledgeDraft
  size: number
  /**
   * UTF-16 units of the entries read so far: a write must not read much more than it may change.
   */
  readUnits = 0

  /** `nowMs`: since 1970. */
  constructor(state: State, nowMs: number) {
    const { users, addresses, tokens } = state
    this.#state = state
    this.#nowMs = nowMs
    this.names = new GroupNames(state.names)
    this.knowledge = state.knowledge.draft()
    this.#tables = {
      entries: this,
      names: this.names,
      deletions: new Map(),
      knowledge: this.knowledge,
      users,
      addresses,
      tokens
    }
    this.size = state.entries.size
  }

  get(id: number): Entry | undefined {
    if (!this.#own.has(id)) {
      this.#own.set(id, this.#state.entries.get(id))
      this.readUnits += this.#state.entries.text(id)?.length ?? 0
    }
    return this.#own.get(id)
  }

  set(entry: Entry): void {
    this.#own.set(entry.id, entry)
    this.names.numberOf(entry.grupo)
    this.size = Math.max(this.size, entry.id)
  }

  delete(id: number): void {
    this.#own.set(id, undefined)
  }

  tagOf(entry: Entry): string {
    return this.#state.entries.tagOf(entry)
  }

  /** Throws `session-changed` if the token has ended, or allows something else now. */
  assertStands(session: Session): void {
    const { hash, token } = session
    // Each change of what a token allows makes a new record.
    const stands =
      hash === ''
        ? this.#isUnchanged(session)
        : this.#state.tokens.get(hash) === token && !isExpired(token, this.#nowMs)
    if (!stands)
      throw new Failure(
        'session-changed',
        hash === '' ? `user ${session.user}` : `token ${tokenId(hash)}`
      )
  }

  #isUnchanged({ user: id, abilities, groups }: Session): boolean {
    const user = this.#tables.users.get(id)
    const isThere = user !== undefined && this.#tables.addresses.get(user.email) === id
    return isThere && user.abilities === abilities && user.groups === groups
  }

  take(event: EncodedEvent): void {
    const { events } = this.#state
    if (events.isInDrafts(event)) events.reduce(this.#tables, event, 0)
  }
}
