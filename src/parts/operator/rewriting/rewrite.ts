/**
 * Rewrites the whole journal into a new file, reads that back, and gives it the name. Its first record names the old
 * journal; its last says that it is whole.
 */
import type { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { dirname, join } from 'node:path'
import { Failure, systemCode } from '../../../errors.ts'
import type { FileJournal } from '../../../journal/file-journal.ts'
import { REWRITTEN, WHOLE, type DurableJournal, type JournalRecord } from '../../../journal/journal.ts'
import { readInSteps, type Recovered } from '../../../journal/recover.ts'
import type { State } from '../../../store/state.ts'
import { isExpired } from '../../../store/users.ts'
import { OperatorError } from '../../../command.ts'
import { addKey } from '../../new-keys.ts'
import type { Rewritten, Rotated } from '../../operation.ts'
import { ofFile } from '../system-error.ts'
import { makeWhole, type NewFile } from '../../whole-file.ts'
import { verifyFile } from '../commands/check.ts'
import { checkpointOf, type Checkpoint } from './checkpoint.ts'
import { CONTINUATIONS, CONTINUED, type Continued } from '../commands/journal-files.ts'
import type { Call, Operated } from '../socket/operation-table.ts'
import { contentOf, writeJournal, type Content, type Unnumbered } from './write-journal.ts'

/** Throws if the journal is not wanted any more. */
type Slice = (share: number) => Promise<void>

export function reencrypt(call: Call): Promise<Rewritten> {
  return inTurn(call, async file => {
    let reached = 0
    const records = function * (): Generator<Unnumbered, void, void> {
      for (const record of recordsOf(file, bytes => { reached = bytes })) {
        if (record.type !== WHOLE) yield asEarlier(record)
      }
    }
    const first = firstOf(file, 're-encrypted')
    return replaced(call, file, { first, records: records(), share: () => reached / file.end.goodBytes })
  })
}

/** `keepsHistory` keeps the old journal as an archive. */
export async function compact(
  call: Call, keepsHistory: boolean, change: (made: Checkpoint) => Checkpoint = made => made
): Promise<Rewritten> {
  const checked = fileOf(call.journal)
  checked.assertWritable()
  await verifyFile(checked) // else a damaged archive would pass for a good one
  return inTurn(call, async file => {
    const { path, files, end } = file
    if (end.records === 0) throw new Failure('input-invalid', `${path} has no records that could be compacted`)
    const earlier = continuations(file)
    const archive = keepsHistory ? archiveOf(path, earlier, end.records) : undefined
    if (archive !== undefined && files.stat(archive) !== undefined) {
      throw new Failure('input-invalid', `${archive} exists already; move it away`)
    }
    const checkpoint = change(checkpointAt(call.store.state, file))
    const content = contentOf(firstOf(file, 'compacted'), checkpoint, earlier.map(asEarlier))
    return replaced(call, file, content, archive)
  })
}

/**
 * Rewrites the journal from memory, also after a device error; the old file stays as `.replaced-TIME`. Throws an
 * `OperatorError` if the lock was lost, since another process may have the folder.
 */
export function repair(call: Call): Promise<Rewritten> {
  const { store, lock } = call
  return inTurn(call, async file => {
    const { files, path } = file
    const assertOwn = (): void => {
      if (!lock.isHeld()) {
        throw new OperatorError('the lock of the data folder was removed, and another process may have the folder: ' +
          'stop the service by SIGTERM, which writes what it holds to journal.rescued-TIME.jsonl')
      }
    }
    assertOwn()
    await keepKeys(file)
    const time = file.time().replaceAll(':', '')
    const repaired = `${path}.repaired-${time}`
    const content = contentOf(firstOf(file, 'repaired'), checkpointAt(store.state, file))
    const made = await makeWhole(files, repaired, part => written(part, file, content, sliceOf(call)))
    assertOwn()
    file.assertKeys()
    const aside = files.stat(path) === undefined ? null : `${path}.replaced-${time}`
    if (aside !== null) files.rename(path, aside)
    files.rename(repaired, path)
    files.sync(dirname(path))
    return adopted(file, made, content, aside)
  }, true)
}

/** If the journal has failed, writes the state to a new file as the service stops; else gives undefined. */
export async function rescue(
  { journal: { file }, store }: Pick<Operated, 'journal' | 'store'>
): Promise<string | undefined> {
  if (file === undefined || file.status().fault === undefined) return undefined
  const { files, path } = file
  const target = join(dirname(path), `journal.rescued-${file.time().replaceAll(':', '')}.jsonl`)
  files.makeFolder(dirname(path))
  await keepKeys(file)
  const content = contentOf(firstOf(file, 'repaired'), checkpointAt(store.state, file))
  await makeWhole(files, target, part => written(part, file, content, async () => {}))
  return target
}

/** New records could not be read without the lost key file. */
async function keepKeys({ files, keyFile, keys }: FileJournal): Promise<void> {
  if (files.stat(keyFile) !== undefined) return
  const text = keys.names.map(name => `${keys.find(name)!.secret.export().toString('hex')}\n`).join('')
  files.makeFolder(dirname(keyFile))
  await makeWhole(files, keyFile, part => part.write(text))
}

/** A shared journal uses the key once all instances have it. */
export function rotateKey(
  { store, journal, isGone }: Call, random: (bytes: number) => Buffer = randomBytes
): Promise<Rotated> {
  return store.exclusive(async () => {
    const { file } = journal
    if (file === undefined) return journal.rotateKey!()
    file.assertWritable()
    try {
      const keys = await addKey(file.files, file.keyFile, random)
      file.adopt(file.end, keys, file.usedKeys)
      return { key: keys.newest.name, seals: true }
    } catch (error) {
      throw ofFile(error, file.keyFile)
    }
  }, isGone)
}

/** Nothing is appended meanwhile. */
function inTurn<T>(
  { store, journal, isGone }: Call, work: (file: FileJournal) => Promise<T>, isRepair: boolean = false
): Promise<T> {
  const file = fileOf(journal)
  return store.exclusive(async () => {
    if (!isRepair) file.assertWritable()
    try {
      return await work(file)
    } catch (error) {
      const fault = isRepair ? undefined : file.fault()
      if (fault === undefined) throw ofFile(error, file.path)
      throw new Failure('journal-failed', `${fault}, and then: ${systemCode(error)}`, { cause: error })
    }
  }, isGone)
}

function fileOf({ file }: DurableJournal): FileJournal {
  if (file !== undefined) return file
  const how = 'stop all instances, copy it to a file, do it there, and copy that to another ETCD_PREFIX'
  throw new Failure('input-invalid', `a journal in etcd is not written again where it is; ${how}`)
}

function sliceOf({ progress, stopping, isGone }: Call): Slice {
  return async share => {
    progress.share = share
    await new Promise(resolve => setImmediate(resolve))
    if (stopping.aborted) throw new OperatorError('the service stops, and the journal stays as it was')
    if (isGone()) throw new Failure('journal-busy', 'who asked for it has gone')
  }
}

async function replaced(call: Call, file: FileJournal, content: Content, archive?: string): Promise<Rewritten> {
  const { files, path } = file
  const made = await makeWhole(files, path, part => written(part, file, content, sliceOf(call)), {
    replaces: files.stat(path), keepsAs: archive, confirm: () => file.assertWritable()
  })
  return adopted(file, made, content, archive ?? null)
}

function adopted(file: FileJournal, made: Recovered, { first }: Content, archive: string | null): Rewritten {
  const { path, keys, end: before } = file
  file.adopt(made, keys, made.keyNames, { seq: 1, ...first })
  return {
    path, records: made.records, head: made.head, bytes: made.goodBytes, archive,
    unneeded: keys.names.filter(name => name !== keys.newest.name),
    before: { records: before.records, head: before.head, bytes: before.goodBytes }
  }
}

async function written(part: NewFile, file: FileJournal, content: Content, slice: Slice): Promise<Recovered> {
  const { files, keys: { newest: key }, nonce } = file
  const steps = writeJournal(part, content, { files, key, nonce })
  let step = steps.next()
  for (; step.done !== true; step = steps.next()) await slice(step.value)
  return step.value
}

function firstOf(file: FileJournal, why: Continued['why']): Unnumbered {
  const { head, records, time } = file.end
  const data: Continued = { why, head, records, time }
  return { time: file.time(), type: REWRITTEN, by: null, data }
}

/** Without expired tokens. The earlier of now and the newest record's time counts: a clock ahead ends no token. */
function checkpointAt(state: State, file: FileJournal): Checkpoint {
  const now = file.time()
  const atMs = Math.min(Date.parse(now), Date.parse(file.end.time ?? now))
  return checkpointOf(state, token => !isExpired(token, atMs))
}

/** A journal has only one beginning of its own. */
function asEarlier(record: JournalRecord): Unnumbered {
  return record.type === REWRITTEN ? { ...record, type: CONTINUED } : record
}

function * recordsOf(
  { files, path, keys, end: { goodBytes } }: FileJournal, onRead: (bytes: number) => void = () => {}
): Generator<JournalRecord, void, void> {
  let read: JournalRecord[] = []
  let reached = 0
  for (const found of readInSteps(files, path, keys, record => { read.push(record) }, goodBytes)) {
    reached = found.goodBytes
    onRead(reached)
    yield * read
    read = []
  }
  if (reached !== goodBytes) throw new Failure('journal-damaged', `${path} ends before its last record`)
}

/** The records that name earlier journals, newest first. */
function continuations(file: FileJournal): readonly JournalRecord[] {
  const found: JournalRecord[] = []
  for (const record of recordsOf(file)) {
    if (!CONTINUATIONS.has(record.type)) break
    found.push(record)
  }
  return found
}

/** Numbers go on over all compactions, so archive names never collide. */
function archiveOf(path: string, earlier: readonly JournalRecord[], records: number): string {
  const before = earlier.map(({ data }) => data as Continued).filter(({ why }) => why === 'compacted')
    .reduce((sum, { records }) => sum + records, 0)
  return join(dirname(path), `archive-${before + 1}-${before + records}.jsonl`)
}
