/** The built program under the model: its processes, its folder, and what is asked of them. */
import { fork, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { HELD, hold, isReached, letGo } from '../support/slow-disk.ts'
import { NO_PYTHON, PYTHON } from '../support/programs.ts'
import { adoptChanged, adoptCreated, Defect, emptyState, groupsOf, isSeen, listed, plain, shown, type Entry, type State,
  type Token, type Unanswered } from './state.ts'

const HERE = fileURLToPath(new URL('.', import.meta.url))
export const PROGRAM: string = process.env['PROGRAM'] ?? fileURLToPath(new URL('../..', import.meta.url))
const VERIFIER: string = join(PROGRAM, 'test', 'verify.py')
/** A client that waits no longer. What a change waits for is bounded by a few seconds. */
const PATIENCE_MS = 12_000
/** No step takes that long on the slowest machine. */
const WAIT_MS = 60_000
export const PASSWORD = 'correct horse battery staple'

export interface Config { readonly production: boolean, readonly auth: boolean }

export interface Answer { readonly status: number, readonly json: any, readonly retryAfter: string | undefined }
export interface Done { readonly code: number | null, readonly out: string, readonly error: string }

/** An operator's command in a process of its own that is held half-way. */
export interface Pending {
  readonly words: string
  readonly child: ChildProcess
  readonly ended: Promise<Done>
  /** What the journal says if it succeeds; undefined: what it says now. */
  readonly becomes: State | undefined
  /** How many changes were acknowledged when it began. */
  readonly changes: number
  readonly inService: boolean
}

interface Server { readonly child: ChildProcess, readonly url: URL, readonly agent: Agent,
  readonly ended: Promise<unknown> }

export class World {
  readonly home: string = mkdtempSync(join(tmpdir(), 'pes-model-'))
  readonly data: string = join(this.home, 'data')
  readonly journal: string = join(this.data, 'journal.jsonl')
  readonly keyFile: string = join(this.data, 'journal.key')
  readonly hold: string = join(this.home, 'hold')
  readonly config: Config
  /** What the journal in the folder must say. */
  state: State = emptyState()
  /** Copies of a journal from earlier moments, with what they must say, and of the key file. */
  readonly saved: { readonly bytes: Buffer, readonly state: State, readonly rewrittenBytes: number }[] = []
  readonly savedKeys: Buffer[] = []
  readonly backups: { readonly path: string, readonly state: State }[] = []
  unanswered: Unanswered[] = []
  /** Every line that was ever seen in the key file, the oldest first. */
  readonly keyLines: Set<string> = new Set()
  /** The name of the key that the running service seals with. */
  sealsWith: string | undefined
  /** How much of the journal a rewriting put there: without all of it, it is damaged. */
  rewrittenBytes: number = 0
  changes: number = 0
  /** Whether a service runs on a folder where another process has since changed something. */
  isSplit: boolean = false
  isSocketGone: boolean = false
  /** Whether `init` was run for a journal that is not there, or says nothing. */
  isBegun: boolean = true
  server: Server | undefined
  pending: Pending | undefined
  #host: ChildProcess | undefined
  #names: number = 0

  constructor(config: Config) {
    this.config = config
    mkdirSync(this.hold)
  }

  unique(): string {
    const name = String(++this.#names)
    return `value-${name}-${createHash('sha256').update(name).digest('hex').slice(0, 12)}`
  }

  /** Runs a command of the operator's program in a process that serves many. */
  async admin(words: string, input = ''): Promise<Done> {
    this.#host ??= fork(join(HERE, '../support/admin-host.js'),
      { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], execArgv: [], env: { PROGRAM } })
    const host = this.#host
    if (!host.channel) throw new Error('the host of commands is gone')
    const answered = once(host, 'message', { signal: AbortSignal.timeout(WAIT_MS) })
    if (!this.#isHostReady) { await answered; this.#isHostReady = true; return this.admin(words, input) }
    host.send({ words: words.split(' '), input, env: { DATA_DIR: this.data, KEY_FILE: this.keyFile } })
    const [done] = await answered.catch(() => { throw new Defect(`a command does not end: ${words}`) }) as [Done]
    return this.#judged(words, done)
  }

  #isHostReady = false

  #judged(words: string, done: Done): Done {
    const { code, out, error } = done
    const isExplained = code === 0 ||
      /^((warning: |journal \/|the service has not)[^\n]+\n)*(error: |\{"error":")[^\n]{10,}\n$/.test(error)
    if (!isExplained || (code !== 0 &&
      out !== '')) throw new Defect(`a refusal does not say why: ${words}: ${code} ${out} ${error}`)
    return done
  }

  async done(words: string, input?: string): Promise<any> {
    const { code, out, error } = await this.admin(`${words} --json`, input)
    if (code !== 0) throw new Defect(`a command fails: ${words.replace(/\d+/g, 'N').replaceAll(this.home,
      '')}: ${error}`)
    return out === '' ? undefined : JSON.parse(out.split('\n')[0]!)
  }

  /** Starts a command in a process of its own, and waits until it is held, or over. */
  async begin(words: string, on: 'rewrite' | 'read', file: string, becomes?: State): Promise<void> {
    hold(this.hold, on, file)
    const inService = this.server !== undefined && !this.isSocketGone
    const env = { DATA_DIR: this.data, KEY_FILE: this.keyFile, HOLD: this.hold }
    const child = spawn(process.execPath, ['--import', HELD, join(PROGRAM, 'dist/admin.js'), ...words.split(' ')],
      { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let [out, error] = ['', '']
    child.stdout.setEncoding('utf8').on('data', text => { out += text })
    child.stderr.setEncoding('utf8').on('data', text => { error += text })
    let isOver = false
    const ended = once(child, 'close').then(([code]) => { isOver = true; return { code, out, error } })
    this.pending = { words, child, ended, becomes, changes: this.changes, inService }
    await this.#until(() => isOver || isReached(this.hold), words)
  }

  /** Lets the command that is held go on to its end, and judges it. */
  async release(): Promise<void> {
    const { pending } = this
    if (pending === undefined) return
    letGo(this.hold)
    const late = pause(WAIT_MS, undefined,
      { ref: false }).then(() => { throw new Defect(`a command does not end: ${pending.words}`) })
    const done = this.#judged(pending.words, await Promise.race([pending.ended, late]))
    this.pending = undefined
    if (done.code !== 0) return
    this.noteOperator(pending.inService)
    if (pending.becomes === undefined) return this.rewritten()
    if (this.changes > pending.changes) throw new Defect('a restore took the place of a journal with acknowledged ' +
      'changes')
    this.state = pending.becomes
    this.rewrittenBytes = statSync(this.journal).size
  }

  async killPending(): Promise<void> {
    this.pending?.child.kill('SIGKILL')
    await this.pending?.ended
    this.pending = undefined
    letGo(this.hold)
  }

  rewritten(isRotation = false): void {
    this.noteKeys()
    if (isRotation) this.noteSealing()
    else this.rewrittenBytes = this.unanswered.length > 0 ? 0 : statSync(this.journal).size
    const lacking = this.lackingKeys()
    if (lacking.length > 0) {
      throw new Defect(`the key file lacks keys of the journal after a rotation or rewriting with success: ${lacking}`)
    }
  }

  /** After a command that changed the journal: whether a running service knows of it. */
  noteOperator(inService = this.server !== undefined && !this.isSocketGone): void {
    if (this.server !== undefined && !inService) this.isSplit = true
  }

  /** What the service seals with is the file's newest key at its start, and after a rotation. */
  noteSealing(): void { this.sealsWith = keyNames(this.keyFile).at(-1) }

  noteKeys(): void {
    if (existsSync(this.keyFile)) for (const line of readFileSync(this.keyFile,
      'utf8').trim().split('\n')) this.keyLines.add(line)
  }

  /** The keys that the key file does not have, and by which lines of the journal are sealed, or are about to be. */
  lackingKeys(): string[] {
    if (!existsSync(this.journal)) return []
    const used = new Set(readFileSync(this.journal, 'latin1').match(/(?<="key":")[0-9a-f]{8}/g))
    if (this.server !== undefined && this.sealsWith !== undefined) used.add(this.sealsWith)
    for (const name of keyNames(this.keyFile)) used.delete(name)
    return [...used]
  }

  /** Files of which one may hold the newest state: no journal is begun beside them. */
  statesLeft(): string[] {
    return readdirSync(this.data).filter(name =>
      /^(archive-\d+-\d+|journal\.rescued-.*)\.jsonl$/.test(name)).map(name => join(this.data, name))
  }

  isMissing(): boolean { return !existsSync(this.journal) || statSync(this.journal).size === 0 }

  /** Starts the service; gives false where it was refused, and might be. */
  async start(): Promise<boolean> {
    this.noteKeys()
    const { production, auth } = this.config
    const isNew = this.isMissing()
    // A key beside no journal says that something was stored there.
    const isKeyLeft = isNew && dirname(this.keyFile) === this.data && existsSync(this.keyFile)
    const mustNot = isNew && !this.isBegun && (production || isKeyLeft)
    const may = this.pending !== undefined || (production && isNew) || isKeyLeft ||
      (isNew && this.statesLeft().length > 0) || this.lackingKeys().length > 0 || this.isSocketGone
    const args = ['--import', HELD, join(PROGRAM, 'dist/server.js'), '--port=0', '--rate-limit=0', '--login-limit=0',
      `--data=${this.data}`, `--key-file=${this.keyFile}`, '--extra-routes=on', '--page=off',
      ...auth ? ['--auth=bearer'] : [], '--trust-proxy=127.0.0.1']
    const env = { HOLD: this.hold, ...production && { NODE_ENV: 'production', AUTH: 'none' } }
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let [out, error, isOver] = ['', '', false]
    child.stdout.setEncoding('utf8').on('data', text => { out += text })
    child.stderr.setEncoding('utf8').on('data', text => { error += text })
    const ended = once(child, 'close').then(([code]) => { isOver = true; return code })
    await this.#until(() => isOver || /^ready$/m.test(out), 'start')
    if (isOver) {
      if (!/^error: [^\n]{10,}\n$/m.test(error)) throw new Defect(`a refusal does not say why: start: ${error}`)
      if (may) return false
      throw new Defect(`a start is refused: ${error.replaceAll(this.home, '')}`)
    }
    const url = new URL(/^address +(\S+)$/m.exec(out)![1]!)
    this.server = { child, url, ended, agent: new Agent({ keepAlive: true }) }
    this.noteSealing()
    this.isSocketGone = this.isSplit = false
    if (mustNot) throw new Defect('a service starts on a journal that is gone, as on an empty one')
    if (isNew) this.state = emptyState()
    return true
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const { server } = this
    if (server === undefined) return
    server.child.kill(signal)
    const timer = setTimeout(() => letGo(this.hold), 200) // what is held would hold up the stop
    const late = pause(WAIT_MS, 'late', { ref: false })
    if (await Promise.race([server.ended, late]) === 'late') throw new Defect(`no end after ${signal}`)
    clearTimeout(timer)
    server.agent.destroy()
    this.server = undefined
    if (this.pending?.inService) await this.release()
    this.isSocketGone = false
  }

  /** Sends a request; undefined where the connection was cut, which it may be when the service is killed. */
  async ask(method: string, path: string, body?: object, token?: string): Promise<Answer | undefined> {
    const { url, agent } = this.server!
    const headers = {
      'X-Forwarded-For': '192.0.2.1', 'X-Forwarded-Proto': 'https', ...body && { 'Content-Type': 'application/json' },
      ...token !== undefined && { Authorization: `Bearer ${token}` }
    }
    return new Promise((resolve, reject) => {
      const sent = request({ host: url.hostname, port: url.port, agent, method, path, headers }, response => {
        let text = ''
        response.setEncoding('utf8').on('data', piece => { text += piece })
        response.on('error', () => resolve(undefined))
        response.on('end', () => {
          clearTimeout(timer)
          const json = parsed(text)
          if (json === undefined) return reject(new Defect(`an answer is no JSON: ${method} ${path}: ${text}`))
          const answer = { status: response.statusCode!, json, retryAfter: response.headers['retry-after'] }
          if (answer.status >= 400 &&
            !answer.json.message) reject(new Defect(`a refusal does not say why: ${method} ${path}: ${text}`))
          resolve(answer)
        })
      })
      const timer = setTimeout(() => {
        reject(new Defect(`a request has no answer for ${PATIENCE_MS / 1000} s: ${method} ${path.replace(/\d+/, 'N')}`))
        sent.destroy()
      }, PATIENCE_MS)
      sent.on('error', () => { clearTimeout(timer); resolve(undefined) })
      sent.end(body && JSON.stringify(body))
    })
  }

  mayRefuse(): boolean {
    return this.pending !== undefined || this.isSplit || this.isSocketGone || this.lackingKeys().length > 0 ||
      this.isMissing()
  }

  /** A live token that may change everything; undefined in the open configuration. */
  async owner(): Promise<string | undefined> {
    if (!this.config.auth) return undefined
    const known = this.state.tokens.find(isOwner(this.state))
    if (known !== undefined) return known.token
    if (this.isSocketGone) return undefined // a token of another process would not be known
    if (!this.state.users.has('ana@example.org')) await this.addUser('ana@example.org', true)
    return this.issue('ana@example.org', true)
  }

  async addUser(email: string, mayChange: boolean): Promise<void> {
    await this.done(`user add ${email} --password-stdin${mayChange ? '' : ' --abilities password:read'}`,
      `${PASSWORD}\n`)
    this.state.users.set(email, mayChange)
    this.state.groups.delete(email)
    this.acknowledged()
  }

  async issue(email: string, mayChange: boolean, groups?: readonly string[]): Promise<string> {
    const flags = `${mayChange ? '' : ' --abilities password:read'}${groups === undefined ? '' : ` --groups=${groups}`}`
    const { token } = await this.done(`token issue ${email}${flags}`)
    this.state.tokens.push({ token, email, mayChange: mayChange && this.state.users.get(email)!, isLive: true, groups })
    this.acknowledged()
    return token
  }

  acknowledged(): void {
    this.changes++
    this.isBegun = false // what is gone now was something
  }

  async check(): Promise<void> {
    if (this.server === undefined || this.isSplit || (this.pending !== undefined && this.unanswered.length > 0)) return
    if (this.isSocketGone && this.config.auth && !this.state.tokens.some(isOwner(this.state))) return
    const token = await this.owner()
    const { state, unanswered } = this
    const get = async (path: string): Promise<Answer> => {
      const answer = await this.ask('GET', path, undefined, token)
      if (answer === undefined) throw new Defect(`the service is gone: ${path}`)
      return answer
    }
    const one = async (id: number): Promise<Entry | undefined> => {
      const { status, json } = await get(`/api/getPassword/${id}`)
      if (status === 404) return undefined
      if (status !== 200) throw new Defect(`a get is answered ${status}: ${id}`)
      return plain(json.passwords)
    }
    for (const id of new Set(unanswered.map(({ id }) => id).filter(id => id > 0 && state.entries[id - 1]))) {
      const found = await one(id)
      if (found === undefined) throw new Defect(`an acknowledged entry is gone: ${id}`)
      adoptChanged(state, unanswered, id, found)
    }
    for (let found = await one(state.entries.length + 1); found !== undefined; found = await one(state.entries.length +
      1)) {
      adoptCreated(state, unanswered, found)
    }
    if (this.pending === undefined) this.unanswered = []
    const { status, json } = await get('/api/listPassword')
    const served = status === 404 ? [] : json
    const [found, right] = [served, listed(state)].map(one => JSON.stringify(one))
    if (found !== right) {
      throw new Defect(`the list is another: ${served.length} entries, not ${listed(state).length}\n${found}\n${right}`)
    }
    for (const [at, entry] of state.entries.entries()) {
      if (entry?.status === 1) continue
      const found = await one(at + 1)
      const is = found && { id: at + 1, ...found }
      if (JSON.stringify(is) !== JSON.stringify(shown(state, at + 1))) throw new Defect(`an entry is another one: ${at +
        1}: ${JSON.stringify(is)}`)
    }
    if (!this.config.auth) return
    for (const known of state.tokens.slice(-3)) {
      const { token, isLive } = known
      const { status, json } = (await this.ask('GET', '/api/listPassword', undefined, token))!
      if ((status === 401) === isLive) throw new Defect(`a ${isLive ? 'live' : 'dead'} token is answered ${status}`)
      if (!isLive) continue
      const groups = groupsOf(state, known)
      const seen = status === 404 ? [] : json
      if (JSON.stringify(seen) !== JSON.stringify(listed(state,
        groups))) throw new Defect(`the list of ${groups} is another one: ${JSON.stringify(seen)}`)
      if (groups === undefined) continue
      for (const [at, entry] of state.entries.entries()) {
        const { status } = (await this.ask('GET', `/api/getPassword/${at + 1}`, undefined, token))!
        const wanted = entry !== null && isSeen(groups, entry) ? 200 : 404
        if (status !== wanted) throw new Defect(`entry ${at + 1} of ${entry?.grupo} is answered ${status} to ${groups}`)
      }
    }
  }

  /** What `journal verify` and `verify.py` say of a journal: its records and head, or undefined where it is damaged. */
  async verified(path: string = this.journal, isWhole = true): Promise<string | undefined> {
    const { code, out, error } = await this.admin(`journal verify ${path} --json`)
    const other = NO_PYTHON === false ? spawnSync(PYTHON, [VERIFIER, path, '--key', this.keyFile],
      { encoding: 'utf8' }) : undefined
    const { status = code, stdout = undefined } = other ?? {}
    if ((code === 0) !== (status === 0)) {
      throw new Defect(`verify and verify.py differ: ${code} ${error} ${status} ${stdout}`)
    }
    if (code !== 0) {
      if (isWhole) throw new Defect(`a journal does not verify: ${error.replaceAll(this.home, '')}`)
      return undefined
    }
    const { records, head, tornBytes, entries, active } = JSON.parse(out)
    if (stdout?.startsWith(`${records} records, head ${head}`) === false) {
      throw new Defect(`verify.py says ${stdout}, verify ${out}`)
    }
    if (isWhole && tornBytes === 0 && this.unanswered.length === 0 && path === this.journal &&
      (active !== listed(this.state).length ||
      entries !== this.state.entries.filter(entry =>
        entry !== null).length)) throw new Defect(`verify counts ${entries} entries, ${active} active`)
    return String(head)
  }

  async close(): Promise<void> {
    for (const child of [this.server?.child, this.pending?.child, this.#host]) child?.kill('SIGKILL')
    this.server?.agent.destroy()
    await this.server?.ended
    await this.pending?.ended
    rmSync(this.home, { recursive: true, force: true })
  }

  async #until(holds: () => boolean, what: string): Promise<void> {
    for (const endMs = performance.now() + WAIT_MS; !holds(); await pause(5)) {
      if (performance.now() > endMs) throw new Defect(`no end of ${what}`)
    }
  }
}

/** May do everything. */
function isOwner(state: State): (token: Token) => boolean {
  return token => token.isLive && token.mayChange && groupsOf(state, token) === undefined
}

function parsed(text: string): any {
  try { return JSON.parse(text) } catch { return undefined }
}

function keyNames(path: string): string[] {
  const lines = existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
  return lines.map(line => createHash('sha256').update(Buffer.from(line, 'hex')).digest('hex').slice(0, 8))
}
