/**
 * XML 1.0, fifth edition, as far as exports of password managers use it: elements, attributes, text, comments, CDATA
 * sections, the five predefined entities (§4.6) and character references. Refused are document types and with them
 * all other entities (§2.8, §4.1), processing instructions, names beyond ASCII, encodings but UTF-8, and nesting
 * beyond a bound. Anything malformed is refused: a guess would be a wrong password.
 *
 * One pass over the text, without backtracking; each place is looked at by one expression.
 */
import { OperatorError } from '../command.ts'

/** An element's beginning, its end, or a piece of text. Lines count from 1. */
export type XmlEvent =
  | {
    readonly kind: 'open', readonly name: string, readonly line: number
    readonly attributes: ReadonlyMap<string, string>
  }
  | { readonly kind: 'close', readonly name: string }
  | { readonly kind: 'text', readonly text: string }

/** A database of KeePass has about as many levels as its groups nest. */
const MAX_DEPTH_LEVELS = 128

const ENTITIES: { readonly [name: string]: string } = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

const DECLARATION = new RegExp([
  /<\?xml\s+version\s*=\s*(?:"1\.[0-9]+"|'1\.[0-9]+')/, /(?:\s+encoding\s*=\s*["'](?<encoding>[\w.-]+)["'])?/,
  /(?:\s+standalone\s*=\s*["'](?:yes|no)["'])?\s*\?>/
].map(({ source }) => source).join(''), 'y')
const SPACE = /[ \t\r\n]*/y
const COMMENT = /<!--([^]*?)--/y
const CDATA = /<!\[CDATA\[([^]*?)\]\]>/y
const OPEN = /<([A-Za-z_][\w.-]*)/y
const ATTRIBUTE = /[ \t\r\n]+([A-Za-z_][\w.-]*)[ \t\r\n]*=[ \t\r\n]*(?:"([^<"]*)"|'([^<']*)')/y
const OPEN_END = /[ \t\r\n]*(\/?)>/y
const CLOSE = /<\/([A-Za-z_][\w.-]*)[ \t\r\n]*>/y
const TEXT = /[^<]+/y
const REFERENCE = /&(?:#x([0-9A-Fa-f]{1,6})|#([0-9]{1,7})|([a-z]{2,4}));|&/g
/** §2.2 */
const NOT_CHARACTER = /[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u

/** Reads a document. Throws an `OperatorError` with line and column, which never quotes the text. */
export class XmlReader {
  readonly #text: string
  #at = 0
  /** Up to where lines were counted. */
  #seen = 0
  #line = 1
  #lineStart = 0
  readonly #open: string[] = []

  constructor(text: string) { this.#text = text }

  * events(): Generator<XmlEvent, void, void> {
    const encoding = this.#take(DECLARATION)?.groups?.['encoding'] ?? 'UTF-8'
    if (encoding.toUpperCase() !== 'UTF-8') throw this.#wrong(0, 'an encoding other than UTF-8')
    const strange = this.#text.search(NOT_CHARACTER)
    if (strange >= 0) throw this.#wrong(strange, 'a character that XML does not have')
    this.#skip()
    do {
      yield * this.#next()
    } while (this.#open.length > 0)
    this.#skip()
    if (this.#at < this.#text.length) throw this.#wrong(this.#at, 'something after the end of the document')
  }

  /** White space and comments, all that there is outside of the one element (§2.1). */
  #skip(): void {
    do {
      this.#take(SPACE)
    } while (this.#comment())
  }

  /** Whether a comment was next, which has no two hyphens within (§2.5). */
  #comment(): boolean {
    if (this.#take(COMMENT) === undefined) return false
    if (this.#text[this.#at] !== '>') throw this.#wrong(this.#at, 'two hyphens within a comment')
    this.#at++
    return true
  }

  /** What comes next: one event, two of an empty element, none of a comment. */
  * #next(): Generator<XmlEvent, void, void> {
    const at = this.#at
    const opened = this.#take(OPEN)?.[1]
    if (opened !== undefined) return yield * this.#element(opened, at)
    if (this.#open.length === 0) throw this.#wrong(at, 'no element where one should begin')
    const closed = this.#take(CLOSE)?.[1]
    if (closed !== undefined) {
      if (this.#open.pop() !== closed) throw this.#wrong(at, 'the end of another element than the one that is open')
      yield { kind: 'close', name: closed }
      return
    }
    if (this.#comment()) return
    const section = this.#take(CDATA)?.[1]
    if (section !== undefined) return yield { kind: 'text', text: lineEnds(section) }
    const text = this.#take(TEXT)?.[0]
    if (text === undefined) throw this.#wrong(at, 'what is not XML, or is not read here')
    if (text.includes(']]>')) throw this.#wrong(at + text.indexOf(']]>'), 'an end of a section that did not begin')
    yield { kind: 'text', text: this.#decoded(text, at) }
  }

  * #element(name: string, at: number): Generator<XmlEvent, void, void> {
    const line = this.#lineOf(at)
    const attributes = new Map<string, string>()
    for (let start = this.#at, found = this.#take(ATTRIBUTE); found !== undefined; found = this.#take(ATTRIBUTE)) {
      const [, key = '', double, single = ''] = found
      if (attributes.has(key)) throw this.#wrong(start, 'an attribute twice')
      attributes.set(key, this.#decoded((double ?? single).replace(/\r\n?|[\t\n]/g, ' '), start)) // §3.3.3
      start = this.#at
    }
    const end = this.#take(OPEN_END)
    if (end === undefined) throw this.#wrong(this.#at, 'a tag that is not closed')
    yield { kind: 'open', name, line, attributes }
    if (end[1] === '/') return yield { kind: 'close', name }
    this.#open.push(name)
    if (this.#open.length > MAX_DEPTH_LEVELS) throw this.#wrong(at, `more than ${MAX_DEPTH_LEVELS} levels`)
  }

  /** What an expression finds at this place, which is then behind it; undefined where it finds nothing. */
  #take(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.#at
    const found = expression.exec(this.#text)
    if (found === null) return undefined
    this.#at = expression.lastIndex
    return found
  }

  /** A text with its references resolved; a line end that is written as a reference stays as it is (§2.11). */
  #decoded(text: string, at: number): string {
    return lineEnds(text).replace(REFERENCE, (_, hex?: string, decimal?: string, name?: string) => {
      if (name !== undefined && Object.hasOwn(ENTITIES, name)) return ENTITIES[name]!
      const code = hex === undefined ? Number(decimal ?? NaN) : parseInt(hex, 16)
      const character = code <= 0x10ffff ? String.fromCodePoint(code) : '\0'
      if (NOT_CHARACTER.test(character)) throw this.#wrong(at, 'a reference that means no character')
      return character
    })
  }

  /** The line of an offset; these ascend. */
  #lineOf(offset: number): number {
    for (; this.#seen < offset; this.#seen++) {
      const end = this.#text[this.#seen]
      if (end === '\n' || (end === '\r' && this.#text[this.#seen + 1] !== '\n')) {
        this.#line++
        this.#lineStart = this.#seen + 1
      }
    }
    return this.#line
  }

  #wrong(offset: number, what: string): OperatorError {
    const line = this.#lineOf(offset)
    const column = [...this.#text.slice(this.#lineStart, offset)].length + 1
    return new OperatorError(`line ${line}, column ${column}: ${what}`)
  }
}

/** §2.11 */
function lineEnds(text: string): string { return text.replace(/\r\n?/g, '\n') }
