/** Tables, and copy-on-write overlays of them. */

/** A table of the state. */
export interface Table<K, V> {
  /** Where rows are numbered from 1: the highest number, so a deletion leaves it. */
  readonly size: number
  get(key: K): V | undefined
  set(key: K, value: V): unknown
  /** Makes a row unknown. Of entries that may be the next number, which the size then counts; not in an overlay. */
  delete(key: K): unknown
}

/** A table whose rows are also found by what they belong to: a user by the address, tokens by their user. */
export interface IndexedTable<K, V, I> extends Table<K, V> {
  /** The keys of the rows that belong to something. Rows may be deleted on the way. */
  keysOf(index: I): Iterable<K>
}

/** What a row belongs to; undefined: to nothing. */
type IndexOf<V, I> = (value: V) => I | undefined

/** A table in memory, with its index. */
export class MapTable<K, V, I> implements IndexedTable<K, V, I> {
  readonly #rows = new Map<K, V>()
  readonly #keys = new Map<I, Set<K>>()
  readonly #indexOf: IndexOf<V, I>

  constructor(indexOf: IndexOf<V, I>) { this.#indexOf = indexOf }

  get size(): number { return this.#rows.size }
  get(key: K): V | undefined { return this.#rows.get(key) }
  entries(): Iterable<[K, V]> { return this.#rows.entries() }
  keysOf(index: I): Iterable<K> { return this.#keys.get(index) ?? [] }

  set(key: K, value: V): void {
    this.#leave(key)
    this.#rows.set(key, value)
    const index = this.#indexOf(value)
    if (index === undefined) return
    const keys = this.#keys.get(index)
    if (keys === undefined) this.#keys.set(index, new Set([key]))
    else keys.add(key)
  }

  delete(key: K): void {
    this.#leave(key)
    this.#rows.delete(key)
  }

  #leave(key: K): void {
    const value = this.#rows.get(key)
    const index = value === undefined ? undefined : this.#indexOf(value)
    const keys = index === undefined ? undefined : this.#keys.get(index)
    keys?.delete(key)
    if (keys?.size === 0) this.#keys.delete(index!)
  }
}

/** A copy-on-write overlay of a table: changes to it leave the table as it is. */
export class Overlay<K, V> implements Table<K, V> {
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

  /** The size is the highest id, so a deletion leaves it. */
  delete(key: K): void { this.#own.set(key, undefined) }

  /** Whether a row was set or deleted here. */
  hasOwn(key: K): boolean { return this.#own.has(key) }

  * ownEntries(): Generator<[K, V]> {
    for (const [key, value] of this.#own) if (value !== undefined) yield [key, value]
  }
}

/** The same of a table with an index. */
export class IndexedOverlay<K, V, I> extends Overlay<K, V> implements IndexedTable<K, V, I> {
  readonly #indexed: IndexedTable<K, V, I>
  readonly #indexOf: IndexOf<V, I>

  constructor(base: IndexedTable<K, V, I>, indexOf: IndexOf<V, I>) {
    super(base)
    this.#indexed = base
    this.#indexOf = indexOf
  }

  * keysOf(index: I): Generator<K> {
    for (const key of this.#indexed.keysOf(index)) if (!this.hasOwn(key)) yield key
    for (const [key, value] of this.ownEntries()) if (this.#indexOf(value) === index) yield key
  }
}
