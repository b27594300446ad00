/**
 * A life of the built program with several users: what they ask, and the check that `audit`, the list of exposed
 * entries and the route say the same as the oracle.
 */
import { join } from 'node:path'
import { admin, type Done } from '../support/admin.ts'
import type { Member } from '../support/etcd.ts'
import { startProgram, type Program } from '../support/program.ts'
import type { Random } from '../support/random.ts'
import { freshFolder, type Scope } from '../support/service.ts'
import { smallDisk } from '../support/system.ts'
import { Defect } from './state.ts'
import { exchange, Oracle, personIn, usuarioOf, type Cut, type Exchange, type Row } from './knowers.ts'

export const GROUPS = ['a', 'b', 'c']
export const RIGHTS = ['*', 'password:read', 'password:read,password:update', 'password:read,password:history',
  'password:update', 'password:create,password:read']
const READERS = /\*|password:read|password:update|password:history/
export const EMAILS = ['bea@x', 'carl@x', 'dora@x', 'eve@x']
export const OWNER = 'ana@x'

interface User { readonly abilities: string, readonly groups: readonly string[] | undefined, tokens: string[] }

export interface Kind {
  /** Two instances on it. */
  readonly etcd?: Member
  readonly prefix?: string
  readonly isSmall?: boolean
}

export class Life {
  readonly random: Random
  readonly scope: Scope
  readonly oracle = new Oracle()
  readonly users = new Map<string, User>()
  readonly folders: string[] = []
  readonly programs: (Program | undefined)[] = []
  readonly flags: Record<string, string>[] = []
  /** Of the operator's program. */
  readonly env: Record<string, string>
  readonly etcd: Member | undefined
  /** Its folder is on a small disk, which can be filled. */
  readonly isSmall: boolean
  /** By entry, as of the last check. */
  present = new Map<number, string>()
  backup: { readonly path: string, readonly copied: ReturnType<Oracle['copied']> } | undefined
  #files = 0
  /** Journals fail, or programs are killed: an answer of 500 may be one of a change that was made. */
  isFailing = false

  constructor(scope: Scope, random: Random, { etcd, prefix = '', isSmall = false }: Kind) {
    this.scope = scope
    this.random = random
    this.etcd = etcd
    this.isSmall = isSmall
    this.env = etcd === undefined ? {}
      : { JOURNAL: 'etcd', ETCD_ENDPOINTS: etcd.url, ETCD_PREFIX: prefix }
    const more = etcd === undefined ? {}
      : { journal: 'etcd', 'etcd-endpoints': etcd.url, 'etcd-prefix': prefix,
          ...random.int(3) === 0 && { 'stale-reads': 'on' } }
    for (let n = 0; n < (etcd === undefined ? 1 : 2); n++) {
      const data = isSmall ? smallDisk(scope, '8m') : join(freshFolder(scope), 'data')
      this.folders.push(data)
      this.flags.push({ data, auth: 'bearer', 'extra-routes': 'on', ...more })
    }
  }

  get isOnEtcd(): boolean { return this.etcd !== undefined }
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

  /** The fields of a password that nobody has had. */
  fresh(): { readonly password: string, readonly usuario: string } {
    const password = this.oracle.next()
    return { password, usuario: usuarioOf(password) }
  }

  async check(): Promise<void> {
    const before = JSON.stringify(await this.#listed())
    const { code, out, error } = await this.admin('audit --json')
    if (out === '') throw new Defect(`audit is refused: ${error}`)
    const { knows, unrecordedBefore } = JSON.parse(out) as { readonly knows: readonly Row[],
      readonly unrecordedBefore: { readonly [when: string]: readonly number[] } }
    const unrecorded = new Set(Object.values(unrecordedBefore).flat())
    if ((code === 0) !== (unrecorded.size === 0)) throw new Defect(`audit ends with ${code}, of ${unrecorded.size}`)
    const exposed = await this.admin('entry list --exposed --json')
    const [active, deleted] = await this.#listed()
    // A change may still be under way whose client is gone.
    if (JSON.stringify([active, deleted]) !== before) return this.check()
    this.present = await this.presentNow()
    this.oracle.judge(this.present, knows, unrecorded)
    this.#checkExposed(exposed, knows, [...active, ...deleted], unrecorded.size > 0)
    if (this.programs.some(program => program !== undefined)) await this.#checkRoute(knows)
  }

  /** Passwords by entry, as the user names say. */
  async presentNow(): Promise<Map<number, string>> {
    return new Map((await this.#listed()).flat().map(({ id, usuario }) => [id, usuario.replace('U', 'PW')]))
  }

  async #listed(): Promise<readonly [active: readonly any[], deleted: readonly any[]]> {
    return [await this.done('entry list') ?? [], await this.done('entry list --deleted') ?? []]
  }

  /** The list of what is to be changed has what somebody knows who is gone, or may be told it no more. */
  #checkExposed({ code, out, error }: Awaited<ReturnType<Life['admin']>>, knows: readonly Row[],
    entries: readonly any[], mayBeMore: boolean): void {
    if (code !== (mayBeMore ? 1 : 0)) throw new Defect(`the exposed entries end with ${code}: ${error}`)
    const found = JSON.parse(out).filter(({ exposed }: any) => exposed > 0).map(({ id }: any) => id).join()
    const expected = entries.toSorted((a, b) => a.id - b.id).filter(({ id, grupo }) => knows.some(row => {
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
      const said = json.knows.map(({ user, operator, host, how }: any) => {
        if (user !== undefined) return `${user.email || `#${user.id}`} ${how}`
        return `${host === true ? 'host' : `operator${operator === '' ? '' : `:${operator}`}`} ${how}`
      })
      const isNarrow = !seesEqual || this.users.get(who)!.tokens.length > 1
      const all = [named(id, ['read', 'equal']), ...isNarrow ? [named(id, ['read'])] : []]
      if (!all.includes(said.sort().join())) throw new Defect(`whoKnows tells ${who} of ${id}: ${said}, not ${all[0]}`)
    }
  }
}

export const groupsFlag = (groups: readonly string[] | undefined): string => groups === undefined ? ''
  : ` --groups=${groups.join()}`
export const someGroups = (random: Random): readonly string[] | undefined => random.int(3) === 0 ? undefined
  : GROUPS.filter(() => random.int(2) === 0)

export type Step = (life: Life) => Promise<unknown>

export const anyone = ({ random, users }: Life): string => random.pick([...users.keys()])
export const anyId = ({ random, present }: Life): number =>
  random.int(12) === 0 ? 999 : random.pick([...present.keys(), 1])

/** One request of anybody, of any kind; with `mayBeCut` its client may go. */
export async function request(life: Life, mayBeCut: boolean): Promise<void> {
  const { random } = life
  const [who, id] = [anyone(life), anyId(life)]
  const cut = mayBeCut && random.int(5) === 0 ? random.pick(['soon', 'half'] as const) : undefined
  const grupo = random.pick([...GROUPS, ''])
  const get = ['GET', 'getPassword', id] as const
  const list = ['GET', 'listPassword', 0] as const
  const [method, operation, of, body] = random.pick([
    get, get, get, list, list, ['HEAD', 'getPassword', id], ['HEAD', 'listPassword', 0], ['GET', 'listEntries', 0],
    ['GET', 'historyPassword', id], ['GET', 'deletedPasswords', 0], ['POST', 'deletePassword', id],
    ['POST', 'restorePassword', id], ['POST', 'updatePassword', id, {}],
    ['POST', 'updatePassword', id, { url: `https://${random.int(99)}.x` }], ['POST', 'updatePassword', id, { grupo }],
    ['POST', 'updatePassword', id, { grupo }], ['POST', 'updatePassword', id, () => life.fresh()],
    ['POST', 'updatePassword', id, () => ({ ...life.fresh(), grupo })],
    ['POST', 'createPassword', 0, () => ({ ...life.fresh(), sistema: 's', ...grupo !== '' && { grupo } })],
    ['former', '', id]
  ] as readonly (readonly [string, string, number, (object | (() => object))?])[])
  const answer = method === 'former'
    ? await life.ask(who, 'GET', 'formerPassword', id, undefined, cut,
      `/api/formerPassword/${id}/${1 + random.int(4)}`)
    : await life.ask(who, method, operation, of, typeof body === 'function' ? body() : body, cut)
  if (!mayBeCut && !life.isFailing && (answer.status ?? 500) >= 500) {
    throw new Defect(`${operation} is answered ${answer.status} in peace: ${answer.text.slice(-120)}`)
  }
}
