/**
 * Who knew a password that its entry has no more. Another entry may have the same: then they know its present one.
 * Passwords are kept as numbers. Those that no entry has are dropped now and then.
 */
import { hash } from 'node:crypto'
import type { Knower } from './knowledge.ts'

export type KeptFormer = readonly [password: number, ...knowers: readonly Knower[]]

const LEAST_KEPT = 1024

/** 48 bits of SHA-256, and not 0: two passwords share them by chance once in millions of lists. */
export function numberOf(password: string): number {
  return parseInt(hash('sha256', password, 'hex').slice(0, 12), 16) || 1
}

export class FormerKnowers {
  readonly #present: () => Iterable<{ readonly password: string }>
  readonly #knowers = new Map<number, Set<Knower>>()
  /** As many may be kept before those are dropped that no entry has: so that costs little for each change. */
  #most = LEAST_KEPT

  constructor(present: () => Iterable<{ readonly password: string }>) { this.#present = present }

  get size(): number { return this.#knowers.size }

  add(password: string, knowers: Iterable<Knower>): void {
    const number = numberOf(password)
    const known = this.#knowers.get(number)
    if (known === undefined) this.#knowers.set(number, new Set(knowers))
    else for (const knower of knowers) known.add(knower)
    if (this.#knowers.size > this.#most) this.#drop()
  }

  numbers(): Iterable<number> { return this.#knowers.keys() }

  of(number: number): ReadonlySet<Knower> { return this.#knowers.get(number) ?? NOBODY }

  kept(): readonly KeptFormer[] {
    this.#drop()
    return [...this.#knowers].sort(([a], [b]) => a - b).map(([number, knowers]) => [number, ...knowers])
  }

  restore(rows: readonly KeptFormer[]): void {
    for (const [number, ...knowers] of rows) this.#knowers.set(number, new Set(knowers))
  }

  #drop(): void {
    const present = new Set<number>()
    let entries = 0
    if (this.#knowers.size > 0) {
      for (const { password } of this.#present()) {
        entries++
        const number = numberOf(password)
        if (this.#knowers.has(number)) present.add(number)
      }
    }
    for (const number of this.#knowers.keys()) if (!present.has(number)) this.#knowers.delete(number)
    this.#most = Math.max(LEAST_KEPT, 2 * present.size, entries)
  }
}

const NOBODY: ReadonlySet<Knower> = new Set()
