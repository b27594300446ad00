/** A list of texts outside of the heap, which may be longer than the heap has room for. */
import { Buffer } from 'node:buffer'
import { Column } from '../../store/column.ts'

const FIRST_BYTES = 64 * 1024

export class Texts {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
  /** Where each text ends, from 1. */
  readonly #ends = new Column()
  length = 0

  push(text: string): void {
    const from = this.#ends.get(this.length)
    const end = from + Buffer.byteLength(text)
    if (end > this.#bytes.length) {
      const longer = Buffer.allocUnsafeSlow(Math.max(end, this.#bytes.length * 2))
      this.#bytes.copy(longer, 0, 0, from)
      this.#bytes = longer
    }
    this.#bytes.write(text, from)
    this.#ends.set(++this.length, end)
  }

  at(place: number): string {
    return this.#bytes.toString('utf8', this.#ends.get(place), this.#ends.get(place + 1))
  }
}
