/**
 * A list of numbers outside of the heap: a growing array would be copied, and its copies wait for
 * the collector.
 */
const FIRST_LENGTH = 1024

interface Numbers {
  readonly length: number
  [at: number]: number
  set(others: Numbers): void
}

/** 0 where nothing was put. */
export class Column {
  readonly #kind: new (length: number) => Numbers
  #numbers: Numbers

  constructor(kind: new (length: number) => Numbers = Uint32Array) {
    this.#kind = kind
    this.#numbers = new kind(FIRST_LENGTH)
  }

  get(at: number): number {
    return this.#numbers[at] ?? 0
  }

  set(at: number, number: number): void {
    if (at >= this.#numbers.length) {
      const longer = new this.#kind(Math.max(at + 1, this.#numbers.length * 2))
      longer.set(this.#numbers)
      this.#numbers = longer
    }
    this.#numbers[at] = number
  }

  add(at: number, more: number): number {
    this.set(at, this.get(at) + more)
    return this.get(at)
  }
}
