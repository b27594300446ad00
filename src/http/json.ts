/**
 * A strict JSON parser over bytes (RFC 8259). It refuses invalid UTF-8 (§8.1), repeated keys (§4:
 * two readers may see two requests), too many keys, and deep nesting (§9). An object becomes a map,
 * in which `__proto__` is a plain key, and the key 999 takes no room for others.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { MAX_JSON_KEYS, MAX_NESTED_VALUES } from '../limits.ts'

export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export type JsonObject = ReadonlyMap<string, Json>

export type Parsed<T> = { readonly ok: true; readonly value: T } | JsonFault

interface JsonFault {
  readonly ok: false
  /** Completes "The body …". */
  readonly fault: string
  /**
   * From 0. Undefined for a body that is not UTF-8: to find its place costs more than to parse it.
   */
  readonly byte?: number
}

/**
 * Levels deeper than `builtDepth` come out empty, since values may take many times the memory of
 * their text. Never throws.
 */
export function parseJson(
  bytes: Buffer,
  maxDepth: number,
  builtDepth: number = maxDepth
): Parsed<Json> {
  if (!isUtf8(bytes)) return { ok: false, fault: 'is not valid UTF-8' }
  try {
    return { ok: true, value: new Parser(bytes, maxDepth, builtDepth).document() }
  } catch (error) {
    if (error instanceof Fault) return { ok: false, fault: error.text, byte: error.at }
    throw error
  }
}

export function parseJsonObject(
  bytes: Buffer,
  maxDepth: number,
  builtDepth: number = maxDepth
): Parsed<JsonObject> {
  const parsed = parseJson(bytes, maxDepth, builtDepth)
  if (!parsed.ok) return parsed
  const { value } = parsed
  return value instanceof Map
    ? { ok: true, value }
    : { ok: false, fault: 'is not an object', byte: bytes.findIndex(byte => !isSpace(byte)) }
}

const [SPACE, TAB, LINE_FEED, RETURN] = [0x20, 0x09, 0x0a, 0x0d]
const [QUOTE, PLUS, COMMA, MINUS, POINT, ZERO, NINE, COLON] = [
  0x22, 0x2b, 0x2c, 0x2d, 0x2e, 0x30, 0x39, 0x3a
]
const [UPPER_E, OPEN_ARRAY, BACKSLASH, CLOSE_ARRAY] = [0x45, 0x5b, 0x5c, 0x5d]
const [LOWER_A, LOWER_E, LOWER_F, LOWER_N, LOWER_T, LOWER_U] = [0x61, 0x65, 0x66, 0x6e, 0x74, 0x75]
const [OPEN_OBJECT, CLOSE_OBJECT] = [0x7b, 0x7d]
/** §7, without `u`. */
const ESCAPED: ReadonlySet<number | undefined> = new Set(Buffer.from('"\\/bfnrt'))
const NOTHING: JsonObject = new Map()

/** No `Error`, whose stack would be a price that hostile bodies can make us pay. */
class Fault {
  readonly at: number
  readonly text: string
  constructor(at: number, text: string) {
    this.at = at
    this.text = text
  }
}

class Parser {
  readonly #bytes: Buffer
  readonly #maxDepth: number
  readonly #builtDepth: number
  #at = 0
  #depth = 0
  /** Values that come out empty: each costs more than a byte of a string. */
  #unbuilt = 0

  constructor(bytes: Buffer, maxDepth: number, builtDepth: number) {
    this.#bytes = bytes
    this.#maxDepth = maxDepth
    this.#builtDepth = builtDepth
  }

  document(): Json {
    const value = this.#value()
    if (this.#peek() !== undefined) throw this.#unexpected('after the end of the value')
    return value
  }

  /** Skips white space (§2). */
  #peek(): number | undefined {
    let byte = this.#bytes[this.#at]
    while (isSpace(byte)) byte = this.#bytes[++this.#at]
    return byte
  }

  #unexpected(where: string): Fault {
    return new Fault(
      this.#at,
      `${this.#at < this.#bytes.length ? 'has an unexpected character' : 'ends'} ${where}`
    )
  }

  #value(): Json {
    if (this.#depth > this.#builtDepth && ++this.#unbuilt > MAX_NESTED_VALUES)
      throw new Fault(this.#at, `has more than ${MAX_NESTED_VALUES} values that nest`)
    switch (this.#peek()) {
      case OPEN_OBJECT:
        return this.#object()
      case OPEN_ARRAY:
        return this.#array()
      case QUOTE:
        return this.#string()
      case LOWER_T:
        return this.#word('true', true)
      case LOWER_F:
        return this.#word('false', false)
      case LOWER_N:
        return this.#word('null', null)
      default:
        return this.#number()
    }
  }

  #word<T>(word: string, value: T): T {
    for (let i = 0; i < word.length; i++, this.#at++) {
      if (this.#bytes[this.#at] !== word.charCodeAt(i))
        throw this.#unexpected(`in the word ${word}`)
    }
    return value
  }

  #items(close: number, what: string, item: () => void): void {
    if (++this.#depth > this.#maxDepth)
      throw new Fault(this.#at, `nests deeper than ${this.#maxDepth} levels`)
    this.#at++
    if (this.#peek() !== close) {
      for (item(); this.#peek() !== close; item()) {
        if (this.#bytes[this.#at] !== COMMA)
          throw this.#unexpected(`in an ${what}, where a comma or its end should be`)
        this.#at++
      }
    }
    this.#at++
    this.#depth--
  }

  #array(): Json[] {
    const items: Json[] = []
    const isBuilt = this.#depth < this.#builtDepth
    this.#items(CLOSE_ARRAY, 'array', () => {
      const value = this.#value()
      if (isBuilt) items.push(value)
    })
    return items
  }

  #object(): JsonObject {
    let members: Map<string, Json> | undefined
    const isBuilt = this.#depth < this.#builtDepth
    this.#items(CLOSE_OBJECT, 'object', () => {
      if (this.#peek() !== QUOTE) throw this.#unexpected('in an object, where a key should be')
      const start = this.#at
      const key = this.#string()
      members ??= new Map()
      if (members.has(key)) throw new Fault(start, 'has a key twice in one object')
      // V8 hashes a key such as "999" by its number, so a client can choose keys that collide.
      if (members.size === MAX_JSON_KEYS)
        throw new Fault(start, `has more than ${MAX_JSON_KEYS} keys in one object`)
      if (this.#peek() !== COLON) throw this.#unexpected('in an object, where a colon should be')
      this.#at++
      const value = this.#value()
      members.set(key, isBuilt ? value : null)
    })
    return isBuilt && members !== undefined ? members : NOTHING
  }

  #string(): string {
    const bytes = this.#bytes
    const start = ++this.#at
    let bits = 0 // all bytes, ORed: below 0x80 they are ASCII
    let hasEscapes = false
    for (;;) {
      const byte = bytes[this.#at]
      if (byte === undefined || byte < SPACE) throw this.#unexpected('in a string')
      this.#at++
      if (byte === QUOTE) break
      bits |= byte
      if (byte !== BACKSLASH) continue
      hasEscapes = true
      this.#escape()
    }
    // Joined pieces of a text of escapes would take 16 times its length.
    if (hasEscapes) return JSON.parse(bytes.toString('utf8', start - 1, this.#at)) as string
    return bytes.toString(bits < 0x80 ? 'latin1' : 'utf8', start, this.#at - 1)
  }

  #escape(): void {
    const isCode = this.#bytes[this.#at] === LOWER_U
    if (!isCode && !ESCAPED.has(this.#bytes[this.#at])) throw this.#unexpected('in an escape')
    this.#at++
    for (let digits = 0; isCode && digits < 4; digits++, this.#at++) {
      if (!isHexDigit(this.#bytes[this.#at])) throw this.#unexpected('in an escape')
    }
  }

  /** §6. */
  #number(): number {
    const bytes = this.#bytes
    const start = this.#at
    if (bytes[start] === MINUS) this.#at++
    else if (!isDigit(bytes[start])) throw this.#unexpected('where a value should be')
    if (bytes[this.#at] === ZERO) this.#at++
    else this.#digits()
    if (bytes[this.#at] === POINT) {
      this.#at++
      this.#digits()
    }
    if (bytes[this.#at] === LOWER_E || bytes[this.#at] === UPPER_E) {
      this.#at++
      if (bytes[this.#at] === PLUS || bytes[this.#at] === MINUS) this.#at++
      this.#digits()
    }
    return Number(bytes.toString('latin1', start, this.#at))
  }

  #digits(): void {
    if (!isDigit(this.#bytes[this.#at])) throw this.#unexpected('in a number')
    while (isDigit(this.#bytes[this.#at])) this.#at++
  }
}

function isSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === LINE_FEED || byte === RETURN || byte === TAB
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE
}

function isHexDigit(byte: number = 0): boolean {
  const lower = byte | 0x20
  return isDigit(byte) || (lower >= LOWER_A && lower <= LOWER_F)
}
