/** The first start: how a journal and its key are made. */
import { Buffer } from 'node:buffer'
import { basename, dirname, join } from 'node:path'
import { Failure, systemCode } from '../errors.ts'
import type { FileOptions } from './file-journal.ts'
import { appendAll, ifAllowed, isFull, isSynced, type Files } from './files.ts'
import { BEGUN } from './journal.ts'
import { KEY_BYTES, keyring, readKeyFile, type Keyring } from './keys.ts'
import { FIRST_HASH, isoTime, nonces, sealBatch } from './line.ts'

export interface FolderOptions extends FileOptions {
  /** Whether a journal without a record is refused, or none at all: unless this is a first start, all is lost. */
  readonly mustExist?: boolean
}

/** What refuses a journal that does not exist, or is empty. */
export function missing(path: string, isThere: boolean, besideKey: string = ''): Failure {
  const key = besideKey === '' ? '' : `, though its key ${besideKey} is there`
  const what = path + (isThere ? ' is empty' : ' does not exist') + key
  const how = 'if something was stored there, restore it (the operator\'s command journal restore); if nothing was, ' +
    'or a new, empty store is what you want, run the operator\'s command init'
  return new Failure('journal-missing', `${what}; ${how}`)
}

export function noKey(path: string, keyFile: string): Failure {
  return new Failure('key-missing', `${path} needs ${keyFile}; is KEY_FILE right?`)
}

/** Whether a name is a temporary one of a file: that of a process that makes it, or died while it did. */
export function isPartOf(path: string, name: string): boolean {
  const start = `${basename(path)}.`
  return name.startsWith(start) && /^\d+\.part$/.test(name.slice(start.length))
}

function partsOf(files: Files, path: string): string[] {
  return files.list(dirname(path)).filter(name => isPartOf(path, name)).map(name => join(dirname(path), name))
}

/** Removes what processes have left that were killed while they made a file of the program's own. */
export function removeLeftovers(files: Files, path: string): void {
  for (const part of partsOf(files, path)) files.remove(part)
}

/** A file that holds the first record of a new journal, and no other. */
const BEGUN_ONLY = new RegExp(`^\\{"seq":1,"time":"[^"]+","type":"${BEGUN}",[^\n]{1,500}\\}\n$`)
const MAX_BEGUN_BYTES = 1_000

export function isJustBegun(files: Files, path: string): boolean {
  const bytes = files.stat(path)?.bytes ?? 0
  return bytes > 0 && bytes < MAX_BEGUN_BYTES && BEGUN_ONLY.test(files.read(path).toString('latin1'))
}

/**
 * Makes a journal with its first record, and its key unless there is one. That record lies in a file beside it before
 * the key gets its name: so a key without a journal shows that the journal is lost, or else that a first start was
 * killed.
 */
export function begin(options: FolderOptions, path: string, found: Keyring | undefined): Keyring {
  const { files, folder, keyFile, mustExist = false, mayCreate = false, warn } = options
  const isThere = files.stat(path) !== undefined
  if (isThere && found === undefined) throw noKey(path, keyFile)
  const isOurs = dirname(keyFile) === folder
  const wasKilled = partsOf(files, path).some(part => isJustBegun(files, part))
  if (!mayCreate) {
    if (mustExist) throw missing(path, isThere)
    if (found !== undefined && isOurs && !wasKilled) throw missing(path, isThere, keyFile)
    const what = `${path} ${isThere ? 'is empty' : 'does not exist'}, though its key does; starting a new journal`
    if (found !== undefined && !isOurs) warn(what)
  }
  for (let at = folder; at !== dirname(at); at = dirname(at)) ifAllowed(() => isSynced(() => files.sync(dirname(at))))
  removeLeftovers(files, path)
  const secret = options.random(KEY_BYTES)
  let keys = found ?? keyring([secret])
  let part = writeBegun(options, path, keys)
  if (found === undefined) {
    const { name } = keys.newest
    try {
      keys = makeKey(options, secret)
    } catch (error) {
      if (files.stat(keyFile) === undefined) files.remove(part) // else the next start goes on with it
      throw error
    }
    if (keys.newest.name !== name) {
      files.remove(part)
      part = writeBegun(options, path, keys)
    }
  }
  files.rename(part, path)
  return keys
}

/** Writes the first record into a file of its own, durably; gives that. */
function writeBegun({ files, folder, wallMs, random }: FolderOptions, path: string, { newest: key }: Keyring): string {
  const event = { type: BEGUN, by: null, data: {}, json: '{}' }
  const { lines } = sealBatch([event], 0, FIRST_HASH, { time: isoTime(wallMs()), key, nonce: nonces(random) })
  const part = `${path}.1.part`
  writeWhole(files, part, [Buffer.from(`${lines[0]!}\n`)])
  ifAllowed(() => isSynced(() => files.sync(folder)))
  return part
}

function makeKey({ files, keyFile, random }: FolderOptions, secret: Buffer): Keyring {
  try {
    const keys = makeKeyFile(files, keyFile, secret, `${keyFile}.${random(4).readUInt32LE()}.part`)
    ifAllowed(() => isSynced(() => files.sync(dirname(keyFile))))
    return keys
  } catch (error) {
    if (error instanceof Failure || isFull(error)) throw error
    throw new Failure('key-unwritable', `${keyFile} could not be made: ${systemCode(error)}`, { cause: error })
  }
}

/** Makes a key file. Gives its keys: those of another process, if that was faster with a file that both are to use. */
export function makeKeyFile(files: Files, path: string, secret: Buffer, part: string): Keyring {
  writeWhole(files, part, [Buffer.from(`${secret.toString('hex')}\n`)])
  try {
    files.link(part, path)
  } catch (error) {
    const found = readKeyFile(files, path)
    if (found !== undefined) return found
    // A file system without second names has no shared key files either.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(systemCode(error))) throw error
    files.rename(part, path)
  } finally {
    if (files.stat(part) !== undefined) files.remove(part)
  }
  return readKeyFile(files, path)!
}

/** Makes a file, mode 0600, durable but for its name; if that fails, nothing is left of it. */
export function writeWhole(files: Files, path: string, pieces: Iterable<Buffer>): void {
  const descriptor = files.createToAppend(path)
  try {
    try {
      for (const piece of pieces) appendAll(files, descriptor, piece)
    } finally {
      files.close(descriptor)
    }
  } catch (error) {
    files.remove(path)
    throw error
  }
}
