/** What an operator can have done to a store's journal: everything sealed again, or compacted. */
import type { DurableJournal } from '../../src/journal/journal.ts'
import { checkpointOf, type Checkpoint } from '../../src/parts/operator/checkpoint.ts'
import { rewriteJournal, type Rewritten } from '../../src/parts/operator/rewrite.ts'
import { tokensToKeep } from '../../src/parts/operator/tokens-to-keep.ts'
import type { Store } from '../../src/store/store.ts'
import type { FullStore } from './compose.ts'

const NEVER = new AbortController().signal

export function reencrypt(
  { journal }: Pick<Store, 'journal'>, onProgress: (share: number) => void = () => {}, signal = NEVER
): Promise<Rewritten> {
  return rewriteJournal(journal as DurableJournal, () => ({ onProgress, assertWanted: () => signal.throwIfAborted() }))
}

export function compact(
  store: FullStore, keepsHistory = true, onProgress = (_share: number): void => {},
  change = (made: Checkpoint): Checkpoint => made, signal = NEVER
): Promise<Rewritten> {
  return store.exclusive(() => rewriteJournal(store.journal as DurableJournal, file => {
    const checkpoint = change(checkpointOf(store.state, tokensToKeep(store.state, file)))
    return { checkpoint, keepsHistory, onProgress, assertWanted: () => signal.throwIfAborted() }
  }))
}
