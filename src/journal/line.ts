/**
 * A line of the journal: one record, sealed by AES-256-GCM (NIST SP 800-38D) and chained by
 * SHA-256; here in two lines:
 *
 * {"seq":1,"time":"2026-01-31T12:00:00.000Z","type":"entry.created","by":null,
 * "key":"9f86d081","sealed":"…","hash":"…"}
 *
 * Each hash covers all lines before it, each seal the hash before it: without the key nobody can
 * read, change, move, insert or cut out a line unnoticed. Missing newest lines show only in a head
 * noted elsewhere.
 */
import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, hash } from 'node:crypto'
import { MAX_COMMIT_BYTES, MAX_LINE_BYTES } from '../limits.ts'
import type { EncodedEvent, JournalRecord } from './journal.ts'
import type { Key } from './keys.ts'

export const FIRST_HASH: string = '0'.repeat(64)

export const NONCE_BYTES = 12
const TAG_BYTES = 16
/**
 * Bits of the nonce's first byte; all its other bits are random. This one: a write's first line.
 */
const STARTS_WRITE = 0x80
/** This one: a line with more than `MAX_COMMIT_BYTES` of data. */
const IS_LONG = 0x40

// Named groups would cost more than the match.
const HEAD = new RegExp(
  '^(\\{"seq":([1-9][0-9]{0,15})' +
    ',"time":"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z)"' +
    ',"type":"([a-z]+\\.[a-z]+)","by":(null|[1-9][0-9]{0,15}),"key":"([0-9a-f]{8})"),"sealed":"'
)
const TAIL = /^","hash":"[0-9a-f]{64}"\}$/
const TAIL_BYTES = '","hash":""}'.length + 64

/** Neither hash nor seal is verified. */
export interface Line {
  readonly seq: number
  readonly time: string
  readonly type: string
  readonly by: number | null
  readonly key: string
  readonly sealed: Buffer
  readonly hash: string
  /** The end of the seal's additional data. */
  readonly sealedHead: string
  readonly text: string
}

/** Undefined if it is too long, or not exactly of the form. */
export function parseLine(text: string): Line | undefined {
  if (text.length > MAX_LINE_BYTES) return undefined
  const head = HEAD.exec(text)
  if (head === null || !TAIL.test(text.slice(-TAIL_BYTES))) return undefined
  const base64 = text.slice(head[0].length, -TAIL_BYTES)
  const sealed = Buffer.from(base64, 'base64')
  // The decoder would take other spellings, too.
  if (sealed.length < NONCE_BYTES + TAG_BYTES || sealed.toString('base64') !== base64)
    return undefined
  const [, sealedHead = '', seq, time = '', type = '', by, key = ''] = head
  return {
    seq: Number(seq),
    time,
    type,
    by: by === 'null' ? null : Number(by),
    key,
    sealed,
    hash: text.slice(-66, -2),
    sealedHead,
    text
  }
}

const LINE_FEED = 0x0a

/**
 * The places of the lines that have an end, from `start` to before `end`, without their line feeds.
 */
export function* endedLines(
  text: string | Buffer
): Generator<{ readonly start: number; readonly end: number }, void, void> {
  const lineFeed = (from: number): number =>
    typeof text === 'string' ? text.indexOf('\n', from) : text.indexOf(LINE_FEED, from)
  for (let start = 0, end = lineFeed(0); end >= 0; start = end + 1, end = lineFeed(start))
    yield { start, end }
}

export function startsWrite({ sealed }: Pick<Line, 'sealed'>): boolean {
  return (sealed[0]! & STARTS_WRITE) !== 0
}

/** In lines of versions before 1.1, the bit is random. */
export function isLong({ sealed }: Pick<Line, 'sealed'>): boolean {
  return (sealed[0]! & IS_LONG) !== 0
}

/** The hash that the line must have. */
export function hashOf({ text }: Line, previousHash: string): string {
  return chainHash(previousHash, text.slice(0, 1 - TAIL_BYTES))
}

export function isChained(line: Line, previousHash: string): boolean {
  return line.hash === hashOf(line, previousHash)
}

/** Whether a newer version wrote it: damage never makes a hash follow. */
export function isOfNewerForm(text: string, previousHash: string): boolean {
  const [, head, ownHash] = /^(\{"seq":[^]*),"hash":"([0-9a-f]{64})"\}$/.exec(text) ?? []
  return head !== undefined && ownHash === chainHash(previousHash, head)
}

function chainHash(previousHash: string, hashedHead: string): string {
  return hash('sha256', Buffer.from(previousHash + hashedHead, 'latin1'), 'hex')
}

const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** With a four-digit year, whatever the clock says. */
export function isoTime(wallMs: number): string {
  return new Date(Math.min(Math.max(wallMs, 0), LAST_MS)).toISOString()
}

type Unsealed = Pick<EncodedEvent, 'type' | 'by' | 'json'> & Pick<JournalRecord, 'seq' | 'time'>

/** `nonce`: 12 bytes, never used with this key. */
export function sealLine(
  { seq, time, type, by, json }: Unsealed,
  previousHash: string,
  key: Key,
  nonce: Buffer,
  startsWrite: boolean
): readonly [text: string, hash: string] {
  const { name, secret } = key
  const sealedHead = `{"seq":${seq},"time":"${time}","type":"${type}","by":${by},"key":"${name}"`
  nonce[0] =
    (nonce[0]! & ~(STARTS_WRITE | IS_LONG)) |
    (startsWrite ? STARTS_WRITE : 0) |
    (Buffer.byteLength(json) > MAX_COMMIT_BYTES ? IS_LONG : 0)
  const cipher = createCipheriv('aes-256-gcm', secret, nonce)
  cipher.setAAD(Buffer.from(previousHash + sealedHead, 'latin1'))
  const ciphertext = cipher.update(json, 'utf8')
  cipher.final()
  const sealed = Buffer.concat([nonce, ciphertext, cipher.getAuthTag()])
  const hashedHead = `${sealedHead},"sealed":"${sealed.toString('base64')}"`
  const ownHash = chainHash(previousHash, hashedHead)
  return [`${hashedHead},"hash":"${ownHash}"}`, ownHash]
}

/** `seq` and `head`: of the record before. Lines come without line feeds. */
export function sealBatch(
  events: readonly EncodedEvent[],
  seq: number,
  head: string,
  { time, key, nonce }: { readonly time: string; readonly key: Key; readonly nonce: () => Buffer }
): {
  readonly records: readonly JournalRecord[]
  readonly lines: readonly string[]
  readonly head: string
} {
  const records: JournalRecord[] = []
  const lines: string[] = []
  for (const { type, by, data, json } of events) {
    const [text, hash] = sealLine(
      { seq: ++seq, time, type, by, json },
      head,
      key,
      nonce(),
      lines.length === 0
    )
    records.push({ seq, time, type, by, data })
    lines.push(text)
    head = hash
  }
  return { records, lines, head }
}

/** Takes many at once: a call for randomness costs as much as to seal a record. */
export function nonces(random: (bytes: number) => Buffer): () => Buffer {
  let pool = random(0)
  return () => {
    if (pool.length < NONCE_BYTES) pool = random(NONCE_BYTES * 256)
    const nonce = pool.subarray(0, NONCE_BYTES)
    pool = pool.subarray(NONCE_BYTES)
    return nonce
  }
}

/** Throws if the key is wrong, or the line was changed. */
export function openLine({ sealed, sealedHead }: Line, previousHash: string, key: Key): unknown {
  try {
    const end = sealed.length - TAG_BYTES
    const decipher = createDecipheriv('aes-256-gcm', key.secret, sealed.subarray(0, NONCE_BYTES))
    decipher.setAAD(Buffer.from(previousHash + sealedHead, 'latin1'))
    decipher.setAuthTag(sealed.subarray(end))
    const plain = decipher.update(sealed.subarray(NONCE_BYTES, end))
    decipher.final() // throws unless the tag is right; gives no bytes
    return JSON.parse(plain.toString())
  } catch (cause) {
    throw new Error('its seal does not open', { cause })
  }
}
