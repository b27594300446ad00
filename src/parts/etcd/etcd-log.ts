/**
 * The journal's records as keys of etcd: `PREFIX/0000000000000001` and so on, sixteen digits, each value a line of the
 * journal, the very bytes that a file would hold. A key is put once and never changed; all are removed together, with
 * the marker (`marker.ts`), by the operator alone.
 *
 * **A change is recorded once.** Every attempt of a batch requires that the key at its place is absent, and that the
 * marker has the revision that this instance has read. A batch is decided again only when another record was read at
 * its place, or another revision of the marker: neither is ever undone, so each attempt that is still on its way fails
 * whenever it arrives. As long as neither is known, the same bytes are sent again, of which etcd takes one; if that
 * lasts too long the change is answered 500, and is not decided again.
 *
 * - The keys are 1 to n without a gap, for an append also requires that the record before it begins as the line that
 *   this instance has read, which no other line does: its nonce is a part of that. Of two appends at the same place one
 *   wins, whole. A snapshot of etcd that was restored meanwhile is noticed by that too.
 * - Reading up to n and then what follows gives a longer beginning of the one journal, at any revision; a compaction
 *   of etcd takes nothing away. A read requires the marker that this instance knows, so it never takes what it reads
 *   for the newest while it does not know of a change of that.
 * - Any other key below the prefix is not this program's: it is ignored, and named once.
 */
import { randomBytes } from 'node:crypto'
import type { EtcdClient } from './etcd-client.ts'
import { isFirst, isFree, Keys, markerIn, put, type Stored, type Turn } from './etcd-keys.ts'
import {
  ETCD_FIRST_PAGE_RECORDS, ETCD_PAGE_BYTES, ETCD_TURN_MS, MAX_ETCD_DROPPED_TURNS, MAX_ETCD_NAMED_KEYS,
  MAX_ETCD_PAGE_RECORDS
} from './etcd-limits.ts'
import { markerOf, markerText, removed, type Marker } from './marker.ts'
import { follow, type Change } from './watch.ts'

/** What follows a record. */
export interface Page {
  /** Where one is missing, the last of these may be the record behind the gap, without its line. */
  readonly records: readonly Stored[]
  /** How many records follow these, as of `revision`, a 64-bit integer. */
  readonly left: number
  readonly revision: string
}

/** What became of an append: what follows its record now, as of a revision. */
export interface Appended {
  readonly isMade: boolean
  readonly records: readonly Stored[]
  readonly revision: string
}

/** How many keys there are. */
export interface Found {
  readonly records: number
  /** Of other programs, where this one's would be. */
  readonly others: number
}

/** What must hold besides, or is done as well, when the marker is changed. */
interface How { readonly isEmpty?: boolean, readonly removes?: boolean }

/** A journal in a cluster. Every request takes the time of its deadline, and rejects as `EtcdClient.ask` does. */
export class EtcdLog {
  readonly #client: EtcdClient
  readonly prefix: string
  readonly #keys: Keys
  /** The instance's own. */
  readonly id: string = randomBytes(8).toString('hex')
  readonly turnKey: string
  /** As it was read last; undefined: never yet, or there is no journal. */
  marker: Marker | undefined
  /** How long the last append took. */
  tookMs = 0
  /** How many records are read at once: as many as the last ones were long. */
  #pageRecords = ETCD_FIRST_PAGE_RECORDS

  constructor(client: EtcdClient, prefix: string, warn: (line: string) => void = () => {}) {
    this.#client = client
    this.prefix = prefix
    this.#keys = new Keys(prefix, warn)
    this.turnKey = this.#keys.turn(this.id)
  }

  /**
   * Appends all lines after a record, or none: because other records follow it (which are given), the marker has
   * changed (which is then read), or the record is gone (nothing is given). If it rejects, they may have been appended,
   * or may still be.
   */
  async append(
    after: Stored, marker: Marker, lines: readonly string[], endMs: number, signal?: AbortSignal
  ): Promise<Appended> {
    const first = after.seq + 1
    const beganMs = performance.now()
    const text = marker.state === 'empty' ? markerText({ ...marker, state: 'begun' }) : undefined
    const { succeeded, responses, header } = await this.#client.ask('/v3/kv/txn', attempt => ({
      compare: [...this.#keys.isAt(after), ...this.#keys.isMarker(marker), isFree(this.#keys.record(first))],
      success: [
        { request_delete_range: { key: this.turnKey } },
        ...lines.map((line, i) => put(this.#keys.record(first + i), line)),
        ...text === undefined ? [] : [put(this.#keys.marker, text)]
      ],
      failure: [
        { request_range: this.#keys.range(first, pageOf(ETCD_FIRST_PAGE_RECORDS, attempt)) },
        { request_range: { key: this.#keys.marker } },
        { request_txn: { compare: this.#keys.isMarker(marker), success: [put(this.turnKey, this.#waitMs)] } }
      ]
    }), endMs, signal)
    this.tookMs = performance.now() - beganMs
    const { revision } = header
    if (succeeded === true) {
      if (text !== undefined) this.#learn(markerOf(text, revision))
      return { isMade: true, records: lines.map((text, i) => ({ seq: first + i, text })), revision }
    }
    this.#learn(markerIn(responses[1]))
    return { isMade: false, records: this.#keys.recordsIn(responses[0].response_range.kvs), revision }
  }

  /** Removes turns, unless they were taken anew. */
  async drop(turns: readonly Turn[], endMs: number): Promise<void> {
    await this.#client.ask('/v3/kv/txn', () => ({
      success: turns.slice(0, MAX_ETCD_DROPPED_TURNS).map(({ key, revision }) => ({ request_txn: {
        compare: [{ target: 'CREATE', key, create_revision: revision }], success: [{ request_delete_range: { key } }]
      } }))
    }), endMs)
  }

  /**
   * Reads what follows a record, no older than this call, and the marker, if it was read before and has changed
   * since; undefined where that record is gone. Rejects with `journal-missing` where the marker is.
   */
  async after(record: Stored, endMs: number): Promise<Page | undefined> {
    for (;;) {
      const { marker } = this
      let limit = 0
      const first = record.seq + 1
      // A transaction that only reads is linearizable, like a range that does not ask for less.
      const { succeeded, responses, header } = await this.#client.ask('/v3/kv/txn', attempt => {
        limit = pageOf(this.#pageRecords, attempt)
        return {
          compare: [...this.#keys.isAt(record), ...marker === undefined ? [] : this.#keys.isMarker(marker)],
          success: [
            { request_range: this.#keys.range(first, limit) },
            { request_range: { key: this.#keys.record(first + limit), range_end: this.#keys.end, count_only: true } }
          ],
          failure: [{ request_range: { key: this.#keys.marker } }]
        }
      }, endMs)
      if (succeeded === true) {
        const records = this.#keys.recordsIn(responses[0].response_range.kvs)
        const behind = Number(responses[1].response_range.count ?? 0)
        const isEnd = records.length < limit // then only keys of others should be behind it
        const found = isEnd && behind > 0 ? await this.#firstFrom(first + limit, header.revision, endMs) : []
        const left = isEnd ? 0 : behind
        this.#fit(records, left)
        return { records: [...records, ...found], left, revision: header.revision }
      }
      const changed = markerIn(responses[0])
      if (marker === undefined) return undefined
      if (changed === undefined) throw removed(this.prefix)
      if (changed.revision === marker.revision && changed.text === marker.text) return undefined
      // Whatever its revision: an etcd that was made anew, or from a snapshot, begins again with low ones.
      if (this.marker === marker) this.marker = changed
    }
  }

  /** The first record at a place or behind it, without its line, as of a revision. */
  async #firstFrom(place: number, revision: string, endMs: number): Promise<readonly Stored[]> {
    for (let key = this.#keys.record(place); ;) {
      const asked = { key, range_end: this.#keys.end, revision, keys_only: true, limit: MAX_ETCD_NAMED_KEYS }
      const { kvs = [], more } = await this.#client.ask('/v3/kv/range', () => asked, endMs)
      const found = this.#keys.recordsIn(kvs).slice(0, 1)
      if (found.length > 0 || more !== true) return found
      key = this.#keys.next(kvs.at(-1))
    }
  }

  /** See `follow`. */
  follow(revision: string, take: (change: Change) => void, signal: AbortSignal): Promise<void> {
    return follow(this.#client, this.#keys, revision, take, signal)
  }

  /** Reads the marker, and counts the records, without reading them, and the keys of others among them. */
  async look(endMs: number): Promise<Found> {
    const { responses } = await this.#client.ask('/v3/kv/txn', () => ({
      success: [
        { request_range: { key: this.#keys.marker } }, { request_range: { ...this.#keys.records, count_only: true } },
        { request_range: { ...this.#keys.turns, keys_only: true, limit: MAX_ETCD_PAGE_RECORDS } }
      ]
    }), endMs)
    this.marker = markerIn(responses[0])
    const count = Number(responses[1].response_range.count ?? 0)
    const records = await this.#countRecords(count, endMs)
    return { records, others: count - records + this.#keys.notTurns(responses[2].response_range.kvs) }
  }

  /** How many of so many keys are records: those are 1 to n without a gap, so the newest is looked for by halves. */
  async #countRecords(keys: number, endMs: number): Promise<number> {
    const isThere = async (seq: number): Promise<boolean> => {
      const asked = { key: this.#keys.record(seq), keys_only: true }
      return (await this.#client.ask('/v3/kv/range', () => asked, endMs)).kvs !== undefined
    }
    if (keys === 0 || await isThere(keys)) return keys
    let [there, missing] = [0, keys]
    while (missing - there > 1) {
      const middle = Math.floor((there + missing) / 2)
      if (await isThere(middle)) there = middle
      else missing = middle
    }
    return there
  }

  /** How many keys are at the places of so many records, or between them; infinite where the marker is another one. */
  async count(records: number, endMs: number): Promise<number> {
    const { succeeded, responses } = await this.#client.ask('/v3/kv/txn', () => ({
      compare: this.marker === undefined ? [] : this.#keys.isMarker(this.marker),
      success: [{ request_range: { ...this.#keys.range(1, records), count_only: true } }]
    }), endMs)
    return succeeded === true ? Number(responses[0].response_range.count ?? 0) : Infinity
  }

  /** Whether a record is there now, and nothing was put over it. */
  async isIntact(seq: number, endMs: number): Promise<boolean> {
    const { kvs } = await this.#client.ask('/v3/kv/range', () => ({ key: this.#keys.record(seq) }), endMs)
    return kvs !== undefined && isFirst(kvs[0])
  }

  /** Asks for what an append asks for, under a condition that never holds: so etcd says whether it takes any. */
  async probe(endMs: number): Promise<void> {
    await this.#client.ask('/v3/kv/txn', () => ({
      compare: [{ target: 'MOD', result: 'LESS', key: this.#keys.marker, mod_revision: '0' }],
      success: [put(this.#keys.record(1), ''), put(this.turnKey, '')]
    }), endMs)
  }

  /**
   * Changes the marker from what was read, undefined: none. `isEmpty` requires that there are no records, `removes`
   * removes them. Gives the marker as it is then: another text than the given one if nothing was changed.
   */
  async change(from: Marker | undefined, text: string, endMs: number, how?: How): Promise<Marker | undefined> {
    return (await this.#change(from, text, endMs, how)).found
  }

  /** Makes an empty journal; false: another did, or perhaps an attempt whose answer was lost. */
  async make(key: string, endMs: number): Promise<boolean> {
    return (await this.#change(undefined, key, endMs, { isEmpty: true })).isMade
  }

  async #change(
    from: Marker | undefined, text: string, endMs: number, { isEmpty = false, removes = false }: How = {}
  ): Promise<{ readonly found: Marker | undefined, readonly isMade: boolean }> {
    const { succeeded, responses, header } = await this.#client.ask('/v3/kv/txn', () => ({
      compare: [
        ...from === undefined ? [isFree(this.#keys.marker)] : this.#keys.isMarker(from),
        ...isEmpty ? [{ target: 'CREATE', ...this.#keys.records, create_revision: '0' }] : []
      ],
      success: [put(this.#keys.marker, text), ...removes ? [{ request_delete_range: this.#keys.records }] : []],
      failure: [{ request_range: { key: this.#keys.marker } }]
    }), endMs)
    const isMade = succeeded === true
    const found = isMade ? markerOf(text, header.revision) : markerIn(responses[0])
    this.#learn(found)
    return { found, isMade }
  }

  /** Removes the journal, marker and all, if it is as it was read; false: it is not. */
  async remove(from: Marker, endMs: number): Promise<boolean> {
    const { succeeded, responses } = await this.#client.ask('/v3/kv/txn', () => ({
      compare: this.#keys.isMarker(from),
      success: [
        { request_delete_range: { key: this.#keys.marker } }, { request_delete_range: this.#keys.turns },
        { request_delete_range: this.#keys.records }
      ],
      failure: [{ request_range: { key: this.#keys.marker } }]
    }), endMs)
    return succeeded === true || markerIn(responses[0]) === undefined // an attempt whose answer was lost has done it
  }

  /** How long others should wait for this instance. */
  get #waitMs(): string { return String(Math.ceil(ETCD_TURN_MS + 4 * this.tookMs)) }

  /** An answer may come after that of a later read. */
  #learn(found: Marker | undefined): void {
    if (found !== undefined && BigInt(found.revision) > BigInt(this.marker?.revision ?? 0)) this.marker = found
  }

  /**
   * Has the next page be as long as it should be if its records are as long as these, but at most twice as long as this
   * one, for they may be longer; short where few are left.
   */
  #fit(records: readonly Stored[], left: number): void {
    const bytes = records.reduce((sum, { text }) => sum + text.length, 0)
    const fitting = Math.floor(records.length * ETCD_PAGE_BYTES / Math.max(1, bytes))
    const next = Math.min(Math.max(1, fitting), 2 * records.length, MAX_ETCD_PAGE_RECORDS)
    this.#pageRecords = left === 0 ? ETCD_FIRST_PAGE_RECORDS : next
  }
}

/** How many records an attempt asks for: fewer each time, down to one, since many may be too large an answer. */
function pageOf(records: number, attempt: number): number { return Math.ceil(records / 8 ** attempt) }
