/**
 * The entries in memory, each once, as the bytes of the list: short ones together in a page, long ones each alone. What
 * changes is packed into its page again for the next list, so a change costs the list one page, however many there are.
 * Buffers are outside of the garbage-collected heap, and whoever still reads an older list shares what did not change.
 */
import { Buffer } from 'node:buffer'
import { LONG_ENTRY_BYTES, PAGE_ENTRIES } from '../limits.ts'
import type { Entry } from './entry.ts'
import type { Table } from './overlay.ts'

/** Entries by id. Ids count from 1 without gaps; that of an entry which was purged stays unknown. */
export class EntryTable implements Table<number, Entry> {
  readonly #textOf: (entry: Entry) => string
  readonly #pages: Page[] = []
  #size = 0
  #deleted = 0
  #purged = 0
  /** The list as it was last asked for; undefined since a change. */
  #list: EntryList | undefined

  /** What entries are marked with that are set from now on. */
  revision = 0

  /** `textOf` gives the JSON text of an entry, which ends with its status. */
  constructor(textOf: (entry: Entry) => string) { this.#textOf = textOf }

  /** The newest id. */
  get size(): number { return this.#size }

  /** How many entries there are, deleted ones too. */
  get count(): number { return this.#size - this.#purged }

  /** How many entries are active. */
  get active(): number { return this.count - this.#deleted }

  /** The JSON text of an entry. */
  text(id: number): string | undefined { return this.bytes(id)?.toString() }

  /**
   * The bytes of that text, shared by all readers, and never changed. Those of a short entry keep its whole page in
   * memory.
   */
  bytes(id: number): Buffer | undefined { return this.#pages[pageOf(id)]?.bytes((id - 1) % PAGE_ENTRIES) }

  /** Whether there is an entry, a deleted one too. */
  has(id: number): boolean { return this.#pages[pageOf(id)]?.has((id - 1) % PAGE_ENTRIES) === true }

  /** The revision that an entry was marked with last; 0 where there is none. */
  revisionOf(id: number): number { return this.#pages[pageOf(id)]?.revisions[(id - 1) % PAGE_ENTRIES] ?? 0 }

  get(id: number): Entry | undefined {
    const text = this.text(id)
    return text === undefined ? undefined : JSON.parse(text) as Entry
  }

  * entries(): Generator<[number, Entry]> {
    for (let id = 1; id <= this.#size; id++) {
      const entry = this.get(id)
      if (entry !== undefined) yield [id, entry]
    }
  }

  set(id: number, entry: Entry): void { this.#put(id, this.#textOf(entry), entry.status === 0) }

  /** Makes an id unknown, also the next one. */
  delete(id: number): void {
    if (id <= this.#size && !this.has(id)) return
    this.#put(id, undefined, false)
    this.#purged++
  }

  #put(id: number, text: string | undefined, isDeleted: boolean): void {
    if (id > this.#size + 1) throw new Error(`entry ${id} would leave a gap`)
    this.#list = undefined
    const page = this.#pages[pageOf(id)] ??= new Page()
    this.#deleted -= page.deleted
    page.set((id - 1) % PAGE_ENTRIES, text, isDeleted)
    page.revisions[(id - 1) % PAGE_ENTRIES] = this.revision
    this.#deleted += page.deleted
    if (id > this.#size) this.#size = id
  }

  /**
   * The list of the active entries, ascending by id, as a JSON array in pieces; undefined if there are none. The pieces
   * are never changed: a slow reader still reads the list of that moment.
   */
  list(): EntryList | undefined {
    if (this.active === 0) return undefined
    return this.#list ??= new EntryList(this.#pages.map(page => page.list()))
  }

  /** The same of the deleted entries below an id, the newest first: as many as `maxBytes` hold, and one at least. */
  deletedBelow(id: number, maxBytes: number): EntryList {
    const pieces: Buffer[] = []
    let left = maxBytes
    for (let at = Math.min(pageOf(id - 1), this.#pages.length - 1); at >= 0 && left > 0; at--) {
      left = this.#pages[at]!.takeDeleted(id - at * PAGE_ENTRIES - 1, left, pieces)
    }
    return new EntryList([pieces])
  }
}

const OPEN = Buffer.from('[')
const CLOSE = Buffer.from(']')
/** Short entries of a page that have changed and stand alone; with one more, they are packed. */
const MAX_LOOSE = 16

/** A list in pieces. It has no copy of what did not change: many slow readers may each have another list. */
export class EntryList implements Iterable<Buffer> {
  readonly #pages: readonly (readonly Buffer[])[]
  /** How many bytes all pieces have. */
  readonly bytes: number

  /** Each piece begins with a comma. */
  constructor(pages: readonly (readonly Buffer[])[]) {
    this.#pages = pages
    const bytesOf = (page: readonly Buffer[]): number => page.reduce((sum, piece) => sum + piece.length, 0)
    const bytes = pages.reduce((sum, page) => sum + bytesOf(page), 0)
    this.bytes = OPEN.length + Math.max(0, bytes - 1) + CLOSE.length
  }

  * [Symbol.iterator](): Generator<Buffer, void, void> {
    yield OPEN
    let commas = 1 // that of the first piece is left out
    for (const page of this.#pages) {
      for (const piece of page) {
        yield commas === 0 ? piece : piece.subarray(commas)
        commas = 0
      }
    }
    yield CLOSE
  }
}

/** Up to `PAGE_ENTRIES` entries, by their place in the page. In bytes, each has a comma before it. */
class Page {
  /** The short ones: the active ones, then the deleted ones from the newest on; so either is one piece of a list. */
  #packed: Buffer = Buffer.alloc(0)
  /** Where each begins and ends in it; zeros for those that are not in it. */
  readonly #bounds = new Uint32Array(2 * PAGE_ENTRIES)
  /** Those that stand alone: the long ones, and short ones that were set since the others were packed. */
  readonly #alone = new Map<number, Buffer>()
  #loose = 0
  readonly #deleted = new Set<number>()
  /** By place. */
  readonly revisions: number[] = []
  #list: readonly Buffer[] | undefined

  /** How many of the entries are deleted. */
  get deleted(): number { return this.#deleted.size }

  bytes(place: number): Buffer | undefined {
    const end = this.#end(place)
    if (end > 0) return this.#packed.subarray(this.#start(place) + 1, end)
    return this.#alone.get(place)?.subarray(1)
  }

  has(place: number): boolean { return this.#length(place) > 0 }

  set(place: number, text: string | undefined, isDeleted: boolean): void {
    const wasPacked = this.#end(place) > 0
    if (this.#isLoose(place)) this.#loose--
    this.#alone.delete(place)
    this.#bounds[2 * place] = this.#bounds[2 * place + 1] = 0
    if (text !== undefined) this.#alone.set(place, Buffer.from(`,${text}`))
    if (isDeleted) this.#deleted.add(place)
    else this.#deleted.delete(place)
    if (this.#isLoose(place)) this.#loose++
    this.#list = undefined
    // A full page is packed, and so is one that would keep the bytes of what was purged or has become long.
    const isLeft = wasPacked && !this.#isLoose(place)
    if (this.#loose > MAX_LOOSE || place === PAGE_ENTRIES - 1 || isLeft) this.#pack()
  }

  /** The active ones. */
  list(): readonly Buffer[] {
    if (this.#list !== undefined) return this.#list
    if (this.#loose > 0) this.#pack()
    return this.#list = this.#pieces(this.#places(false))
  }

  /** Gives the newest deleted ones before a place that fit into `maxBytes`; returns what is left, 0 if not all fit. */
  takeDeleted(before: number, maxBytes: number, pieces: Buffer[]): number {
    if (this.#deleted.size === 0) return maxBytes
    if (this.#loose > 0) this.#pack()
    const places = this.#places(true).filter(place => place < before)
    let left = maxBytes
    const taken = places.findIndex((place, i) => {
      left -= this.#length(place)
      return left < 0 && (i > 0 || pieces.length > 0)
    })
    pieces.push(...this.#pieces(taken < 0 ? places : places.slice(0, taken)))
    return Math.max(0, left)
  }

  #start(place: number): number { return this.#bounds[2 * place] ?? 0 }
  #end(place: number): number { return this.#bounds[2 * place + 1] ?? 0 }
  #length(place: number): number {
    return this.#end(place) - this.#start(place) || (this.#alone.get(place)?.length ?? 0)
  }

  #isLoose(place: number): boolean { return (this.#alone.get(place)?.length ?? Infinity) <= LONG_ENTRY_BYTES }

  /** The places of the active entries, or of the deleted ones, in the order in which they are packed and listed. */
  #places(areDeleted: boolean): number[] {
    const places: number[] = []
    for (let place = 0; place < PAGE_ENTRIES; place++) {
      if (this.#deleted.has(place) === areDeleted && this.has(place)) places.push(place)
    }
    return areDeleted ? places.reverse() : places
  }

  /** The bytes of these places: what follows each other in the packed ones is one piece. */
  #pieces(places: readonly number[]): Buffer[] {
    const pieces: Buffer[] = []
    let start = 0
    let end = 0
    for (const place of places) {
      const alone = this.#alone.get(place)
      if (alone === undefined && this.#start(place) === end) { end = this.#end(place); continue }
      if (end > start) pieces.push(this.#packed.subarray(start, end))
      if (alone !== undefined) pieces.push(alone)
      start = alone === undefined ? this.#start(place) : end
      end = alone === undefined ? this.#end(place) : end
    }
    if (end > start) pieces.push(this.#packed.subarray(start, end))
    return pieces
  }

  #pack(): void {
    const places = [...this.#places(false), ...this.#places(true)]
      .filter(place => this.#length(place) <= LONG_ENTRY_BYTES)
    const packed = Buffer.allocUnsafeSlow(places.reduce((sum, place) => sum + this.#length(place), 0))
    let end = 0
    for (const place of places) {
      const start = end
      const alone = this.#alone.get(place)
      if (alone === undefined) end += this.#packed.copy(packed, end, this.#start(place), this.#end(place))
      else end += alone.copy(packed, end)
      this.#alone.delete(place)
      this.#bounds[2 * place] = start
      this.#bounds[2 * place + 1] = end
    }
    this.#packed = packed
    this.#loose = 0
  }
}

function pageOf(id: number): number { return Math.floor((id - 1) / PAGE_ENTRIES) }
