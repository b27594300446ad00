/** What an operator can have done to a journal: everything sealed again, compacted, another key; and to its entries. */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { dirname } from 'node:path'
import type { FileJournal } from '../../src/journal/file-journal.ts'
import { openJournalFile } from '../../src/journal/folder.ts'
import { type Apply, type DurableJournal } from '../../src/journal/journal.ts'
import { NONCE_BYTES } from '../../src/journal/line.ts'
import type { Rotated } from '../../src/parts/commands/operation.ts'
import type { Checkpoint } from '../../src/parts/operator/rewriting/checkpoint.ts'
import { importEntries as importRows } from '../../src/parts/operator/socket/operator-changes.ts'
import type { Ending } from '../../src/parts/commands/signals.ts'
import * as rewrite from '../../src/parts/operator/rewriting/rewrite.ts'
import { rotateKey as rotate } from '../../src/parts/operator/rewriting/rotate-key.ts'
import type { EntryRow } from '../../src/entries/entry.ts'
import type { Commits, Store } from '../../src/store/store.ts'

export type Rewritten = rewrite.Rewritten
/** No signal comes. */
export const UNENDED: Ending = (_onEnd, act) => act()
type OnProgress = (share: number) => void

/** As a start opens it, with the same disk, clock and randomness; what it reads is known already. */
export function opened(journal: FileJournal, apply: Apply): FileJournal {
  const { files, path, keyFile, nonce } = journal
  const random = (bytes: number): Buffer =>
    Buffer.concat(Array.from({ length: Math.ceil(bytes / NONCE_BYTES) }, () => Buffer.from(nonce()))).subarray(0, bytes)
  let isRead = false
  const made = openJournalFile({
    files, folder: dirname(path), keyFile, random, wallMs: () => Date.parse(journal.time()), warn: () => {}
  }, record => { if (isRead) apply(record) })
  isRead = true
  return made
}

/** A store whose journal is rewritten while nothing is appended, and that goes on as after a restart. */
async function rewritten(store: Store, act: (offline: rewrite.Offline) => Promise<Rewritten>,
  onProgress: OnProgress): Promise<Rewritten> {
  const journal = store.journal as FileJournal
  const made = await act({ journal, onProgress, ending: UNENDED })
  const after = opened(journal, store.state.apply)
  Object.assign(store, { journal: after })
  await journal.close()
  return made
}

export function reencrypt(store: Store, onProgress: OnProgress = () => {}): Promise<Rewritten> {
  return rewritten(store, rewrite.reencrypt, onProgress)
}

export function reencryptJournal(journal: FileJournal, onProgress: OnProgress): Promise<Rewritten> {
  return rewrite.reencrypt({ journal, onProgress, ending: UNENDED })
}

export function compact(
  store: Store, keepsHistory = true, onProgress: OnProgress = () => {}, change?: (made: Checkpoint) => Checkpoint
): Promise<Rewritten> {
  return rewritten(store, offline => rewrite.compact(offline, store.state, keepsHistory, change), onProgress)
}

export function rotateKey(journal: DurableJournal, random: (bytes: number) => Buffer = randomBytes): Promise<Rotated> {
  return rotate(journal, random)
}

/** Creates entries in one record; gives the id of the first. */
export async function importEntries(store: Commits, rows: readonly EntryRow[]): Promise<number> {
  const how = { keepsDuplicates: true, isTrial: false }
  const { first } = await importRows(store, rows.map(row => ({ ...row, isOwn: true })), how)
  return first ?? store.state.entries.size + 1
}
