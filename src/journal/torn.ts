/**
 * What a crash leaves of a write at the end of a journal; the steps are those of the README beside this file.
 *
 * Sectors that were not written are zeros. A write that was acknowledged is never taken for a torn one, unless
 * damage has left exactly what a crash would have left of the last one.
 */
import { BLOCK_BYTES, MAX_LINE_BYTES, MAX_WRITE_BYTES, SECTOR_BYTES } from '../limits.ts'
import { parseLine, startsWrite, type Line } from './line.ts'

/** Parses an ended line, given without its line end; undefined if it is too long or does not have the form. */
export function parseEnded(text: string): Line | undefined {
  return text.length <= MAX_LINE_BYTES ? parseLine(text) : undefined
}

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
  if (isOfRewriting(type)) return 'its type is of a file that was renamed when it was whole'
  const runs = zeroRuns(tail)
  // A tail that begins with zeros within a block was being cut back, or nothing of it arrived in that block.
  const isUnwritten = runs[0]?.start === 0 && offset % BLOCK_BYTES !== 0
  if (!isUnwritten && runs.some(run => holdsLostBlock(run, tail.length, offset))) return 'a block of the file is lost'
  const lost = runs.filter(run => isLostSectors(run, tail.length, offset))
  for (let start = 0, end = tail.indexOf('\n'); end >= 0; start = end + 1, end = tail.indexOf('\n', start)) {
    const text = tail.slice(start, end)
    // Where a line end was lost, the next line is the end of a malformed one.
    const at = Math.max(0, text.lastIndexOf('{"seq":'))
    const line = parseEnded(text.slice(at))
    if (line !== undefined && startsWrite(line)) return 'another write follows it'
    const isWhole = line !== undefined && at === 0
    if (!isWhole && !lost.some(run => run.start >= start && run.end <= end)) {
      return 'a line of it is ended, and no sector of that is lost'
    }
  }
  return undefined
}

const SHOWN_TYPE = /^\{"seq":\d+,"time":"[^"\0]*","type":"([a-z]+\.[a-z]+)"/

/** Whether no append has made a line of a type: one of a checkpoint, or the first of a journal that was made whole. */
function isOfRewriting(type: string | undefined): boolean {
  return type !== undefined && (type.startsWith('journal.') || type.endsWith('.kept'))
}

/** Where zeros are, in characters of the tail. */
interface Run { readonly start: number, readonly end: number }

function zeroRuns(tail: string): Run[] {
  return Array.from(tail.matchAll(/\0+/g), ({ index, 0: zeros }) => ({ start: index, end: index + zeros.length }))
}

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
