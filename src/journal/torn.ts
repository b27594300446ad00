/**
 * What a crash leaves of a write at a journal's end, by the README's rules (Recovery, 2).
 *
 * Unwritten sectors are zeros. An acknowledged write is never taken for torn, unless damage left exactly what a crash
 * would have left of the last write.
 */
import { BLOCK_BYTES, MAX_WRITE_BYTES, SECTOR_BYTES } from '../limits.ts'
import { parseLine, startsWrite } from './line.ts'

const SHOWN_TYPE = /^\{"seq":\d+,"time":"[^"\0]*","type":"([a-z]+\.[a-z]+)"/

/**
 * Why a tail is not one torn write. `tail` has a character for each byte; it begins with malformed line `seq`, at
 * `offset` in the file.
 */
export function tornFault(tail: string, offset: number, seq: number): string | undefined {
  if (tail.length > MAX_WRITE_BYTES) return 'what follows is longer than a write'
  const whole = `{"seq":${seq},"time":"`
  const begins = tail.slice(0, whole.length).replace(/\0.*/s, '')
  if (!whole.startsWith(begins)) return `it does not begin as line ${seq} would`
  const type = SHOWN_TYPE.exec(tail)?.[1]
  if (type === undefined && seq === 1) return 'it may be of any journal (one that held nothing yet can be removed)'
  // No append makes a checkpoint's line, or the first line of a journal made whole.
  if (/^journal\.|\.kept$/.test(type ?? '')) return 'its type is of a file that was renamed when it was whole'
  const runs = Array.from(tail.matchAll(/\0+/g), ({ index, 0: zeros }) => ({ start: index, end: index + zeros.length }))
  // The tail was being cut back, or nothing of it arrived in that block.
  const isUnwritten = runs[0]?.start === 0 && offset % BLOCK_BYTES !== 0
  if (!isUnwritten && runs.some(run => holdsLostBlock(run, tail.length, offset))) return 'a block of the file is lost'
  const lost = runs.filter(run => isLostSectors(run, tail.length, offset))
  for (let start = 0, end = tail.indexOf('\n'); end >= 0; start = end + 1, end = tail.indexOf('\n', start)) {
    const text = tail.slice(start, end)
    // After a lost line end, a good line may end a malformed line.
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

/** In characters of the tail. */
interface Run { readonly start: number, readonly end: number }

/** Unwritten sectors are whole, but the write may begin, and the file end, within one. */
function isLostSectors({ start, end }: Run, tailBytes: number, offset: number): boolean {
  return (start === 0 || (offset + start) % SECTOR_BYTES === 0) &&
    (end === tailBytes || (offset + end) % SECTOR_BYTES === 0)
}

/**
 * A block of zeros is damage: it may have held older writes. More than a block at the end is not: ext4 may record the
 * length before the last write's new blocks.
 */
function holdsLostBlock({ start, end }: Run, tailBytes: number, offset: number): boolean {
  const block = Math.ceil((offset + start) / BLOCK_BYTES) * BLOCK_BYTES - offset
  if (start > 0 && end === tailBytes && end - block > BLOCK_BYTES) return false
  return block < end && Math.min(block + BLOCK_BYTES, tailBytes) <= end
}
