/**
 * The file layer: every contact of this program with the disk. It is passed in wherever it is used, so that a test can
 * make the Nth call fail or simulate a disk.
 */
import {
  chmodSync, closeSync, constants, existsSync, fstatSync, fsyncSync, ftruncateSync, linkSync, mkdirSync, openSync,
  readFileSync, readSync, readdirSync, realpathSync, renameSync, statSync, unlinkSync, write, writeSync, type Stats
} from 'node:fs'
import type { Buffer } from 'node:buffer'
import { dirname, resolve } from 'node:path'
import { systemCode } from '../errors.ts'

/** What identifies a file, and how long it is. */
export interface FileStat {
  readonly device: number
  readonly inode: number
  /** How many names it has. */
  readonly links: number
  readonly bytes: number
  /** The user's number, and the group's. */
  readonly owner: number
  readonly group: number
  /** The permission bits. */
  readonly mode: number
}

/** An open file, as the file layer numbers it. */
export type Descriptor = number

/** All calls throw (or give their callback) the system's error, with its `code`. */
export interface Files {
  /** Makes a folder and its parents, mode 0700; no error if it exists. */
  makeFolder(path: string): void
  list(folder: string): string[]
  /** The stat of a file or folder; undefined if it does not exist. Links are followed. */
  stat(path: string): FileStat | undefined
  /** The path without links; the path itself if there is nothing. */
  real(path: string): string
  setMode(path: string, mode: number): void
  /** Reads a small file whole. */
  read(path: string): Buffer
  openToRead(path: string): Descriptor
  /** Reads at an offset into the buffer from its start; gives the number of bytes, 0 at the end. */
  readAt(descriptor: Descriptor, into: Buffer, offset: number): number
  /** Opens to append durably (`O_APPEND|O_DSYNC`): a write that has returned is on the device. */
  openToAppend(path: string): Descriptor
  /** The same for a new file, mode 0600; fails with EEXIST if the name is taken. */
  createToAppend(path: string): Descriptor
  /** Opens an existing file to write durably at any offset (`O_DSYNC`, without `O_APPEND`). */
  openToOverwrite(path: string): Descriptor
  /** Appends; the callback gets the number of bytes written, which may be fewer than given. */
  append(descriptor: Descriptor, bytes: Buffer, done: (error: Error | null, written: number) => void): void
  /** The same, waiting for it. */
  appendSync(descriptor: Descriptor, bytes: Buffer): number
  /** Writes at an offset into a file opened to overwrite; gives the number of bytes written. */
  writeAt(descriptor: Descriptor, bytes: Buffer, offset: number): number
  openStat(descriptor: Descriptor): FileStat
  close(descriptor: Descriptor): void
  /** Cuts a file opened to overwrite. That is durable only once the file is synced. */
  truncate(descriptor: Descriptor, bytes: number): void
  /** Gives a file a second name; fails with EEXIST if that is taken. */
  link(path: string, name: string): void
  rename(from: string, to: string): void
  remove(path: string): void
  /**
   * Makes durable what the system's cache holds of a file, or the names in a folder. Throws ERR_ACCESS_DENIED under
   * Node's permission model.
   */
  sync(path: string): void
}

const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_DSYNC

/** The real disk. */
export const disk: Files = {
  makeFolder,
  list: folder => readdirSync(folder),
  stat: path => {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats && statOf(stats)
  },
  real: path => existsSync(path) ? realpathSync(path) : path,
  setMode: (path, mode) => chmodSync(path, mode),
  read: path => readFileSync(path),
  openToRead: path => openSync(path, constants.O_RDONLY),
  readAt: (descriptor, into, offset) => readSync(descriptor, into, 0, into.length, offset),
  openToAppend: path => openSync(path, APPEND),
  createToAppend: path => openSync(path, APPEND | constants.O_CREAT | constants.O_EXCL, 0o600),
  openToOverwrite: path => openSync(path, constants.O_WRONLY | constants.O_DSYNC),
  append: (descriptor, bytes, done) => write(descriptor, bytes, 0, bytes.length, null, done),
  appendSync: (descriptor, bytes) => writeSync(descriptor, bytes),
  writeAt: (descriptor, bytes, offset) => writeSync(descriptor, bytes, 0, bytes.length, offset),
  openStat: descriptor => statOf(fstatSync(descriptor)),
  close: descriptor => closeSync(descriptor),
  truncate: (descriptor, bytes) => ftruncateSync(descriptor, bytes),
  link: (path, name) => linkSync(path, name),
  rename: (from, to) => renameSync(from, to),
  remove: path => unlinkSync(path),
  sync: path => {
    const descriptor = openSync(path, constants.O_RDONLY)
    try {
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
  }
}

/** Not with `recursive`, which never returns where a parent exists but nothing can be made in it (`/proc`). */
function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return
  const parent = dirname(path)
  if (parent !== path) makeFolder(parent)
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process that is starting too may have made it.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error
  }
  try {
    disk.sync(parent)
  } catch {
    // Where the runtime refuses that, opening the journal reports it.
  }
}

function statOf({ dev, ino, nlink, size, uid, gid, mode }: Stats): FileStat {
  return { device: dev, inode: ino, links: nlink, bytes: size, owner: uid, group: gid, mode: mode & 0o777 }
}

/** Which file a call has failed on (`path` where the error names none), why, and whose it is where that matters. */
export function fileFault(files: Files, error: unknown, path: string): string {
  const named = resolve((error as NodeJS.ErrnoException).path ?? path)
  const what = `${named}: ${systemCode(error)}`
  if (systemCode(error) !== 'EACCES') return what
  try {
    const owner = files.stat(named)?.owner
    return owner === undefined ? what : `${what}; it belongs to user ${owner}`
  } catch {
    return what
  }
}
