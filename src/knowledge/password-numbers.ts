/**
 * Each distinct password has a number. A password that no entry has any more keeps its number until
 * more others have left than there are entries, and at least `LEAST_FORMER`; then the number is
 * given again.
 */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import type { Clock } from '../store/clock.ts'
import { Column } from '../store/column.ts'

const LEAST_FORMER = 1024
/** The hash that stands for a longer text is longer than this. */
const MAX_KEY_UNITS = 64

export class PasswordNumbers {
  readonly #onForgotten: (number: number) => void
  readonly #numbers = new Map<string, number>()
  /** By id; 0 stands for no password. */
  readonly #ofEntries = new Column()
  /** By number: how many entries have it, and how many active ones. */
  readonly #holders = new Column()
  readonly #active = new Column()
  /**
   * By number: the time of the clock at which something else was last to be said of its entries.
   */
  readonly #changedAt = new Column()
  /** By number without holders. */
  readonly #formerKeys = new Map<number, string>()
  /** The same numbers in a ring, by who left before and after; 0 is its beginning. */
  readonly #older = new Column()
  readonly #newer = new Column()
  readonly #free: number[] = []
  #last = 0
  #entries = 0
  readonly #clock: Clock
  lastChange = 0

  /** `onForgotten`: the number is about to stand for another password. */
  constructor(clock: Clock, onForgotten: (number: number) => void) {
    this.#clock = clock
    this.#onForgotten = onForgotten
  }

  all(): Iterable<number> {
    return this.#numbers.values()
  }

  of(id: number): number {
    return this.#ofEntries.get(id)
  }

  /** 0: none. */
  ofText(password: string): number {
    return this.#numbers.get(keyOf(password)) ?? 0
  }

  active(number: number): number {
    return this.#active.get(number)
  }

  isShared(number: number): boolean {
    return this.#holders.get(number) > 1
  }

  changedAt(number: number): number {
    return this.#changedAt.get(number)
  }

  /** Notes that something else is to be said of the entries that have it. */
  touch(number: number): void {
    this.lastChange = ++this.#clock.now
    this.#changedAt.set(number, this.lastChange)
  }

  /** Undefined: no password. */
  change(id: number, to: HeldPassword | undefined, from: HeldPassword | undefined): void {
    const old = this.of(id)
    this.#entries += Number(to !== undefined) - Number(from !== undefined)
    this.#ofEntries.set(id, to === undefined ? 0 : this.#hold(to))
    if (from !== undefined) this.#release(old, from)
  }

  setActive(id: number, isActive: boolean): void {
    const number = this.of(id)
    this.#active.add(number, isActive ? 1 : -1)
    if (this.isShared(number)) this.touch(number)
  }

  /** For a password that an entry has, or had. */
  ofFormer(password: string): number {
    const key = keyOf(password)
    const number = this.#numberOf(key)
    if (this.#holders.get(number) === 0) this.#keep(number, key)
    return number
  }

  #hold({ password, isActive }: HeldPassword): number {
    const number = this.#numberOf(keyOf(password))
    this.#drop(number)
    if (isActive) this.#active.add(number, 1)
    if (this.#holders.add(number, 1) > 1) this.touch(number)
    return number
  }

  #release(number: number, { password, isActive }: HeldPassword): void {
    if (isActive) this.#active.add(number, -1)
    if (this.#holders.add(number, -1) > 0) this.touch(number)
    else this.#keep(number, keyOf(password))
  }

  #numberOf(key: string): number {
    let number = this.#numbers.get(key)
    if (number !== undefined) return number
    number = this.#free.pop() ?? ++this.#last
    this.#numbers.set(key, number)
    return number
  }

  #keep(number: number, key: string): void {
    this.#drop(number)
    this.#formerKeys.set(number, key)
    const before = this.#older.get(0)
    this.#newer.set(before, number)
    this.#older.set(number, before)
    this.#newer.set(number, 0)
    this.#older.set(0, number)
    if (this.#formerKeys.size > Math.max(LEAST_FORMER, this.#entries)) this.#forget()
  }

  #drop(number: number): void {
    if (!this.#formerKeys.delete(number)) return
    const [before, behind] = [this.#older.get(number), this.#newer.get(number)]
    this.#newer.set(before, behind)
    this.#older.set(behind, before)
  }

  #forget(): void {
    const oldest = this.#newer.get(0)
    this.#numbers.delete(this.#formerKeys.get(oldest)!)
    this.#drop(oldest)
    this.#onForgotten(oldest)
    this.#free.push(oldest)
  }
}

interface HeldPassword {
  readonly password: string
  readonly isActive: boolean
}

function keyOf(password: string): string {
  if (password.length <= MAX_KEY_UNITS) return password
  // UTF-8 has no lone surrogates.
  return hash('sha512', Buffer.from(password, 'utf16le'), 'base64url')
}
