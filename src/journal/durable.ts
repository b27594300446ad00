/** Making sure that the device holds what the system's cache shows. */
import { Buffer } from 'node:buffer'
import { constants } from 'node:os'
import { systemCode } from '../errors.ts'
import { BLOCK_BYTES, READ_CHUNK_BYTES } from '../limits.ts'
import { readPieces, syncDescriptor, type Descriptor, type Files } from './files.ts'

/** What a sync gives where the file system has none, and where the runtime refuses it. */
const WITHOUT_SYNC = ['EINVAL', 'ENOTSUP', 'EOPNOTSUPP']
const CANNOT_SYNC = ['ERR_ACCESS_DENIED', ...WITHOUT_SYNC]

const FORBIDDEN = ['EACCES', 'EPERM', 'EROFS', 'ERR_ACCESS_DENIED']

const EDQUOT = -constants.errno.EDQUOT

/** Whether an error says that there is no room, which may change. */
export function isFull(error: unknown): boolean {
  // Node 20 has no name for the error of an exhausted quota.
  return ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(systemCode(error)) ||
    (error as NodeJS.ErrnoException | null)?.errno === EDQUOT
}

/** Whether an error says that this process may not do something, as with what is another user's, or read-only. */
export function isForbidden(error: unknown): boolean { return FORBIDDEN.includes(systemCode(error)) }

/** Makes the names in a folder durable, or throws an error that names the folder and says what helps. */
export function syncNames(files: Files, folder: string): void {
  try {
    files.sync(folder)
  } catch (error) {
    const code = systemCode(error)
    const what = `${folder}: ${code}; its file system cannot make names durable; use another file system`
    throw Object.assign(WITHOUT_SYNC.includes(code) ? new Error(what) : error as Error, { code, path: folder })
  }
}

/** What the call gives; undefined where this process may not do that. */
export function ifAllowed<T>(call: () => T): T | undefined { return unless(FORBIDDEN, call) }

/** Makes a file, or the names in a folder, durable; false where that cannot be asked for. */
export function sync(files: Files, path: string): boolean {
  return unless(CANNOT_SYNC, () => { files.sync(path); return true }) ?? false
}

/** The same for an open file, such as standard output. */
export function syncOpen(descriptor: Descriptor): void { unless(CANNOT_SYNC, () => syncDescriptor(descriptor)) }

/** What the call gives; undefined where it fails with one of these codes. */
function unless<T>(codes: readonly string[], call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if (!codes.includes(systemCode(error))) throw error
    return undefined
  }
}

/**
 * Makes a file durable that somebody else may have written. After an I/O error a sync may succeed though the device
 * lacks what the cache holds, if another process has seen the error; so what may be hit by that, from `doubtfulFrom`
 * on, is written again. Where the runtime refuses to sync, the whole file is; false where that has nothing to write.
 */
export function makeDurable(files: Files, path: string, doubtfulFrom: number = Infinity): boolean {
  const isSynced = sync(files, path)
  const from = isSynced ? doubtfulFrom : 0
  if (from >= files.stat(path)!.bytes) return isSynced
  overwrite(files, path, target => {
    for (const [piece, at] of readPieces(files, path, from)) writeAll(files, target, piece, at)
  })
  return true
}

/**
 * Cuts a file back to a length, durably; false where that cannot be asked for. What is cut off is overwritten with
 * zeros first: until the truncation is durable, a power cut during the next write would mix its sectors with old ones.
 */
export function cutBack(files: Files, path: string, bytes: number): boolean {
  overwrite(files, path, target => {
    const size = files.openStat(target).bytes
    const blockEnd = Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES
    // First the rest of the last block: a tail that begins with zeros within a block is known to be no record. Where
    // what stays ends with a block, zeros would look like a lost one, and there are no old bytes to share it with.
    if (blockEnd > bytes) {
      for (let at = bytes, end = blockEnd; at < size; at = end, end = at + READ_CHUNK_BYTES) {
        writeAll(files, target, Buffer.alloc(Math.min(end, size) - at), at)
      }
    }
    files.truncate(target, bytes)
  })
  return makeDurable(files, path, Math.max(0, bytes - 1))
}

function overwrite(files: Files, path: string, act: (target: Descriptor) => void): void {
  const target = files.openToOverwrite(path)
  try {
    act(target)
  } finally {
    files.close(target)
  }
}

function writeAll(files: Files, descriptor: Descriptor, bytes: Buffer, offset: number): void {
  for (let at = 0; at < bytes.length;) at += files.writeAt(descriptor, bytes.subarray(at), offset + at)
}
