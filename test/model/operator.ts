/** Steps of the operator's commands on users, tokens and entries, and of a program that embeds the service. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openService, type Service } from '../../src/embedding/embedded-service.ts'
import type { Random } from '../support/random.ts'
import { Defect } from './client.ts'
import { hasSet, mayHaveBeenTold, wasShown, type Shown } from './knowledge.ts'
import { anyId, EMAILS, GROUPS, someGroups } from './requests.ts'
import { covers, endTokens, idsSeen, isCertain, note, purge, setRights, shown, type Groups,
  type State } from './state.ts'
import type { Act, Steps } from './steps.ts'
import { OWNER, PASSWORD, rightsFlag, type World } from './world.ts'

const RIGHTS = ['*', 'password:read', 'password:read,password:update', 'password:read,password:history',
  'password:update', 'password:create,password:read', 'password:read,password:update,password:delete']
  .map(text => text.split(','))

const anyUser = ({ state }: World, random: Random): string => random.pick([...state.users.keys(), ...EMAILS])
const anyGroups = (random: Random): Groups => random.int(3) === 0 ? undefined : someGroups(random)

/** A user's command, which succeeds where the user is there, and is refused otherwise. */
async function ofUser(world: World, email: string, words: string, input = ''): Promise<boolean> {
  const { code, error } = await world.admin(words.replace('EMAIL', email), input)
  if (code !== 0 && world.mayRefuse()) return false
  if ((code === 0) !== world.state.users.has(email)) throw new Defect(`${words} ends with ${code}: ${error}`)
  if (code !== 0) return false
  world.acknowledged()
  world.noteOperator()
  return true
}

async function userAdd(world: World, random: Random): Promise<void> {
  const email = random.pick(EMAILS)
  if (!world.state.users.has(email)) {
    await world.addUser(email, random.pick(RIGHTS), anyGroups(random), random.int(2) === 0)
    await world.issue(email)
    return
  }
  const { code, error } = await world.admin(`user add ${email} --no-password`)
  if (code === 0) throw new Defect(`a user is added twice: ${email}: ${error}`)
}

async function userRemove(world: World, random: Random): Promise<void> {
  const email = world.isAtOnce ? random.pick(EMAILS) : anyUser(world, random)
  if (!await ofUser(world, email, 'user remove EMAIL')) return
  world.state.users.delete(email)
  endTokens(world.state, email)
}

async function userGroups(world: World, random: Random): Promise<void> {
  const email = random.pick(EMAILS)
  const [groups, abilities] = [anyGroups(random), random.pick(RIGHTS)]
  const words = `user edit EMAIL --abilities ${abilities}${rightsFlag(groups)}`
  if (await ofUser(world, email, words)) setRights(world.state, email, abilities, groups)
}

async function userPassword(world: World, random: Random): Promise<void> {
  const email = anyUser(world, random)
  if (!await ofUser(world, email, 'user password EMAIL --password-stdin', `${PASSWORD}\n`)) return
  world.state.users.set(email, { ...world.state.users.get(email)!, hasPassword: true })
  endTokens(world.state, email)
}

async function tokenRevokeAll(world: World, random: Random): Promise<void> {
  const email = anyUser(world, random)
  if (await ofUser(world, email, 'token revoke --all EMAIL')) endTokens(world.state, email)
}

/** A token of a user's rights, of fewer abilities, or of fewer groups. */
async function tokenIssue(world: World, random: Random,
  groupsOf: (has: Groups) => Groups = () => undefined): Promise<void> {
  const email = random.pick([...world.state.users.keys(), undefined])
  if (email === undefined || !world.isSound()) return
  const { abilities, groups } = world.state.users.get(email)!
  const fewer = ['password:read', 'password:update'].filter(one => covers(abilities, one)).slice(0, 1 + random.int(2))
  await world.issue(email, random.int(2) === 0 || fewer.length === 0 ? undefined : fewer, groupsOf(groups))
}

const tokenGroups: Act = (world, random) => tokenIssue(world, random, has => someGroups(random, has ?? GROUPS))

/** Some people, and some entries that one of them has made. */
async function team(world: World, random: Random): Promise<void> {
  const owner = await world.tokenOf(OWNER)
  for (let n = 0; n < 3; n++) await userAdd(world, random)
  for (const group of ['', 'a', 'b', 'a', 'c']) {
    await world.ask(owner, { operation: 'createPassword',
      body: { ...world.fresh(), sistema: 's', ...group !== '' && { grupo: group } } })
  }
}

const shownIn = (id: number, out: string): Shown[] => out.split('\n').filter(line => line.startsWith('{'))
  .map(line => ({ id, password: JSON.parse(line).password as string })).filter(({ password }) => /^PW/.test(password))

export async function entryGet(world: World, random: Random): Promise<void> {
  const id = anyId(world, random)
  const { code, out } = await world.admin(`entry get ${id} --reveal --json`)
  if (code === 0) wasShown(world.state.knows, 'operator', shownIn(id, out))
  else if (world.isAtOnce) mayHaveBeenTold(world.state.knows, 'operator', id, world.passwords.slice(-60))
}

/** The history has each password that the entry is known to have had since it began, and none that nobody set. */
async function history(world: World, random: Random): Promise<void> {
  const { state, isAtOnce } = world
  const id = anyId(world, random)
  const { code, out } = await world.admin(`entry history ${id} --reveal --json`)
  const found = shownIn(id, out)
  wasShown(state.knows, 'operator', found)
  if (isAtOnce) { mayHaveBeenTold(state.knows, 'operator', id, world.passwords.slice(-60)); return }
  if (code !== 0) return
  const lacking = [...state.former.get(id) ?? []].filter(former => !found.some(({ password }) => password === former))
  if (lacking.length > 0) throw new Defect(`a history lacks what was set: ${id}, ${lacking}`)
  const foreign = found.filter(({ password }) => state.knows.of.get(id)?.has(password) !== true)
  if (foreign.length > 0 && isCertain(state, id)) {
    throw new Defect(`a history has what nobody set: ${JSON.stringify(foreign)}`)
  }
}

/** An export of two forms; one is whole, to the byte. */
async function exported(world: World, random: Random): Promise<void> {
  const { state } = world
  const [file, format] = [world.file(), random.pick(['jsonl', 'bitwarden'])]
  const { code } = await world.admin(`export --output ${file} --format ${format} --yes`)
  if (code !== 0) return
  if (world.isAtOnce) mayHaveBeenTold(state.knows, 'operator', 0, world.passwords.slice(-60))
  const text = readFileSync(file, 'utf8')
  const ids = idsSeen(state, undefined)
  const all = ids.map(id => shown(id, state.entries[id - 1]!) as Shown)
  const rows: Shown[] = format === 'bitwarden' ? all.filter(({ password }) => text.includes(password))
    : text.split('\n').filter(line => line !== '').map(line => JSON.parse(line))
  wasShown(state.knows, 'operator', rows)
  const isJudged = format === 'jsonl' && !world.isAtOnce && state.open.length === 0
  if (!isJudged || JSON.stringify(rows) === JSON.stringify(all)) return
  throw new Defect(`an export holds something else: ${text}, not ${JSON.stringify(all)}`)
}

/** Passwords that come from elsewhere may be known to others. */
async function imported(world: World, random: Random): Promise<void> {
  const { state } = world
  if (!world.isSound() || !isCertain(state, 0)) return
  const file = join(world.home, 'import.jsonl')
  rmSync(file, { force: true })
  const some = Array.from({ length: 1 + random.int(3) }, () => ({ ...world.fresh(), sistema: 's', status: 1 as const }))
  writeFileSync(file, some.map(entry => JSON.stringify(entry)).join('\n'))
  await world.done(`import ${file}`)
  for (const entry of some) {
    note(state, 0, entry, true, true)
    hasSet(state.knows, 'operator', state.entries.length, entry.password)
    state.knows.unrecorded.add(entry.password)
  }
  world.acknowledged()
  world.noteOperator()
}

async function entryAdd(world: World): Promise<void> {
  const { state } = world
  if (!world.isSound()) return
  const { password, usuario } = world.fresh()
  const [{ id }] = await world.done(`entry add --system s --user ${usuario} --password-stdin`, `${password}\n`)
  if (isCertain(state, 0) && id !== state.entries.length + 1) throw new Defect(`id ${id} is given again, or left out`)
  note(state, 0, { password, usuario, sistema: 's' }, true, true)
  hasSet(state.knows, 'operator', id, password)
  world.acknowledged()
  world.noteOperator()
}

/** A command on an entry, which succeeds where the entry is there. */
function ofEntry(words: string, make: (state: State, id: number) => void): Act {
  return async (world, random) => {
    const { state } = world
    const id = anyId(world, random)
    const { code, error } = await world.admin(words.replace('ID', String(id)))
    if (code !== 0 && (world.mayRefuse() || !isCertain(state, id))) return
    if ((code === 0) !== Boolean(state.entries[id - 1])) throw new Defect(`${words} ends with ${code}: ${id}: ${error}`)
    if (code !== 0) return
    make(state, id)
    world.acknowledged()
    world.noteOperator()
  }
}

async function entryEdit(world: World, random: Random): Promise<void> {
  const [id, { password, usuario }] = [anyId(world, random), world.fresh()]
  const { code } = await world.admin(`entry edit ${id} --user ${usuario} --password-stdin`, password)
  if (code !== 0) return
  note(world.state, id, { password, usuario }, true, true)
  hasSet(world.state.knows, 'operator', id, password)
  world.acknowledged()
  world.noteOperator()
}

/** An embedding program has the folder for a while: it reads and writes for itself, and for users. */
async function embedded(world: World, random: Random): Promise<void> {
  const service = await openService({ dataDir: world.data, auth: 'bearer', page: false })
  world.noteRecording(true)
  world.isAtOnce = true
  try {
    for (let n = 0; n < 4; n++) await Promise.all([1, 2, 3].map(() => operation(world, service, random)))
  } finally {
    world.isAtOnce = false
    await service.close()
  }
}

async function operation(world: World, service: Service, random: Random): Promise<void> {
  const { state, people } = world
  const id = anyId(world, random)
  const by = random.int(2) === 0 ? undefined : random.pick([...state.users.keys(), undefined])
  const who = by ?? 'host'
  people.add(who)
  // An absent user is an absent argument, which overloads cannot take from a spread.
  const host = service as unknown as { readonly [N in keyof Service]: (...given: unknown[]) => Promise<any> }
  const options = by === undefined ? [] : [{ by }]
  const fields = { ...world.fresh(), sistema: 's' }
  const set = async (asked: number, made: Promise<any>): Promise<void> => {
    const entry = await made
    if (entry === undefined) return
    const { password, usuario, sistema, grupo } = entry
    note(state, asked, asked > 0 ? { password, usuario } : { password, usuario, sistema, grupo }, true, false)
    hasSet(state.knows, who, entry.id, entry.password)
    world.acknowledged()
  }
  const read = async (made: Promise<unknown>): Promise<void> => {
    wasShown(state.knows, who, [await made].flat().filter(one => one !== undefined) as Shown[])
  }
  const refused = await random.pick([
    () => read(host.getPassword(id, ...options)), () => read(host.getPassword(id, ...options)),
    () => read(host.listPassword(...options)), () => host.listEntries(...options),
    () => read(host.updatePassword(id, {}, ...options)),
    () => set(id, host.updatePassword(id, { password: fields.password, usuario: fields.usuario }, ...options)),
    () => set(0, host.createPassword(fields, ...options)),
    async () => { if (await host.deletePassword(id, ...options)) note(state, id, { status: 0 }, true, false) }
  ])().then(() => undefined, error => error.code)
  const expected = [undefined, 'forbidden', 'input-invalid', 'user-unknown']
  if (!expected.includes(refused)) throw new Defect(`an embedder is refused: ${refused}`)
}

export const BESIDE: readonly Act[] = [userGroups, userRemove, history, exported, entryGet]

const ANY = { when: 'any', needsCommands: true } as const

export const OPERATOR: Steps = {
  team: { when: 'running', needsCommands: true, run: team },
  userAdd: { ...ANY, run: userAdd },
  userRemove: { ...ANY, run: userRemove },
  userGroups: { ...ANY, run: userGroups },
  userPassword: { ...ANY, run: userPassword },
  tokenIssue: { ...ANY, run: (world, random) => tokenIssue(world, random) },
  tokenGroups: { ...ANY, run: tokenGroups },
  tokenRevokeAll: { ...ANY, run: tokenRevokeAll },
  entryGet: { ...ANY, run: entryGet },
  entryAdd: { ...ANY, run: entryAdd },
  entryEdit: { ...ANY, run: entryEdit },
  entryDelete: { ...ANY, run: ofEntry('entry delete ID', (state, id) => note(state, id, { status: 0 }, true, true)) },
  entryRestore: { ...ANY, run: ofEntry('entry restore ID', (state, id) => note(state, id, { status: 1 }, true, true)) },
  entryPurge: { ...ANY, run: ofEntry('entry purge ID --yes', purge) },
  history: { ...ANY, run: history },
  exported: { ...ANY, run: exported },
  imported: { ...ANY, run: imported },
  embedded: { when: 'stopped', on: ['file', 'small'], needsCommands: true, run: embedded }
}
