/**
 * The journal in etcd, which several instances write: each keeps the whole state in memory and applies every record
 * in order, whichever instance wrote it. `etcd-log.ts` says how records lie in etcd and why an append may be repeated.
 *
 * **An append** goes after exactly the newest record that this instance has applied, on which its events were decided;
 * so no other decision came in between. If something else is there, that is applied, and the append has raced:
 * it is decided again once those before it have had their turn.
 *
 * **An answer that was lost** leaves open whether the lines were appended, and even whether they will be: a member
 * that was stopped may pass them on when it goes on. So the same bytes are tried again until there is an answer, and
 * however the record at their first place becomes known, by that answer, a read or the watch, it decides which it
 * was. If it is not known in time, the change is answered 500: it may have been made. It is never reported as made,
 * nor is another command's outcome mistaken for it: the next append is at the same place, and either wins, which shuts
 * the old one out for good, or meets it there and applies it like anybody's.
 *
 * **A read** first asks etcd, linearizably, for what follows the newest applied record: the answer holds whatever was
 * acknowledged before. Reads that wait share it (`follower.ts`, `single-flight.ts`), and so do changes that come to
 * nothing.
 *
 * **The key** to seal with is the one that the marker names (`sealing.ts`). An append that finds another marker has
 * raced as well. Without that key changes are refused, and without the key of a line reads are, until the operator has
 * put it into the key file.
 */
import { disk } from '../../disk/files.ts'
import { Failure } from '../../errors.ts'
import { nonces, sealBatch } from '../../journal/batch.ts'
import type { Apply, DurableJournal, EncodedEvent, JournalOptions } from '../../journal/journal.ts'
import { readKeyFile } from '../../journal/keys.ts'
import { isoTime } from '../../journal/line.ts'
import { LINE_OVERHEAD_BYTES } from '../../limits.ts'
import { etcdAccess, EtcdClient } from './etcd-client.ts'
import {
  ETCD_READ_TIMEOUT_MS, ETCD_TURN_POLL_MS, ETCD_WRITE_TIMEOUT_MS, MAX_ETCD_COMMIT_BYTES, MAX_ETCD_COMMIT_RECORDS,
  MAX_ETCD_RECORD_BYTES
} from './etcd-limits.ts'
import { EtcdLog, type Turn } from './etcd-log.ts'
import type { EtcdSettings } from './etcd-settings.ts'
import { Follower } from './follower.ts'
import { Replica, type Pending } from './replica.ts'
import { Sealing } from './sealing.ts'

/**
 * Reads and verifies all records, and follows those to come. Rejects with `key-missing`, for the instances share a key,
 * which is made once, `journal-missing`, `journal-unreachable`, `journal-refused`, `journal-damaged`, `journal-moved`
 * or, where the key file lacks a key that sealed or is to seal, `key-unknown`.
 */
export async function openEtcdJournal(
  settings: EtcdSettings, options: JournalOptions, apply: Apply
): Promise<DurableJournal> {
  const { etcdPrefix: path, etcdEndpoints: endpoints, staleReads } = settings
  const { keyFile, wallMs, random, mayCreate, onProgress = () => {} } = options
  const keys = readKeyFile(disk, keyFile)
  if (keys === undefined) {
    const why = 'the instances share one, which admin.js init --journal file makes'
    throw new Failure('key-missing', `${keyFile}; ${why}`)
  }
  const client = new EtcdClient(etcdAccess(settings, disk))
  const log = new EtcdLog(client, path)
  const sealing = new Sealing(disk, keyFile, keys, log)
  const replica = new Replica(apply, sealing, path)
  const follower = new Follower(log, replica, sealing, options.warn)
  try {
    // First by a mere read: whatever might put something is refused by an etcd that is full.
    const records = await log.look(ETCD_READ_TIMEOUT_MS)
    if (mayCreate === true) log.marker ??= await log.change(undefined, keys.newest.name, ETCD_WRITE_TIMEOUT_MS)
    if (log.marker === undefined) {
      const how = 'if ETCD_PREFIX is right, the command init makes an empty one, and journal copy --to etcd a copy'
      throw new Failure('journal-missing', `etcd has no key ${path}.key; ${how}`)
    }
    const unusable = sealing.unusable() ?? sealing.fault()
    if (unusable !== undefined) throw unusable
    await follower.catchUp(seq => onProgress(Math.min(1, seq / Math.max(1, records))))
  } catch (error) {
    client.close()
    throw error
  } finally {
    onProgress(1)
  }
  const closing = new AbortController()
  void follower.follow(closing.signal)
  const nonce = nonces(random)
  const sealNext: SealNext = events => {
    const seal = { time: isoTime(wallMs()), key: sealing.key(), nonce }
    return sealBatch(events, replica.newest.seq, replica.head, seal).lines
  }
  const catchUp = async (): Promise<void> => { await follower.ask() }
  return {
    maxBatchRecords: MAX_ETCD_COMMIT_RECORDS,
    maxBatchBytes: (MAX_ETCD_COMMIT_BYTES - MAX_ETCD_COMMIT_RECORDS * LINE_OVERHEAD_BYTES) / 4 * 3,
    maxEventBytes: (MAX_ETCD_RECORD_BYTES - LINE_OVERHEAD_BYTES) / 4 * 3,
    append: appender(follower, sealNext),
    readBarrier: async () => {
      const { fault, outage } = follower
      if (!staleReads) return catchUp()
      if (fault !== undefined) return
      const caughtUp = catchUp().catch(() => {}) // in an outage too: so its end is noticed
      if (outage === undefined) await caughtUp
    },
    health: () => {
      const { fault, trouble } = follower
      const { newest: { seq: records }, head } = replica
      return { fault: fault ?? trouble?.message, mayHeal: fault === undefined, records, head }
    },
    location: () => ({ path, keyFile, bytes: 0, endpoints }),
    rotateKey: async () => {
      await catchUp()
      return sealing.rotate(random)
    },
    replace: async () => {
      const how = 'stop all instances, copy it to a file, do it there, and copy that to another ETCD_PREFIX'
      throw new Failure('input-invalid', `a journal in etcd is not written again where it is; ${how}`)
    },
    close: async () => {
      closing.abort()
      client.close()
    }
  }
}

/** Seals events that follow the newest record; gives their lines. */
type SealNext = (events: readonly EncodedEvent[]) => readonly string[]

/**
 * Appends what is decided, and has it decided again where others came first, for as long as a change may take. What
 * comes to nothing is decided on the newest state.
 */
function appender(follower: Follower, sealNext: SealNext): DurableJournal['append'] {
  return async decide => {
    const endMs = performance.now() + ETCD_WRITE_TIMEOUT_MS
    try {
      for (;;) {
        let events = decide()
        if (events.length === 0) {
          await follower.ask()
          events = decide()
        }
        if (events.length === 0 || await appendOnce(follower, sealNext, events)) return
        if (performance.now() < endMs) continue
        throw new Failure('write-failed', `other instances came first for ${ETCD_WRITE_TIMEOUT_MS} ms`)
      }
    } catch (error) {
      follower.wrote(error as Error)
      throw error
    }
  }
}

/** Appends events after the newest record; false if something else came first, and its turn has come since. */
async function appendOnce(
  follower: Follower, sealNext: SealNext, events: readonly EncodedEvent[]
): Promise<boolean> {
  const { log, sealing, replica } = follower
  follower.assertSound()
  const unsealed = sealing.fault()
  if (unsealed !== undefined) {
    await follower.ask() // another key may be the one to seal with by now
    if (sealing.fault() !== undefined) throw unsealed
    return false
  }
  const { newest } = replica
  const lines = sealNext(events)
  const pending: Pending = replica.pending = { seq: newest.seq + 1, text: lines[0]!, isOurs: undefined }
  let ahead: readonly Turn[] = []
  let { seq } = newest
  try {
    const appended = await log.append(newest, log.marker!, lines, ETCD_WRITE_TIMEOUT_MS)
    follower.wrote()
    follower.take(appended.records)
    ahead = appended.ahead
    seq = appended.records.at(-1)?.seq ?? seq
    // Nothing came first, and nobody is ahead: the marker has changed, say, or the newest record is gone.
    if (pending.isOurs === undefined && ahead.length === 0) await follower.ask()
  } catch (error) {
    // What was refused may be a second attempt, whose first one was carried out.
    if (error instanceof Failure && error.code === 'journal-refused') await follower.ask().catch(() => {})
    if (pending.isOurs !== true || replica.newest.seq < pending.seq) throw error
  } finally {
    replica.pending = undefined
  }
  if (pending.isOurs !== true) await awaitTurn(follower, ahead, seq)
  return pending.isOurs === true
}

/** Waits until those ahead have written after a record, or let their time pass, which ends their turn. */
async function awaitTurn(follower: Follower, ahead: readonly Turn[], seq: number): Promise<void> {
  let writes = 0
  for (const turn of ahead) {
    const endMs = performance.now() + turn.waitMs
    const hasWritten = (): boolean => follower.replica.writesAfter(seq) > writes
    while (!hasWritten() && performance.now() < endMs) await follower.next(ETCD_TURN_POLL_MS)
    if (hasWritten()) writes++
    else await follower.log.skip(turn, ETCD_WRITE_TIMEOUT_MS)
  }
}
