/**
 * What the tests of the journal share: a journal in a folder behind the commit loop, and lines made by a second
 * implementation, written from the text of the format with nothing of `src/journal/line.ts`.
 */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Failure, type FailureCode } from '../../src/errors.ts'
import { openFileJournal, type FileJournal } from '../../src/journal/open-file.ts'
import { disk, type Files } from '../../src/disk/files.ts'
import type { Event, Journal, JournalLocation, JournalRecord, Rewritten, Rotated } from '../../src/journal/journal.ts'
import { CommitLoop, type Command } from '../../src/store/commit-loop.ts'

/** A list of records as the state of a commit loop. A draft is a list of its own. */
type Draft = Event[]

/** A journal behind a commit loop, as a store has it. */
export class LoopedJournal<J extends Journal = FileJournal> {
  readonly records: JournalRecord[]
  readonly warnings: readonly string[]
  readonly inner: J
  readonly #loop: CommitLoop<Draft>

  constructor(inner: J, records: JournalRecord[], warnings: readonly string[], apply: (record: JournalRecord) => void) {
    this.inner = inner
    this.records = records
    this.warnings = warnings
    this.#loop = new CommitLoop<Draft>(inner, {
      draft: () => [...records],
      applyTo: (draft, event) => { draft.push(event) },
      apply: record => { apply(record); records.push(record) }
    })
  }

  /** The data of all records that were applied. */
  get data(): unknown[] { return this.records.map(record => record.data) }

  commit<T>(command: Command<Draft, T>): Promise<T> { return this.#loop.commit(command) }
  /** Commits an event of its own. */
  record(data: unknown, by: number | null = null): Promise<void> {
    return this.commit(decisionOn({ type: 'test.noted', by, data }))
  }
  exclusively<T>(work: (journal: J, signal: AbortSignal) => T | Promise<T>): Promise<T> {
    return this.#loop.exclusively(signal => work(this.inner, signal))
  }
  health(): ReturnType<CommitLoop<Draft>['health']> { return this.#loop.health() }
  abortWork(): void { this.#loop.abortWork() }
  close(): Promise<void> { return this.#loop.close() }
}

/** One in a file, with what an operator can do to it. */
export class FileBehindLoop extends LoopedJournal<FileJournal> {
  rotateKey(): Promise<Rotated> { return this.exclusively(journal => journal.rotateKey()) }
  reencrypt(onProgress: (share: number) => void = () => {}): Promise<Rewritten> {
    return this.exclusively((journal, signal) => journal.rewrite({ onProgress, signal }))
  }
  location(): JournalLocation { return this.inner.location() }
}

/** A command that decides on an event, or on none. */
export function decisionOn(event: Event | undefined): Command<unknown, void> {
  return () => ({ outcome: undefined, event })
}

/** What a test may want otherwise than it is. */
export interface OpenOptions {
  readonly files?: Files
  readonly keyFile?: string
  readonly random?: (bytes: number) => Buffer
  readonly wallMs?: () => number
  /** Why the folder is not locked. */
  readonly unlocked?: string
  /** Called before a record is kept; may throw. */
  readonly apply?: (record: JournalRecord) => void
}

/** An open journal and what it was read into. */
export interface OpenedJournal {
  readonly journal: FileBehindLoop
  readonly records: JournalRecord[]
  readonly warnings: readonly string[]
}

let clockMs = Date.UTC(2026, 0, 31, 12)

/** Opens the journal of a folder with a clock that is a millisecond later at every look. The caller closes it. */
export async function openJournal(folder: string, options: OpenOptions = {}): Promise<OpenedJournal> {
  const { files = disk, keyFile = join(folder, KEY_FILE), random = randomBytes, apply = () => {} } = options
  const { wallMs = () => ++clockMs, unlocked } = options
  const records: JournalRecord[] = []
  const warnings: string[] = []
  const warn = (line: string): void => { warnings.push(line) }
  const inner = await openFileJournal({ files, folder, keyFile, wallMs, random, warn, unlocked }, record => {
    apply(record)
    records.push(record)
  })
  return { journal: new FileBehindLoop(inner, records, warnings, apply), records, warnings }
}

export const JOURNAL_FILE = 'journal.jsonl'
export const KEY_FILE = 'journal.key'

/** The name of a key. */
export function keyName(secret: Buffer): string { return createHash('sha256').update(secret).digest('hex').slice(0, 8) }

/** Everything that a line is made of. */
export interface LineParts {
  readonly seq: number
  readonly time: string
  readonly type: string
  readonly by: number | null
  readonly secret: Buffer
  readonly nonce: Buffer
  /** The JSON text to seal. */
  readonly json: string
  readonly previousHash: string
}

/** A line with its seal and hash, without its line end. */
export function referenceLine(parts: LineParts): { readonly text: string, readonly hash: string } {
  const { seq, time, type, by, secret, nonce, json, previousHash } = parts
  const head = `{"seq":${seq},"time":"${time}","type":"${type}","by":${by},"key":"${keyName(secret)}"`
  const cipher = createCipheriv('aes-256-gcm', secret, nonce)
  cipher.setAAD(Buffer.concat([Buffer.from(previousHash), Buffer.from(head)]))
  const sealed = Buffer.concat([nonce, cipher.update(Buffer.from(json)), cipher.final(), cipher.getAuthTag()])
  return withHash(`${head},"sealed":"${sealed.toString('base64')}"`, previousHash)
}

/** A line whose hash is right for everything before it: what one can make who does not have the key. */
export function withHash(upToHash: string, previousHash: string): { readonly text: string, readonly hash: string } {
  const hash = createHash('sha256').update(previousHash).update(upToHash).digest('hex')
  return { text: `${upToHash},"hash":"${hash}"}`, hash }
}

/** The hash before the first line. */
export const NO_HASH = '0'.repeat(64)

/**
 * The lines of a journal with one record for each item of each write, their data the JSON of the item; without line
 * ends. `secret` may depend on the line, counted from 0.
 */
export function referenceLines(secret: Buffer | ((line: number) => Buffer), writes: readonly unknown[][]): string[] {
  const lines: string[] = []
  let previousHash = NO_HASH
  for (const write of writes) {
    for (const [i, item] of write.entries()) {
      const nonce = randomBytes(12)
      nonce[0] = i === 0 ? nonce[0]! | 0x80 : nonce[0]! & 0x7f
      const { text, hash } = referenceLine({
        seq: lines.length + 1, time: '2026-01-31T12:00:00.000Z', type: 'test.noted', by: null,
        secret: typeof secret === 'function' ? secret(lines.length) : secret, nonce, json: JSON.stringify(item),
        previousHash
      })
      lines.push(text)
      previousHash = hash
    }
  }
  return lines
}

/** The parts of a line as its text has them. */
export interface ReadLine {
  readonly seq: number
  readonly time: string
  readonly type: string
  readonly by: number | null
  readonly key: string
  readonly sealed: string
  readonly hash: string
}

/**
 * Reads a journal's bytes as DESIGN's text says, checks chain, seals and order with the keys given, and gives the
 * opened data of each line. Fails the test where anything is not as it should be.
 */
export function auditJournal(bytes: Buffer, ...secrets: readonly Buffer[]): { lines: ReadLine[], data: unknown[] } {
  const text = bytes.toString('utf8')
  assert.ok(text === '' || text.endsWith('\n'), 'the last line is ended')
  const texts = text.split('\n').slice(0, -1)
  const lines = texts.map(line => JSON.parse(line) as ReadLine)
  let previousHash = NO_HASH
  const data = lines.map((line, i) => {
    assert.equal(line.seq, i + 1)
    assert.equal(texts[i], JSON.stringify(line), 'no white space')
    assert.deepEqual(Object.keys(line), ['seq', 'time', 'type', 'by', 'key', 'sealed', 'hash'])
    const upToHash = texts[i]!.slice(0, texts[i]!.indexOf(',"hash":'))
    assert.equal(line.hash, createHash('sha256').update(previousHash + upToHash).digest('hex'), `hash of line ${i + 1}`)
    const secret = secrets.find(candidate => keyName(candidate) === line.key)
    assert.ok(secret !== undefined, `line ${i + 1} names a key that was given`)
    const sealed = Buffer.from(line.sealed, 'base64')
    const decipher = createDecipheriv('aes-256-gcm', secret, sealed.subarray(0, 12))
    decipher.setAAD(Buffer.from(previousHash + upToHash.slice(0, upToHash.indexOf(',"sealed":'))))
    decipher.setAuthTag(sealed.subarray(-16))
    previousHash = line.hash
    return JSON.parse(Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]).toString())
  })
  return { lines, data }
}

/** Writes a key file; the last key given is the newest. */
export function writeKeys(folder: string, ...secrets: readonly Buffer[]): void {
  writeFileSync(join(folder, KEY_FILE), secrets.map(secret => `${secret.toString('hex')}\n`).join(''), { mode: 0o600 })
}

/** The newest key of a folder. */
export function readSecret(folder: string): Buffer {
  return Buffer.from(readFileSync(join(folder, KEY_FILE), 'latin1').trimEnd().split('\n').at(-1)!, 'hex')
}

/** Writes a journal's bytes. */
export function writeJournal(folder: string, content: Buffer | string): void {
  writeFileSync(join(folder, JOURNAL_FILE), content, { mode: 0o600 })
}

/** A journal's bytes. */
export function journalBytes(folder: string): Buffer { return readFileSync(join(folder, JOURNAL_FILE)) }

/** Every name in a folder with its bytes and mode: two of these are equal only if nothing changed. */
export function snapshot(folder: string): { readonly [name: string]: string } {
  return Object.fromEntries(readdirSync(folder).sort().map(name => {
    const path = join(folder, name)
    return [name, `${(statSync(path).mode & 0o777).toString(8)} ${readFileSync(path, 'latin1')}`]
  }))
}

/** The files in a folder that hold a tail which was cut off. */
export function tornFiles(folder: string): string[] {
  return readdirSync(folder).filter(name => name.startsWith(`${JOURNAL_FILE}.torn-`)).map(name => join(folder, name))
}

/** Whether an error is the failure of a code, and its text fits. For `assert.throws` and `assert.rejects`. */
export function failure(code: FailureCode, pattern: RegExp = /./): (error: unknown) => true {
  return error => {
    if (!(error instanceof Failure)) throw error
    assert.equal(error.code, code, error.message)
    assert.match(error.message, pattern)
    return true
  }
}
