/**
 * Random lives of the built program with several users, whose every byte an oracle knows: whoever has a present
 * password is named by `audit`, or it says that reads were not recorded; nobody else is named.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openService, type Service } from '../../src/embedding/embedded-service.ts'
import { base64, callEtcd, type Member } from '../support/etcd.ts'
import { keyName, writeKeys } from '../support/journal.ts'
import { seeded, type Random } from '../support/random.ts'
import { within } from '../support/service.ts'
import { system } from '../support/system.ts'
import { Defect } from './state.ts'
import { exchange, usuarioOf } from './knowers.ts'
import {
  anyId, anyone, EMAILS, GROUPS, groupsFlag, Life, OWNER, request, RIGHTS, someGroups, type Kind, type Step
} from './knowers-life.ts'

const STEPS = 22
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

/** A value that no entry has any more is set again; who knew it knows it. */
async function again(life: Life): Promise<void> {
  await life.check() // what is present
  const present = new Set(life.present.values())
  const gone = [...life.oracle.ever].filter(password => !present.has(password))
  if (gone.length === 0) return
  const password = life.random.pick(gone)
  const id = anyId(life)
  if (life.present.has(id)) {
    await life.ask(OWNER, 'POST', 'updatePassword', id, { password, usuario: usuarioOf(password) })
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
  if (code === 0) life.oracle.shown('operator', shownOf(out).map(one => ({ ...one, id })))
  else if (isBeside) life.oracle.mayHaveBeenTold('operator', id)
}

async function history(life: Life, isBeside = false): Promise<void> {
  const id = anyId(life)
  const { out } = await life.admin(`entry history ${id} --reveal --json`)
  life.oracle.shown('operator', shownOf(out).map(one => ({ ...one, id })))
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
  life.oracle.shown('operator', found)
  // Two entries may have the same one, and what is new since the last check has no id yet.
  if (format === 'jsonl') {
    for (const line of text.trim().split('\n')) life.oracle.shown('operator', shownOf(line))
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

const rewrite: Step = life => life.isOnEtcd ? Promise.resolve() : life.between(() => life.done('key rewrite'))

async function compact(life: Life): Promise<void> {
  if (life.isOnEtcd) return
  await life.between(async () => {
    // After a restore or a salvage, an archive of an earlier compaction may have the name.
    for (const name of readdirSync(life.folder)) if (name.startsWith('archive-')) rmSync(join(life.folder, name))
    await life.done(life.random.pick(['journal compact', 'journal compact --drop-history --yes']))
  })
  life.oracle.forget((await life.presentNow()).values())
}

/** A journal takes the place of this one. */
async function put(life: Life, file: string): Promise<void> {
  rmSync(life.journal, { force: true })
  await life.done(`journal restore ${file}${life.random.int(2) === 0 ? ' --keep-tokens' : ''}`)
}

async function restart(life: Life): Promise<void> {
  await life.stop(life.random.pick(['SIGTERM', 'SIGKILL']))
  for (const n of life.folders.keys()) await life.start(n)
}

async function backup(life: Life): Promise<void> {
  if (life.isOnEtcd) return
  await life.ask(OWNER, 'POST', 'createPassword', 0, { ...life.fresh(), sistema: 's' }) // newer than any gap
  const path = life.file()
  await life.done(`journal backup ${path}`)
  life.backup = { path, copied: life.oracle.copied() }
}

async function restore(life: Life): Promise<void> {
  if (life.isOnEtcd) return
  if (life.backup === undefined) await backup(life)
  await life.between(() => put(life, life.backup!.path))
  life.oracle.restored(life.backup!.copied)
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
  const rescued = life.file()
  await life.check()
  rmSync(life.journal)
  life.isFailing = true
  for (let n = 0; n < 6; n++) await request(life, random.int(2) === 0)
  life.isFailing = false
  await life.done(`journal rescue ${rescued}`)
  await life.between(() => put(life, rescued))
  life.oracle.gap()
  life.oracle.forget((await life.presentNow()).values())
  await life.refresh()
}

/** A bit of the journal is another one, and what opens is saved. */
async function salvage(life: Life): Promise<void> {
  if (life.isOnEtcd) return
  const { random } = life
  let wasSaved = false
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
    wasSaved = true
  })
  await life.refresh()
  if (wasSaved) life.oracle.forget((await life.presentNow()).values())
}

/**
 * Somebody of one group reads what nobody has told them yet, while it is moved, deleted, or changed. A first change is
 * under way by then, so the others come into one write.
 */
async function crossing(life: Life): Promise<void> {
  const { random } = life
  const email = random.pick(EMAILS)
  const grupo = random.pick(GROUPS)
  await reader(life, email, [grupo])
  const ids = await made(life, grupo)
  const away = (id: number): Promise<unknown> => random.pick([
    () => life.ask(OWNER, 'POST', 'updatePassword', id, { grupo: GROUPS.find(one => one !== grupo) }),
    () => life.ask(OWNER, 'POST', 'deletePassword', id),
    () => life.ask(OWNER, 'POST', 'updatePassword', id, life.fresh())
  ])()
  const filler = life.ask(OWNER, 'POST', 'createPassword', 0, { ...life.fresh(), sistema: 's' })
  await Promise.all([filler, ...ids.flatMap(id =>
    [life.ask(email, 'GET', 'getPassword', id), away(id), life.ask(email, 'GET', 'listPassword', 0)])])
}

/** The user, with all abilities, of these groups or all, and a token that has not been narrowed. */
async function reader(life: Life, email: string, groups: readonly string[] | undefined): Promise<void> {
  const { users } = life
  if (!users.has(email)) await life.addUser(email, '*', groups)
  await life.done(`user edit ${email} --abilities *${groups === undefined ? ' --all-groups' : groupsFlag(groups)}`)
  users.set(email, { abilities: '*', groups, tokens: [] })
  await life.issue(email)
}

/** Entries that only one user knows, and no gap is behind them. */
async function made(life: Life, grupo?: string): Promise<readonly number[]> {
  const all = Array.from({ length: 4 }, () => life.fresh())
  for (const fields of all) {
    await life.ask(OWNER, 'POST', 'createPassword', 0, { ...fields, sistema: 's', ...grupo !== undefined && { grupo } })
  }
  await life.check() // what is present
  return [...life.present].filter(([, password]) => all.some(one => one.password === password)).map(([id]) => id)
}

/** All users read these, and what else anybody asks for. */
function readers(life: Life, ids: readonly number[]): Promise<unknown> {
  const reads = [...life.users.keys()].flatMap(who => ids.map(id => life.ask(who, 'GET', 'getPassword', id)))
  return Promise.all([...reads, ...Array.from({ length: 6 }, () => request(life, true))])
}

/** An embedding program has the folder for a while: it reads and writes for itself, and for users. */
async function embedded(life: Life): Promise<void> {
  if (life.isOnEtcd) return
  const ids = await made(life)
  await life.between(async () => {
    const service = await openService({ dataDir: life.folder, auth: 'bearer', page: false })
    try {
      for (const id of ids) await Promise.all([id, anyId(life), anyId(life)].map(one => operation(life, service, one)))
    } finally {
      await service.close()
    }
  })
}

async function operation(life: Life, service: Service, id: number): Promise<void> {
  const { random, oracle } = life
  const by = random.int(2) === 0 ? undefined : anyone(life)
  const who = by ?? 'host'
  // An absent user is an absent argument, which overloads cannot take from a spread.
  const host = service as unknown as { readonly [N in keyof Service]: (...given: unknown[]) => Promise<any> }
  const options = by === undefined ? [] : [{ by }]
  const set = async (made: Promise<{ readonly id: number, readonly password: string } | undefined>): Promise<void> => {
    const entry = await made
    if (entry !== undefined) oracle.set(who, entry.id, entry.password)
  }
  const shown = async (read: Promise<unknown>): Promise<void> => {
    const found = [await read].flat().filter(one => one !== undefined) as { id: number, password: string }[]
    oracle.shown(who, found)
  }
  const refused = await random.pick([
    () => shown(host.getPassword(id, ...options)), () => shown(host.getPassword(id, ...options)),
    () => shown(host.listPassword(...options)), () => host.listEntries(...options),
    () => shown(host.updatePassword(id, {}, ...options)),
    () => set(host.updatePassword(id, life.fresh(), ...options)),
    () => set(host.createPassword({ ...life.fresh(), sistema: 's' }, ...options)),
    () => host.deletePassword(id, ...options)
  ])().then(() => undefined, error => error.code)
  const expected = [undefined, 'forbidden', 'input-invalid', 'user-unknown']
  if (!expected.includes(refused)) throw new Defect(`an embedder is refused: ${refused}`)
}

/** The disk is full for a while: what cannot be recorded is not answered. */
async function full(life: Life): Promise<void> {
  if (!life.isSmall) return
  const ids = await made(life)
  const filler = join(life.folder, 'filler')
  system('sh', '-c', `cat /dev/zero > ${filler} 2>&1 || true`)
  life.isFailing = true
  await readers(life, ids)
  await entryGet(life)
  rmSync(filler)
  life.isFailing = false
}

/** etcd is killed while it takes records: what was not recorded was not answered. */
async function outage(life: Life): Promise<void> {
  const { etcd, random } = life
  if (etcd === undefined) return
  const ids = await made(life)
  life.isFailing = true
  const asked = readers(life, ids)
  await pause(random.int(30))
  await etcd.stop('SIGKILL')
  const askedMeanwhile = readers(life, ids) // with stale reads, those who know a password are answered
  await pause(random.int(1_500))
  etcd.start()
  await Promise.all([asked, askedMeanwhile])
  for (let status = 503; status >= 500;) status = (await life.ask(OWNER, 'GET', 'listEntries', 0)).status ?? 503
  life.isFailing = false
}

const requests: Step = async life => { for (let n = 0; n < 6; n++) await request(life, false) }

const STEPS_OF: { readonly [name: string]: Step } = {
  requests, burst, userAdd, userRemove, userGroups, tokenGroups, narrowed, equal, same, entryGet, history, exported,
  entryEdit, purge, rotate, restart, backup, restore, open, rescue, salvage, crossing, again, embedded, full, outage,
  compact, rewrite
}
/** Every life has these, and one of the themes. */
const OFTEN = ['requests', 'requests', 'burst', 'burst', 'userGroups', 'equal']
const THEMES: readonly (readonly string[])[] = [
  ['burst', 'burst', 'restart', 'tokenGroups'], ['backup', 'restore', 'restore'], ['salvage', 'compact', 'userAdd'],
  ['rescue', 'rotate'], ['open', 'restart'], ['compact', 'userRemove', 'userAdd', 'equal'],
  ['entryGet', 'history', 'exported', 'entryEdit', 'purge'], ['narrowed', 'userGroups', 'same', 'burst']
]

export interface How extends Omit<Kind, 'prefix'> {
  /** It takes each kind of step once, in any order. */
  readonly takesAll?: boolean
}

/** One life. Throws a `Defect`. */
export async function live(seed: number, how: How = {}): Promise<void> {
  await within(async scope => {
    const random = seeded(seed)
    const prefix = `/life-${seed}`
    const life = new Life(scope, random, { ...how, prefix })
    await begin(life, how.etcd, prefix)
    const often = [...OFTEN, ...random.pick(THEMES), random.pick(Object.keys(STEPS_OF))]
    const names = how.takesAll === true ? shuffled(random, Object.keys(STEPS_OF))
      : Array.from({ length: STEPS }, () => random.pick(often))
    const taken: string[] = []
    try {
      for (const name of names) {
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

const shuffled = <T>(random: Random, all: readonly T[]): readonly T[] =>
  all.map(one => [random.int(1e9), one] as const).sort(([a], [b]) => a - b).map(([, one]) => one)

async function begin(life: Life, etcd: Member | undefined, prefix: string): Promise<void> {
  if (etcd === undefined) {
    await life.admin('init')
  } else {
    const secret = randomBytes(32)
    for (const folder of life.folders) {
      mkdirSync(folder)
      writeKeys(folder, secret)
    }
    await callEtcd(etcd.url, '/v3/kv/put', { key: base64(`${prefix}.key`), value: base64(keyName(secret)) })
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
