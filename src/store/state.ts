/** The state, which is served, and drafts of it, on which commands are decided. */
import { Failure } from '../errors.ts'
import type { EncodedEvent, JournalRecord } from '../journal/journal.ts'
import { Entries, type EntryTable } from './entries.ts'
import { entryText, type Entry } from './entry.ts'
import { assertKnownEvent, isOfEntries, reduce, type Events, type Tables } from './events.ts'
import { tokenId, type Session } from './session.ts'
import { isExpired, Tokens, type Token, type User } from './users.ts'

export class State implements Tables {
  readonly entries: Entries = new Entries()
  readonly users: Map<number, User> = new Map()
  readonly addresses: Map<string, number> = new Map()
  readonly tokens: Tokens = new Tokens()
  /** When the newest record was made; empty if there is none. */
  recorded = ''

  /** The user of an address who was not removed. Addresses are compared without case. */
  userOf(email: string): User | undefined { return this.users.get(this.addresses.get(email.toLowerCase()) ?? 0) }

  /** Takes a durable record. Throws if it contradicts those before it, `journal-newer` if a newer version made it. */
  readonly apply = (record: JournalRecord): void => {
    assertKnownEvent(record.type, record.data)
    reduce(this, record, Date.parse(record.time))
    this.recorded = record.time
  }

  /** Forgets expired tokens; also in the open configuration, whose journal may hold some. */
  sweep(wallMs: number): void {
    for (const [hash, token] of this.tokens) if (isExpired(token, wallMs)) this.tokens.delete(hash)
  }
}

/** What the commands of one write are decided on: the state with the changes of the commands before it. */
export class Draft implements EntryTable {
  readonly #state: State
  readonly #tables: Tables
  readonly #own = new Map<number, Entry | undefined>()
  readonly #revoked = new Set<string>()
  size: number
  /** About how many bytes of entries it has read. */
  bytes = 0

  constructor(state: State) {
    const { entries, users, addresses, tokens } = state
    this.#state = state
    this.#tables = { entries: this, users, addresses, tokens }
    this.size = entries.size
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

  /** Takes what a command has decided. Nobody looks here for users: a command about them stands alone in its write. */
  take(event: EncodedEvent): void {
    if (event.type === 'token.revoked') this.#revoked.add((event.data as Events['token.revoked']).hash)
    else if (isOfEntries(event.type)) reduce(this.#tables, event, 0)
  }
}
