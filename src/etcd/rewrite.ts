/**
 * Sealing a whole journal in etcd anew. What was put there is never changed, so the new lines go to another prefix.
 *
 * First a marker there says that a copy is made, so that no instance starts on it; then the marker here says so too,
 * from which moment nobody appends, and reads go on. The copy is written, read back and compared. Then one transaction
 * changes both markers, if both are still as this has made them: whoever is still here answers nothing any more, and
 * instances may start there. If it ends before that, however that comes, everything is still here; run again, it
 * meets both markers and takes them over.
 */
import type { Buffer } from 'node:buffer'
import { Failure } from '../errors.ts'
import type { Rewritten } from '../journal/journal.ts'
import type { Keyring } from '../journal/keys.ts'
import { Digest, olderKeys, onlyNewest, sealer } from '../journal/rewrite.ts'
import { ETCD_WRITE_TIMEOUT_MS } from '../limits.ts'
import { beginCopy, fill, readInPages } from './copy.ts'
import type { EtcdLog, Marker } from './log.ts'
import { Replica } from './replica.ts'

/** What a rewrite needs. */
export interface RewriteOptions {
  readonly source: EtcdLog
  readonly target: EtcdLog
  /** That of the source, as it was read last; it names the newest key. */
  readonly marker: Marker
  /** All keys; the newest seals. */
  readonly keys: Keyring
  /** About how many there are. */
  readonly records: number
  readonly nonce: () => Buffer
  readonly onProgress: (share: number) => void
  /** Ends it. */
  readonly signal: AbortSignal
}

/** Moves a journal, sealed anew, to where none is. When it rejects, changes are taken here again, if etcd answers. */
export async function rewriteEtcd(options: RewriteOptions): Promise<Rewritten> {
  const { source, target, marker, keys } = options
  const begun = await beginCopy(target, keys.newest.name)
  const text = `${marker.key} moving ${target.prefix}`
  const fence = await source.change(marker, text, ETCD_WRITE_TIMEOUT_MS)
  if (fence?.text !== text) throw interfered(source)
  try {
    const head = await copy(options, begun)
    if (!await source.moveTo(target, fence, begun, ETCD_WRITE_TIMEOUT_MS)) throw interfered(source)
    return { unneeded: olderKeys(keys), head }
  } catch (error) {
    await source.change(fence, marker.key, ETCD_WRITE_TIMEOUT_MS).catch(() => {}) // or it is met by the next one
    throw error
  }
}

/** Fills the target and reads it back; gives its head. */
async function copy(options: RewriteOptions, begun: Marker): Promise<string> {
  const { source, target, keys, nonce, records, onProgress, signal } = options
  const lineOf = sealer(keys.newest, nonce)
  const before = new Digest()
  let lines: string[] = []
  const old = new Replica(record => { before.add(record); lines.push(lineOf(record)) }, keys, source.prefix)
  const tell = (read: number, half: number): void => {
    if (signal.aborted) throw new Failure('journal-closed', source.prefix)
    onProgress((half + Math.min(1, read / Math.max(1, records))) / 2)
  }
  const resealed = async function * (): AsyncGenerator<string, void, void> {
    for await (const read of readInPages(source, old)) {
      tell(read, 0)
      yield * lines
      lines = []
    }
  }
  await fill(target, begun, resealed())
  const after = new Digest()
  const made = new Replica(after.add, onlyNewest(keys), target.prefix)
  for await (const read of readInPages(target, made)) tell(read, 1)
  after.compare(before)
  return made.head
}

function interfered({ prefix }: EtcdLog): Failure {
  return new Failure('write-failed', `${prefix}: somebody else has changed its key or place; look, and try again`)
}
