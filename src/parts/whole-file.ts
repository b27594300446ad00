/**
 * Making a file whole or not at all: it is written durably under a temporary name, and then given its own. A process
 * that is killed leaves at most `NAME.N.part`, which `removeLeftovers` removes.
 */
import { Buffer } from 'node:buffer'
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
   * The file whose place it takes, as it was when it was read; where the name leads to another one by now, or to one of
   * another length, the error's code is ESTALE. Without it the name must be free; else the code is EEXIST, as it is
   * where every temporary name is taken.
   */
  readonly replaces?: FileStat | undefined
  /** Throws where the file must not take that place any more; asked directly before and directly after. */
  readonly confirm?: (() => void) | undefined
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
  const { replaces, keepsAs, leavesNames = false, confirm = () => {} } = options
  if (keepsAs !== undefined) refuseTaken(files, keepsAs)
  if (replaces === undefined) refuseTaken(files, path)
  if (!leavesNames) syncNames(files, dirname(path))
  const [part, descriptor] = atFreeName(path, name => files.createToAppend(name))
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
    if (replaces === undefined) linkInPlace(files, part, path)
    else replace(files, part, path, keepsAs, name => { refuseChanged(files, name, replaces); confirm() })
    if (!leavesNames) syncNames(files, dirname(path))
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

function atFreeName<T>(path: string, make: (name: string) => T): readonly [name: string, made: T] {
  for (let n = 1; ; n++) {
    const name = `${path}.${n}.part`
    try {
      return [name, make(name)]
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error
      const what = `${path}.1.part to ${name} are in the way, as killed commands leave them; delete them`
      if (n === MAX_PARTS) throw Object.assign(new Error(what), { code: 'EEXIST', path: name })
    }
  }
}

/**
 * Takes the place of a file; `refuse` throws unless that is, by a name of it, still as it was read. One who writes to
 * it against the rules looks after each write whether the name still leads there, and acknowledges nothing else: so
 * what was acknowledged between the look before the name is given and that itself shows in the old file afterwards,
 * which then gets its name back.
 */
function replace(
  files: Files, part: string, path: string, keepsAs: string | undefined, refuse: (oldName: string) => void
): void {
  refuse(path)
  if (keepsAs !== undefined) files.link(path, keepsAs)
  const aside = keepsAs ?? nameAside(files, path)
  if (aside === undefined) return files.rename(part, path)
  try {
    // Durable before the first name goes: so a file that is kept is never without one.
    if (keepsAs !== undefined) syncNames(files, dirname(path))
    refuse(path)
    files.rename(part, path)
  } catch (error) {
    files.remove(aside)
    throw error
  }
  try {
    refuse(aside)
  } catch (error) {
    files.rename(aside, path)
    throw error
  }
  if (keepsAs === undefined) files.remove(aside)
}

/** Gives a file a temporary second name; undefined where there are none. */
function nameAside(files: Files, path: string): string | undefined {
  try {
    return atFreeName(path, name => files.link(path, name))[0]
  } catch (error) {
    if (!hasNoLinks(error)) throw error
    return undefined
  }
}

function refuseChanged(files: Files, path: string, old: FileStat): void {
  const now = files.stat(path)
  if (now !== undefined && isSameFile(now, old) && now.bytes === old.bytes) return
  throw Object.assign(new Error(`${path} was changed by another program`), { code: 'ESTALE' })
}

/** Whether an error says that the file system gives a file no second name. */
export function hasNoLinks(error: unknown): boolean { return WITHOUT_LINKS.includes(systemCode(error)) }

function linkInPlace(files: Files, part: string, path: string): void {
  try {
    files.link(part, path)
  } catch (error) {
    refuseTaken(files, path)
    if (!hasNoLinks(error)) throw error
    files.rename(part, path)
  }
}

function refuseTaken(files: Files, path: string): void {
  if (files.stat(path) !== undefined) throw Object.assign(new Error(`${path} exists already`), { code: 'EEXIST' })
}
