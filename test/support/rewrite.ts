/** What an operator can have done to a store's journal: everything sealed again, compacted or repaired, another key; and to its entries. */
import type { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import type { DurableJournal } from '../../src/journal/journal.ts'
import type { Rewritten, Rotated } from '../../src/parts/operation.ts'
import type { Checkpoint } from '../../src/parts/operator/rewriting/checkpoint.ts'
import { importEntries as importRows } from '../../src/parts/operator/socket/operator-changes.ts'
import type { Call } from '../../src/parts/operator/socket/operation-table.ts'
import * as rewrite from '../../src/parts/operator/rewriting/rewrite.ts'
import type { EntryRow } from '../../src/store/entry.ts'
import type { Commits, Store } from '../../src/store/store.ts'
import type { FullStore } from './compose.ts'

const NEVER = new AbortController().signal

/** A call as the operator's program makes it; `journal` alone is used where nothing is appended meanwhile. */
function callOn(
  store: Pick<Store, 'journal'> & Partial<Store>, onProgress: (share: number) => void = () => {}, stopping = NEVER
): Call {
  const progress = { get share() { return 0 }, set share(share) { onProgress(share) } }
  const exclusive = <T>(work: () => Promise<T>): Promise<T> => work()
  return {
    store: store.exclusive === undefined ? { ...store, exclusive } : store, journal: store.journal as DurableJournal,
    lock: { isHeld: () => true }, isGone: () => false, stopping, progress
  } as unknown as Call
}

export function reencrypt(
  { journal }: Pick<Store, 'journal'>, onProgress?: (share: number) => void, signal?: AbortSignal
): Promise<Rewritten> {
  return rewrite.reencrypt(callOn({ journal }, onProgress, signal))
}

export function compact(
  store: FullStore, keepsHistory = true, onProgress?: (share: number) => void,
  change?: (made: Checkpoint) => Checkpoint, signal?: AbortSignal
): Promise<Rewritten> {
  return rewrite.compact(callOn(store, onProgress, signal), keepsHistory, change)
}

export function repair(store: FullStore, isHeld: () => boolean): Promise<Rewritten> {
  return rewrite.repair({ ...callOn(store), lock: { isHeld } })
}

/** Makes a new key, while nothing is appended. */
export function rotateKey(journal: DurableJournal, random: (bytes: number) => Buffer = randomBytes): Promise<Rotated> {
  return rewrite.rotateKey(callOn({ journal }), random)
}

/** Creates entries in one record; gives the id of the first. */
export async function importEntries(store: Commits, rows: readonly EntryRow[]): Promise<number> {
  const how = { keepsDuplicates: true, isTrial: false }
  const { first } = await importRows(store, rows.map(row => ({ ...row, isOwn: true })), how)
  return first ?? store.state.entries.size + 1
}
