/**
 * Who knows the present password of an entry: whoever set it, and whoever was answered with it
 * since. A list is one mark and not a bit for each entry: it tells the entries that were new to
 * lists at or before its count of changes.
 */
import { FormerKnowers, numberOf, type Passwords } from './former-knowers.ts'
import { IdSet } from './id-set.ts'

/** A user's id, an operator (`operator`, `operator:NAME`), or an embedder's process (`host`). */
export type Knower = number | string

/** The active entries, those of some groups, or all with the deleted ones. */
export type List = 'active' | 'all' | readonly string[]

/** What an answer tells: the passwords of an entry, of entries, or of a list. */
export type Tells = number | readonly number[] | { readonly list: List }

/** With tokens, what is told is recorded. */
export type Recording = 'begun' | 'ended' | undefined

/** Stands for all whose reads were not recorded. */
const UNRECORDED = ''

export interface PasswordChange {
  readonly from: string
  readonly to: string
}

/**
 * How events change what is known, each before it changes the entry; `Knowledge` and drafts of it.
 */
export interface KnowledgeTable {
  readonly recording: Recording
  /**
   * An entry gets another password, and nobody knows it but who sets it. Without `change`, the
   * entry is new.
   */
  set(id: number, by: Knower | undefined, change?: PasswordChange): void
  /** An entry is about to be deleted. Who knows it from a list goes on knowing it. */
  leaveLists(id: number): void
  /**
   * An entry is about to be restored or moved: it leaves its lists, and will be new to those that
   * have it then.
   */
  changeLists(id: number): void
  /** An entry loses its values; `former` is its password, if it had one. */
  forget(id: number, former?: string): void
  tell(knower: Knower, tells: Tells): void
  /** `ms`: milliseconds since 1970. */
  record(what: 'begun' | 'ended' | 'gap', ms: number): void
}

/** What is asked of entries. */
export interface Listable extends Passwords {
  isActive(id: number): boolean
  grupo(id: number): string | undefined
}

interface Known {
  readonly place: number
  /** What was told by itself. */
  readonly told: IdSet
  /** By list, the count of changes when it was told last. */
  readonly lists: Map<string, number>
}

export interface Kept {
  readonly changes: number
  readonly recent: readonly number[]
  readonly recording?: Recording
  /** ISO 8601. */
  readonly unrecordedBefore?: string | undefined
}
export interface KeptKnower {
  readonly place?: number
  readonly knower: Knower
  readonly lists: readonly (readonly [name: string, at: number])[]
}
/** `bits` is base64. */
export interface KeptPage {
  readonly place: number
  readonly page: number
  readonly bits: string
}
export type KeptChange = readonly [newAt: number, setBy: number]

/** A group's name has no asterisk. */
const [ACTIVE, ALL] = ['*', '**']
const MAX_RECENT = 64

export class Knowledge implements KnowledgeTable {
  readonly #entries: Listable
  readonly #knowers = new Map<Knower, Known>()
  #lastPlace = 0
  /** By id: the count of changes when the entry was last new to lists; 0: it has no password. */
  readonly #newAt: number[] = [0]
  /** By id: the place of who set the password; 0: nobody knows. */
  readonly #setBy: number[] = [0]
  #changes = 0
  /** The ids of the last changes, by count modulo `MAX_RECENT`. */
  #recent: number[] = Array.from({ length: MAX_RECENT }, () => 0)
  #unrecordedBeforeMs: number | undefined
  /** Another number after each password that was told, or that an entry has lost. */
  tellings = 0
  recording: Recording
  /** An operator was told something, and no record says so yet. */
  isUntold = false
  readonly former: FormerKnowers

  constructor(entries: Listable) {
    this.#entries = entries
    this.former = new FormerKnowers(entries)
  }

  get changes(): number {
    return this.#changes
  }

  set(id: number, by: Knower | undefined, change?: PasswordChange): void {
    if (change !== undefined) this.#leave(id, change.from, change.to)
    this.#renewed(id)
    this.#setBy[id] = by === undefined ? 0 : this.#of(by).place
  }

  leaveLists(id: number): void {
    for (const known of this.#knowers.values()) if (this.#isListed(known, id)) known.told.add(id)
  }

  changeLists(id: number): void {
    this.leaveLists(id)
    this.#renewed(id)
  }

  forget(id: number, former?: string): void {
    if (former !== undefined) this.#leave(id, former, undefined)
    this.#newAt[id] = 0
    this.#setBy[id] = 0
  }

  tell(knower: Knower, tells: Tells): void {
    const known = this.#of(knower)
    this.tellings++
    if (typeof tells === 'number') known.told.add(tells)
    else if ('list' in tells)
      for (const name of namesOf(tells.list)) known.lists.set(name, this.#changes)
    else for (const id of tells) known.told.add(id)
  }

  record(what: 'begun' | 'ended' | 'gap', ms: number): void {
    if (what !== 'gap') this.recording = what
    if (what === 'ended') return
    this.#unrecordedBeforeMs = ms
    this.tell(UNRECORDED, { list: 'all' })
  }

  knows(knower: Knower, id: number): boolean {
    const known = this.#knowers.get(knower)
    return known !== undefined && this.#has(known, id)
  }

  /** Whether nothing of it is new. */
  isKnown(knower: Knower, tells: Tells): boolean {
    if (typeof tells === 'number') return this.knows(knower, tells)
    if (!('list' in tells)) return tells.every(id => this.knows(knower, id))
    const known = this.#knowers.get(knower)
    return known !== undefined && this.#knowsList(known, tells.list)
  }

  /** Users by id, operators and the host. */
  knowers(): Knower[] {
    return [...this.#knowers.keys()].filter(knower => knower !== UNRECORDED)
  }

  /** Who knows an entry's password; whoever set it first. */
  knowersOf(id: number): { readonly knower: Knower; readonly how: 'set' | 'read' }[] {
    return this.knowers()
      .filter(knower => this.knows(knower, id))
      .map(knower => ({
        knower,
        how: this.#of(knower).place === this.#setBy[id] ? ('set' as const) : ('read' as const)
      }))
      .sort((a, b) => Number(b.how === 'set') - Number(a.how === 'set'))
  }

  knowsAny(knower: Knower): boolean {
    return this.#newAt.some((_, id) => this.knows(knower, id))
  }

  /** Who knew the password while another entry had it. */
  formerKnowers(password: string): Knower[] {
    return [...this.former.of(numberOf(password))].filter(knower => knower !== UNRECORDED)
  }

  /**
   * If who read the entry's password before this time may be unknown: milliseconds since 1970. With
   * its password, also if another entry had it.
   */
  unrecordedBeforeMs(id: number, password?: string): number | undefined {
    const isUnrecorded =
      this.knows(UNRECORDED, id) ||
      (password !== undefined && this.former.of(numberOf(password)).has(UNRECORDED))
    return isUnrecorded ? this.#unrecordedBeforeMs : undefined
  }

  kept(): Kept {
    const ms = this.#unrecordedBeforeMs
    return {
      changes: this.#changes,
      recent: this.#recent,
      recording: this.recording,
      unrecordedBefore: ms === undefined ? undefined : new Date(ms).toISOString()
    }
  }

  *keptKnowers(): Generator<KeptKnower, void, void> {
    for (const [knower, { place, lists }] of this.#knowers)
      yield { place, knower, lists: [...lists] }
  }

  *keptPages(): Generator<KeptPage, void, void> {
    for (const { place, told } of this.#knowers.values())
      for (const page of told.kept()) yield { place, ...page }
  }

  *keptChanges(): Generator<KeptChange, void, void> {
    for (let id = 1; id < this.#newAt.length; id++) yield [this.#newAt[id]!, this.#setBy[id]!]
  }

  /** Comes last. What a salvage lacks of the others then counts as new to all lists. */
  restore({ changes, recent, recording, unrecordedBefore }: Kept): void {
    this.#changes = changes
    this.#recent = [...recent]
    this.recording = recording
    this.#unrecordedBeforeMs =
      unrecordedBefore === undefined ? undefined : Date.parse(unrecordedBefore)
    for (let id = 1; id < this.#newAt.length; id++)
      if (this.#newAt[id]! > changes) this.#renewed(id)
  }

  /** Comes first: entries count as new to these lists until their changes are restored. */
  restoreKnowers(knowers: readonly KeptKnower[]): void {
    for (const { place, knower, lists } of knowers) {
      const known = this.#of(knower, place)
      for (const [name, at] of lists) {
        known.lists.set(name, at)
        this.#changes = Math.max(this.#changes, at)
      }
    }
    this.#changes += MAX_RECENT + 1
    for (let id = 1; id < this.#newAt.length; id++)
      if (this.#newAt[id] !== 0) this.#newAt[id] = this.#changes
  }

  /** Throws if a knower is missing. */
  restorePages(pages: readonly KeptPage[]): void {
    const knowers = new Map([...this.#knowers.values()].map(known => [known.place, known]))
    for (const { place, page, bits } of pages) {
      const known = knowers.get(place)
      if (known === undefined) throw new Error(`there is no knower ${place}`)
      known.told.restore(page, bits)
    }
  }

  restoreChanges(first: number, changes: readonly KeptChange[]): void {
    for (const [i, [newAt, setBy]] of changes.entries()) {
      this.#newAt[first + i] = newAt
      this.#setBy[first + i] = setBy
      this.#changes = Math.max(this.#changes, newAt + MAX_RECENT + 1)
      this.#lastPlace = Math.max(this.#lastPlace, setBy) // a salvage may lack that knower
    }
  }

  #of(knower: Knower, place: number = this.#lastPlace + 1): Known {
    let known = this.#knowers.get(knower)
    if (known === undefined) {
      known = { place, told: new IdSet(), lists: new Map() }
      this.#lastPlace = Math.max(this.#lastPlace, place)
      this.#knowers.set(knower, known)
    }
    return known
  }

  #renewed(id: number): void {
    this.#newAt[id] = ++this.#changes
    this.#recent[this.#changes % MAX_RECENT] = id
  }

  /** The entry has the password `from` no more. */
  #leave(id: number, from: string, to: string | undefined): void {
    this.tellings++
    const knowers = [...this.#knowers].filter(([, known]) => this.#has(known, id))
    this.former.change(
      from,
      to,
      knowers.map(([knower]) => knower)
    )
    for (const [, { told }] of knowers) told.delete(id)
  }

  #has(known: Known, id: number): boolean {
    return this.#setBy[id] === known.place || this.#isListed(known, id) || known.told.has(id)
  }

  #isListed({ lists }: Known, id: number): boolean {
    const newAt = this.#newAt[id] ?? 0
    if (newAt === 0 || lists.size === 0) return false
    const wasIn = (name: string): boolean => (lists.get(name) ?? 0) >= newAt
    if (wasIn(ALL)) return true
    if (!this.#entries.isActive(id)) return false
    const group = this.#entries.grupo(id)
    return wasIn(ACTIVE) || (group !== undefined && wasIn(group))
  }

  /**
   * One that has changed nothing or little since the knower's last list needs no look at its
   * entries.
   */
  #knowsList(known: Known, list: List): boolean {
    const { lists } = known
    const wider = Math.max(lists.get(ALL) ?? 0, list === 'all' ? 0 : (lists.get(ACTIVE) ?? 0))
    // The group that was told longest ago decides.
    const from = Math.min(...namesOf(list).map(name => Math.max(lists.get(name) ?? 0, wider)))
    if (this.#changes - from > MAX_RECENT) return false
    for (let at = from + 1; at <= this.#changes; at++) {
      const id = this.#recent[at % MAX_RECENT]!
      if (this.#isIn(list, id) && !this.#has(known, id)) return false
    }
    return true
  }

  #isIn(list: List, id: number): boolean {
    if (list === 'all') return this.#newAt[id] !== 0
    return (
      this.#entries.isActive(id) &&
      (list === 'active' || list.includes(this.#entries.grupo(id) ?? ''))
    )
  }
}

/** Under which names lists remember it. */
function namesOf(list: List): readonly string[] {
  if (list === 'active') return [ACTIVE]
  return list === 'all' ? [ALL] : list
}
