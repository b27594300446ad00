/** Opens the data folder: its `journal.jsonl`, which the first start makes. */
import { Buffer } from 'node:buffer'
import { basename, dirname, join, resolve } from 'node:path'
import { Failure, systemCode } from '../errors.ts'
import { cutBack, FileJournal, settle, type FolderOptions } from './file-journal.ts'
import {
  fileFault,
  isForbidden,
  isFull,
  isSameFile,
  piecesOf,
  trySync,
  withFile,
  writeWhole,
  type Descriptor,
  type Files
} from './files.ts'
import { BEGUN, type Apply, type DurableJournal } from './journal.ts'
import { KEY_BYTES, keyMissing, keyring, readKeyFile, type Keyring } from './keys.ts'
import { rescuedLeft, statesLeft } from './rescued-files.ts'
import { FIRST_HASH, isoTime, nonces, sealBatch } from './line.ts'
import { lockFolder, type Lock } from './lock.ts'
import { readJournal, type Recovered } from './recover.ts'

export const JOURNAL_FILE = 'journal.jsonl'

export function locationOf(settings: {
  readonly dataDir: string
  readonly keyFile: string | undefined
}): {
  readonly folder: string
  readonly path: string
  readonly keyFile: string
} {
  const folder = resolve(settings.dataDir)
  return {
    folder,
    path: join(folder, JOURNAL_FILE),
    keyFile: resolve(settings.keyFile ?? join(folder, 'journal.key'))
  }
}

/**
 * `open` opens a part's journal instead. Rejects with `folder-held` or as `openJournalFile`,
 * holding nothing.
 */
export async function openFolder(
  options: FolderOptions,
  apply: Apply,
  open?: () => Promise<DurableJournal>
): Promise<{ readonly journal: DurableJournal; readonly lock: Lock }> {
  const { files, folder, mustExist = false, mayCreate = false } = options
  try {
    const mustBeThere = mustExist && !mayCreate && open === undefined
    if (mustBeThere && files.stat(folder) === undefined)
      throw missing(options, join(folder, JOURNAL_FILE))
  } catch (error) {
    throw unusable(files, error, folder)
  }
  const lock = await lockFolder(files, folder)
  try {
    return { journal: (await open?.()) ?? openJournalFile({ ...options, lock }, apply), lock }
  } catch (error) {
    await lock.release().catch(() => {}) // the first error says more
    throw error
  }
}

/**
 * Throws `journal-missing`, `key-missing`, `key-invalid`, `key-unknown`, `key-unwritable`,
 * `journal-damaged`, `journal-newer` or, perhaps after changes, `folder-unusable`.
 */
export function openJournalFile(options: FolderOptions, apply: Apply): FileJournal {
  const path = join(options.folder, JOURNAL_FILE)
  try {
    return openJournal(options, path, apply)
  } catch (error) {
    throw unusable(options.files, withRescued(options, error), path)
  }
}

function unusable(files: Files, error: unknown, path: string): Failure {
  if (error instanceof Failure) return error
  const why = isFull(error)
    ? ': there is no room for what this start has to write; make some, and start again'
    : ''
  return new Failure('folder-unusable', `${fileFault(files, error, path)}${why}`, { cause: error })
}

/** A damaged journal may have been rescued before. */
function withRescued({ files, folder }: FolderOptions, error: unknown): unknown {
  if (!(error instanceof Failure) || error.code !== 'journal-damaged') return error
  const left = rescuedLeft(files, folder)
  return left === undefined
    ? error
    : new Failure(error.code, `${error.detail}; ${left}`, { cause: error })
}

function openJournal(options: FolderOptions, path: string, apply: Apply): FileJournal {
  const { files, keyFile, keys: given, mustExist = false, mayCreate = false, warn } = options
  const keyFiles = given === undefined ? [keyFile] : []
  if (keyFiles.some(file => files.real(file) === files.real(path))) {
    throw new Failure('key-invalid', `${keyFile} is the journal itself`)
  }
  const second = secondName(files, path)
  const found = given ?? readKeyFile(files, keyFile)
  const isNew = (files.stat(path)?.size ?? 0) === 0
  const keys = isNew ? beginJournal(options, path, found) : found
  if (keys === undefined) throw keyMissing(path, keyFile)
  const read = readJournal(files, path, keys, apply, options)
  if (read.records === 0 && mustExist && !mayCreate) throw missing(options, path)
  if (second !== undefined && files.stat(second) !== undefined) files.remove(second)
  removeLeftovers(files, path)
  for (const file of keyFiles) removeLeftovers(files, files.real(file))
  keepPrivate(options, options.folder, 0o700)
  for (const file of [...keyFiles, path]) keepPrivate(options, file, 0o600)
  // A copy of the file may be in the system's cache alone.
  for (const file of keyFiles) trySync(() => files.sync(file))
  for (const folder of new Set(
    [...keyFiles.map(file => files.real(file)), path].map(file => dirname(file))
  )) {
    if (trySync(() => files.sync(folder)) || !isNew) continue
    warn(
      `the new files' names in ${folder} could not be made durable; ` +
        'a crash of the machine within the next seconds could undo them'
    )
  }
  const fault = withFile(files, files.openToOverwrite(path), file =>
    settleEnd(options, path, file, read)
  )
  return new FileJournal(options, apply, {
    path,
    isNew,
    end: read,
    keys,
    usedKeys: read.keyNames,
    fault
  })
}

/** Leaves only whole lines, with the last write durable. Gives the fault that prevents writes. */
function settleEnd(
  options: FolderOptions,
  path: string,
  file: Descriptor,
  { goodBytes, tornBytes, lastWriteBytes }: Recovered
): string | undefined {
  const { files, lock, warn } = options
  const moved = tornBytes === 0 ? undefined : copyTail(options, path, file, goodBytes, tornBytes)
  // Nobody watched the lock while the journal was read: another process may have taken it, and
  // written.
  if (lock?.isHeld() === false) {
    throw new Failure('folder-held', `${lock.socket} was removed while the journal was read`)
  }
  if (moved !== undefined) {
    cutBack(files, file, goodBytes)
    warn(moved)
  }
  try {
    settle(files, file, lastWriteBytes)
    return undefined
  } catch (error) {
    // File systems that copy on write need room for it.
    if (!isFull(error)) throw error
    const fault = `its last write could not be made durable: ${systemCode(error)}`
    warn(`the journal takes no more writes until a restart: ${fault}`)
    return fault
  }
}

/** Gives what to say once the tail is cut off. */
function copyTail(
  { files, folder, wallMs }: FolderOptions,
  path: string,
  file: Descriptor,
  goodBytes: number,
  tornBytes: number
): string {
  const copy = `${path}.torn-${isoTime(wallMs())}`
  const what = `${tornBytes} bytes that are no record, as an unfinished write leaves them`
  try {
    writeWhole(files, copy, piecesOf(files, file, goodBytes))
  } catch (error) {
    const how = isFull(error) ? '; make room, and start again' : ''
    const because = `${systemCode(error)}${how}`
    const why = `${path} ends in ${what}; they could not be moved to ${copy}: ${because}`
    throw new Failure('folder-unusable', why, { cause: error })
  }
  const isNamed = trySync(() => files.sync(folder))
  const doubt = isNamed
    ? ''
    : '; a crash of the machine within the next seconds could undo the name of that file'
  return `the journal ended in ${what}; they were moved to ${copy}${doubt}`
}

/**
 * The second name that a killed compaction or restore left. Throws `folder-unusable` for links,
 * devices and other second names, which other processes may use.
 */
export function secondName(files: Files, path: string): string | undefined {
  const refused = (what: string): Failure =>
    new Failure(
      'folder-unusable',
      `${path} ${what}; put the file itself there: DATA_DIR names its folder`
    )
  if (files.isLink(path)) throw refused('is a link')
  const stat = files.stat(path)
  if (stat === undefined) return undefined
  if (!stat.isFile()) throw refused('is no regular file')
  if (stat.nlink === 1) return undefined
  const second = namesIn(files, path, name => isPartOf(path, name) || isArchive(name)).find(name =>
    isSameFile(files.stat(name), stat)
  )
  if (second === undefined || stat.nlink > 2)
    throw refused('is a hard link, and its other name may be used elsewhere')
  return second
}

/** Compactions of earlier versions named archives `journal-…`. */
export function isArchive(name: string): boolean {
  return /^(archive|journal)-\d+-\d+\.jsonl$/.test(name)
}

export function isPartOf(path: string, name: string): boolean {
  const start = `${basename(path)}.`
  return name.startsWith(start) && /^\d+\.part$/.test(name.slice(start.length))
}

function namesIn(files: Files, path: string, fits: (name: string) => boolean): readonly string[] {
  return files
    .list(dirname(path))
    .filter(fits)
    .map(name => join(dirname(path), name))
}

/** Folders of other users stay as they are. */
export function removeLeftovers(files: Files, path: string): void {
  try {
    for (const part of namesIn(files, path, name => isPartOf(path, name))) files.remove(part)
  } catch (error) {
    if (!isForbidden(error)) throw error
  }
}

function keepPrivate({ files, warn }: FolderOptions, path: string, mode: number): void {
  const stat = files.stat(path)
  if (stat === undefined || (stat.mode & 0o077) === 0) return
  const open = `${path} is open to others (mode ${(stat.mode & 0o7777).toString(8)})`
  try {
    files.setMode(path, mode)
  } catch (error) {
    warn(`${open} and could not be closed: ${systemCode(error)}`)
  }
}

/**
 * Throws `journal-missing` or `key-missing` if a journal that was here may be lost: a start must
 * not begin another. `found`: the keys.
 */
function assertMayBegin(options: FolderOptions, path: string, found: Keyring | undefined): void {
  const { files, folder, keyFile, keys: given, mustExist, mayCreate, warn } = options
  const isEmptyFile = files.stat(path) !== undefined
  if (isEmptyFile && found === undefined) throw keyMissing(path, keyFile)
  if (statesLeft(files, folder) !== undefined) throw missing(options, path)
  if (mayCreate === true) return
  if (mustExist === true) throw missing(options, path)
  if (found === undefined || given !== undefined) return
  // The key file is of a journal, unless the first start was killed or the file was made
  // beforehand.
  if (dirname(keyFile) !== folder) {
    const what = isEmptyFile ? 'is empty' : 'does not exist'
    warn(`${path} ${what}, though its key does; starting a new journal`)
  } else if (files.stat(firstPart(path)) === undefined) throw missing(options, path, keyFile)
}

/** Has the first record before the key gets its name. */
function firstPart(path: string): string {
  return `${path}.0.part`
}

/** Each step is durable before the next one. Throws as `assertMayBegin`, and `key-unwritable`. */
function beginJournal(options: FolderOptions, path: string, found: Keyring | undefined): Keyring {
  const { files, folder, keyFile, random, wallMs } = options
  assertMayBegin(options, path, found)
  for (let at = folder; at !== dirname(at); at = dirname(at)) trySync(() => files.sync(dirname(at)))
  removeLeftovers(files, path)
  const secret = random(KEY_BYTES)
  const keys = found ?? keyring([secret])
  const part = firstPart(path)
  const event = { type: BEGUN, by: null, data: {}, json: '{}' }
  const seal = { time: isoTime(wallMs()), key: keys.newest, nonce: nonces(random) }
  writeWhole(files, part, [Buffer.from(`${sealBatch([event], 0, FIRST_HASH, seal).lines[0]}\n`)])
  trySync(() => files.sync(folder))
  try {
    if (found === undefined) makeKeyFile(options, secret)
  } catch (error) {
    if (files.stat(keyFile) === undefined) files.remove(part) // else the next start uses it
    if (isFull(error)) throw error
    throw new Failure('key-unwritable', `${keyFile} could not be made: ${systemCode(error)}`, {
      cause: error
    })
  }
  files.rename(part, path)
  return keys
}

/** Whole or not at all; a link replaces no file. */
function makeKeyFile({ files, keyFile, random }: FolderOptions, secret: Buffer): void {
  const part = `${keyFile}.${random(4).readUInt32LE()}.part`
  writeWhole(files, part, [Buffer.from(`${secret.toString('hex')}\n`)])
  try {
    files.link(part, keyFile)
  } finally {
    files.remove(part)
  }
  trySync(() => files.sync(dirname(keyFile)))
}

function missing(options: FolderOptions, path: string, besideKey?: string): Failure {
  const { files } = options
  const key = besideKey === undefined ? '' : `, though its key ${besideKey} is there`
  const what = path + (files.stat(path) === undefined ? ' does not exist' : ' is empty') + key
  return new Failure('journal-missing', `${what}; ${wayToJournal(options)}`)
}

function wayToJournal({ files, folder, keys }: FolderOptions): string {
  const left = statesLeft(files, folder)
  if (left !== undefined)
    return `${left}; if you want a new, empty store, move all such files away first`
  // The command would make a journal with another key than the host's.
  const begin =
    keys === undefined ? "run the operator's command init" : 'open it with the option init: true'
  return (
    "if entries were stored there, restore a backup (the operator's command journal restore); " +
    `if nothing was, or you want a new, empty store, ${begin}`
  )
}
