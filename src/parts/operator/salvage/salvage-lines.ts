/** Finds what is left of lines in a damaged file: heads, some with their whole seal, and hashes. */
import { Buffer } from 'node:buffer'
import { systemCode } from '../../../errors.ts'
import type { Descriptor, Files } from '../../../journal/files.ts'
import { endedLines, FIRST_HASH, parseLine, type Line } from '../../../journal/line.ts'
import { MAX_LINE_BYTES, READ_CHUNK_BYTES, SECTOR_BYTES } from '../../../limits.ts'

const START = '{"seq":'
const REMAINS = new RegExp(
  '\\{"seq":[1-9][0-9]{0,15},"time":"[^"]{24}","type":"[a-z]+\\.[a-z]+","by":' +
    '([^"]{1,17},"key":"[0-9a-f]{8}","sealed":")?|"hash":"([0-9a-f]{64})"\\}',
  'g'
)
/** A line's end with its hash is shorter. */
const END_CHARACTERS = 128

/** Offsets in bytes: its start, and behind its end. */
interface Place {
  readonly at: number
  readonly end: number
}

/** `line`: not verified, and its hash is not its own; undefined if its seal is not whole. */
export interface LineHead extends Place {
  readonly line: Line | undefined
}

export interface Hash extends Place {
  readonly hash: string
}

export type Remains = LineHead | Hash

/** Bytes that the device cannot read count as zeros; `unreadable` gets their number. */
export function* remainsOf(
  files: Files,
  path: string,
  unreadable: (bytes: number) => void
): Generator<Remains, void, void> {
  let at = 0
  let held = '' // since the last line feed, from `at` on
  for (const read of chunksOf(files, path, unreadable)) {
    let start = 0
    for (const line of endedLines(read)) {
      held += read.toString('latin1', line.start, line.end)
      yield* remainsIn(held, at)
      at += held.length + 1
      held = ''
      start = line.end + 1
    }
    held += read.toString('latin1', start)
    if (held.length <= MAX_LINE_BYTES) continue
    // No line is so long: only its possible start or end is kept.
    const last = held.lastIndexOf(START)
    const cut = last > 0 ? last : held.length - END_CHARACTERS
    yield* remainsIn(held.slice(0, cut), at)
    at += cut
    held = held.slice(cut)
  }
  yield* remainsIn(held, at)
}

/** A chunk is valid until the next one. */
function* chunksOf(
  files: Files,
  path: string,
  unreadable: (bytes: number) => void
): Generator<Buffer, void, void> {
  const bytes = files.stat(path)?.size ?? 0
  const whole = Buffer.allocUnsafe(READ_CHUNK_BYTES)
  const descriptor = files.openToRead(path)
  try {
    for (let at = 0; at < bytes; at += whole.length) {
      const chunk = whole.subarray(0, bytes - at)
      if (!isReadWhole(files, descriptor, chunk, at)) {
        for (let from = 0; from < chunk.length; from += SECTOR_BYTES) {
          const sector = chunk.subarray(from, from + SECTOR_BYTES)
          if (isReadWhole(files, descriptor, sector, at + from)) continue
          sector.fill(0) // bytes of the chunk before must not stand here
          unreadable(sector.length)
        }
      }
      yield chunk
    }
  } finally {
    files.close(descriptor)
  }
}

function isReadWhole(files: Files, descriptor: Descriptor, into: Buffer, at: number): boolean {
  try {
    return files.readAt(descriptor, into, at) === into.length
  } catch (error) {
    if (systemCode(error) !== 'EIO') throw error
    return false
  }
}

function* remainsIn(text: string, from: number): Generator<Remains, void, void> {
  for (const {
    0: { length },
    1: sealing,
    2: hash,
    index
  } of text.matchAll(REMAINS)) {
    const [at, end] = [from + index, from + index + length]
    if (hash !== undefined) {
      yield { at, end, hash: copied(hash) }
      continue
    }
    const close = sealing === undefined ? -1 : text.indexOf('"', index + length) + 1
    const line =
      close <= 0 ? undefined : parseLine(`${text.slice(index, close)},"hash":"${FIRST_HASH}"}`)
    yield { at, end: line === undefined ? end : from + close, line }
  }
}

/** A substring would keep the whole text in memory. */
function copied(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
