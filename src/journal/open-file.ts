/** The journal in a file, `journal.jsonl`: how it is opened, and made on the first start. */
import { basename, dirname, join, resolve } from 'node:path'
import { Failure, systemCode } from '../errors.ts'
import { nonces, sealBatch } from './batch.ts'
import { BEGUN, type Apply } from './journal.ts'
import { cutBack, ifAllowed, isForbidden, isFull, makeDurable, sync } from './durable.ts'
import { fileFault, isSameFile, readPieces, type Files } from './files.ts'
import { isPartOf, makeWhole, removeLeftovers } from './whole-file.ts'
import { FileJournal, type FileJournalOptions } from './file-journal.ts'
import { readKeyFile, type KeyFinder, type Keyring } from './keys.ts'
import { FIRST_HASH, isoTime } from './line.ts'
import { createKeyFile } from './new-keys.ts'
import { readJournal, type Recovered } from './recover.ts'

export type { FileJournal } from './file-journal.ts'

export const JOURNAL_FILE = 'journal.jsonl'

/** Where settings put the journal, whatever links lead to. */
export function locationOf(settings: { readonly dataDir: string, readonly keyFile: string | undefined }): {
  readonly folder: string, readonly path: string, readonly keyFile: string
} {
  const folder = resolve(settings.dataDir)
  return { folder, path: join(folder, JOURNAL_FILE), keyFile: resolve(settings.keyFile ?? join(folder, 'journal.key')) }
}

/**
 * Opens the journal of a folder, makes it (and its key file) on the first start, and applies every record. Rejects with
 * `key-missing`, `key-invalid`, `key-unknown`, `key-unwritable`, `journal-damaged` or `folder-unusable`; but for the
 * last one, nothing was changed.
 */
export async function openFileJournal(options: FileJournalOptions, apply: Apply): Promise<FileJournal> {
  const { files } = options
  const path = join(options.folder, JOURNAL_FILE)
  try {
    // Links are resolved once: replacing the file must not replace the link to it.
    return await open(options, files.real(path), apply)
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('folder-unusable', fileFault(files, error, path), { cause: error })
  }
}

async function open(options: FileJournalOptions, path: string, apply: Apply): Promise<FileJournal> {
  const { files, keyFile, unlocked, mustExist = false } = options
  if (files.real(keyFile) === path) throw new Failure('key-invalid', `${keyFile} is the journal itself`)
  const isNew = files.stat(path) === undefined
  if (isNew && unlocked !== undefined) throw new Failure('folder-unusable', unlocked)
  if (mustExist && isNew) throw missing(path, true)
  if (isNew) syncAbove(files, path)
  const keys = await openKeys(options, isNew, path)
  if (isNew) files.close(files.createToAppend(path))
  const begins = options.mayCreate === true && unlocked === undefined
  if (begins && files.stat(path)!.bytes === 0) await begin(options, path, keys)
  const { links } = files.stat(path)!
  const second = links === 2 ? secondName(files, path) : undefined
  if (second === undefined && links > 1) {
    const why = `${path} is a hard link, and another service could use its other name; put a copy in its place`
    throw new Failure('folder-unusable', why)
  }
  let time: string | null = null
  const usedKeys = new Set<string>()
  const finder: KeyFinder = { names: keys.names, find: name => { usedKeys.add(name); return keys.find(name) } }
  const found = readJournal(files, path, finder, record => { time = record.time; apply(record) }, options)
  if (mustExist && found.records === 0) throw missing(path, false)
  const fault = unlocked ?? await prepare(options, path, found, isNew, second)
  if (fault !== undefined) options.warn(`the journal takes no writes until a restart: ${fault}`)
  const { tornBytes } = found
  return new FileJournal(options, apply, { path, isNew, keys, usedKeys, end: { ...found, time }, tornBytes, fault })
}

/** Makes the names of the folders above a new journal durable, as far as this process may ask for that. */
function syncAbove(files: Files, path: string): void {
  for (let at = dirname(path); at !== dirname(at); at = dirname(at)) ifAllowed(() => sync(files, dirname(at)))
}

/** What refuses a journal that does not exist, or is empty. */
export function missing(path: string, isNew: boolean): Failure {
  const what = `${path} ${isNew ? 'does not exist' : 'is empty'}`
  const how = 'if nothing was ever stored there, run the operator\'s command init; if something was, restore it'
  return new Failure('journal-missing', `${what}; ${how}`)
}

/** Puts the first record into an empty journal, which shows from then on that it was meant to be there. */
async function begin({ files, wallMs, random }: FileJournalOptions, path: string, key: Keyring): Promise<void> {
  const seal = { time: isoTime(wallMs()), key: key.newest, nonce: nonces(random) }
  const { lines } = sealBatch([{ type: BEGUN, by: null, data: {}, json: '{}' }], 0, FIRST_HASH, seal)
  const replaces = files.stat(path)
  await makeWhole(files, path, file => file.write(`${lines[0]!}\n`), { replaces, leavesNames: true })
}

/**
 * The second name of a journal whose making was killed: that of the archive which it was to become, or the temporary
 * one of a restore.
 */
function secondName(files: Files, path: string): string | undefined {
  const stat = files.stat(path)!
  const isOurs = (name: string): boolean => isArchiveOf(path, name) || isPartOf(path, name)
  return files.list(dirname(path)).filter(isOurs).map(name => join(dirname(path), name)).find(name => {
    const other = files.stat(name)
    return other !== undefined && isSameFile(other, stat)
  })
}

function isArchiveOf(path: string, name: string): boolean {
  return name.startsWith(`${basename(path).replace(/\.jsonl$/, '')}-`) && /-\d+-\d+\.jsonl$/.test(name)
}

/** Makes a journal that was read ready to be written; gives the reason if a full disk prevents that. */
async function prepare(
  options: FileJournalOptions, path: string, found: Recovered, isNew: boolean, second: string | undefined
): Promise<string | undefined> {
  const { files, folder, keyFile } = options
  const older = `${path}.rewrite` // what a killed re-encryption of the first version leaves
  for (const left of [second, older]) if (left !== undefined && files.stat(left) !== undefined) files.remove(left)
  removeLeftovers(files, path)
  ifAllowed(() => removeLeftovers(files, files.real(keyFile))) // else they stay
  keepPrivate(options, folder, 0o700)
  keepPrivate(options, keyFile, 0o600)
  keepPrivate(options, path, 0o600)
  try {
    makeAllDurable(options, path, found, isNew)
    if (found.tornBytes > 0) await moveTail(options, path, found)
    return undefined
  } catch (error) {
    if (!isFull(error instanceof Failure ? error.cause : error)) throw error
    return error instanceof Failure ? error.message : systemCode(error)
  }
}

/** The keys of the journal; new ones only where no journal exists yet. */
async function openKeys(options: FileJournalOptions, isNew: boolean, path: string): Promise<Keyring> {
  const { files, keyFile } = options
  const keys = readKeyFile(files, keyFile)
  if (keys !== undefined) {
    const what = `${path} does not exist, though its key does; starting a new journal`
    if (isNew && options.mayCreate !== true) options.warn(what)
    return keys
  }
  if (!isNew) throw new Failure('key-missing', `${path} needs ${keyFile}; is KEY_FILE right?`)
  try {
    return await createKeyFile(files, keyFile, options.random)
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('key-unwritable', `${keyFile} could not be made: ${systemCode(error)}`, { cause: error })
  }
}

/** What was read may be in the system's cache alone, as of a fresh copy or a failed write. */
function makeAllDurable(options: FileJournalOptions, path: string, found: Recovered, isNew: boolean): void {
  const { files, keyFile, warn } = options
  try {
    makeDurable(files, keyFile)
  } catch (error) {
    if (!isForbidden(error)) throw error
    warn(`${keyFile} could not be made durable (${systemCode(error)}); if it was just put there, run sync`)
  }
  for (const folder of new Set([files.real(keyFile), path].map(file => dirname(file)))) {
    if (ifAllowed(() => sync(files, folder)) === true || !isNew) continue
    warn(`the new files' names in ${folder} could not be made durable; ` +
      'a crash of the machine within the next seconds could undo them')
  }
  makeDurable(files, path, found.lastWriteBytes)
}

/** Moves a torn tail into a file of its own, and cuts it off. */
async function moveTail(options: FileJournalOptions, path: string, { goodBytes, tornBytes }: Recovered): Promise<void> {
  const { files, lock, wallMs, warn } = options
  const stem = `${path}.torn-${isoTime(wallMs())}`
  let tail = stem
  for (let n = 2; files.stat(tail) !== undefined; n++) tail = `${stem}-${n}`
  const what = `${tornBytes} bytes that are no record, as an unfinished write leaves them`
  try {
    await makeWhole(files, tail, file => {
      for (const [piece] of readPieces(files, path, goodBytes)) file.write(piece)
    }, { leavesNames: true })
    // Nothing checked the lock while the journal was read: another process may have taken it, and written.
    await lock?.keep()
    const isAsRead = files.stat(path)?.bytes === goodBytes + tornBytes
    if (!isAsRead) throw new Failure('folder-unusable', `${path} was changed by another program while it was read`)
    cutBack(files, path, goodBytes)
  } catch (error) {
    if (error instanceof Failure) throw error
    const why = `the journal ends in ${what}; they could not be moved to ${tail}: ${systemCode(error)}`
    throw new Failure('folder-unusable', why, { cause: error })
  }
  warn(`the journal ended in ${what}; they were moved to ${tail}`)
}

/** Removes other users' permissions; a folder or file of another user stays as it is. */
function keepPrivate({ files, warn }: FileJournalOptions, path: string, mode: number): void {
  const stat = files.stat(path)
  if (stat === undefined || (stat.mode & ~mode & 0o077) === 0) return
  try {
    files.setMode(path, mode)
  } catch (error) {
    warn(`${path} is open to others (mode ${stat.mode.toString(8)}) and could not be closed: ${systemCode(error)}`)
  }
}
