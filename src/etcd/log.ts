/**
 * The journal's records as keys of etcd: `PREFIX/0000000000000001` and so on, sixteen digits, each value a line of the
 * journal, the very bytes that a file would hold. A key is put once and never changed or deleted. So:
 *
 * - The keys are 1 to n without a gap, for an append requires that its first key is absent and that the record before
 *   it stands as this instance has read it (its `mod_revision`). Of two that append at the same place one wins, whole.
 * - Repeating an append, the same bytes at the same place, is harmless: at most one try wins, whenever and through
 *   whichever member it arrives. What stands at its first place says for good which became of it: these bytes, or
 *   another's. Only while nothing stands there it may still arrive.
 * - Whoever has read up to n and reads what follows reads a longer beginning of the one journal, at any revision; a
 *   compaction takes nothing away.
 *
 * Beside them stands `PREFIX.key`, the marker. Its first word is the name of the key that all seal with; a second one
 * says that nobody appends: `copying`, since the records are a copy of another journal that is not whole yet; `moving`
 * or `moved`, since a copy of this one is made at another prefix, the third word, or was; a fourth one is then put by
 * one rewrite alone, which knows its own by that. An append requires that the marker stands as this instance has read
 * it, and so does a question once it was read: whoever has changed it knows that nothing is appended, and nothing read
 * as the newest, by who does not know of that.
 */
import { Buffer } from 'node:buffer'
import { ETCD_PAGE_RECORDS } from '../limits.ts'
import { AnswerTooLarge, type EtcdClient } from './client.ts'

/** A record in etcd. */
export interface Stored {
  readonly seq: number
  /** Its line, without a line end. */
  readonly text: string
  /** The revision that put it; a 64-bit integer, so not a number. */
  readonly revision: string
}

/** The last record that somebody has read; `seq` 0: none. */
export type Position = Pick<Stored, 'seq' | 'revision'>

/** What follows a position. */
export interface Page {
  readonly records: readonly Stored[]
  /** Whether these are all, as of `revision`. */
  readonly isLast: boolean
  readonly revision: string
}

/** What all who share a journal go by. */
export interface Marker {
  /** As it stands in etcd. */
  readonly text: string
  /** The name of the key to seal with. */
  readonly key: string
  /** Why nobody appends; undefined: they do. */
  readonly state: 'copying' | 'moving' | 'moved' | undefined
  /** The other prefix. */
  readonly to: string | undefined
  readonly revision: string
}

const SEQ_DIGITS = 16
const NO_REVISION = '0'

/** A journal in a cluster. */
export class EtcdLog {
  readonly #client: EtcdClient
  readonly prefix: string
  /** As it was read last; undefined: never yet. */
  marker: Marker | undefined

  constructor(client: EtcdClient, prefix: string) { this.#client = client; this.prefix = prefix }

  /**
   * Appends lines behind a position: all of them, or none since something else follows it or the marker is another one
   * by now, which is then read. Gives what then follows, these lines or others; nothing where the position's own record
   * is gone. Rejects as `EtcdClient.ask` does; if with `journal-unreachable`, the lines may have been appended, or may
   * still be.
   */
  async append(
    after: Position, marker: Marker, lines: readonly string[], boundMs: number
  ): Promise<readonly Stored[]> {
    const first = after.seq + 1
    return this.#inParts(async limit => {
      const { succeeded, responses, header } = await this.#client.ask('/v3/kv/txn', {
        compare: [...this.#stands(after), this.#says(marker), this.#isFree(first)],
        success: lines.map((line, i) => ({ request_put: { key: this.#key(first + i), value: base64(line) } })),
        failure: [{ request_range: this.#range(first, limit) }, { request_range: { key: this.#markerKey } }]
      }, boundMs)
      if (succeeded === true) return lines.map((text, i) => ({ seq: first + i, text, revision: header.revision }))
      const found = markerIn(responses[1])
      // This answer may come behind a later question's.
      if (found !== undefined && BigInt(found.revision) > BigInt(this.marker!.revision)) this.marker = found
      return this.#stored(responses[0].response_range.kvs)
    })
  }

  /**
   * Reads what follows a position, no older than this call, and the marker, if it was read before and has changed
   * since; undefined where the position's own record or the marker is gone.
   */
  after(position: Position, boundMs: number): Promise<Page | undefined> {
    return this.#inParts(async limit => {
      for (;;) {
        const { marker } = this
        // A transaction that only reads is linearizable, like a range that does not ask for less.
        const { succeeded, responses, header } = await this.#client.ask('/v3/kv/txn', {
          compare: [...this.#stands(position), ...marker === undefined ? [] : [this.#says(marker)]],
          success: [{ request_range: this.#range(position.seq + 1, limit) }],
          failure: [{ request_range: { key: this.#markerKey } }]
        }, boundMs)
        if (succeeded === true) {
          const records = this.#stored(responses[0].response_range.kvs)
          return { records, isLast: records.length < limit, revision: header.revision }
        }
        const changed = markerIn(responses[0])
        if (marker === undefined || changed === undefined || changed.revision === marker.revision) return undefined
        this.marker = changed
      }
    })
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
      // Between them lie the keys of other prefixes, such as `PREFIX.new`.
      if (changed.some(({ key }) => key === this.#markerKey)) take([])
    }, signal)
  }

  /** Reads the marker; where there is none, sets it to a key. */
  async agree(key: string, boundMs: number): Promise<Marker> {
    // First by a mere read: whatever might put something is refused by an etcd that is full.
    return this.marker = await this.look(boundMs) ?? (await this.change(undefined, key, boundMs))!
  }

  /** Gives the marker as it stands; undefined: there is none. */
  async look(boundMs: number): Promise<Marker | undefined> {
    return markerIn({ response_range: await this.#client.ask('/v3/kv/range', { key: this.#markerKey }, boundMs) })
  }

  /**
   * Changes the marker from what was read, undefined: none, if what is to be compared besides holds, and does what is
   * to be done besides. Gives what the marker is then: another text than the given one if nothing was changed.
   */
  async change(
    from: Marker | undefined, text: string, boundMs: number, compare: readonly object[] = [],
    besides: readonly object[] = []
  ): Promise<Marker | undefined> {
    const { succeeded, responses, header } = await this.#client.ask('/v3/kv/txn', {
      compare: [this.#says(from), ...compare], success: [this.#put(text), ...besides],
      failure: [{ request_range: { key: this.#markerKey } }]
    }, boundMs)
    return succeeded === true ? markerOf(text, header.revision) : markerIn(responses[0])
  }

  /**
   * Says that a copy of another journal, to be sealed with a key from then on, is put here, and removes what one that
   * was broken off has left; gives undefined where there is a journal, having changed nothing.
   */
  async beginCopy(key: string, boundMs: number): Promise<Marker | undefined> {
    const text = `${key} copying`
    const found = await this.change(undefined, text, boundMs, [this.#isFree(1)])
    if (found?.state !== 'copying') return undefined
    const begun = await this.change(found, text, boundMs, [], [this.#removal])
    return begun?.text === text ? this.marker = begun : undefined
  }

  /**
   * Says at once, by a text that nobody else ever puts, that this journal is being copied, and that the copy is put
   * where `there` was seen, and removes what one that was broken off has left. Gives the markers here and there;
   * undefined, having changed nothing, where either was another one or records stand there without any.
   */
  async beginMove(
    copy: EtcdLog, from: Marker, there: Marker | undefined, text: string, boundMs: number
  ): Promise<readonly [here: Marker, there: Marker] | undefined> {
    const begun = `${from.key} copying`
    const isAsSeen = [copy.#says(there), ...there === undefined ? [copy.#isFree(1)] : []]
    const changed = await this.change(from, text, boundMs, isAsSeen, [copy.#put(begun), copy.#removal])
    return changed?.text === text ? [changed, copy.marker = markerOf(begun, changed.revision)] : undefined
  }

  /** Says at once that a copy is whole and that this journal has moved there; false where either's marker differs. */
  async moveTo(copy: EtcdLog, from: Marker, begun: Marker, boundMs: number): Promise<boolean> {
    const text = `${from.key} moved ${copy.prefix} ${begun.revision}`
    const changed = await this.change(from, text, boundMs, [copy.#says(begun)], [copy.#put(begun.key)])
    return changed?.text === text
  }

  /** Asks for fewer records where so many are too large an answer. */
  async #inParts<T>(ask: (limit: number) => Promise<T>): Promise<T> {
    for (let limit = ETCD_PAGE_RECORDS; ; limit = Math.ceil(limit / 8)) {
      try {
        return await ask(limit)
      } catch (error) {
        if (!(error instanceof AnswerTooLarge) || limit === 1) throw error
      }
    }
  }

  #stands({ seq, revision }: Position): object[] {
    return seq === 0 ? [] : [{ target: 'MOD', key: this.#key(seq), mod_revision: revision }]
  }

  #says(marker: Marker | undefined): object {
    return { target: 'MOD', key: this.#markerKey, mod_revision: marker?.revision ?? NO_REVISION }
  }

  #isFree(seq: number): object { return { target: 'CREATE', key: this.#key(seq), create_revision: NO_REVISION } }

  /** Of all records. */
  get #removal(): object { return { request_delete_range: { key: this.#key(1), range_end: this.#end } } }

  #put(text: string): object { return { request_put: { key: this.#markerKey, value: base64(text) } } }

  /** Not by `limit`: with that, etcd still counts all that follows. */
  #range(first: number, records: number): object {
    return { key: this.#key(first), range_end: this.#key(first + records) }
  }

  #key(seq: number): string { return base64(`${this.prefix}/${String(seq).padStart(SEQ_DIGITS, '0')}`) }

  /** Before all records. */
  get #markerKey(): string { return base64(`${this.prefix}.key`) }

  /** Behind all records, but before those of a prefix such as `PREFIX/2`. */
  get #end(): string { return base64(`${this.prefix}/1`) }

  #stored(kvs: readonly KeyValue[] = []): Stored[] {
    const start = `${this.prefix}/`
    return kvs.filter(({ key }) => text(key).startsWith(start)).map(({ key, value, mod_revision }) => (
      { seq: Number(text(key).slice(start.length)), text: text(value ?? ''), revision: mod_revision }))
  }
}

/** As the gateway gives it. */
interface KeyValue { readonly key: string, readonly value: string, readonly mod_revision: string }

function markerIn({ response_range }: { response_range: { kvs?: readonly KeyValue[] } }): Marker | undefined {
  const found = response_range.kvs?.[0]
  return found && markerOf(text(found.value), found.mod_revision)
}

function markerOf(text: string, revision: string): Marker {
  const [key = '', state, to] = text.split(' ')
  return { text, key, state: state as Marker['state'], to, revision }
}

function base64(text: string): string { return Buffer.from(text, 'latin1').toString('base64') }

function text(base64: string): string { return Buffer.from(base64, 'base64').toString('latin1') }
