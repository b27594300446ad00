/**
 * What the tests of the journal share: a journal in a folder behind the commit loop; a writer and a reader of its
 * format that were made from the text of the README alone, so that they share no mistake with the program's own; and
 * a start that must recover, or be refused.
 */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Failure, type FailureCode } from '../../src/errors.ts'
import { FileJournal, type FolderOptions } from '../../src/journal/file-journal.ts'
import { openJournalFile } from '../../src/journal/folder.ts'
import { disk, type Files } from '../../src/journal/files.ts'
import {
  BEGUN, type Apply, type Event, type JournalLocation, type JournalRecord
} from '../../src/journal/journal.ts'
import { readKeyFile } from '../../src/journal/keys.ts'
import { FIRST_HASH } from '../../src/journal/line.ts'
import { readJournal } from '../../src/journal/recover.ts'
import { ENTRY_EVENTS } from '../../src/entries/entry-events.ts'
import { emptyState } from '../../src/slices.ts'
import { EventTypes, type Slice } from '../../src/store/events.ts'
import { State } from '../../src/store/state.ts'
import { Store, type Command } from '../../src/store/store.ts'
import type { Rotated } from '../../src/parts/commands/operation.ts'
import type { Rewritten } from './rewrite.ts'

export const JOURNAL_FILE = 'journal.jsonl'
export const KEY_FILE = 'journal.key'

/** Events that do nothing. */
const TESTED: Slice<any> = {
  isInDrafts: false, changesRights: false,
  types: Object.fromEntries(['made', 'noted', 'event', 'long'].map(name =>
    [`test.${name}`, { fields: [], reduce: () => {} }]))
}

/** A journal in a file behind a commit loop, as a store has it, with what an operator can do to it. */
export class FileBehindLoop {
  readonly records: JournalRecord[]
  inner: FileJournal
  readonly #apply: Apply
  readonly #store: Store

  constructor(inner: FileJournal, records: JournalRecord[], apply: Apply) {
    this.inner = inner
    this.records = records
    this.#apply = apply
    this.#store = new Store(inner, new State(new EventTypes([ENTRY_EVENTS, TESTED]), emptyState()))
  }

  get data(): unknown[] { return this.records.map(record => record.data) }

  commit<T>(command: Command<T>): Promise<T> { return this.#store.commit(command) }
  record(data: unknown): Promise<void> { return this.commit(decisionOn({ type: 'test.noted', by: null, data })) }
  async rotateKey(): Promise<Rotated> {
    const { rotateKey } = await import('./rewrite.ts') // the operator's part may be out of the tree
    return rotateKey(this.inner)
  }
  async reencrypt(onProgress: (share: number) => void = () => {}): Promise<Rewritten> {
    const { opened, reencryptJournal } = await import('./rewrite.ts')
    const before = this.inner
    const made = await reencryptJournal(before, onProgress)
    this.inner = opened(before, this.#apply)
    Object.assign(this.#store, { journal: this.inner })
    await before.close()
    return made
  }
  location(): JournalLocation { return this.inner.location() }
  status(): ReturnType<Store['status']> { return this.#store.status() }
  close(): Promise<void> { return this.#store.close() }
}

export function decisionOn(event: Event | undefined): Command<void> {
  return () => [event === undefined ? [] : [{ ...event, json: JSON.stringify(event.data) }], undefined]
}

export function event(n: number): Event { return { type: 'test.event', by: n % 2 === 0 ? n : null, data: { n } } }

export function long(n: number, bytes: number): Event {
  return { type: 'test.long', by: null, data: { n, text: 'x'.repeat(bytes) } }
}

/** Commits events so that they share a write. */
export async function commitTogether(journal: FileBehindLoop, events: readonly Event[]): Promise<void> {
  await Promise.all(events.map(one => journal.commit(decisionOn(one))))
}

export interface OpenOptions {
  readonly files?: Files
  readonly keyFile?: string
  readonly random?: (bytes: number) => Buffer
  readonly wallMs?: () => number
  readonly mayCreate?: boolean
  readonly mustExist?: boolean
  readonly lock?: FolderOptions['lock']
  /** Called before a record is kept; may throw. */
  readonly apply?: (record: JournalRecord) => void
}

export interface OpenedJournal {
  readonly journal: FileBehindLoop
  /** Those that were read and written, but for that with which a new journal begins. */
  readonly records: JournalRecord[]
  readonly warnings: readonly string[]
}

let clockMs = Date.UTC(2026, 0, 31, 12)

/** Opens the journal of a folder with a clock that is a millisecond later at every look. The caller closes it. */
export async function openJournal(
  folder: string, options: OpenOptions = {}, open: (options: FolderOptions, apply: Apply) =>
    FileJournal = openJournalFile
): Promise<OpenedJournal> {
  const { files = disk, keyFile = keyPath(folder), random = randomBytes, apply = () => {} } = options
  const { wallMs = () => ++clockMs, ...more } = options
  const records: JournalRecord[] = []
  const warnings: string[] = []
  const warn = (line: string): void => { warnings.push(line) }
  const keep: Apply = record => {
    apply(record)
    if (record.type !== BEGUN) records.push(record)
  }
  const inner = open({ ...more, files, folder, keyFile, wallMs, random, warn }, keep)
  return { journal: new FileBehindLoop(inner, records, keep), records, warnings }
}

/** Opens and closes the journal of a folder, as a start and a stop do; gives what was read. */
export async function startAndStop(folder: string, options: OpenOptions = {}): Promise<OpenedJournal> {
  const opened = await openJournal(folder, options)
  await opened.journal.close()
  return opened
}

/** A new journal as version 1.0 began it: with nothing, so that the first event is in the first line. */
export function beginEmpty(options: FolderOptions, apply: Apply): FileJournal {
  const { files, folder, keyFile } = options
  writeKeys(folder, randomBytes(32))
  putJournal(folder, '')
  const end = { records: 0, head: FIRST_HASH, goodBytes: 0, time: null }
  const [path, keys] = [journalPath(folder), readKeyFile(files, keyFile)!]
  return new FileJournal(options, apply, { path, isNew: true, end, keys, usedKeys: [], fault: undefined })
}

/** Writes a journal: each item is the events of a write. Gives its bytes; the journal is closed. */
export async function makeJournal(folder: string, writes: readonly (readonly Event[])[]): Promise<Buffer> {
  const { journal } = await openJournal(folder, {}, existsSync(journalPath(folder)) ? openJournalFile : beginEmpty)
  for (const events of writes) {
    await journal.inner.append(() => events.map(({ data, ...rest }) => ({ ...rest, data, json: JSON.stringify(data) })))
  }
  await journal.close()
  return journalBytes(folder)
}

export function journalPath(folder: string): string { return join(folder, JOURNAL_FILE) }
export function keyPath(folder: string): string { return join(folder, KEY_FILE) }
export function journalBytes(folder: string): Buffer { return readFileSync(journalPath(folder)) }

export function putJournal(folder: string, content: Buffer | string | readonly string[]): void {
  const bytes = typeof content === 'string' || Buffer.isBuffer(content) ? content : bytesOf(content)
  writeFileSync(journalPath(folder), bytes, { mode: 0o600 })
}

/** Writes a key file; the last key given is the newest. */
export function writeKeys(folder: string, ...secrets: readonly Buffer[]): void {
  writeFileSync(keyPath(folder), secrets.map(secret => `${secret.toString('hex')}\n`).join(''), { mode: 0o600 })
}

/** The keys of a folder, in hexadecimal, the newest last. */
export function keysOf(folder: string): string[] {
  return readFileSync(keyPath(folder), 'latin1').trimEnd().split('\n')
}

export function readSecret(folder: string): Buffer { return Buffer.from(keysOf(folder).at(-1)!, 'hex') }

export function linesOf(bytes: Buffer): string[] { return bytes.toString('latin1').split('\n').slice(0, -1) }

export function bytesOf(lines: readonly string[]): Buffer {
  return Buffer.from(lines.map(line => `${line}\n`).join(''), 'latin1')
}

/** The byte that a line (counted from 1) starts at. */
export function offsetOf(lines: readonly string[], line: number): number {
  return bytesOf(lines.slice(0, line - 1)).length
}

/** The files in a folder that hold a tail which was cut off. */
export function tornFiles(folder: string): string[] {
  return readdirSync(folder).filter(name => name.startsWith(`${JOURNAL_FILE}.torn-`)).map(name => join(folder, name))
}

/** Every name in a folder with its bytes and mode: two of these are equal only if nothing changed. */
export function snapshot(folder: string): { readonly [name: string]: string } {
  return Object.fromEntries(readdirSync(folder).sort().map(name => {
    const path = join(folder, name)
    return [name, `${(statSync(path).mode & 0o777).toString(8)} ${readFileSync(path, 'latin1')}`]
  }))
}

/** Records without those that tell of earlier journals, numbered from 1: the same after a re-encryption. */
export function withoutContinued(records: readonly JournalRecord[]): JournalRecord[] {
  return records.filter(({ type }) => !type.startsWith('journal.')).map((record, i) => ({ ...record, seq: i + 1 }))
}

const sha256 = (...parts: readonly (string | Buffer)[]): string =>
  parts.reduce((digest, part) => digest.update(part), createHash('sha256')).digest('hex')

export function keyName(secret: Buffer): string { return sha256(secret).slice(0, 8) }

export interface LineParts {
  readonly seq: number
  readonly time: string
  readonly type: string
  readonly by: number | null
  readonly secret: Buffer
  readonly nonce: Buffer
  readonly json: string
  readonly previousHash: string
}

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
  const hash = sha256(previousHash, upToHash)
  return { text: `${upToHash},"hash":"${hash}"}`, hash }
}

export const NO_HASH = '0'.repeat(64)

/** A record to make a line of; a text stands for one that has it as its data. */
export type ReferenceRecord = string | { readonly type: string, readonly data?: unknown, readonly json?: string }

/** The lines, without ends, of a journal with these writes. `secret` may depend on the line, counted from 0. */
export function referenceLines(
  secret: Buffer | ((line: number) => Buffer), writes: readonly (readonly ReferenceRecord[])[]
): string[] {
  const lines: string[] = []
  let previousHash = NO_HASH
  for (const write of writes) {
    for (const [i, record] of write.entries()) {
      const nonce = randomBytes(12)
      const { type, data, json = JSON.stringify(data) } =
        typeof record === 'string' ? { type: 'test.noted', data: record } : record
      nonce[0] = nonce[0]! & 0x3f | (i === 0 ? 0x80 : 0) | (Buffer.byteLength(json) > 1024 * 1024 ? 0x40 : 0)
      const { text, hash } = referenceLine({
        seq: lines.length + 1, time: '2026-01-31T12:00:00.000Z', type, by: null,
        secret: typeof secret === 'function' ? secret(lines.length) : secret, nonce, json, previousHash
      })
      lines.push(text)
      previousHash = hash
    }
  }
  return lines
}

/** A record as its line says it, and its nonce in hexadecimal. */
export interface Verified extends JournalRecord {
  readonly key: string
  readonly hash: string
  readonly nonce: string
}

/** Reads and verifies a journal, with keys in hexadecimal; throws at the first line that is not as the README says. */
export function verify(bytes: Buffer, keys: readonly string[]): Verified[] {
  const text = bytes.toString('latin1')
  assert.match(text, /^[\x20-\x7e\n]*$/, 'a journal is ASCII')
  assert.ok(text === '' || text.endsWith('\n'), 'its last line is ended')
  let previous = NO_HASH
  return linesOf(bytes).map((line, i) => {
    const parsed = JSON.parse(line)
    assert.deepEqual(Object.keys(parsed), ['seq', 'time', 'type', 'by', 'key', 'sealed', 'hash'])
    assert.equal(JSON.stringify(parsed), line, 'there is no white space')
    assert.equal(parsed.seq, i + 1)
    assert.equal(new Date(parsed.time).toISOString(), parsed.time)
    assert.equal(parsed.hash, sha256(previous, line.slice(0, line.indexOf(',"hash":'))))
    const key = keys.map(hex => Buffer.from(hex, 'hex')).find(secret => keyName(secret) === parsed.key)
    assert.ok(key, `no key is called ${parsed.key}`)
    const sealed = Buffer.from(parsed.sealed, 'base64')
    assert.equal(sealed.toString('base64'), parsed.sealed)
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12))
    decipher.setAAD(Buffer.from(previous + line.slice(0, line.indexOf(',"sealed":'))))
    decipher.setAuthTag(sealed.subarray(-16))
    const plain = Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()])
    const data = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(plain))
    previous = parsed.hash
    const { seq, time, type, by } = parsed
    return { seq, time, type, by, data, key: parsed.key, hash: parsed.hash, nonce: sealed.toString('hex', 0, 12) }
  })
}

export function recordsOf(lines: readonly Verified[]): JournalRecord[] {
  return lines.map(({ seq, time, type, by, data }) => ({ seq, time, type, by, data }))
}

/** Gives every line the seq of its place and the hash that follows: what somebody can do who has no key. */
export function rechain(lines: readonly string[], renumber = true): string[] {
  let previous = NO_HASH
  return lines.map((line, i) => {
    const parsed = JSON.parse(line)
    if (renumber) parsed.seq = i + 1
    const { text, hash } = withHash(JSON.stringify(parsed).replace(/,"hash":"[^"]*"}$/, ''), previous)
    previous = hash
    return text
  })
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

/** What the program says of a journal: where it is damaged, or else what it holds. */
export function verdictOf(path: string, keyFile: string): string {
  try {
    const { records, head, tornBytes } = readJournal(disk, path, readKeyFile(disk, keyFile)!, () => {})
    return `${records} records, head ${head}, ${tornBytes} torn`
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return /line \d+ at byte \d+/.exec(error.message)?.[0] ?? error.message
  }
}

/** Asserts that opening a folder's journal is refused with a code and a text, and that nothing in it was changed. */
export async function assertRefused(
  folder: string, code: FailureCode, says: string | RegExp, options: OpenOptions = {}
): Promise<void> {
  const before = snapshot(folder)
  const opening = openJournal(folder, options)
  void opening.then(({ journal }) => journal.close(), () => {})
  await assert.rejects(opening, error => {
    assert.ok(error instanceof Failure, String(error))
    assert.equal(error.code, code, error.message)
    assert.ok(typeof says === 'string' ? error.message.includes(says) : says.test(error.message), error.message)
    return true
  })
  assert.deepEqual(snapshot(folder), before)
}

/** Opens, finds `records` and a tail of `torn`, appends, opens again, and verifies all of it by the README's text. */
export async function assertRecovered(
  folder: string, records: readonly JournalRecord[], torn: Buffer, what: string
): Promise<void> {
  const known = new Set(tornFiles(folder))
  const { journal, warnings, records: found } = await openJournal(folder)
  assert.deepEqual(withoutContinued(found), withoutContinued(records), what)
  const made = tornFiles(folder).filter(path => !known.has(path))
  assert.deepEqual([made.length, warnings.length], torn.length > 0 ? [1, 1] : [0, 0], what)
  for (const path of made) {
    assert.ok(readFileSync(path).equals(torn), `${what}: the tail is kept as it was`)
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.match(path, /\/journal\.jsonl\.torn-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    for (const said of [`${torn.length} bytes`, path]) assert.ok(warnings[0]!.includes(said), warnings[0])
  }
  await commitTogether(journal, [event(901), event(902)])
  await journal.close()
  const second = await startAndStop(folder)
  assert.deepEqual([second.warnings, second.records], [[], found], what)
  const written = recordsOf(verify(journalBytes(folder), keysOf(folder)))
  assert.deepEqual(written.filter(({ type }) => type !== BEGUN), found, what)
}
