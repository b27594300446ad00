/** The keys of a journal in etcd, as its JSON gateway takes and gives them: in base64. */
import { Buffer } from 'node:buffer'
import { MAX_ETCD_NAMED_KEYS, MAX_ETCD_TURN_MS } from './etcd-limits.ts'
import { markerOf, type Marker } from './marker.ts'

/** A record in etcd. */
export interface Stored {
  readonly seq: number
  /** Its line, without a line end. */
  readonly text: string
}

/** Before all records. */
export const START: Stored = { seq: 0, text: '' }

/** An instance that waits for its turn (`turns.ts`). */
export interface Turn {
  readonly key: string
  /** How long it may take. */
  readonly waitMs: number
  readonly revision: string
}

/** A key and its value; what is empty is left out. */
export interface KeyValue {
  readonly key: string
  readonly value?: string
  readonly create_revision: string
  readonly mod_revision: string
}

/** Keys from one on, up to another. */
export interface Range { readonly key: string, readonly range_end: string }

const SEQ_DIGITS = 16
/** So much of a line holds all that is not sealed, and the nonce. */
const START_CHARACTERS = 256

/** The keys below a prefix. */
export class Keys {
  readonly #prefix: string
  readonly #warn: (line: string) => void
  /** Those that were named. */
  readonly #named = new Set<string>()
  /** Before all turns, and all records. */
  readonly marker: string
  /** After all records, but before those of a prefix such as `PREFIX/2`. */
  readonly end: string
  readonly records: Range
  readonly turns: Range

  constructor(prefix: string, warn: (line: string) => void) {
    this.#prefix = prefix
    this.#warn = warn
    this.marker = base64(`${prefix}.key`)
    this.end = base64(`${prefix}/1`)
    this.records = { key: this.record(0), range_end: this.end }
    this.turns = { key: this.turn(''), range_end: base64(`${prefix}.turn0`) }
  }

  record(seq: number): string { return base64(`${this.#prefix}/${String(seq).padStart(SEQ_DIGITS, '0')}`) }
  next({ key }: KeyValue): string { return base64(`${text(key)}\0`) }
  turn(id: string): string { return base64(`${this.#prefix}.turn/${id}`) }

  /** Not by `limit`: with that, etcd still counts all that follows. */
  range(first: number, records: number): Range {
    return { key: this.record(first), range_end: this.record(first + records) }
  }

  /** That a record is this line, by its beginning, which no other line has: the whole may be long. */
  isAt({ seq, text }: Stored): object[] {
    const start = text.slice(0, Math.min(START_CHARACTERS, text.length - 1))
    const compared = { target: 'VALUE', key: this.record(seq) }
    return seq === 0 ? [] : [
      { ...compared, result: 'GREATER', value: base64(start) },
      { ...compared, result: 'LESS', value: base64(`${start}\xff`) }
    ]
  }

  isMarker({ text, revision }: Marker): object[] {
    return [
      { target: 'MOD', key: this.marker, mod_revision: revision },
      { target: 'VALUE', key: this.marker, value: base64(text) }
    ]
  }

  /** The records among keys; those of other prefixes may be there too, such as of `PREFIX.new`. */
  recordsIn(kvs: readonly KeyValue[] = []): Stored[] {
    return this.#below(`${this.#prefix}/`, kvs, id => /^[0-9]{16}$/.test(id))
      .map(({ id, kv: { value = '' } }) => ({ seq: Number(id), text: text(value) }))
  }

  turnsIn(kvs: readonly KeyValue[] = []): Turn[] {
    return this.#below(`${this.#prefix}.turn/`, kvs, (_id, { value = '' }) => /^[0-9]{1,9}$/.test(text(value)))
      .map(({ kv: { key, value = '', create_revision: revision } }) =>
        ({ key, revision, waitMs: Math.min(Number(text(value)), MAX_ETCD_TURN_MS) }))
  }

  /** How many keys among the turns are those of others. */
  notTurns(kvs: readonly KeyValue[] = []): number {
    const start = this.#prefix.length + '.turn/'.length
    return kvs.filter(({ key }) => !/^[0-9a-f]{16}$/.test(text(key).slice(start))).length
  }

  /** Keys that begin so, each with what follows; what is not right is named. */
  #below(
    start: string, kvs: readonly KeyValue[], isRight: (id: string, kv: KeyValue) => boolean
  ): { readonly id: string, readonly kv: KeyValue }[] {
    const found = []
    for (const kv of kvs) {
      const name = text(kv.key)
      const id = name.slice(start.length)
      if (name.startsWith(start) && (isRight(id, kv) || this.#isNamed(name))) found.push({ id, kv })
    }
    return found
  }

  /** Names a key that is not this program's, once. */
  #isNamed(name: string): false {
    if (!this.#named.has(name) && this.#named.size < MAX_ETCD_NAMED_KEYS) {
      this.#named.add(name)
      const how = 'remove it if nothing else needs it'
      this.#warn(`the key ${JSON.stringify(name)} in etcd is not of this program, and is ignored; ${how}`)
    }
    return false
  }
}

/** The marker in the answer to a range. */
export function markerIn({ response_range }: { response_range: { kvs?: readonly KeyValue[] } }): Marker | undefined {
  const found = response_range.kvs?.[0]
  return found && markerOf(text(found.value ?? ''), found.mod_revision)
}

export function put(key: string, value: string): object { return { request_put: { key, value: base64(value) } } }

export function isFree(key: string): object { return { target: 'CREATE', key, create_revision: '0' } }

/** Whether a key has the value that it was made with. */
export function isFirst({ create_revision: made, mod_revision: put }: KeyValue): boolean { return made === put }

function base64(text: string): string { return Buffer.from(text, 'latin1').toString('base64') }

function text(base64: string): string { return Buffer.from(base64, 'base64').toString('latin1') }
