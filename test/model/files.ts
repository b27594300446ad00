/** Steps on the files of the service: its starts and ends, keys, compactions, copies, damage and loss. */
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Random } from '../support/random.ts'
import { check, entriesOf, verified } from './check.ts'
import { Defect } from './client.ts'
import { salvaged } from './knowledge.ts'
import { unrecorded } from './requests.ts'
import { copyOf, emptyState, endTokens, takeSalvaged, type State } from './state.ts'
import type { Act, Steps } from './steps.ts'
import type { World } from './world.ts'

async function restart(world: World, random: Random): Promise<void> {
  await world.end(random.pick(['SIGTERM', 'SIGKILL']))
  await world.start()
}

async function startTwice(world: World): Promise<void> {
  if (world.isSocketGone) return
  const [server] = world.servers
  world.servers = [undefined]
  const before = readFileSync(world.journal)
  const isSecond = await world.start().catch((error: Error) => {
    if (!/^a start is refused: error: .* belongs to process/.test(error.message)) throw error
    return false
  })
  if (isSecond) throw new Defect('two services have one folder')
  world.servers = [server]
  if (!readFileSync(world.journal).equals(before)) throw new Defect('a start that was refused changed the journal')
}

/** From now on nobody needs a token, and nobody is named who reads; or the other way round. */
async function openUp(world: World): Promise<void> {
  world.isOpen = !world.isOpen
  await world.start()
}

/** A rewriting needs the service stopped, and says so; then it is stopped. */
async function refusedBesideService(world: World, words: string): Promise<void> {
  if (world.server === undefined || world.isSocketGone) return
  const { code, error } = await world.admin(words)
  if (code === 0 || (world.isSound() && !/stop the service, run the command again/.test(error))) {
    throw new Defect(`${words} beside a service: ${error}`)
  }
  await world.end('SIGTERM')
}

/** Whether the key file lacks a key that was in it, which a process may use. */
const hasForgottenKeys = (world: World): boolean =>
  [...world.keyLines].some(line => !readFileSync(world.keyFile, 'utf8').includes(line))

/** A command that writes the journal again, or makes a key. */
const maintenance = (words: string): Act => async world => {
  if (!words.includes('rotate')) await refusedBesideService(world, words)
  const mayFail = !world.isSound() || hasForgottenKeys(world)
  const running = world.admin(words)
  // It waits for what is held, wherever that is, and not for ever.
  if (world.pending !== undefined) {
    await pause(300)
    await world.release()
  }
  const { code, error } = await running
  // An archive of this name may be one of another journal that was here before.
  if (code !== 0 && !mayFail && !/\.jsonl exists already/.test(error)) throw new Defect(`${words} is refused: ${error}`)
  if (code !== 0) return
  world.noteOperator()
  world.rewritten(words)
  if (words.includes('compact')) await assertPurged(world)
}

/** A journal that was compacted holds no purged value, and nothing is left of what was written. */
async function assertPurged(world: World): Promise<void> {
  const copy = world.file() // which an operator is shown without a record
  copyFileSync(world.journal, copy)
  const { code, out } = await world.admin(`journal show ${copy} --reveal --json`)
  const present = new Set(world.state.entries.map(entry => entry?.password))
  const held = world.state.purged.filter(value => !present.has(value) && out.includes(value))
  if (code === 0 && held.length > 0) throw new Defect(`a compacted journal holds a purged value: ${held}`)
  const left = readdirSync(world.data).filter(name => /\.part$/.test(name))
  if (left.length > 0) throw new Defect(`leftovers: ${left}`)
}

const begun = (words: string): Act => async world => {
  await refusedBesideService(world, words)
  await world.begin(words, 'rewrite', '')
}

async function backup(world: World): Promise<void> {
  const path = world.file()
  if (!world.isSound() || world.state.open.length > 0) return
  await world.done(`journal backup ${path}`)
  if (readFileSync(path).length === 0) return // it cannot be restored
  world.backups.push({ path, state: copyOf(world.state) })
  await verified(world, path)
}

/** What the journal says once a copy of that state is restored. */
function restored(world: World, state: State, keepsTokens: boolean): State {
  const copy = copyOf(state)
  if (!keepsTokens) endTokens(copy)
  world.gap(copy)
  return copy
}

const keptFlag = (keepsTokens: boolean): string => keepsTokens ? ' --keep-tokens' : ''

/** A journal takes the place of this one; `state`: what it says. */
async function put(world: World, file: string, state: State, random: Random): Promise<void> {
  const keepsTokens = random.int(2) === 0
  rmSync(world.journal, { force: true })
  await world.done(`journal restore ${file}${keptFlag(keepsTokens)}`)
  world.state = { ...restored(world, state, keepsTokens), rewrittenBytes: statSync(file).size }
  world.noteKeys()
}

/** Only where no journal is in its way; held half-way. */
async function beginRestore(world: World, random: Random): Promise<void> {
  if (world.backups.length === 0) return
  const { path, state } = random.pick(world.backups)
  // One that only began is in nobody's way.
  const saysMore = !world.isMissing() &&
    /"type":"(?!(journal|recording)\.begun)/.test(readFileSync(world.journal, 'latin1'))
  if (saysMore && (await world.admin(`journal restore ${path}`)).code !== 1) {
    throw new Defect('a restore took the place of a journal')
  }
  keep(world)
  exchange(world, random.pick([Buffer.alloc(0), undefined]), emptyState())
  const keepsTokens = random.int(2) === 0
  await world.begin(`journal restore ${path}${keptFlag(keepsTokens)}`, 'read', path,
    restored(world, state, keepsTokens))
}

/** Puts something in the place of the journal; nothing runs. */
function exchange(world: World, bytes: Buffer | undefined, state: State): void {
  rmSync(world.journal, { force: true })
  if (bytes !== undefined) writeFileSync(world.journal, bytes, { mode: 0o600 })
  world.state = copyOf(state)
}

function keep(world: World): void {
  if (world.isMissing() || world.state.open.length > 0) return
  world.saved.push({ bytes: readFileSync(world.journal), state: copyOf(world.state) })
}

async function putJournalBack(world: World, random: Random): Promise<void> {
  if (world.saved.length === 0) return
  keep(world)
  const { bytes, state } = random.pick(world.saved)
  exchange(world, bytes, state)
}

async function init(world: World): Promise<void> {
  const isNew = world.isMissing()
  if (!isNew && !world.isSound()) return
  const left = isNew ? world.statesLeft() : []
  if (left.length > 0) {
    const { code, error } = await world.admin('init')
    if (code !== 1 || !error.includes(left[0]!)) throw new Defect(`init beside ${left[0]}: ${code} ${error}`)
    for (const path of left) rmSync(path)
  }
  await world.done('init')
  if (!isNew) return
  world.state = emptyState()
  world.isBegun = true
}

/** The journal is gone while the service runs: what the service holds is rescued. */
async function rescue(world: World, random: Random): Promise<void> {
  if (!world.isSound() || world.isSocketGone || world.state.open.length > 0) return
  const file = world.file()
  await world.tokenOf('ana@example.org')
  rmSync(world.journal)
  const { state } = world
  await unrecorded(world, random)
  await world.done(`journal rescue ${file}`)
  await world.end(random.pick(['SIGTERM', 'SIGKILL']))
  await put(world, file, state, random)
  world.state.open = []
  world.forget()
}

/** A bit of the journal is another one, and what opens is saved: all of it, where it is said that nothing is lost. */
async function salvage(world: World, random: Random): Promise<void> {
  if (!world.isSound() || world.state.open.length > 0) return
  const whole = readFileSync(world.journal)
  const bytes = Buffer.from(whole)
  bytes[random.int(bytes.length)]! ^= 1 << random.int(8)
  writeFileSync(world.journal, bytes)
  const file = world.file()
  const { code, out } = await world.admin(`journal salvage ${world.journal} --to ${file} --keep-tokens --json`)
  if (code !== 0 && code !== 3) { writeFileSync(world.journal, whole); return }
  await put(world, file, world.state, random)
  if (code === 3) {
    const { state } = world
    const users = await world.done('user list')
    state.users = new Map(users.map(({ email, abilities, groups }: any) =>
      [email, { abilities, groups: groups ?? undefined, hasPassword: state.users.get(email)?.hasPassword ?? false }]))
    takeSalvaged(state, await entriesOf(world), JSON.parse(out).nextId)
    salvaged(state.knows)
  }
  world.forget()
  if (!await world.start()) throw new Defect('a start is refused on what a salvage has saved')
}

/** Where the last write to the journal begins: with the last line whose nonce says so. */
function lastWriteOf(bytes: Buffer): number {
  let at = 0
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf('\n', start)
    const line = bytes.toString('latin1', start, end)
    if (Buffer.from(/"sealed":"([^"]+)"/.exec(line)![1]!.slice(0, 4), 'base64')[0]! >= 128) at = start
    start = end + 1
  }
  return at
}

/** A file that was cut, or lost a sector, or has a bit flipped, and whether that may look like a write that was cut. */
function damaged(bytes: Buffer, rewrittenBytes: number, random: Random): { bytes: Buffer, mayBeTorn: boolean } {
  const kind = random.pick(['cut', 'cut', 'end', 'line', 'sector', 'sector', 'flip'])
  const lines = [...bytes.keys()].filter(at => bytes[at] === 10)
  const at = { cut: 1 + random.int(bytes.length - 1), end: bytes.length - 10, line: 1 + random.pick(lines),
    sector: 512 * random.int(bytes.length / 512), flip: random.int(bytes.length) }[kind]!
  if (['cut', 'end', 'line'].includes(kind)) return { bytes: bytes.subarray(0, at), mayBeTorn: at >= rewrittenBytes }
  const changed = Buffer.from(bytes)
  if (kind === 'flip') changed[at]! ^= 1 << random.int(8)
  else changed.fill(0, at, Math.min(at + 512, changed.length))
  const end = kind === 'flip' ? at + 1 : at + 512
  return { bytes: changed, mayBeTorn: at >= rewrittenBytes && end > lastWriteOf(bytes) }
}

/** Damages the journal: what is missing is refused, and nothing is changed; then the journal is put back. */
async function damage(world: World, random: Random): Promise<void> {
  if (world.isMissing() || world.lackingKeys().length > 0) return
  const whole = readFileSync(world.journal)
  if (whole.length < 600) return
  const { bytes, mayBeTorn } = damaged(whole, world.state.rewrittenBytes, random)
  if (mayBeTorn || bytes.equals(whole) || bytes.length === 0) return
  const path = join(world.home, 'damaged.jsonl')
  writeFileSync(path, bytes)
  if (await verified(world, path, false) !== undefined) throw new Defect('a damaged journal verifies')
  writeFileSync(world.journal, bytes)
  const { state } = world
  try {
    if (await world.start()) {
      await check(world)
      throw new Defect('a damaged journal is served')
    }
  } catch (error) {
    if (!(error instanceof Defect) || !/^a start is refused/.test(error.message)) throw error
    if (!readFileSync(world.journal).equals(bytes)) throw new Defect('a start that was refused changed the journal')
  }
  writeFileSync(world.journal, whole)
  world.state = state
}

async function saveKeys(world: World): Promise<void> {
  if (existsSync(world.keyFile)) world.savedKeys.push(readFileSync(world.keyFile))
}

async function putKeysBack(world: World, random: Random): Promise<void> {
  if (world.savedKeys.length === 0) return
  world.noteKeys()
  writeFileSync(world.keyFile, random.pick(world.savedKeys))
}

async function removeSocket(world: World): Promise<void> {
  for (const name of readdirSync(world.data)) if (name.endsWith('.sock')) rmSync(join(world.data, name))
  world.isSocketGone = true
}

const FILE = { on: ['file', 'small'] } as const

export const FILES: Steps = {
  start: { when: 'stopped', beside: true, run: async world => { await world.start() } },
  stop: { when: 'running', beside: true, run: world => world.end('SIGTERM') },
  kill: { when: 'running', beside: true, run: world => world.end('SIGKILL') },
  restart: { when: 'running', run: restart },
  startTwice: { ...FILE, when: 'running', run: startTwice },
  openUp: { ...FILE, when: 'stopped', needsCommands: true, run: openUp },
  init: { ...FILE, when: 'any', run: init },
  rotate: { ...FILE, when: 'any', beside: true, needsJournal: true, run: maintenance('key rotate') },
  rewrite: { ...FILE, when: 'any', needsJournal: true, run: maintenance('key rewrite') },
  compact: { ...FILE, when: 'any', needsJournal: true, run: maintenance('journal compact') },
  compactDrop: { ...FILE, when: 'any', needsJournal: true, run: maintenance('journal compact --drop-history --yes') },
  verify: { ...FILE, when: 'any', beside: true, run: async world => { if (world.isSound()) await verified(world) } },
  backup: { ...FILE, when: 'any', needsCommands: true, run: backup },
  beginCompact: { ...FILE, when: 'any', needsJournal: true, run: begun('journal compact') },
  beginRewrite: { ...FILE, when: 'any', needsJournal: true, run: begun('key rewrite') },
  beginRestore: { ...FILE, when: 'stopped', run: beginRestore },
  release: { when: 'any', beside: true, run: world => world.release() },
  killHeld: { when: 'any', beside: true, run: world => world.killPending() },
  saveJournal: { ...FILE, when: 'any', needsJournal: true, run: async world => keep(world) },
  putJournalBack: { ...FILE, when: 'stopped', run: putJournalBack },
  loseJournal: { ...FILE, when: 'stopped', run: async (world, random) => {
    keep(world)
    exchange(world, random.pick([Buffer.alloc(0), undefined]), emptyState())
  } },
  rescue: { ...FILE, when: 'running', run: rescue },
  salvage: { ...FILE, when: 'stopped', run: salvage },
  damage: { ...FILE, when: 'stopped', run: damage },
  saveKeys: { ...FILE, when: 'any', beside: true, run: saveKeys },
  putKeysBack: { ...FILE, when: 'any', beside: true, run: putKeysBack },
  mendKeys: { ...FILE, when: 'any', beside: true, run: async world => world.mendKeys() },
  removeSocket: { ...FILE, when: 'running', beside: true, run: removeSocket }
}
