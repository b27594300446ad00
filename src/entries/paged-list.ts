/**
 * A JSON array in one Buffer. A change makes its page again; the other pages are copied. A Buffer
 * that was given never changes, so a slow reader gets the list of its moment.
 */
import { Buffer } from 'node:buffer'
import { LIST_PAGE_ENTRIES, MAX_KEPT_LIST_BYTES, MAX_KEPT_LISTS } from '../limits.ts'

/** Page n has the ids after n × `LIST_PAGE_ENTRIES`. */
export function pageOf(id: number): number {
  return Math.floor((id - 1) / LIST_PAGE_ENTRIES)
}

/** Some of the newest page's ids may not exist yet. */
export function idsOn(page: number): readonly number[] {
  return Array.from({ length: LIST_PAGE_ENTRIES }, (_, i) => page * LIST_PAGE_ENTRIES + 1 + i)
}

export interface Pages {
  readonly size: number
  /** Another number after each change on the page. */
  pageChanges(page: number): number
}

/**
 * One list for each set of groups, made when it is first asked for. Those used last are kept within
 * both bounds, the newest always.
 */
export function keptByGroups<L extends { readonly heldBytes: number }>(
  make: (groups: readonly string[]) => L
): (groups: readonly string[]) => L {
  const kept = new Map<string, L>()
  return groups => {
    const names = groups.toSorted().join()
    const list = kept.get(names) ?? make(groups)
    kept.delete(names)
    kept.set(names, list)

    let bytes = 0
    for (const { heldBytes } of kept.values()) bytes += heldBytes
    for (const [oldest, { heldBytes }] of kept) {
      if (oldest === names) break
      if (kept.size <= MAX_KEPT_LISTS && bytes <= MAX_KEPT_LIST_BYTES) break
      kept.delete(oldest)
      bytes -= heldBytes
    }
    return list
  }
}

interface Page {
  readonly version: number
  bytes: Buffer
}

const [OPEN, COMMA, CLOSE] = Buffer.from('[,]') as unknown as [number, number, number]

export class PagedList {
  readonly #entries: Pages
  readonly #textOf: (id: number) => string | undefined
  readonly #versionOf: (page: number) => number
  readonly #pages: Page[] = []
  /** Undefined since a page was made again. */
  #whole: Buffer | undefined

  /**
   * `textOf`: the JSON text of an id; undefined leaves it out of the list. `versionOf`: needed if a
   * text depends on more than the entries of its page.
   */
  constructor(
    entries: Pages,
    textOf: (id: number) => string | undefined,
    versionOf: (page: number) => number = page => entries.pageChanges(page)
  ) {
    this.#entries = entries
    this.#textOf = textOf
    this.#versionOf = versionOf
  }

  get heldBytes(): number {
    return this.#whole?.length ?? this.#pages.reduce((sum, { bytes }) => sum + bytes.length, 0)
  }

  /** Makes at most so many stale pages again. True if none is left. */
  refresh(mostPages: number = Infinity): boolean {
    let made = 0
    for (let at = 0; at * LIST_PAGE_ENTRIES < this.#entries.size; at++) {
      const version = this.#versionOf(at)
      if (this.#pages[at]?.version === version) continue
      if (made++ === mostPages) return false
      this.#pages[at] = { version, bytes: this.#bytesOf(at) }
      this.#whole = undefined
    }
    return true
  }

  /** Ascending by id; undefined for an empty list. */
  bytes(): Buffer | undefined {
    this.refresh()
    this.#whole ??= this.#joined()
    return this.#whole.length > 0 ? this.#whole : undefined
  }

  #bytesOf(page: number): Buffer {
    return Buffer.from(
      idsOn(page)
        .map(this.#textOf)
        .filter(text => text !== undefined)
        .join()
    )
  }

  /** The pages become views of the whole, so that each byte is held once. */
  #joined(): Buffer {
    const filled = this.#pages.filter(({ bytes }) => bytes.length > 0)
    if (filled.length === 0) return Buffer.alloc(0)
    // A comma follows each page; the last one becomes the bracket.
    const whole = Buffer.allocUnsafeSlow(
      1 + filled.reduce((sum, { bytes }) => sum + bytes.length + 1, 0)
    )
    let at = whole.writeUInt8(OPEN)
    for (const page of filled) {
      const end = at + page.bytes.copy(whole, at)
      page.bytes = whole.subarray(at, end)
      at = whole.writeUInt8(COMMA, end)
    }
    whole.writeUInt8(CLOSE, at - 1)
    return whole
  }
}
