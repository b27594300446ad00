/**
 * The writing side of an instance. It appends right after the newest record applied here, because the events were
 * decided on that record; `etcd-log.ts` says why a change is recorded once.
 */
import { Failure } from '../../errors.ts'
import type { DurableJournal, EncodedEvent } from '../../journal/journal.ts'
import { ETCD_WRITE_TIMEOUT_MS, MAX_ETCD_WAIT_MS } from './etcd-limits.ts'
import type { Follower } from './follower.ts'

export type SealNext = (events: readonly EncodedEvent[]) => readonly string[]

/** Rejects with `write-failed` if other instances came first for `ETCD_WRITE_TIMEOUT_MS`. */
export function appender(follower: Follower, sealNext: SealNext): DurableJournal['append'] {
  return async decide => {
    const endMs = performance.now() + ETCD_WRITE_TIMEOUT_MS
    let waitEndMs = Infinity // bounds all waits before an attempt
    try {
      while (performance.now() < endMs) {
        let events = decide()
        if (events.length === 0) {
          await inTime(follower.ask(), endMs) // the newest state may leave something to change
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
        await inTime(follower.ask(), endMs) // the marker may name another key by now
        if (follower.writeFault() !== undefined) throw fault
      }
      throw new Failure('write-failed', `other instances came first for ${ETCD_WRITE_TIMEOUT_MS} ms`)
    } catch (error) {
      follower.wrote(error as Failure)
      throw error
    }
  }
}

/** False: the lines never will be there. Rejects with `journal-unreachable` if this is unknown. */
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
    // A refused request may repeat an attempt that etcd carried out.
    const isRefused = error instanceof Failure && error.code === 'journal-refused'
    if (isRefused) isAnswered = await inTime(follower.ask(), endMs).then(() => true, () => false)
    if (place.isOurs === undefined) throw isAnswered ? error : unknown(error)
  }
  if (place.isOurs === undefined && log.marker!.revision === marker.revision) {
    throw new Failure('write-failed', 'another record came first, and is gone')
  }
  const isWhole = replica.newest.seq >= place.seq + lines.length - 1
  if (place.isOurs === true && !isWhole) await inTime(follower.ask(), endMs).catch(error => { throw unknown(error) })
  return place.isOurs === true
}

function unknown(error: unknown): Failure {
  const why = error instanceof Failure ? error.detail : String(error)
  const how = 'the change may have been made, or may still be: look (journal show) before you repeat it'
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
