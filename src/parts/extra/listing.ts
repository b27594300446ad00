/**
 * The list without secrets: of each active entry what it is for, and when its password was set. A caller who may also
 * read all passwords learns how many other entries have the same one; to anybody else that would answer guesses.
 */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { LIST_PAGE_ENTRIES } from '../../limits.ts'
import type { Entries } from '../../store/entries.ts'
import { ENTRY_FIELDS, FIELDS, type Entry } from '../../store/entry.ts'

/** A list: its bytes in pieces, how many they are, and the tag that says which list it is. */
export interface Listing extends Iterable<Buffer> { readonly bytes: number, readonly tag: string }

/** What is known of the active entries of a page, as they were after so many changes. */
interface Page {
  readonly changes: number
  readonly plain: Piece
  /** Of each entry a number that equal passwords share. */
  readonly passwords: readonly number[]
  /** The form with `reused`, right as long as these are the numbers in it. */
  reused?: { readonly others: string, readonly piece: Piece }
}

interface Piece { readonly bytes: Buffer, readonly digest: string }

const OPEN_FIELDS = ENTRY_FIELDS.filter(field => !FIELDS[field].isSecret)
/** Pages that are read at once; other requests are served in between. */
const SLICE_PAGES = 64
/** Below this, compression saves no packet. */
const MIN_PACKED_BYTES = 2 * 1024
/** Above this, a list is sent as it is: its copy and its compressed text would take too much memory. */
const MAX_PACKED_BYTES = 16 * 1024 * 1024
const pack = promisify(gzip)

/** Gives the list as it is now. A page that did not change is not read again. */
export function listingOf(entries: Entries): (showsReused: boolean) => Promise<Listing> {
  const pages: Page[] = []
  /** Reads pages that have changed; says how many it has read, at most `most`. */
  const refresh = (most: number): number => {
    let read = 0
    for (let at = 0; at * LIST_PAGE_ENTRIES < entries.size && read < most; at++) {
      const changes = entries.pageChanges(at)
      if (pages[at]?.changes === changes) continue
      pages[at] = pageOf(activeOn(entries, at), changes)
      read++
    }
    return read
  }
  return async showsReused => {
    while (refresh(SLICE_PAGES) === SLICE_PAGES) await new Promise(resolve => setImmediate(resolve))
    if (!showsReused) return joined(pages.map(({ plain }) => plain))
    const counts = new Map<number, number>()
    for (const { passwords } of pages) for (const one of passwords) counts.set(one, (counts.get(one) ?? 0) + 1)
    return joined(pages.map((page, at) => {
      const others = page.passwords.map(one => counts.get(one)! - 1)
      if (others.every(count => count === 0)) return page.plain
      const known = others.join()
      if (page.reused?.others !== known) {
        page.reused = { others: known, piece: pieceOf(activeOn(entries, at).map((one, i) => textOf(one, others[i]!))) }
      }
      return page.reused.piece
    }))
  }
}

/** An entry, and when its password was set. */
interface Dated { readonly entry: Entry, readonly changedMs: number | undefined }

function activeOn(entries: Entries, page: number): readonly Dated[] {
  const first = page * LIST_PAGE_ENTRIES + 1
  return Array.from({ length: LIST_PAGE_ENTRIES }, (_, i) => entries.get(first + i))
    .flatMap(entry => entry?.status === 1 ? [{ entry, changedMs: entries.changedMs(entry.id) }] : [])
}

function pageOf(active: readonly Dated[], changes: number): Page {
  const passwords = active.map(({ entry }) => numberOf(entry.password))
  return { changes, plain: pieceOf(active.map(one => textOf(one, 0))), passwords }
}

/** An entry without its secrets, as JSON; `reused`, how many others have its password, is left out if it is 0. */
function textOf({ entry, changedMs }: Dated, reused: number): string {
  const fields = Object.fromEntries(OPEN_FIELDS.map(field => [field, entry[field]]))
  const changed = changedMs === undefined ? undefined : new Date(changedMs).toISOString()
  return JSON.stringify({ id: entry.id, ...fields, status: entry.status, changed, reused: reused || undefined })
}

/** 48 bits of a password's SHA-256, as a number: two others share it by chance once in millions of such lists. */
function numberOf(password: string): number { return parseInt(hash('sha256', password, 'hex').slice(0, 12), 16) }

/** Texts as a piece of a list, each behind a comma. */
function pieceOf(texts: readonly string[]): Piece {
  const bytes = Buffer.from(texts.map(text => `,${text}`).join(''))
  return { bytes, digest: hash('sha256', bytes, 'base64url') }
}

function joined(pieces: readonly Piece[]): Listing {
  const filled = pieces.filter(({ bytes }) => bytes.length > 0)
  const all = filled.map(({ bytes }, i) => i === 0 ? bytes.subarray(1) : bytes)
  const whole = [Buffer.from('['), ...all, Buffer.from(']')]
  return Object.assign(whole, {
    bytes: whole.reduce((sum, { length }) => sum + length, 0),
    tag: hash('sha256', filled.map(({ digest }) => digest).join(), 'base64url')
  })
}

/** Whether a list may be compressed. */
export function isPackable({ bytes }: Listing): boolean {
  return bytes >= MIN_PACKED_BYTES && bytes <= MAX_PACKED_BYTES
}

/**
 * Gives the gzip of a list, or undefined while that of another one is made. A list holds neither passwords nor notes,
 * so that its compressed size tells of no secret beside which somebody could write (BREACH). The last text of each form
 * is kept, and one text is made at a time: lists that change all the time cost no more than that.
 */
export function packer(): (list: Listing, showsReused: boolean) => Promise<Buffer> | undefined {
  const kept = new Map<boolean, { readonly tag: string, readonly bytes: Promise<Buffer> }>()
  let isBusy = false
  return (list, showsReused) => {
    const known = kept.get(showsReused)
    if (known?.tag === list.tag) return known.bytes
    if (isBusy) return undefined
    isBusy = true
    const bytes = pack(Buffer.concat([...list])).finally(() => { isBusy = false })
    kept.set(showsReused, { tag: list.tag, bytes })
    return bytes
  }
}
