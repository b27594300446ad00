/** Tables and their drafts. */

/** A table of the state; a `Map` is one. */
export interface Table<K, V> {
  /** Where rows are numbered from 1: the newest number, which is never given again. */
  readonly size: number
  get(key: K): V | undefined
  set(key: K, value: V): unknown
  entries(): Iterable<[K, V]>
}

/** A table from which rows may be removed. */
export interface Collection<K, V> extends Table<K, V> {
  delete(key: K): unknown
}

/** A draft that starts as a table and changes separately. */
export class Draft<K, V> implements Collection<K, V> {
  readonly #base: Table<K, V>
  /** What differs from the base; undefined for what was deleted. */
  readonly #own = new Map<K, V | undefined>()
  size: number

  constructor(base: Table<K, V>) { this.#base = base; this.size = base.size }

  get(key: K): V | undefined { return this.#own.has(key) ? this.#own.get(key) : this.#base.get(key) }

  set(key: K, value: V): void {
    if (this.get(key) === undefined) this.size++
    this.#own.set(key, value)
  }

  /** A number stays given. */
  delete(key: K): void { this.#own.set(key, undefined) }

  * entries(): Generator<[K, V]> {
    for (const [key, value] of this.#base.entries()) if (!this.#own.has(key)) yield [key, value]
    for (const [key, value] of this.#own) if (value !== undefined) yield [key, value]
  }
}
