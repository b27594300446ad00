/**
 * The journal's records as keys of etcd, `PREFIX/0000000000000001` and so on, each value a line as
 * in a file. A key is put once; only the operator removes keys, all together, with the marker
 * (`marker.ts`).
 *
 * **A change is recorded once.** Every attempt requires that its key is absent, and that the record
 * before and the marker are as they were read. A batch is decided again only after another record
 * at its place, or another marker, was read. Neither is ever undone, so attempts on their way fail.
 * Until then the same bytes are sent again, and etcd takes them once.
 *
 * A nonce makes each line's beginning unique, so the keys are 1 to n without a gap. A read, too,
 * requires the known marker and newest record, so an etcd restored from a snapshot is noticed.
 */
import { randomBytes } from 'node:crypto'
import { Failure } from '../../errors.ts'
import type { EtcdClient } from './etcd-client.ts'
import { isFree, Keys, markerIn, namesOf, put, type Stored, type Turn } from './etcd-keys.ts'
import {
  ETCD_FIRST_PAGE_RECORDS,
  ETCD_PAGE_BYTES,
  ETCD_TURN_MS,
  MAX_ETCD_DROPPED_TURNS,
  MAX_ETCD_NAMED_KEYS,
  MAX_ETCD_PAGE_RECORDS
} from './etcd-limits.ts'
import { markerOf, markerText, unusable, type Marker } from './marker.ts'
import { follow, type WatchedChange } from './watch.ts'

export interface RecordPage {
  readonly records: readonly Stored[]
  /** As of `revision`, a 64-bit integer. */
  readonly left: number
  readonly revision: string
}

export interface Appended {
  readonly isMade: boolean
  readonly records: readonly Stored[]
  readonly revision: string
}

interface ChangeOptions {
  readonly isEmpty?: boolean
  readonly removes?: boolean
}

/** Requests end at `endMs`, and reject as `EtcdClient.ask` does. */
export class EtcdLog {
  readonly #client: EtcdClient
  readonly prefix: string
  readonly #warn: (line: string) => void
  readonly #keys: Keys
  readonly id: string = randomBytes(8).toString('hex')
  readonly turnKey: string
  /** Undefined: not read yet, or there is no journal. */
  marker: Marker | undefined
  tookMs = 0
  #pageRecords = ETCD_FIRST_PAGE_RECORDS
  /** Keys behind the records that are not the journal's. */
  #strangers = 0

  constructor(client: EtcdClient, prefix: string, warn: (line: string) => void = () => {}) {
    this.#client = client
    this.prefix = prefix
    this.#warn = warn
    this.#keys = new Keys(prefix)
    this.turnKey = this.#keys.turn(this.id)
  }

  /**
   * Appends all lines or none. If none, gives other records, or reads a changed marker; without
   * either, the record is gone. After a rejection, the lines may be there, or may still come.
   */
  async append(
    after: Stored,
    marker: Marker,
    lines: readonly string[],
    endMs: number
  ): Promise<Appended> {
    const first = after.seq + 1
    // Keys have no gaps: if this key is free, so are all behind it.
    const beganMs = performance.now()
    // The first record and the word that there are records: never one without the other.
    const text = marker.state === 'empty' ? markerText({ ...marker, state: 'begun' }) : undefined
    const { succeeded, responses, header } = await this.#client.ask(
      '/v3/kv/txn',
      attempt => ({
        compare: [
          ...this.#keys.isAt(after),
          ...this.#keys.isMarker(marker),
          isFree(this.#keys.record(first))
        ],
        success: [
          { request_delete_range: { key: this.turnKey } },
          ...lines.map((line, i) => put(this.#keys.record(first + i), line)),
          ...(text === undefined ? [] : [put(this.#keys.marker, text)])
        ],
        failure: [
          { request_range: this.#keys.range(first, pageSizeOf(ETCD_FIRST_PAGE_RECORDS, attempt)) },
          { request_range: { key: this.#keys.marker } },
          // No turn in a journal that was removed: that would leave a key behind.
          {
            request_txn: {
              compare: this.#keys.isMarker(marker),
              success: [put(this.turnKey, this.#waitMs)]
            }
          }
        ]
      }),
      endMs
    )
    this.tookMs = performance.now() - beganMs
    const { revision } = header
    if (succeeded === true) {
      if (text !== undefined) this.#learn(markerOf(text, revision))
      return { isMade: true, records: lines.map((text, i) => ({ seq: first + i, text })), revision }
    }
    this.#learn(markerIn(responses[1]))
    return {
      isMade: false,
      records: this.#keys.recordsIn(responses[0].response_range.kvs),
      revision
    }
  }

  async drop(turns: readonly Turn[], endMs: number): Promise<void> {
    await this.#client.ask(
      '/v3/kv/txn',
      () => ({
        success: turns.slice(0, MAX_ETCD_DROPPED_TURNS).map(({ key, revision }) => ({
          request_txn: {
            compare: [{ target: 'CREATE', key, create_revision: revision }],
            success: [{ request_delete_range: { key } }]
          }
        }))
      }),
      endMs
    )
  }

  /**
   * As of this call or later; reads a changed marker again. Rejects with `journal-missing` without
   * the marker; with `journal-damaged` if the record is gone, a gap follows it, or the marker
   * forbids reading.
   */
  async after(record: Stored, endMs: number): Promise<RecordPage> {
    const first = record.seq + 1
    for (;;) {
      const { marker } = this
      const { answer, limit } = await this.#askAfter(record, marker, endMs)
      const { succeeded, responses } = answer
      const { revision } = answer.header
      // First the marker, which says whether the records may be read; then the known record; then
      // those behind it.
      const found = succeeded === true ? marker : markerIn(responses[0])
      if (marker !== undefined && found === undefined) {
        const why = 'the journal was removed, or that key alone'
        throw new Failure('journal-missing', `${this.prefix}.key is no longer in etcd: ${why}`)
      }
      if (succeeded !== true && marker !== undefined && !isSame(marker, found!)) {
        // Whatever its revision: an etcd from a snapshot restarts with low revisions.
        if (this.marker === marker) this.marker = found
        continue
      }
      const fault = marker && unusable(marker, this.prefix)
      if (fault !== undefined) throw fault
      if (succeeded !== true)
        throw this.#damage('its newest record is no longer in etcd, or is another one')
      const records = this.#keys.recordsIn(responses[0].response_range.kvs)
      // A record behind a gap is never given: it would be applied in place of the missing one.
      const gap = records.findIndex(({ seq }, i) => seq !== first + i)
      if (gap >= 0) throw this.#isMissing(first + gap)
      const behind = Number(responses[1].response_range.count ?? 0)
      const left = records.length < limit ? 0 : behind
      if (left === 0 && behind > this.#strangers) {
        const strangers = await this.#strangersFrom(first + limit, revision, endMs)
        if (strangers === undefined) throw this.#isMissing(first + records.length)
        const how =
          'are not of this program, and are ignored; remove them if nothing else needs them'
        this.#warn(`keys below ${this.prefix}/ in etcd ${how}: ${strangers}`)
        this.#strangers = behind
      }
      this.#fit(records, left)
      return { records, left, revision }
    }
  }

  /** A transaction that only reads is linearizable. `limit`: the records that it asked for. */
  async #askAfter(
    record: Stored,
    marker: Marker | undefined,
    endMs: number
  ): Promise<{ readonly answer: any; readonly limit: number }> {
    const first = record.seq + 1
    let limit = 0
    const answer = await this.#client.ask(
      '/v3/kv/txn',
      attempt => {
        limit = pageSizeOf(this.#pageRecords, attempt)
        return {
          compare: [
            ...this.#keys.isAt(record),
            ...(marker === undefined ? [] : this.#keys.isMarker(marker))
          ],
          success: [
            { request_range: this.#keys.range(first, limit) },
            {
              request_range: {
                key: this.#keys.record(first + limit),
                range_end: this.#keys.end,
                count_only: true
              }
            }
          ],
          failure: [{ request_range: { key: this.#keys.marker } }]
        }
      },
      endMs
    )
    return { answer, limit }
  }

  /** Undefined if a record may be among them. */
  async #strangersFrom(
    place: number,
    revision: string,
    endMs: number
  ): Promise<string | undefined> {
    const { kvs = [], more } = await this.#client.ask(
      '/v3/kv/range',
      () => ({
        key: this.#keys.record(place),
        range_end: this.#keys.end,
        revision,
        keys_only: true,
        limit: MAX_ETCD_PAGE_RECORDS
      }),
      endMs
    )
    const mayHaveRecords = more === true || this.#keys.recordsIn(kvs).length > 0
    return mayHaveRecords ? undefined : namesOf(kvs.slice(0, MAX_ETCD_NAMED_KEYS))
  }

  follow(
    revision: string,
    take: (change: WatchedChange) => void,
    signal: AbortSignal
  ): Promise<void> {
    return follow(this.#client, this.#keys, revision, take, signal)
  }

  /** Counts the keys of records, up to `upTo` or all. */
  async look(endMs: number, upTo?: number): Promise<number> {
    const range = upTo === undefined ? this.#keys.records : this.#keys.range(1, upTo)
    const { responses } = await this.#client.ask(
      '/v3/kv/txn',
      () => ({
        success: [
          { request_range: { key: this.#keys.marker } },
          { request_range: { ...range, count_only: true } }
        ]
      }),
      endMs
    )
    this.marker = markerIn(responses[0])
    return Number(responses[1].response_range.count ?? 0)
  }

  async record(seq: number, endMs: number): Promise<Stored | undefined> {
    const { kvs } = await this.#client.ask(
      '/v3/kv/range',
      () => ({ key: this.#keys.record(seq) }),
      endMs
    )
    return this.#keys.recordsIn(kvs)[0]
  }

  /** The condition never holds: etcd only says whether it takes writes. */
  async probe(endMs: number): Promise<void> {
    await this.#client.ask(
      '/v3/kv/txn',
      () => ({
        compare: [{ target: 'MOD', result: 'LESS', key: this.#keys.marker, mod_revision: '0' }],
        success: [put(this.#keys.record(1), ''), put(this.turnKey, '')]
      }),
      endMs
    )
  }

  /**
   * Changes the marker if it is still `from`; undefined: if there is none. `isEmpty` requires that
   * there are no records, `removes` removes them. Gives the marker as it is then. The caller
   * compares its text: an attempt without an answer may have made the change.
   */
  async change(
    from: Marker | undefined,
    text: string,
    endMs: number,
    { isEmpty = false, removes = false }: ChangeOptions = {}
  ): Promise<Marker | undefined> {
    const { succeeded, responses, header } = await this.#client.ask(
      '/v3/kv/txn',
      () => ({
        compare: [
          ...(from === undefined ? [isFree(this.#keys.marker)] : this.#keys.isMarker(from)),
          ...(isEmpty ? [{ target: 'CREATE', ...this.#keys.records, create_revision: '0' }] : [])
        ],
        success: [
          put(this.#keys.marker, text),
          ...(removes ? [{ request_delete_range: this.#keys.records }] : [])
        ],
        failure: [{ request_range: { key: this.#keys.marker } }]
      }),
      endMs
    )
    const found = succeeded === true ? markerOf(text, header.revision) : markerIn(responses[0])
    this.#learn(found)
    return found
  }

  /**
   * False, with nothing removed, if the marker has changed, or `newest` is not the last record any
   * more.
   */
  async remove(from: Marker, newest: Stored, endMs: number): Promise<boolean> {
    const { succeeded, responses } = await this.#client.ask(
      '/v3/kv/txn',
      () => ({
        compare: [
          ...this.#keys.isMarker(from),
          ...this.#keys.isAt(newest),
          isFree(this.#keys.record(newest.seq + 1))
        ],
        success: [
          { request_delete_range: { key: this.#keys.marker } },
          { request_delete_range: this.#keys.turns },
          { request_delete_range: this.#keys.records }
        ],
        failure: [{ request_range: { key: this.#keys.marker } }]
      }),
      endMs
    )
    // An attempt without an answer did it.
    return succeeded === true || markerIn(responses[0]) === undefined
  }

  get #waitMs(): string {
    return String(Math.ceil(ETCD_TURN_MS + 4 * this.tookMs))
  }

  /** A later read may have been answered before this one. */
  #learn(found: Marker | undefined): void {
    if (found !== undefined && BigInt(found.revision) > BigInt(this.marker?.revision ?? 0))
      this.marker = found
  }

  #damage(what: string): Failure {
    return new Failure('journal-damaged', `${this.prefix}: ${what}`)
  }

  #isMissing(seq: number): Failure {
    return this.#damage(`record ${seq} is missing, others follow it`)
  }

  /** No more than twice as many as now, since the next records may be longer. */
  #fit(records: readonly Stored[], left: number): void {
    const bytes = records.reduce((sum, { text }) => sum + text.length, 0)
    const fitting = Math.floor((records.length * ETCD_PAGE_BYTES) / Math.max(1, bytes))
    const next = Math.min(Math.max(1, fitting), 2 * records.length, MAX_ETCD_PAGE_RECORDS)
    this.#pageRecords = left === 0 ? ETCD_FIRST_PAGE_RECORDS : next
  }
}

function isSame(one: Marker, other: Marker): boolean {
  return one.revision === other.revision && one.text === other.text
}

/** Many records may be too large an answer. */
function pageSizeOf(records: number, attempt: number): number {
  return Math.ceil(records / 8 ** attempt)
}
