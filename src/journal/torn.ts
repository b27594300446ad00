/**
 * Whether the bytes behind the last whole line are the rest of one write that a crash left
 * unfinished. Such a write was never acknowledged; anything else is damage. Sectors that were not
 * written are zeros.
 *
 * Rule n here is rule 2.n of the README (Recovery). All of them must hold. So an acknowledged write
 * is never taken for torn, unless damage left exactly what a crash would have left of the last
 * write.
 */
import { BLOCK_BYTES, MAX_WRITE_BYTES, SECTOR_BYTES } from '../limits.ts'
import { endedLines, parseLine, startsWrite } from './line.ts'

/** Offsets in the file, in bytes, of its first byte and behind its last one. */
interface Place {
  readonly start: number
  readonly end: number
}

/** Place of the tail, which begins with malformed line `seq`. */
interface Tail extends Place {
  /** A character for each byte. */
  readonly text: string
  readonly seq: number
  /** Its zero bytes, as long as each run of them is. */
  readonly zeros: readonly Place[]
}

/** Says how the tail breaks the rule. */
type Rule = (tail: Tail) => string | undefined

const RULES: readonly Rule[] = [
  isTooLong,
  beginsOtherwise,
  isOfRenamedFile,
  lacksBlock,
  hasOtherWrite,
  hasEndedLine
]

/**
 * Why a tail is not torn. `text` has a character for each byte; it begins at `offset` in the file,
 * as line `seq`.
 */
export function tornFault(text: string, offset: number, seq: number): string | undefined {
  const zeros = Array.from(text.matchAll(/\0+/g), ({ index, 0: run }) => ({
    start: offset + index,
    end: offset + index + run.length
  }))
  const tail: Tail = { text, seq, zeros, start: offset, end: offset + text.length }
  for (const rule of RULES) {
    const fault = rule(tail)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Rule 1. */
function isTooLong({ text }: Tail): string | undefined {
  return text.length > MAX_WRITE_BYTES ? 'what follows is longer than a write' : undefined
}

/** Rule 2: what was written of its beginning. */
function beginsOtherwise({ text, seq }: Tail): string | undefined {
  const whole = `{"seq":${seq},"time":"`
  const written = text.slice(0, whole.length).replace(/\0.*/s, '')
  return whole.startsWith(written) ? undefined : `it does not begin as line ${seq} would`
}

const SHOWN_TYPE = /^\{"seq":\d+,"time":"[^"\0]*","type":"([a-z]+\.[a-z]+)"/

/**
 * Rule 3: no append makes the line of a checkpoint, or the first line of a journal that was made
 * whole.
 */
function isOfRenamedFile({ text, seq }: Tail): string | undefined {
  const type = SHOWN_TYPE.exec(text)?.[1]
  if (type === undefined) {
    return seq === 1
      ? 'it may be of any journal (one that held nothing yet can be removed)'
      : undefined
  }
  return /^journal\.|\.kept$/.test(type)
    ? 'its type is of a file that was renamed when it was whole'
    : undefined
}

/** Rule 4: a block of zeros may have held older writes. */
function lacksBlock({ start, end, zeros }: Tail): string | undefined {
  // Within a block, the tail was being cut back, or nothing of it arrived in that block: all of it
  // is unacknowledged.
  if (zeros[0]?.start === start && start % BLOCK_BYTES !== 0) return undefined
  const isBlockLost = zeros.some(run => {
    const block = Math.ceil(run.start / BLOCK_BYTES) * BLOCK_BYTES
    const fillsBlock = block < run.end && Math.min(block + BLOCK_BYTES, end) <= run.end
    // ext4 may record the length before the last write's new blocks.
    const isLengthAlone = run.start > start && run.end === end && end - block > BLOCK_BYTES
    return fillsBlock && !isLengthAlone
  })
  return isBlockLost ? 'a block of the file is lost' : undefined
}

/**
 * Rule 6, before 5, since it says more. If a line's end is lost, the next line, which may be whole,
 * stands at the end of a malformed line.
 */
function hasOtherWrite(tail: Tail): string | undefined {
  for (const { start, end } of endedLines(tail.text)) {
    const text = tail.text.slice(start, end)
    const line = parseLine(text.slice(Math.max(0, text.lastIndexOf('{"seq":'))))
    if (line !== undefined && startsWrite(line)) return 'another write follows it'
  }
  return undefined
}

/** Rule 5. */
function hasEndedLine(tail: Tail): string | undefined {
  const lost = tail.zeros.filter(run => isLostSectors(run, tail))
  for (const { start, end } of endedLines(tail.text)) {
    const isLost = lost.some(run => run.start >= tail.start + start && run.end <= tail.start + end)
    if (isLost || parseLine(tail.text.slice(start, end)) !== undefined) continue
    return 'a line of it is ended, and no sector of that is lost'
  }
  return undefined
}

/** Sectors are lost whole, but the write may begin, and the file may end, within a sector. */
function isLostSectors(run: Place, tail: Tail): boolean {
  return (
    (run.start === tail.start || run.start % SECTOR_BYTES === 0) &&
    (run.end === tail.end || run.end % SECTOR_BYTES === 0)
  )
}
