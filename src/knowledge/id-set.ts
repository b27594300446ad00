/** A set of small numbers: pages with a bit for each. */

/** As a power of two. */
const PAGE_BITS = 13

export class IdSet {
  readonly #pages: (Uint8Array | undefined)[] = []

  has(id: number): boolean {
    const page = this.#pages[id >>> PAGE_BITS]
    return page !== undefined && (page[byteOf(id)]! & bitOf(id)) !== 0
  }

  add(id: number): void {
    const page = (this.#pages[id >>> PAGE_BITS] ??= new Uint8Array(1 << (PAGE_BITS - 3)))
    page[byteOf(id)]! |= bitOf(id)
  }

  delete(id: number): void {
    const page = this.#pages[id >>> PAGE_BITS]
    if (page !== undefined) page[byteOf(id)]! &= ~bitOf(id)
  }
}

function byteOf(id: number): number {
  return (id & ((1 << PAGE_BITS) - 1)) >>> 3
}

function bitOf(id: number): number {
  return 1 << (id & 7)
}
