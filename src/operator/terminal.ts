/** What the operator sees and types. Results go to standard output, everything else to standard error. */
import { Misuse } from './refusal.ts'

/** The three standard streams, as far as they are needed. */
interface Streams {
  readonly input: NodeJS.ReadStream
  readonly output: NodeJS.WriteStream
  readonly error: NodeJS.WriteStream
}

/** Prints, asks, and shows progress. */
export class Terminal {
  readonly #streams: Streams
  /** What came behind the line that was asked for. */
  #typedAhead = ''

  constructor(streams: Streams) { this.#streams = streams }

  /** A line of the result. Control characters of what others have entered are shown, not obeyed. */
  readonly print = (line: string): void => { this.#streams.output.write(`${visible(line)}\n`) }

  readonly warn = (line: string): void => { this.#streams.error.write(`warning: ${visible(line)}\n`) }

  /** A list: JSON, or a line an item with its values in columns. */
  list(items: readonly object[], asJson: boolean): void {
    if (asJson) { this.#streams.output.write(`${JSON.stringify(items)}\n`); return }
    const cell = (value: unknown): string => Array.isArray(value) ? value.join(',') : String(value ?? '-')
    const rows = items.map(item => Object.values(item).map(cell))
    const widths = rows.reduce<number[]>((all, row) => row.map((cell, i) => Math.max(all[i] ?? 0, cell.length)), [])
    for (const row of rows) this.print(row.map((cell, i) => cell.padEnd(widths[i]!)).join('  ').trimEnd())
  }

  /** Shows how much of some long work is done, 0 to 1, on a terminal; says nothing in a pipe. 1 clears the line. */
  progress(what: string, share: number): void {
    showProgress(this.#streams.error, what, share)
  }

  /** Whether results are shown to somebody, and do not go to a file or another program. */
  get showsResults(): boolean { return this.#streams.output.isTTY }

  /** A result as it is; not for a terminal, which would obey its control characters. */
  pass(text: string): void { this.#streams.output.write(text) }

  /** Whether somebody sits there who can be asked. */
  get isInteractive(): boolean { return this.#streams.input.isTTY && this.#streams.error.isTTY }

  /** Asks for a secret twice, without echo, or takes the first line of standard input, unless that is a terminal. */
  async newSecret(fromInput: boolean): Promise<string> {
    const { input } = this.#streams
    if (fromInput && !input.isTTY) return nonEmpty(await this.#firstLine())
    if (!this.isInteractive) throw new Misuse('there is no terminal to ask for the password at; use --password-stdin')
    input.setEncoding('utf8').setRawMode(true)
    try {
      const first = await this.#hidden('password: ')
      if (await this.#hidden('again: ') !== first) throw new Misuse('the two passwords differ')
      return nonEmpty(first)
    } finally {
      input.setRawMode(false).pause()
    }
  }

  /** Asks for a yes, unless it was given beforehand. */
  async confirm(what: string, isGiven: boolean): Promise<void> {
    if (isGiven) return
    if (!this.isInteractive) throw new Misuse('there is no terminal to confirm at; use --yes')
    this.#streams.error.write(`${what} Type yes to go on: `)
    if (await this.#firstLine() !== 'yes') throw new Misuse('given up')
  }

  async #firstLine(): Promise<string> {
    let text = ''
    for await (const chunk of this.#streams.input.setEncoding('utf8')) {
      text += chunk as string
      if (text.includes('\n')) break
    }
    return text.split('\n')[0]!.replace(/\r$/, '')
  }

  #hidden(prompt: string): Promise<string> {
    const { input, error } = this.#streams
    error.write(prompt)
    return new Promise((resolve, reject) => {
      let text = ''
      const end = (rest: string): void => {
        input.off('data', take)
        this.#typedAhead = rest
        error.write('\n')
      }
      const take = (typed: string): void => {
        for (let i = 0; i < typed.length; i++) {
          const character = typed[i]!
          if (character === '\r' || character === '\n') { end(typed.slice(i + 1)); resolve(text); return }
          if (character === '\x03' || character === '\x04') { end(''); reject(new Misuse('given up')); return }
          text = character === '\x7f' || character === '\b' ? [...text].slice(0, -1).join('') : text + character
        }
      }
      const typed = this.#typedAhead
      this.#typedAhead = ''
      input.on('data', take).resume()
      take(typed)
    })
  }
}

/** Shows how much of some long work is done, 0 to 1, if the stream is a terminal; 1 clears the line. */
export function showProgress(stream: NodeJS.WriteStream, what: string, share: number): void {
  if (stream.isTTY) stream.write(share >= 1 ? '\r\x1b[K' : `\r\x1b[K${what} ${Math.floor(share * 100)} %`)
}

function nonEmpty(text: string): string {
  if (text === '') throw new Misuse('the password is empty')
  return text
}

/** Control characters, and those that turn the direction of writing, as escapes. */
function visible(line: string): string {
  return line.replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
