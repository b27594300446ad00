/**
 * Who knows which password. People know passwords, not entries: who knows a password knows it
 * wherever an entry has it, now or later. What is known from an entry itself is kept beside that:
 * it may be told to people who see this entry alone.
 */
import type { Entry } from '../entries/entry.ts'
import { IdSet } from './id-set.ts'
import { eachId, type Ids } from './ids.ts'
import type { Clock } from '../store/clock.ts'
import { PasswordNumbers } from './password-numbers.ts'

/** A user's id, an operator (`operator`, `operator:NAME`), or an embedder's process (`host`). */
export type Knower = number | string

/** All whose reads were not recorded, and all who knew a password before it came. */
export const OTHERS = ''

export type Recording = 'begun' | 'ended' | undefined

/** `equal`: not from this entry since its password was set. */
export type How = 'read' | 'equal'

type HeldEntry = Pick<Entry, 'id' | 'password' | 'status'>

/** How events change what is known; `Knowledge` and drafts of it. */
export interface KnowledgeTable {
  readonly recording: Recording
  /** `entry`: as it is about to be. Who sets a password knows it. */
  put(entry: HeldEntry, old: HeldEntry | undefined, by: Knower | undefined): void
  /** Before the entry loses its values. */
  purge(old: HeldEntry): void
  tell(knower: Knower, ids: Ids): void
  /** Tells others; `ms`: when, in milliseconds since 1970. */
  tellOthers(ids: Ids, ms: number): void
  tellFormer(knower: Knower, password: string): void
  /** Every password so far, former ones too. */
  tellAll(knower: Knower): void
  /** `ms`: milliseconds since 1970. */
  record(what: 'begun' | 'ended' | 'gap', ms: number): void
}

interface KnownPasswords {
  readonly numbers: IdSet
  /** Whose present password this knower set, or was told. */
  readonly entries: IdSet
}

/** ISO 8601. */
export interface KeptRecording {
  readonly recording?: Recording
  readonly unrecordedBefore?: string | undefined
}
/**
 * `equal`: one entry for each password that is known otherwise; with `time` (ISO 8601), of the
 * passwords of which an import told others then (`toldMs`).
 */
export interface KeptKnower {
  readonly knower: Knower
  readonly ids?: Ids
  readonly equal?: Ids
  readonly time?: string | undefined
}

export class Knowledge implements KnowledgeTable {
  readonly #known = new Map<Knower, KnownPasswords>()
  readonly numbers: PasswordNumbers
  /**
   * By number of a password that another entry had already: when an import told others, in
   * milliseconds since 1970. Whoever sets it later does so after that.
   */
  readonly #toldMs = new Map<number, number>()
  #lastId = 0
  recording: Recording
  /** Of the last gap, in milliseconds since 1970. */
  gapMs: number | undefined
  /** Whether a compaction by an earlier build kept what is not read any more. */
  hasLostKept = false

  constructor(clock: Clock) {
    this.numbers = new PasswordNumbers(clock, number => {
      for (const { numbers } of this.#known.values()) numbers.delete(number)
      this.#toldMs.delete(number)
    })
  }

  put(entry: HeldEntry, old: HeldEntry | undefined, by: Knower | undefined): void {
    const { id } = entry
    if (old?.password === entry.password) {
      if (old.status !== entry.status) this.numbers.setActive(id, entry.status === 1)
      return
    }
    if (old !== undefined) this.#forgetEntry(id)
    this.numbers.change(id, heldBy(entry), old && heldBy(old))
    this.#lastId = Math.max(this.#lastId, id)
    if (by !== undefined) this.#tell(this.#of(by), id)
  }

  purge(old: HeldEntry): void {
    this.#forgetEntry(old.id)
    this.numbers.change(old.id, undefined, heldBy(old))
  }

  tell(knower: Knower, ids: Ids): void {
    const known = this.#of(knower)
    eachId(ids, id => {
      if (this.numbers.of(id) !== 0) this.#tell(known, id)
    })
  }

  tellOthers(ids: Ids, ms: number): void {
    this.tell(OTHERS, ids)
    eachId(ids, id => {
      const number = this.numbers.of(id)
      if (!this.numbers.isShared(number)) return
      this.#toldMs.set(number, ms)
      this.numbers.touch(number)
    })
  }

  /** 0: by no import that came when another entry had it. */
  toldMs(id: number): number {
    return this.#toldMs.get(this.numbers.of(id)) ?? 0
  }

  /** As `tell`, but not from these entries. `ms`: see `tellOthers`. */
  tellEqual(knower: Knower, ids: Ids, ms?: number): void {
    const known = this.#of(knower)
    eachId(ids, id => {
      const number = this.numbers.of(id)
      this.#tellNumber(known, number)
      if (ms !== undefined) this.#toldMs.set(number, ms)
    })
  }

  tellFormer(knower: Knower, password: string): void {
    const number = this.numbers.ofFormer(password)
    this.#tellNumber(this.#of(knower), number)
    this.numbers.touch(number)
  }

  tellAll(knower: Knower): void {
    const known = this.#of(knower)
    for (const number of this.numbers.all()) {
      known.numbers.add(number)
      this.numbers.touch(number)
    }
    for (let id = 1; id <= this.#lastId; id++) if (this.numbers.of(id) !== 0) known.entries.add(id)
  }

  record(what: 'begun' | 'ended' | 'gap', ms: number): void {
    if (what !== 'gap') this.recording = what
    if (what === 'ended') return
    this.gapMs = ms
    this.tellAll(OTHERS)
  }

  /** Whether from this entry. */
  knows(knower: Knower, id: number): boolean {
    return this.#known.get(knower)?.entries.has(id) === true
  }

  knowsNumber(knower: Knower, number: number): boolean {
    return this.#known.get(knower)?.numbers.has(number) === true
  }

  knowsFormer(knower: Knower, password: string): boolean {
    return this.knowsNumber(knower, this.numbers.ofText(password))
  }

  /**
   * Undefined if the present password is not known. `byEntry`: what depends on the password's text
   * must not be told.
   */
  how(knower: Knower, id: number, byEntry: boolean): How | undefined {
    if (this.knows(knower, id)) return 'read'
    return !byEntry && this.knowsNumber(knower, this.numbers.of(id)) ? 'equal' : undefined
  }

  /** Users by id, operators and the host. */
  knowers(): Knower[] {
    return [...this.#known.keys()].filter(knower => knower !== OTHERS)
  }

  draft(): KnowledgeDraft {
    return new KnowledgeDraft(this)
  }

  keptRecording(): KeptRecording {
    const { recording, gapMs } = this
    return {
      recording,
      unrecordedBefore: gapMs === undefined ? undefined : new Date(gapMs).toISOString()
    }
  }

  restoreRecording({ recording, unrecordedBefore }: KeptRecording): void {
    this.recording = recording
    this.gapMs = unrecordedBefore === undefined ? undefined : Date.parse(unrecordedBefore)
  }

  /** `OTHERS` too. By ids, since numbers end with a compaction. */
  *kept(): Generator<
    readonly [knower: Knower, ids: number[], equal: number[], ms?: number],
    void,
    void
  > {
    for (const [knower, { numbers, entries }] of this.#known) {
      const [ids, equal]: [number[], number[]] = [[], []]
      const covered = new IdSet()
      for (let id = 1; id <= this.#lastId; id++) {
        if (!entries.has(id)) continue
        ids.push(id)
        covered.add(this.numbers.of(id))
      }
      for (let id = 1; id <= this.#lastId; id++) {
        const number = this.numbers.of(id)
        if (number === 0 || !numbers.has(number) || covered.has(number)) continue
        equal.push(id)
        covered.add(number)
      }
      if (ids.length + equal.length > 0) yield [knower, ids, equal]
    }
    for (const [ms, equal] of this.#imported()) yield [OTHERS, [], equal, ms]
  }

  /** By `toldMs`, one entry for each password. */
  #imported(): ReadonlyMap<number, number[]> {
    const byTime = new Map<number, number[]>()
    const left = new Map(this.#toldMs)
    for (let id = 1; id <= this.#lastId && left.size > 0; id++) {
      const number = this.numbers.of(id)
      const ms = left.get(number)
      if (ms === undefined) continue
      left.delete(number)
      const ids = byTime.get(ms)
      if (ids === undefined) byTime.set(ms, [id])
      else ids.push(id)
    }
    return byTime
  }

  #of(knower: Knower): KnownPasswords {
    let known = this.#known.get(knower)
    if (known === undefined) {
      known = { numbers: new IdSet(), entries: new IdSet() }
      this.#known.set(knower, known)
    }
    return known
  }

  #tell(known: KnownPasswords, id: number): void {
    known.entries.add(id)
    this.#tellNumber(known, this.numbers.of(id))
  }

  /** Other entries that have the password are known with it. */
  #tellNumber({ numbers }: KnownPasswords, number: number): void {
    if (numbers.has(number)) return
    numbers.add(number)
    if (this.numbers.isShared(number)) this.numbers.touch(number)
  }

  #forgetEntry(id: number): void {
    for (const { entries } of this.#known.values()) entries.delete(id)
  }
}

function heldBy({ password, status }: HeldEntry): { password: string; isActive: boolean } {
  return { password, isActive: status === 1 }
}

/** As after the earlier commands of a write. */
export class KnowledgeDraft implements KnowledgeTable {
  readonly #knowledge: Knowledge
  /** By id, who set a password in this write. */
  readonly #setBy = new Map<number, Knower | undefined>()
  readonly #told = new Map<Knower, IdSet>()
  /** By knower, the passwords. */
  readonly #former = new Map<Knower, Set<string>>()
  recording: Recording

  constructor(knowledge: Knowledge) {
    this.#knowledge = knowledge
    this.recording = knowledge.recording
  }

  put({ id, password }: HeldEntry, old: HeldEntry | undefined, by: Knower | undefined): void {
    if (old?.password === password) return
    this.#setBy.set(id, by)
    for (const told of this.#told.values()) told.delete(id)
  }

  purge({ id }: HeldEntry): void {
    this.#setBy.set(id, undefined)
  }

  tell(knower: Knower, ids: Ids): void {
    const told = this.#told.get(knower) ?? new IdSet()
    this.#told.set(knower, told)
    eachId(ids, id => told.add(id))
  }

  tellFormer(knower: Knower, password: string): void {
    this.#former.set(knower, (this.#former.get(knower) ?? new Set()).add(password))
  }

  tellOthers(ids: Ids): void {
    this.tell(OTHERS, ids)
  }

  tellAll(): void {}

  record(what: 'begun' | 'ended' | 'gap'): void {
    if (what !== 'gap') this.recording = what
  }

  knows(knower: Knower, id: number): boolean {
    if (this.#told.get(knower)?.has(id) === true) return true
    return this.#setBy.has(id) ? this.#setBy.get(id) === knower : this.#knowledge.knows(knower, id)
  }

  knowsFormer(knower: Knower, password: string): boolean {
    if (this.#former.get(knower)?.has(password) === true) return true
    return this.#knowledge.knowsFormer(knower, password)
  }
}
