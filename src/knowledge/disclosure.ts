/** Whoever is told a password that is new to them is recorded before the answer. */
import { Failure } from '../errors.ts'
import type { EncodedEvent } from '../journal/journal.ts'
import { MAX_TELLINGS } from '../limits.ts'
import { event } from '../store/event.ts'
import type { Knower, Tells } from './knowledge.ts'
import type { Draft } from '../store/state.ts'
import type { Commits } from '../store/store.ts'
import { HOST, sees, type Session } from '../rights/rights.ts'

/**
 * Who is answered: the user of a token, the process of an embedder, or, in the open configuration,
 * nobody by name.
 */
export type Reader = Session | typeof HOST | undefined

/** What an answer tells, if it has passwords. */
export interface Answer {
  readonly tells?: Tells | undefined
}

function knowerOf(reader: Session | typeof HOST): Knower {
  return reader === HOST ? HOST : reader.user
}

/** Whether the answer may be sent: it tells nothing new. */
export function isRecorded(
  { state: { knowledge } }: Commits,
  reader: Reader,
  tells: Tells
): boolean {
  return reader === undefined
    ? knowledge.recording !== 'begun'
    : knowledge.isKnown(knowerOf(reader), tells)
}

/**
 * What `read` gives once all that it tells is durable: it is read again after each record, so it
 * must change nothing. Rejects as `Store.commit`, and with `reads-recorded` in the open
 * configuration.
 */
export async function disclosed<A extends Answer>(
  commits: Commits,
  reader: Reader,
  operation: string,
  read: () => A | Promise<A>,
  first?: A
): Promise<A> {
  let answer = first ?? (await read())
  for (let records = 0; ; records++) {
    const { tells } = answer
    if (tells === undefined || isRecorded(commits, reader, tells)) return answer
    if (records === MAX_TELLINGS)
      throw new Failure('journal-busy', `what ${operation} tells changes all the time`)
    await commits.commitLast(
      draft => [told(draft, reader, operation, tells), undefined],
      reader === HOST ? null : reader
    )
    answer = await read()
  }
}

/** The events that record what is new to the reader, of what is there and in sight. */
export function told(
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
  const knower = knowerOf(reader)
  if (knowledge.isKnown(knower, tells)) return []
  const groups = reader === HOST ? undefined : reader.groups
  const isNew = (id: number): boolean => {
    const entry = draft.get(id)
    return entry !== undefined && sees(groups, entry.grupo) && !knowledge.isKnown(knower, id)
  }
  const data =
    typeof tells === 'object' && 'list' in tells ? tells : { ids: [tells].flat().filter(isNew) }
  if ('ids' in data && data.ids.length === 0) return []
  const mark = knowledge.recording === 'begun' ? [] : [event('recording.begun', null, {})]
  return [
    ...mark,
    event('passwords.told', reader === HOST ? null : reader.user, { operation, ...data })
  ]
}

/**
 * Says in the journal whether reads are recorded from now on. With tokens, what nobody knows yet is
 * answered only once that is durable, so it may come later; without, rejects as `Store.commit` if
 * it cannot be said.
 */
export async function markRecording(
  commits: Commits,
  asksForTokens: boolean,
  warn: (line: string) => void
): Promise<void> {
  const mark = asksForTokens ? 'begun' : 'ended'
  const isMarked = (recording: Draft['knowledge']['recording']): boolean =>
    recording === mark || (recording === undefined && !asksForTokens)
  if (isMarked(commits.state.knowledge.recording)) return
  try {
    await commits.commit(({ knowledge: { recording } }) => [
      isMarked(recording) ? [] : [event(`recording.${mark}`, null, {})],
      undefined
    ])
  } catch (error) {
    if (!asksForTokens || !(error instanceof Failure)) throw error
    warn(
      `until the journal takes records, users are answered only passwords that they know: ${error.message}`
    )
  }
}
