/**
 * A map that forgets, so that its memory is bounded. It has two generations. What is used moves to
 * the younger one. If that is full, or a lifetime old, it becomes the older one, and the older one
 * is forgotten. So a key lives for a lifetime after its last use, unless more than a generation of
 * other keys came meanwhile.
 */
export class RecentMap<V> {
  readonly #maxKeys: number
  readonly #lifetimeSeconds: number
  #young = new Map<string, V>()
  #old = new Map<string, V>()
  #youngSinceSecond = 0

  /** `maxKeys`: of each generation. */
  constructor(maxKeys: number, lifetimeSeconds: number) {
    this.#maxKeys = maxKeys
    this.#lifetimeSeconds = lifetimeSeconds
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  peek(key: string): V | undefined {
    return this.#young.get(key) ?? this.#old.get(key)
  }

  use(key: string, second: number, make: () => V): V {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const value = this.#old.get(key) ?? make()
    if (
      second - this.#youngSinceSecond >= this.#lifetimeSeconds ||
      this.#young.size >= this.#maxKeys
    ) {
      this.#old = this.#young
      this.#young = new Map()
      this.#youngSinceSecond = second
    }
    this.#old.delete(key)
    this.#young.set(key, value)
    return value
  }
}
