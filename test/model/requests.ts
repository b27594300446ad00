/** Steps of clients: what users, programs with tokens and strangers ask the service for, alone and at once. */
import { setTimeout as pause } from 'node:timers/promises'
import { seeded, type Random } from '../support/random.ts'
import { system } from '../support/system.ts'
import { join } from 'node:path'
import { rmSync } from 'node:fs'
import { check } from './check.ts'
import { Defect } from './client.ts'
import { usuarioOf } from './knowledge.ts'
import { OWNER, PASSWORD, rightsFlag, Unusable, type Request, type World } from './world.ts'
import { isCertain, setRights, type Fields, type Groups, type Token } from './state.ts'
import { entryGet } from './operator.ts'
import type { Act, Steps } from './steps.ts'

export const GROUPS = ['a', 'b', 'c']
export const EMAILS = ['bea@x', 'carl@x', 'dora@x', 'eve@x']
const SYSTEMS = ['s', 'ü"\\\u0000']

/** Some of the groups, which may be none. */
export const someGroups = (random: Random, of: readonly string[] = GROUPS): readonly string[] =>
  of.filter(() => random.int(2) === 0)

/** The id of an entry there is or was, or of none. */
export function anyId({ state, isAtOnce }: World, random: Random): number {
  const past = isAtOnce || random.int(8) > 0 ? state.entries.length : state.entries.length + 1
  return past === 0 || random.int(12) === 0 ? 999 : 1 + random.int(past)
}

/** Of anybody, also one that has ended; undefined where none is asked for. */
export async function anyToken(world: World, random: Random): Promise<Token | undefined> {
  const { tokens } = world.state
  if (world.isOpen || tokens.length === 0 || random.int(3) === 0) return world.tokenOf(OWNER, random)
  const live = tokens.filter(({ isLive }) => isLive)
  return random.pick(random.int(8) === 0 || live.length === 0 ? tokens : live)
}

type Made = (world: World, random: Random) => Partial<Request>

const grupo = (random: Random): string => random.pick([...GROUPS, ''])
const created: Made = (world, random) => ({ id: 0, body: { ...world.fresh(), sistema: random.pick(SYSTEMS),
  ...random.int(2) === 0 && { grupo: random.pick(GROUPS) } } })
const changed = (bodyOf: (world: World, random: Random) => Partial<Fields>): Made =>
  (world, random) => ({ body: bodyOf(world, random) })
const all: Made = () => ({ id: 0 })
const any: Made = () => ({})
const former: Made = (_world, random) => ({ version: 1 + random.int(4) })
const head: Made = () => ({ method: 'HEAD' })
const headOfAll: Made = () => ({ id: 0, method: 'HEAD' })

const setting = (passwordsOf: (world: World) => readonly (string | undefined)[]): Made => (world, random) => {
  const password = random.pick([...passwordsOf(world), undefined])
  return { body: password === undefined ? {} : { password, usuario: usuarioOf(password) } }
}
/** Who is told it by the answer may set it then. Only alone: a user name must go with its password. */
const same: Made = ({ state, isAtOnce }, random) => {
  const id = 1 + random.int(state.entries.length)
  const password = state.entries[id - 1]?.password
  if (password === undefined || isAtOnce || !isCertain(state, id)) return {}
  return { id, body: { usuario: usuarioOf(password), ...random.int(2) === 0 && { password } } }
}

/** What is asked for, by name; some have no step of their own. */
const ASKED: { readonly [name: string]: readonly (readonly [operation: string, made: Made])[] } = {
  create: [['createPassword', created]],
  update: [['updatePassword', changed(world => world.fresh())],
    ['updatePassword', changed((world, random) => ({ ...world.fresh(), grupo: grupo(random) }))],
    ['updatePassword', changed((_, random) => ({ url: `https://${random.int(99)}.x` }))],
    ['updatePassword', changed(() => ({}))]],
  move: [['updatePassword', changed((_, random) => ({ grupo: grupo(random) }))]],
  delete: [['deletePassword', any]],
  undelete: [['restorePassword', any]],
  read: [['getPassword', any], ['getPassword', any], ['listPassword', all], ['listPassword', all]],
  // The password of another entry, one that was of some entry, or the one that is there.
  equal: [['updatePassword', setting(world => world.state.entries.map(entry => entry?.password))],
    ['updatePassword', setting(({ state: { knows } }) => [...knows.ever])],
    ['updatePassword', same]],
  look: [['getPassword', head], ['listPassword', headOfAll], ['listEntries', all], ['historyPassword', any],
    ['deletedPasswords', all]],
  former: [['formerPassword', former]]
}

/** One request of anybody; with `mayBeCut` its client may go. */
export async function request(world: World, random: Random, mayBeCut = false,
  name: string = random.pick([...Object.keys(ASKED), 'read', 'read', 'update'])): Promise<void> {
  const token = await anyToken(world, random)
  const [operation, make] = random.pick(ASKED[name]!)
  // Where the journal is in no file, histories are not served.
  if (!world.isFile && /^(history|former)/.test(operation)) return
  const cut = mayBeCut && random.int(5) === 0 ? random.pick(['soon', 'half'] as const) : undefined
  await world.ask(token, { operation, id: anyId(world, random), cut, ...make(world, random) })
}

const one = (name: string): Act => (world, random) => request(world, random, false, name)

async function requests(world: World, random: Random): Promise<void> {
  for (let n = 0; n < 5; n++) await request(world, random)
}

/** What is done while many ask; who is at work then does not know the order of what is done. */
async function atOnce(world: World, act: () => Promise<unknown>, isFailing = false): Promise<void> {
  Object.assign(world, { isAtOnce: true, isFailing })
  try { await act() } finally { Object.assign(world, { isAtOnce: false, isFailing: false }) }
}

/** Requests that are under way at the same time, some of which are cut. */
const many = (world: World, random: Random, count: number): Promise<void>[] => Array.from({ length: count }, () =>
  request(world, seeded(random.int(2 ** 31)), true).catch(error => { if (!(error instanceof Unusable)) throw error }))

/** Many at once, with a command beside them. */
export const burst = (beside: readonly Act[]): Act => async (world, random) => {
  await world.tokenOf(OWNER)
  const act = random.pick([undefined, ...world.isSound() && !world.isSocketGone ? beside : []])
  await atOnce(world, () => Promise.all([...many(world, random, 6 + random.int(12)), act?.(world, random)]))
}

/** The service, or on etcd one of two, is ended while many ask. */
const ended = (signal: 'SIGKILL' | 'SIGTERM'): Act => async (world, random) => {
  await world.tokenOf(OWNER)
  await atOnce(world, async () => {
    const asked = many(world, random, 12)
    await pause(random.int(25))
    await world.endOne(random.int(world.servers.length), signal)
    await Promise.all(asked)
  }, true)
  if (!await world.start()) throw new Defect('a start was refused after a burst')
}

async function refused(world: World, random: Random): Promise<void> {
  const [operation, body, wanted] = random.pick([
    ['createPassword', { password: 1, sistema: 's' }, 400], ['createPassword', [], 400],
    ['updatePassword/x', {}, 404], ['nothing', {}, 404],
    ['updatePassword/999999', { sistema: 's' }, 404], ['deletePassword/0', undefined, 404]
  ] as const)
  await world.ask(await world.tokenOf(OWNER), { operation, method: 'POST', body, wanted })
}

async function login(world: World, random: Random): Promise<void> {
  const { users, tokens } = world.state
  const email = random.pick([OWNER, ...EMAILS])
  const password = random.int(3) > 0 ? PASSWORD : 'wrong wrong wrong'
  const user = users.get(email)
  const wanted = world.isOpen ? 404 : password === PASSWORD && user?.hasPassword === true ? 200 : 401
  const asked = { operation: 'login', method: 'POST', body: { email, password }, wanted } as const
  const { status, json } = await world.ask(undefined, asked)
  if (status !== 200) return
  tokens.push({ token: json.token, email, abilities: user!.abilities, groups: undefined, isLive: true })
}

async function logout(world: World, random: Random): Promise<void> {
  const known = random.pick([...world.state.tokens, undefined])
  if (known === undefined || world.isOpen) return
  const { status } = await world.ask(known, { operation: 'logout', method: 'POST', wanted: known.isLive ? 200 : 401 })
  if (status === 200) known.isLive = false
}

async function byOwner(world: World, operation: string, id: number, body?: Partial<Fields>): Promise<unknown> {
  return world.ask(await world.tokenOf(OWNER), { operation, id, body })
}

/** The user, with all abilities, of these groups or all, and a token that has not been narrowed. */
async function reader(world: World, email: string, groups: Groups): Promise<Token> {
  if (!world.state.users.has(email)) await world.addUser(email, ['*'], groups, false)
  else {
    await world.done(`user edit ${email} --abilities *${rightsFlag(groups)}`)
    setRights(world.state, email, ['*'], groups)
  }
  return world.issue(email)
}

/** Entries that only one user knows, and no gap is behind them. */
async function made(world: World, group?: string): Promise<readonly number[]> {
  const before = world.state.entries.length
  for (let n = 0; n < 4; n++) {
    await byOwner(world, 'createPassword', 0, { ...world.fresh(), sistema: 's', ...group && { grupo: group } })
  }
  await check(world)
  return Array.from({ length: world.state.entries.length - before }, (_, n) => before + 1 + n)
}

/** Somebody with a list of everything is confined to a group; then something changes, and is read. */
async function narrowed(world: World, random: Random): Promise<void> {
  const email = random.pick(EMAILS)
  const token = await reader(world, email, undefined)
  const list = (): Promise<unknown> => world.ask(token, { operation: 'listPassword' })
  await list()
  await reader(world, email, [random.pick(GROUPS)])
  for (let n = 0; n < 4; n++) {
    await request(world, random)
    await list()
  }
}

/**
 * Somebody of one group reads what nobody has told them yet, while it is moved, deleted, or changed. A first change is
 * under way by then, so the others come into one write.
 */
async function crossing(world: World, random: Random): Promise<void> {
  const group = random.pick(GROUPS)
  const token = await reader(world, random.pick(EMAILS), [group])
  const ids = await made(world, group)
  const away = (id: number): Promise<unknown> => random.pick([
    () => byOwner(world, 'updatePassword', id, { grupo: GROUPS.find(one => one !== group)! }),
    () => byOwner(world, 'deletePassword', id),
    () => byOwner(world, 'updatePassword', id, world.fresh())
  ])()
  await atOnce(world, () => Promise.all([
    byOwner(world, 'createPassword', 0, { ...world.fresh(), sistema: 's' }),
    ...ids.flatMap(id => [world.ask(token, { operation: 'getPassword', id }), away(id),
      world.ask(token, { operation: 'listPassword' })])]))
}

/** All users read these, and what else anybody asks for. */
function readers(world: World, random: Random, ids: readonly number[]): Promise<unknown> {
  const live = world.isOpen ? [undefined] : world.state.tokens.filter(({ isLive }) => isLive).slice(-5)
  const reads = live.flatMap(token => ids.map(id => world.ask(token, { operation: 'getPassword', id })))
  return Promise.all([...reads, ...many(world, random, 6)])
}

/** The disk is full for a while: what cannot be recorded is not answered. */
async function full(world: World, random: Random): Promise<void> {
  const ids = await made(world)
  const filler = join(world.data, 'filler')
  system('sh', '-c', `cat /dev/zero > ${filler} 2>&1 || true`)
  await atOnce(world, () => readers(world, random, ids), true)
  await entryGet(world, random)
  rmSync(filler)
}

/** The journal is gone: users read what they know, and the rest is refused. */
export async function unrecorded(world: World, random: Random): Promise<void> {
  await atOnce(world, () => Promise.all(many(world, random, 6)), true)
}

/** etcd is killed while it takes records: what was not recorded was not answered. */
async function outage(world: World, random: Random): Promise<void> {
  const ids = await made(world)
  await atOnce(world, async () => {
    const asked = readers(world, random, ids)
    await pause(random.int(30))
    await world.etcd!.stop('SIGKILL')
    const askedMeanwhile = readers(world, random, ids) // with stale reads, those who know a password are answered
    await pause(random.int(1_500))
    world.etcd!.start()
    await Promise.all([asked, askedMeanwhile])
    for (let status = 503; status >= 500;) {
      status = (await world.ask(await world.tokenOf(OWNER), { operation: 'listEntries' })).status ?? 503
    }
  }, true)
}

export const REQUESTS: Steps = {
  create: { when: 'running', beside: true, run: one('create') },
  update: { when: 'running', beside: true, run: one('update') },
  delete: { when: 'running', beside: true, run: one('delete') },
  move: { when: 'running', beside: true, run: one('move') },
  undelete: { when: 'running', beside: true, run: one('undelete') },
  read: { when: 'running', beside: true, run: one('read') },
  refused: { when: 'running', beside: true, run: refused },
  requests: { when: 'running', run: requests },
  killUnderLoad: { when: 'running', run: ended('SIGKILL') },
  stopUnderLoad: { when: 'running', run: ended('SIGTERM') },
  login: { when: 'running', run: login },
  logout: { when: 'running', run: logout },
  equal: { when: 'running', beside: true, run: one('equal') },
  narrowed: { when: 'running', needsCommands: true, run: narrowed },
  crossing: { when: 'running', needsCommands: true, run: crossing },
  full: { when: 'running', on: ['small'], needsCommands: true, run: full },
  outage: { when: 'running', on: ['etcd'], needsCommands: true, run: outage }
}
