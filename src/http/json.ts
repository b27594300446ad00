/**
 * A strict JSON parser over bytes, RFC 8259.
 *
 * It accepts what `JSON.parse` accepts and gives the same values, but for what it refuses: an object with a key given
 * twice (§4: "SHOULD be unique"; two readers of such a body may see two different requests), or with more keys than a
 * bound, and nesting beyond another (§9). The bytes must be UTF-8 (§8.1) without a byte order mark. Objects have no
 * prototype, so `__proto__` is a key like any other. Escapes of lone surrogates (§8.2) are kept as they are.
 *
 * One pass, no backtracking: the work is linear in the body's length. Not so the memory of what is built: V8 keeps room
 * for 1,000 values in an object with the key 999. So who wants no nested values has them checked and not built.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { MAX_JSON_KEYS } from '../limits.ts'

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

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
 * checked like the rest, and comes out empty. Never throws.
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
export function parseJsonObject(
  bytes: Buffer, maxDepth: number, builtDepth: number = maxDepth
): Parsed<{ readonly [key: string]: Json }> {
  const parsed = parseJson(bytes, maxDepth, builtDepth)
  if (!parsed.ok) return parsed
  const { value } = parsed
  if (isObject(value)) return { ok: true, value }
  return faultAt(bytes, bytes.findIndex(byte => !isSpace(byte)), 'is not an object')
}

function isObject(value: Json): value is { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const TAB = 0x09, LINE_FEED = 0x0a, RETURN = 0x0d, SPACE = 0x20
const QUOTE = 0x22, PLUS = 0x2b, COMMA = 0x2c, MINUS = 0x2d, POINT = 0x2e
const DIGIT_0 = 0x30, DIGIT_9 = 0x39, COLON = 0x3a, BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b, CLOSE_ARRAY = 0x5d, OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d
const UPPER_E = 0x45, LOWER_E = 0x65, LOWER_F = 0x66, LOWER_N = 0x6e, LOWER_T = 0x74, LOWER_U = 0x75

/** What may follow a backslash, but for `u` (§7). */
const ESCAPED: ReadonlySet<number | undefined> = new Set(Buffer.from('"\\/bfnrt'))

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
      case QUOTE: return this.#string(this.#isBuilt())
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

  #enter(): void {
    if (++this.#depth > this.#maxDepth) throw new Fault(this.#at, `nests deeper than ${this.#maxDepth} levels`)
    this.#at++
  }

  #leave(): void { this.#depth--; this.#at++ }

  /** Whether a value here is wanted, and not only checked. */
  #isBuilt(): boolean { return this.#depth <= this.#builtDepth }

  #array(): Json[] {
    const items: Json[] = []
    this.#enter()
    if (this.#peek() !== CLOSE_ARRAY) {
      for (;;) {
        const value = this.#value()
        if (this.#isBuilt()) items.push(value)
        const byte = this.#peek()
        if (byte === CLOSE_ARRAY) break
        if (byte !== COMMA) throw this.#unexpected('in an array, where a comma or its end should be')
        this.#at++
      }
    }
    this.#leave()
    return items
  }

  #object(): { [key: string]: Json } {
    const object: { [key: string]: Json } = Object.create(null)
    this.#enter()
    if (this.#peek() !== CLOSE_OBJECT) {
      const keys = new Set<string>()
      for (;;) {
        if (this.#peek() !== QUOTE) throw this.#unexpected('in an object, where a key should be')
        const start = this.#at
        const key = this.#string(true)
        if (keys.has(key)) throw new Fault(start, 'has a key twice in one object')
        if (keys.size === MAX_JSON_KEYS) throw new Fault(start, `has more than ${MAX_JSON_KEYS} keys in one object`)
        keys.add(key)
        if (this.#peek() !== COLON) throw this.#unexpected('in an object, where a colon should be')
        this.#at++
        const value = this.#value()
        if (this.#isBuilt()) object[key] = value
        const byte = this.#peek()
        if (byte === CLOSE_OBJECT) break
        if (byte !== COMMA) throw this.#unexpected('in an object, where a comma or its end should be')
        this.#at++
      }
    }
    this.#leave()
    return object
  }

  #string(isWanted: boolean): string {
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
    if (!isWanted) return ''
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
    return this.#isBuilt() ? Number(bytes.toString('latin1', start, this.#at)) : 0
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
  const lineStart = bytes.subarray(0, at).lastIndexOf(LINE_FEED) + 1
  let line = 1
  for (let i = 0; i < lineStart; i++) if (bytes[i] === LINE_FEED) line++
  let column = 1
  for (let i = lineStart; i < at; i++) if ((bytes[i]! & 0xc0) !== 0x80) column++ // each character's first byte
  return { ok: false, fault, line, column }
}
