/**
 * What the operator sees and types. Results go to standard output, everything else to standard
 * error.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { appendAll, disk, trySync, type Descriptor, type Files } from '../../journal/files.ts'
import { systemCode } from '../../errors.ts'
import type { JournalLocation } from '../../journal/journal.ts'
import { MAX_ENTRY_BYTES } from '../../limits.ts'
import { showProgress } from '../../log.ts'
import { OperatorError, UsageError } from './command.ts'
import { ENDING_SIGNALS, endingAtSignal, type Ending } from './signals.ts'

type Streams = Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr' | 'on' | 'once' | 'off' | 'exit'>

type Words = { readonly [field: string]: string }

/** `fault`: what is wrong with the secret. */
interface SecretRule {
  readonly prompt: string
  /** By default the password. */
  readonly what?: string
  /** The flag that takes it from standard input. */
  readonly flag?: string
  readonly fault?: (secret: string) => string | undefined
}

const PIECE_UNITS = 64 * 1024
const ASCII = /^[\x20-\x7e]*$/
const LEAST_COLUMN_CHARACTERS = 8
const GAP = '  '
const FULL_PIPE_PAUSE_MS = 2

/** Waits while a pipe is full: Node's pipes fail with EAGAIN. */
const PATIENT: Files = {
  ...disk,
  appendSync: (descriptor, bytes) => {
    try {
      return disk.appendSync(descriptor, bytes)
    } catch (error) {
      if (systemCode(error) !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_PAUSE_MS)
      return 0
    }
  }
}

export class Terminal {
  readonly #streams: Streams
  readonly #asJson: boolean
  /**
   * Undefined on a terminal. Node's own stream ignores partial writes to a full disk, and buffers
   * for a slow pipe without limit.
   */
  readonly #output: Descriptor | undefined

  constructor(streams: Streams, asJson: boolean) {
    this.#streams = streams
    this.#asJson = asJson
    const { fd, isTTY } = streams.stdout as { readonly fd?: Descriptor; readonly isTTY?: boolean }
    this.#output = isTTY === true ? undefined : fd
  }

  /** `data` with `--json`, otherwise `lines`. Control characters are escaped. */
  show(data: object, lines: string | readonly string[]): void {
    if (this.#asJson) this.pass(`${visible(JSON.stringify(data))}\n`)
    else this.say([lines].flat())
  }

  /** Lines before a result; with `--json` its object has them. */
  say(lines: readonly string[]): void {
    if (!this.#asJson) for (const line of lines) this.pass(`${visible(line)}\n`)
  }

  /** A program gets the text unescaped: a password with escapes is another password. */
  showText(data: object, text: string): void {
    if (this.#asJson || this.showsResults) this.show(data, text)
    else this.pass(`${text}\n`)
  }

  /**
   * A terminal's width cuts the table. `none` goes to standard error, since scripts count lines.
   * `items` is gone through several times. `words`: headers that are no names of fields. `absent`:
   * what a missing field means.
   */
  list(items: Iterable<object>, none: string, words: Words = {}, absent: Words = {}): void {
    if (this.#asJson) return this.listJson('[', items, ']')
    const [first] = items
    const { stdout } = this.#streams
    if (first === undefined) this.note(none)
    else this.#passAll(table(items, stdout.columns || Infinity, words, absent))
  }

  /** An array that may be longer than memory. */
  listJson(before: string, items: Iterable<object>, behind: string): void {
    this.#passAll(jsonArray(before, items, behind))
  }

  #passAll(texts: Iterable<string>): void {
    let piece = ''
    for (const text of texts) {
      piece += text
      if (piece.length < PIECE_UNITS) continue
      this.pass(piece)
      piece = ''
    }
    if (piece !== '') this.pass(piece)
  }

  choices(items: readonly object[], words: Words): void {
    const { stderr } = this.#streams
    for (const line of table(items, stderr.columns || Infinity, words)) stderr.write(line)
  }

  note(line: string): void {
    this.#streams.stderr.write(`${visible(line)}\n`)
  }

  /** Before a command acts: the settings may mean another journal than the person. */
  noteJournal({ path, endpoints }: Pick<JournalLocation, 'path' | 'endpoints'>, to = ''): void {
    this.note(`journal ${path}${endpoints === undefined ? '' : ` at ${endpoints.join(', ')}`}${to}`)
  }

  warn(line: string): void {
    this.#streams.stderr.write(`warning: ${visible(line)}\n`)
  }

  /** `share`: from 0 to 1; 1 clears the line. */
  progress(what: string, share: number): void {
    showProgress(this.#streams.stderr, what, share)
  }

  get showsResults(): boolean {
    return this.#streams.stdout.isTTY
  }

  /** Unescaped. Blocks the process until all is taken, so no lock may be held. */
  pass(text: string): void {
    const output = this.#output
    if (output === undefined) this.#streams.stdout.write(text)
    else this.#orFail(() => appendAll(PATIENT, output, Buffer.from(text)))
  }

  /**
   * For `-`: passes what `write` puts, and resolves once it is on the device, since exit code 0
   * says that the file is good.
   */
  async passFile<T>(write: (put: (text: string) => void) => Promise<T>): Promise<T> {
    const made = await write(text => this.pass(text))
    const output = this.#output
    if (output !== undefined) this.#orFail(() => trySync(() => disk.syncOpen(output)))
    return made
  }

  #orFail(act: () => void): void {
    try {
      act()
    } catch (error) {
      this.#streams.stdout.emit('error', error)
    }
  }

  /** Throws a `UsageError` if there is no terminal. */
  assertClip(): NodeJS.WriteStream {
    const terminal = [this.#streams.stdout, this.#streams.stderr].find(stream => stream.isTTY)
    if (terminal === undefined)
      throw new UsageError('there is no terminal whose clipboard --clip could use')
    return terminal
  }

  /**
   * OSC 52 reaches the terminal's clipboard, over SSH, too; some terminals ignore it. The text
   * stays until the time is over, or a signal comes, even at once. A space clears it: tmux ignores
   * an empty text.
   */
  async clip(text: string, seconds: number, onCopied: () => Promise<void>): Promise<void> {
    const terminal = this.assertClip()
    const put = (held: string): unknown =>
      terminal.write(`\x1b]52;c;${Buffer.from(held).toString('base64')}\x07`)
    const ended = new AbortController()
    const end = (): void => ended.abort()
    for (const signal of ENDING_SIGNALS) this.#streams.once(signal, end)
    try {
      put(text)
      await onCopied()
      await sleep(seconds * 1000, undefined, { signal: ended.signal }).catch(() => {})
    } finally {
      put(' ')
      for (const signal of ENDING_SIGNALS) this.#streams.off(signal, end)
    }
  }

  readonly ending: Ending = (onEnd, act) => endingAtSignal(this.#streams, onEnd, act)

  saying<T>(state: string, act: () => Promise<T>): Promise<T> {
    return this.ending(() => state, act)
  }

  get isInteractive(): boolean {
    return this.#streams.stdin.isTTY && this.#streams.stderr.isTTY
  }

  /** No script types the words, and no program reads the results. */
  get isPerson(): boolean {
    return this.isInteractive && this.showsResults && !this.#asJson
  }

  /**
   * Throws a `UsageError` for an invalid input, or without a terminal; an `OperatorError` if
   * cancelled.
   */
  async newSecret(
    fromInput: boolean,
    { prompt, what = 'password', flag = '--password-stdin', fault = () => undefined }: SecretRule
  ): Promise<string> {
    const faultOf = (secret: string): string | undefined =>
      secret === '' ? `the ${what} is empty` : fault(secret)
    const { stdin: input, stderr: error } = this.#streams
    if (fromInput && !input.isTTY) {
      const secret = (await this.readText()).replace(/\r?\n$/, '')
      const why = faultOf(secret)
      if (why !== undefined) throw new UsageError(why)
      return secret
    }
    if (!this.isInteractive) {
      throw new UsageError(`there is no terminal to ask for the ${what} at; use ${flag}`)
    }
    const output = new Writable({ write: (_chunk, _encoding, done) => done() })
    const editor = createInterface({ input, output, terminal: true, historySize: 0 })
    const lines = editor.on('SIGINT', () => editor.close())[Symbol.asyncIterator]()
    const hidden = async (question: string): Promise<string> => {
      error.write(visible(question))
      const { value, done } = await lines.next()
      error.write('\n')
      if (done === true) throw new OperatorError('cancelled')
      return value
    }
    try {
      for (;;) {
        const first = await hidden(`${prompt}: `)
        const why =
          faultOf(first) ??
          ((await hidden('again: ')) === first ? undefined : `the two ${what}s differ`)
        if (why === undefined) return first
        this.note(why)
      }
    } finally {
      editor.close()
    }
  }

  /** A line, typed or from standard input. */
  async line(question: string): Promise<string> {
    if (this.#streams.stdin.isTTY) this.#streams.stderr.write(question)
    const editor = createInterface({ input: this.#streams.stdin })
    const { value, done } = await editor[Symbol.asyncIterator]().next()
    editor.close()
    if (done === true) throw new OperatorError('cancelled')
    return value.trim()
  }

  /** Throws a `UsageError` if it is not UTF-8. */
  async readText(): Promise<string> {
    const bytes = await this.readInput(MAX_ENTRY_BYTES)
    // Decoding it would give another password.
    if (!isUtf8(bytes)) throw new UsageError('standard input is not UTF-8')
    return bytes.toString()
  }

  input(): AsyncIterable<Buffer> {
    return this.#streams.stdin as AsyncIterable<Buffer>
  }

  /** Throws an `OperatorError` if it is longer. */
  async readInput(maxBytes: number): Promise<Buffer> {
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of this.#streams.stdin) {
      bytes += (chunk as Buffer).length
      if (bytes > maxBytes)
        throw new OperatorError(`standard input is larger than ${maxBytes} bytes; split it`)
      chunks.push(chunk as Buffer)
    }
    return Buffer.concat(chunks)
  }

  /** Throws an `OperatorError` without a yes, a `UsageError` without a terminal. */
  async confirm(what: string, isGiven: boolean): Promise<void> {
    if (isGiven) return
    if (!this.isInteractive) throw new UsageError('there is no terminal to confirm at; use --yes')
    this.#streams.stderr.write(`${visible(what)} Type yes to go on: `)
    if ((await this.line('')) !== 'yes') throw new OperatorError('cancelled')
  }
}

type ListRow = { readonly [name: string]: unknown }

const NO_ITEM = 'none'

/** A list that reads as one of the words is quoted. */
function named(list: readonly string[], words: readonly (string | undefined)[]): string {
  if (list.length === 0) return NO_ITEM
  const text = list.join(',')
  return words.includes(text.replace(/^"+|"+$/g, '')) ? `"${text}"` : text
}

/** Made again for each time that they are gone through. */
export function made<T>(rows: Iterable<T>, each: (row: T) => object): Iterable<object> {
  return {
    *[Symbol.iterator]() {
      for (const row of rows) yield each(row)
    }
  }
}

function* jsonArray(
  before: string,
  items: Iterable<object>,
  behind: string
): Generator<string, void, void> {
  let between = before
  for (const item of items) {
    yield `${between}${visible(JSON.stringify(item))}`
    between = ','
  }
  yield `${between === before ? before : ''}${behind}\n`
}

/** `room`: columns; 0: unknown. */
function* table(
  items: Iterable<object>,
  room: number,
  words: Words,
  absent: Words = {}
): Generator<string, void, void> {
  const cell = (value: unknown, name: string): string =>
    visible(
      Array.isArray(value)
        ? named(value, [NO_ITEM, absent[name]])
        : String(value ?? absent[name] ?? '-')
    )
  // Columns in the order of the fullest row.
  const kinds = new Map<string, readonly string[]>()
  for (const item of items) {
    const fields = Object.keys(item)
    kinds.set(fields.join(), fields)
  }
  const names = [...new Set([...kinds.values()].sort((a, b) => b.length - a.length).flat())]
  const header = names.map(name => (words[name] ?? name).toUpperCase())
  const wanted = header.map(widthOf)
  for (const item of items)
    for (const [i, name] of names.entries())
      wanted[i] = Math.max(wanted[i]!, widthOf(cell((item as ListRow)[name], name)))
  const widths = fitted(wanted, room - GAP.length * (header.length - 1))
  const line = (row: readonly string[]): string =>
    row
      .map((text, i) => {
        const shown = widthOf(text) <= widths[i]! ? text : `${cut(text, widths[i]! - 1)}…`
        return shown + ' '.repeat(widths[i]! - widthOf(shown))
      })
      .join(GAP)
      .trimEnd()
  yield `${line(header)}\n`
  for (const item of items)
    yield `${line(names.map(name => cell((item as ListRow)[name], name)))}\n`
}

const NARROW = /^[\x20-\u02ff]*$/
/** East Asian letters and emoji (Unicode Standard Annex 11). */
const LETTERS =
  '\\p{sc=Han}\\p{sc=Hangul}\\p{sc=Hiragana}\\p{sc=Katakana}\u3001-\u303e\uff01-\uff60\uffe0-\uffe6'
const WIDE = new RegExp(`^(?:[${LETTERS}]|\\p{Emoji_Presentation}|.\ufe0f)`, 'u')
const WITHOUT_WIDTH = /^\p{M}+$/u

/** Made at the first text that needs it: that takes as long as a tenth of a program's start. */
let segmenter: Intl.Segmenter | undefined

function clustersOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' })
  return segmenter.segment(text)
}

function widthOf(text: string): number {
  if (NARROW.test(text)) return text.length
  let width = 0
  for (const { segment } of clustersOf(text)) width += columnsOf(segment)
  return width
}

function columnsOf(cluster: string): number {
  if (WIDE.test(cluster)) return 2
  return WITHOUT_WIDTH.test(cluster) ? 0 : 1
}

function cut(text: string, width: number): string {
  let [shown, columns] = ['', 0]
  for (const { segment } of clustersOf(text)) {
    columns += columnsOf(segment)
    if (columns > width) break
    shown += segment
  }
  return shown
}

function fitted(wanted: readonly number[], room: number): readonly number[] {
  const widths = wanted.map(width => Math.min(width, Math.max(room, LEAST_COLUMN_CHARACTERS)))
  for (let over = widths.reduce((sum, width) => sum + width, 0) - room; over > 0; over--) {
    const widest = widths.reduce((most, width) => Math.max(most, width), 0)
    if (widest <= LEAST_COLUMN_CHARACTERS) break
    widths[widths.indexOf(widest)] = widest - 1
  }
  return widths
}

/** Without case and accents. */
export function folded(text: string): string {
  return text
    .normalize('NFD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
}

/** Escapes control and format characters as JSON does. */
export function visible(line: string): string {
  if (ASCII.test(line)) return line
  return line.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, character =>
    character
      .split('')
      .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('')
  )
}
