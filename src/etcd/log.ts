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

const SEQ_DIGITS = 16

/** A journal in a cluster. */
export class EtcdLog {
  readonly #client: EtcdClient
  readonly #prefix: string

  constructor(client: EtcdClient, prefix: string) { this.#client = client; this.#prefix = prefix }

  /**
   * Appends lines behind a position: all of them, or none since something else follows it. Gives what then follows,
   * these lines or the others; nothing where the position's own record is gone. Rejects as `EtcdClient.ask` does; if
   * with `journal-unreachable`, the lines may have been appended, or may still be.
   */
  async append(after: Position, lines: readonly string[], boundMs: number): Promise<readonly Stored[]> {
    const first = after.seq + 1
    return this.#inParts(async limit => {
      const { succeeded, responses, header } = await this.#client.ask('/v3/kv/txn', {
        compare: [...this.#stands(after), { target: 'CREATE', key: this.#key(first), create_revision: '0' }],
        success: lines.map((line, i) => ({ request_put: { key: this.#key(first + i), value: base64(line) } })),
        failure: [{ request_range: this.#range(first, limit) }]
      }, boundMs)
      if (succeeded !== true) return this.#stored(responses[0].response_range.kvs)
      return lines.map((text, i) => ({ seq: first + i, text, revision: header.revision }))
    })
  }

  /** Reads what follows a position, no older than this call; undefined where the position's own record is gone. */
  after(position: Position, boundMs: number): Promise<Page | undefined> {
    return this.#inParts(async limit => {
      // A transaction that only reads is linearizable, like a range that does not ask for less.
      const { succeeded, responses, header } = await this.#client.ask('/v3/kv/txn', {
        compare: this.#stands(position), success: [{ request_range: this.#range(position.seq + 1, limit) }]
      }, boundMs)
      if (succeeded !== true) return undefined
      const records = this.#stored(responses[0].response_range.kvs)
      return { records, isLast: records.length < limit, revision: header.revision }
    })
  }

  /** Hands on the records that are put after a revision, in order, until the watch ends; rejects where it fails. */
  follow(revision: string, take: (records: readonly Stored[]) => void, signal: AbortSignal): Promise<void> {
    const create_request = {
      key: this.#key(1), range_end: base64(`${this.#prefix}/:`), filters: ['NODELETE'],
      start_revision: String(BigInt(revision) + 1n)
    }
    return this.#client.follow('/v3/watch', { create_request }, ({ result, error }) => {
      if (result === undefined || result.canceled === true) {
        throw new Error(result?.cancel_reason ?? error?.message ?? 'the watch was ended')
      }
      take(this.#stored(result.events?.map(({ kv }: any) => kv)))
    }, signal)
  }

  /** Sets what all who share the journal must agree on, if it is not set; gives what is set. */
  async agree(name: string, value: string, boundMs: number): Promise<string> {
    const key = base64(`${this.#prefix}.${name}`)
    const { succeeded, responses } = await this.#client.ask('/v3/kv/txn', {
      compare: [{ target: 'CREATE', key, create_revision: '0' }],
      success: [{ request_put: { key, value: base64(value) } }],
      failure: [{ request_range: { key } }]
    }, boundMs)
    return succeeded === true ? value : text(responses[0].response_range.kvs[0].value)
  }

  /** Says that a copy of another journal is put here from now on; false where instances have begun one. */
  async beginCopy(boundMs: number): Promise<boolean> { return await this.agree('copy', 'begun', boundMs) === 'begun' }

  /** Says that the copy is whole; false where somebody has begun to use what was there of it. */
  async endCopy(boundMs: number): Promise<boolean> { return await this.agree('copy.end', 'whole', boundMs) === 'whole' }

  /** Whether this is no copy that was not finished; from then on none can be begun or finished. */
  async isWhole(boundMs: number): Promise<boolean> {
    return await this.agree('copy', 'none', boundMs) === 'none' ||
      await this.agree('copy.end', 'never', boundMs) === 'whole'
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

  /** Not by `limit`: with that, etcd still counts all that follows. */
  #range(first: number, records: number): object {
    return { key: this.#key(first), range_end: this.#key(first + records) }
  }

  #key(seq: number): string { return base64(`${this.#prefix}/${String(seq).padStart(SEQ_DIGITS, '0')}`) }

  #stored(kvs: readonly { key: string, value: string, mod_revision: string }[] = []): Stored[] {
    return kvs.map(({ key, value, mod_revision }) => (
      { seq: Number(text(key).slice(this.#prefix.length + 1)), text: text(value ?? ''), revision: mod_revision }))
  }
}

function base64(text: string): string { return Buffer.from(text, 'latin1').toString('base64') }

function text(base64: string): string { return Buffer.from(base64, 'base64').toString('latin1') }
