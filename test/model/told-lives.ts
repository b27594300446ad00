/**
 * Random lives of the built program with several users, whose every byte an oracle knows: whoever has a present
 * password is named by `audit`, or it says that reads were not recorded; nobody else is named.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { admin, type Done } from '../support/admin.ts'
import { base64, callEtcd } from '../support/etcd.ts'
import { keyName, writeKeys } from '../support/journal.ts'
import { startProgram, type Program } from '../support/program.ts'
import { seeded, type Random } from '../support/random.ts'
import { freshFolder, within, type Scope } from '../support/service.ts'
import { Defect } from './state.ts'
import { exchange, Oracle, personIn, usuarioOf, type Cut, type Exchange, type Row } from './told.ts'

const STEPS = 22
const GROUPS = ['a', 'b', 'c']
const RIGHTS = ['*', 'password:read', 'password:read,password:update', 'password:read,password:history',
  'password:update', 'password:create,password:read']
const READERS = /\*|password:read|password:update|password:history/
const EMAILS = ['bea@x', 'carl@x', 'dora@x', 'eve@x']
const OWNER = 'ana@x'

interface User { readonly abilities: string, readonly groups: readonly string[] | undefined, tokens: string[] }

class Life {
  readonly random: Random
  readonly scope: Scope
  readonly oracle = new Oracle()
  readonly users = new Map<string, User>()
  readonly folders: string[] = []
  readonly programs: (Program | undefined)[] = []
  readonly flags: Record<string, string>[] = []
  /** Of the operator's program. */
  readonly env: Record<string, string>
  readonly isOnEtcd: boolean
  /** By entry, as of the last check. */
  present = new Map<number, string>()
  backup: string | undefined
  #files = 0
  /** Journals fail, or programs are killed: an answer of 500 may be one of a change that was made. */
  isFailing = false

  constructor(scope: Scope, random: Random, etcd: { readonly url: string, readonly prefix: string } | undefined) {
    this.scope = scope
    this.random = random
    this.isOnEtcd = etcd !== undefined
    this.env = etcd === undefined ? {}
      : { JOURNAL: 'etcd', ETCD_ENDPOINTS: etcd.url, ETCD_PREFIX: etcd.prefix }
    const more = etcd === undefined ? {}
      : { journal: 'etcd', 'etcd-endpoints': etcd.url, 'etcd-prefix': etcd.prefix,
          ...random.int(3) === 0 && { 'stale-reads': 'on' } }
    for (let n = 0; n < (etcd === undefined ? 1 : 2); n++) {
      const data = join(freshFolder(scope), 'data')
      this.folders.push(data)
      this.flags.push({ data, auth: 'bearer', 'extra-routes': 'on', ...more })
    }
  }

  get folder(): string { return this.folders[0]! }
  get journal(): string { return join(this.folder, 'journal.jsonl') }
  file(): string { return join(freshFolder(this.scope), `file-${++this.#files}.jsonl`) }

  admin(words: string, input = ''): Promise<Done> { return admin(this.folder, words, input, this.env) }

  async done(words: string, input = ''): Promise<any> {
    const { code, out, error } = await this.admin(`${words} --json`, input)
    if (code !== 0) throw new Defect(`${words.split(' ').slice(0, 2).join(' ')} is refused: ${error}`)
    return out === '' ? undefined : out.trim().split('\n').flatMap(line => JSON.parse(line))
  }

  async start(n = 0, flags: Record<string, string> = {}): Promise<void> {
    this.programs[n] = await startProgram(this.scope, { flags: { ...this.flags[n], ...flags } })
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    for (const program of this.programs) await program?.stop(signal)
    this.programs.fill(undefined)
  }

  /** What is done with no service running; then it runs again. */
  async between(act: () => Promise<void>): Promise<void> {
    await this.stop(this.random.pick(['SIGTERM', 'SIGKILL']))
    await act()
    await this.start()
  }

  async addUser(email: string, abilities: string, groups: readonly string[] | undefined): Promise<void> {
    await this.done(`user add ${email} --no-password --abilities ${abilities}${groupsFlag(groups)}`)
    this.users.set(email, { abilities, groups, tokens: [] })
    await this.issue(email)
  }

  async issue(email: string, groups?: readonly string[]): Promise<void> {
    const [{ token }] = await this.done(`token issue ${email}${groupsFlag(groups)}`)
    this.users.get(email)!.tokens.push(token)
  }

  /** After a journal of another time or of less: users and tokens as they are there. */
  async refresh(): Promise<void> {
    const listed = (await this.done('user list')).map(({ email, abilities, groups }: any) =>
      [email, { abilities: abilities.join(), groups, tokens: [] }])
    this.users.clear()
    for (const [email, user] of listed) this.users.set(email, user)
    if (!this.users.has(OWNER)) await this.addUser(OWNER, '*', undefined)
    for (const email of this.users.keys()) if (this.users.get(email)!.tokens.length === 0) await this.issue(email)
  }

  async ask(who: string, method: string, operation: string, id: number, body?: object, cut?: Cut,
    path = `/api/${operation}${id > 0 ? `/${id}` : ''}`): Promise<Exchange> {
    const token = this.random.pick(this.users.get(who)!.tokens)
    const there = this.programs.filter(program => program !== undefined)
    const { url } = this.random.pick(there)
    const answer = await exchange(url, token, method, path, body, cut)
    const sets = (body as { password?: string } | undefined)?.password
    this.oracle.answered({ who, operation, id, sets }, answer, this.isFailing)
    return answer
  }

  async check(): Promise<void> {
    const before = JSON.stringify(await this.#listed())
    const { code, out, error } = await this.admin('audit --json')
    if (out === '') throw new Defect(`audit is refused: ${error}`)
    const { knows, unrecordedBefore } = JSON.parse(out) as { readonly knows: readonly Row[],
      readonly unrecordedBefore: { readonly [when: string]: readonly number[] } }
    const unrecorded = new Set(Object.values(unrecordedBefore).flat())
    if ((code === 0) !== (unrecorded.size === 0)) throw new Defect(`audit ends with ${code}, of ${unrecorded.size}`)
    const [active, deleted] = await this.#listed()
    // A change may still be under way whose client is gone.
    if (JSON.stringify([active, deleted]) !== before) return this.check()
    this.present = new Map([...active, ...deleted].map(({ id, usuario }) => [id, usuario.replace('U', 'PW')]))
    this.oracle.judge(this.present, knows, unrecorded)
    await this.#checkExposed(knows, active)
    if (this.programs.some(program => program !== undefined)) await this.#checkRoute(knows)
  }

  async #listed(): Promise<readonly [active: readonly any[], deleted: readonly any[]]> {
    return [await this.done('entry list') ?? [], await this.done('entry list --deleted') ?? []]
  }

  /** The list of what is to be changed has what somebody knows who is gone, or may be told it no more. */
  async #checkExposed(knows: readonly Row[], active: readonly any[]): Promise<void> {
    const found = (await this.done('entry list --exposed') ?? []).map(({ id }: any) => id).join()
    const expected = active.filter(({ id, grupo }) => knows.some(row => {
      const user = this.users.get(row.who)
      if (row.id !== id || /^(operator|host)/.test(row.who)) return false
      const isSeen = user?.groups === undefined || (grupo !== undefined && user.groups.includes(grupo))
      return user === undefined || !isSeen || !READERS.test(user.abilities)
    })).map(({ id }) => id).join()
    if (found !== expected) throw new Defect(`exposed are ${expected || 'none'}, and not ${found}`)
  }

  /** The route says what the command says; to a user of a group, nothing of equal passwords. */
  async #checkRoute(knows: readonly Row[]): Promise<void> {
    const named = (id: number, hows: readonly string[]): string => knows.filter(row => row.id === id &&
      hows.includes(row.how)).map(({ who, how }) => `${personIn(who)} ${how}`).sort().join()
    for (const who of [OWNER, ...this.users.keys()]) {
      const id = this.random.pick([...this.present.keys(), 1])
      const { status, json } = await this.ask(who, 'GET', 'whoKnows', id)
      if (status !== 200) continue
      const { groups, abilities } = this.users.get(who)!
      const seesEqual = groups === undefined && /\*|password:read/.test(abilities)
      const said = json.knows.map(({ user, operator, how }: any) =>
        `${user === undefined ? ['operator', operator].filter(Boolean).join(':') : user.email || `#${user.id}`} ${how}`)
      const isNarrow = !seesEqual || this.users.get(who)!.tokens.length > 1
      const all = [named(id, ['set', 'read', 'equal']), ...isNarrow ? [named(id, ['set', 'read'])] : []]
      if (!all.includes(said.sort().join())) throw new Defect(`whoKnows tells ${who} of ${id}: ${said}, not ${all[0]}`)
    }
  }
}

const groupsFlag = (groups: readonly string[] | undefined): string => groups === undefined ? ''
  : ` --groups=${groups.join()}`
const someGroups = (random: Random): readonly string[] | undefined => random.int(3) === 0 ? undefined
  : GROUPS.filter(() => random.int(2) === 0)

type Step = (life: Life) => Promise<unknown>

const anyone = ({ random, users }: Life): string => random.pick([...users.keys()])
const anyId = ({ random, present }: Life): number => random.int(12) === 0 ? 999 : random.pick([...present.keys(), 1])

/** One request of anybody, of any kind; with `mayBeCut` its client may go. */
async function request(life: Life, mayBeCut: boolean): Promise<void> {
  const { random, oracle } = life
  const [who, id] = [anyone(life), anyId(life)]
  const cut = mayBeCut && random.int(5) === 0 ? random.pick(['soon', 'half'] as const) : undefined
  const fresh = (): object => { const password = oracle.next(); return { password, usuario: usuarioOf(password) } }
  const grupo = random.pick([...GROUPS, ''])
  const get = ['GET', 'getPassword', id] as const
  const list = ['GET', 'listPassword', 0] as const
  const [method, operation, of, body] = random.pick([
    get, get, get, list, list, ['HEAD', 'getPassword', id], ['HEAD', 'listPassword', 0], ['GET', 'listEntries', 0],
    ['GET', 'historyPassword', id], ['GET', 'deletedPasswords', 0], ['POST', 'deletePassword', id],
    ['POST', 'restorePassword', id], ['POST', 'updatePassword', id, {}],
    ['POST', 'updatePassword', id, { url: `https://${random.int(99)}.x` }], ['POST', 'updatePassword', id, { grupo }],
    ['POST', 'updatePassword', id, { grupo }], ['POST', 'updatePassword', id, fresh()],
    ['POST', 'updatePassword', id, { ...fresh(), grupo }],
    ['POST', 'createPassword', 0, { ...fresh(), sistema: 's', ...grupo !== '' && { grupo } }],
    ['former', '', id]
  ] as readonly (readonly [string, string, number, object?])[])
  const answer = method === 'former'
    ? await life.ask(who, 'GET', 'formerPassword', id, undefined, cut,
      `/api/formerPassword/${id}/${1 + random.int(4)}`)
    : await life.ask(who, method, operation, of, body, cut)
  if (!mayBeCut && !life.isFailing && (answer.status ?? 500) >= 500) {
    throw new Defect(`${operation} is answered ${answer.status} in peace: ${answer.text.slice(-120)}`)
  }
}

/** Many at once, with a command beside them, and perhaps a kill. */
async function burst(life: Life): Promise<void> {
  const { random, oracle } = life
  const isKilled = random.int(3) === 0
  life.isFailing = isKilled
  const asked = Array.from({ length: 6 + random.int(14) }, () => request(life, true))
  const beside = random.pick([undefined, undefined, userGroups, userRemove, history, exported, entryGet, rotate])
  const acting = isKilled ? pause(random.int(30)).then(() => killed(life))
    : Promise.resolve(beside?.(life, true))
  await Promise.all([...asked, acting])
  life.isFailing = false
  for (const [n, program] of life.programs.entries()) if (program === undefined) await life.start(n)
  if (beside === exported) oracle.mayHaveBeenTold('operator', 0)
}

async function killed(life: Life): Promise<void> {
  const n = life.random.int(life.programs.length)
  await life.programs[n]!.stop('SIGKILL')
  life.programs[n] = undefined
}

async function userAdd(life: Life): Promise<void> {
  const { random, users } = life
  const email = random.pick(EMAILS)
  if (!users.has(email)) await life.addUser(email, random.pick(RIGHTS), someGroups(random))
}

async function userRemove(life: Life): Promise<void> {
  const email = anyone(life)
  if (email === OWNER) return
  await life.done(`user remove ${email}`)
  life.users.delete(email)
}

async function userGroups(life: Life): Promise<void> {
  const email = anyone(life)
  if (email === OWNER) return
  const [groups, abilities] = [someGroups(life.random), life.random.pick(RIGHTS)]
  const flag = groups === undefined ? ' --all-groups' : groupsFlag(groups)
  await life.done(`user edit ${email} --abilities ${abilities}${flag}`)
  life.users.set(email, { abilities, groups, tokens: life.users.get(email)!.tokens })
}

async function tokenGroups(life: Life): Promise<void> {
  const email = anyone(life)
  const { groups } = life.users.get(email)!
  await life.issue(email, (groups ?? GROUPS).filter(() => life.random.int(2) === 0))
}

/** Somebody with a list of everything is confined to a group; then something changes, and is read. */
async function narrowed(life: Life): Promise<void> {
  const email = life.random.pick(EMAILS)
  if (!life.users.has(email)) await life.addUser(email, '*', undefined)
  await life.ask(email, 'GET', 'listPassword', 0)
  const groups = [life.random.pick(GROUPS)]
  const { abilities, tokens } = life.users.get(email)!
  await life.done(`user edit ${email}${groupsFlag(groups)}`)
  life.users.set(email, { abilities, groups, tokens })
  for (let n = 0; n < 4; n++) {
    await request(life, false)
    await life.ask(email, 'GET', 'listPassword', 0)
  }
}

/** The same password in two entries; then one of them gets another. */
async function equal(life: Life): Promise<void> {
  const { random, oracle } = life
  await life.check() // what is present
  const [from, to] = [anyId(life), anyId(life)]
  const password = life.present.get(from)
  if (password === undefined || !life.present.has(to) || life.oracle.wasOf(to, password)) return
  await life.ask(OWNER, 'POST', 'updatePassword', to, { password, usuario: usuarioOf(password) })
  if (random.int(2) === 0) await life.ask(anyone(life), 'GET', 'getPassword', random.pick([from, to]))
  await life.check()
  if (random.int(2) === 0) {
    const next = oracle.next()
    await life.ask(OWNER, 'POST', 'updatePassword', from, { password: next, usuario: usuarioOf(next) })
  }
}

/** Somebody sets the password that is there, which changes nothing. */
async function same(life: Life): Promise<void> {
  await life.check() // what is present
  const [who, id] = [anyone(life), anyId(life)]
  const password = life.present.get(id)
  if (password === undefined) return
  const { json } = await life.ask(who, 'POST', 'updatePassword', id, { usuario: usuarioOf(password) })
  if (json?.password?.password === password) {
    await life.ask(anyone(life), 'POST', 'updatePassword', id, { password, usuario: usuarioOf(password) })
  }
}

const shownOf = (out: string): readonly { readonly id: number, readonly password: string }[] => out.trim().split('\n')
  .filter(line => line.startsWith('{')).map(line => JSON.parse(line)).filter(({ password }) => /^PW/.test(password))

async function entryGet(life: Life, isBeside = false): Promise<void> {
  const id = anyId(life)
  const { code, out } = await life.admin(`entry get ${id} --reveal --json`)
  if (code === 0) life.oracle.shown('operator', shownOf(out).map(one => ({ ...one, id })), false)
  else if (isBeside) life.oracle.mayHaveBeenTold('operator', id)
}

async function history(life: Life, isBeside = false): Promise<void> {
  const id = anyId(life)
  const { out } = await life.admin(`entry history ${id} --reveal --json`)
  life.oracle.shown('operator', shownOf(out).map(one => ({ ...one, id })), true)
  if (isBeside) life.oracle.mayHaveBeenTold('operator', id)
}

async function exported(life: Life): Promise<void> {
  const format = life.random.pick(['jsonl', 'bitwarden'])
  const file = life.file()
  const { code } = await life.admin(`export --output ${file} --format ${format} --yes`)
  if (code !== 0) return
  const text = readFileSync(file, 'utf8')
  const byUsuario = new Map([...life.present].map(([id, password]) => [password, id]))
  const found = (text.match(/PW\d+Z/g) ?? []).flatMap(password => {
    const id = byUsuario.get(password)
    return id === undefined ? [] : [{ id, password }]
  })
  life.oracle.shown('operator', found, false)
  // Two entries may have the same one, and what is new since the last check has no id yet.
  if (format === 'jsonl') {
    for (const line of text.trim().split('\n')) life.oracle.shown('operator', shownOf(line), false)
  } else life.oracle.mayHaveBeenTold('operator', 0)
}

async function entryEdit(life: Life): Promise<void> {
  const [id, password] = [anyId(life), life.oracle.next()]
  const { code } = await life.admin(`entry edit ${id} --user ${usuarioOf(password)} --password-stdin`, password)
  if (code === 0) life.oracle.set('operator', id, password)
}

async function purge(life: Life): Promise<void> {
  await life.admin(`entry purge ${anyId(life)} --yes`)
}

const rotate: Step = life => life.isOnEtcd ? Promise.resolve() : life.done('key rotate')

const offline = (...words: readonly string[]): Step => life => life.isOnEtcd ? Promise.resolve()
  : life.between(() => life.done(life.random.pick(words)))

/** A journal takes the place of this one. */
async function put(life: Life, file: string): Promise<void> {
  rmSync(life.journal, { force: true })
  await life.done(`journal restore ${file} --keep-tokens`)
}

async function restart(life: Life): Promise<void> {
  await life.stop(life.random.pick(['SIGTERM', 'SIGKILL']))
  for (const n of life.folders.keys()) await life.start(n)
}

async function backup(life: Life): Promise<void> {
  if (life.isOnEtcd) return
  life.backup = life.file()
  await life.done(`journal backup ${life.backup}`)
}

async function restore(life: Life): Promise<void> {
  if (life.isOnEtcd || life.backup === undefined) return
  await life.between(() => put(life, life.backup!))
  life.oracle.gap()
  await life.refresh()
}

/** Without tokens anybody reads, and nobody is named. */
async function open(life: Life): Promise<void> {
  if (life.isOnEtcd) return
  await life.stop()
  await life.start(0, { auth: 'none' })
  await exchange(life.programs[0]!.url, '', 'GET', '/api/listPassword', undefined, undefined)
  await life.stop()
  await life.start()
  life.oracle.gap()
}

/** The journal is gone: users read what they know, and the rest is refused; what the service holds is rescued. */
async function rescue(life: Life): Promise<void> {
  if (life.isOnEtcd) return
  const { random } = life
  const [aside, rescued] = [life.file(), life.file()]
  await life.check()
  renameSync(life.journal, aside)
  life.isFailing = true
  for (let n = 0; n < 6; n++) await request(life, random.int(2) === 0)
  life.isFailing = false
  if (random.int(2) === 0) {
    const { code, out } = await life.admin(`entry get ${anyId(life)} --reveal --json --unrecorded`)
    if (code === 0) life.oracle.shown('operator', shownOf(out), false)
  }
  await life.done(`journal rescue ${rescued}`)
  await life.between(() => put(life, rescued))
  life.oracle.gap()
  await life.refresh()
}

/** A bit of the journal is another one, and what opens is saved. */
async function salvage(life: Life): Promise<void> {
  if (life.isOnEtcd) return
  const { random } = life
  await life.between(async () => {
    const bytes = readFileSync(life.journal)
    const whole = Buffer.from(bytes)
    bytes[random.int(bytes.length)]! ^= 1 << random.int(8)
    writeFileSync(life.journal, bytes)
    const saved = life.file()
    const { code } = await life.admin(`journal salvage ${life.journal} --to ${saved} --keep-tokens`)
    if (![0, 3].includes(code!)) { writeFileSync(life.journal, whole); return }
    await put(life, saved)
    if (code === 3) life.oracle.salvaged()
    else life.oracle.gap()
  })
  await life.refresh()
}

const requests: Step = async life => { for (let n = 0; n < 6; n++) await request(life, false) }

const STEPS_OF: { readonly [name: string]: Step } = {
  requests, burst, userAdd, userRemove, userGroups, tokenGroups, narrowed, equal, same, entryGet, history, exported,
  entryEdit, purge, rotate, restart, backup, restore, open, rescue, salvage,
  compact: offline('journal compact', 'journal compact --drop-history --yes', 'key rewrite')
}
/** Every life has these, and one of the themes. */
const OFTEN = ['requests', 'requests', 'burst', 'burst', 'userGroups', 'equal']
const THEMES: readonly (readonly string[])[] = [
  ['burst', 'burst', 'restart', 'tokenGroups'], ['backup', 'restore', 'restore'], ['salvage', 'compact', 'userAdd'],
  ['rescue', 'rotate'], ['open', 'restart'], ['compact', 'userRemove', 'userAdd', 'equal'],
  ['entryGet', 'history', 'exported', 'entryEdit', 'purge'], ['narrowed', 'userGroups', 'same', 'burst']
]

/** One life. Throws a `Defect`. */
export async function live(seed: number, etcdUrl?: string): Promise<void> {
  await within(async scope => {
    const random = seeded(seed)
    const etcd = etcdUrl === undefined ? undefined : { url: etcdUrl, prefix: `/life-${seed}` }
    const life = new Life(scope, random, etcd)
    await begin(life, etcd)
    const names = [...OFTEN, ...random.pick(THEMES), random.pick(Object.keys(STEPS_OF))]
    const taken: string[] = []
    try {
      for (let n = 0; n < STEPS; n++) {
        const name = random.pick(names)
        taken.push(name)
        await STEPS_OF[name]!(life)
        await life.check()
      }
      await restart(life)
      await life.check()
    } catch (error) {
      if (error instanceof Error) error.message += `\nafter ${taken.join(', ')}`
      throw error
    } finally {
      await life.stop('SIGKILL')
    }
  })
}

async function begin(life: Life, etcd: { readonly url: string, readonly prefix: string } | undefined): Promise<void> {
  if (etcd === undefined) {
    await life.admin('init')
  } else {
    const secret = randomBytes(32)
    for (const folder of life.folders) {
      mkdirSync(folder)
      writeKeys(folder, secret)
    }
    await callEtcd(etcd.url, '/v3/kv/put', { key: base64(`${etcd.prefix}.key`), value: base64(keyName(secret)) })
  }
  for (const n of life.folders.keys()) await life.start(n)
  await life.addUser(OWNER, '*', undefined)
  for (const email of EMAILS.slice(0, 3)) {
    await life.addUser(email, life.random.pick(RIGHTS), someGroups(life.random))
  }
  for (const grupo of ['', 'a', 'b', 'a', 'b', 'c']) {
    const password = life.oracle.next()
    await life.ask(OWNER, 'POST', 'createPassword', 0,
      { password, usuario: usuarioOf(password), sistema: 's', ...grupo !== '' && { grupo } })
  }
  await life.check()
}
