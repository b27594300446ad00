/** The state as a few large events: a compacted journal begins with them. */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { Event } from '../../../journal/journal.ts'
import { MAX_EVENT_BYTES } from '../../../limits.ts'
import { fieldsOf, hasMore } from '../../../entries/entry.ts'
import { event } from '../../../store/events.ts'
import type { KeptRow } from '../../../entries/entry-events.ts'
import { idLists } from '../../../knowledge/ids.ts'
import type { KeptKnower, Knower } from '../../../knowledge/knowledge.ts'
import type { State } from '../../../store/state.ts'
import { loginBy, type KeptToken, type KeptUser, type User } from '../../../rights/rights.ts'

/**
 * Most rows of a record that are not null. Damage to one bit costs all rows of its record. A single
 * row may be larger than the bound in bytes.
 */
export const CHECKPOINT_RECORD_ROWS: number = 50
const MAX_RECORD_ROWS = 2_000
const MAX_ID = Number.MAX_SAFE_INTEGER
export const CHECKPOINT_RECORD_BYTES: number = 512 * 1024

assert.ok(CHECKPOINT_RECORD_BYTES < MAX_EVENT_BYTES, 'a record of a compacted journal fits a line')

export interface Checkpoint {
  /** Make the same state from nothing. */
  readonly events: Iterable<Event>
  readonly share: () => number
  /** Once, behind all events: of the state, which is let go, since a heap may have no room for two. */
  digests(): Digests
}

/** SHA-256, for each kind of row. */
export type Digests = ReadonlyMap<string, string>

/**
 * The state must not change until its digests are made. **All that a state has is kept by `events`
 * and told by `digestsOf`**: what is missing in one of them is refused, what is missing in both is
 * lost at a compaction.
 */
export function checkpointOf(
  state: State,
  keeps: (token: KeptToken) => boolean = () => true
): Checkpoint {
  let held: State | undefined = state
  let share = 0
  const events = function* (): Generator<Event, void, void> {
    for (const [from, entries] of pieces(keptEntries(held!))) {
      share = (from + entries.length) / held!.entries.size
      if (entries.length === 1 && isLarge(entries[0]!)) yield* inParts(from + 1, entries[0]!)
      else yield keptEvent(from + 1, entries)
    }
    share = 1
    for (const [from, kept] of pieces(keptUsers(held!))) {
      yield event('users.kept', null, { first: from + 1, users: kept })
    }
    for (const [, kept] of pieces(keptTokens(held!, keeps))) {
      yield event('tokens.kept', null, { tokens: kept })
    }
    yield* keptKnowledge(held!)
  }
  return {
    events: events(),
    share: () => share,
    digests: () => {
      const digests = digestsOf(held!, keeps)
      held = undefined
      return digests
    }
  }
}

export function digestsOf(state: State, keeps?: (token: KeptToken) => boolean): Digests {
  const kinds: readonly (readonly [kind: string, rows: Iterable<unknown>])[] = [
    ['entries', rows(state)],
    ['number of active entries', [state.entries.active]],
    ['users', keptUsers(state)],
    ['tokens', keptTokens(state, keeps)],
    ['records of what is known', keptKnowledge(state)]
  ]
  return new Map(
    kinds.map(([kind, rows]) => {
      const made = createHash('sha256')
      for (const row of rows) made.update(`${JSON.stringify(row)}\n`)
      return [kind, made.digest('hex')]
    })
  )
}

function* rows({ entries, deletions }: State): Generator<unknown, void, void> {
  for (let id = 1; id <= entries.size; id++) {
    yield [entries.get(id), entries.changedMs(id), deletions.get(id)]
  }
}

function* keptEntries({ entries, deletions }: State): Generator<KeptRow | null, void, void> {
  for (let id = 1; id <= entries.size; id++) {
    const entry = entries.get(id)
    if (entry === undefined) {
      yield null
      continue
    }
    const changedMs = entries.changedMs(id)
    const changed = changedMs === undefined ? {} : { changed: new Date(changedMs).toISOString() }
    const deletion = deletions.get(id)
    const deleted = deletion && {
      deleted: new Date(deletion.ms).toISOString(),
      deletedBy: deletion.by
    }
    yield { ...fieldsOf(entry), status: entry.status, ...changed, ...deleted }
  }
}

function keptEvent(first: number, entries: readonly (KeptRow | null)[]): Event {
  return event('fields.kept', null, { first, entries })
}

function isLarge(row: KeptRow | null): boolean {
  return (
    row !== null &&
    Buffer.byteLength(JSON.stringify({ first: MAX_ID, entries: [row] })) > MAX_EVENT_BYTES
  )
}

/** Versions before 1.1 let an entry grow beyond what a record can hold. */
function* inParts(id: number, row: KeptRow | null): Generator<Event, void, void> {
  const fields = Object.entries(fieldsOf(row!)).filter(([field]) => field !== 'password')
  const empty = Object.fromEntries(fields.map(([field]) => [field, '']))
  yield keptEvent(id, [{ ...row!, ...empty }])
  for (const [field, value] of fields) {
    const changes = { [field]: value }
    yield event(hasMore(changes) ? 'fields.updated' : 'entry.updated', null, { id, ...changes })
  }
}

/** Of other removed users only the ids are kept. */
function* knowingRemoved(
  { users }: State,
  knowers: ReadonlySet<Knower>
): Generator<Pick<User, 'id' | 'email' | 'name'>, void, void> {
  for (const { id, email, name, isRemoved } of users.values())
    if (isRemoved === true && email !== '' && knowers.has(id)) yield { id, email, name }
}

/** Numbers of passwords end here, so values that no entry has any more are forgotten. */
function* keptKnowledge(state: State): Generator<Event, void, void> {
  const { knowledge } = state
  const kept: KeptKnower[] = []
  for (const [knower, ids, equal, ms] of knowledge.kept()) {
    const time = ms === undefined ? undefined : new Date(ms).toISOString()
    for (const list of idLists(ids)) kept.push({ knower, ids: list })
    for (const list of idLists(equal)) kept.push({ knower, equal: list, time })
  }
  const removed = knowingRemoved(state, new Set(kept.map(({ knower }) => knower)))
  for (const [, users] of pieces(removed)) yield event('knowledge.addresses', null, { users })
  for (const [, knowers] of pieces(kept)) yield event('knowers.kept', null, { knowers })
  yield event('recording.kept', null, knowledge.keptRecording())
}

/** A removed user is null: the ids of later users stay. */
function* keptUsers({ users }: State): Generator<KeptUser | null, void, void> {
  for (const user of users.values()) yield keptUser(user)
}

function keptUser({
  id: _,
  passwords: __,
  isRemoved,
  passwordHash,
  ...kept
}: User): KeptUser | null {
  if (isRemoved === true) return null
  return { ...kept, ...loginBy(passwordHash) }
}

function* keptTokens(
  { tokens }: State,
  keeps: (token: KeptToken) => boolean = () => true
): Generator<KeptToken, void, void> {
  for (const [hash, { usedMs: _, ...token }] of tokens) {
    const kept = { hash, ...token }
    if (keeps(kept)) yield kept
  }
}

function* pieces<T>(
  rows: Iterable<T>,
  maxHeld: number = CHECKPOINT_RECORD_ROWS
): Generator<readonly [from: number, piece: readonly T[]], void, void> {
  let from = 0
  let piece: T[] = []
  let bytes = 0
  let held = 0
  for (const row of rows) {
    const more = Buffer.byteLength(JSON.stringify(row)) + 1
    const isFull =
      held === maxHeld || piece.length === MAX_RECORD_ROWS || bytes + more > CHECKPOINT_RECORD_BYTES
    if (isFull && piece.length > 0) {
      yield [from, piece]
      from += piece.length
      piece = []
      bytes = held = 0
    }
    piece.push(row)
    bytes += more
    if (row !== null) held++
  }
  if (piece.length > 0) yield [from, piece]
}
