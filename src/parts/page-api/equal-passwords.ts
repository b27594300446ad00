/** Which entries have the same password. Pages that have not changed are not read again. */
import { LIST_PAGE_ENTRIES } from '../../limits.ts'
import type { Entries } from '../../entries/entry-table.ts'
import type { Exposure } from '../../knowledge/exposure.ts'
import { numberOf } from '../../knowledge/former-knowers.ts'
import { idsOn, pageOf } from '../../entries/paged-list.ts'

interface Shared {
  readonly ids: Set<number>
  active: number
}

export class EqualPasswords {
  readonly #entries: Entries
  readonly #exposure: Exposure
  /** By id; equal passwords share a number, which is negative for deleted entries; 0: no entry. */
  readonly #numbers: number[] = []
  /** By positive number: its only id, or several. */
  readonly #ids = new Map<number, number | Shared>()
  /** Positive numbers that several entries have. */
  readonly #shared = new Set<number>()
  /**
   * By positive number, if several entries have or had it: users who know it, from any entry, and
   * may not be told every password.
   */
  readonly #knowers = new Map<number, readonly number[]>()
  /** Numbers that count otherwise now for other entries, too. */
  readonly #changed = new Set<number>()
  /** By page: its changes when it was read, and the changes of its counts. */
  readonly #read: number[] = []
  readonly #recounts: number[] = []
  /** Of what is known and allowed, when knowers were compared last. */
  #comparedVersion = ''

  constructor(entries: Entries, exposure: Exposure) {
    this.#entries = entries
    this.#exposure = exposure
  }

  /** How many other active entries have the password of an active entry. */
  others(id: number): number {
    const found = this.#ids.get(this.#numbers[id] ?? 0)
    return typeof found === 'object' ? found.active - 1 : 0
  }

  /**
   * If several entries, deleted ones too, have the password of an entry: all of them, this one too.
   * Otherwise none.
   */
  idsAs(id: number): Iterable<number> {
    const found = this.#ids.get(Math.abs(this.#numbers[id] ?? 0))
    return typeof found === 'object' ? found.ids : []
  }

  /**
   * Users who know the password of an entry from another one that has, or had it, and may not be
   * told all.
   */
  knowersAs(id: number): readonly number[] {
    return this.#knowers.get(Math.abs(this.#numbers[id] ?? 0)) ?? []
  }

  /** Another number after each change of what entries of the page share with others. */
  recounts(page: number): number {
    return this.#recounts[page] ?? 0
  }

  /** Reads changed pages, at most so many. True if none is left. */
  refresh(mostPages: number): boolean {
    let read = 0
    for (let page = 0; page * LIST_PAGE_ENTRIES < this.#entries.size; page++) {
      const changes = this.#entries.pageChanges(page)
      if (this.#read[page] === changes) continue
      if (read++ === mostPages) return false
      this.#read[page] = changes
      for (const id of idsOn(page)) this.#set(id)
    }
    for (const number of this.#numbersToCompare()) this.#compareKnowers(number)
    for (const number of this.#changed) {
      for (const id of this.#idsWith(number))
        this.#recounts[pageOf(id)] = this.recounts(pageOf(id)) + 1
    }
    this.#changed.clear()
    return true
  }

  /** If nobody was told anything, and no rights have changed, only those whose entries changed. */
  #numbersToCompare(): ReadonlySet<number> {
    const { tellings, rights } = this.#exposure
    const version = `${tellings} ${rights}`
    if (version === this.#comparedVersion) return new Set(this.#changed)
    this.#comparedVersion = version
    return new Set([...this.#shared, ...this.#exposure.formerNumbers(), ...this.#knowers.keys()])
  }

  /** Whoever knows the password of one entry knows that of all that have the same. */
  #compareKnowers(number: number): void {
    const ids = [...this.#idsWith(number)]
    const knowers = ids.length === 0 ? [] : this.#exposure.confinedKnowers(number, ids)
    if (knowers.join() === (this.#knowers.get(number) ?? []).join()) return
    this.#changed.add(number)
    if (knowers.length === 0) this.#knowers.delete(number)
    else this.#knowers.set(number, knowers)
  }

  #idsWith(number: number): Iterable<number> {
    const found = this.#ids.get(number)
    if (found === undefined) return []
    return typeof found === 'number' ? [found] : found.ids
  }

  #set(id: number): void {
    const before = this.#numbers[id] ?? 0
    const number = this.#entries.has(id) ? numberOf(this.#entries.get(id)!.password) : 0
    const after = this.#entries.isActive(id) ? number : -number
    this.#numbers[id] = after
    if (before === after) return
    if (before !== 0) this.#remove(Math.abs(before), id, before > 0)
    if (after !== 0) this.#add(Math.abs(after), id, after > 0)
  }

  #add(number: number, id: number, isActive: boolean): void {
    const found = this.#ids.get(number)
    if (found === undefined) {
      if (this.#exposure.isFormer(number)) this.#changed.add(number)
      return void this.#ids.set(number, id)
    }
    this.#changed.add(number)
    this.#shared.add(number)
    const shared =
      typeof found === 'object'
        ? found
        : { ids: new Set([found]), active: Number(this.#numbers[found]! > 0) }
    shared.ids.add(id)
    shared.active += Number(isActive)
    this.#ids.set(number, shared)
  }

  #remove(number: number, id: number, wasActive: boolean): void {
    const shared = this.#ids.get(number)
    if (typeof shared !== 'object') return void this.#ids.delete(number)
    this.#changed.add(number)
    shared.ids.delete(id)
    shared.active -= Number(wasActive)
    if (shared.ids.size > 1) return
    this.#ids.set(number, [...shared.ids][0]!)
    this.#shared.delete(number)
  }
}
