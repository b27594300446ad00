/** What the operator sees and types. Results go to standard output, everything else to standard error. */
import { Buffer } from 'node:buffer'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { showProgress } from '../log.ts'
import { OperatorError, UsageError } from './command.ts'

/** The three standard streams. */
type Streams = Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr'>

/** Prints, asks, and shows progress. */
export class Terminal {
  readonly #streams: Streams
  readonly #asJson: boolean

  constructor(streams: Streams, asJson: boolean) {
    this.#streams = streams
    this.#asJson = asJson
  }

  /**
   * A result: in words, or, where `--json` asks for that, as one line of JSON. Control characters of what others have
   * entered are shown, not obeyed.
   */
  show(data: object, ...lines: readonly string[]): void {
    for (const line of this.#asJson ? [JSON.stringify(data)] : lines) this.#streams.stdout.write(`${visible(line)}\n`)
  }

  /** A list of results: a table with a header, or JSON. */
  list(items: readonly object[]): void {
    const cell = (value: unknown): string => visible(Array.isArray(value) ? value.join(',') : String(value ?? '-'))
    const header = Object.keys(items[0] ?? {}).map(name => name.toUpperCase())
    const rows = items.length === 0 ? [] : [header, ...items.map(item => Object.values(item).map(cell))]
    const widths = rows.reduce<number[]>((all, row) => row.map((text, i) => Math.max(all[i] ?? 0, text.length)), [])
    this.show(items, ...rows.map(row => row.map((text, i) => text.padEnd(widths[i]!)).join('  ').trimEnd()))
  }

  warn(line: string): void { this.#streams.stderr.write(`warning: ${visible(line)}\n`) }

  /** Shows the share that is done, 0 to 1, on a terminal; nothing in a pipe. 1 clears the line. */
  progress(what: string, share: number): void { showProgress(this.#streams.stderr, what, share) }

  /** Whether results go to a terminal, and not to a file or another program. */
  get showsResults(): boolean { return this.#streams.stdout.isTTY }

  /** Writes a text as it is, for a file or a pipe: a terminal would obey its control characters. */
  pass(text: string): void { this.#streams.stdout.write(text) }

  /** Puts a text into the clipboard of the terminal, wherever that runs: OSC 52, which not every one allows. */
  clip(text: string): void {
    const terminal = [this.#streams.stdout, this.#streams.stderr].find(stream => stream.isTTY)
    if (terminal === undefined) throw new UsageError('there is no terminal whose clipboard --clip could use')
    terminal.write(`\x1b]52;c;${Buffer.from(text).toString('base64')}\x07`)
  }

  /** Whether a person can be asked. */
  get isInteractive(): boolean { return this.#streams.stdin.isTTY && this.#streams.stderr.isTTY }

  /** The first line of standard input, or what is typed twice without echo; `fault` says what is wrong with it. */
  async newSecret(
    fromInput: boolean, fault: (secret: string) => string | undefined = () => undefined
  ): Promise<string> {
    const { stdin: input, stderr: error } = this.#streams
    const checked = (secret: string): string => {
      if (secret === '') throw new UsageError('the password is empty')
      const why = fault(secret)
      if (why !== undefined) throw new OperatorError(why)
      return secret
    }
    if (fromInput && !input.isTTY) return checked(await this.#firstLine())
    if (!this.isInteractive) {
      throw new UsageError('there is no terminal to ask for the password at; use --password-stdin')
    }
    // What is typed can be edited, and is shown nowhere.
    const output = new Writable({ write: (_chunk, _encoding, done) => done() })
    const editor = createInterface({ input, output, terminal: true, historySize: 0 })
    const lines = editor.on('SIGINT', () => editor.close())[Symbol.asyncIterator]()
    const hidden = async (prompt: string): Promise<string> => {
      error.write(prompt)
      const { value, done } = await lines.next()
      error.write('\n')
      if (done === true) throw new UsageError('cancelled')
      return value
    }
    try {
      const first = checked(await hidden('password: '))
      if (await hidden('again: ') !== first) throw new UsageError('the two passwords differ')
      return first
    } finally {
      editor.close()
    }
  }

  /** All of standard input. */
  async readInput(maxBytes: number): Promise<Buffer> {
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of this.#streams.stdin) {
      bytes += (chunk as Buffer).length
      if (bytes > maxBytes) throw new OperatorError(`standard input is larger than ${maxBytes} bytes; split it`)
      chunks.push(chunk as Buffer)
    }
    return Buffer.concat(chunks)
  }

  /** Asks for a yes, unless it was given beforehand. */
  async confirm(what: string, isGiven: boolean): Promise<void> {
    if (isGiven) return
    if (!this.isInteractive) throw new UsageError('there is no terminal to confirm at; use --yes')
    this.#streams.stderr.write(`${what} Type yes to go on: `)
    if (await this.#firstLine() !== 'yes') throw new UsageError('cancelled')
  }

  async #firstLine(): Promise<string> {
    let text = ''
    for await (const chunk of this.#streams.stdin.setEncoding('utf8')) {
      text += chunk as string
      if (text.includes('\n')) break
    }
    return text.split('\n')[0]!.replace(/\r$/, '')
  }
}

/** Control characters, and those that turn the direction of writing, as escapes, which JSON reads as well. */
function visible(line: string): string {
  return line.replace(/[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
