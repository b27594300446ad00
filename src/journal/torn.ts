/**
 * What a crash leaves of a write at the end of a journal, and how it is cut off; the rules are those of the README.
 *
 * Sectors that were not written are zeros. A write that was acknowledged is never taken for a torn one, unless
 * damage has left exactly what a crash would have left of the last one.
 */
import { Buffer } from 'node:buffer'
import { BLOCK_BYTES, MAX_WRITE_BYTES, READ_CHUNK_BYTES, SECTOR_BYTES } from '../limits.ts'
import { piecesOf, trySync, type Descriptor, type Files } from './files.ts'
import { parseLine, startsWrite } from './line.ts'

const SHOWN_TYPE = /^\{"seq":\d+,"time":"[^"\0]*","type":"([a-z]+\.[a-z]+)"/

/**
 * Why a tail is not one torn write; undefined: it is. `tail` has a character for each byte, from the first line on
 * that does not have the form; that would be number `seq`, and begins at `offset` in the file.
 */
export function tornFault(tail: string, offset: number, seq: number): string | undefined {
  if (tail.length > MAX_WRITE_BYTES) return 'what follows is longer than a write'
  const whole = `{"seq":${seq},"time":"`
  const begins = tail.slice(0, whole.length).replace(/\0.*/s, '')
  if (!whole.startsWith(begins)) return `it does not begin as line ${seq} would`
  const type = SHOWN_TYPE.exec(tail)?.[1]
  if (type === undefined && seq === 1) return 'it may be of any journal (one that held nothing yet can be removed)'
  // No append has made a line of a checkpoint, or the first line of a journal that was made whole.
  if (/^journal\.|\.kept$/.test(type ?? '')) return 'its type is of a file that was renamed when it was whole'
  const runs = Array.from(tail.matchAll(/\0+/g), ({ index, 0: zeros }) => ({ start: index, end: index + zeros.length }))
  // A tail that begins with zeros within a block was being cut back, or nothing of it arrived in that block.
  const isUnwritten = runs[0]?.start === 0 && offset % BLOCK_BYTES !== 0
  if (!isUnwritten && runs.some(run => holdsLostBlock(run, tail.length, offset))) return 'a block of the file is lost'
  const lost = runs.filter(run => isLostSectors(run, tail.length, offset))
  for (let start = 0, end = tail.indexOf('\n'); end >= 0; start = end + 1, end = tail.indexOf('\n', start)) {
    const text = tail.slice(start, end)
    // If a line end was lost, the next line is the end of a malformed one.
    const at = Math.max(0, text.lastIndexOf('{"seq":'))
    const line = parseLine(text.slice(at))
    if (line !== undefined && startsWrite(line)) return 'another write follows it'
    const isWhole = line !== undefined && at === 0
    if (!isWhole && !lost.some(run => run.start >= start && run.end <= end)) {
      return 'a line of it is ended, and no sector of that is lost'
    }
  }
  return undefined
}

/** Where zeros are, in characters of the tail. */
interface Run { readonly start: number, readonly end: number }

/** Whether zeros are sectors that were not written: the write may begin, and the file end, within one. */
function isLostSectors({ start, end }: Run, tailBytes: number, offset: number): boolean {
  return (start === 0 || (offset + start) % SECTOR_BYTES === 0) &&
    (end === tailBytes || (offset + end) % SECTOR_BYTES === 0)
}

/**
 * Whether zeros fill a block of the file, which is damage, since it may have held older writes. More than a block of
 * zeros at the end is no damage: ext4 may record a file's length before the new blocks of its last write.
 */
function holdsLostBlock({ start, end }: Run, tailBytes: number, offset: number): boolean {
  const block = Math.ceil((offset + start) / BLOCK_BYTES) * BLOCK_BYTES - offset
  if (start > 0 && end === tailBytes && end - block > BLOCK_BYTES) return false
  return block < end && Math.min(block + BLOCK_BYTES, tailBytes) <= end
}

/**
 * Cuts a file back, durably. What is cut off is overwritten with zeros first: until the cut is durable, a power cut
 * during the next write would mix its sectors with old ones.
 */
export function cutBack(files: Files, file: Descriptor, bytes: number): void {
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
  settle(files, file, Math.max(0, bytes - 1))
}

/**
 * Makes a file durable that others may have written. After an I/O error a sync may succeed though the device lacks
 * what the cache holds, if another process has seen the error: so what may be hit by that, from `from` on, is written
 * again. If the runtime refuses to sync, the last block is, which brings the file's length to the device.
 */
export function settle(files: Files, file: Descriptor, from: number): void {
  const isSynced = trySync(() => files.syncOpen(file))
  const lastBlock = Math.floor(Math.max(0, files.openStat(file).bytes - 1) / BLOCK_BYTES) * BLOCK_BYTES
  for (const [piece, at] of piecesOf(files, file, isSynced ? from : Math.min(from, lastBlock))) {
    writeAll(files, file, piece, at)
  }
}

function writeAll(files: Files, descriptor: Descriptor, bytes: Buffer, offset: number): void {
  for (let at = 0; at < bytes.length;) at += files.writeAt(descriptor, bytes.subarray(at), offset + at)
}
