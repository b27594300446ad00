/**
 * The writing side of an instance. An append goes after exactly the newest record that this instance has applied, on
 * which its events were decided. What is read at its place, by whichever way, decides what became of it: its own line,
 * and it is made; another, and that is applied, and everything decided again. `etcd-log.ts` says why that is once.
 */
import { Failure } from '../../errors.ts'
import type { DurableJournal, EncodedEvent } from '../../journal/journal.ts'
import { ETCD_WRITE_TIMEOUT_MS, MAX_ETCD_WAIT_MS } from './etcd-limits.ts'
import type { Follower } from './follower.ts'

/** Seals events that follow the newest record; gives their lines. */
export type SealNext = (events: readonly EncodedEvent[]) => readonly string[]

/** Gives the function that appends what is decided, and decides again if others came first, for a time. */
export function appender(follower: Follower, sealNext: SealNext): DurableJournal['append'] {
  return async decide => {
    const endMs = performance.now() + ETCD_WRITE_TIMEOUT_MS
    let waitEndMs = Infinity // how long others are waited for before an attempt, however many come meanwhile
    try {
      while (performance.now() < endMs) {
        let events = decide()
        if (events.length === 0) {
          await inTime(follower.ask(), endMs) // on the newest state these may change something
          events = decide()
          if (events.length === 0) return
        }
        waitEndMs = Math.min(waitEndMs, endMs, performance.now() + MAX_ETCD_WAIT_MS)
        if (performance.now() < waitEndMs && await follower.turns.wait(waitEndMs)) continue
        waitEndMs = Infinity
        const fault = follower.writeFault()
        if (fault === undefined) {
          if (await attempt(follower, sealNext(events), endMs)) return
          continue
        }
        await inTime(follower.ask(), endMs) // another key may be the one to seal with by now
        if (follower.writeFault() !== undefined) throw fault
      }
      throw new Failure('write-failed', `other instances came first for ${ETCD_WRITE_TIMEOUT_MS} ms`)
    } catch (error) {
      follower.wrote(error as Failure)
      throw error
    }
  }
}

/**
 * Puts lines after the newest record; false: they are not there and never will be. Rejects with `journal-unreachable`
 * if that is not known, and otherwise if they are not there.
 */
async function attempt(follower: Follower, lines: readonly string[], endMs: number): Promise<boolean> {
  const { log, replica, turns } = follower
  const marker = log.marker!
  const place = replica.expect(lines[0]!)
  let isAnswered = false
  try {
    const { isMade, records, revision } = await log.append(replica.newest, marker, lines, endMs)
    isAnswered = true
    follower.wrote()
    follower.take(records)
    turns.note(isMade ? undefined : Number(revision))
    if (place.isOurs === undefined) await inTime(follower.ask(), endMs)
  } catch (error) {
    // What was refused may be a second attempt, whose first one was carried out.
    const isRefused = error instanceof Failure && error.code === 'journal-refused'
    if (isRefused) isAnswered = await inTime(follower.ask(), endMs).then(() => true, () => false)
    if (place.isOurs === undefined) throw isAnswered ? error : unknown(error)
  }
  if (place.isOurs === undefined && log.marker!.revision === marker.revision) {
    throw new Failure('write-failed', 'what stood in its way is gone')
  }
  const isWhole = replica.newest.seq >= place.seq + lines.length - 1
  if (place.isOurs === true && !isWhole) await inTime(follower.ask(), endMs).catch(error => { throw unknown(error) })
  return place.isOurs === true
}

/** Attempts were sent, and what became of them could not be read. */
function unknown(error: unknown): Failure {
  const why = error instanceof Failure ? error.detail : String(error)
  const how = 'the change may have been made, or may still be: look (journal show) before you repeat it'
  return new Failure('journal-unreachable', `${why}; ${how}`, { cause: error })
}

/** The same, but not for longer than until then. */
async function inTime<T>(asked: Promise<T>, endMs: number): Promise<T> {
  const why = `no answer in ${ETCD_WRITE_TIMEOUT_MS} ms, in which others may have come first`
  const timeout = new Failure('write-failed', why)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(reject, Math.max(1, endMs - performance.now()), timeout)
  })
  return Promise.race([asked, late]).finally(() => clearTimeout(timer))
}
