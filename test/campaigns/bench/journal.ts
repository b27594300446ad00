/** Entries and journals of any length, made by the journal's own modules without waiting for the disk. */
import { randomBytes } from 'node:crypto'
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Buffer } from 'node:buffer'
import { keyring } from '../../../src/journal/keys.ts'
import type { Event } from '../../../src/journal/journal.ts'
import { FIRST_HASH, nonces, sealBatch } from '../../../src/journal/line.ts'
import { JOURNAL_FILE } from '../../../src/journal/folder.ts'
import { MAX_COMMIT_RECORDS } from '../../../src/limits.ts'
import type { EntryFields } from '../../../src/entries/entry.ts'

/** The size of a body, as JSON, where nothing else is asked for. */
export const BODY_BYTES = 120

/** The fields of the nth entry; the password is as long as it takes for a body of so many bytes (at least 92). */
export function fieldsOf(n: number, bodyBytes: number): EntryFields {
  const number = String(n).padStart(9, '0')
  const fields = { password: `S3cr3ta-${number}`, sistema: `sistema-${number}`, usuario: `usuario-${number}` }
  const missing = bodyBytes - JSON.stringify(fields).length
  return { ...fields, password: fields.password.padEnd(fields.password.length + missing, '%&/()=') }
}

/** Seals events behind those before, a batch at a time, and gives the lines as they are written. */
export function chainOf(secret: Buffer): (events: readonly Pick<Event, 'type' | 'data'>[]) => string {
  const { newest: key } = keyring([secret])
  const nonce = nonces(randomBytes)
  let [seq, head] = [0, FIRST_HASH]
  return events => {
    const time = new Date().toISOString()
    const all = events.map(({ type, data }) => ({ type, by: null, data, json: JSON.stringify(data) }))
    const batch = sealBatch(all, seq, head, { time, key, nonce })
    seq += events.length
    head = batch.head
    return `${batch.lines.join('\n')}\n`
  }
}

export const created = (data: object): Pick<Event, 'type' | 'data'> => ({ type: 'entry.created', data })

/** Makes a data folder with its key and a journal of so many entries, each of a body of so many bytes. */
export function makeJournal(folder: string, entries: number, bodyBytes: number): void {
  makeJournalOf(folder, entries, n => created({ id: n, ...fieldsOf(n, bodyBytes) }))
}

/** Makes a data folder with its key and a journal of so many events, each made of its number. */
export function makeJournalOf(folder: string, records: number, eventOf: (n: number) => Pick<Event, 'type'
  | 'data'>): void {
  mkdirSync(folder, { mode: 0o700 })
  const secret = randomBytes(32)
  const seal = chainOf(secret)
  writeFileSync(join(folder, 'journal.key'), `${secret.toString('hex')}\n`, { mode: 0o600 })
  writeFileSync(join(folder, JOURNAL_FILE), '', { mode: 0o600 })
  for (let made = 0; made < records; made += MAX_COMMIT_RECORDS) {
    const events = Array.from({ length: Math.min(MAX_COMMIT_RECORDS, records - made) }, (_, i) => eventOf(made + i + 1))
    appendFileSync(join(folder, JOURNAL_FILE), seal(events))
  }
}
