/**
 * The journal in etcd, which several instances write (`appender.ts`) and follow (`follower.ts`).
 *
 * **A read** first asks etcd, linearizably, for newer records, so it shows all that was
 * acknowledged before.
 */
import type { StorageSettings } from '../../core-settings.ts'
import { disk } from '../../journal/files.ts'
import { Failure } from '../../errors.ts'
import type { Apply, DurableJournal, JournalOptions } from '../../journal/journal.ts'
import { readKeyFile, tagKeyOf } from '../../journal/keys.ts'
import { isoTime, nonces, sealBatch } from '../../journal/line.ts'
import { locationOf } from '../../journal/folder.ts'
import { LINE_OVERHEAD_BYTES } from '../../limits.ts'
import { appender, type SealNext } from './appender.ts'
import { etcdAccess, EtcdClient } from './etcd-client.ts'
import {
  ETCD_READ_TIMEOUT_MS,
  ETCD_WRITE_TIMEOUT_MS,
  MAX_ETCD_COMMIT_BYTES,
  MAX_ETCD_COMMIT_RECORDS,
  MAX_ETCD_RECORD_BYTES
} from './etcd-limits.ts'
import { EtcdLog } from './etcd-log.ts'
import type { EtcdSettings } from './etcd-settings.ts'
import { Follower } from './follower.ts'
import { emptied, hadRecords, unusable, withoutMarker } from './marker.ts'
import { Replica } from './replica.ts'
import { SealingKeys } from './sealing.ts'

/**
 * Rejects with `key-missing` (the instances share a key, made once), `journal-missing`,
 * `journal-unreachable`, `journal-refused`, `journal-damaged`, or `key-unknown` if the key file
 * lacks a needed key.
 */
export async function openEtcdJournal(
  settings: EtcdSettings & StorageSettings,
  options: JournalOptions,
  apply: Apply
): Promise<DurableJournal> {
  const { etcdPrefix: path, etcdEndpoints: endpoints, staleReads } = settings
  const { keyFile, wallMs, random, mayCreate, warn, onProgress = () => {} } = options
  const keys = readKeyFile(disk, keyFile)
  if (keys === undefined) {
    const why = 'the instances share one, which admin.js init --journal file makes'
    throw new Failure('key-missing', `${keyFile}; ${why}`)
  }
  const client = new EtcdClient(etcdAccess(settings, disk))
  const log = new EtcdLog(client, path, warn)
  const sealing = new SealingKeys(disk, keyFile, keys, log)
  const replica = new Replica(apply, sealing, path)
  const follower = new Follower(log, replica, sealing, warn, wallMs)
  let isNew: boolean
  try {
    isNew = await start(follower, mayCreate === true ? keys.newest.name : undefined, onProgress)
  } catch (error) {
    client.close()
    throw error
  } finally {
    onProgress(1)
  }
  warnOfFile(settings, warn)
  const tagKeys = new TagKeys(sealing)
  const closing = new AbortController()
  void follower.follow(closing.signal)
  return {
    maxRecords: MAX_ETCD_COMMIT_RECORDS,
    maxBytes: ((MAX_ETCD_COMMIT_BYTES - MAX_ETCD_COMMIT_RECORDS * LINE_OVERHEAD_BYTES) / 4) * 3,
    maxEventBytes: ((MAX_ETCD_RECORD_BYTES - LINE_OVERHEAD_BYTES) / 4) * 3,
    append: appender(follower, sealerOf(follower, wallMs, random)),
    catchUp: catchUpOf(follower, staleReads),
    get tagKey() {
      return tagKeys.of(replica.firstKey ?? sealing.key().name)
    },
    status: () => statusOf(follower),
    location: () => ({ path, keyFile, bytes: 0, endpoints, isNew }),
    rotateKey: async () => {
      await follower.ask()
      const fault = follower.writeFault()
      if (fault !== undefined) throw fault
      return sealing.rotate(random)
    },
    close: async () => {
      closing.abort()
      client.close()
    }
  }
}

function statusOf(follower: Follower): ReturnType<DurableJournal['status']> {
  const { trouble, readPercent, readFault, fullSince, replica } = follower
  const { newest, head, broken } = replica
  return {
    fault: trouble?.message,
    mayHeal: broken === undefined,
    mayLack: readFault !== undefined,
    readPercent,
    fullSince,
    records: newest.seq,
    head
  }
}

/**
 * Only `STALE_READS` lets a request go on without an answer of etcd, and none whose token is
 * unknown here. Exported for tests.
 */
export function catchUpOf(
  follower: Pick<Follower, 'outage' | 'ask'>,
  staleReads: boolean
): NonNullable<DurableJournal['catchUp']> {
  return async mustBeNewest => {
    const { outage } = follower // before asking, which may end or begin one
    const asked = follower.ask()
    if (!staleReads || mustBeNewest === true) {
      await asked
      return
    }
    const known = asked.catch(() => {}) // in an outage too, to notice its end
    if (outage === undefined) await known
  }
}

/**
 * Gives whether it has made the journal. Each question needs the answer before it: is there a
 * marker? does it allow reading, with these keys? are all records there? is anything else among
 * them?
 */
async function start(
  follower: Follower,
  newKey: string | undefined,
  onProgress: (share: number) => void
): Promise<boolean> {
  const { log, sealing, replica } = follower
  const inTime = (ms: number): number => performance.now() + ms
  // A read: a full etcd refuses all that could put something.
  const keys = await log.look(inTime(ETCD_READ_TIMEOUT_MS))
  const isNew = log.marker === undefined && newKey !== undefined
  // Only without any record: keys that lost their marker must not become a new journal's.
  if (isNew) await log.change(undefined, newKey, inTime(ETCD_WRITE_TIMEOUT_MS), { isEmpty: true })
  const { marker, prefix } = log
  if (marker === undefined) throw withoutMarker(prefix, keys)
  const fault = unusable(marker, prefix) ?? sealing.fault()
  if (fault !== undefined) throw fault
  const onPage = (seq: number): void => onProgress(Math.min(1, seq / Math.max(1, keys)))
  await follower.catchUp(() => inTime(ETCD_READ_TIMEOUT_MS), onPage)
  const { seq } = replica.newest
  // Without records, only the marker tells a new journal from one that was emptied.
  if (seq === 0 && hadRecords(marker)) throw emptied(prefix)
  const among = (await log.look(inTime(ETCD_READ_TIMEOUT_MS), seq)) - seq
  if (among > 0) {
    const how = `remove them (etcdctl get ${prefix}/ --prefix --keys-only shows all)`
    throw new Failure(
      'journal-damaged',
      `${prefix}: keys of another program are among the records, ${among}; ${how}`
    )
  }
  return isNew
}

function warnOfFile(settings: EtcdSettings & StorageSettings, warn: JournalOptions['warn']): void {
  const { path } = locationOf(settings)
  if (disk.stat(path) === undefined) return
  const how = 'The file may be out of date: move it away'
  warn(`the service uses the journal ${settings.etcdPrefix} in etcd, and not ${path}. ${how}`)
}

function sealerOf(
  { replica, sealing }: Follower,
  wallMs: () => number,
  random: JournalOptions['random']
): SealNext {
  const nonce = nonces(random)
  return events => {
    const seal = { time: isoTime(wallMs()), key: sealing.key(), nonce }
    return sealBatch(events, replica.newest.seq, replica.head, seal).lines
  }
}

/** The first record's key decides; a rotation may come before it. */
class TagKeys {
  readonly #sealing: SealingKeys
  #name: string | undefined
  #key = ''

  constructor(sealing: SealingKeys) {
    this.#sealing = sealing
  }

  of(name: string): string {
    if (name !== this.#name) this.#key = tagKeyOf(this.#sealing.find(name))
    this.#name = name
    return this.#key
  }
}
