/**
 * The entries in memory: each once, as the JSON text that is served. Texts of up to a kilobyte are strings, made by
 * `JSON.stringify` and never cut or joined, which would keep their sources alive. Longer ones are outside of the heap.
 */
import { Buffer } from 'node:buffer'
import { createHmac } from 'node:crypto'
import { LIST_PAGE_ENTRIES, LIST_PIECE_BYTES, LONG_ENTRY_CHARACTERS, MAX_KEPT_TAGS } from '../limits.ts'
import { entryText, type Entry } from './entry.ts'

/** What reducers change: the entries that are served, or a draft of them. Ids count from 1 without gaps. */
export interface EntryTable {
  /** The newest id. That of an entry which was purged stays taken. */
  readonly size: number
  get(id: number): Entry | undefined
  /** `changedMs` is when its password was set, in milliseconds since 1970; undefined: as before, or not known. */
  set(entry: Entry, changedMs?: number): void
  /** Makes an id unknown for good, also the next one. */
  delete(id: number): void
}

/** Entries whose ids follow each other; `pieces` are the active ones as a list has them, until one of them changes. */
interface Page { deleted: number, changes: number, pieces: readonly Buffer[] | undefined }

const ACTIVE = '1'.charCodeAt(0)
const OPEN = Buffer.from('[')
const CLOSE = Buffer.from(']')
const COMMA = Buffer.from(',')
const TAG_BYTES = 16

export class Entries implements EntryTable {
  /** Set once the journal is open; see `Journal.tagKey`. */
  tagKey: Buffer = Buffer.alloc(0)
  /** By id, from 1 on: place 0 is never used. */
  readonly #texts: (string | Buffer | undefined)[] = [undefined]
  /** When each entry's password was set, milliseconds since 1970; NaN if that is not known. */
  readonly #changedMs: number[] = [NaN]
  /** Tags that were asked for, until their entries change. */
  readonly #tags = new Map<number, string>()
  readonly #pages: Page[] = []
  /** How often any entry was changed. */
  changes = 0
  #deleted = 0
  #purged = 0
  /** The list as it was last asked for; undefined since a change. */
  #list: EntryList | undefined

  get size(): number { return this.#texts.length - 1 }

  /** How many entries there are, deleted ones too. */
  get count(): number { return this.size - this.#purged }

  /** How many entries are active. */
  get active(): number { return this.count - this.#deleted }

  /** The JSON text of an entry; the bytes of it if it is long. */
  text(id: number): string | Buffer | undefined { return this.#texts[id] }

  /** Whether there is an entry, a deleted one too. */
  has(id: number): boolean { return this.#texts[id] !== undefined }

  isActive(id: number): boolean { return this.has(id) && !isDeleted(this.#texts[id]) }

  get(id: number): Entry | undefined {
    const text = this.#texts[id]
    return text === undefined ? undefined : JSON.parse(text.toString()) as Entry
  }

  /** When an entry's password was set, in milliseconds since 1970; undefined if that is not known. */
  changedMs(id: number): number | undefined {
    const changedMs = this.#changedMs[id] ?? NaN
    return Number.isNaN(changedMs) ? undefined : changedMs
  }

  /** How often entries of a page were changed: page n has the ids after n × `LIST_PAGE_ENTRIES`. */
  pageChanges(page: number): number { return this.#pages[page]?.changes ?? 0 }

  /** How many entries of a page are deleted. */
  pageDeleted(page: number): number { return this.#pages[page]?.deleted ?? 0 }

  * entries(): Generator<Entry> {
    for (let id = 1; id <= this.size; id++) {
      const entry = this.get(id)
      if (entry !== undefined) yield entry
    }
  }

  set(entry: Entry, changedMs: number = this.#changedMs[entry.id] ?? NaN): void {
    const text = entryText(entry)
    this.#put(entry.id, text.length > LONG_ENTRY_CHARACTERS ? bytesOf(text) : text)
    this.#changedMs[entry.id] = changedMs
  }

  delete(id: number): void {
    if (id <= this.size && !this.has(id)) return
    this.#put(id, undefined)
    this.#changedMs[id] = NaN
    this.#purged++
  }

  #put(id: number, text: string | Buffer | undefined): void {
    if (id < 1 || id > this.#texts.length) throw new Error(`entry ${id} would leave a gap`)
    const page = this.#pages[pageOf(id)] ??= { deleted: 0, changes: 0, pieces: undefined }
    const change = Number(isDeleted(text)) - Number(isDeleted(this.#texts[id]))
    page.deleted += change
    this.#deleted += change
    page.pieces = undefined
    page.changes++
    this.changes++
    this.#list = undefined
    this.#texts[id] = text
    this.#tags.delete(id)
  }

  /** The tag of an entry as it is: what its `ETag` says. Undefined for an unknown id. */
  tag(id: number): string | undefined {
    const text = this.#texts[id]
    const kept = this.#tags.get(id)
    if (text === undefined || kept !== undefined) return kept
    if (this.#tags.size >= MAX_KEPT_TAGS) this.#tags.clear()
    const tag = this.tagOf(text)
    this.#tags.set(id, tag)
    return tag
  }

  /** The tag of a text: 128 bits of HMAC-SHA-256. The id is in the text, so two entries never share a tag. */
  tagOf(text: string | Buffer): string {
    return createHmac('sha256', this.tagKey).update(text).digest().toString('base64url', 0, TAG_BYTES)
  }

  /** The active entries as a JSON array in pieces, ascending by id; undefined if there are none. */
  list(): EntryList | undefined {
    if (this.active === 0) return undefined
    return this.#list ??= new EntryList(this.#pages.map((page, i) => page.pieces ??= this.#piecesOf(i)))
  }

  /** The active entries of a page, each behind a comma. Short ones are joined, long ones stay as they are. */
  #piecesOf(page: number): readonly Buffer[] {
    const pieces: Buffer[] = []
    let joined = ''
    const end = (): void => {
      if (joined !== '') pieces.push(bytesOf(joined))
      joined = ''
    }
    const first = page * LIST_PAGE_ENTRIES + 1
    for (const text of this.#texts.slice(first, first + LIST_PAGE_ENTRIES)) {
      if (text === undefined || isDeleted(text)) continue
      if (typeof text !== 'string') { end(); pieces.push(COMMA, text); continue }
      joined += `,${text}`
      if (joined.length > LIST_PIECE_BYTES) end()
    }
    end()
    return pieces
  }
}

/**
 * A list in pieces, which begin with commas; the first comma is left out. Lists share the pieces of pages that did not
 * change, and pieces never change: a slow reader still reads the list of its moment.
 */
class EntryList implements Iterable<Buffer> {
  readonly #pages: readonly (readonly Buffer[])[]
  /** How many bytes all pieces have. */
  readonly bytes: number

  constructor(pages: readonly (readonly Buffer[])[]) {
    this.#pages = pages
    let bytes = 0
    for (const pieces of pages) for (const piece of pieces) bytes += piece.length
    this.bytes = OPEN.length + bytes - COMMA.length + CLOSE.length
  }

  * [Symbol.iterator](): Generator<Buffer, void, void> {
    yield OPEN
    let isFirst = true
    for (const pieces of this.#pages) {
      for (const piece of pieces) {
        if (!isFirst) yield piece
        else if (piece.length > COMMA.length) yield piece.subarray(COMMA.length)
        isFirst = false
      }
    }
    yield CLOSE
  }
}

/** The bytes of a text, in memory of their own: a slice of a pool would keep the whole pool. */
function bytesOf(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}

/** Whether a text is that of a deleted entry: it ends with its status. */
function isDeleted(text: string | Buffer | undefined): boolean {
  if (text === undefined) return false
  return (typeof text === 'string' ? text.charCodeAt(text.length - 2) : text[text.length - 2]) !== ACTIVE
}

function pageOf(id: number): number { return Math.floor((id - 1) / LIST_PAGE_ENTRIES) }
