/**
 * Writing a whole journal again: into a new file beside it, which is read back and compared, and then takes its name.
 * Loaded when the operator asks for it, and at a start on a journal with two names.
 */
import type { Buffer } from 'node:buffer'
import { createHash, type Hash } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import { isSameFile, type Files } from '../disk/files.ts'
import { hasNoLinks, isPartOf, makeWhole, type NewFile } from '../disk/whole-file.ts'
import { Failure } from '../errors.ts'
import { READ_CHUNK_BYTES } from '../limits.ts'
import { sealBatch } from './batch.ts'
import { CONTINUED, type Continued, type JournalRecord, type Rewrite, type Rewritten } from './journal.ts'
import type { Keyring } from './keys.ts'
import { FIRST_HASH } from './line.ts'
import { NOTHING, readInSteps, type End, type Recovered } from './recover.ts'

/** What a journal in a file adds to what was asked for. */
interface RewriteOptions extends Rewrite {
  readonly files: Files
  readonly path: string
  /** Where it ends now. */
  readonly from: End
  /** The time now, as a line has it. */
  readonly time: string
  readonly keys: Keyring
  readonly nonce: () => Buffer
}

type Unnumbered = Omit<JournalRecord, 'seq'>

/**
 * Gives what was done, and where the new file ends. Nothing is appended meanwhile; the event loop is left free after
 * each slice of bytes. When it fails, the old file is as it was.
 */
export async function rewriteJournal(options: RewriteOptions): Promise<readonly [Rewritten, End]> {
  const { path, files, from, time, keys: { names, newest }, checkpoint, keepsHistory } = options
  if (checkpoint !== undefined && from.records === 0) {
    throw new Failure('input-invalid', `${path} has no records that could be compacted`)
  }
  const earlier = checkpoint === undefined ? [] : continuations(options)
  const archive = checkpoint !== undefined && keepsHistory ? archiveOf(path, earlier, from.records) : undefined
  if (archive !== undefined && files.stat(archive) !== undefined) {
    throw new Failure('input-invalid', `${archive} exists already; move it away`)
  }
  try {
    const { records, head, goodBytes } = await makeWhole(files, path, file => writeAndCompare(file, options, earlier),
      { replaces: true, keepsAs: archive })
    const rewritten = {
      records, head, bytes: goodBytes, archive, unneeded: names.filter(name => name !== newest.name),
      before: { records: from.records, head: from.head, bytes: from.goodBytes }
    }
    return [rewritten, { records, head, goodBytes, time: records > 0 ? time : null }]
  } catch (error) {
    if (archive === undefined || !hasNoLinks(error)) throw error
    const why = 'its file system gives a file no second name; back it up, and compact it with --drop-history'
    throw new Failure('write-failed', `${path} cannot be kept as an archive: ${why}`, { cause: error })
  }
}

async function writeAndCompare(
  file: NewFile, options: RewriteOptions, earlier: readonly JournalRecord[]
): Promise<Recovered> {
  const { files, keys: { newest: key }, nonce, checkpoint, from, onProgress, signal } = options
  const endSlice = async (share: number): Promise<void> => {
    onProgress(share)
    await new Promise(resolve => setImmediate(resolve))
    signal.throwIfAborted()
  }
  const [written, read] = [createHash('sha256'), createHash('sha256')]
  let bytes = 0
  let slice = ''
  const flush = (): void => {
    file.write(slice)
    bytes += slice.length
    slice = ''
  }
  let reached = 0
  let [seq, head] = [0, FIRST_HASH]
  for (const { time, type, by, data } of newRecords(options, earlier, at => { reached = at })) {
    const sealed = sealBatch([{ type, by, data, json: JSON.stringify(data) }], seq++, head, { time, key, nonce })
    add(written, sealed.records[0]!)
    slice += `${sealed.lines[0]}\n`
    head = sealed.head
    if (slice.length < READ_CHUNK_BYTES) continue
    flush()
    await endSlice((checkpoint?.share() ?? reached / from.goodBytes) / 2)
  }
  flush()
  let found = NOTHING
  const onlyNewest = { find: (name: string) => name === key.name ? key : undefined }
  const take = (record: JournalRecord): void => { add(read, record); checkpoint?.apply(record) }
  for (found of readInSteps(files, file.path, onlyNewest, take)) await endSlice((1 + found.goodBytes / bytes) / 2)
  if (written.digest('hex') !== read.digest('hex')) throw new Error('what was written does not read back the same')
  for (const _ of checkpoint?.compare() ?? []) await endSlice(1)
  return found
}

/** What a record says, whichever key seals it. */
function add(hash: Hash, { seq, time, type, by, data }: JournalRecord): void {
  hash.update(JSON.stringify({ seq, time, type, by, data }))
}

/** The first one says what the journal was; then every record of it, or the checkpoint in their place. */
function * newRecords(
  options: RewriteOptions, earlier: readonly JournalRecord[], onRead: (bytes: number) => void
): Generator<Unnumbered, void, void> {
  const { checkpoint, from: { records, head, time: ended }, time } = options
  if (records === 0) return
  const why = checkpoint === undefined ? 're-encrypted' : 'compacted'
  const data: Continued = { why, head, records, time: ended }
  yield { time, type: CONTINUED, by: null, data }
  if (checkpoint === undefined) return yield * recordsOf(options, onRead)
  yield * earlier
  for (const event of checkpoint.events) yield { ...event, time }
}

/** The records of a journal, verified as they are read. */
function * recordsOf(
  { files, path, keys, from: { goodBytes } }: RewriteOptions, onRead: (bytes: number) => void = () => {}
): Generator<JournalRecord, void, void> {
  let read: JournalRecord[] = []
  let reached = 0
  for (const found of readInSteps(files, path, keys, record => { read.push(record) }, goodBytes)) {
    onRead(reached = found.goodBytes)
    yield * read
    read = []
  }
  if (reached !== goodBytes) throw new Failure('journal-damaged', `${path} ends before its last record`)
}

/** The records at a journal's beginning that name the journals before it, the newest first. */
function continuations(options: RewriteOptions): readonly JournalRecord[] {
  const found: JournalRecord[] = []
  for (const record of recordsOf(options)) {
    if (record.type !== CONTINUED) break
    found.push(record)
  }
  return found
}

/** `journal-FIRST-LAST.jsonl`: over all compactions the numbers go on, so no two archives have one name. */
function archiveOf(path: string, earlier: readonly JournalRecord[], records: number): string {
  const before = earlier.map(({ data }) => data as Continued).filter(({ why }) => why === 'compacted')
    .reduce((sum, { records }) => sum + records, 0)
  return join(dirname(path), `${stemOf(path)}-${before + 1}-${before + records}.jsonl`)
}

/**
 * The second name of a journal whose making was killed: that of the archive which it was to become, or the temporary
 * one of a restore.
 */
export function secondName(files: Files, path: string): string | undefined {
  const stat = files.stat(path)!
  const isOurs = (name: string): boolean =>
    (name.startsWith(`${stemOf(path)}-`) && /-\d+-\d+\.jsonl$/.test(name)) || isPartOf(path, name)
  return files.list(dirname(path)).filter(isOurs).map(name => join(dirname(path), name)).find(name => {
    const other = files.stat(name)
    return other !== undefined && isSameFile(other, stat)
  })
}

function stemOf(path: string): string { return basename(path).replace(/\.jsonl$/, '') }
