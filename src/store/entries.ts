/**
 * The entries in memory, each once, as the served JSON text. Short texts come whole from `JSON.stringify`: cut or
 * joined strings keep their sources alive. Long texts are outside the heap.
 */
import { Buffer } from 'node:buffer'
import { createHmac } from 'node:crypto'
import { LIST_PAGE_ENTRIES, LIST_PIECE_BYTES, LONG_ENTRY_CHARACTERS, MAX_KEPT_TAGS } from '../limits.ts'
import { entryText, type Entry } from './entry.ts'

/** Ids count from 1 without gaps. */
export interface EntryTable {
  /** The newest id; purged ids stay taken. */
  readonly size: number
  get(id: number): Entry | undefined
  /** `changedMs`: when the password was set, milliseconds since 1970; undefined keeps it. */
  set(entry: Entry, changedMs?: number): void
  /** Makes an id, even the next one, unknown for good. */
  delete(id: number): void
}

/** `pieces`: the active entries as a list has them; undefined since a change. */
interface Page { deleted: number, changes: number, pieces: readonly Buffer[] | undefined }

const ACTIVE = '1'.charCodeAt(0)
const OPEN = Buffer.from('[')
const CLOSE = Buffer.from(']')
const COMMA = Buffer.from(',')
const TAG_BYTES = 16

export class Entries implements EntryTable {
  /** See `Journal.tagKey`. */
  tagKey: Buffer = Buffer.alloc(0)
  /** By id; place 0 is unused. */
  readonly #texts: (string | Buffer | undefined)[] = [undefined]
  /** Milliseconds since 1970; NaN if not known. */
  readonly #changedMs: number[] = [NaN]
  readonly #tags = new Map<number, string>()
  readonly #pages: Page[] = []
  changes = 0
  #deleted = 0
  #purged = 0
  /** Undefined since a change. */
  #list: EntryList | undefined

  get size(): number { return this.#texts.length - 1 }

  /** With deleted entries. */
  get count(): number { return this.size - this.#purged }

  get active(): number { return this.count - this.#deleted }

  /** Bytes if it is long. */
  text(id: number): string | Buffer | undefined { return this.#texts[id] }

  has(id: number): boolean { return this.#texts[id] !== undefined }

  isActive(id: number): boolean { return this.has(id) && !isDeleted(this.#texts[id]) }

  get(id: number): Entry | undefined {
    const text = this.#texts[id]
    return text === undefined ? undefined : JSON.parse(text.toString()) as Entry
  }

  /** Milliseconds since 1970. */
  changedMs(id: number): number | undefined {
    const changedMs = this.#changedMs[id] ?? NaN
    return Number.isNaN(changedMs) ? undefined : changedMs
  }

  /** Page n has the ids after n × `LIST_PAGE_ENTRIES`. */
  pageChanges(page: number): number { return this.#pages[page]?.changes ?? 0 }

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

  /** For `ETag`; undefined for an unknown id. */
  tag(id: number): string | undefined {
    const text = this.#texts[id]
    const kept = this.#tags.get(id)
    if (text === undefined || kept !== undefined) return kept
    if (this.#tags.size >= MAX_KEPT_TAGS) this.#tags.clear()
    const tag = this.tagOf(text)
    this.#tags.set(id, tag)
    return tag
  }

  /** 128 bits of HMAC-SHA-256. The text has the id, so two entries never share a tag. */
  tagOf(text: string | Buffer): string {
    return createHmac('sha256', this.tagKey).update(text).digest().toString('base64url', 0, TAG_BYTES)
  }

  /** A JSON array, ascending by id; undefined without active entries. */
  list(): EntryList | undefined {
    if (this.active === 0) return undefined
    return this.#list ??= new EntryList(this.#pages.map((page, i) => page.pieces ??= this.#piecesOf(i)))
  }

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

/** Lists share the pieces of unchanged pages. Pieces never change, so a slow reader gets the list of its moment. */
class EntryList implements Iterable<Buffer> {
  readonly #pages: readonly (readonly Buffer[])[]
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

/** In memory of its own: a slice would keep its whole pool. */
function bytesOf(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}

/** The status ends the text. */
function isDeleted(text: string | Buffer | undefined): boolean {
  if (text === undefined) return false
  return (typeof text === 'string' ? text.charCodeAt(text.length - 2) : text[text.length - 2]) !== ACTIVE
}

function pageOf(id: number): number { return Math.floor((id - 1) / LIST_PAGE_ENTRIES) }
