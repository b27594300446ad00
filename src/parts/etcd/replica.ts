/**
 * What this instance has applied of the shared journal: the records from the first on, each once
 * and in order. `newest` and `head` move together, behind a record that was verified and applied.
 */
import { Failure, systemCode } from '../../errors.ts'
import type { JournalRecord } from '../../journal/journal.ts'
import type { KeyFinder } from '../../journal/keys.ts'
import { FIRST_HASH, parseLine } from '../../journal/line.ts'
import { verifyLine, type OnLine } from '../../journal/recover.ts'
import { START, type Stored } from './etcd-keys.ts'

/** Where this instance wants its next line. */
interface PlacedRecord extends Stored {
  taken: 'not yet' | 'by own line' | 'by another'
}

export class Replica {
  readonly #apply: OnLine
  readonly #keys: KeyFinder
  readonly #name: string
  newest: Stored = START
  head: string = FIRST_HASH
  /** The name of the first record's key. */
  firstKey: string | undefined
  /** Why a record could not be applied. For good: the state may be anything. */
  broken: Failure | undefined
  #place: PlacedRecord | undefined

  constructor(apply: OnLine, keys: KeyFinder, name: string) {
    this.#apply = apply
    this.#keys = keys
    this.#name = name
  }

  /** Its `taken` says whose line is applied there. */
  expect(text: string): PlacedRecord {
    return (this.#place = { seq: this.newest.seq + 1, text, taken: 'not yet' })
  }

  /**
   * Skips applied records, and those behind a gap. Throws `journal-damaged` or `key-unknown` if a
   * record does not follow; those before it are applied.
   */
  take(records: readonly Stored[]): void {
    for (const record of records) {
      const { seq, text } = record
      if (seq <= this.newest.seq) continue
      // the watch is behind a read: the next read gives the records between
      if (seq > this.newest.seq + 1) return
      this.#take(record)
      if (seq === this.#place?.seq)
        this.#place.taken = text === this.#place.text ? 'by own line' : 'by another'
    }
  }

  #take(record: Stored): void {
    const { seq, text } = record
    const damage = (error: unknown): Failure =>
      new Failure('journal-damaged', `${this.#name}, record ${seq}: ${systemCode(error)}`, {
        cause: error
      })
    const line = parseLine(text)
    if (line === undefined) throw damage('it is not a line of a journal')
    let read: JournalRecord
    try {
      read = verifyLine(line, seq, this.head, this.#keys, this.#name)
    } catch (error) {
      throw error instanceof Failure ? error : damage(error)
    }
    try {
      this.#apply(read, text)
    } catch (error) {
      throw (this.broken = damage(error))
    }
    this.firstKey ??= line.key
    this.newest = record
    this.head = line.hash
  }
}
