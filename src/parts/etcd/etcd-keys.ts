/**
 * The keys of a journal in etcd, in base64. etcd sorts by bytes, so with `.` before `/`, and `/`
 * before `0`:
 *
 *     PREFIX.key                 the marker
 *     PREFIX.turn/ID             who waits for a turn
 *     PREFIX/0000000000000001    the first record, and so on; sixteen digits, the first always 0
 *     PREFIX/1                   the end of the range of all these keys, which the watch covers
 */
import { Buffer } from 'node:buffer'
import { MAX_ETCD_TURN_MS } from './etcd-limits.ts'
import { markerOf, type Marker } from './marker.ts'

export interface Stored {
  readonly seq: number
  /** Without a line end. */
  readonly text: string
}

/** Before all records. */
export const START: Stored = { seq: 0, text: '' }

export interface Turn {
  readonly key: string
  readonly waitMs: number
  readonly revision: string
}

/** Without `value`: it is empty. */
export interface KeyValue {
  readonly key: string
  readonly value?: string
  readonly create_revision: string
  readonly mod_revision: string
}

/** `range_end` is not included. */
interface Range {
  readonly key: string
  readonly range_end: string
}

const SEQ_DIGITS = 16
/** Longer than all that is not sealed, and the nonce. */
const START_CHARACTERS = 256

export class Keys {
  readonly #prefix: string
  readonly marker: string
  /** Before the keys of a prefix such as `PREFIX/2`. */
  readonly end: string
  readonly records: Range
  readonly turns: Range

  constructor(prefix: string) {
    this.#prefix = prefix
    this.marker = base64(`${prefix}.key`)
    this.end = base64(`${prefix}/1`)
    this.records = { key: this.record(0), range_end: this.end }
    this.turns = { key: this.turn(''), range_end: base64(`${prefix}.turn0`) }
  }

  record(seq: number): string {
    return base64(`${this.#prefix}/${String(seq).padStart(SEQ_DIGITS, '0')}`)
  }
  turn(id: string): string {
    return base64(`${this.#prefix}.turn/${id}`)
  }

  /** With `limit`, etcd would still count all that follows. */
  range(first: number, records: number): Range {
    return { key: this.record(first), range_end: this.record(first + records) }
  }

  /**
   * Compares the beginning, which no other line has, since the whole may be long. Nothing for
   * `START`.
   */
  isAt({ seq, text }: Stored): object[] {
    // Shorter than the line: GREATER does not include what is equal.
    const start = text.slice(0, Math.min(START_CHARACTERS, text.length - 1))
    const compared = { target: 'VALUE', key: this.record(seq) }
    return seq === 0
      ? []
      : [
          { ...compared, result: 'GREATER', value: base64(start) },
          { ...compared, result: 'LESS', value: base64(`${start}\xff`) }
        ]
  }

  /** The text, too: an etcd restored from a snapshot may give a revision twice. */
  isMarker({ text, revision }: Marker): object[] {
    return [
      { target: 'MOD', key: this.marker, mod_revision: revision },
      { target: 'VALUE', key: this.marker, value: base64(text) }
    ]
  }

  /** Without other programs' keys, and the marker. */
  recordsIn(kvs: readonly KeyValue[] = []): Stored[] {
    return kvs
      .map(({ key, value = '' }) => ({ seq: this.#numberIn(key), text: text(value) }))
      .filter(({ seq }) => seq > 0)
  }

  turnsIn(kvs: readonly KeyValue[]): Turn[] {
    return kvs
      .filter(
        ({ key, value = '' }) =>
          text(key).startsWith(`${this.#prefix}.turn/`) && /^[0-9]{1,9}$/.test(text(value))
      )
      .map(({ key, value = '', create_revision: revision }) => ({
        key,
        revision,
        waitMs: Math.min(Number(text(value)), MAX_ETCD_TURN_MS)
      }))
  }

  #numberIn(key: string): number {
    const name = text(key)
    const id = name.slice(this.#prefix.length + 1)
    return name.startsWith(`${this.#prefix}/`) && /^[0-9]{16}$/.test(id) ? Number(id) : 0
  }
}

export function markerIn({
  response_range
}: {
  response_range: { kvs?: readonly KeyValue[] }
}): Marker | undefined {
  const found = response_range.kvs?.[0]
  return found && markerOf(text(found.value ?? ''), found.mod_revision)
}

export function namesOf(kvs: readonly KeyValue[]): string {
  return kvs.map(({ key }) => JSON.stringify(text(key))).join(', ')
}

export function put(key: string, value: string): object {
  return { request_put: { key, value: base64(value) } }
}

export function isFree(key: string): object {
  return { target: 'CREATE', key, create_revision: '0' }
}

function base64(text: string): string {
  return Buffer.from(text, 'latin1').toString('base64')
}

function text(base64: string): string {
  return Buffer.from(base64, 'base64').toString('latin1')
}
