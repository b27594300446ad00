/**
 * Whether the bytes behind the last whole line are the rest of one write that a crash left
 * unfinished. Such a write was never acknowledged; anything else is damage. Sectors that were not
 * written are zeros.
 *
 * Rule n here is rule 2.n of the README (Recovery). All must hold, so an acknowledged write is
 * never taken for torn, unless damage left exactly what a crash leaves of the last write.
 */
import { Buffer } from 'node:buffer'
import { BLOCK_BYTES, MAX_SHORT_WRITE_BYTES, MAX_WRITE_BYTES, SECTOR_BYTES } from '../limits.ts'
import { endedLines, isLong, parseLine, startsWrite } from './line.ts'

/** Offsets in the file, in bytes: its first byte, and behind its last one. */
interface Place {
  readonly start: number
  readonly end: number
}

/** It begins with malformed line `seq`. */
interface Tail extends Place {
  /** A character for each byte. */
  readonly text: string
  readonly seq: number
  /** What its first line shows: its type, and the first character of its seal. */
  readonly type: string | undefined
  readonly sealed: string | undefined
  /** Runs of zero bytes, each as long as it is. */
  readonly zeros: readonly Place[]
}

/** Says how the tail breaks the rule. */
type TornRule = (tail: Tail) => string | undefined

const RULES: readonly TornRule[] = [
  isTooLong,
  beginsOtherwise,
  isOfRenamedFile,
  lacksBlock,
  hasOtherWrite,
  hasOtherBytes,
  hasOtherLine
]

const SHOWN =
  /^\{"seq":\d+,"time":"[^"\0]*","type":"([a-z]+\.[a-z]+)"(?:,"by":\w+,"key":"\w+","sealed":"([\w+/]))?/

/**
 * Why a tail is not torn. `text` has a character for each byte; it begins at `offset` in the file,
 * as line `seq`.
 */
export function tornFault(text: string, offset: number, seq: number): string | undefined {
  const [, type, sealed] = SHOWN.exec(text) ?? []
  const zeros = Array.from(text.matchAll(/\0+/g), ({ index, 0: run }) => ({
    start: offset + index,
    end: offset + index + run.length
  }))
  const tail = { text, seq, type, sealed, zeros, start: offset, end: offset + text.length }
  for (const rule of RULES) {
    const fault = rule(tail)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Whether an event of this type can make a write of more than `MAX_SHORT_WRITE_BYTES`. */
export function mayBeLong({ type }: { readonly type: string }): boolean {
  return /^(entry|entries|fields)\./.test(type)
}

/** Rule 1. A long line is alone in its write. A line that has not arrived may have been long. */
function isTooLong({ text, type, sealed }: Tail): string | undefined {
  const isOfLongLine =
    type === undefined ||
    (mayBeLong({ type }) &&
      (sealed === undefined || isLong({ sealed: Buffer.from(`${sealed}A`, 'base64') })))
  return text.length > (isOfLongLine ? MAX_WRITE_BYTES : MAX_SHORT_WRITE_BYTES)
    ? 'what follows is longer than its write can be'
    : undefined
}

/** Rule 2: what was written of its beginning. */
function beginsOtherwise({ text, seq }: Tail): string | undefined {
  const whole = `{"seq":${seq},"time":"`
  const written = text.slice(0, whole.length).replace(/\0.*/s, '')
  return whole.startsWith(written) ? undefined : `it does not begin as line ${seq} would`
}

/**
 * Rule 3: no append makes the line of a checkpoint, or the first line of a journal that was made
 * whole.
 */
function isOfRenamedFile({ seq, type }: Tail): string | undefined {
  if (type === undefined) {
    return seq === 1
      ? 'it may be of any journal (one that held nothing yet can be removed)'
      : undefined
  }
  return /^journal\.|\.kept$/.test(type)
    ? 'its type is of a file that was renamed when it was whole'
    : undefined
}

/** Rule 4. A block of zeros may have held older writes. */
function lacksBlock(tail: Tail): string | undefined {
  const { start, zeros } = tail
  // Zeros from within a block on: the tail was being cut back, or nothing of it arrived in that
  // block. All of it is unacknowledged.
  const isUnwritten = zeros[0]?.start === start && start % BLOCK_BYTES !== 0
  const isLost = zeros.some(run => fillsBlock(run, tail) && !isLengthAlone(run, tail))
  return isLost && !isUnwritten ? 'a block of the file is lost' : undefined
}

/** A block, or what the file has of its last one. */
function fillsBlock(run: Place, tail: Tail): boolean {
  const block = firstBlock(run)
  return block < run.end && run.end >= Math.min(block + BLOCK_BYTES, tail.end)
}

/**
 * ext4 may record the file's length before the new blocks of the last write, if these are more than
 * one.
 */
function isLengthAlone(run: Place, tail: Tail): boolean {
  return run.start > tail.start && run.end === tail.end && run.end - firstBlock(run) > BLOCK_BYTES
}

function firstBlock({ start }: Place): number {
  return Math.ceil(start / BLOCK_BYTES) * BLOCK_BYTES
}

/**
 * Rule 7, judged before the other rules about lines, since it says more. If a line's end is lost,
 * the next line, which may be whole, stands at the end of a malformed line.
 */
function hasOtherWrite({ text }: Tail): string | undefined {
  for (const { start, end } of endedLines(text)) {
    const ended = text.slice(start, end)
    const line = parseLine(ended.slice(Math.max(0, ended.lastIndexOf('{"seq":'))))
    if (line !== undefined && startsWrite(line)) return 'another write follows it'
  }
  return undefined
}

/** A byte that no line has, or that does not follow a line's end. */
const FOREIGN = /[^\0\n"+,\-./0-9:=A-Za-z{}]|\}[^\0\n]/

/**
 * Rule 5. Sectors are lost whole, but the write may begin, and the file may end, within a sector.
 */
function hasOtherBytes({ text, zeros, start, end }: Tail): string | undefined {
  if (FOREIGN.test(text)) return 'it holds bytes that no write leaves there'
  const areSectors = zeros.every(
    run =>
      (run.start === start || run.start % SECTOR_BYTES === 0) &&
      (run.end === end || run.end % SECTOR_BYTES === 0)
  )
  return areSectors ? undefined : 'it holds zeros that are no lost sector'
}

/** Rule 6. */
function hasOtherLine({ text, zeros, start: offset }: Tail): string | undefined {
  for (const { start, end } of endedLines(text)) {
    const isLost = zeros.some(run => run.start >= offset + start && run.end <= offset + end)
    if (isLost || parseLine(text.slice(start, end)) !== undefined) continue
    return 'a line of it is ended, and no sector of that is lost'
  }
  return undefined
}
