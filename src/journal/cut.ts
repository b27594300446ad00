/** Cutting a file back, and making sure that the device holds what the system's cache shows of its end. */
import { Buffer } from 'node:buffer'
import { BLOCK_BYTES, READ_CHUNK_BYTES } from '../limits.ts'
import { isSynced, piecesOf, type Descriptor, type Files } from './files.ts'

/**
 * Makes a file durable that others may have written. After an I/O error a sync may succeed though the device lacks
 * what the cache holds, if another process has seen the error: so what may be hit by that, from `from` on, is written
 * again. Where the runtime refuses to sync, the last block is, which brings the file's length to the device.
 * False if that could not be asked for at all.
 */
export function settle(files: Files, file: Descriptor, from: number): boolean {
  const wasSynced = isSynced(() => files.syncOpen(file))
  const { bytes } = files.openStat(file)
  const lastBlock = Math.floor(Math.max(0, bytes - 1) / BLOCK_BYTES) * BLOCK_BYTES
  const start = wasSynced ? from : Math.min(from, lastBlock)
  for (const [piece, at] of piecesOf(files, file, start)) writeAll(files, file, piece, at)
  return wasSynced || bytes > 0
}

/**
 * Cuts a file back, durably; false if that cannot be asked for. What is cut off is overwritten with zeros first: until
 * the cut is durable, a power cut during the next write would mix its sectors with old ones.
 */
export function cutBack(files: Files, file: Descriptor, bytes: number): boolean {
  const size = files.openStat(file).bytes
  const blockEnd = Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES
  // First the rest of the last block: a tail that begins with zeros within a block is known to be no record. If what
  // stays ends with a block, zeros would look like a lost block, and there are no old bytes to share it with.
  if (blockEnd > bytes) {
    for (let at = bytes, end = blockEnd; at < size; at = end, end = at + READ_CHUNK_BYTES) {
      writeAll(files, file, Buffer.alloc(Math.min(end, size) - at), at)
    }
  }
  files.truncate(file, bytes)
  return settle(files, file, Math.max(0, bytes - 1))
}

function writeAll(files: Files, descriptor: Descriptor, bytes: Buffer, offset: number): void {
  for (let at = 0; at < bytes.length;) at += files.writeAt(descriptor, bytes.subarray(at), offset + at)
}
