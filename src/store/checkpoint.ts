/** The state as events, in as few and large records as bounds allow: what a compacted journal begins with. */
import { Buffer } from 'node:buffer'
import type { Checkpoint, Event } from '../journal/journal.ts'
import { CHECKPOINT_RECORD_BYTES, CHECKPOINT_RECORD_ROWS } from '../limits.ts'
import type { ImportedEntry, KeptUser, Token, User } from './events.ts'
import { apply, emptyState, event, type CommittedState } from './state.ts'

/** A token with its hash. */
type KeptToken = Token & { readonly hash: string }

/** `tokens` are those that have not expired. Nothing may be applied to the state until the checkpoint is compared. */
export function checkpointOf(state: CommittedState, tokens: readonly KeptToken[]): Checkpoint {
  const users = Array.from(state.users.entries(), ([, user]) => keptUser(user))
  const made = emptyState()
  let given = 0
  const events = function * (): Generator<Event, void, void> {
    for (const [from, entries] of pieces(keptEntries(state))) {
      given = from + entries.length
      yield event('entries.kept', null, { first: from + 1, entries })
    }
    for (const [from, kept] of pieces(users)) {
      yield event('users.kept', null, { first: from + 1, users: kept })
    }
    for (const [, kept] of pieces(tokens)) yield event('tokens.kept', null, { tokens: kept })
  }
  return {
    events: events(),
    share: () => state.entries.size === 0 ? 1 : given / state.entries.size,
    apply: record => apply(made, record),
    compare: function * () {
      for (let id = 1; id <= state.entries.size; id++) {
        if (state.entries.text(id) !== made.entries.text(id)) throw new Error(`entry ${id} would be another one`)
        if (id % CHECKPOINT_RECORD_ROWS === 0) yield
      }
      const isSame = made.entries.size === state.entries.size && made.entries.active === state.entries.active &&
        JSON.stringify(Array.from(made.users.entries(), ([, user]) => keptUser(user))) === JSON.stringify(users) &&
        JSON.stringify(Array.from(made.tokens.entries(), ([hash, token]) => ({ hash, ...token }))) ===
        JSON.stringify(tokens)
      if (!isSame) throw new Error('the users, the tokens or the number of entries would be others')
    }
  }
}

function * keptEntries({ entries }: CommittedState): Generator<ImportedEntry | null, void, void> {
  for (let id = 1; id <= entries.size; id++) {
    const entry = entries.get(id)
    if (entry === undefined) { yield null; continue }
    const { password, sistema, usuario, status } = entry
    yield { password, sistema, usuario, status }
  }
}

/** Of a removed user the number alone, which is its place. */
function keptUser({ email, name, abilities, passwordHash }: User): KeptUser | null {
  return passwordHash === undefined ? null : { email, name, abilities, passwordHash }
}

/** Rows in pieces that fit a record, each with the number of rows before it. */
function * pieces<T>(rows: Iterable<T>): Generator<readonly [from: number, piece: readonly T[]], void, void> {
  let from = 0
  let piece: T[] = []
  let bytes = 0
  for (const row of rows) {
    const more = Buffer.byteLength(JSON.stringify(row)) + 1
    const isFull = piece.length === CHECKPOINT_RECORD_ROWS || bytes + more > CHECKPOINT_RECORD_BYTES
    if (isFull && piece.length > 0) {
      yield [from, piece]
      from += piece.length
      piece = []
      bytes = 0
    }
    piece.push(row)
    bytes += more
  }
  if (piece.length > 0) yield [from, piece]
}
