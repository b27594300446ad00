/** What holds after every step: what is served, who is named, what a token shows; and what a journal says of itself. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { NO_PYTHON, PYTHON } from '../support/programs.ts'
import { seeded, type Random } from '../support/random.ts'
import { Defect } from './client.ts'
import { judge, passwordBy, personIn, type Row } from './knowledge.ts'
import { covers, groupsOf, idsSeen, mayBeTold, settle, shown, shownOpen, type Entry, type Token } from './state.ts'
import { OWNER, PROGRAM, Unusable, type World } from './world.ts'

const VERIFIER = join(PROGRAM, 'test', 'verify.py')
/** A journal that is read again and again goes on changing only while a client's change is under way. */
const MAX_LOOKS = 50

export async function check(world: World): Promise<void> {
  await checked(world).catch(error => { if (!(error instanceof Unusable)) throw error })
}

async function checked(world: World): Promise<void> {
  const { state, server, pending } = world
  if (world.isSplit || world.isMissing()) return
  const mayAsk = pending === undefined && !world.isSocketGone && world.isSound()
  if (server === undefined ? !mayAsk : pending !== undefined && state.open.length > 0) return
  const random = seeded(world.checks++)
  const found = await settled(world, mayAsk)
  if (server === undefined) return
  if (mayAsk) await checkRoute(world, random, found)
  await checkTokens(world, random)
  if (world.checks % 4 === 0) await readAll(world, random)
}

type Found = ReadonlyMap<number, Entry>

/** Takes the entries as they are, and judges who is named, between two looks that are alike. */
async function settled(world: World, mayAsk: boolean): Promise<readonly Row[]> {
  let before = await entriesOf(world)
  for (let looks = 0; ; looks++) {
    const answers = mayAsk ? await audited(world) : undefined
    const after = answers === undefined || world.server === undefined ? before : await entriesOf(world)
    if (JSON.stringify([...before]) === JSON.stringify([...after])) {
      settle(world.state, after)
      if (answers === undefined) return []
      judgeAudit(world, after, answers)
      return answers.audit.knows
    }
    if (looks > MAX_LOOKS) throw new Defect('entries change and change')
    before = after
  }
}

/** All entries, without their passwords, which their user names say. */
export async function entriesOf(world: World): Promise<Found> {
  const rows: any[] = []
  if (world.server === undefined) {
    for (const [words, status] of [['entry list', 1], ['entry list --deleted', 0]] as const) {
      rows.push(...(await world.done(words)).map(row => ({ ...row, status })))
    }
  } else {
    const token = await world.tokenOf(OWNER)
    for (const operation of ['listEntries', 'deletedPasswords']) {
      const { status, json } = await world.ask(token, { operation })
      if (status !== 200) throw new Defect(`${operation} is answered ${status}`)
      rows.push(...json.passwords ?? json)
    }
  }
  rows.sort((a, b) => a.id - b.id)
  return new Map(rows.map(({ id, sistema, usuario, url, grupo, status }) => [id, { password: passwordBy(usuario),
    sistema, usuario, ...url && { url }, ...grupo && { grupo }, status }]))
}

interface Audited {
  readonly audit: { readonly knows: readonly Row[], readonly unrecordedBefore: { readonly [when: string]: number[] } }
  readonly code: number | null
  readonly exposed: { readonly code: number | null, readonly rows: readonly any[] }
}

async function audited(world: World): Promise<Audited> {
  const { code, out, error } = await world.admin('audit --json')
  if (out === '') throw new Defect(`audit is refused: ${error}`)
  const exposed = await world.admin('entry list --exposed --json')
  if (exposed.code !== 0 && exposed.code !== 1) throw new Defect(`the exposed entries are refused: ${exposed.error}`)
  const rows = exposed.out.split('\n').filter(line => line !== '').flatMap(line => JSON.parse(line))
  return { audit: JSON.parse(out), code, exposed: { code: exposed.code, rows } }
}

function judgeAudit(world: World, found: Found, { audit, code, exposed }: Audited): void {
  const { state, people } = world
  const { knows, unrecordedBefore } = audit
  const unrecorded = new Set(Object.values(unrecordedBefore).flat())
  if ((code === 0) !== (unrecorded.size === 0)) throw new Defect(`audit ends with ${code}, of ${unrecorded.size}`)
  const present = new Map([...found].map(([id, { password }]) => [id, password]))
  judge(state.knows, people, present, knows, unrecorded, state.isRecording)
  if (exposed.code !== (unrecorded.size > 0 ? 1 : 0)) throw new Defect(`the exposed entries end with ${exposed.code}`)
  // What somebody knows who is gone, or may be told it no more.
  const expected = [...found].filter(([id, { grupo }]) => knows.some(row => {
    const user = state.users.get(row.who)
    if (row.id !== id || /^(operator|host)/.test(row.who)) return false
    return user === undefined || !mayBeTold(user, grupo)
  })).map(([id]) => id).join()
  const named = exposed.rows.filter(row => row.exposed > 0).map(({ id }) => id).join()
  if (named !== expected) throw new Defect(`exposed are ${expected || 'none'}, and not ${named}`)
}

/** The route says what the command says; to a user of a group, nothing of equal passwords. */
async function checkRoute(world: World, random: Random, knows: readonly Row[]): Promise<void> {
  const { state } = world
  const id = 1 + random.int(state.entries.length + 1)
  const named = (hows: readonly string[]): string => knows.filter(row => row.id === id && hows.includes(row.how))
    .map(({ who, how }) => `${personIn(who)} ${how}`).sort().join()
  for (const token of world.isOpen ? [undefined] : someOf(state.tokens.filter(({ isLive }) => isLive), random, 3)) {
    const { status, json } = await world.ask(token, { operation: 'whoKnows', id })
    if (status !== 200) continue
    const seesEqual = token === undefined ||
      (groupsOf(state, token) === undefined && covers(token.abilities, 'password:read'))
    const said = json.knows.map(({ user, operator, host, how }: any) => {
      if (user !== undefined) return `${user.email || `#${user.id}`} ${how}`
      return `${host === true ? 'host' : `operator${operator === '' ? '' : `:${operator}`}`} ${how}`
    }).sort().join()
    const right = named(seesEqual ? ['read', 'equal'] : ['read'])
    if (said !== right) throw new Defect(`whoKnows tells ${token?.email} of ${id}: ${said}, not ${right}`)
  }
}

const someOf = <T>(all: readonly T[], random: Random, most: number): readonly T[] =>
  all.length <= most ? all : Array.from({ length: most }, () => random.pick(all))

/** A token shows the entries of its groups, and no others; one that has ended shows nothing. No password is told. */
async function checkTokens(world: World, random: Random): Promise<void> {
  const { state } = world
  for (const token of world.isOpen ? [] : [...state.tokens.slice(-1), ...someOf(state.tokens, random, 2)]) {
    const { status, json } = await world.ask(token, { operation: 'listEntries' })
    if (status !== 200 || state.open.length > 0) continue
    const groups = groupsOf(state, token)
    const right = JSON.stringify(idsSeen(state, groups, 1).map(id => shownOpen(id, state.entries[id - 1]!)))
    const said = JSON.stringify(json.map(({ id, status, sistema, usuario, url, grupo }: any) =>
      shownOpen(id, { sistema, usuario, url, grupo, status } as Entry)))
    if (said !== right) throw new Defect(`the list of ${groups} is another one: ${said}, not ${right}`)
    if (groups === undefined) continue
    const ids = [...state.entries.keys(), state.entries.length].map(at => at + 1)
    await Promise.all(ids.map(id => world.ask(token, { operation: 'getPassword', id, method: 'HEAD' })))
  }
}

/** Somebody reads all that is in sight, which is served as it must be, to the byte. */
export async function readAll(world: World, random: Random, who?: Token): Promise<void> {
  const { state } = world
  const readers = state.tokens.filter(({ isLive, abilities }) => isLive && covers(abilities, 'password:read'))
  if (state.open.length > 0 || world.mayRefuse() || (!world.isOpen && readers.length === 0)) return
  const token = world.isOpen ? undefined : who ?? random.pick(readers)
  const groups = token && groupsOf(state, token)
  const entry = (id: number): object => shown(id, state.entries[id - 1]!)
  const { status, text } = await world.ask(token, { operation: 'listPassword' })
  const active = idsSeen(state, groups, 1)
  if (status === 200 && !text.endsWith(`\r\n\r\n${JSON.stringify(active.map(entry))}`)) {
    throw new Defect(`the list is another: ${text}, not ${JSON.stringify(active.map(entry))}`)
  }
  for (const id of idsSeen(state, groups, 0)) {
    const { text } = await world.ask(token, { operation: 'getPassword', id })
    if (text.endsWith(JSON.stringify({ passwords: entry(id), status: 200 }))) continue
    throw new Defect(`an entry is another one: ${text}, not ${JSON.stringify(entry(id))}`)
  }
}

/** What `journal verify` and `verify.py` say of a journal: its head, or undefined where it is damaged. */
export async function verified(world: World, path = world.journal, isWhole = true): Promise<string | undefined> {
  const { code, out, error } = await world.admin(`journal verify ${path} --json`)
  const other = NO_PYTHON === false ? spawnSync(PYTHON, [VERIFIER, path, '--key', world.keyFile], { encoding: 'utf8' })
    : undefined
  const { status = code, stdout = undefined } = other ?? {}
  if ((code === 0) !== (status === 0)) throw new Defect(`verify and verify.py differ: ${code} ${error} ${stdout}`)
  if (code !== 0) {
    if (isWhole) throw new Defect(`a journal does not verify: ${error.replaceAll(world.home, '')}`)
    return undefined
  }
  const { records, head, tornBytes, entries, active } = JSON.parse(out)
  if (stdout?.startsWith(`${records} records, head ${head}`) === false) {
    throw new Defect(`verify.py says ${stdout}, verify ${out}`)
  }
  const { state } = world
  const isKnown = isWhole && tornBytes === 0 && state.open.length === 0 && path === world.journal
  const [right, rightActive] = [idsSeen(state, undefined), idsSeen(state, undefined, 1)].map(ids => ids.length)
  if (isKnown && (active !== rightActive || entries !== right)) {
    throw new Defect(`verify counts ${entries} entries, ${active} active, not ${right}, ${rightActive}`)
  }
  return String(head)
}
