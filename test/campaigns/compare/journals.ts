/**
 * Whether two builds of the program read each other's journals: random lives of a data folder, in which now the old
 * and now the new program writes, with or without a service, stopped or killed. After each stretch both open a copy of
 * the folder, and must show the same as the writer did: entries, histories, users, which tokens do what, and records.
 * Once the new program has written what the old one does not know, the old one must refuse to read it, say why, and
 * change nothing; then the new one goes on alone.
 *
 *     node --import tsx test/campaigns/compare/journals.ts OLD_DIST NEW_DIST [--count LIVES] [--seed S]
 *
 * `EXPECTED` has the differences that are meant. Every other one is a fault: then the exit code is 1.
 */
import { appendFileSync, cpSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Program } from '../../support/program.ts'
import { seeded, type Random } from '../../support/random.ts'
import { freshFolder, Steps } from '../../support/service.ts'
import { Build, fromCommandLine } from './programs.ts'
import { Verdicts } from './verdicts.ts'

const FLAGS = { auth: 'bearer', 'login-limit': '0', page: 'off', 'extra-routes': 'on' }
const PASSWORDS = ['correct horse battery staple', 'battery staple horse correct']
const EMAILS = ['ana@example.org', 'leo@example.org', 'eva@example.org']
const { old, new: young, count, seed } = fromCommandLine(5)

/** A difference that is meant: `commonOf` gives of each answer what both must say. */
interface Expected {
  readonly why: string
  readonly of: RegExp
  readonly commonOf: (answer: any) => unknown
}

const EXPECTED: readonly Expected[] = [
  {
    why: 'deleted entries come without secrets, with who deleted them, and when',
    of: /^GET \/api\/deletedPasswords/,
    commonOf: ({ passwords, ...others }) => ({
      ...others, passwords: passwords?.map(({ password, notas, deleted, deletedBy, ...open }: any) => open)
    })
  },
  {
    why: 'a history has numbers of versions, names of fields, and beside them the values that are no secret',
    of: /^GET \/api\/historyPassword/,
    commonOf: ({ history, ...others }) => ({
      ...others, history: history?.map(({ version, fields, values, ...change }: any) =>
        ({ ...change, fields: Array.isArray(fields) ? fields : Object.keys(fields) }))
    })
  },
  {
    why: 'a login says whether there is a second factor and a password',
    of: /^login of/,
    commonOf: ({ user, ...others }) => {
      const { secondFactor, hasPassword, firstPassword, ...known } = user ?? {}
      return { ...others, user: known }
    }
  },
  {
    why: 'users and tokens of the new program may have groups and a second factor',
    of: /^(user|token) list/,
    commonOf: rows => rows.map(({ groups, factor, secondFactor, noPassword, ...others }: any) => others)
  },
  {
    why: 'the list without secrets says which optional secrets are set',
    of: /^entry list/,
    commonOf: rows => rows.map(({ notas, otp, grupo, exposed, exposedTo, unrecordedBefore, ...others }: any) => others)
  }
]

/** The line with which the old program refuses what only the new one writes. */
const REFUSAL = new RegExp(/^error: the journal was written by a newer version: .*, line \d+ at byte \d+: /.source +
  /this version does not know .*; nothing is damaged: run that version/.source, 'm')
const REFUSED = 'the old program refuses what only the new one writes, and changes nothing'

const verdicts = new Verdicts()

function isMeant(key: string, one: string, other: string): boolean {
  const row = EXPECTED.find(({ of }) => of.test(key))
  if (row === undefined) return false
  const common = (text: string): string => {
    const [, status = '', json = ''] = /^(\d{3} )?([^]*)$/.exec(text) ?? []
    return status + JSON.stringify(row.commonOf(JSON.parse(json)))
  }
  if (common(one) !== common(other)) return false
  verdicts.meant(row.why)
  return true
}

interface Asked { readonly status: number, readonly text: string }

async function ask(url: string, method: string, path: string, token: string, body?: unknown): Promise<Asked> {
  const headers = { Authorization: `Bearer ${token}`, ...body === undefined ? {}
    : { 'Content-Type': 'application/json' } }
  const answer = await fetch(url + path, { method, headers, ...body === undefined ? {}
    : { body: JSON.stringify(body) } })
  return { status: answer.status, text: await answer.text() }
}

/** A data folder on its way from hand to hand. */
class Life {
  readonly random: Random
  readonly folder: string
  readonly said: string[] = []
  /** Every token that was ever given, revoked ones too; the first may do everything and is never revoked. */
  tokens: string[] = []
  #texts = 0

  constructor(scope: Steps, random: Random) {
    this.random = random
    this.folder = join(freshFolder(scope), 'data')
  }

  #fields(): Record<string, string> {
    const text = `${++this.#texts} ${this.random.pick(['ñ€😀', '\u0000"\\', ' ', 'x'.repeat(5_000)])}`
    return { password: `p${text}`, sistema: `s${text}`, usuario: `u${text}` }
  }

  /** Runs a command; one that is refused, as for a user that is not there, is a part of life. */
  admin(build: Build, words: readonly string[], input?: string): string | undefined {
    const name = build === old ? 'old' : 'new'
    try {
      const out = build.admin(this.folder, words, input)
      this.said.push(`${name}: ${words.join(' ')}`)
      return out
    } catch (error) {
      this.said.push(`${name}: ${words.join(' ')}: refused`)
      if (!/: 1 (?:journal [^\n]*\n)*error: /.test((error as Error).message)) throw error
      return undefined
    }
  }

  /** A command of the operator's, of those that write. */
  command(build: Build): void {
    const { random } = this
    const email = random.pick(EMAILS)
    const id = String(1 + random.int(30))
    const issued = (out: string | undefined): void => { const token =
      /pes_[\w-]+/.exec(out ?? '')?.[0]; if (token !== undefined) this.tokens.push(token) }
    const file = join(this.folder, '..', `${++this.#texts}.jsonl`)
    const rows = Array.from({ length: 1 + random.int(5) }, () =>
      JSON.stringify({ ...this.#fields(), status: random.int(2) }))
    const commands: readonly (() => unknown)[] = [
      () => this.admin(build, ['user', 'add', email, '--name', 'N ñ', '--password-stdin'],
        `${random.pick(PASSWORDS)}\n`),
      () => this.admin(build, ['user', 'add', email, '--abilities', 'password:read,password:update',
        '--password-stdin'], `${PASSWORDS[0]}\n`),
      () => this.admin(build, ['user', 'edit', email, '--abilities', random.pick(['password:read', '*'])]),
      () => this.admin(build, ['user', 'password', email, '--password-stdin'], `${random.pick(PASSWORDS)}\n`),
      () => random.int(3) === 0 && this.admin(build, ['user', 'remove', email]),
      () => issued(this.admin(build, ['token', 'issue', email,
        ...random.pick([[], ['--abilities', 'password:read'], ['--ttl-minutes', '100000']])])),
      () => random.int(2) === 0 && this.admin(build, ['token', 'revoke', '--all', email]),
      () => { writeFileSync(file, `${rows.join('\n')}\n`); this.admin(build, ['import', file]) },
      () => this.admin(build, ['entry', 'purge', id, '--yes']),
      () => this.admin(build, ['entry', 'restore', id]),
      () => this.admin(build, ['entry', 'add', '--system', `cli ${this.#texts}`, '--user', 'u', '--generate']),
      () => this.admin(build, ['export', '--output', `${file}.out.jsonl`, '--yes']),
      () => this.admin(build, ['key', 'rotate']),
      () => this.admin(build, ['key', 'rewrite']),
      () => this.admin(build, ['journal', 'compact', ...random.pick([[], ['--drop-history', '--yes']])]),
      () => this.admin(build, ['journal', 'backup', `${file}.backup`])
    ]
    random.pick(commands)()
  }

  /** Requests of clients, some of them at once. */
  async clients(build: Build, { url }: Program): Promise<void> {
    const { random } = this
    const change = async (): Promise<void> => {
      const token = random.int(4) === 0 ? random.pick(this.tokens) : this.tokens[0]!
      const id = 1 + random.int(30)
      const [field] = Object.entries(this.#fields())
      const [path, body] = random.pick([
        ['/api/createPassword', this.#fields()], ['/api/createPassword', this.#fields()],
        [`/api/updatePassword/${id}`, Object.fromEntries([field!])],
        [`/api/deletePassword/${id}`, undefined], [`/api/restorePassword/${id}`, undefined]
      ] as const)
      await ask(url, 'POST', path, token, body)
    }
    for (let rest = 1 + random.int(6); rest > 0; rest--) await Promise.all(Array.from({ length: 1 + random.int(5) },
      change))
    if (random.int(3) === 0) {
      const { text } = await ask(url, 'POST', '/api/login', '',
        { email: random.pick(EMAILS), password: random.pick(PASSWORDS) })
      const token = /pes_[\w-]+/.exec(text)?.[0]
      if (token !== undefined) this.tokens.push(token)
    }
    if (this.tokens.length > 1 && random.int(5) === 0) await ask(url, 'POST', '/api/logout',
      random.pick(this.tokens.slice(1)))
    this.said.push(`${build === old ? 'old' : 'new'}: requests`)
  }
}

/** What a service shows of everything. */
async function shownBy({ url }: Program, tokens: readonly string[]): Promise<Record<string, string>> {
  const shown: Record<string, string> = {}
  const look = async (method: string, path: string, token = tokens[0]!): Promise<void> => {
    const { status, text } = await ask(url, method, path, token)
    shown[`${method} ${path} as ${tokens.indexOf(token)}`] = `${status} ${text}`
  }
  await look('GET', '/api/listPassword')
  await look('GET', '/api/deletedPasswords')
  for (let id = 1; id <= 60; id++) {
    await look('GET', `/api/getPassword/${id}`)
    await look('GET', `/api/historyPassword/${id}`)
  }
  for (const token of tokens) for (const path of ['/api/listPassword', '/api/deletedPasswords']) await look('GET', path,
    token)
  for (const email of EMAILS) {
    for (const password of PASSWORDS) {
      const { status, text } = await ask(url, 'POST', '/api/login', '', { email, password })
      shown[`login of ${email} with ${password}`] = `${status} ${text.replace(/pes_[\w-]+/, '')}`
    }
  }
  return shown
}

/** What a build makes of a copy of a folder; `refused`: why it does not read it. */
async function readBy(build: Build, folder: string, tokens: readonly string[]): Promise<Record<string, string>> {
  const scope = new Steps()
  const copy = copyOf(scope, folder)
  try {
    const said: Record<string, string> = {}
    for (const words of ['journal show --json', 'user list --json', 'token list --json', 'entry list --json']) {
      said[words] = build.admin(copy, words.split(' ')).replaceAll(copy, 'FOLDER')
    }
    build.admin(copy, ['journal', 'verify'])
    const program = await build.start(scope, copy, FLAGS)
    return { ...said, ...await shownBy(program, tokens) }
  } catch (error) {
    // With --json, errors are JSON in the new program.
    return { refused: (error as Error).message.replaceAll(copy, 'FOLDER').replaceAll(build.dist, 'DIST')
      .replace(/\{"error":("(?:[^"\\]|\\.)*"),"exitCode":\d+\}/g, (_all, text) => `error: ${JSON.parse(text)}`)
      .replace(/\b[0-9a-f]{8}\b/g, '…') }
  } finally {
    await scope.end()
  }
}

function copyOf(scope: Steps, folder: string): string {
  const copy = join(freshFolder(scope), 'data')
  cpSync(folder, copy, { recursive: true, filter: path => !path.endsWith('.sock') })
  return copy
}

/** Whether the old program refuses the folder as newer; it must not have changed it. */
async function isNewer(life: Life): Promise<boolean> {
  const scope = new Steps()
  const copy = copyOf(scope, life.folder)
  try {
    await old.start(scope, copy, FLAGS)
    return false
  } catch (error) {
    if (!REFUSAL.test((error as Error).message)) throw error
    const [before, after] = [life.folder, copy].map(one => readFileSync(join(one, 'journal.jsonl')))
    const said = life.said.slice(-12).join('; ')
    if (!before!.equals(after!)) verdicts.fault('the old program has changed what it refuses', said)
    verdicts.meant(REFUSED)
    return true
  } finally {
    await scope.end()
  }
}

function hold(what: string, life: Life, a: Record<string, string>, b: Record<string, string>): void {
  for (const key of Object.keys(a)) {
    if (!(key in b) && !('refused' in b)) continue
    verdicts.comparisons++
    const [one, other] = [a[key]!, b[key] ?? b['refused'] ?? '']
    if (one === other || isMeant(key, one, other)) continue
    let at = 0
    while (one[at] === other[at]) at++
    at = Math.max(0, at - 60)
    verdicts.fault(`${what}: ${key.replace(/\d+/g, 'N')}`, `${key}\n  of ${one.slice(at, at + 300)}\n  by ${
      other.slice(at, at + 300)}\n  after ${life.said.slice(-12).join('; ')}`)
  }
}

async function live(random: Random): Promise<void> {
  const scope = new Steps()
  const life = new Life(scope, random)
  try {
    const first = random.pick([old, young])
    life.admin(first, ['init'])
    first.admin(life.folder, ['user', 'add', 'root@example.org', '--password-stdin'], `${PASSWORDS[0]}\n`)
    life.tokens = [/pes_[\w-]+/.exec(first.admin(life.folder, ['token', 'issue', 'root@example.org']))![0]]
    let isOfNew = await isNewer(life)
    for (let stretch = 0; stretch < 6; stretch++) {
      const build = isOfNew ? young : random.pick([old, young])
      const isService = random.int(4) > 0
      let before: Record<string, string> = {}
      if (isService) {
        const program = await build.start(scope, life.folder, FLAGS)
        for (let rest = 2 + random.int(4); rest > 0; rest--) {
          await life.clients(build, program)
          if (random.int(2) === 0) life.command(build)
        }
        before = await shownBy(program, life.tokens)
        await (random.int(2) === 0 ? program.kill() : program.stop())
      } else {
        for (let rest = 1 + random.int(5); rest > 0; rest--) life.command(build)
      }
      isOfNew ||= await isNewer(life)
      const own = await readBy(build, life.folder, life.tokens)
      const writer = build === old ? 'old' : 'new'
      if (isService) hold(`what ${writer} served is not what it reads after that`, life, before, own)
      if (isOfNew) continue
      hold(`what ${writer} wrote is read in two ways`, life, own,
        await readBy(build === old ? young : old, life.folder, life.tokens))
      await torn(life, random)
    }
  } catch (error) {
    verdicts.fault(`life: ${(error as Error).message.slice(0, 60)}`,
      `${(error as Error).stack}\n  after ${life.said.slice(-12).join('; ')}`)
  }
  await scope.end()
}

/**
 * A copy whose last bytes are cut off, or have something behind them, as after a power cut: both make the same of it.
 */
async function torn(life: Life, random: Random): Promise<void> {
  const scope = new Steps()
  const copy = copyOf(scope, life.folder)
  const file = join(copy, 'journal.jsonl')
  const { size } = statSync(file)
  const line = readFileSync(file).subarray(-2_000)
  const damage = random.int(4)
  if (damage < 2) truncateSync(file, Math.max(0, size - 1 - random.int(damage === 0 ? 50 : 3_000)))
  else appendFileSync(file, damage === 2 ? Buffer.alloc(1 + random.int(600))
    : line.subarray(0, 1 + random.int(line.length)))
  const [a, b] = await Promise.all([readBy(old, copy, life.tokens), readBy(young, copy, life.tokens)])
  hold(`a torn end (${['cut a little', 'cut', 'zeros behind it',
    'half a line behind it'][damage]}) is read in two ways`, life, a, b)
  await scope.end()
}

console.log(`--count ${count} --seed ${seed}`)
const random = seeded(seed)
for (let lives = 1; lives <= count; lives++) {
  await live(seeded(random.int(2 ** 32)))
  console.log(`${lives} lives, ${verdicts.comparisons} comparisons, ${verdicts.faults} kinds of fault`)
}
verdicts.end()
