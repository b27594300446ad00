/** Tables, and drafts of them. */

/** What the state keeps its things in; a `Map` is one. */
export interface Table<K, V> {
  readonly size: number
  get(key: K): V | undefined
  set(key: K, value: V): unknown
}

/** A table whose things may go again. */
export interface Collection<K, V> extends Table<K, V> {
  delete(key: K): unknown
  entries(): Iterable<[K, V]>
}

/** A table over another one: it shows the other's values until it is given its own, and never changes the other. */
export class DraftTable<K, V> implements Table<K, V> {
  readonly #base: Table<K, V>
  readonly #own = new Map<K, V>()
  #added = 0

  constructor(base: Table<K, V>) { this.#base = base }

  get size(): number { return this.#base.size + this.#added }

  get(key: K): V | undefined { return this.#own.get(key) ?? this.#base.get(key) }

  set(key: K, value: V): void {
    if (this.get(key) === undefined) this.#added++
    this.#own.set(key, value)
  }
}

/** The same for a collection. */
export class DraftCollection<K, V> implements Collection<K, V> {
  readonly #base: Collection<K, V>
  /** Undefined for what was deleted here. */
  readonly #own = new Map<K, V | undefined>()

  constructor(base: Collection<K, V>) { this.#base = base }

  get size(): number { return [...this.entries()].length }

  get(key: K): V | undefined { return this.#own.has(key) ? this.#own.get(key) : this.#base.get(key) }

  set(key: K, value: V): void { this.#own.set(key, value) }

  delete(key: K): void { this.#own.set(key, undefined) }

  * entries(): Generator<[K, V]> {
    for (const [key, value] of this.#base.entries()) if (!this.#own.has(key)) yield [key, value]
    for (const [key, value] of this.#own) if (value !== undefined) yield [key, value]
  }
}
