/** The data folder: the journal's file in it, `journal.jsonl`, how it is opened, and made on the first start. */
import type { Buffer } from 'node:buffer'
import { basename, dirname, join, resolve } from 'node:path'
import { Failure, systemCode } from '../errors.ts'
import {
  begin, isPartOf, missing, noKey, removeLeftovers, writeWhole, type FolderOptions
} from './begin.ts'
import { cutBack, settle } from './cut.ts'
import { closeOwn, FileJournal, openOwn, type OwnFile } from './file-journal.ts'
import { fileFault, ifAllowed, isForbidden, isFull, isSameFile, isSynced, piecesOf, type Files } from './files.ts'
import type { Apply } from './journal.ts'
import { readKeyFile, type KeyFinder } from './keys.ts'
import { isoTime } from './line.ts'
import { lockFolder, type Lock } from './lock.ts'
import { readJournal, type Recovered } from './recover.ts'

export const JOURNAL_FILE = 'journal.jsonl'

/** Where settings put the journal and its keys. */
export function locationOf(settings: { readonly dataDir: string, readonly keyFile: string | undefined }): {
  readonly folder: string, readonly path: string, readonly keyFile: string
} {
  const folder = resolve(settings.dataDir)
  return { folder, path: join(folder, JOURNAL_FILE), keyFile: resolve(settings.keyFile ?? join(folder, 'journal.key')) }
}

/**
 * Locks a data folder, opens its journal, makes it (and its key file) on the first start, and applies every record.
 * Rejects with `folder-held`, or as `openJournalFile` does, holding nothing.
 */
export async function openFolder(
  options: FolderOptions, apply: Apply
): Promise<{ readonly journal: FileJournal, readonly lock: Lock }> {
  const { files, folder, mustExist = false, mayCreate = false } = options
  try {
    if (mustExist && !mayCreate && files.stat(folder) === undefined) throw missing(join(folder, JOURNAL_FILE), false)
  } catch (error) {
    throw unusable(files, error, folder)
  }
  const lock = await lockFolder(files, folder)
  try {
    return { journal: openJournalFile({ ...options, lock }, apply), lock }
  } catch (error) {
    await lock.release().catch(() => {}) // why it does not open says more
    throw error
  }
}

/**
 * Opens the journal of a folder that is locked. Throws `journal-missing`, `key-missing`, `key-invalid`, `key-unknown`,
 * `key-unwritable`, `journal-damaged`, `journal-newer` or `folder-unusable`; but for the last one, nothing was changed.
 */
export function openJournalFile(options: FolderOptions, apply: Apply): FileJournal {
  const path = join(options.folder, JOURNAL_FILE)
  try {
    return open(options, path, apply)
  } catch (error) {
    throw unusable(options.files, error, path)
  }
}

function unusable(files: Files, error: unknown, path: string): Failure {
  if (error instanceof Failure) return error
  const why = isFull(error) ? ': there is no room for what this start has to write; make some, and start again' : ''
  return new Failure('folder-unusable', `${fileFault(files, error, path)}${why}`, { cause: error })
}

function open(options: FolderOptions, path: string, apply: Apply): FileJournal {
  const { files, keyFile, mustExist = false, mayCreate = false } = options
  if (files.real(keyFile) === files.real(path)) throw new Failure('key-invalid', `${keyFile} is the journal itself`)
  const second = secondName(files, path)
  const found = readKeyFile(files, keyFile)
  const isNew = (files.stat(path)?.bytes ?? 0) === 0
  const keys = isNew ? begin(options, path, found) : found
  if (keys === undefined) throw noKey(path, keyFile)
  let time: string | null = null
  const usedKeys = new Set<string>()
  const finder: KeyFinder = { names: keys.names, find: name => { usedKeys.add(name); return keys.find(name) } }
  const read = readJournal(files, path, finder, record => { time = record.time; apply(record) }, options)
  if (read.records === 0 && mustExist && !mayCreate) throw missing(path, true)
  // What a killed compaction or restore has left, and a killed re-encryption of the first version.
  for (const left of [second, `${path}.rewrite`]) if (left !== undefined && files.stat(left)) files.remove(left)
  removeLeftovers(files, path)
  ifAllowed(() => removeLeftovers(files, files.real(keyFile)))
  keepPrivate(options, options.folder, 0o700)
  keepPrivate(options, keyFile, 0o600)
  keepPrivate(options, path, 0o600)
  syncBeside(options, path, isNew)
  const own = openOwn(files, path)
  try {
    const fault = prepare(options, path, own, read)
    return new FileJournal(options, apply, { path, isNew, own, keys, usedKeys, end: { ...read, time }, fault })
  } catch (error) {
    closeOwn(files, own)
    throw error
  }
}

/**
 * The second name of a journal whose making was killed: that of the archive which it was to become, or the temporary
 * one of a restore. Throws if the file is a link or a device, or has another second name: another process may use that.
 */
export function secondName(files: Files, path: string): string | undefined {
  const refused = (what: string): Failure =>
    new Failure('folder-unusable', `${path} ${what}; put the file itself there: DATA_DIR names its folder`)
  if (files.isLink(path)) throw refused('is a link')
  const stat = files.stat(path)
  if (stat === undefined) return undefined
  if (!stat.isFile) throw refused('is no regular file')
  if (stat.links === 1) return undefined
  const archive = `${basename(path).replace(/\.jsonl$/, '')}-`
  const isOurs = (name: string): boolean =>
    isPartOf(path, name) || (name.startsWith(archive) && /-\d+-\d+\.jsonl$/.test(name))
  const second = files.list(dirname(path)).filter(isOurs).map(name => join(dirname(path), name)).find(name => {
    const other = files.stat(name)
    return other !== undefined && isSameFile(other, stat)
  })
  if (second === undefined || stat.links > 2) throw refused('is a hard link, and its other name may be used elsewhere')
  return second
}

/** Makes the key file and all names durable: what was read may be in the system's cache alone, as of a fresh copy. */
function syncBeside({ files, keyFile, warn }: FolderOptions, path: string, isNew: boolean): void {
  try {
    isSynced(() => files.sync(keyFile))
  } catch (error) {
    if (!isForbidden(error)) throw error
    warn(`${keyFile} could not be made durable (${systemCode(error)}); if it was just put there, run sync`)
  }
  for (const folder of new Set([files.real(keyFile), path].map(file => dirname(file)))) {
    if (ifAllowed(() => isSynced(() => files.sync(folder))) === true || !isNew) continue
    warn(`the new files' names in ${folder} could not be made durable; ` +
      'a crash of the machine within the next seconds could undo them')
  }
}

/** Cuts a torn tail off, and writes the last write again; gives why the journal cannot be written, if it cannot. */
function prepare(options: FolderOptions, path: string, own: OwnFile, read: Recovered): string | undefined {
  const { files, lock } = options
  if (read.tornBytes > 0) moveTail(options, path, own, read)
  assertHeld(lock)
  try {
    settle(files, own.overwritten, read.lastWriteBytes)
    return undefined
  } catch (error) {
    // As where what is overwritten is copied, which needs room.
    if (!isFull(error)) throw error
    const fault = `its last write could not be made durable: ${systemCode(error)}`
    options.warn(`the journal takes no more writes until a restart: ${fault}`)
    return fault
  }
}

/** Nothing looked at the lock while the journal was read: another process may have taken it, and written. */
function assertHeld(lock: FolderOptions['lock']): void {
  if (lock?.isHeld() !== false) return
  throw new Failure('folder-held', `${lock.socket} was removed while the journal was read`)
}

/** Moves a torn tail into a file of its own, and cuts it off. */
function moveTail(
  options: FolderOptions, path: string, { overwritten }: OwnFile, { goodBytes, tornBytes }: Recovered
): void {
  const { files, folder, lock, wallMs, warn } = options
  const stem = `${path}.torn-${isoTime(wallMs())}`
  let tail = stem
  for (let n = 2; files.stat(tail) !== undefined; n++) tail = `${stem}-${n}`
  const what = `${tornBytes} bytes that are no record, as an unfinished write leaves them`
  let hasName = false
  try {
    writeWhole(files, tail, pieces(files, overwritten, goodBytes))
    hasName = ifAllowed(() => isSynced(() => files.sync(folder))) === true
  } catch (error) {
    const how = isFull(error) ? '; make room, and start again' : ''
    const why = `the journal ends in ${what}; they could not be moved to ${tail}: ${systemCode(error)}${how}`
    throw new Failure('folder-unusable', why, { cause: error })
  }
  assertHeld(lock)
  if (files.openStat(overwritten).bytes !== goodBytes + tornBytes) {
    throw new Failure('folder-unusable', `${path} was changed by another program while it was read`)
  }
  cutBack(files, overwritten, goodBytes)
  const doubt = hasName ? '' : '; a crash of the machine within the next seconds could undo the name of that file'
  warn(`the journal ended in ${what}; they were moved to ${tail}${doubt}`)
}

function * pieces(files: Files, file: number, from: number): Generator<Buffer, void, void> {
  for (const [piece] of piecesOf(files, file, from)) yield piece
}

const SET_GROUP = 0o2000

/** Removes other users' permissions, but those of a folder that is shared on purpose. */
function keepPrivate({ files, warn }: FolderOptions, path: string, mode: number): void {
  const stat = files.stat(path)
  if (stat === undefined || (stat.mode & ~mode & 0o077) === 0) return
  const open = `${path} is open to others (mode ${stat.mode.toString(8)})`
  if (!stat.isFile && (stat.mode & SET_GROUP) !== 0) {
    warn(`${open}, and stays so, since its group is passed on to what is made in it`)
    return
  }
  try {
    files.setMode(path, mode)
  } catch (error) {
    warn(`${open} and could not be closed: ${systemCode(error)}`)
  }
}
