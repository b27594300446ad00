/**
 * Making a file whole or not at all: it is written durably under a temporary name, and then given its own. A process
 * that is killed leaves at most `NAME.N.part`, which `removeLeftovers` removes.
 */
import { Buffer } from 'node:buffer'
import { basename, dirname, join } from 'node:path'
import { systemCode } from '../errors.ts'
import type { Descriptor, Files } from './files.ts'

/** A new file that is being written; what was written is on the device. */
export interface NewFile {
  /** Its temporary path, for reading it back. */
  readonly path: string
  write(piece: Buffer | string): void
}

interface WholeFileOptions {
  /** The file takes the place of another one. Without it the name must be free; else the error's code is EEXIST. */
  readonly replaces?: boolean
  /** The name, in the same folder, under which the replaced file is kept; a kill may leave both names. */
  readonly keepsAs?: string | undefined
  /** The caller syncs the folder, or can do without. Otherwise a sync is tried before anything is made. */
  readonly leavesNames?: boolean
}

/** The most parts of one file: of processes that make it at the same time, or that died while they did. */
const MAX_PARTS = 100

/** Where files have no second names: FAT, some network file systems. */
const WITHOUT_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']

/**
 * Makes a file, mode 0600; gives what `make` gives. When it throws, nothing is left under either name, unless
 * it was the folder's last sync that failed.
 */
export async function makeWhole<T>(
  files: Files, path: string, make: (file: NewFile) => T | Promise<T>, options: WholeFileOptions = {}
): Promise<T> {
  const { replaces = false, keepsAs, leavesNames = false } = options
  if (keepsAs !== undefined) refuseTaken(files, keepsAs)
  if (!replaces) refuseTaken(files, path)
  if (!leavesNames) files.sync(dirname(path))
  const [part, descriptor] = createPart(files, path)
  try {
    let made: T
    const write = (piece: Buffer | string): void => {
      const bytes = Buffer.from(piece)
      for (let at = 0; at < bytes.length;) at += files.appendSync(descriptor, bytes.subarray(at))
    }
    try {
      made = await make({ path: part, write })
    } finally {
      files.close(descriptor)
    }
    if (keepsAs !== undefined) replaceAndKeep(files, part, path, keepsAs)
    else if (replaces) files.rename(part, path)
    else linkInPlace(files, part, path)
    if (!leavesNames) files.sync(dirname(path))
    return made
  } finally {
    if (files.stat(part) !== undefined) files.remove(part)
  }
}

/**
 * Removes what was left by processes that were killed while they made the file of this path. Only for files of the
 * program's own: beside one that somebody has named, what has such a name may be theirs.
 */
export function removeLeftovers(files: Files, path: string): void {
  for (const name of files.list(dirname(path))) if (isPartOf(path, name)) files.remove(join(dirname(path), name))
}

/** Whether a name is a temporary one of a file. */
export function isPartOf(path: string, name: string): boolean {
  const start = `${basename(path)}.`
  return name.startsWith(start) && /^\d+\.part$/.test(name.slice(start.length))
}

function createPart(files: Files, path: string): readonly [part: string, descriptor: Descriptor] {
  for (let n = 1; ; n++) {
    try {
      const part = `${path}.${n}.part`
      return [part, files.createToAppend(part)]
    } catch (error) {
      if (systemCode(error) !== 'EEXIST' || n === MAX_PARTS) throw error
    }
  }
}

/** The second name is durable before the first one goes to another file: so the old file is never without a name. */
function replaceAndKeep(files: Files, part: string, path: string, keepsAs: string): void {
  files.link(path, keepsAs)
  try {
    files.sync(dirname(path))
    files.rename(part, path)
  } catch (error) {
    files.remove(keepsAs)
    throw error
  }
}

/** Whether an error says that the file system gives a file no second name. */
export function hasNoLinks(error: unknown): boolean { return WITHOUT_LINKS.includes(systemCode(error)) }

function linkInPlace(files: Files, part: string, path: string): void {
  try {
    files.link(part, path)
  } catch (error) {
    if (!hasNoLinks(error)) throw error
    refuseTaken(files, path)
    files.rename(part, path)
  }
}

function refuseTaken(files: Files, path: string): void {
  if (files.stat(path) !== undefined) throw Object.assign(new Error(`${path} exists already`), { code: 'EEXIST' })
}
