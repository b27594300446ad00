/**
 * The file layer: every contact of this program with the disk. It is an argument of whoever uses it, so that a test
 * can make the Nth call fail or keep a disk of its own.
 */
import {
  chmodSync, closeSync, constants, existsSync, fstatSync, fsyncSync, mkdirSync, openSync, readFileSync, readSync,
  readdirSync, realpathSync, renameSync, statSync, truncateSync, unlinkSync, write, writeSync, type Stats
} from 'node:fs'
import { Buffer } from 'node:buffer'
import { dirname } from 'node:path'

/** What identifies a file, and how long it is. */
export interface FileStat {
  readonly device: number
  readonly inode: number
  readonly bytes: number
  /** The user's number. */
  readonly owner: number
  /** The permission bits. */
  readonly mode: number
}

/** An open file, as the file layer numbers it. */
export type Descriptor = number

/** All calls throw (or give their callback) the system's error, with its `code`. */
export interface Files {
  /** Makes a folder and its parents, mode 0700; no error if it stands. */
  makeFolder(path: string): void
  list(folder: string): string[]
  /** The stat of a file or folder; undefined if it does not exist. Links are followed. */
  stat(path: string): FileStat | undefined
  /** The path without links; the path itself if nothing stands there. */
  real(path: string): string
  setMode(path: string, mode: number): void
  /** Reads a small file whole. */
  read(path: string): Buffer
  openToRead(path: string): Descriptor
  /** Reads at an offset into the buffer from its start; gives the number of bytes, 0 at the end. */
  readAt(descriptor: Descriptor, into: Buffer, offset: number): number
  /** Opens to append durably (`O_APPEND|O_DSYNC`): what a write reports as written is on the device. */
  openToAppend(path: string): Descriptor
  /** The same for a new file, mode 0600; fails with EEXIST if the name is taken. */
  createToAppend(path: string): Descriptor
  /** Appends; the callback gets the number of bytes written, which may be fewer than given. */
  append(descriptor: Descriptor, bytes: Buffer, done: (error: Error | null, written: number) => void): void
  /** The same, waiting for it. */
  appendSync(descriptor: Descriptor, bytes: Buffer): number
  openStat(descriptor: Descriptor): FileStat
  close(descriptor: Descriptor): void
  truncate(path: string, bytes: number): void
  rename(from: string, to: string): void
  remove(path: string): void
  /** Makes the names in a folder durable. Throws ERR_ACCESS_DENIED under Node's permission model. */
  syncFolder(path: string): void
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
  append: (descriptor, bytes, done) => write(descriptor, bytes, 0, bytes.length, null, done),
  appendSync: (descriptor, bytes) => writeSync(descriptor, bytes),
  openStat: descriptor => statOf(fstatSync(descriptor)),
  close: descriptor => closeSync(descriptor),
  truncate: (path, bytes) => truncateSync(path, bytes),
  rename: (from, to) => renameSync(from, to),
  remove: path => unlinkSync(path),
  syncFolder: path => {
    const descriptor = openSync(path, constants.O_RDONLY)
    try {
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
  }
}

/** Not by `recursive`, which never returns where a parent is there and nothing can be made in it (`/proc`). */
function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return
  const parent = dirname(path)
  if (parent !== path) makeFolder(parent)
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process that starts just now may have made it.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error
  }
  try {
    disk.syncFolder(parent)
  } catch {
    // Where the runtime refuses that, the start says so when it comes to the journal itself.
  }
}

function statOf(stats: Stats): FileStat {
  return { device: stats.dev, inode: stats.ino, bytes: stats.size, owner: stats.uid, mode: stats.mode & 0o777 }
}

/** A new file that is being written, durably. */
interface FileWriter {
  /** Text is written as UTF-8. */
  write(piece: Buffer | string): void
  close(): void
  /** Closes and removes it. */
  abandon(): void
}

/** Makes a new file, mode 0600, and writes it piece by piece; fails with EEXIST if the name is taken. */
export function createWriter(files: Files, path: string): FileWriter {
  const descriptor = files.createToAppend(path)
  return {
    write: piece => {
      const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
      for (let at = 0; at < bytes.length;) at += files.appendSync(descriptor, bytes.subarray(at))
    },
    close: () => files.close(descriptor),
    abandon: () => {
      files.close(descriptor)
      files.remove(path)
    }
  }
}

/** Writes a whole new file of one or more texts durably, mode 0600; leaves nothing behind when it fails. */
export function createWhole(files: Files, path: string, texts: Iterable<string>): void {
  const writer = createWriter(files, path)
  try {
    for (const text of texts) writer.write(text)
  } catch (error) {
    writer.abandon()
    throw error
  }
  writer.close()
}
