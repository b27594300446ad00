/**
 * A file journal without a service around it; a reader of its file that was written from the README's text alone, so
 * that it shares no mistake with the program's own; and disks that fail or die at a chosen call.
 */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { createDecipheriv, createHash } from 'node:crypto'
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Failure, type FailureCode } from '../../src/errors.ts'
import { CONTINUED, type JournalRecord, type Event } from '../../src/journal/journal.ts'
import { decisionOn, JOURNAL_FILE, openJournal, type FileBehindLoop, type OpenedJournal, type OpenOptions } from './journal.ts'

export { openJournal } from './journal.ts'

/** Where the journal of a folder is. */
export function journalPath(folder: string): string { return join(folder, JOURNAL_FILE) }

/** Where its keys are unless a test puts them elsewhere. */
export function keyPath(folder: string): string { return join(folder, 'journal.key') }

/** The bytes of a folder's journal. */
export function journalBytes(folder: string): Buffer { return readFileSync(journalPath(folder)) }

/** The keys of a folder, in hexadecimal, the newest last. */
export function keysOf(folder: string): string[] { return readFileSync(keyPath(folder), 'utf8').trimEnd().split('\n') }

/** A small event; its number is in its data. */
export function event(n: number): Event { return { type: 'test.event', by: n % 2 === 0 ? n : null, data: { n } } }

/** Commits events so that they share a write. */
export async function commitTogether(journal: FileBehindLoop, events: readonly Event[]): Promise<void> {
  await Promise.all(events.map(one => journal.commit(decisionOn(one))))
}

/** Writes a journal: each item is the events of a write. Gives its bytes; the journal is closed. */
export async function writeJournal(folder: string, writes: readonly (readonly Event[])[]): Promise<Buffer> {
  const { journal } = await openJournal(folder)
  for (const events of writes) {
    await journal.inner.append(events.map(({ data, ...rest }) => ({ ...rest, data, json: JSON.stringify(data) })))
  }
  await journal.close()
  return journalBytes(folder)
}

/** The lines of a journal's bytes, without their ends. */
export function linesOf(bytes: Buffer): string[] { return bytes.toString('latin1').split('\n').slice(0, -1) }

/** The bytes of lines. */
export function bytesOf(lines: readonly string[]): Buffer {
  return Buffer.from(lines.map(line => `${line}\n`).join(''), 'latin1')
}

/** The byte that a line (counted from 1) starts at. */
export function offsetOf(lines: readonly string[], line: number): number {
  return bytesOf(lines.slice(0, line - 1)).length
}

/** Records without those that tell of earlier journals, numbered from 1: the same after a re-encryption. */
export function withoutContinued(records: readonly JournalRecord[]): JournalRecord[] {
  return records.filter(({ type }) => type !== CONTINUED).map((record, i) => ({ ...record, seq: i + 1 }))
}

/** A record as its line says it, and its nonce in hexadecimal. */
export interface Verified extends JournalRecord {
  readonly key: string
  readonly hash: string
  readonly nonce: string
}

const sha256 = (...parts: readonly (string | Buffer)[]): string =>
  parts.reduce((digest, part) => digest.update(part), createHash('sha256')).digest('hex')

/** Reads and verifies a journal by the README's section "The journal"; throws at the first line that breaks it. */
export function verify(bytes: Buffer, keys: readonly string[]): Verified[] {
  const text = bytes.toString('latin1')
  assert.match(text, /^[\x20-\x7e\n]*$/, 'a journal is ASCII')
  assert.ok(text === '' || text.endsWith('\n'), 'its last line is ended')
  let previous = '0'.repeat(64)
  return linesOf(bytes).map((line, i) => {
    const parsed = JSON.parse(line)
    assert.deepEqual(Object.keys(parsed), ['seq', 'time', 'type', 'by', 'key', 'sealed', 'hash'])
    assert.equal(JSON.stringify(parsed), line, 'there is no white space')
    assert.equal(parsed.seq, i + 1)
    assert.equal(new Date(parsed.time).toISOString(), parsed.time)
    assert.equal(parsed.hash, sha256(previous, line.slice(0, line.indexOf(',"hash":'))))
    const key = keys.map(hex => Buffer.from(hex, 'hex')).find(secret => sha256(secret).slice(0, 8) === parsed.key)
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

/** Only what the fold gets of verified lines. */
export function recordsOf(lines: readonly Verified[]): JournalRecord[] {
  return lines.map(({ seq, time, type, by, data }) => ({ seq, time, type, by, data }))
}

/** Gives every line the seq of its place and the hash that follows: what somebody can do who has no key. */
export function rechain(lines: readonly string[], renumber = true): string[] {
  let previous = '0'.repeat(64)
  return lines.map((line, i) => {
    const parsed = JSON.parse(line)
    if (renumber) parsed.seq = i + 1
    const head = JSON.stringify(parsed).replace(/,"hash":"[^"]*"}$/, '')
    previous = sha256(previous, head)
    return `${head},"hash":"${previous}"}`
  })
}

/** Everything in a folder: names, modes, bytes. */
export function snapshot(folder: string): Record<string, string> {
  return Object.fromEntries(readdirSync(folder).sort().map(name => {
    const path = join(folder, name)
    return [name, `${(statSync(path).mode & 0o777).toString(8)} ${readFileSync(path, 'base64')}`]
  }))
}

/** Asserts that opening a folder's journal is refused with a code and a text, and that nothing in it was changed. */
export async function assertRefused(
  folder: string, code: FailureCode, text: string, options: OpenOptions = {}
): Promise<void> {
  const before = snapshot(folder)
  let opened: OpenedJournal | undefined
  try {
    opened = await openJournal(folder, options)
  } catch (error) {
    assert.ok(error instanceof Failure, String(error))
    assert.equal(error.code, code, error.message)
    assert.ok(error.message.includes(text), `"${error.message}" should say "${text}"`)
  }
  if (opened !== undefined) {
    void opened.journal.close()
    assert.fail(`it was opened with ${opened.records.length} records, instead of ${code}: ${text}`)
  }
  assert.deepEqual(snapshot(folder), before)
}
