/**
 * A set of ids, a bit for each, in pages: it costs little if the ids are few or close to each
 * other.
 */
import { Buffer } from 'node:buffer'

const PAGE_IDS = 1024

export class IdSet {
  /** Page n has the ids from n × `PAGE_IDS`. */
  readonly #pages = new Map<number, Uint8Array>()

  has(id: number): boolean {
    return ((this.#pages.get(Math.floor(id / PAGE_IDS))?.[byteOf(id)] ?? 0) & bitOf(id)) !== 0
  }

  add(id: number): void {
    const at = Math.floor(id / PAGE_IDS)
    let page = this.#pages.get(at)
    if (page === undefined) this.#pages.set(at, (page = new Uint8Array(PAGE_IDS / 8)))
    page[byteOf(id)]! |= bitOf(id)
  }

  delete(id: number): void {
    const page = this.#pages.get(Math.floor(id / PAGE_IDS))
    if (page !== undefined) page[byteOf(id)]! &= ~bitOf(id)
  }

  /** Without empty pages, in their order; `bits` is base64. */
  *kept(): Generator<{ readonly page: number; readonly bits: string }, void, void> {
    for (const [page, bits] of [...this.#pages].sort(([a], [b]) => a - b)) {
      if (bits.some(byte => byte > 0)) yield { page, bits: Buffer.from(bits).toString('base64') }
    }
  }

  restore(page: number, bits: string): void {
    this.#pages.set(page, Buffer.from(bits, 'base64'))
  }
}

function byteOf(id: number): number {
  return (id % PAGE_IDS) >> 3
}

function bitOf(id: number): number {
  return 1 << (id & 7)
}
