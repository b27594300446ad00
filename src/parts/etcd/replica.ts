/** What this instance has applied of the journal that all share. */
import { Failure, systemCode } from '../../errors.ts'
import type { KeyFinder } from '../../journal/keys.ts'
import { FIRST_HASH, parseLine, startsWrite } from '../../journal/line.ts'
import { verified, type OnLine } from '../../journal/recover.ts'
import { START, type Stored } from './etcd-log.ts'

/** The first line of an append under way, and whether it is in its place; undefined: not known yet. */
export interface Pending extends Stored {
  isOurs: boolean | undefined
}

/** How many writes are remembered: more than instances wait for their turn. */
const MAX_WRITES = 64

/** The newest record that was applied, and the way to the next. */
export class Replica {
  readonly #apply: OnLine
  readonly #keys: KeyFinder
  readonly #name: string
  newest: Stored = START
  head: string = FIRST_HASH
  /** The first records of the last writes, of all instances. */
  #writes: number[] = []
  /** This instance's own append that is under way. */
  pending: Pending | undefined

  /** `name` is the journal's, for errors. */
  constructor(apply: OnLine, keys: KeyFinder, name: string) {
    this.#apply = apply
    this.#keys = keys
    this.#name = name
  }

  /** How many writes it has taken after a record. */
  writesAfter(seq: number): number { return this.#writes.filter(first => first > seq).length }

  /**
   * Applies records that follow, and skips those that are applied. Throws `journal-damaged` or `key-unknown` where one
   * does not follow, having applied those before it.
   */
  take(records: readonly Stored[]): void {
    for (const record of records) {
      const { seq, text } = record
      if (seq === this.pending?.seq) this.pending.isOurs = text === this.pending.text
      if (seq <= this.newest.seq) continue
      try {
        const line = parseLine(text)
        if (seq !== this.newest.seq + 1) throw new Error(`record ${seq} follows it`)
        if (line === undefined) throw new Error('it is not a line of a journal')
        this.#apply(verified(line, seq, this.head, this.#keys, this.#name), text)
        this.head = line.hash
        if (startsWrite(line)) this.#writes.push(seq)
        if (this.#writes.length > 2 * MAX_WRITES) this.#writes = this.#writes.slice(-MAX_WRITES)
      } catch (error) {
        if (error instanceof Failure) throw error
        const what = `${this.#name}, record ${this.newest.seq + 1}: ${systemCode(error)}`
        throw new Failure('journal-damaged', what, { cause: error })
      }
      this.newest = record
    }
  }
}
