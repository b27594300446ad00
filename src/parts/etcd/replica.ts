/** What this instance has applied of the journal that all share. */
import { Failure, systemCode } from '../../errors.ts'
import type { KeyFinder } from '../../journal/keys.ts'
import { FIRST_HASH, parseLine, startsWrite } from '../../journal/line.ts'
import { verified, type OnLine } from '../../journal/recover.ts'
import { START, type Stored } from './etcd-keys.ts'

/** The place of an append under way. */
interface Place extends Stored {
  /** Whether its own line was applied there, or another; undefined: none yet. */
  isOurs?: boolean
}

/** The newest record that was applied, and the way to the next. */
export class Replica {
  readonly #apply: OnLine
  readonly #keys: KeyFinder
  readonly #name: string
  newest: Stored = START
  head: string = FIRST_HASH
  /** The name of the key that sealed the first record. */
  firstKey: string | undefined
  /** When the newest record was made, by the clock of the instance that made it; 0 without one. */
  timeMs = 0
  /** How many writes it has applied, of all instances. */
  writes = 0
  /** Why a record that follows could not be applied: the state may be anything then. */
  broken: Failure | undefined
  #place: Place | undefined

  /** `name` is the journal's, for errors. */
  constructor(apply: OnLine, keys: KeyFinder, name: string) {
    this.#apply = apply
    this.#keys = keys
    this.#name = name
  }

  /** The place after the newest record, where a line is to be put. */
  expect(text: string): Place { return this.#place = { seq: this.newest.seq + 1, text } }

  /**
   * Applies records that follow, and skips those that are applied, and those behind a gap. Throws `journal-damaged` or
   * `key-unknown` if a record does not follow, having applied those before it.
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
