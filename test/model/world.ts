/** The built program under the model: its processes, its files, and what is asked of them. */
import { spawn, type ChildProcess } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { admin, type Done } from '../support/admin.ts'
import { base64, callEtcd, type Member } from '../support/etcd.ts'
import { keyName, writeKeys } from '../support/journal.ts'
import { launchProgram, soon, type Launched } from '../support/program.ts'
import type { Random } from '../support/random.ts'
import { freshFolder, type Scope } from '../support/service.ts'
import { HELD, hold, isReached, letGo } from '../support/slow-disk.ts'
import { smallDisk } from '../support/system.ts'
import { Defect, exchange, type Cut, type Exchange } from './client.ts'
import { answered, forget, passwordOf, usuarioOf } from './knowledge.ts'
import { emptyState, groupsOf, isCertain, note, statusOf, type Fields, type Groups, type State,
  type Token } from './state.ts'

export const PROGRAM: string = process.env['PROGRAM'] ?? fileURLToPath(new URL('../..', import.meta.url))
/** No step takes that long on the slowest machine. */
const WAIT_MS = 60_000
export const PASSWORD = 'correct horse battery staple'
export const OWNER = 'ana@example.org'
/** More passwords than a step makes. */
const MAX_YOUNG = 60

/** A journal in a file, in one on a small disk, which can be filled, or two instances on etcd. */
export const STORES = ['file', 'small', 'etcd'] as const
export type Store = typeof STORES[number]
export interface Config {
  readonly store: Store
  readonly production: boolean
  /** It begins without tokens. */
  readonly isOpen: boolean
}

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

interface Server { readonly program: Launched, readonly url: string }

export interface Request {
  readonly operation: string
  /** 0: a list, or a new entry. */
  readonly id?: number
  readonly version?: number
  readonly method?: 'GET' | 'HEAD' | 'POST'
  readonly body?: object | undefined
  readonly cut?: Cut
  /** The status of the answer, where the model does not say it. */
  readonly wanted?: number
}

export class World {
  readonly scope: Scope
  readonly config: Config
  readonly home: string
  readonly hold: string
  readonly folders: readonly string[]
  readonly etcd: Member | undefined
  readonly #env: Record<string, string>
  readonly #flags: Record<string, string>
  /** What the journal must say. */
  state: State = emptyState()
  isOpen: boolean
  /** Copies of a journal from earlier moments, with what they must say, and of the key file. */
  readonly saved: { readonly bytes: Buffer, readonly state: State }[] = []
  readonly savedKeys: Buffer[] = []
  readonly backups: { readonly path: string, readonly state: State }[] = []
  /** All who ever asked for something. */
  readonly people = new Set(['operator', 'host'])
  readonly passwords: string[] = []
  /** Every line that was ever seen in the key file, the oldest first. */
  readonly keyLines = new Set<string>()
  /** The name of the key that the running service seals with. */
  sealsWith: string | undefined
  changes = 0
  checks = 0
  /** Many ask at the same time, so the order of their changes is not known. */
  isAtOnce = false
  /** Journals fail, or programs are killed: an answer of 500 may be one of a change that was made. */
  isFailing = false
  /** Whether a service runs on a folder where another process has since changed something. */
  isSplit = false
  isSocketGone = false
  /** Whether `init` was run for a journal that is not there, or says nothing. */
  isBegun = true
  servers: (Server | undefined)[]
  pending: Pending | undefined
  #asked = 0
  #files = 0

  constructor(scope: Scope, config: Config, etcd: Member | undefined) {
    this.scope = scope
    this.config = config
    this.isOpen = config.isOpen
    this.home = freshFolder(scope)
    this.hold = join(this.home, 'hold')
    mkdirSync(this.hold)
    this.etcd = config.store === 'etcd' ? etcd : undefined
    const count = this.etcd === undefined ? 1 : 2
    this.servers = Array.from({ length: count }, () => undefined)
    this.folders = this.servers.map((_, n) =>
      config.store === 'small' ? smallDisk(scope, '8m') : join(this.home, `data${n}`))
    const prefix = `/life-${randomBytes(6).toString('hex')}`
    this.#env = this.etcd === undefined ? { KEY_FILE: this.keyFile }
      : { JOURNAL: 'etcd', ETCD_ENDPOINTS: this.etcd.url, ETCD_PREFIX: prefix }
    this.#flags = this.etcd === undefined ? {}
      : { 'journal': 'etcd', 'etcd-endpoints': this.etcd.url, 'etcd-prefix': prefix,
          ...config.production && { 'stale-reads': 'on' } }
  }

  get data(): string { return this.folders[0]! }
  get journal(): string { return join(this.data, 'journal.jsonl') }
  get keyFile(): string { return join(this.data, 'journal.key') }
  get isFile(): boolean { return this.etcd === undefined }
  get server(): Server | undefined { return this.servers.find(one => one !== undefined) }
  file(): string { return join(this.home, `file-${++this.#files}.jsonl`) }

  /** Makes the journal; on etcd, instances have the same key. */
  async init(): Promise<void> {
    if (this.etcd === undefined) { await this.done('init'); return }
    const secret = randomBytes(32)
    for (const folder of this.folders) { mkdirSync(folder); writeKeys(folder, secret) }
    await callEtcd(this.etcd.url, '/v3/kv/put',
      { key: base64(`${this.#env['ETCD_PREFIX']}.key`), value: base64(keyName(secret)) })
  }

  /** The fields of a password that nobody has had. */
  fresh(): { readonly password: string, readonly usuario: string } {
    const password = passwordOf(this.passwords.length + 1)
    this.passwords.push(password)
    return { password, usuario: usuarioOf(password) }
  }

  /** From now on, what was set so far may have been read by others. */
  gap(state: State = this.state): void { state.knows.unrecorded = new Set(this.passwords) }

  forget(): void {
    const { entries, open } = this.state
    forget(this.state.knows, new Set([...entries, ...open.map(({ set }) => set)].map(one => one?.password)))
    this.state.former = new Map(this.state.entries.flatMap((entry, at) =>
      entry === null ? [] : [[at + 1, new Set([entry.password])]]))
  }

  /** Runs a command of the operator's program in a process that serves many. */
  async admin(words: string, input = ''): Promise<Done> {
    const done = await admin(this.data, words, input, this.#env).catch((error: Error) => {
      throw new Defect(`a command does not end: ${words}: ${error.message}`)
    })
    return judged(words, done)
  }

  /** Lines of JSON of a command that must succeed. */
  async done(words: string, input?: string): Promise<any[]> {
    const { code, out, error } = await this.admin(`${words} --json`, input)
    if (code !== 0) {
      throw new Defect(`a command fails: ${words.replace(/\d+/g, 'N').replaceAll(this.home, '')}: ${error}`)
    }
    return out.split('\n').filter(line => line !== '').flatMap(line => JSON.parse(line))
  }

  /** Starts a command in a process of its own, and waits until it is held, or over. */
  async begin(words: string, on: 'rewrite' | 'read', file: string, becomes?: State): Promise<void> {
    hold(this.hold, on, file)
    const inService = this.server !== undefined && !this.isSocketGone
    const env = { DATA_DIR: this.data, HOLD: this.hold, ...this.#env }
    const child = spawn(process.execPath, ['--import', HELD, join(PROGRAM, 'dist/admin.js'), ...words.split(' ')],
      { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let [out, error] = ['', '']
    child.stdout.setEncoding('utf8').on('data', text => { out += text })
    child.stderr.setEncoding('utf8').on('data', text => { error += text })
    let isOver = false
    const ended = once(child, 'close').then(([code]) => { isOver = true; return { code, out, error } })
    this.pending = { words, child, ended, becomes, changes: this.changes, inService }
    for (const endMs = performance.now() + WAIT_MS; !isOver && !isReached(this.hold); await pause(5)) {
      if (performance.now() > endMs) throw new Defect(`no end of ${words}`)
    }
  }

  /** Lets the command that is held go on to its end, and judges it. */
  async release(): Promise<void> {
    const { pending } = this
    if (pending === undefined) return
    letGo(this.hold)
    const late = pause(WAIT_MS, undefined, { ref: false }).then(() => {
      throw new Defect(`a command does not end: ${pending.words}`)
    })
    const done = judged(pending.words, await Promise.race([pending.ended, late]))
    this.pending = undefined
    if (done.code !== 0) return
    this.noteOperator(pending.inService)
    if (pending.becomes === undefined) return this.rewritten(pending.words)
    if (this.changes > pending.changes) throw new Defect('a restore took the place of acknowledged changes')
    this.state = pending.becomes
  }

  async killPending(): Promise<void> {
    this.pending?.child.kill('SIGKILL')
    await this.pending?.ended
    this.pending = undefined
    letGo(this.hold)
  }

  /** After a rewriting or a rotation with success. */
  rewritten(words: string): void {
    this.noteKeys()
    if (words.includes('rotate')) this.noteSealing()
    else this.state.rewrittenBytes = this.state.open.length > 0 ? 0 : statSync(this.journal).size
    if (words.includes('compact')) this.forget()
    const lacking = this.lackingKeys()
    if (lacking.length > 0) {
      throw new Defect(`the key file lacks keys of the journal after a rotation or rewriting with success: ${lacking}`)
    }
  }

  /** After a command that changed the journal: whether a running service knows of it. */
  noteOperator(inService: boolean = this.server !== undefined && !this.isSocketGone): void {
    if (this.server !== undefined && !inService) this.isSplit = true
  }

  /** What the service seals with is the file's newest key at its start, and after a rotation. */
  noteSealing(): void { this.sealsWith = keyNames(this.keyFile).at(-1) }

  noteKeys(): void { for (const line of keyLinesIn(this.keyFile)) this.keyLines.add(line) }

  /** Puts every key back that was ever in the key file: then nothing is lost. */
  mendKeys(): void {
    this.noteKeys()
    if (this.keyLines.size > 0) writeFileSync(this.keyFile, [...this.keyLines].map(line => `${line}\n`).join(''))
  }

  /** The keys that the key file does not have, and by which lines of the journal are sealed, or are about to be. */
  lackingKeys(): string[] {
    if (!this.isFile || !existsSync(this.journal)) return []
    const used = new Set(readFileSync(this.journal, 'latin1').match(/(?<="key":")[0-9a-f]{8}/g))
    if (this.server !== undefined && this.sealsWith !== undefined) used.add(this.sealsWith)
    for (const name of keyNames(this.keyFile)) used.delete(name)
    return [...used]
  }

  /** Files of which one may hold the newest state: no journal is begun beside them. */
  statesLeft(): string[] {
    return readdirSync(this.data).filter(name => /^(archive-\d+-\d+|journal\.rescued-.*)\.jsonl$/.test(name))
      .map(name => join(this.data, name))
  }

  isMissing(): boolean { return this.isFile && (!existsSync(this.journal) || statSync(this.journal).size === 0) }

  /** Whether the journal may be changed by a command now: as a journal of these keys, and not one that is split. */
  isSound(): boolean { return !this.isSplit && !this.isMissing() && this.lackingKeys().length === 0 }

  mayRefuse(): boolean { return this.isFailing || this.pending !== undefined || this.isSocketGone || !this.isSound() }

  /** Starts what does not run; gives false where it was refused, and might be. */
  async start(): Promise<boolean> {
    for (const [n, server] of this.servers.entries()) if (server === undefined && !await this.#start(n)) return false
    this.isSocketGone = this.isSplit = false
    this.noteRecording(!this.isOpen)
    return true
  }

  /** A service began, with tokens or without. */
  noteRecording(isRecording: boolean): void {
    if (isRecording && !this.state.isRecording) this.gap()
    this.state.isRecording = isRecording
  }

  async #start(n: number): Promise<boolean> {
    if (this.isFile) this.noteKeys()
    const { production, store } = this.config
    const isNew = this.isMissing()
    // A key beside no journal says that something was stored there.
    const isKeyLeft = isNew && existsSync(this.keyFile)
    const mustNot = isNew && !this.isBegun && (production || isKeyLeft)
    const may = this.pending !== undefined || (production && isNew) || isKeyLeft ||
      (isNew && this.statesLeft().length > 0) || this.lackingKeys().length > 0 || this.isSocketGone
    const isProduction = production && store !== 'etcd'
    const program = launchProgram(this.scope, {
      command: [process.execPath, '--import', HELD, join(PROGRAM, 'dist/server.js')],
      flags: { 'data': this.folders[n], 'login-limit': '0', 'extra-routes': 'on', 'trust-proxy': '127.0.0.1',
        'auth': this.isOpen ? 'none' : 'bearer', ...this.isFile && { 'key-file': this.keyFile }, ...this.#flags },
      env: { HOLD: this.hold, ...isProduction && { NODE_ENV: 'production' } }
    })
    if (!await soon(program.ready, () => `the start; ${program.stdout}${program.stderr}`)) {
      const { stderr } = await program.ended
      if (!/^error: [^\n]{10,}\n$/m.test(stderr)) throw new Defect(`a refusal does not say why: start: ${stderr}`)
      if (may) return false
      throw new Defect(`a start is refused: ${stderr.replaceAll(this.home, '')}`)
    }
    this.servers[n] = { program, url: /^address +(\S+)$/m.exec(`${program.stdout}\n${program.stderr}`)![1]! }
    this.noteSealing()
    if (mustNot) throw new Defect('a service starts on a journal that is gone, as on an empty one')
    if (isNew) this.state = emptyState()
    return true
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    for (const n of this.servers.keys()) await this.endOne(n, signal)
    if (this.pending?.inService) await this.release()
    this.isSocketGone = false
  }

  async endOne(n: number, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const server = this.servers[n]
    if (server === undefined) return
    const timer = setTimeout(() => letGo(this.hold), 200) // what is held would hold up the stop
    await server.program.stop(signal).catch(() => { throw new Defect(`no end after ${signal}`) })
    clearTimeout(timer)
    this.servers[n] = undefined
  }

  /** Sends a request for somebody, or for nobody, and judges the answer by what is known. */
  async ask(token: Token | undefined, request: Request): Promise<Exchange> {
    const { operation, id = 0, version, method = /^(create|update|delete|restore)P/.test(operation) ? 'POST' : 'GET',
      body, cut } = request
    const { state } = this
    const path = `/api/${operation}${id > 0 ? `/${id}` : ''}${version === undefined ? '' : `/${version}`}`
    const running = this.servers.filter(server => server !== undefined)
    if (running.length === 0) throw new Unusable()
    const { url } = running[this.#asked++ % running.length]!
    // At once with others, only what nobody else decides is known.
    const isVague = this.isAtOnce &&
      ((token !== undefined && token.email !== OWNER) || operation === 'listPassword' || id > state.entries.length)
    const wanted = request.wanted ?? (isVague ? undefined : statusOf(state, token, operation, id, body))
    const answer = await exchange(url, { method, path, token: token?.token, body, cut })
    const young = this.passwords.slice(-MAX_YOUNG)
    if (token !== undefined) this.people.add(token.email)
    const sets = request.wanted === undefined ? (body as Partial<Fields> | undefined)?.password : undefined
    answered(state.knows, { who: token?.email, operation, id, sets }, answer, this.isFailing, young)
    this.#judge(request, answer, wanted)
    if (method === 'POST') this.#noteChange(request, answer, token)
    return answer
  }

  /** An answer is what it must be, or is refused for a reason there is. */
  #judge({ operation, id = 0, cut }: Request, { status, json }: Exchange, wanted: number | undefined): void {
    if (status === wanted || (cut !== undefined && status === undefined)) return
    if (status === undefined) {
      if (this.isFailing) return
      throw new Defect('a connection is cut while nothing was killed')
    }
    // One history is read at a time, and rights may change while a request waits.
    const isBusy = status === 503 && this.isAtOnce && (wanted === undefined || /^(history|former)/.test(operation))
    if (isBusy || (status >= 500 && this.mayRefuse())) return
    // At once with others, an entry may have been made, moved or purged since.
    if (status < 500 && (wanted === undefined || (this.isAtOnce && !isCertain(this.state, id)))) return
    throw new Defect(`${operation} is answered ${status}, not ${wanted}: ${id}: ${JSON.stringify(json)}`)
  }

  #noteChange({ operation, id = 0, wanted, ...asked }: Request, { status, isWhole }: Exchange,
    token: Token | undefined): void {
    const body = asked.body as Partial<Fields> | undefined
    const isUnknown = !isWhole || (this.isFailing && status! >= 500)
    if (status !== 200 && !isUnknown) return
    if (status === 200) this.acknowledged()
    if (wanted !== undefined) return
    const groups = token && groupsOf(this.state, token)
    const set = operation === 'deletePassword' ? { status: 0 as const }
      : operation === 'restorePassword' ? { status: 1 as const }
        : { ...id === 0 && !body!.grupo && groups?.length === 1 && { grupo: groups[0]! }, ...body }
    note(this.state, id, set, status === 200, !this.isAtOnce)
  }

  /** A live token of somebody; made where there is none. */
  async tokenOf(email: string, random?: Random): Promise<Token | undefined> {
    if (this.isOpen) return undefined
    const live = this.state.tokens.filter(token => token.isLive && token.email === email)
    const usable = email !== OWNER ? live
      : live.filter(token => token.abilities.includes('*') && groupsOf(this.state, token) === undefined)
    if (usable.length > 0) return random === undefined ? usable[0] : random.pick(usable)
    if (this.mayRefuse()) throw new Unusable()
    if (!this.state.users.has(email)) await this.addUser(email, ['*'], undefined, true)
    return this.issue(email)
  }

  async addUser(email: string, abilities: readonly string[], groups: Groups, hasPassword: boolean): Promise<void> {
    await this.done(`user add ${email} --abilities ${abilities}${groupsFlag(groups)}` +
      (hasPassword ? ' --password-stdin' : ' --no-password'), hasPassword ? `${PASSWORD}\n` : '')
    this.state.users.set(email, { abilities, groups, hasPassword })
    this.acknowledged()
    this.noteOperator()
  }

  async issue(email: string, abilities?: readonly string[], groups?: Groups): Promise<Token> {
    const flags = `${abilities === undefined ? '' : ` --abilities ${abilities}`}${groupsFlag(groups)}`
    const [{ token }] = await this.done(`token issue ${email}${flags}`)
    const made = { token, email, abilities: abilities ?? this.state.users.get(email)!.abilities, groups, isLive: true }
    this.state.tokens.push(made)
    this.acknowledged()
    this.noteOperator()
    return made
  }

  acknowledged(): void {
    this.changes++
    this.isBegun = false // what is gone now was something
  }
}

/** What is to be done cannot be, as things stand. */
export class Unusable extends Error {}

const groupsFlag = (groups: Groups): string => groups === undefined ? '' : ` --groups=${groups}`
export const rightsFlag = (groups: Groups): string => groups === undefined ? ' --all-groups' : groupsFlag(groups)

/** These end with 1 or 3 and say what they were asked for all the same. */
const TELL_AND_FAIL = /^(audit|entry list --exposed|journal salvage)/

function judged(words: string, done: Done): Done {
  const { code, out, error } = done
  const isExplained = code === 0 || (TELL_AND_FAIL.test(words) && out !== '') ||
    /^((warning: |journal \/|the service has not)[^\n]+\n)*(error: |\{"error":")[^\n]{10,}\n$/.test(error)
  if (!isExplained || (code !== 0 && out !== '' && !TELL_AND_FAIL.test(words))) {
    throw new Defect(`a refusal does not say why: ${words}: ${code} ${out} ${error}`)
  }
  return done
}

const keyLinesIn = (path: string): readonly string[] => existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n')
  : []

const keyNames = (path: string): string[] => keyLinesIn(path).map(line =>
  createHash('sha256').update(Buffer.from(line, 'hex')).digest('hex').slice(0, 8))
