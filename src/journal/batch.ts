/** What goes into one write. */
import { Buffer } from 'node:buffer'
import { MAX_COMMIT_BYTES, MAX_COMMIT_RECORDS } from '../limits.ts'
import type { JournalRecord, Fact } from './journal.ts'
import type { Key } from './keys.ts'
import { formatLine, NONCE_BYTES } from './line.ts'

/** The records of one write, and their lines. */
export class Batch {
  readonly records: JournalRecord[] = []
  seq: number
  head: string
  readonly #time: string
  /** Without line ends; ASCII, since what is not is sealed, and a seal is base64. */
  readonly lines: string[] = []
  /** Of all lines, bytes. */
  length = 0

  constructor(seq: number, head: string, time: string) { this.seq = seq; this.head = head; this.#time = time }

  /** Adds a record; says whether another one has room. */
  add(fact: Fact, key: Key, nonce: Buffer): boolean {
    const seq = ++this.seq
    const line = formatLine(fact, {
      seq, time: this.#time, previousHash: this.head, key, nonce, startsWrite: this.records.length === 0
    })
    this.records.push({ seq, time: this.#time, type: fact.type, by: fact.by, data: fact.data })
    this.lines.push(line.text)
    this.length += line.text.length
    this.head = line.hash
    return this.records.length < MAX_COMMIT_RECORDS && this.length < MAX_COMMIT_BYTES
  }

  /** The lines as they are written. They are let go of: a write takes its time, and its records are enough. */
  takeBytes(): Buffer {
    const bytes = Buffer.from([...this.lines, ''].join('\n'), 'latin1')
    this.lines.length = 0
    return bytes
  }
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
