/**
 * Makes a file whole or not at all. It is written under a temporary name, each piece onto the
 * device; then it gets its name; then the folder is synced, which makes the name durable, too. A
 * kill leaves at most `NAME.N.part`, which a start removes beside the journal and its key file.
 */
import { Buffer } from 'node:buffer'
import { randomInt } from 'node:crypto'
import { dirname } from 'node:path'
import { systemCode } from '../../errors.ts'
import {
  appendAll,
  isFull,
  isSameFile,
  WITHOUT_SYNC,
  type Files,
  type FileStat
} from '../../journal/files.ts'
import { breath, type Ending } from './signals.ts'

/** `write` returns when the piece is on the device. */
export interface NewFile {
  /** Temporary, for reading back. */
  readonly path: string
  write(piece: Buffer | string): void
}

interface WholeFileOptions {
  /**
   * The file to replace, as it was read: ESTALE if it has changed since. Undefined: EEXIST if the
   * name is taken.
   */
  readonly replaces?: FileStat | undefined
  readonly confirm?: (() => void) | undefined
  /** A second name in the folder for the replaced file. A kill may leave both. */
  readonly keepsAs?: string | undefined
  /** A signal before the file has its name ends the program, and leaves no file either. */
  readonly ending?: Ending | undefined
}

/** File systems without hard links: FAT, some network file systems. */
const WITHOUT_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']

/**
 * Makes a file, mode 0600. If it throws, it leaves no file, unless the folder's last sync failed.
 * The error of a full disk has `state`, in words, if no file is left.
 */
export async function makeWhole<T>(
  files: Files,
  path: string,
  make: (file: NewFile) => T | Promise<T>,
  options: WholeFileOptions = {}
): Promise<T> {
  const { replaces, keepsAs, confirm = () => {}, ending } = options
  const state = replaces === undefined ? 'was not made' : 'is as it was'
  const folder = dirname(path)
  for (const name of [keepsAs, replaces === undefined ? path : undefined]) {
    if (name !== undefined) refuseTaken(files, name)
  }
  syncNames(files, folder)
  const part = `${path}.${randomInt(2 ** 47)}.part`
  const removePart = (): void => {
    if (files.stat(part) !== undefined) files.remove(part)
  }
  let isPlaced = false
  const act = async (): Promise<T> => {
    const descriptor = files.createToAppend(part)
    let made: T
    const write = (piece: Buffer | string): void => {
      try {
        appendAll(files, descriptor, Buffer.from(piece))
      } catch (error) {
        // Without a path, the error would name the file that `make` reads.
        throw Object.assign(error as Error, { path })
      }
    }
    try {
      made = await make({ path: part, write })
    } finally {
      files.close(descriptor)
    }
    if (ending !== undefined) await breath()
    confirm() // as late as possible: what it looks at may change
    if (replaces === undefined) linkInPlace(files, part, path)
    else replace(files, part, path, replaces, keepsAs)
    isPlaced = true
    syncNames(files, folder)
    return made
  }
  const onEnd = (): string => {
    removePart()
    return `${path} ${state}`
  }
  try {
    return await (ending === undefined ? act() : ending(onEnd, act))
  } catch (error) {
    throw isFull(error) && !isPlaced ? Object.assign(error as Error, { path, state }) : error
  } finally {
    removePart()
  }
}

function syncNames(files: Files, folder: string): void {
  try {
    files.sync(folder)
  } catch (error) {
    const code = systemCode(error)
    const how = 'its file system cannot make names durable; use another file system'
    const what = `${folder}: ${code}; ${how}`
    throw Object.assign(WITHOUT_SYNC.includes(code) ? new Error(what) : (error as Error), {
      code,
      path: folder
    })
  }
}

/** The second name is durable before the rename removes the first. */
function replace(
  files: Files,
  part: string,
  path: string,
  old: FileStat,
  keepsAs: string | undefined
): void {
  const now = files.stat(path)
  if (now === undefined || !isSameFile(now, old) || now.size !== old.size) {
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

/** A link, unlike a rename, never replaces a file. */
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
  if (files.stat(path) !== undefined)
    throw Object.assign(new Error(`${path} exists already`), { code: 'EEXIST' })
}
