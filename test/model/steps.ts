/** What can be done to the service: one step each. A step takes a number that decides all that is random in it. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { seeded, type Random } from '../support/random.ts'
import { copyOf, Defect, emptyState, groupsOf, isSeen, shown, type Fields, type State,
  type Unanswered } from './state.ts'
import { PASSWORD, type Answer, type World } from './world.ts'

interface Step {
  /** When it can be done: while the service runs, while none runs, or always; otherwise that is brought about first. */
  readonly when: 'running' | 'stopped' | 'any'
  /** Whether it can be done beside a command that is held; otherwise that is let go first. */
  readonly beside?: boolean
  readonly run: (world: World, random: Random) => Promise<void>
}

const fieldsOf = (world: World): Fields => {
  const text = world.unique()
  return { password: text, sistema: `s ${text}`, usuario: 'ü"\\\u0000' }
}

/** The id of an entry there is, or of none. */
const anyId = ({ state }: World, random: Random): number => 1 + random.int(state.entries.length + 1)

/** A token for a change, and what it must be answered where it may not make it. */
async function tokenFor(world: World, random: Random): Promise<readonly [token: string | undefined, status: number,
  groups?: readonly string[] | undefined]> {
  const owner = await world.owner()
  if (!world.config.auth || random.int(4) > 0) return [owner, world.config.auth && owner === undefined ? 401 : 200]
  const other = random.pick([...world.state.tokens, undefined])
  if (other?.isLive !== true) return [other?.token, 401]
  return [other.token, other.mayChange ? 200 : 403, groupsOf(world.state, other)]
}

/** Judges the answer to a change: it was made, was refused as it must be, or was refused for a reason there is. */
function judge(world: World, answer: Answer | undefined, wanted: number, make: () => void): void {
  if (answer?.status === wanted) { if (wanted === 200) { make(); world.acknowledged() } return }
  if (answer === undefined) throw new Defect('a connection is cut while nothing was killed')
  if (answer.status === 503 && answer.retryAfter === undefined) throw new Defect('a 503 without Retry-After')
  if (![500, 503].includes(answer.status) || !world.mayRefuse()) {
    throw new Defect(`a change is answered ${answer.status}, not ${wanted}: ${JSON.stringify(answer.json)}`)
  }
}

async function create(world: World, random: Random): Promise<void> {
  const [token, status, groups] = await tokenFor(world, random)
  const fields = fieldsOf(world)
  const isPlaceless = groups !== undefined && groups.length !== 1
  judge(world, await world.ask('POST', '/api/createPassword', fields, token), status === 200 && isPlaceless ? 400
    : status, () => {
    world.state.entries.push({ ...fields, ...groups && { grupo: groups[0]! }, status: 1 })
  })
}

function changing(path: string, bodyOf: (world: World) => Partial<Fields> | undefined, to: object): Step['run'] {
  return async (world, random) => {
    const [token, status, groups] = await tokenFor(world, random)
    const id = anyId(world, random)
    const body = bodyOf(world)
    const known = world.state.entries[id - 1]
    const wanted = status === 200 && !(known && isSeen(groups, known)) ? 404 : status
    judge(world, await world.ask('POST', `/api/${path}/${id}`, body, token), wanted, () => {
      world.state.entries[id - 1] = { ...known!, ...body, ...to }
    })
  }
}

const GROUPS = ['a', 'b', 'c']

/** Some of the groups, or none. */
const someGroups = (random: Random): string[] => GROUPS.filter(() => random.int(3) === 0)

async function move(world: World, random: Random): Promise<void> {
  const [token, status, groups] = await tokenFor(world, random)
  const id = anyId(world, random)
  const grupo = random.pick([...GROUPS, ''])
  const known = world.state.entries[id - 1]
  const isKnown = known && isSeen(groups, known)
  const mayGo = groups === undefined || groups.includes(grupo)
  const wanted = status !== 200 ? status : !isKnown ? 404 : mayGo ? 200 : 400
  judge(world, await world.ask('POST', `/api/updatePassword/${id}`, { grupo }, token), wanted, () => {
    world.state.entries[id - 1] = { ...known!, grupo }
  })
}

/** Many changes at once; with a signal the service is ended among them. */
async function burst(world: World, random: Random, signal?: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  const token = await world.owner()
  if (world.config.auth && token === undefined) return
  const sent: { readonly change: Unanswered, readonly answer: Promise<Answer | undefined> }[] = []
  const ids = [...world.state.entries.keys()].filter(at => world.state.entries[at] !== null).map(at => at + 1)
  for (let n = 0; n < 12; n++) {
    const id = random.int(2) === 0 ? undefined : ids.splice(random.int(ids.length), 1)[0]
    const fields = fieldsOf(world)
    const kind = id === undefined ? 'create' : random.pick(['update', 'delete'] as const)
    const path = kind === 'create' ? '/api/createPassword' : `/api/${kind}Password/${id}`
    const answer = world.ask('POST', path, kind === 'delete' ? undefined : fields, token)
    sent.push({ change: { kind, id: id ?? 0, fields }, answer })
  }
  // What is seen later must be among these, and what was acknowledged must be seen.
  const made: Unanswered[] = []
  world.unanswered = []
  if (signal !== undefined) {
    await pause(random.int(25))
    const ending = world.end(signal)
    await Promise.all(sent.map(({ answer }) => answer))
    await ending
  }
  for (const { change, answer } of sent) {
    const got = await answer
    if (got?.status === 200) { made.push(change); world.acknowledged() }
    else if (got === undefined && signal !== undefined) world.unanswered.push(change)
    else if (got === undefined || ![500, 503].includes(got.status) || (signal === undefined && !world.mayRefuse())) {
      throw new Defect(`a change is answered ${got?.status} in a burst`)
    }
  }
  for (const { kind, id, fields } of made.filter(({ kind }) => kind !== 'create')) {
    const known = world.state.entries[id - 1]!
    world.state.entries[id - 1] = kind === 'delete' ? { ...known, status: 0 } : { ...known, ...fields }
  }
  const creates = made.filter(({ kind }) => kind === 'create')
  const before = world.state.entries.length
  world.unanswered.push(...creates) // in whatever order
  if (world.server === undefined && !await world.start()) throw new Error('a start was refused after a burst')
  await world.check()
  for (const { fields } of creates) {
    const isThere = world.state.entries.slice(before).some(entry => entry?.password === fields.password)
    if (!isThere && !world.isSplit) throw new Defect('an acknowledged create is gone')
  }
}

/** A user's command of the operator's program that succeeds where the user is there, and is refused otherwise. */
function forUser(words: string, input: string | undefined, make: (world: World, email: string) => void): Step['run'] {
  return async (world, random) => {
    const email = random.pick(['ana@example.org', 'bo@example.org'])
    const { code, error } = await world.admin(words.replace('EMAIL', email), input)
    if (code !== 0 && !isSound(world)) return
    if ((code === 0) !== world.state.users.has(email)) throw new Defect(`${words} ends with ${code}: ${error}`)
    if (code !== 0) return
    make(world, email)
    for (const token of world.state.tokens) if (token.email === email) token.isLive = false
    world.acknowledged()
    world.noteOperator()
  }
}

function forEntry(words: string, make: (state: State, at: number) => void): Step['run'] {
  return async (world, random) => {
    const id = anyId(world, random)
    const wanted = world.state.entries[id - 1] ? 0 : 1
    const { code, error } = await world.admin(words.replace('ID', String(id)))
    if (code !== 0 && !isSound(world)) return
    if (code !== wanted) throw new Defect(`${words} ends with ${code}: ${error}`)
    if (code !== 0) return
    make(world.state, id - 1)
    world.acknowledged()
    world.noteOperator()
  }
}

/** Whether the journal may be changed by a command now: as a journal of these keys, and not one that is split. */
const isSound = (world: World): boolean => !world.isSplit && !world.isMissing() && world.lackingKeys().length === 0

/** A rewriting needs the service stopped, and says so; then it is stopped. */
async function refusedBesideService(world: World, words: string): Promise<void> {
  if (world.server === undefined || world.isSocketGone) return
  const { code, error } = await world.admin(words)
  if (code === 0 || (isSound(world) &&
    !/stop the service, run the command again/.test(error))) throw new Defect(`${words} beside a service: ${error}`)
  await world.end('SIGTERM')
}

/** A command that writes the journal again, or makes a key. */
function maintenance(words: string, isRotation = false): Step['run'] {
  return async world => {
    if (!isRotation) await refusedBesideService(world, words)
    const mayFail = !isSound(world) || hasForgottenKeys(world)
    const running = world.admin(words)
    // It waits for what is held, wherever that is, and not for ever.
    if (world.pending !== undefined) {
      await pause(300)
      await world.release()
    }
    const { code, error } = await running
    // An archive of this name may be one of another journal that was here before.
    if (code !== 0 && !mayFail &&
      !/\.jsonl exists already/.test(error)) throw new Defect(`${words} is refused: ${error}`)
    if (code !== 0) return
    world.noteOperator()
    world.rewritten(isRotation)
    if (words.includes('compact')) await assertPurged(world)
  }
}

function begun(words: string): Step['run'] {
  return async world => {
    await refusedBesideService(world, words)
    await world.begin(words, 'rewrite', '')
  }
}

/** Whether the journal holds nothing but that it was begun: a restore may take its place. */
const saysNothing = (world: World): boolean => !/"type":"(?!journal\.begun")/.test(readFileSync(world.journal,
  'latin1'))

/** Whether the key file lacks a key that was in it, which a process may use. */
const hasForgottenKeys = (world: World): boolean =>
  [...world.keyLines].some(line => !readFileSync(world.keyFile, 'utf8').includes(line))

async function assertPurged(world: World): Promise<void> {
  const { code, out } = await world.admin('journal show --reveal --json')
  if (code === 0 && world.state.purged.some(value =>
    out.includes(value))) throw new Defect('a compacted journal holds a purged value')
  const left = readdirSync(world.data).filter(name => /\.part$/.test(name))
  if (left.length > 0) throw new Defect(`leftovers: ${left}`)
}

/** Puts something in the place of the journal; nothing runs. */
function put(world: World, bytes: Buffer | undefined, state: State, rewrittenBytes = 0): void {
  rmSync(world.journal, { force: true })
  if (bytes !== undefined) writeFileSync(world.journal, bytes, { mode: 0o600 })
  Object.assign(world, { state: copyOf(state), unanswered: [], rewrittenBytes })
}

function keep(world: World): void {
  if (world.isMissing() || world.unanswered.length > 0) return
  world.saved.push({ bytes: readFileSync(world.journal), state: copyOf(world.state),
    rewrittenBytes: world.rewrittenBytes })
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

interface Damage { readonly bytes: Buffer, readonly mayBeTorn: boolean }

/** A file that was cut, or lost a sector, or has a bit flipped, and whether that may look like a write that was cut. */
function damaged(bytes: Buffer, rewrittenBytes: number, random: Random): Damage {
  const kind = random.pick(['cut', 'cut', 'end', 'line', 'sector', 'sector', 'flip'])
  const lines = [...bytes.keys()].filter(at => bytes[at] === 10)
  const at = { cut: 1 + random.int(bytes.length - 1), end: bytes.length - 10, line: 1 + random.pick(lines),
    sector: 512 * random.int(bytes.length / 512), flip: random.int(bytes.length) }[kind]!
  const last = lastWriteOf(bytes)
  if (['cut', 'end', 'line'].includes(kind)) return { bytes: bytes.subarray(0, at), mayBeTorn: at >= rewrittenBytes }
  const changed = Buffer.from(bytes)
  if (kind === 'flip') changed[at]! ^= 1 << random.int(8)
  else changed.fill(0, at, Math.min(at + 512, changed.length))
  const end = kind === 'flip' ? at + 1 : at + 512
  return { bytes: changed, mayBeTorn: at >= rewrittenBytes && end > last }
}

/** Damages the journal: what is missing is refused, and nothing is changed; then the journal is put back. */
async function damage(world: World, random: Random): Promise<void> {
  if (world.isMissing() || world.lackingKeys().length > 0) return
  const whole = readFileSync(world.journal)
  if (whole.length < 600) return
  const { bytes, mayBeTorn } = damaged(whole, world.rewrittenBytes, random)
  if (mayBeTorn || bytes.equals(whole) || bytes.length === 0) return
  const path = join(world.home, 'damaged.jsonl')
  writeFileSync(path, bytes)
  if (await world.verified(path, false) !== undefined) throw new Defect('a damaged journal verifies')
  writeFileSync(world.journal, bytes)
  const { state } = world
  try {
    if (await world.start()) {
      await world.check()
      throw new Defect('a damaged journal is served')
    }
  } catch (error) {
    if (!(error instanceof Defect) || !/^a start is refused/.test(error.message)) throw error
    if (!readFileSync(world.journal).equals(bytes)) throw new Defect('a start that was refused changed the journal')
  }
  put(world, whole, state, world.rewrittenBytes)
}

const dropTokens = (): void => {}

export const STEPS: { readonly [name: string]: Step } = {
  create: { when: 'running', beside: true, run: create },
  update: { when: 'running', beside: true, run: changing('updatePassword', world => ({ password: world.unique() }),
    {}) },
  delete: { when: 'running', beside: true, run: changing('deletePassword', () => undefined, { status: 0 }) },
  move: { when: 'running', beside: true, run: move },
  restore: { when: 'running', beside: true, run: changing('restorePassword', () => undefined, { status: 1 }) },
  refused: {
    when: 'running',
    beside: true,
    run: async (world, random) => {
      const token = await world.owner()
      if (world.config.auth && token === undefined) return
      const [path, body, wanted] = random.pick([
        ['createPassword', { password: 1, sistema: 's' }, 400], ['createPassword', [], 400],
        ['updatePassword/x', {}, 404], ['nothing', {}, 404],
        ['updatePassword/999999', { sistema: 's' }, 404], ['deletePassword/0', undefined, 404]
      ] as const)
      const answer = await world.ask('POST', `/api/${path}`, body, token)
      if (answer?.status !== wanted) throw new Defect(`${path} is answered ${answer?.status}, not ${wanted}`)
    }
  },
  burst: { when: 'running', run: burst },
  login: {
    when: 'running',
    run: async (world, random) => {
      const email = random.pick(['ana@example.org', 'bo@example.org', 'eve@example.org'])
      const isRight = random.int(2) === 0
      const answer = await world.ask('POST', '/api/login',
        { email, password: isRight ? PASSWORD : 'wrong wrong wrong' })
      const mayChange = world.state.users.get(email)
      const wanted = !world.config.auth ? 404 : isRight && mayChange !== undefined ? 200 : 401
      judge(world, answer, wanted, () => world.state.tokens.push({ token: answer!.json.token, email,
        mayChange: mayChange!, isLive: true }))
    }
  },
  logout: {
    when: 'running',
    run: async (world, random) => {
      const known = random.pick([...world.state.tokens, undefined])
      if (known === undefined || !world.config.auth) return
      judge(world, await world.ask('POST', '/api/logout', undefined, known.token), known.isLive ? 200 : 401,
        () => { known.isLive = false })
    }
  },
  start: { when: 'stopped', beside: true, run: async world => { await world.start() } },
  stop: { when: 'running', beside: true, run: world => world.end('SIGTERM') },
  kill: { when: 'running', beside: true, run: world => world.end('SIGKILL') },
  restart: { when: 'running', run: async world => { await world.end('SIGTERM'); await world.start() } },
  killUnderLoad: { when: 'running', run: (world, random) => burst(world, random, 'SIGKILL') },
  stopUnderLoad: { when: 'running', run: (world, random) => burst(world, random, 'SIGTERM') },
  startTwice: {
    when: 'running',
    run: async world => {
      if (world.isSocketGone) return
      const { server } = world
      const before = readFileSync(world.journal)
      const isSecond = await world.start().catch((error: Error) => {
        if (!/^a start is refused: error: .* belongs to process/.test(error.message)) throw error
        return false
      })
      if (isSecond) throw new Defect('two services have one folder')
      world.server = server
      if (!readFileSync(world.journal).equals(before)) throw new Defect('a start that was refused changed the journal')
    }
  },
  userAdd: {
    when: 'any',
    run: async world => {
      const email = 'bo@example.org'
      if (world.state.users.has(email) || !isSound(world)) return
      await world.addUser(email, false)
      world.noteOperator()
    }
  },
  userRemove: { when: 'any', run: forUser('user remove EMAIL', undefined, (world, email) =>
    world.state.users.delete(email)) },
  userPassword: { when: 'any', run: forUser('user password EMAIL --password-stdin', `${PASSWORD}\n`, dropTokens) },
  tokenIssue: {
    when: 'any',
    run: async (world, random) => {
      const email = random.pick([...world.state.users.keys(), undefined])
      if (email === undefined || !isSound(world)) return
      await world.issue(email, random.int(2) === 0)
      world.noteOperator()
    }
  },
  userGroups: {
    when: 'any',
    run: async (world, random) => {
      const email = 'bo@example.org'
      if (!world.state.users.has(email) || !isSound(world)) return
      const groups = random.int(4) === 0 ? undefined : someGroups(random)
      await world.done(`user edit ${email} ${groups === undefined ? '--all-groups' : `--groups=${groups}`}`)
      if (groups === undefined) world.state.groups.delete(email)
      else world.state.groups.set(email, groups)
      for (const token of world.state.tokens) {
        if (token.email === email && groups !== undefined) token.groups = token.groups?.filter(one =>
          groups.includes(one))
      }
      world.acknowledged()
      world.noteOperator()
    }
  },
  tokenGroups: {
    when: 'any',
    run: async (world, random) => {
      const email = random.pick([...world.state.users.keys(), undefined])
      if (email === undefined || !isSound(world)) return
      const mayHave = world.state.groups.get(email) ?? GROUPS
      await world.issue(email, true, someGroups(random).filter(one => mayHave.includes(one)))
      world.noteOperator()
    }
  },
  tokenRevokeAll: { when: 'any', run: forUser('token revoke --all EMAIL', undefined, dropTokens) },
  entryAdd: {
    when: 'any',
    run: async world => {
      if (!isSound(world)) return
      const text = world.unique()
      const { id } = await world.done(`entry add --system ${text} --user u --password-stdin`, `${text}\n`)
      if (id !== world.state.entries.push({ password: text, sistema: text, usuario: 'u',
        status: 1 })) throw new Defect(`id ${id} is given again, or one was left out`)
      world.acknowledged()
      world.noteOperator()
    }
  },
  entryDelete: { when: 'any', run: forEntry('entry delete ID',
    (state, at) => { state.entries[at] = { ...state.entries[at]!, status: 0 } }) },
  entryRestore: { when: 'any', run: forEntry('entry restore ID',
    (state, at) => { state.entries[at] = { ...state.entries[at]!, status: 1 } }) },
  entryPurge: {
    when: 'any',
    run: forEntry('entry purge ID --yes', (state, at) => {
      state.purged.push(state.entries[at]!.password)
      state.entries[at] = null
    })
  },
  exportAndImport: {
    when: 'any',
    run: async (world, random) => {
      if (!isSound(world)) return
      const file = join(world.home, 'export.jsonl')
      rmSync(file, { force: true })
      await world.done(`export --output ${file} --yes`)
      const rows = readFileSync(file, 'utf8').trim().split('\n').filter(line => line !== '')
      const all = world.state.entries.flatMap((entry, at) => entry ? [JSON.stringify(shown(world.state, at + 1))] : [])
      if (JSON.stringify(rows) !== JSON.stringify(all)) throw new Defect(`an export holds something else: ${rows}`)
      world.noteOperator() // the disclosure was recorded
      const some = Array.from({ length: 1 + random.int(40) }, () => ({ ...fieldsOf(world), status: 1 as const }))
      writeFileSync(file, some.map(entry => JSON.stringify(entry)).join('\n'))
      await world.done(`import ${file}`)
      world.state.entries.push(...some)
      world.acknowledged()
    }
  },
  init: {
    when: 'any',
    run: async world => {
      const isNew = world.isMissing()
      if (!isNew && !isSound(world)) return
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
  },
  rotate: { when: 'any', beside: true, run: maintenance('key rotate', true) },
  rewrite: { when: 'any', run: maintenance('key rewrite') },
  compact: { when: 'any', run: maintenance('journal compact') },
  compactDrop: { when: 'any', run: maintenance('journal compact --drop-history --yes') },
  verify: { when: 'any', beside: true, run: async world => { if (isSound(world)) await world.verified() } },
  backup: {
    when: 'any',
    run: async world => {
      const path = join(world.home, `backup-${world.backups.length}.jsonl`)
      if (!isSound(world) || world.unanswered.length > 0) return
      await world.done(`journal backup ${path}`)
      if (readFileSync(path).length === 0) return // it cannot be restored
      world.backups.push({ path, state: copyOf(world.state) })
      await world.verified(path)
    }
  },
  beginCompact: { when: 'any', run: begun('journal compact') },
  beginRewrite: { when: 'any', run: begun('key rewrite') },
  beginRestore: {
    when: 'stopped',
   
    run: async (world, random) => {
      if (world.backups.length === 0) return
      const { path, state } = random.pick(world.backups)
      if (!world.isMissing() && !saysNothing(world)) {
        const { code } = await world.admin(`journal restore ${path}`)
        if (code !== 1) throw new Defect('a restore took the place of a journal')
        keep(world)
        put(world, random.pick([Buffer.alloc(0), undefined]), emptyState())
      }
      const restored = copyOf(state)
      const keepsTokens = random.int(2) === 0
      if (!keepsTokens) for (const token of restored.tokens) token.isLive = false
      await world.begin(`journal restore ${path}${keepsTokens ? ' --keep-tokens' : ''}`, 'read', path, restored)
    }
  },
  release: { when: 'any', beside: true, run: world => world.release() },
  killHeld: { when: 'any', beside: true, run: world => world.killPending() },
  saveJournal: { when: 'any', run: async world => keep(world) },
  putJournalBack: {
    when: 'stopped',
    run: async (world, random) => {
      if (world.saved.length === 0) return
      keep(world)
      const { bytes, state, rewrittenBytes } = random.pick(world.saved)
      put(world, bytes, state, rewrittenBytes)
    }
  },
  loseJournal: {
    when: 'stopped',
    run: async (world, random) => {
      keep(world)
      put(world, random.pick([Buffer.alloc(0), undefined]), emptyState())
    }
  },
  damage: { when: 'stopped', run: damage },
  saveKeys: { when: 'any', beside: true,
    run: async world => { if (existsSync(world.keyFile)) world.savedKeys.push(readFileSync(world.keyFile)) } },
  putKeysBack: {
    when: 'any',
    beside: true,
   
    run: async (world, random) => {
      if (world.savedKeys.length === 0) return
      world.noteKeys()
      writeFileSync(world.keyFile, random.pick(world.savedKeys))
    }
  },
  mendKeys: { when: 'any', beside: true, run: async world => mendKeys(world) },
  removeSocket: {
    when: 'running',
    beside: true,
   
    run: async world => {
      for (const name of readdirSync(world.data)) if (name.endsWith('.sock')) rmSync(join(world.data, name))
      world.isSocketGone = true
    }
  }
}

/** Puts every key back that was ever in the key file: then nothing is lost. */
export function mendKeys(world: World): void {
  world.noteKeys()
  if (world.keyLines.size > 0) writeFileSync(world.keyFile, [...world.keyLines].map(line => `${line}\n`).join(''))
}

/** Does one step, once what it needs is brought about; then what is served is compared. */
export async function take(world: World, name: string, number: number): Promise<void> {
  const step = STEPS[name]!
  if (world.pending !== undefined && step.beside !== true) await world.release()
  if (step.when === 'stopped' && world.server !== undefined) await world.end('SIGTERM')
  if (step.when === 'running' && world.server === undefined && !await start(world)) return
  if (step.when === 'any' && !['putKeysBack', 'mendKeys', 'saveKeys', 'release', 'killHeld', 'verify',
    'init'].includes(name)) {
    if (world.server === undefined && (world.isMissing() || world.lackingKeys().length > 0) || world.isSocketGone &&
      !/rotate|ewrite|ompact/.test(name)) return
  }
  await step.run(world, seeded(number))
  world.noteKeys()
  await world.check()
}

/** Starts the service as an operator would who reads why it was refused. */
async function start(world: World): Promise<boolean> {
  if (await world.start()) return true
  if (world.pending !== undefined && !world.isMissing()) return false
  if (world.lackingKeys().length === 0) return false
  mendKeys(world)
  if (world.lackingKeys().length > 0) throw new Defect('no file ever held a key that the journal was sealed with')
  return world.start()
}

/** The end of a program: what is there is verified, and a fresh start serves it. */
export async function finish(world: World): Promise<void> {
  await world.release()
  await world.end('SIGTERM')
  if (world.isMissing()) return
  mendKeys(world)
  await world.verified()
  if (!await world.start()) throw new Defect('the last start is refused')
  await world.check()
  await world.end('SIGTERM')
  await world.verified()
}
