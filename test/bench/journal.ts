/** Journals of any length, made by the journal's own modules without waiting for the disk. */
import { randomBytes } from 'node:crypto'
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { Batch, nonces } from '../../src/journal/batch.ts'
import { JOURNAL_FILE } from '../../src/journal/file.ts'
import { keyring } from '../../src/journal/keys.ts'
import { FIRST_HASH } from '../../src/journal/line.ts'
import { fact, type EntryFields } from '../../src/store/record.ts'

/** The size of a body, as JSON, where nothing else is asked for. */
export const BODY_BYTES = 120

/** The fields of the nth entry; the password is as long as it takes for a body of so many bytes (at least 92). */
export function fieldsOf(n: number, bodyBytes: number): EntryFields {
  const number = String(n).padStart(9, '0')
  const fields = { password: `S3cr3ta-${number}`, sistema: `sistema-${number}`, usuario: `usuario-${number}` }
  const missing = bodyBytes - JSON.stringify(fields).length
  return { ...fields, password: fields.password.padEnd(fields.password.length + missing, '%&/()=') }
}

/** Makes a data folder with its key and a journal of so many entries, each of a body of so many bytes. */
export function makeJournal(folder: string, entries: number, bodyBytes: number): void {
  mkdirSync(folder, { mode: 0o700 })
  const secret = randomBytes(32)
  writeFileSync(join(folder, 'journal.key'), `${secret.toString('hex')}\n`, { mode: 0o600 })
  const file = openSync(join(folder, JOURNAL_FILE), 'wx', 0o600)
  const keys = keyring([secret])
  const nonce = nonces(randomBytes)
  let head = FIRST_HASH
  for (let id = 0; id < entries;) {
    const batch = new Batch(id, head, new Date().toISOString())
    let hasRoom = true
    while (hasRoom && id < entries) {
      id++
      hasRoom = batch.add(fact('entry.created', null, { id, ...fieldsOf(id, bodyBytes) }), keys.newest, nonce())
    }
    writeSync(file, batch.takeBytes())
    head = batch.head
  }
  closeSync(file)
}
