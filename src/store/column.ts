/** A list of numbers outside of the heap: a growing array there is copied, and its copies wait for the collector. */
const FIRST_LENGTH = 1024

/** Positive integers below 2^32; 0 where nothing was put. */
export class Column {
  #numbers = new Uint32Array(FIRST_LENGTH)

  get(at: number): number {
    return this.#numbers[at] ?? 0
  }

  set(at: number, number: number): void {
    if (at >= this.#numbers.length) {
      const longer = new Uint32Array(Math.max(at + 1, this.#numbers.length * 2))
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
