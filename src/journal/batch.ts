/** The lines of one write. */
import type { Buffer } from 'node:buffer'
import type { EncodedEvent, JournalRecord } from './journal.ts'
import type { Key } from './keys.ts'
import { formatLine, NONCE_BYTES } from './line.ts'

/** The records of one write, and their lines. */
export interface Batch {
  readonly records: readonly JournalRecord[]
  /** Without line ends; ASCII, since what is not is sealed, and a seal is base64. */
  readonly lines: readonly string[]
  /** The last line's hash. */
  readonly head: string
}

/** What a batch is sealed with. */
export interface Seal {
  readonly time: string
  readonly key: Key
  readonly nonce: () => Buffer
}

/** Seals events that follow the record `seq`, whose hash is `head`. */
export function sealBatch(
  events: readonly EncodedEvent[], seq: number, head: string, { time, key, nonce }: Seal
): Batch {
  const records: JournalRecord[] = []
  const lines: string[] = []
  for (const event of events) {
    const { type, by, data } = event
    const line = formatLine(event, {
      seq: ++seq, time, previousHash: head, key, nonce: nonce(), startsWrite: lines.length === 0
    })
    records.push({ seq, time, type, by, data })
    lines.push(line.text)
    head = line.hash
  }
  return { records, lines, head }
}

/** Nonces, many from each call for randomness: such a call costs as much as sealing a record. */
export function nonces(random: (bytes: number) => Buffer): () => Buffer {
  let pool = random(0)
  return () => {
    if (pool.length < NONCE_BYTES) pool = random(NONCE_BYTES * 256)
    const nonce = pool.subarray(0, NONCE_BYTES)
    pool = pool.subarray(NONCE_BYTES)
    return nonce
  }
}
