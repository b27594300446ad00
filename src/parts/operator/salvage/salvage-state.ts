/**
 * Rebuilds the state of a damaged journal from authenticated bytes alone. The key proves a line
 * whose seal opens, the hash before that line, and its own hash. Of any other line not even the
 * number or the type counts: it may have been any record. Records that do not fit are put aside;
 * ids that may have been given stay unused.
 */
import { WHOLE, type Event, type JournalRecord } from '../../../journal/journal.ts'
import type { Key, KeyFinder } from '../../../journal/keys.ts'
import { FIRST_HASH, hashOf, isChained, openLine, type Line } from '../../../journal/line.ts'
import { ENTRY_FIELDS, FIELDS } from '../../../entries/entry.ts'
import { event, type Events } from '../../../store/events.ts'
import { emptyState } from '../../../slices.ts'
import type { State } from '../../../store/state.ts'
import type { User } from '../../../rights/rights.ts'
import {
  CONTINUATIONS,
  leavingOut,
  type Continued,
  type LostLines
} from '../commands/journal-files.ts'
import { PROOFS, type Proof } from './proofs.ts'
import type { Hash, LineHead, Remains } from './salvage-lines.ts'

/** `after`, `before`: times of the records around the lost lines. */
export interface Loss extends LostLines {
  readonly after: string | null
  readonly before: string | null
}

export interface Unplaced extends JournalRecord {
  readonly why: string
}

/** Of any record: a row `null,` of a compaction, as base64. */
const LEAST_ROW_BYTES = 6
/** The most ids to leave out for lost lines that no later record bounds. */
const MOST_FREE = { entries: 1_000_000, users: 100_000 }

export class Salvaging {
  readonly state: State = emptyState()
  readonly losses: Loss[] = []
  readonly unplaced: Unplaced[] = []
  readonly missingKeys: Set<string> = new Set()
  readonly gone: (readonly [first: number, last: number])[] = []
  /**
   * The length of a beginning that belongs to the journal before a rewriting, such as an old block
   * over the new one. Its entries may have been purged since.
   */
  foreignBytes: number | undefined
  lines = 0
  opened = 0
  last = 0
  until: string | null = null
  /** Whether lost lines may have given ids beyond the newest known one. */
  mayLackIds = false
  readonly #keys: KeyFinder
  /** The noted head, until it is found. */
  #awaitedHead: string | undefined
  readonly #hashes: string[] = [FIRST_HASH]
  /** The last hash that was read, or that of the last line that was opened. */
  #hash: string = FIRST_HASH
  /** The line before the next hash, if its key is missing. */
  #locked: Line | undefined
  /** Where the newest record ends; with its own hash, if that follows. */
  #end = 0
  /** Since the newest record: lines that did not open, or came too late to be applied. */
  #unplacedLines = 0
  /**
   * Bytes of places with more such lines than records are lost there: one of the lines may be newer
   * than all others.
   */
  #strayBytes = 0
  /** Ids that may be lost since the last record that gave one. */
  #free = { entries: 0, users: 0 }
  /** Bytes of a beginning that belongs to another journal: nothing there is believed. */
  readonly #from: number
  /**
   * Where the records that follow the first one without a gap end, if that begins no rewritten
   * journal.
   */
  #beginning: number | undefined

  constructor(keys: KeyFinder, noted?: string, from: number = 0) {
    this.#keys = keys
    this.#from = from
    this.#awaitedHead = noted
  }

  get head(): string {
    return this.#hashes[this.last]!
  }

  /** Here, or as the end of an earlier journal; true if none was noted. */
  get hasNotedHead(): boolean {
    return this.#awaitedHead === undefined
  }

  /** Without removed users, and without those of whom only the number is known. */
  get users(): readonly User[] {
    return [...this.state.users.values()].filter(({ id }) => this.#hasUser(id))
  }

  take(remains: Remains): void {
    if ('hash' in remains) this.#takeHash(remains)
    else this.#takeHead(remains)
  }

  /** Called after the last remains. `nextId`: the operator knows that it is free. */
  end(fileBytes: number, nextId: number): void {
    const bytesBehind = Math.max(0, fileBytes - this.#end)
    if (!this.#isNewestKnown(fileBytes)) this.#lose(null, bytesBehind + this.#strayBytes, null)
    if (nextId > 1) this.mayLackIds = false
    this.#purgePartial()
    this.#endTokensOfLostUsers()
    const { entries, users } = this.state
    this.#fill(
      'entries',
      Math.max(entries.size + Math.min(MOST_FREE.entries, this.#free.entries), nextId - 1)
    )
    this.#fill('users', users.size + Math.min(MOST_FREE.users, this.#free.users))
  }

  /**
   * **No later record is lost only if all three hold**: nothing follows the newest record in the
   * file; no line elsewhere may have followed it; the noted head was found, since lines that are
   * cut off leave no other trace.
   */
  #isNewestKnown(fileBytes: number): boolean {
    return this.#end === fileBytes && this.#strayBytes === 0 && this.hasNotedHead
  }

  /** An entry that lacks a required field is kept aside, and its id is not given again. */
  #purgePartial(): void {
    for (const data of this.state.entries.entries()) {
      if (ENTRY_FIELDS.every(field => !FIELDS[field].isRequired || data[field] !== '')) continue
      const record = { seq: this.last, time: this.until!, type: 'entries.kept', by: null, data }
      this.unplaced.push({ ...record, why: 'a part of it is lost' })
      this.apply(event('entry.purged', null, { id: data.id }))
      this.gone.push([data.id, data.id])
    }
  }

  /** No command could end them: it would need the address, which is lost. */
  #endTokensOfLostUsers(): void {
    for (const [hash, { user }] of this.state.tokens) {
      if (!this.#hasUser(user)) this.apply(event('token.revoked', null, { hash }))
    }
  }

  #hasUser(id: number): boolean {
    return (this.state.users.get(id) ?? { isRemoved: true }).isRemoved !== true
  }

  /** At the time of the newest record. */
  apply({ type, by, data }: Event): void {
    this.state.apply({ seq: 0, time: this.until!, type, by, data })
  }

  #takeHead({ at, end, line }: LineHead): void {
    this.lines++
    this.#locked = undefined
    if (at < this.#from) return // older than all that is lost
    if (line?.type === WHOLE) this.#judgeBeginning(line)
    const record = line && this.#open(line)
    if (record === undefined) this.#unplacedLines++
    else if (record.seq > this.last) this.#follow(record, at, end)
    // With another hash, or at the number of a lost record, it is of a fork, or too late. The same
    // record once more is no lost one; but behind the newest it may stand where others were, so the
    // end stays where it was.
    else if (this.#hashes[record.seq] !== this.#hash) this.#unplacedLines++
  }

  /** `journal.whole` is genuine behind the hash before it, whatever number has been reached. */
  #judgeBeginning(whole: Line): void {
    const key = this.#keys.find(whole.key)
    if (this.#beginning === undefined || key === undefined || whole.time < this.until!) return
    if (openedBy(key, whole, this.#hash) !== undefined) this.foreignBytes = this.#beginning
  }

  #takeHash({ at, end, hash }: Hash): void {
    if (this.#locked !== undefined && isChained({ ...this.#locked, hash }, this.#hash)) {
      this.missingKeys.add(this.#locked.key)
    }
    // The newest record's own hash, right behind its seal: its line is whole.
    if (at === this.#end + 1 && hash === this.#hash) this.#end = end + 1
    this.#hash = hash // of whatever line: the seal of the next one proves it
    this.#locked = undefined
  }

  /** Undefined if the line does not follow, or its key is missing. */
  #open(line: Line): JournalRecord | undefined {
    const { seq, time, type, by } = line
    const key = this.#keys.find(line.key)
    if (key === undefined) {
      this.#locked = line
      return undefined
    }
    // Its seal covers the hash before it, so a wrong one cannot open it.
    const before = this.#hashes[seq - 1] ?? this.#hash
    const opened = openedBy(key, line, before)
    if (opened === undefined) return undefined
    this.#hash = hashOf(line, before)
    const endOfEarlier = CONTINUATIONS.has(type) ? (opened.data as Continued).head : undefined
    if ([this.#hash, endOfEarlier].includes(this.#awaitedHead)) this.#awaitedHead = undefined
    return { seq, time, type, by, data: opened.data }
  }

  #follow(record: JournalRecord, at: number, end: number): void {
    const { seq, time } = record
    const lost = seq - this.last - 1
    const bytes = Math.max(0, at - this.#end)
    const isOfBegun = seq === 1 && !CONTINUATIONS.has(record.type)
    const goesOn = this.#beginning !== undefined && lost === 0 && this.losses.length === 0
    if (isOfBegun || goesOn) this.#beginning = end
    if (lost > 0) this.#lose(seq - 1, bytes, time)
    // One of the lines is none of the lost records, so it may be a later one.
    if (this.#unplacedLines > lost) this.#strayBytes += bytes
    this.#unplacedLines = 0
    this.#end = end
    this.#hashes[seq] = this.#hash
    this.last = seq
    this.until = time
    this.opened++
    this.#reduce(record)
  }

  /** `to` null: unknown. As many ids may have been given as the bytes can hold. */
  #lose(to: number | null, bytes: number, before: string | null): void {
    const from = this.last + 1
    this.losses.push({ from, to, bytes, after: this.until, before })
    const most = Math.max(to === null ? 1 : to - from + 1, Math.floor(bytes / LEAST_ROW_BYTES))
    this.#free.entries += most
    this.#free.users += most
    this.mayLackIds = true
  }

  #reduce(record: JournalRecord): void {
    const { type, by, data } = record
    this.state.events.assertKnown(type, data)
    const proof = (PROOFS[type] as (data: unknown) => Proof)(data)
    // Before the record is applied: the id that it gives stands behind those that were given
    // before.
    this.#fill('entries', proof.entries ?? 0)
    this.#fill('users', Math.max(proof.users ?? 0, by ?? 0))
    // Its address is taken again, so the record that removed the former user is lost.
    const former =
      type === 'user.added' ? this.state.userOf((data as Events['user.added']).email) : undefined
    if (former !== undefined) this.apply(event('user.removed', null, { id: former.id }))
    const { entries, users } = this.state
    const had = { entries: entries.size, users: users.size }
    try {
      if (proof.needs !== undefined && !this.#hasUser(proof.needs))
        throw new Error('its user is lost')
      this.apply(record)
    } catch (error) {
      this.unplaced.push({ ...record, why: (error as Error).message })
    }
    // A record that gives an id bounds the ids that lost records before it may have given.
    if (entries.size > had.entries) {
      this.#free.entries = 0
      this.mayLackIds = false
    }
    if (users.size > had.users) this.#free.users = 0
  }

  /**
   * Nobody has the ids up to this one, but they may have been given: they are never given again.
   */
  #fill(what: 'entries' | 'users', upTo: number): void {
    const from = this.state[what].size + 1
    this.#free[what] = Math.max(0, this.#free[what] - Math.max(0, upTo - from + 1))
    if (what === 'entries' && upTo >= from) this.gone.push([from, upTo])
    for (const one of leavingOut(what, from, upTo)) this.apply(one)
  }
}

function openedBy(key: Key, line: Line, before: string): { readonly data: unknown } | undefined {
  try {
    return { data: openLine(line, before, key) }
  } catch {
    return undefined
  }
}
