/** What this instance has applied of the journal that all share. */
import { Failure, systemCode } from '../errors.ts'
import type { Batch } from '../journal/batch.ts'
import type { KeyFinder } from '../journal/keys.ts'
import { FIRST_HASH, parseLine } from '../journal/line.ts'
import { verified, type Apply } from '../journal/recover.ts'
import type { Position, Stored } from './log.ts'

/** An append under way, and whether its first line stands in its place; undefined: nobody knows yet. */
export interface Pending {
  readonly batch: Batch
  isOurs: boolean | undefined
}

/** The newest record that was applied, and the way to the next. */
export class Replica {
  readonly #apply: Apply
  readonly #keys: KeyFinder
  readonly #name: string
  position: Position = { seq: 0, revision: '0' }
  head: string = FIRST_HASH
  /** What of this instance's own is about to stand behind the newest record. */
  pending: Pending | undefined
  /** Whether another instance's record was applied since this was last set to false. */
  othersWrite = false

  /** `name` is the journal's, for errors. */
  constructor(apply: Apply, keys: KeyFinder, name: string) { this.#apply = apply; this.#keys = keys; this.#name = name }

  /**
   * Applies records that follow, and skips those that are applied. Throws `journal-damaged` or `key-unknown` where one
   * does not follow, having applied those before it.
   */
  take(records: readonly Stored[]): void {
    for (const { seq, text, revision } of records) {
      const batch = this.pending?.batch
      if (batch !== undefined && seq === batch.records[0]!.seq) this.pending!.isOurs = text === batch.lines[0]
      if (seq <= this.position.seq) continue
      try {
        const line = parseLine(text)
        if (seq !== this.position.seq + 1) throw new Error(`record ${seq} follows it`)
        if (line === undefined) throw new Error('it is not a line of a journal')
        this.#apply(verified(line, seq, this.head, this.#keys, this.#name), text)
        this.head = line.hash
      } catch (error) {
        if (error instanceof Failure) throw error
        const what = `${this.#name}, record ${this.position.seq + 1}: ${systemCode(error)}`
        throw new Failure('journal-damaged', what, { cause: error })
      }
      this.position = { seq, revision }
      this.othersWrite ||= this.pending?.isOurs !== true
    }
  }
}
