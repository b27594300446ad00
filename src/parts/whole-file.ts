/**
 * Making a file whole or not at all: it is written durably under a temporary name, and then given its own. A process
 * that is killed leaves at most `NAME.N.part`, which a start removes beside the journal and its key file.
 */
import { Buffer } from 'node:buffer'
import { randomInt } from 'node:crypto'
import { dirname } from 'node:path'
import { systemCode } from '../errors.ts'
import { appendAll, isSameFile, WITHOUT_SYNC, type Files, type FileStat } from '../journal/files.ts'

/** A new file that is being written; what was written is on the device. */
export interface NewFile {
  /** Its temporary path, for reading it back. */
  readonly path: string
  write(piece: Buffer | string): void
}

interface WholeFileOptions {
  /**
   * The file whose place it takes, as it was when it was read; if the name leads to another one by now, or to one of
   * another length, the error's code is ESTALE. Without it the name must be free; else the code is EEXIST.
   */
  readonly replaces?: FileStat | undefined
  /** Throws if the file must not take that place any more. */
  readonly confirm?: (() => void) | undefined
  /** The name, in the same folder, under which the replaced file is kept; a kill may leave both names. */
  readonly keepsAs?: string | undefined
}

/** What a link gives if files have no second names: FAT, some network file systems. */
const WITHOUT_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']

/**
 * Makes a file, mode 0600; gives what `make` gives. When it throws, nothing is left under either name, unless
 * it was the folder's last sync that failed.
 */
export async function makeWhole<T>(
  files: Files, path: string, make: (file: NewFile) => T | Promise<T>, options: WholeFileOptions = {}
): Promise<T> {
  const { replaces, keepsAs, confirm = () => {} } = options
  const folder = dirname(path)
  for (const name of [keepsAs, replaces === undefined ? path : undefined]) {
    if (name !== undefined) refuseTaken(files, name)
  }
  syncNames(files, folder) // a folder that cannot be synced is found out before anything is made
  const part = `${path}.${randomInt(2 ** 47)}.part`
  const descriptor = files.createToAppend(part)
  try {
    let made: T
    const write = (piece: Buffer | string): void => {
      try {
        appendAll(files, descriptor, Buffer.from(piece))
      } catch (error) {
        // What is written may be read from another file at the same time, which this would be taken for.
        throw Object.assign(error as Error, { path })
      }
    }
    try {
      made = await make({ path: part, write })
    } finally {
      files.close(descriptor)
    }
    confirm()
    if (replaces === undefined) linkInPlace(files, part, path)
    else replace(files, part, path, replaces, keepsAs)
    syncNames(files, folder)
    return made
  } finally {
    if (files.stat(part) !== undefined) files.remove(part)
  }
}

/** Makes the names in a folder durable, or throws an error that names the folder and says what helps. */
function syncNames(files: Files, folder: string): void {
  try {
    files.sync(folder)
  } catch (error) {
    const code = systemCode(error)
    const what = `${folder}: ${code}; its file system cannot make names durable; use another file system`
    throw Object.assign(WITHOUT_SYNC.includes(code) ? new Error(what) : error as Error, { code, path: folder })
  }
}

/** Takes the place of a file, which gets its second name durably before it loses the first one. */
function replace(files: Files, part: string, path: string, old: FileStat, keepsAs: string | undefined): void {
  const now = files.stat(path)
  if (now === undefined || !isSameFile(now, old) || now.bytes !== old.bytes) {
    throw Object.assign(new Error(`${path} was changed by another program`), { code: 'ESTALE' })
  }
  if (keepsAs !== undefined) files.link(path, keepsAs)
  try {
    if (keepsAs !== undefined) syncNames(files, dirname(path))
    files.rename(part, path)
  } catch (error) {
    if (keepsAs !== undefined) files.remove(keepsAs)
    throw error
  }
}

/** Gives a file its name, which must be free: a link takes no other's place. */
function linkInPlace(files: Files, part: string, path: string): void {
  try {
    files.link(part, path)
  } catch (error) {
    refuseTaken(files, path)
    if (!WITHOUT_LINKS.includes(systemCode(error))) throw error
    files.rename(part, path)
  }
}

function refuseTaken(files: Files, path: string): void {
  if (files.stat(path) !== undefined) throw Object.assign(new Error(`${path} exists already`), { code: 'EEXIST' })
}
