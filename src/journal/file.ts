/** The journal in a file, `journal.jsonl`: how it is opened, and made on the first start. */
import { dirname, join } from 'node:path'
import { Failure, systemCode } from '../errors.ts'
import { createKeyFile, readKeyFile, type Keyring } from './keys.ts'
import { cutTail, readJournal, type Recovered } from './recover.ts'
import { removeLeftovers } from './rewrite.ts'
import { FileJournal, type FileJournalOptions } from './writer.ts'

export type { FileJournal, FileJournalOptions } from './writer.ts'

/** The journal's name in its folder. */
export const JOURNAL_FILE = 'journal.jsonl'

/**
 * Opens the journal of a folder, makes it (and its key file) on the first start, and folds every record. Throws
 * `key-missing`, `key-invalid`, `key-unknown`, `journal-damaged` or `folder-unusable`, having changed nothing.
 */
export function openFileJournal(options: FileJournalOptions): FileJournal {
  const { files, folder } = options
  try {
    // Links are followed once: what is replaced by a new file must not be the link to it.
    const keyFile = files.real(options.keyFile)
    return open({ ...options, keyFile }, files.real(join(folder, JOURNAL_FILE)))
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('folder-unusable', `${folder}: ${systemCode(error)}`, { cause: error })
  }
}

function open(options: FileJournalOptions, path: string): FileJournal {
  const { files, folder, keyFile, fold } = options
  if (keyFile === path) throw new Failure('key-invalid', `${keyFile} is the journal itself`)
  const keys = openKeys(options, path)
  if (files.stat(path) === undefined) {
    files.close(files.createToAppend(path))
    syncFolder(options, folder)
  }
  const found = readJournal(files, path, keys, record => fold.apply(record), options)
  removeLeftovers(files, path)
  keepPrivate(options, folder, 0o700)
  keepPrivate(options, keyFile, 0o600)
  keepPrivate(options, path, 0o600)
  if (found.tornBytes > 0) repair(options, path, found)
  return new FileJournal(options, path, keys, found)
}

/** The keys of the journal; new ones only where no journal stands yet. */
function openKeys(options: FileJournalOptions, path: string): Keyring {
  const { files, keyFile } = options
  const keys = readKeyFile(files, keyFile)
  if (keys !== undefined) {
    if (files.stat(path) === undefined) options.warn(`${path} is not there, though its key is; a new journal begins`)
    return keys
  }
  if (files.stat(path) !== undefined) throw new Failure('key-missing', `${path} needs ${keyFile}; is KEY_FILE right?`)
  let made: Keyring
  try {
    made = createKeyFile(files, keyFile, options.random)
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure('folder-unusable', `${keyFile} could not be made: ${systemCode(error)}`, { cause: error })
  }
  syncFolder(options, dirname(keyFile))
  return made
}

function repair({ files, wallMs, warn }: FileJournalOptions, path: string, found: Recovered): void {
  const stem = `${path}.torn-${new Date(wallMs()).toISOString()}`
  let tail = stem
  for (let n = 2; files.stat(tail) !== undefined; n++) tail = `${stem}-${n}`
  const what = `${found.tornBytes} bytes that are no record, as an unfinished write leaves them`
  try {
    cutTail(files, path, found.goodBytes, tail)
  } catch (error) {
    const why = `the journal ends in ${what}; they could not be moved to ${tail}: ${systemCode(error)}`
    throw new Failure('folder-unusable', why, { cause: error })
  }
  warn(`the journal ended in ${what}; they were moved to ${tail}`)
}

/** Takes from others what only the owner should have; a folder or file of somebody else's stays as it is. */
function keepPrivate({ files, warn }: FileJournalOptions, path: string, mode: number): void {
  const stat = files.stat(path)
  if (stat === undefined || (stat.mode & ~mode & 0o077) === 0) return
  try {
    files.setMode(path, mode)
  } catch (error) {
    warn(`${path} is open to others (mode ${stat.mode.toString(8)}) and could not be closed: ${systemCode(error)}`)
  }
}

function syncFolder({ files, warn }: FileJournalOptions, folder: string): void {
  try {
    files.syncFolder(folder)
  } catch (error) {
    warn(`the new file's name in ${folder} could not be made durable (${systemCode(error)}); ` +
      'a crash of the machine within the next seconds could undo it')
  }
}
