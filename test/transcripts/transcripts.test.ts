/**
 * Plays sessions with the service, the files beside this one, and compares all that can be seen of each step with what
 * stands below it. `../README.md` says how to read and write them.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import {
  chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, statSync,
  writeFileSync
} from 'node:fs'
import { request, type IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { codeAt, otpIn, stepAt } from '../../src/accounts/totp.ts'
import { openService } from '../../src/embedding/embedded-service.ts'
import { Failure } from '../../src/errors.ts'
import { runProgram } from '../../src/parts/operator/program/program.ts'
import { composeService } from '../../src/service.ts'
import { readSettings } from '../../src/settings.ts'
import { checkState } from '../support/check.ts'
import '../support/hashes.ts'
import { keysOf, verify } from '../support/journal.ts'
import { freshFolder } from '../support/service.ts'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const BEGIN_MS = Date.UTC(2026, 2, 2, 8)
/** Seconds between steps: two spans of time are hardly ever equal. */
const PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97]
const UNITS: { readonly [unit: string]: number } = { ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 }

/** Of every answer: it is named if it is absent or another. */
const USUAL: { readonly [name: string]: string | undefined } = {
  'cache-control': 'no-store', 'content-type': 'application/json; charset=utf-8', 'x-content-type-options': 'nosniff'
}
/** Of Node, or of nobody; or named in another place. */
const UNTOLD = ['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding', 'x-request-id']

/** What differs from run to run; equal values get equal names, in the order in which they appear. */
const VALUES: readonly (readonly [kind: string, pattern: string])[] = [
  ['uuid', '\\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\\b'],
  ['token', 'pes_[\\w-]{43}'],
  ['password hash', '\\$scrypt\\$[\\w$=,+/-]+'],
  ['hash', '\\b[0-9a-f]{64}\\b'],
  ['etag', '(?<=etag: )"[^"]+"'],
  ['id', '\\b(?=[0-9]*[a-f])[0-9a-f]{12}\\b|\\b[0-9]{12}\\b'],
  ['key', '(?<!max-age=|at most |"step":)\\b[0-9a-f]{8}\\b'],
  ['first password', '(?<=@example\\.org,)[!-~]{20}(?=\\r?$)'],
  ['secret', '\\b[A-Z2-7]{32}\\b']
]
/** Metrics that say how long something took, or whether a connection of an earlier step is closed already. */
const UNCOUNTED = /_(bucket|sum)\b|_info|_connections/
/** What says nothing that holds, or depends on where the folder is. */
const DURATIONS: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\b((?:\d+\.){3}\d+):\d+/g, '$1:<port>'], [/"(readMs|pid)":[\d.]+/g, '"$1":<some>'],
  [/\bprocess \d+/g, 'process <pid>'], [/\b(takes about|in) [\d.]+ s\b/g, '$1 <some> s'],
  [/\b([A-Z2-7]{4} ){7}[A-Z2-7]{4}\b/g, '<secret in fours>'],
  // Of a journal, which may hold the path of the folder.
  [/\d+( bytes, head)/g, '<some>$1'], [/("head":"[^"]*","bytes":)\d+/g, '$1<some>']
]

/** `new Date()`, `Date.now()` and `performance.now()` are the time of the step. */
class Clock {
  ms: number = BEGIN_MS
  step: number | undefined
  #steps = 0
  constructor(t: TestContext) {
    const clock = this
    const real = globalThis.Date
    const now = performance.now
    globalThis.Date = class extends real {
      constructor(...given: readonly unknown[]) { super(...(given.length === 0 ? [clock.ms] : given) as [number]) }
      static override now(): number { return clock.ms }
    } as DateConstructor
    performance.now = () => clock.ms
    t.after(() => {
      globalThis.Date = real
      performance.now = now
    })
  }
  tick(): void { this.ms += this.step ?? 1000 * PRIMES[this.#steps++ % PRIMES.length]! }
}

class Kept extends Writable {
  text = ''
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}

interface Running {
  readonly url: string
  readonly host?: any
  close(): Promise<void>
}

class Session {
  readonly #clock: Clock
  readonly #work: string
  readonly #names = new Map<string, string>()
  readonly #counts = new Map<string, number>()
  readonly #tokens = new Map<string, string>()
  readonly #said: string[] = []
  #running: Running | undefined
  #isLogging = false
  #metrics = new Map<string, string>()
  #hostKeys: readonly string[] = []

  constructor(t: TestContext) {
    this.#clock = new Clock(t)
    this.#work = realpathSync(freshFolder(t))
    const before = process.cwd()
    process.chdir(this.#work)
    t.after(async () => {
      process.chdir(before)
      await this.#running?.close()
    })
  }

  /** What a step says, and its lines of input stand below it with a plus. */
  async play(step: string, input: readonly string[]): Promise<readonly string[]> {
    this.#clock.tick()
    const said: string[] = []
    const text = this.#given(step)
    const given = input.map(line => this.#given(line))
    try {
      said.push(...await this.#act(text, given))
    } catch (error) {
      const { code = 'error', message } = error as Failure
      said.push(`failure: ${code}: ${message}`)
    }
    said.push(...this.#said.splice(0), ...this.#records())
    return said.flatMap(line => line.split('\n')).map(line => this.#named(line))
  }

  async #act(step: string, input: readonly string[]): Promise<readonly string[]> {
    const [, who, asked] = /^(\S*|<[^>]+>)> (.*)$/.exec(step) ?? []
    if (who === 'host') return this.#host(asked!)
    if (asked !== undefined) return this.#request(who!, asked, input)
    const [verb, ...words] = wordsOf(step)
    const path = (at: number): string => join(this.#work, words[at]!)
    if (verb === '$') return this.#command(words, input)
    if (verb === 'start') return this.#start(words)
    if (verb === 'embed') return this.#embed(JSON.parse(step.slice(6) || '{}'))
    if (verb === 'stop') { await this.#stop(); return [] }
    if (verb === 'later') { this.#clock.ms += Number(words[0]) * UNITS[words[1]!]!; return [] }
    if (verb === 'steps') { this.#clock.step = Number(words[0]) * UNITS[words[1]!]!; return [] }
    if (verb === 'write') writeFileSync(path(0), input.map(line => `${line}\n`).join(''))
    else if (verb === 'copy') copyFileSync(path(0), path(1))
    else if (verb === 'remove') rmSync(path(0), { recursive: true })
    else if (verb === 'folder') mkdirSync(path(0), { recursive: true })
    else if (verb === 'mode') chmodSync(path(1), Number.parseInt(words[0]!, 8))
    else if (verb === 'flip') flip(path(0), Number(words[1]))
    else if (verb === 'cut') { const bytes = readFileSync(path(0)); writeFileSync(path(0),
      bytes.subarray(0, -Number(words[1]))) }
    else if (verb === 'show') return readFileSync(path(0), 'utf8').trimEnd().split('\n')
    else if (verb === 'files') return this.#files()
    else throw new Error(`there is no such step: ${step}`)
    return []
  }

  async #request(who: string, asked: string, input: readonly string[]): Promise<readonly string[]> {
    const [, method, path, body] = /^(\S+) (\S+)(?: (.*))?$/.exec(asked)!
    const token = this.#tokens.get(who) ?? (who.startsWith('pes_') ? who : undefined)
    const headers: { [name: string]: string } = {
      ...token !== undefined && { Authorization: `Bearer ${token}` },
      ...body !== undefined && { 'Content-Type': 'application/json' },
      ...Object.fromEntries(input.map(line => /^([^:]+): ?(.*)$/.exec(line)!.slice(1)))
    }
    const { status, head, text } = await this.#ask(method!, path!, headers, body)
    if (text.includes('"token":"pes_') && who !== '') this.#tokens.set(who, JSON.parse(text).token)
    await this.#logged()
    const isMetrics = head['content-type']?.startsWith('text/plain; version') === true
    const shown = isMetrics ? this.#changed(text) : text.split('\n')
    const told = Object.entries(head).filter(([name, value]) => !UNTOLD.includes(name) && USUAL[name] !== value)
    const absent = text === '' ? [] : Object.keys(USUAL).filter(name => head[name] === undefined)
    return [String(status), ...told.flatMap(([name, value]) => [value].flat().map(one => `${name}: ${one}`)),
      ...absent.map(name => `without ${name}`), ...text === '' ? [] : shown]
  }

  #ask(method: string, path: string, headers: { [name: string]: string }, body: string | undefined):
    Promise<{ status: number, head: IncomingHttpHeaders, text: string }> {
    return new Promise((resolve, reject) => {
      const url = this.#now().url.replace('0.0.0.0', '127.0.0.1')
      request(`${url}${path}`, { method, headers, agent: false }, response => {
        let text = ''
        response.setEncoding('utf8').on('data', some => { text += some })
        response.on('end', () => resolve({ status: response.statusCode!, head: response.headers, text }))
      }).on('error', reject).end(body)
    })
  }

  /** Of metrics: what counts, as far as it has changed since the last look. */
  #changed(text: string): string[] {
    const lines = text.split('\n').filter(line => line.startsWith('pes_') && !UNCOUNTED.test(line))
    const now = new Map(lines.map(line => [line.slice(0, line.lastIndexOf(' ')), line]))
    const changed = [...now].filter(([name, line]) => this.#metrics.get(name) !== line).map(([, line]) => line)
    this.#metrics = now
    return changed
  }

  async #command(words: readonly string[], input: readonly string[]): Promise<readonly string[]> {
    const variables = words.filter(word => /^[A-Z_]+=/.test(word)).map(word => /^([^=]+)=(.*)$/.exec(word)!.slice(1))
    const args = words.slice(variables.length)
    const streams = {
      stdin: new PassThrough(), stdout: new Kept(), stderr: new Kept()
    }
    void this.#type(streams.stdin, input, streams.stderr)
    const env = process.env
    const before = new Map(Object.keys(streams).map(name => [name, Object.getOwnPropertyDescriptor(process, name)!]))
    for (const [name, value] of Object.entries(streams)) {
      Object.defineProperty(process, name, { value, configurable: true })
    }
    process.env = { DATA_DIR: join(this.#work, 'data'), USER: 'olga', ...Object.fromEntries(variables) }
    try {
      const code = await runProgram(args)
      const lines = (text: string, mark: string): string[] =>
        text === '' ? [] : text.replace(/\n$/, '').split('\n').map(line => `${mark}${line}`)
      return [...code === 0 ? [] : [`exit ${code}`], ...lines(streams.stdout.text, ''),
        ...lines(streams.stderr.text, 'stderr: ')]
    } finally {
      for (const [name, property] of before) Object.defineProperty(process, name, property)
      process.env = env
    }
  }

  /** `(code shown)` is the code of the secret that the command has just shown. */
  async #type(stdin: PassThrough, input: readonly string[], shown: Kept): Promise<void> {
    for (const line of input) {
      while (line === '(code shown)' && !/secret=\w+/.test(shown.text)) await setImmediate()
      stdin.write(`${line.replace('(code shown)', () => codeOf(/secret=(\w+)/.exec(shown.text)![1]!))}\n`)
    }
    stdin.end()
  }

  /** Until the line of this request is there, if lines are written. */
  async #logged(): Promise<void> {
    const isThere = (): boolean => this.#said.some(line => line.startsWith('access: {"client'))
    for (let turns = 0; this.#isLogging && turns < 1000 && !isThere(); turns++) await setImmediate()
  }

  #log(): any {
    this.#isLogging = false
    const access = { pendingBytes: () => 0, write: (line: string) => {
      const { time, request, ms, ...rest } = JSON.parse(line)
      this.#isLogging = true
      assert.equal(time, new Date().toISOString())
      this.#said.push(`access: ${JSON.stringify(rest)}`)
    } }
    return { info: (line: string) => this.#said.push(`info: ${line}`),
      warn: (line: string) => this.#said.push(`warning: ${line}`), access }
  }

  async #start(words: readonly string[]): Promise<readonly string[]> {
    const env = Object.fromEntries(words.map(word => /^([^=]+)=(.*)$/.exec(word)!.slice(1)))
    const defaults = { PORT: '0', PAGE: 'off', ACCESS_LOG: 'on', RATE_LIMIT: '0', DATA_DIR: join(this.#work, 'data') }
    const service = await composeService(readSettings([], { ...defaults, ...env }), this.#log())
    const url = await service.listen().catch(async error => { await service.close(); throw error })
    this.#running = { url, close: async () => {
      checkState(service.store.state)
      await service.close()
    } }
    this.#metrics.clear()
    return []
  }

  async #embed({ key, ...options }: any): Promise<readonly string[]> {
    const keys = key === undefined ? {} : { key: [key].flat().map((hex: string) => Buffer.from(hex, 'hex')) }
    this.#hostKeys = [key ?? []].flat()
    const host = await openService({ port: 0, page: false, accessLog: true, rateLimit: 0, log: this.#log(),
      dataDir: join(this.#work, 'data'), ...keys, ...options })
    const url = await host.listen().catch(async error => { await host.close(); throw error })
    this.#running = { url, host, close: () => host.close() }
    return []
  }

  async #stop(): Promise<void> {
    const running = this.#now()
    this.#running = undefined
    await running.close()
  }

  #now(): Running {
    if (this.#running === undefined) throw new Error('nothing runs')
    return this.#running
  }

  /** `host> updatePassword [1, {"sistema":"a"}]`, as an embedder calls it. */
  async #host(asked: string): Promise<readonly string[]> {
    const [, name, args] = /^(\S+) ?(.*)$/.exec(asked)!
    const { host } = this.#now()
    const [on, called] = name!.startsWith('accounts.') ? [host.accounts, name!.slice(9)] : [host, name!]
    const value = await on[called](...JSON.parse(args || '[]'))
    return [value === undefined ? 'undefined' : JSON.stringify(value)]
  }

  /** The records that the file has got since; all, where it is another one. */
  #known: readonly string[] = []
  #records(): readonly string[] {
    const folder = join(this.#work, 'data')
    const path = join(folder, 'journal.jsonl')
    if (!existsSync(path)) {
      const wasThere = this.#known.length > 0
      this.#known = []
      return wasThere ? ['journal: gone'] : []
    }
    const bytes = readFileSync(path)
    const lines = bytes.toString('latin1').split('\n')
    const same = lines.findIndex((line, i) => line !== this.#known[i])
    const [known, wasMore] = [same < 0 ? lines.length : same, this.#known.length > lines.length]
    const isOther = known < this.#known.length - 1
    if (same < 0 && !wasMore) return []
    this.#known = lines
    try {
      const all = verify(bytes, existsSync(join(folder, 'journal.key')) ? keysOf(folder) : this.#hostKeys)
      const now = new Date().toISOString()
      const shown = all.slice(isOther ? 0 : known)
      return [...isOther ? ['journal: another one'] : [], ...shown.map(({ seq, time, type, by, data }) =>
        [`journal: ${seq}`, ...time === now ? [] : [time], type, ...by === null ? [] : [`by ${by}`],
          JSON.stringify(data)].join(' '))]
    } catch (error) {
      return [`journal: cannot be read: ${(error as Error).message.split('\n')[0]}`]
    }
  }

  #files(): readonly string[] {
    return readdirSync(this.#work, { recursive: true }).map(String).sort().filter(name =>
      !name.endsWith('.sock') && statSync(name).isFile()).map(name =>
      `${name} ${(statSync(name).mode & 0o777).toString(8)}`)
  }

  /** A name in a step stands for its value; `(code SECRET)` for its one-time code of this moment. */
  #given(text: string): string {
    return text.replace(/<[^<>]+ \d+>/g, name => [...this.#names].find(([, known]) => known === name)?.[0] ?? name)
      .replace(/\(code ([A-Z2-7]+)\)/g, (_, secret) => codeOf(secret))
  }

  #named(line: string): string {
    let text = line.replaceAll(this.#work, '<work>').replaceAll(`node ${process.argv[1]}`, 'admin')
    for (const [pattern, name] of DURATIONS) text = text.replace(pattern, name)
    const all = new RegExp(VALUES.map(([, pattern]) => `(${pattern})`).join('|'), 'g')
    return text.replace(all, (value, ...groups) => {
      const kind = VALUES[groups.findIndex(group => group !== undefined)]![0]
      const known = this.#names.get(value)
      if (known !== undefined) return known
      const number = (this.#counts.get(kind) ?? 0) + 1
      this.#counts.set(kind, number)
      this.#names.set(value, `<${kind} ${number}>`)
      if (kind === 'token') {
        const hash = createHash('sha256').update(value).digest('hex')
        this.#names.set(hash, `<hash of token ${number}>`)
        this.#names.set(hash.slice(0, 12), `<id of token ${number}>`)
      }
      return this.#names.get(value)!
    })
  }
}

function codeOf(secret: string): string {
  const otp = otpIn(secret)!
  return codeAt(otp, stepAt(otp, Date.now()))
}

/** A word with blanks stands in double quotes, or has them in it: `--name="Ana B"`. */
function wordsOf(step: string): string[] {
  return [...step.matchAll(/(?:[^\s"]|"[^"]*")+/g)].map(([word]) => word.replaceAll('"', ''))
}

/** Exchanges a letter in the middle of a line, counted from 1. */
function flip(path: string, line: number): void {
  const lines = readFileSync(path, 'latin1').split('\n')
  const text = lines[line - 1]!
  const at = text.lastIndexOf('"sealed":"') + 40
  lines[line - 1] = text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)
  writeFileSync(path, lines.join('\n'), 'latin1')
}

/** Plays the steps of a text; what stands below them is made anew. */
async function played(t: TestContext, text: string): Promise<string> {
  const session = new Session(t)
  const lines = text.split('\n').filter(line => !line.startsWith('    '))
  const made: string[] = []
  for (let i = 0; i < lines.length; i++) {
    const step = lines[i]!
    made.push(step)
    if (step === '' || step.startsWith('# ')) continue
    const input: string[] = []
    for (; lines[i + 1]?.startsWith('+'); i++) {
      made.push(lines[i + 1]!)
      input.push(lines[i + 1]!.replace(/^\+ ?/, ''))
    }
    made.push(...(await session.play(step, input)).map(line => `    ${line}`.trimEnd().padEnd(5)))
  }
  return made.join('\n')
}

/** Where two texts begin to differ. */
function difference(name: string, is: string, wanted: string): string {
  const [lines, known] = [is.split('\n'), wanted.split('\n')]
  const at = known.findIndex((line, i) => line !== lines[i])
  const from = at < 0 ? known.length : at
  return [`${name}:${from + 1} says another thing (UPDATE=1 writes what it says):`,
    ...known.slice(Math.max(0, from - 6), from).map(line => `  ${line}`),
    ...known.slice(from, from + 4).map(line => `- ${line}`), ...lines.slice(from, from + 8).map(line => `+ ${line}`)
  ].join('\n')
}

for (const name of readdirSync(FOLDER).filter(file => file.endsWith('.txt')).sort()) {
  const path = join(FOLDER, name)
  const text = readFileSync(path, 'utf8')
  test(text.slice(2, text.indexOf('\n')), async t => {
    const is = await played(t, text)
    if (process.env['UPDATE'] === '1') writeFileSync(path, is)
    else assert.equal(is === text, true, difference(name, is, text))
  })
}
