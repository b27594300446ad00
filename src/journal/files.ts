/** Every contact of this program with the disk. It is passed in, so that a test can make calls fail. */
import {
  chmodSync, closeSync, constants, existsSync, fstatSync, fsyncSync, ftruncateSync, linkSync, lstatSync, mkdirSync,
  openSync, readFileSync, readSync, readdirSync, realpathSync, renameSync, statSync, unlinkSync, write, writeSync,
  type Stats
} from 'node:fs'
import { Buffer } from 'node:buffer'
import { dirname, resolve } from 'node:path'
import { systemCode } from '../errors.ts'
import { READ_CHUNK_BYTES } from '../limits.ts'

export interface FileStat {
  /** Whether it is a regular file, and no device, pipe or folder. */
  readonly isFile: boolean
  readonly device: number
  readonly inode: number
  readonly links: number
  readonly bytes: number
  readonly owner: number
  readonly group: number
  /** The permissions, with the bits for set-user-ID, set-group-ID and sticky. */
  readonly mode: number
  /** When it was last changed in any way, by the system's clock. */
  readonly changedMs: number
}

/** Whether two names lead to one file. */
export function isSameFile(a: FileStat, b: FileStat): boolean { return a.inode === b.inode && a.device === b.device }

export type Descriptor = number

const { O_APPEND, O_CREAT, O_DSYNC, O_EXCL, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants

/** The real disk. All calls throw (or give their callback) the system's error, with its `code`. */
export const disk = {
  makeFolder: (path: string): void => makeFolder(path),
  list: (folder: string): string[] => readdirSync(folder),
  /** The stat of a file or folder; undefined if it does not exist. Links are followed. */
  stat: (path: string): FileStat | undefined => {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats && statOf(stats)
  },
  isLink: (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true,
  /** The path without links; the path itself if there is nothing. */
  real: (path: string): string => existsSync(path) ? realpathSync(path) : path,
  setMode: (path: string, mode: number): void => chmodSync(path, mode),
  read: (path: string): Buffer => withFile(openToRead(path), file => readFileSync(file)),
  openToRead: (path: string): Descriptor => openToRead(path),
  /** Reads at an offset into the buffer from its start; gives the number of bytes, 0 at the end. */
  readAt: (descriptor: Descriptor, into: Buffer, offset: number): number =>
    readSync(descriptor, into, 0, into.length, offset),
  /** Opens to append durably: a write that has returned is on the device. */
  openToAppend: (path: string): Descriptor => openSync(path, O_WRONLY | O_APPEND | O_DSYNC),
  /** The same for a new file, mode 0600; fails with EEXIST if the name is taken. */
  createToAppend: (path: string): Descriptor => openSync(path, O_WRONLY | O_APPEND | O_DSYNC | O_CREAT | O_EXCL, 0o600),
  /** Opens to read, to overwrite durably and to cut. */
  openToOverwrite: (path: string): Descriptor => openSync(path, O_RDWR | O_DSYNC),
  /** Gives the number of bytes written, which may be fewer than given, as the next two do. */
  append: (descriptor: Descriptor, bytes: Buffer, done: (error: Error | null, written: number) => void): void =>
    write(descriptor, bytes, 0, bytes.length, null, done),
  appendSync: (descriptor: Descriptor, bytes: Buffer): number => writeSync(descriptor, bytes),
  writeAt: (descriptor: Descriptor, bytes: Buffer, offset: number): number =>
    writeSync(descriptor, bytes, 0, bytes.length, offset),
  openStat: (descriptor: Descriptor): FileStat => statOf(fstatSync(descriptor)),
  close: (descriptor: Descriptor): void => closeSync(descriptor),
  /** Cuts a file opened to overwrite. That is durable only once the file is synced. */
  truncate: (descriptor: Descriptor, bytes: number): void => ftruncateSync(descriptor, bytes),
  /** Gives a file a second name; fails with EEXIST if that is taken. */
  link: (path: string, name: string): void => linkSync(path, name),
  rename: (from: string, to: string): void => renameSync(from, to),
  remove: (path: string): void => unlinkSync(path),
  /** Makes durable what the system's cache holds of a file, or the names in a folder. */
  sync: (path: string): void => withFile(openSync(path, O_RDONLY), fsyncSync),
  syncOpen: (descriptor: Descriptor): void => fsyncSync(descriptor)
}

export type Files = typeof disk

/** Node's place-holder for bytes that are not UTF-8: a path with it may mean several files. */
export const NOT_UTF8 = '\uFFFD'

/** The working folder; undefined if it was removed, or has a name that is not UTF-8. */
export function workingFolder(): string | undefined {
  try {
    const folder = process.cwd()
    return folder.includes(NOT_UTF8) ? undefined : folder
  } catch {
    return undefined
  }
}

/** Whether an error says that there is no room, which may change. */
export function isFull(error: unknown): boolean { return ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(systemCode(error)) }

const FORBIDDEN: readonly string[] = ['EACCES', 'EPERM', 'EROFS', 'ERR_ACCESS_DENIED']

/** Whether an error says that this process may not do something, as with what is another user's, or read-only. */
export function isForbidden(error: unknown): boolean { return FORBIDDEN.includes(systemCode(error)) }

/** What syncing gives if the file system cannot do it. */
export const WITHOUT_SYNC: readonly string[] = ['EINVAL', 'ENOTSUP', 'EOPNOTSUPP']

/** Whether something could be made durable; false if it cannot be asked for here, as under Node's permission model. */
export function trySync(sync: () => void): boolean {
  try {
    sync()
    return true
  } catch (error) {
    if (!isForbidden(error) && !WITHOUT_SYNC.includes(systemCode(error))) throw error
    return false
  }
}

/** Appends all of some bytes. */
export function appendAll(files: Files, descriptor: Descriptor, bytes: Buffer): void {
  for (let at = 0; at < bytes.length;) at += files.appendSync(descriptor, bytes.subarray(at))
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

/** Reads a part of an open file in pieces, each with its offset; a piece is valid until the next one. */
export function * piecesOf(
  files: Files, descriptor: Descriptor, start: number, end: number = Infinity
): Generator<readonly [piece: Buffer, at: number], void, void> {
  const chunk = Buffer.allocUnsafe(READ_CHUNK_BYTES)
  for (let at = start; at < end;) {
    const read = Math.min(files.readAt(descriptor, chunk, at), end - at)
    if (read === 0) return
    yield [chunk.subarray(0, read), at]
    at += read
  }
}

/** Never waits for one who writes to a pipe; reading at an offset of that fails. */
function openToRead(path: string): Descriptor { return openSync(path, O_RDONLY | O_NONBLOCK) }

function withFile<T>(descriptor: Descriptor, act: (descriptor: Descriptor) => T): T {
  try {
    return act(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Not with `recursive`, which never returns if a parent exists but nothing can be made in it (`/proc`). */
function makeFolder(path: string): void {
  const isThere = (): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
  if (isThere()) return
  const parent = dirname(path)
  if (parent !== path) makeFolder(parent)
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (!isThere()) throw error // else another process that is starting, too, has made it
  }
}

function statOf(stats: Stats): FileStat {
  const { dev, ino, nlink, size, uid, gid, mode, ctimeMs } = stats
  return {
    isFile: stats.isFile(), device: dev, inode: ino, links: nlink, bytes: size, owner: uid, group: gid,
    mode: mode & 0o7777, changedMs: ctimeMs
  }
}

const APPEND_ONLY = 'if it may only be appended to (lsattr shows an a or an i), allow more: chattr -a -i'

/** Which file a call has failed on (`path` if the error names none), why, and whose it is if that matters. */
export function fileFault(files: Files, error: unknown, path: string): string {
  // The permission model has another word for it.
  const { path: own, resource } = error as NodeJS.ErrnoException & { readonly resource?: string }
  const named = resolve(own ?? resource ?? path)
  const code = systemCode(error)
  const what = `${named}: ${code}`
  if (code === 'EPERM') return `${what}; ${APPEND_ONLY}`
  if (code !== 'EACCES') return what
  try {
    const owner = files.stat(named)?.owner
    return owner === undefined ? what : `${what}; it belongs to user ${owner}`
  } catch {
    return what
  }
}
