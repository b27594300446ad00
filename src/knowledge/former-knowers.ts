/**
 * Who knew a password that its entry has no more. If another entry has the same, they know its
 * present password.
 *
 * They are kept for as long as an entry has the password. No change looks at all entries: each
 * change of a password looks at the next one. A round ends once all were looked at, and at least
 * `LEAST_CHANGES` were made. If a password was neither lost nor got by an entry in a whole round,
 * and found at none, no entry has it: it is dropped.
 */
import { hash } from 'node:crypto'
import type { Knower } from './knowledge.ts'

export type KeptFormer = readonly [password: number, ...knowers: readonly Knower[]]

/** Entries by id, from 1; undefined for one that was purged. */
export interface Passwords {
  /** The newest id. */
  readonly size: number
  get(id: number): { readonly password: string } | undefined
}

/** A password that is set again before as many others were changed is recognised. */
const LEAST_CHANGES = 1024

/** 48 bits of SHA-256, and not 0: two passwords share them by chance once in millions of lists. */
export function numberOf(password: string): number {
  return parseInt(hash('sha256', password, 'hex').slice(0, 12), 16) || 1
}

export class FormerKnowers {
  readonly #entries: Passwords
  /** By number of the password: what an entry lost, got, or was found to have in this round. */
  #current = new Map<number, Set<Knower>>()
  /** The same of the round before, if it is not in `#current`. */
  #earlier = new Map<number, Set<Knower>>()
  #changes = 0
  /** The entry that was looked at last. */
  #lookedAt = 0

  constructor(entries: Passwords) {
    this.#entries = entries
  }

  get size(): number {
    return this.#current.size + this.#earlier.size
  }

  *numbers(): Generator<number, void, void> {
    yield* this.#current.keys()
    yield* this.#earlier.keys()
  }

  of(number: number): ReadonlySet<Knower> {
    return this.#current.get(number) ?? this.#earlier.get(number) ?? NOBODY
  }

  /** An entry, whose password these know, is about to have another one, or none. */
  change(from: string, to: string | undefined, knowers: readonly Knower[]): void {
    // this round may have looked at the entry already; at a new one it has not
    if (to !== undefined) this.#found(to)
    this.#keep(numberOf(from), knowers)
    this.#goOn()
  }

  /** Of the passwords that entries have: looks at all of them. */
  kept(): readonly KeptFormer[] {
    const kept = new Map<number, KeptFormer>()
    for (let id = 1; this.size > 0 && id <= this.#entries.size; id++) {
      const entry = this.#entries.get(id)
      const number = entry === undefined ? 0 : numberOf(entry.password)
      const knowers = this.of(number)
      if (knowers.size > 0) kept.set(number, [number, ...knowers])
    }
    return [...kept.values()].sort(([a], [b]) => a - b)
  }

  restore(rows: readonly KeptFormer[]): void {
    for (const [number, ...knowers] of rows) this.#keep(number, knowers)
  }

  #found(password: string): void {
    if (this.#earlier.size > 0) this.#keep(numberOf(password))
  }

  /** Until the end of the next round. */
  #keep(number: number, more: readonly Knower[] = []): void {
    const knowers = new Set([...this.of(number), ...more])
    this.#earlier.delete(number)
    if (knowers.size > 0) this.#current.set(number, knowers)
  }

  #goOn(): void {
    this.#changes++
    if (this.#lookedAt < this.#entries.size) {
      this.#lookedAt++
      // Nothing can be dropped at the end of a first round.
      const entry = this.#earlier.size === 0 ? undefined : this.#entries.get(this.#lookedAt)
      if (entry !== undefined) this.#found(entry.password)
    }
    if (this.#lookedAt < this.#entries.size || this.#changes < LEAST_CHANGES) return
    this.#earlier = this.#current
    this.#current = new Map()
    this.#changes = 0
    this.#lookedAt = 0
  }
}

const NOBODY: ReadonlySet<Knower> = new Set()
