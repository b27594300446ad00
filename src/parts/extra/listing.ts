/**
 * The list without secrets. Only a caller who may read all passwords learns how many other entries share a password,
 * because the count would answer guesses.
 */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { LIST_PAGE_ENTRIES } from '../../limits.ts'
import type { Entries } from '../../store/entries.ts'
import { ENTRY_FIELDS, FIELDS, type Entry } from '../../store/entry.ts'

export interface Listing extends Iterable<Buffer> { readonly bytes: number, readonly tag: string }

interface Page {
  readonly changes: number
  /** Equal passwords share a number. */
  readonly passwords: readonly number[]
  readonly plain: Piece
  /** Undefined until it is asked for, and after a count in it has changed. */
  reused: Piece | undefined
}

interface Piece { readonly bytes: Buffer, readonly digest: string }

const OPEN_FIELDS = ENTRY_FIELDS.filter(field => !FIELDS[field].isSecret)
/** Pages read before other requests are served. */
const SLICE_PAGES = 64
/** Below this, compression saves no packet. */
const MIN_PACKED_BYTES = 2 * 1024
/** Above this, copy and compressed text take too much memory. */
const MAX_PACKED_BYTES = 16 * 1024 * 1024
const pack = promisify(gzip)

/** Unchanged pages are not read again. */
export function listingOf(entries: Entries): (showsReused: boolean) => Promise<Listing> {
  const pages: Page[] = []
  /** How many active entries have a password. */
  const counts = new Map<number, number>()
  let listed: { readonly changes: number, plain?: Listing, reused?: Listing } = { changes: -1 }

  /** Gives passwords whose count has changed, if other entries have or had them. */
  const recount = (before: readonly number[], after: readonly number[]): readonly number[] => {
    const had = new Map([...before, ...after].map(one => [one, counts.get(one) ?? 0]))
    for (const one of before) counts.set(one, counts.get(one)! - 1)
    for (const one of after) counts.set(one, (counts.get(one) ?? 0) + 1)
    for (const one of had.keys()) if (counts.get(one) === 0) counts.delete(one)
    return [...had].filter(([one, old]) => old !== (counts.get(one) ?? 0) && Math.max(old, counts.get(one) ?? 0) > 1)
      .map(([one]) => one)
  }
  const refresh = (): number => {
    const others = new Set<number>()
    let read = 0
    for (let at = 0; at * LIST_PAGE_ENTRIES < entries.size && read < SLICE_PAGES; at++) {
      const changes = entries.pageChanges(at)
      const old = pages[at]
      if (old?.changes === changes) continue
      const active = activeOn(entries, at)
      const passwords = active.map(({ password }) => numberOf(password))
      for (const one of recount(old?.passwords ?? [], passwords)) others.add(one)
      pages[at] = { changes, passwords, plain: pieceOf(active.map(one => textOf(entries, one))), reused: undefined }
      read++
    }
    if (others.size > 0) {
      for (const page of pages) if (page.passwords.some(one => others.has(one))) page.reused = undefined
    }
    return read
  }
  const form = (): number => {
    let made = 0
    for (let at = 0; at < pages.length && made < SLICE_PAGES; at++) {
      const page = pages[at]!
      if (page.reused !== undefined) continue
      const others = page.passwords.map(one => counts.get(one)! - 1)
      page.reused = others.every(one => one === 0) ? page.plain
        : pieceOf(activeOn(entries, at).map((one, i) => textOf(entries, one, others[i])))
      made++
    }
    return made
  }
  return async showsReused => {
    const which = showsReused ? 'reused' : 'plain'
    const isKnown = (): boolean => listed.changes === entries.changes && listed[which] !== undefined
    const isMore = (): boolean => refresh() === SLICE_PAGES || (showsReused && form() === SLICE_PAGES)
    while (!isKnown() && isMore()) await new Promise(resolve => setImmediate(resolve))
    if (listed.changes !== entries.changes) listed = { changes: entries.changes }
    return listed[which] ??= joined(pages.map(page => showsReused ? page.reused! : page.plain))
  }
}

function activeOn(entries: Entries, page: number): readonly Entry[] {
  const first = page * LIST_PAGE_ENTRIES + 1
  return Array.from({ length: LIST_PAGE_ENTRIES }, (_, i) => entries.get(first + i))
    .filter(entry => entry?.status === 1) as Entry[]
}

function textOf(entries: Entries, { id, status, ...fields }: Entry, reused: number = 0): string {
  const open: { [field: string]: unknown } = { id }
  for (const field of OPEN_FIELDS) open[field] = fields[field]
  const changedMs = entries.changedMs(id)
  const changed = changedMs === undefined ? undefined : new Date(changedMs).toISOString()
  return JSON.stringify({ ...open, status, changed, reused: reused === 0 ? undefined : reused })
}

/** 48 bits of SHA-256: two passwords share them by chance once in millions of lists. */
function numberOf(password: string): number { return parseInt(hash('sha256', password, 'hex').slice(0, 12), 16) }

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

export function isPackable({ bytes }: Listing): boolean {
  return bytes >= MIN_PACKED_BYTES && bytes <= MAX_PACKED_BYTES
}

/**
 * Undefined while another list is packed. A list holds no passwords or notes, so its size tells of no secret beside an
 * attacker's text (BREACH). One list is packed at a time, and one kept for each form, to bound the cost of lists that
 * always change.
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
