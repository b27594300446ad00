/** A journal that keeps nothing: for tests, and for embedders who want the service without its disk. */
import type { JournalRecord, Decision, Fold, Journal, JournalHealth } from './journal.ts'
import { Failure } from '../errors.ts'
import { FIRST_HASH } from './line.ts'

/** Opens an empty journal whose records live as long as the process; they have no lines, so its head never moves. */
export function openMemoryJournal(fold: Fold, wallMs: () => number): Journal {
  let seq = 0
  let isClosed = false
  return {
    async commit<T>(decide: Decision<T>): Promise<T> {
      if (isClosed) throw new Failure('journal-closed', 'in memory')
      fold.begin()
      const { outcome, fact } = decide()
      if (fact !== undefined) {
        const record: JournalRecord = { ...fact, seq: seq + 1, time: new Date(wallMs()).toISOString() }
        fold.apply(record)
        seq++
      }
      return outcome
    },
    health: (): JournalHealth => ({ fault: undefined, records: seq, waiting: 0, head: FIRST_HASH }),
    async close(): Promise<void> { isClosed = true }
  }
}
