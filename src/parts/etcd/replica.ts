/** What this instance has applied of the shared journal. */
import { Failure, systemCode } from '../../errors.ts'
import type { KeyFinder } from '../../journal/keys.ts'
import { FIRST_HASH, parseLine, startsWrite } from '../../journal/line.ts'
import { verified, type OnLine } from '../../journal/recover.ts'
import { START, type Stored } from './etcd-keys.ts'

interface Place extends Stored {
  /** Whether its own line was applied there; undefined: no line yet. */
  isOurs?: boolean
}

export class Replica {
  readonly #apply: OnLine
  readonly #keys: KeyFinder
  readonly #name: string
  newest: Stored = START
  head: string = FIRST_HASH
  /** The name of the key that sealed the first record. */
  firstKey: string | undefined
  /** By the clock of the instance that made the newest record; 0 without a record. */
  timeMs = 0
  /** Of all instances. */
  writes = 0
  /** Why a record could not be applied: the state may be anything then. */
  broken: Failure | undefined
  #place: Place | undefined

  /** `name` is the journal's, for errors. */
  constructor(apply: OnLine, keys: KeyFinder, name: string) {
    this.#apply = apply
    this.#keys = keys
    this.#name = name
  }

  /** Notes the next place, to learn whose line is applied there. */
  expect(text: string): Place { return this.#place = { seq: this.newest.seq + 1, text } }

  /**
   * Skips records that are applied or behind a gap. Throws `journal-damaged` or `key-unknown` if a record does not
   * follow, after it has applied the records before.
   */
  take(records: readonly Stored[]): void {
    for (const record of records) {
      const { seq, text } = record
      if (seq <= this.newest.seq) continue
      if (seq > this.newest.seq + 1) return
      this.#take(record)
      if (seq === this.#place?.seq) this.#place.isOurs = text === this.#place.text
    }
  }

  #take(record: Stored): void {
    const { seq, text } = record
    const damage = (error: unknown): Failure =>
      new Failure('journal-damaged', `${this.#name}, record ${seq}: ${systemCode(error)}`, { cause: error })
    const line = parseLine(text)
    if (line === undefined) throw damage('it is not a line of a journal')
    let read
    try {
      read = verified(line, seq, this.head, this.#keys, this.#name)
    } catch (error) {
      throw error instanceof Failure ? error : damage(error)
    }
    try {
      this.#apply(read, text)
    } catch (error) {
      throw this.broken = damage(error)
    }
    this.firstKey ??= line.key
    this.newest = record
    this.head = line.hash
    this.timeMs = Date.parse(line.time)
    if (startsWrite(line)) this.writes++
  }
}
