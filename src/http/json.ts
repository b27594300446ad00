/**
 * A strict JSON parser over bytes, RFC 8259.
 *
 * It accepts what `JSON.parse` accepts and gives the same values, but for what it refuses: an object with a key given
 * twice (§4: "SHOULD be unique"; two readers of such a body may see two different requests), or with more keys than a
 * bound, and nesting beyond another (§9). The bytes must be UTF-8 (§8.1) without a byte order mark. Objects are maps:
 * `__proto__` is a key like any other, and the key 999 takes no room for 999 others. Escapes of lone surrogates (§8.2)
 * are kept. One pass, no backtracking: the work is linear in the body's length.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { MAX_JSON_KEYS } from '../limits.ts'

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export type JsonObject = ReadonlyMap<string, Json>

/** The value, or what is wrong and where: line and column count from 1, the column in characters. */
export type Parsed<T> = { readonly ok: true, readonly value: T } | JsonFault

/** What is wrong with a body: completes a sentence that begins with «The body». */
interface JsonFault {
  readonly ok: false
  readonly fault: string
  readonly line: number
  readonly column: number
}

/**
 * Parses a whole body; `maxDepth` bounds how deep arrays and objects may nest. What nests deeper than `builtDepth` is
 * checked like the rest, and comes out empty: nobody asks for it, and it may take many times its bytes. Never throws.
 */
export function parseJson(bytes: Buffer, maxDepth: number, builtDepth: number = maxDepth): Parsed<Json> {
  if (!isUtf8(bytes)) return faultAt(bytes, firstInvalidByte(bytes), 'is not valid UTF-8')
  const parser = new Parser(bytes, maxDepth, builtDepth)
  try {
    return { ok: true, value: parser.document() }
  } catch (error) {
    if (error instanceof Fault) return faultAt(bytes, error.at, error.text)
    throw error
  }
}

/** The same for a body that must be an object. */
export function parseJsonObject(bytes: Buffer, maxDepth: number, builtDepth: number = maxDepth): Parsed<JsonObject> {
  const parsed = parseJson(bytes, maxDepth, builtDepth)
  if (!parsed.ok) return parsed
  const { value } = parsed
  if (value instanceof Map) return { ok: true, value }
  return faultAt(bytes, bytes.findIndex(byte => !isSpace(byte)), 'is not an object')
}

const [TAB, LINE_FEED, RETURN, SPACE] = [0x09, 0x0a, 0x0d, 0x20]
const [QUOTE, PLUS, COMMA, MINUS, POINT, COLON, BACKSLASH] = Buffer.from('"+,-.:\\') as unknown as Bytes
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = Buffer.from('[]{}') as unknown as Bytes
const [DIGIT_0, DIGIT_9] = Buffer.from('09') as unknown as Bytes
const [UPPER_E, LOWER_E, LOWER_F, LOWER_N, LOWER_T, LOWER_U] = Buffer.from('Eefntu') as unknown as Bytes
type Bytes = readonly [number, number, number, number, number, number, number]

/** What may follow a backslash, but for `u` (§7). */
const ESCAPED: ReadonlySet<number | undefined> = new Set(Buffer.from('"\\/bfnrt'))
const NOTHING: JsonObject = new Map()

/** Unwinds the parser to `parseJson`; without a stack trace, which a hostile body should not make us pay for. */
class Fault {
  readonly at: number
  readonly text: string
  constructor(at: number, text: string) { this.at = at; this.text = text }
}

class Parser {
  readonly #bytes: Buffer
  readonly #maxDepth: number
  readonly #builtDepth: number
  #at = 0
  #depth = 0

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

  /** The next byte that is not white space (§2), which stays unread; undefined at the end. */
  #peek(): number | undefined {
    const bytes = this.#bytes
    let byte = bytes[this.#at]
    while (isSpace(byte)) byte = bytes[++this.#at]
    return byte
  }

  #unexpected(where: string): Fault {
    return this.#at < this.#bytes.length
      ? new Fault(this.#at, `has an unexpected character ${where}`)
      : new Fault(this.#at, `ends ${where}`)
  }

  #value(): Json {
    switch (this.#peek()) {
      case OPEN_OBJECT: return this.#object()
      case OPEN_ARRAY: return this.#array()
      case QUOTE: return this.#string()
      case LOWER_T: return this.#literal('true', true)
      case LOWER_F: return this.#literal('false', false)
      case LOWER_N: return this.#literal('null', null)
      default: return this.#number()
    }
  }

  #literal<T>(word: string, value: T): T {
    for (let i = 0; i < word.length; i++, this.#at++) {
      if (this.#bytes[this.#at] !== word.charCodeAt(i)) throw this.#unexpected(`in the word ${word}`)
    }
    return value
  }

  /** Reads what is between two brackets: items, with commas between them. */
  #items(close: number, what: string, item: () => void): void {
    if (++this.#depth > this.#maxDepth) throw new Fault(this.#at, `nests deeper than ${this.#maxDepth} levels`)
    this.#at++
    if (this.#peek() !== close) {
      for (;;) {
        item()
        const byte = this.#peek()
        if (byte === close) break
        if (byte !== COMMA) throw this.#unexpected(`in an ${what}, where a comma or its end should be`)
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
      // V8 hashes a key such as "999" by its number, so a client can choose keys of one hash.
      if (members.size === MAX_JSON_KEYS) throw new Fault(start, `has more than ${MAX_JSON_KEYS} keys in one object`)
      if (this.#peek() !== COLON) throw this.#unexpected('in an object, where a colon should be')
      this.#at++
      members.set(key, null)
      const value = this.#value()
      if (isBuilt) members.set(key, value)
    })
    return isBuilt && members !== undefined ? members : NOTHING
  }

  #string(): string {
    const bytes = this.#bytes
    const start = ++this.#at
    let bits = 0 // every byte, ORed: below 0x80, they are all ASCII
    let hasEscapes = false
    for (;;) {
      const byte = bytes[this.#at]
      if (byte === undefined || byte < SPACE) throw this.#unexpected('in a string')
      this.#at++
      if (byte === QUOTE) break
      bits |= byte
      if (byte !== BACKSLASH) continue
      this.#escape()
      hasEscapes = true
    }
    // Joined piece by piece, a text of escapes would take 16 times its length.
    if (hasEscapes) return JSON.parse(bytes.toString('utf8', start - 1, this.#at)) as string
    return bytes.toString(bits < 0x80 ? 'latin1' : 'utf8', start, this.#at - 1)
  }

  #escape(): void {
    const byte = this.#bytes[this.#at]
    if (byte !== LOWER_U && !ESCAPED.has(byte)) throw this.#unexpected('in an escape')
    this.#at++
    if (byte !== LOWER_U) return
    for (let i = 0; i < 4; i++, this.#at++) {
      if (!isHexDigit(this.#bytes[this.#at])) throw this.#unexpected('in an escape')
    }
  }

  /** §6: an optional minus, an integer without leading zeros, an optional fraction, an optional exponent. */
  #number(): number {
    const bytes = this.#bytes
    const start = this.#at
    if (bytes[this.#at] === MINUS) this.#at++
    else if (!isDigit(bytes[this.#at])) throw this.#unexpected('where a value should be')
    if (bytes[this.#at] === DIGIT_0) this.#at++
    else this.#digits()
    if (bytes[this.#at] === POINT) { this.#at++; this.#digits() }
    const byte = bytes[this.#at]
    if (byte === LOWER_E || byte === UPPER_E) {
      const sign = bytes[++this.#at]
      if (sign === PLUS || sign === MINUS) this.#at++
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
  return byte !== undefined && byte >= DIGIT_0 && byte <= DIGIT_9
}

function isHexDigit(byte = 0): boolean {
  const lower = byte | 0x20
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66)
}

const REPLACEMENT = Buffer.from('\ufffd')

/** Where the decoder put U+FFFD in place of malformed bytes, and not where U+FFFD itself was sent. */
function firstInvalidByte(bytes: Buffer): number {
  let at = 0
  for (const character of bytes.toString()) {
    if (character === '\ufffd' && !bytes.subarray(at, at + 3).equals(REPLACEMENT)) break
    at += Buffer.byteLength(character)
  }
  return at
}

function faultAt(bytes: Buffer, at: number, fault: string): JsonFault {
  const lines = bytes.toString('latin1', 0, at).split('\n')
  // Each character's first byte counts; what follows that is 10xxxxxx (RFC 3629 §3).
  const column = lines.at(-1)!.replace(/[\x80-\xbf]/g, '').length + 1
  return { ok: false, fault, line: lines.length, column }
}
