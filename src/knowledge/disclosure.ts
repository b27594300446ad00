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

/** What an answer tells its reader for the first time. */
interface News {
  readonly entryIds: readonly number[]
  readonly former: readonly string[]
}

function newsOf(
  state: State,
  known: KnowledgeLookup,
  reader: Session | typeof HOST,
  tells: Tells
): News {
  const knower = knowerOf(reader)
  if (tells === 'list') return { entryIds: newInList(state, known, reader), former: [] }
  if (typeof tells === 'number')
    return { entryIds: known.knows(knower, tells) ? [] : [tells], former: [] }
  const { id, password } = tells
  // A former password that was set again is the present one.
  if (state.entries.get(id)?.password === password) return newsOf(state, known, reader, id)
  return { entryIds: [], former: known.knowsFormer(knower, password) ? [] : [password] }
}

function newInList(state: State, known: KnowledgeLookup, reader: Session | typeof HOST): number[] {
  const { entries } = state
  const knower = knowerOf(reader)
  const groups = reader === HOST ? undefined : reader.groups
  const isNew = (id: number): boolean =>
    !known.knows(knower, id) && entries.isActive(id) && sees(groups, entries.grupo(id))
  return entries.changedSince(looked.get(lookOf(state, reader)) ?? 0).filter(isNew)
}

/** Whether the answer tells nothing new, and may be sent at once. */
export function isRecorded({ state }: Commits, reader: Reader, tells: Tells): boolean {
  const { knowledge, clock } = state
  if (reader === undefined) return knowledge.recording !== 'begun'
  const { entryIds, former } = newsOf(state, knowledge, reader, tells)
  const isNew = entryIds.length + former.length > 0
  if (tells === 'list' && !isNew) looked.set(lookOf(state, reader), clock.now)
  return !isNew
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
  const news = newsOf(state, knowledge, reader, tells)
  const data = [
    ...news.former.map(password => ({ password })),
    ...idLists(news.entryIds).map(entryIds => ({ entryIds }))
  ]
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
