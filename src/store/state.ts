/** The state that is served, and drafts of it for decisions. */
import { Failure } from '../errors.ts'
import type { EncodedEvent, JournalRecord } from '../journal/journal.ts'
import { Entries, type EntryTable } from '../entries/entry-table.ts'
import type { Entry } from '../entries/entry.ts'
import { assertKnownEvent, isOfEntries, reduce, type Deletion, type Tables } from './events.ts'
import type { Clock } from './clock.ts'
import { GroupNames } from '../rights/groups.ts'
import { isOfKnowledge } from '../knowledge/knowledge-events.ts'
import { Knowledge, KnowledgeDraft } from '../knowledge/knowledge.ts'
import {
  addressOf,
  isExpired,
  tokenId,
  type Session,
  type Token,
  type User
} from '../rights/rights.ts'

export class State implements Tables {
  /** Of all that lists depend on. */
  readonly clock: Clock = { now: 0 }
  readonly names: GroupNames = new GroupNames()
  readonly entries: Entries = new Entries(this.names, this.clock)
  readonly deletions: Map<number, Deletion> = new Map()
  readonly knowledge: Knowledge = new Knowledge(this.clock)
  readonly users: Map<number, User> = new Map()
  readonly addresses: Map<string, number> = new Map()
  readonly tokens: Map<string, Token> = new Map()
  /** Empty without a record. */
  recorded = ''
  /** When it last changed what users may do. */
  rights = 0

  /**
   * Ignores case and how accents are encoded; an old journal may have two that differ in that
   * alone.
   */
  userOf(email: string): User | undefined {
    return this.users.get(
      this.addresses.get(email.toLowerCase()) ?? this.addresses.get(addressOf(email)) ?? 0
    )
  }

  /** Throws as `reduce` and `assertKnownEvent`. */
  readonly apply = (record: JournalRecord): void => {
    assertKnownEvent(record.type, record.data)
    reduce(this, record, Date.parse(record.time))
    this.recorded = record.time
    if (record.type.startsWith('user')) this.rights = ++this.clock.now
  }

  /** The open configuration's journal may hold expired tokens, too. */
  sweep(wallMs: number): void {
    for (const [hash, token] of this.tokens) if (isExpired(token, wallMs)) this.tokens.delete(hash)
  }
}

/** The state with the changes of earlier commands in the write. */
export class Draft implements EntryTable {
  readonly #state: State
  readonly #nowMs: number
  readonly #tables: Tables
  readonly #own = new Map<number, Entry | undefined>()
  /** Those of the state, and of earlier changes of this write. */
  readonly names: GroupNames
  readonly knowledge: KnowledgeDraft
  size: number
  /**
   * UTF-16 units of the entries read so far: a write that reads much is as large as one that has
   * much.
   */
  readUnits = 0

  /** `nowMs`: when it is decided, in milliseconds since 1970. */
  constructor(state: State, nowMs: number) {
    const { users, addresses, tokens } = state
    this.#state = state
    this.#nowMs = nowMs
    this.names = new GroupNames(state.names)
    this.knowledge = new KnowledgeDraft(state.knowledge)
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

  /** Ignores users and tokens: a command about them is alone in its write. */
  take(event: EncodedEvent): void {
    if (isOfEntries(event.type) || isOfKnowledge(event.type)) reduce(this.#tables, event, 0)
  }
}
