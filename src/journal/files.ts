/** All contact with the disk, passed in so that tests can make calls fail. */
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  realpathSync,
  renameSync,
  statSync,
  unlinkSync,
  write,
  writeSync,
  type Stats
} from 'node:fs'
import { Buffer } from 'node:buffer'
import { dirname, resolve } from 'node:path'
import { systemCode } from '../errors.ts'
import { READ_CHUNK_BYTES } from '../limits.ts'

export type FileStat = Pick<
  Stats,
  'isFile' | 'dev' | 'ino' | 'nlink' | 'size' | 'uid' | 'gid' | 'mode' | 'ctimeMs'
>

export function isSameFile(a: FileStat | undefined, b: FileStat | undefined): boolean {
  return a !== undefined && a.ino === b?.ino && a.dev === b.dev
}

export type Descriptor = number

const { O_APPEND, O_CREAT, O_DSYNC, O_EXCL, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants

/** Calls throw, or give their callback, the system's error with its `code`. */
export const disk = {
  /** Mode 0700, as its parents. */
  makeFolder: (path: string): void => {
    if (!existsSync(path)) mkdirSync(path, { recursive: true, mode: 0o700 })
  },
  list: (folder: string): string[] => readdirSync(folder),
  /** Follows links; undefined if nothing is there. */
  stat: (path: string): FileStat | undefined => statSync(path, { throwIfNoEntry: false }),
  isLink: (path: string): boolean =>
    lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true,
  /** Without links; unchanged if nothing is there. */
  real: (path: string): string => (existsSync(path) ? realpathSync(path) : path),
  setMode: (path: string, mode: number): void => chmodSync(path, mode),
  read: (path: string): Buffer => withFile(disk, openToRead(path), file => readFileSync(file)),
  openToRead: (path: string): Descriptor => openToRead(path),
  /** Gives the number of bytes, 0 at the end. */
  readAt: (descriptor: Descriptor, into: Buffer, offset: number): number =>
    readSync(descriptor, into, 0, into.length, offset),
  openToAppend: (path: string): Descriptor => openSync(path, O_WRONLY | O_APPEND | O_DSYNC),
  /** For a new file, mode 0600; EEXIST if the name is taken. */
  createToAppend: (path: string): Descriptor =>
    openSync(path, O_WRONLY | O_APPEND | O_DSYNC | O_CREAT | O_EXCL, 0o600),
  openToOverwrite: (path: string): Descriptor => openSync(path, O_RDWR | O_DSYNC),
  /** Gives how many bytes it wrote, perhaps not all; so do the next two. */
  append: (
    descriptor: Descriptor,
    bytes: Buffer,
    done: (error: Error | null, written: number) => void
  ): void => write(descriptor, bytes, 0, bytes.length, null, done),
  appendSync: (descriptor: Descriptor, bytes: Buffer): number => writeSync(descriptor, bytes),
  writeAt: (descriptor: Descriptor, bytes: Buffer, offset: number): number =>
    writeSync(descriptor, bytes, 0, bytes.length, offset),
  openStat: (descriptor: Descriptor): FileStat => fstatSync(descriptor),
  close: (descriptor: Descriptor): void => closeSync(descriptor),
  /** Durable only once the file is synced. */
  truncate: (descriptor: Descriptor, bytes: number): void => ftruncateSync(descriptor, bytes),
  /** EEXIST if the name is taken. */
  link: (path: string, name: string): void => linkSync(path, name),
  rename: (from: string, to: string): void => renameSync(from, to),
  remove: (path: string): void => unlinkSync(path),
  /** Also for a folder's names. */
  sync: (path: string): void => withFile(disk, openSync(path, O_RDONLY), fsyncSync),
  syncOpen: (descriptor: Descriptor): void => fsyncSync(descriptor)
}

export type Files = typeof disk

/** There is no room, which may change. */
export function isFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(systemCode(error))
}

const FORBIDDEN: readonly string[] = ['EACCES', 'EPERM', 'EROFS', 'ERR_ACCESS_DENIED']

export function isForbidden(error: unknown): boolean {
  return FORBIDDEN.includes(systemCode(error))
}

export const WITHOUT_SYNC: readonly string[] = ['EINVAL', 'ENOTSUP', 'EOPNOTSUPP']

/** False if the runtime cannot sync, as under Node's permission model. */
export function trySync(sync: () => void): boolean {
  try {
    sync()
    return true
  } catch (error) {
    if (!isForbidden(error) && !WITHOUT_SYNC.includes(systemCode(error))) throw error
    return false
  }
}

export function withFile<T>(
  files: Pick<Files, 'close'>,
  file: Descriptor,
  act: (file: Descriptor) => T
): T {
  try {
    return act(file)
  } finally {
    files.close(file)
  }
}

export function appendAll(files: Files, descriptor: Descriptor, bytes: Buffer): void {
  for (let at = 0; at < bytes.length;) at += files.appendSync(descriptor, bytes.subarray(at))
}

/** Mode 0600, durable except for its name. Leaves nothing if it fails. */
export function writeWhole(files: Files, path: string, pieces: Iterable<Buffer>): void {
  const descriptor = files.createToAppend(path)
  try {
    withFile(files, descriptor, file => {
      for (const piece of pieces) appendAll(files, file, piece)
    })
  } catch (error) {
    files.remove(path)
    throw error
  }
}

/** A piece is valid until the next one. */
export function* piecesOf(
  files: Files,
  descriptor: Descriptor,
  start: number,
  end: number = Infinity
): Generator<Buffer, void, void> {
  const chunk = Buffer.allocUnsafe(READ_CHUNK_BYTES)
  for (let at = start; at < end;) {
    const read = Math.min(files.readAt(descriptor, chunk, at), end - at)
    if (read === 0) return
    yield chunk.subarray(0, read)
    at += read
  }
}

/** Does not wait for the writer of a pipe, which cannot be read at an offset. */
function openToRead(path: string): Descriptor {
  return openSync(path, O_RDONLY | O_NONBLOCK)
}

const APPEND_ONLY =
  'if it may only be appended to (lsattr shows an a or an i), allow more: chattr -a -i'

export function fileFault(files: Files, error: unknown, path: string): string {
  // The permission model says `resource`.
  const { path: own, resource } = error as NodeJS.ErrnoException & { readonly resource?: string }
  const named = resolve(own ?? resource ?? path)
  const code = systemCode(error)
  const what = `${named}: ${code}`
  if (code === 'EPERM') return `${what}; ${APPEND_ONLY}`
  if (code !== 'EACCES') return what
  try {
    const owner = files.stat(named)?.uid
    if (owner === undefined) return what
    const folder = dirname(named)
    const isOfAnother = (files.stat(folder)?.uid ?? owner) !== owner
    const how = isOfAnother
      ? `: as root, chown --reference=${folder} ${named} gives it to the owner of the folder`
      : ''
    return `${what}; it belongs to user ${owner}${how}`
  } catch {
    return what
  }
}
