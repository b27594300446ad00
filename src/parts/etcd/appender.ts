/**
 * The writing side of an instance. `etcd-log.ts` says why a change is recorded once.
 *
 * **Events are appended right behind the record on which they were decided**, or decided again.
 */
import { Failure } from '../../errors.ts'
import type { DurableJournal, EncodedEvent } from '../../journal/journal.ts'
import { ETCD_WRITE_TIMEOUT_MS, MAX_ETCD_WAIT_MS } from './etcd-limits.ts'
import type { Stored } from './etcd-keys.ts'
import type { Follower } from './follower.ts'

/** Seals for the place behind the newest record. */
export type SealNext = (events: readonly EncodedEvent[]) => readonly string[]

interface Decided {
  readonly events: readonly EncodedEvent[]
  /** The newest record when they were decided. */
  readonly on: Stored
}

/** Rejects with `write-failed` if other instances came first for `ETCD_WRITE_TIMEOUT_MS`. */
export function appender(follower: Follower, sealNext: SealNext): DurableJournal['append'] {
  return async decide => {
    const decideNow = (): Decided => ({ on: follower.replica.newest, events: decide() })
    const endMs = performance.now() + ETCD_WRITE_TIMEOUT_MS
    let waitEndMs = Infinity // bounds all waits before an attempt
    try {
      while (performance.now() < endMs) {
        let decided = decideNow()
        if (decided.events.length === 0) {
          // "Nothing to change" is an answer, too: it must hold on all that others wrote before.
          await inTime(follower.ask(), endMs)
          decided = decideNow()
          if (decided.events.length === 0) return
        }
        waitEndMs = Math.min(waitEndMs, endMs, performance.now() + MAX_ETCD_WAIT_MS)
        if (performance.now() < waitEndMs && (await follower.turns.wait(waitEndMs))) continue
        waitEndMs = Infinity
        // etcd compares the marker, but does not know what it says: this alone keeps records out of
        // a closed journal.
        const fault = follower.writeFault()
        if (fault === undefined) {
          if (await attempt(follower, decided, sealNext, endMs)) return
          continue
        }
        await inTime(follower.ask(), endMs) // the marker may name another key by now
        if (follower.writeFault() !== undefined) throw fault
      }
      throw new Failure(
        'write-failed',
        `other instances came first for ${ETCD_WRITE_TIMEOUT_MS} ms`
      )
    } catch (error) {
      follower.wrote(error as Failure)
      throw error
    }
  }
}

/**
 * True: all lines are in the journal, and applied. False: they never will be, so the events may be
 * decided again. Rejects with `journal-unreachable` if neither is known.
 */
async function attempt(
  follower: Follower,
  { events, on }: Decided,
  sealNext: SealNext,
  endMs: number
): Promise<boolean> {
  const { log, replica, turns } = follower
  if (replica.newest !== on) return false
  const lines = sealNext(events)
  const marker = log.marker!
  const place = replica.expect(lines[0]!)
  let isAnswered = false
  try {
    const { isMade, records, revision } = await log.append(on, marker, lines, endMs)
    isAnswered = true
    follower.wrote()
    follower.take(records)
    turns.note(isMade ? undefined : Number(revision))
    if (place.taken === 'not yet') await inTime(follower.ask(), endMs)
  } catch (error) {
    // A refusal does not prove that nothing was appended: it may answer the repetition of an
    // attempt that was made.
    const isRefused = error instanceof Failure && error.code === 'journal-refused'
    if (isRefused)
      isAnswered = await inTime(follower.ask(), endMs).then(
        () => true,
        () => false
      )
    if (place.taken === 'not yet') throw isAnswered ? error : unknown(error)
  }
  // Only another line at the place, or another marker, proves that the attempt will fail whenever
  // it arrives.
  if (place.taken === 'not yet' && log.marker!.revision === marker.revision) {
    throw new Failure('write-failed', 'another record came first, and is gone')
  }
  if (place.taken !== 'by own line') return false
  // A batch is in etcd whole or not at all, but the watch may have shown only its beginning.
  const isApplied = replica.newest.seq >= place.seq + lines.length - 1
  if (!isApplied)
    await inTime(follower.ask(), endMs).catch(error => {
      throw unknown(error)
    })
  return true
}

function unknown(error: unknown): Failure {
  const why = error instanceof Failure ? error.detail : String(error)
  const how =
    'the change may have been made, or may still be: look (journal show) before you repeat it'
  return new Failure('journal-unreachable', `${why}; ${how}`, { cause: error })
}

async function inTime<T>(asked: Promise<T>, endMs: number): Promise<T> {
  const why = `no answer in ${ETCD_WRITE_TIMEOUT_MS} ms, in which others may have come first`
  const timeout = new Failure('write-failed', why)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(reject, Math.max(1, endMs - performance.now()), timeout)
  })
  return Promise.race([asked, late]).finally(() => clearTimeout(timer))
}
