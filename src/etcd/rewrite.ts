/**
 * Sealing a whole journal in etcd anew. What was put there is never changed, so the new lines go to another prefix.
 *
 * First one transaction changes both markers: the one there says that a copy is made, so that no instance starts on it,
 * and the one here says so too, from which moment nobody appends, and reads go on. The copy is written, read back and
 * compared. Then another one changes both again, if they are still as this has made them: whoever is still here answers
 * nothing any more, and instances may start there. If it ends before that, however that comes, everything is still
 * here; run again, it meets both markers and takes them over. Of several that are run at once one wins, the last.
 *
 * **One that fails takes its fence back**, the marker here, for as long as the process lives: also where the answer to
 * the first transaction was lost. For that may still arrive, and so may the last one, the marker is changed even where
 * it is found as it was: both require its revision.
 */
import { Failure } from '../errors.ts'
import type { Rewritten } from '../journal/journal.ts'
import { Digest, olderKeys, onlyNewest, sealer, type SealAnew } from '../journal/rewrite.ts'
import { ETCD_READ_TIMEOUT_MS, ETCD_UNDO_PAUSE_MS, ETCD_WRITE_TIMEOUT_MS } from '../limits.ts'
import { fill, readInPages, taken } from './copy.ts'
import type { EtcdLog, Marker } from './log.ts'
import { Replica } from './replica.ts'

/** What a rewrite needs. */
export interface RewriteOptions extends SealAnew {
  readonly source: EtcdLog
  readonly target: EtcdLog
  /** That of the source, as it was read last; it names the newest key. */
  readonly marker: Marker
  /** About how many there are. */
  readonly records: number
  /** Ends it. */
  readonly signal: AbortSignal
}

/**
 * Moves a journal, sealed anew, to where none is. When it rejects, changes are taken here again, or will be once etcd
 * takes that. Rejects with `journal-refused` where a journal is, and `write-failed` where somebody else interferes.
 */
export async function rewriteEtcd(options: RewriteOptions): Promise<Rewritten> {
  const { source, target, marker, keys, nonce } = options
  const there = await target.look(ETCD_READ_TIMEOUT_MS)
  if (there !== undefined && there.state !== 'copying') throw taken(target.prefix)
  const text = `${marker.key} moving ${target.prefix} ${nonce().toString('hex')}`
  try {
    const begun = await source.beginMove(target, marker, there, text, ETCD_WRITE_TIMEOUT_MS)
    if (begun === undefined) throw interfered(options)
    const head = await copy(options, begun[1])
    if (!await source.moveTo(target, ...begun, ETCD_WRITE_TIMEOUT_MS)) throw interfered(options)
    return { unneeded: olderKeys(keys), head }
  } catch (error) {
    await undo(options, text)
    throw error
  }
}

/** Takes the fence back; resolves after a first try, and goes on until one succeeds or the journal is closed. */
async function undo(options: RewriteOptions, text: string): Promise<void> {
  try {
    await takeBack(options, text)
  } catch {
    setTimeout(() => { if (!options.signal.aborted) void undo(options, text) }, ETCD_UNDO_PAUSE_MS).unref()
  }
}

async function takeBack({ source, marker }: RewriteOptions, text: string): Promise<void> {
  for (;;) {
    const found = await source.look(ETCD_READ_TIMEOUT_MS)
    if (found?.text !== text && found?.revision !== marker.revision) return // it is another's, or has moved after all
    const changed = await source.change(found, marker.key, ETCD_WRITE_TIMEOUT_MS)
    if (changed?.text === marker.key) return
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

function interfered({ source, target }: RewriteOptions): Failure {
  const what = `somebody else has changed its key or place, or uses ${target.prefix}`
  return new Failure('write-failed', `${source.prefix}: ${what}; look, and try again`)
}
