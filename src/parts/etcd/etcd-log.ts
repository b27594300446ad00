/**
 * The journal's records as keys of etcd: `PREFIX/0000000000000001` and so on, sixteen digits, each value a line of the
 * journal, the very bytes that a file would hold. A key is put once and never changed or deleted. So:
 *
 * - The keys are 1 to n without a gap, for an append requires that its first key is absent and that the record before
 *   it begins as the line that this instance has read, which no other line does: its nonce is a part of that. Of two
 *   appends at the same place one wins, whole. A snapshot of etcd that was restored meanwhile is noticed by that too.
 * - Repeating an append, the same bytes at the same place, is harmless: at most one attempt wins, whenever and through
 *   whichever member it arrives. What is at its first place decides for good what became of it: these bytes, or
 *   another's. Only while nothing is there it may still arrive.
 * - Reading up to n and then what follows gives a longer beginning of the one journal, at any revision; a compaction
 *   takes nothing away.
 *
 * **`PREFIX.key`, the marker**, says that a journal is here. Its first word is the name of the key that all seal with;
 * a second one says that it may not be used: `copying`, since the records are a copy that is not whole yet, or `moving`
 * and `moved`, which only the first version of this program wrote. A copy's words are followed by one of its own, so
 * that no copy takes another one's marker for its own. An append requires that the marker is as this instance has read
 * it, and so does a read: an instance that does not know of a change of it appends nothing, and takes nothing that it
 * reads for the newest.
 *
 * **`PREFIX.turn/ID`, the turns**: an append that comes too late puts such a key in the same transaction. Then no
 * append succeeds but that of the instance whose key is the oldest, and it removes the key. So an
 * instance gets its turn however far away it is. This is about fairness alone: an instance that lets its time pass, by
 * the others' clocks, loses its turn and nothing else.
 */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import type { EtcdClient } from './etcd-client.ts'
import { ETCD_PAGE_RECORDS, ETCD_TURN_MS, MAX_ETCD_TURN_MS } from './etcd-limits.ts'

/** A record in etcd. */
export interface Stored {
  readonly seq: number
  /** Its line, without a line end. */
  readonly text: string
}

/** Before all records. */
export const START: Stored = { seq: 0, text: '' }

/** What follows a record. */
export interface Page {
  readonly records: readonly Stored[]
  /** Whether these are all, as of `revision`, a 64-bit integer. */
  readonly isLast: boolean
  readonly revision: string
}

/** What all who share a journal go by. */
export interface Marker {
  /** As it is in etcd. */
  readonly text: string
  /** The name of the key to seal with. */
  readonly key: string
  /** `copying`, `moving` or `moved`: the journal may not be used. */
  readonly state: string | undefined
  readonly revision: string
}

/** An instance that waits for its turn. */
export interface Turn {
  readonly key: string
  /** How long it may take once those before it have had theirs. */
  readonly waitMs: number
  readonly revision: string
}

/** What became of an append: what follows its record now, and whose turn is before this instance's. */
export interface Appended {
  readonly records: readonly Stored[]
  readonly ahead: readonly Turn[]
}

const SEQ_DIGITS = 16
/** So much of a line holds all that is not sealed, and the nonce. */
const START_CHARACTERS = 256
const NONE = '0'

/** A journal in a cluster. */
export class EtcdLog {
  readonly #client: EtcdClient
  readonly prefix: string
  /** The instance's own. */
  readonly id: string = randomBytes(8).toString('hex')
  /** As it was read last; undefined: never yet, or there is no journal. */
  marker: Marker | undefined
  /** The revision of this instance's turn; undefined: it has none. */
  #turn: string | undefined
  /** How long the last append took. */
  #tookMs = 0

  constructor(client: EtcdClient, prefix: string) { this.#client = client; this.prefix = prefix }

  /**
   * Appends all lines after a record, or none: because other records follow it (which are given), the marker has
   * changed (which is then read), it is another instance's turn (given in `ahead`), or the record is gone (nothing is
   * given). Rejects as `EtcdClient.ask` does; if with `journal-unreachable`, the lines may have been appended, or may
   * still be.
   */
  async append(after: Stored, marker: Marker, lines: readonly string[], boundMs: number): Promise<Appended> {
    const first = after.seq + 1
    const beganMs = performance.now()
    const { succeeded, responses } = await this.#client.ask('/v3/kv/txn', attempt => ({
      compare: [...this.#isAt(after), ...this.#isMarker(marker), isFree(this.#key(first)), this.#isOurTurn],
      success: [
        ...lines.map((line, i) => put(this.#key(first + i), line)),
        ...this.#turn === undefined ? [] : [{ request_delete_range: { key: this.#turnKey } }]
      ],
      failure: [
        { request_range: this.#range(first, pageOf(attempt)) }, { request_range: { key: this.#markerKey } },
        {
          request_txn: {
            compare: [isFree(this.#turnKey), ...this.#isMarker(marker)],
            success: [put(this.#turnKey, String(Math.ceil(ETCD_TURN_MS + 4 * this.#tookMs)))]
          }
        },
        { request_range: { ...this.#turns, sort_order: 'ASCEND', sort_target: 'CREATE' } }
      ]
    }), boundMs)
    this.#tookMs = performance.now() - beganMs
    if (succeeded === true) {
      this.#turn = undefined
      return { records: lines.map((text, i) => ({ seq: first + i, text })), ahead: [] }
    }
    const found = markerIn(responses[1])
    // This answer may come after that of a later read.
    if (found !== undefined && BigInt(found.revision) > BigInt(this.marker!.revision)) this.marker = found
    const turns: Turn[] = (responses[3].response_range.kvs ?? []).map(turnOf)
    const at = turns.findIndex(({ key }) => key === this.#turnKey)
    this.#turn = turns[at]?.revision
    const records = this.#stored(responses[0].response_range.kvs)
    // If an attempt whose answer was lost has put the lines, the next one took a turn that is not needed.
    if (at >= 0 && records[0]?.text === lines[0]) await this.skip(turns[at]!, boundMs).catch(() => {})
    return { records, ahead: turns.slice(0, Math.max(0, at)) }
  }

  /** Ends an instance's turn. */
  async skip({ key, revision }: Turn, boundMs: number): Promise<void> {
    await this.#client.ask('/v3/kv/txn', () => ({
      compare: [{ target: 'CREATE', key, create_revision: revision }], success: [{ request_delete_range: { key } }]
    }), boundMs)
  }

  /**
   * Reads what follows a record, no older than this call, and the marker, if it was read before and has changed
   * since; undefined where that record or the marker is gone.
   */
  async after(record: Stored, boundMs: number): Promise<Page | undefined> {
    for (;;) {
      const { marker } = this
      let limit = 0
      // A transaction that only reads is linearizable, like a range that does not ask for less.
      const { succeeded, responses, header } = await this.#client.ask('/v3/kv/txn', attempt => ({
        compare: [...this.#isAt(record), ...marker === undefined ? [] : this.#isMarker(marker)],
        success: [{ request_range: this.#range(record.seq + 1, limit = pageOf(attempt)) }],
        failure: [{ request_range: { key: this.#markerKey } }]
      }), boundMs)
      if (succeeded === true) {
        const records = this.#stored(responses[0].response_range.kvs)
        return { records, isLast: records.length < limit, revision: header.revision }
      }
      const changed = markerIn(responses[0])
      if (marker === undefined || changed === undefined || changed.revision === marker.revision) return undefined
      this.marker = changed
    }
  }

  /**
   * Hands on the records that are put after a revision, in order, until the watch ends; rejects where it fails. An
   * empty list says that the marker has changed.
   */
  follow(revision: string, take: (records: readonly Stored[]) => void, signal: AbortSignal): Promise<void> {
    const create_request = {
      key: this.#markerKey, range_end: this.#end, filters: ['NODELETE'], start_revision: String(BigInt(revision) + 1n)
    }
    return this.#client.follow('/v3/watch', { create_request }, ({ result, error }) => {
      if (result === undefined || result.canceled === true) {
        throw new Error(result?.cancel_reason ?? error?.message ?? 'the watch was ended')
      }
      const changed: readonly KeyValue[] = result.events?.map(({ kv }: any) => kv) ?? []
      const records = this.#stored(changed)
      if (records.length > 0) take(records)
      // Between them are the turns, and the keys of other prefixes, such as `PREFIX.new`.
      if (changed.some(({ key }) => key === this.#markerKey)) take([])
    }, signal)
  }

  /** Reads the marker, and counts the records, without reading them. */
  async look(boundMs: number): Promise<number> {
    const { responses } = await this.#client.ask('/v3/kv/txn', () => ({
      success: [
        { request_range: { key: this.#markerKey } },
        { request_range: { key: this.#key(1), range_end: this.#end, count_only: true } }
      ]
    }), boundMs)
    this.marker = markerIn(responses[0])
    return Number(responses[1].response_range.count ?? 0)
  }

  /**
   * Changes the marker from what was read, undefined: none. `isEmpty` requires that there are no records, `removes`
   * removes them. Gives the marker as it is then: another text than the given one if nothing was changed.
   */
  async change(
    from: Marker | undefined, text: string, boundMs: number,
    { isEmpty = false, removes = false }: { readonly isEmpty?: boolean, readonly removes?: boolean } = {}
  ): Promise<Marker | undefined> {
    const { succeeded, responses, header } = await this.#client.ask('/v3/kv/txn', () => ({
      compare: [
        ...from === undefined ? [isFree(this.#markerKey)] : this.#isMarker(from),
        ...isEmpty ? [isFree(this.#key(1))] : []
      ],
      success: [
        put(this.#markerKey, text),
        ...removes ? [{ request_delete_range: { key: this.#key(1), range_end: this.#end } }] : []
      ],
      failure: [{ request_range: { key: this.#markerKey } }]
    }), boundMs)
    return this.marker = succeeded === true ? markerOf(text, header.revision) : markerIn(responses[0])
  }

  /** That a record is this line, by its beginning, which no other line has: the whole may be long. */
  #isAt({ seq, text }: Stored): object[] {
    const start = text.slice(0, Math.min(START_CHARACTERS, text.length - 1))
    const compared = { target: 'VALUE', key: this.#key(seq) }
    return seq === 0 ? [] : [
      { ...compared, result: 'GREATER', value: base64(start) },
      { ...compared, result: 'LESS', value: base64(`${start}\xff`) }
    ]
  }

  #isMarker({ text, revision }: Marker): object[] {
    return [
      { target: 'MOD', key: this.#markerKey, mod_revision: revision },
      { target: 'VALUE', key: this.#markerKey, value: base64(text) }
    ]
  }

  /** That no instance waits, or none longer than this one. */
  get #isOurTurn(): object {
    const { key, range_end } = this.#turns
    return this.#turn === undefined
      ? { target: 'CREATE', key, range_end, create_revision: NONE }
      : { target: 'CREATE', result: 'GREATER', key, range_end, create_revision: String(BigInt(this.#turn) - 1n) }
  }

  /** Not by `limit`: with that, etcd still counts all that follows. */
  #range(first: number, records: number): object {
    return { key: this.#key(first), range_end: this.#key(first + records) }
  }

  #key(seq: number): string { return base64(`${this.prefix}/${String(seq).padStart(SEQ_DIGITS, '0')}`) }

  /** Before all turns, and all records. */
  get #markerKey(): string { return base64(`${this.prefix}.key`) }

  get #turnKey(): string { return base64(`${this.prefix}.turn/${this.id}`) }

  get #turns(): { readonly key: string, readonly range_end: string } {
    return { key: base64(`${this.prefix}.turn/`), range_end: base64(`${this.prefix}.turn0`) }
  }

  /** After all records, but before those of a prefix such as `PREFIX/2`. */
  get #end(): string { return base64(`${this.prefix}/1`) }

  #stored(kvs: readonly KeyValue[] = []): Stored[] {
    const start = `${this.prefix}/`
    return kvs.filter(({ key }) => text(key).startsWith(start))
      .map(({ key, value }) => ({ seq: Number(text(key).slice(start.length)), text: text(value ?? '') }))
  }
}

/** As the gateway gives it. */
type KeyValue = { readonly [name in 'key' | 'value' | 'create_revision' | 'mod_revision']: string }

function markerIn({ response_range }: { response_range: { kvs?: readonly KeyValue[] } }): Marker | undefined {
  const found = response_range.kvs?.[0]
  return found && markerOf(text(found.value), found.mod_revision)
}

function markerOf(text: string, revision: string): Marker {
  const [key = '', word] = text.split(' ')
  return { text, key, state: word === 'copied' ? undefined : word, revision }
}

function turnOf({ key, value, create_revision }: KeyValue): Turn {
  return { key, waitMs: Math.min(Number(text(value)), MAX_ETCD_TURN_MS), revision: create_revision }
}

function put(key: string, value: string): object { return { request_put: { key, value: base64(value) } } }

function isFree(key: string): object { return { target: 'CREATE', key, create_revision: NONE } }

/** How many records an attempt asks for: fewer each time, down to one, since many may be too large an answer. */
function pageOf(attempt: number): number { return Math.ceil(ETCD_PAGE_RECORDS / 8 ** attempt) }

function base64(text: string): string { return Buffer.from(text, 'latin1').toString('base64') }

function text(base64: string): string { return Buffer.from(base64, 'base64').toString('latin1') }
