/** Who is told a password that is new to them is recorded before the answer. */
import { Failure } from '../errors.ts'
import type { Tells } from '../entries/entry.ts'
import type { EncodedEvent } from '../journal/journal.ts'
import { event } from '../store/events.ts'
import { idLists } from './ids.ts'
import type { Knower } from './knowledge.ts'
import type { Draft, State } from '../store/state.ts'
import type { Commits } from '../store/store.ts'
import { HOST, sees, type Session } from '../rights/rights.ts'

/** Undefined: a client in the open configuration. */
export type Reader = Session | typeof HOST | undefined

export interface TellingAnswer {
  readonly tells?: Tells | undefined
}

function knowerOf(reader: Session | typeof HOST): Knower {
  return reader === HOST ? HOST : reader.user
}

/**
 * By the token's record, which a change of rights replaces, or by the state for the host: the time
 * of the clock up to which a list told nothing new. It stays true for entries that have not changed
 * since.
 */
const looked = new WeakMap<object, number>()

function lookOf(state: State, reader: Session | typeof HOST): object {
  return reader === HOST ? state : reader.token
}

interface KnowledgeLookup {
  knows(knower: Knower, id: number): boolean
  knowsFormer(knower: Knower, password: string): boolean
}

/** A former password, or the ids whose present password is new to the reader. */
function newTo(
  state: State,
  known: KnowledgeLookup,
  reader: Session | typeof HOST,
  tells: Tells
): { readonly password: string } | readonly number[] {
  const { entries } = state
  const knower = knowerOf(reader)
  if (typeof tells === 'object' && entries.get(tells.id)?.password !== tells.password)
    return known.knowsFormer(knower, tells.password) ? [] : { password: tells.password }
  if (tells !== 'list') {
    const id = typeof tells === 'object' ? tells.id : tells
    return known.knows(knower, id) ? [] : [id]
  }
  const groups = reader === HOST ? undefined : reader.groups
  return entries
    .changedSince(looked.get(lookOf(state, reader)) ?? 0)
    .filter(
      id => !known.knows(knower, id) && entries.isActive(id) && sees(groups, entries.grupo(id))
    )
}

/** Whether the answer tells nothing new, and may be sent at once. */
export function isRecorded({ state }: Commits, reader: Reader, tells: Tells): boolean {
  const { knowledge, clock } = state
  if (reader === undefined) return knowledge.recording !== 'begun'
  if (typeof tells === 'number') return knowledge.knows(knowerOf(reader), tells)
  const { length } = newTo(state, knowledge, reader, tells) as { readonly length?: number }
  if (tells === 'list' && length === 0) looked.set(lookOf(state, reader), clock.now)
  return length === 0
}

/**
 * Gives what `read` gives in its turn, before the changes of the same write, once all that it tells
 * is durable. `read` must not wait. Rejects as `Store.commit`, and with `reads-recorded` in the
 * open configuration.
 */
export async function disclosed<A extends TellingAnswer>(
  commits: Commits,
  reader: Reader,
  operation: string,
  read: () => A
): Promise<A> {
  const { state } = commits
  let time = 0
  const answer = await commits.commitFirst(
    draft => {
      const now = read()
      time = state.clock.now
      const { tells } = now
      return [tells === undefined ? [] : told(state, draft, reader, operation, tells), now]
    },
    reader === HOST ? null : reader
  )
  if (answer.tells === 'list' && reader !== undefined) looked.set(lookOf(state, reader), time)
  return answer
}

/** A list is read from the state. */
export function told(
  state: State,
  draft: Draft,
  reader: Reader,
  operation: string,
  tells: Tells
): readonly EncodedEvent[] {
  const { knowledge } = draft
  if (reader === undefined) {
    if (knowledge.recording !== 'begun') return []
    throw new Failure(
      'reads-recorded',
      'start it with AUTH=bearer; with AUTH=none a start ends that'
    )
  }
  const found = newTo(state, knowledge, reader, tells)
  const data = 'password' in found ? [found] : idLists(found).map(entryIds => ({ entryIds }))
  const by = reader === HOST ? null : reader.user
  return [
    ...(data.length === 0 || knowledge.recording === 'begun'
      ? []
      : [event('recording.begun', null, {})]),
    ...data.map(one => event('passwords.told', by, { operation, ...one }))
  ]
}

/**
 * Says in the journal whether reads are recorded from now on. With tokens it may come later, since
 * until then nobody is answered a password that is new to them. Without, rejects as `Store.commit`.
 */
export async function markRecording(
  commits: Commits,
  asksForTokens: boolean,
  warn: (line: string) => void
): Promise<void> {
  const mark = asksForTokens ? 'begun' : 'ended'
  const isMarked = (recording: Draft['knowledge']['recording']): boolean =>
    recording === mark || (recording === undefined && !asksForTokens)
  if (commits.state.knowledge.hasLostKept) warn(LOST)
  if (isMarked(commits.state.knowledge.recording)) return
  try {
    await commits.commit(({ knowledge: { recording } }) => [
      isMarked(recording) ? [] : [event(`recording.${mark}`, null, {})],
      undefined
    ])
  } catch (error) {
    if (!asksForTokens || !(error instanceof Failure)) throw error
    warn(
      'until the journal takes records, users are answered only passwords that they know: ' +
        error.message
    )
  }
}

const LOST =
  'a compaction by an earlier build kept who knows which password in a form that is not read any ' +
  'more: others may know every password that was there then'
