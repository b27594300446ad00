/**
 * Writing the whole journal again: into a new file, which is read back and compared, and then takes the name. It begins
 * with a record that says what it was written from, and ends with one that says that it is whole.
 */
import type { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import { Failure, systemCode } from '../../errors.ts'
import type { FileJournal } from '../../journal/file-journal.ts'
import { REWRITTEN, WHOLE, type DurableJournal, type JournalRecord } from '../../journal/journal.ts'
import { readInSteps, type Recovered } from '../../journal/recover.ts'
import type { State } from '../../store/state.ts'
import { OperatorError } from '../command.ts'
import { addKey } from '../new-keys.ts'
import type { Rewritten, Rotated } from '../operation.ts'
import { ofFile } from '../system-error.ts'
import { makeWhole, type NewFile } from '../whole-file.ts'
import { verifyFile } from './check.ts'
import { checkpointOf, type Checkpoint } from './checkpoint.ts'
import { CONTINUATIONS, CONTINUED, type Continued } from './journal-files.ts'
import type { Call, Operated } from './operation-table.ts'
import { tokensToKeep } from './tokens-to-keep.ts'
import { writeJournal, type Unnumbered } from './write-journal.ts'

/** What a new journal holds behind its first record: records, or what makes the state. */
interface Content {
  readonly records: Iterable<Unnumbered>
  readonly checkpoint?: Checkpoint
  /** The share of the records that was given. */
  readonly share: () => number
}

/** What has to go on while a journal is written; it throws if nobody wants the journal any more. */
type Slice = (share: number) => Promise<void>

/** Seals every record again with the newest key. */
export function reencrypt(call: Call): Promise<Rewritten> {
  return inTurn(call, async file => {
    let reached = 0
    const records = function * (): Generator<Unnumbered, void, void> {
      for (const record of recordsOf(file, bytes => { reached = bytes })) {
        if (record.type !== WHOLE) yield asEarlier(record)
      }
    }
    return replaced(call, file, 're-encrypted', { records: records(), share: () => reached / file.end.goodBytes })
  })
}

/** Leaves the history out, which stays beside the journal as an archive if `keepsHistory`. */
export async function compact(
  call: Call, keepsHistory: boolean, change: (made: Checkpoint) => Checkpoint = made => made
): Promise<Rewritten> {
  const checked = fileOf(call.journal)
  checked.assertWritable()
  await verifyFile(checked) // an archive that is damaged would be taken for a good one
  return inTurn(call, async file => {
    const { path, files, end } = file
    if (end.records === 0) throw new Failure('input-invalid', `${path} has no records that could be compacted`)
    const earlier = continuations(file)
    const archive = keepsHistory ? archiveOf(path, earlier, end.records) : undefined
    if (archive !== undefined && files.stat(archive) !== undefined) {
      throw new Failure('input-invalid', `${archive} exists already; move it away`)
    }
    const content = contentOf(call.store.state, file, change)
    const records = function * (): Generator<Unnumbered, void, void> {
      for (const record of earlier) yield asEarlier(record)
      yield * content.records
    }
    return replaced(call, file, 'compacted', { ...content, records: records() }, archive)
  })
}

/**
 * Writes a journal of what is in memory, whatever has its name by now, which is kept as `.replaced-TIME`. Then changes
 * go on, also after an error of the device. Only while the lock is this process's.
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
    const first = firstOf(file, 'repaired')
    const made = await makeWhole(files, repaired, part =>
      written(part, file, first, contentOf(store.state, file), sliceOf(call)))
    assertOwn()
    file.assertKeys()
    const aside = files.stat(path) === undefined ? null : `${path}.replaced-${time}`
    if (aside !== null) files.rename(path, aside)
    files.rename(repaired, path)
    files.sync(dirname(path))
    return adopted(file, made, first, aside)
  }, true)
}

/** Writes what a service holds whose journal has failed, as it stops; gives the new file, undefined if all is well. */
export async function rescue(
  { journal: { file }, store }: Pick<Operated, 'journal' | 'store'>
): Promise<string | undefined> {
  if (file === undefined || file.status().fault === undefined) return undefined
  const { files, path } = file
  const target = join(dirname(path), `journal.rescued-${file.time().replaceAll(':', '')}.jsonl`)
  files.makeFolder(dirname(path))
  await keepKeys(file)
  await makeWhole(files, target, part =>
    written(part, file, firstOf(file, 'repaired'), contentOf(store.state, file), async () => {}))
  return target
}

/** Puts the key file back if it is gone: what is sealed now could not be read without it. */
async function keepKeys({ files, keyFile, keys }: FileJournal): Promise<void> {
  if (files.stat(keyFile) !== undefined) return
  const text = keys.names.map(name => `${keys.find(name)!.secret.export().toString('hex')}\n`).join('')
  files.makeFolder(dirname(keyFile))
  await makeWhole(files, keyFile, part => part.write(text))
}

/** Makes a new key, with which everything is sealed from now on, or from when all who share the journal have it. */
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

/** Does work on the journal's file while nothing is appended to it. */
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

/** Lets others be served after each slice. */
function sliceOf({ progress, stopping, isGone }: Call): Slice {
  return async share => {
    progress.share = share
    await new Promise(resolve => setImmediate(resolve))
    if (stopping.aborted) throw new OperatorError('the service stops, and the journal stays as it was')
    if (isGone()) throw new Failure('journal-busy', 'who asked for it has gone')
  }
}

async function replaced(
  call: Call, file: FileJournal, why: Continued['why'], content: Content, archive?: string
): Promise<Rewritten> {
  const { files, path } = file
  const first = firstOf(file, why)
  const made = await makeWhole(files, path, part => written(part, file, first, content, sliceOf(call)), {
    replaces: files.stat(path), keepsAs: archive, confirm: () => file.assertWritable()
  })
  return adopted(file, made, first, archive ?? null)
}

/** Goes on with the new file. */
function adopted(file: FileJournal, made: Recovered, first: Unnumbered, archive: string | null): Rewritten {
  const { path, keys, end: before } = file
  file.adopt(made, keys, made.keyNames, { seq: 1, ...first })
  return {
    path, records: made.records, head: made.head, bytes: made.goodBytes, archive,
    unneeded: keys.names.filter(name => name !== keys.newest.name),
    before: { records: before.records, head: before.head, bytes: before.goodBytes }
  }
}

async function written(
  part: NewFile, file: FileJournal, first: Unnumbered, { records, checkpoint, share }: Content, slice: Slice
): Promise<Recovered> {
  const all = function * (): Generator<Unnumbered, void, void> {
    yield first
    yield * records
  }
  const { files, keys: { newest: key }, nonce } = file
  const onRecord = (record: JournalRecord): void => checkpoint?.apply(record)
  const steps = writeJournal(part, all(), { files, key, nonce, time: first.time, onRecord })
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) {
      for (const _ of checkpoint?.compare() ?? []) await slice(1)
      return step.value
    }
    await slice((share() + step.value) / 2)
  }
}

/** The record that says what the journal was. */
function firstOf(file: FileJournal, why: Continued['why']): Unnumbered {
  const { head, records, time } = file.end
  const data: Continued = { why, head, records, time }
  return { time: file.time(), type: REWRITTEN, by: null, data }
}

/** What makes the state, without its history. */
function contentOf(
  state: State, file: FileJournal, change: (made: Checkpoint) => Checkpoint = made => made
): Content {
  const time = file.time()
  const checkpoint = change(checkpointOf(state, tokensToKeep(state, { end: file.end, time })))
  const records = function * (): Generator<Unnumbered, void, void> {
    for (const event of checkpoint.events) yield { time, ...event }
  }
  return { records: records(), checkpoint, share: checkpoint.share }
}

/** A record of a journal before as it is in this one, which has one beginning of its own. */
function asEarlier(record: JournalRecord): Unnumbered {
  return record.type === REWRITTEN ? { ...record, type: CONTINUED } : record
}

/** The records of a journal, verified as they are read. */
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

/** The records at a journal's beginning that name the journals before it, the newest first. */
function continuations(file: FileJournal): readonly JournalRecord[] {
  const found: JournalRecord[] = []
  for (const record of recordsOf(file)) {
    if (!CONTINUATIONS.has(record.type)) break
    found.push(record)
  }
  return found
}

/** `journal-FIRST-LAST.jsonl`: over all compactions the numbers go on, so no two archives have one name. */
function archiveOf(path: string, earlier: readonly JournalRecord[], records: number): string {
  const before = earlier.map(({ data }) => data as Continued).filter(({ why }) => why === 'compacted')
    .reduce((sum, { records }) => sum + records, 0)
  const stem = basename(path).replace(/\.jsonl$/, '')
  return join(dirname(path), `${stem}-${before + 1}-${before + records}.jsonl`)
}
