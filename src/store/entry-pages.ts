/**
 * The entries in memory, each once: as a part of a page of the list's bytes. A page that changes is split into texts
 * and joined again for the next list, so a change costs the list one page, however many there are. Buffers are outside
 * of the garbage-collected heap: a million entries cost the collector no more than their pages do.
 */
import { Buffer } from 'node:buffer'
import { PAGE_ENTRIES } from '../limits.ts'
import type { Entry } from './entry.ts'
import type { Table } from './overlay.ts'

/** Entries by id. Ids count from 1 without gaps; that of an entry which was purged stays unknown. */
export class EntryTable implements Table<number, Entry> {
  readonly #textOf: (entry: Entry) => string
  readonly #pages: Page[] = []
  #size = 0
  #deleted = 0
  #purged = 0

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
  text(id: number): string | undefined { return this.#pages[pageOf(id)]?.text((id - 1) % PAGE_ENTRIES) }

  /** Its bytes, where it is long: shared by all readers, and never changed. */
  longText(id: number): Buffer | undefined { return this.#pages[pageOf(id)]?.longText((id - 1) % PAGE_ENTRIES) }

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

  /** Removes every value that the entry has here. The size is the highest id, so this leaves it; it may be the next. */
  delete(id: number): void {
    if (id <= this.#size && !this.has(id)) return
    this.#put(id, PURGED, false)
    this.#purged++
  }

  #put(id: number, text: string, isDeleted: boolean): void {
    if (id > this.#size + 1) throw new Error(`entry ${id} would leave a gap`)
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
  list(): Buffer[] | undefined {
    if (this.active === 0) return undefined
    const pieces = [OPEN]
    for (const page of this.#pages) {
      const bytes = page.list()
      if (bytes.length > 0) pieces.push(pieces.length === 1 ? bytes.subarray(1) : bytes)
    }
    pieces.push(CLOSE)
    return pieces
  }

  /** The same of the deleted entries below an id, the newest first: as many as `maxBytes` hold, and one at least. */
  deletedBelow(id: number, maxBytes: number): Buffer[] {
    const pieces = [OPEN]
    let left = maxBytes
    for (let at = Math.min(pageOf(id - 1), this.#pages.length - 1); at >= 0; at--) {
      const { bytes, isAll } = this.#pages[at]!.deletedBelow(id - at * PAGE_ENTRIES, left, pieces.length === 1)
      if (bytes.length > 0) pieces.push(pieces.length === 1 ? bytes.subarray(1) : bytes)
      left -= bytes.length
      if (!isAll) break
    }
    pieces.push(CLOSE)
    return pieces
  }
}

const OPEN = Buffer.from('[')
const COMMA = 0x2c
const CLOSE = Buffer.from(']')
const EMPTY = Buffer.alloc(0)
/** The text of an entry that was purged. */
const PURGED = ''
/** Texts that are longer are bytes, outside of the heap, from the beginning until the last reader has them. */
const LONG_TEXT = 4096

/** Up to `PAGE_ENTRIES` entries, by their position in the page: as texts, or packed into bytes. */
class Page {
  #texts: (string | Buffer)[] | undefined = []
  readonly #deleted = new Set<number>()
  /** By place. */
  readonly revisions: number[] = []
  #bytes: Buffer = EMPTY
  /** In the bytes, each text's start, which is behind a comma, and its end; zeros where there is none. */
  #bounds = new Uint32Array()
  #list: Buffer = EMPTY

  /** How many of the entries are deleted. */
  get deleted(): number { return this.#deleted.size }

  text(place: number): string | undefined {
    if (this.#texts !== undefined) return this.#texts[place]?.toString() || undefined
    const start = this.#bounds[2 * place]
    return start ? this.#bytes.toString('utf8', start, this.#bounds[2 * place + 1]) : undefined
  }

  longText(place: number): Buffer | undefined {
    const bytes = this.#texts === undefined ? this.#packed(place) : this.#texts[place]
    return bytes instanceof Buffer && bytes.length > LONG_TEXT ? bytes : undefined
  }

  has(place: number): boolean { return Boolean(this.#texts?.[place] ?? this.#bounds[2 * place]) }

  set(place: number, text: string, isDeleted: boolean): void {
    this.#unpack()[place] = text.length > LONG_TEXT ? Buffer.from(text) : text
    if (isDeleted) this.#deleted.add(place)
    else this.#deleted.delete(place)
    if (place === PAGE_ENTRIES - 1) this.#pack()
  }

  /** The active ones, each after a comma. */
  list(): Buffer {
    if (this.#texts !== undefined) this.#pack()
    return this.#list
  }

  /** Of the deleted ones of places from 1 up to, not including, `end`: the newest that fit, each after a comma. */
  deletedBelow(end: number, maxBytes: number, takesOne: boolean): { readonly bytes: Buffer, readonly isAll: boolean } {
    const places = [...this.#deleted].filter(place => place + 1 < end).sort((a, b) => b - a)
    if (places.length > 0 && this.#texts !== undefined) this.#pack()
    const start = this.#bounds[2 * places[0]!]! - 1
    const fits = (place: number, i: number): boolean =>
      (takesOne && i === 0) || this.#bounds[2 * place + 1]! - start <= maxBytes
    const last = places.findLast(fits)
    const bytes = last === undefined ? EMPTY : this.#bytes.subarray(start, this.#bounds[2 * last + 1])
    return { bytes, isAll: last === places.at(-1) }
  }

  /** The active ones come first, then the deleted ones from the newest on: so a list's part is one piece. */
  #pack(): void {
    const texts = this.#texts!
    this.#bounds = new Uint32Array(2 * texts.length)
    const sizes = texts.map(text => Buffer.byteLength(text))
    const all = Buffer.allocUnsafeSlow(sizes.reduce((sum, size) => sum + (size && size + 1), 0))
    let end = 0
    let activeEnd = 0
    for (const takesDeleted of [false, true]) {
      for (let n = 0; n < texts.length; n++) {
        const place = takesDeleted ? texts.length - 1 - n : n
        const text = texts[place]!
        if (text === PURGED || this.#deleted.has(place) !== takesDeleted) continue
        all[end++] = COMMA
        this.#bounds[2 * place] = end
        if (typeof text === 'string') all.write(text, end)
        else all.set(text, end)
        end += sizes[place]!
        this.#bounds[2 * place + 1] = end
      }
      if (!takesDeleted) activeEnd = end
    }
    this.#bytes = all
    this.#list = this.#bytes.subarray(0, activeEnd)
    this.#texts = undefined
  }

  /** No bytes where there is no entry. */
  #packed(place: number): Buffer {
    const [start = 0, end = 0] = this.#bounds.subarray(2 * place, 2 * place + 2)
    return this.#bytes.subarray(start, end)
  }

  #unpack(): (string | Buffer)[] {
    this.#texts ??= Array.from({ length: this.#bounds.length / 2 }, (_, place) => {
      const bytes = this.#packed(place)
      return bytes.length > LONG_TEXT ? bytes : bytes.toString()
    })
    this.#bytes = this.#list = EMPTY
    return this.#texts
  }
}

function pageOf(id: number): number { return Math.floor((id - 1) / PAGE_ENTRIES) }
