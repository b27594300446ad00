/**
 * Journals that are damaged at random and salvaged, and a plain model of what must come of that. The model knows which
 * lines are still there, by looking for their bytes; it shares nothing with the program but the texts of lines.
 */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { disk } from '../../src/journal/files.ts'
import type { JournalRecord } from '../../src/journal/journal.ts'
import { readKeyFile } from '../../src/journal/keys.ts'
import { readJournal } from '../../src/journal/recover.ts'
import { purgeEntry } from '../../src/parts/operator/socket/operator-changes.ts'
import { PasswordHasher } from '../../src/accounts/passwords.ts'
import { emptyState } from '../../src/slices.ts'
import type { State } from '../../src/store/state.ts'
import { salvage } from '../../src/parts/operator/salvage/salvage.ts'
import { checkState } from './check.ts'
import { fileStore, rotateKey, type FullStore } from './stores.ts'
import { journalBytes, keyPath, keysOf, linesOf, verify } from './journal.ts'
import type { Random } from './random.ts'
import { compact, importEntries, reencrypt, UNENDED } from './rewrite.ts'
import { createEntry, deleteEntry, updateEntry } from '../../src/entries/entry-commands.ts'

export const KINDS = ['plain', 'compacted', 're-encrypted', 'mixed'] as const
export type Kind = typeof KINDS[number]

interface Source {
  readonly kind: Kind
  readonly folder: string
  readonly bytes: Buffer
  readonly lines: readonly string[]
  readonly records: readonly JournalRecord[]
  readonly hashes: readonly string[]
}

let clockMs = Date.UTC(2026, 0, 31, 12)

export async function makeSource(random: Random, folder: string, kind: Kind, changes: number): Promise<Source> {
  const hasher = new PasswordHasher({ ln: 4, r: 1, p: 1 })
  const store = await fileStore(folder, { hasher, wallMs: () => ++clockMs })
  await createEntry(store, { password: 'p', sistema: 's', usuario: 'u' }, null) // an empty journal is not compacted
  const parts = kind === 'mixed' ? ['compact', 'rotate', 're-encrypt', 'compact', 'rotate'] : [kind]
  for (const part of parts) {
    for (let n = 0; n < changes / parts.length; n++) await change(random, store)
    if (part.startsWith('compact')) await compact(store)
    if (part === 'rotate') await rotateKey(store)
    if (part.startsWith('re-')) await reencrypt(store)
  }
  for (let n = 0; n < changes / 4; n++) await change(random, store)
  await store.close()
  const bytes = journalBytes(folder)
  const verified = verify(bytes, keysOf(folder))
  return { kind, folder, bytes, lines: linesOf(bytes), records: verified, hashes: verified.map(({ hash }) => hash) }
}

async function change(random: Random, store: FullStore): Promise<void> {
  const id = 1 + random.int(Math.max(1, store.state.entries.size))
  const email = `u${random.int(6)}@x`
  const value = (): string => random.bytes(1 + random.int(random.int(20) === 0 ? 3_000 : 40)).toString('base64')
  const entry = (): { password: string, sistema: string, usuario: string } =>
    ({ password: value(), sistema: value(), usuario: value() })
  const { accounts } = store
  const tokens = [...store.state.tokens.entries()].map(([hash]) => hash)
  const steps: readonly (() => Promise<unknown>)[] = [
    ...Array.from({ length: 8 }, () => () => createEntry(store, entry(), null)),
    ...Array.from({ length: 4 }, () => () => updateEntry(store, id, { password: value() }, null)),
    () => deleteEntry(store, id, null), () => purgeEntry(store, id),
    () => importEntries(store, Array.from({ length: 1 + random.int(20) }, () => ({ ...entry(), status: 1 as const }))),
    ...Array.from({ length: 3 }, () => () => accounts.addUser(email, email, ['*'], 'a long password')),
    ...Array.from({ length: 4 }, () => () => accounts.issue(email, ['*'], undefined)),
    async () => tokens.length > 0 && accounts.revoke(random.pick(tokens), null),
    () => accounts.revokeAll(email), () => accounts.setPassword(email, 'another password'),
    () => accounts.removeUser(email)
  ]
  await random.pick(steps)()
}

/** How bytes are damaged; no way loses the newest lines without a trace, which nobody can see. */
type Damage = (random: Random, bytes: Buffer) => Buffer

function at(random: Random, bytes: Buffer): number { return random.int(bytes.length) }

function part(random: Random, bytes: Buffer, most: number): readonly [start: number, end: number] {
  const start = at(random, bytes)
  return [start, Math.min(bytes.length, start + 1 + random.int(most))]
}

function filled(bytes: Buffer, start: number, end: number, value: number | Buffer = 0): Buffer {
  const changed = Buffer.from(bytes)
  changed.fill(value, start, end)
  return changed
}

function aligned(size: number): Damage {
  return (random, bytes) => {
    const start = Math.floor(at(random, bytes) / size) * size
    return filled(bytes, start, Math.min(bytes.length, start + size), random.int(2) === 0 ? 0 : random.bytes(size))
  }
}

/** Changes the lines of bytes; what follows the last line end stays. */
function ofLines(change: (random: Random, lines: Buffer[]) => Buffer[]): Damage {
  return (random, bytes) => {
    const lines: Buffer[] = []
    let start = 0
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
      lines.push(bytes.subarray(start, end + 1))
      start = end + 1
    }
    return lines.length < 3 ? bytes : Buffer.concat([...change(random, lines), bytes.subarray(start)])
  }
}

export const DAMAGES: { readonly [name: string]: Damage } = {
  bit: (random, bytes) => {
    const changed = Buffer.from(bytes)
    const where = at(random, bytes)
    changed[where]! ^= 1 << random.int(8)
    return changed
  },
  bytes: (random, bytes) => filled(bytes, ...part(random, bytes, 40), random.bytes(40)),
  sector: aligned(512),
  block: aligned(4096),
  'lines lost': ofLines((random, lines) => {
    const start = random.int(lines.length - 1)
    const count = 1 + random.int(Math.min(20, lines.length - 1 - start))
    return [...lines.slice(0, start), ...lines.slice(start + count)]
  }),
  'lines doubled': ofLines((random, lines) => {
    const start = random.int(lines.length)
    const to = random.int(lines.length)
    return [...lines.slice(0, to), ...lines.slice(start, start + 1 + random.int(20)), ...lines.slice(to)]
  }),
  'lines swapped': ofLines((random, lines) => {
    const one = random.int(lines.length)
    const other = random.int(lines.length)
    return lines.map((line, i) => i === one ? lines[other]! : i === other ? lines[one]! : line)
  }),
  'piece moved': (random, bytes) => {
    const [start, end] = part(random, bytes, 5_000)
    const rest = Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)])
    const to = at(random, rest)
    return Buffer.concat([rest.subarray(0, to), bytes.subarray(start, end), rest.subarray(to)])
  },
  'piece doubled': (random, bytes) => {
    const [start, end] = part(random, bytes, 5_000)
    const to = at(random, bytes)
    return Buffer.concat([bytes.subarray(0, to), bytes.subarray(start, end), bytes.subarray(to)])
  },
  'piece lost': (random, bytes) => {
    const [start, end] = part(random, bytes, 5_000)
    return insideLine(bytes, end) ? Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)]) : bytes
  },
  cut: (random, bytes) => {
    const end = at(random, bytes)
    return insideLine(bytes, end) ? bytes.subarray(0, end) : bytes
  },
  'zeros put in': (random, bytes) => {
    const to = at(random, bytes)
    return Buffer.concat([bytes.subarray(0, to), Buffer.alloc(1 +
      random.int(random.int(10) === 0 ? 3_000_000 : 100_000)), bytes.subarray(to)])
  },
  zeros: (random, bytes) => filled(bytes, ...part(random, bytes, bytes.length))
}

/** Whether something of a line is before a place, and something of the same behind it. */
function insideLine(bytes: Buffer, end: number): boolean {
  return end > 0 && end < bytes.length && bytes[end - 1] !== 10 && bytes[end] !== 10
}

/** Damage that leaves lines where they do not belong: what comes of those is not promised, but nothing wrong. */
export const MOVES = /doubled|swapped|moved/

/** The lines that can be opened: their heads and seals are there, and the hash of the line before each. */
function openable({ lines, hashes }: Source, damaged: Buffer): readonly boolean[] {
  const found: boolean[] = []
  for (const [i, line] of lines.entries()) {
    const isThere = damaged.includes(line.slice(0, line.indexOf(',"hash":')), 0, 'latin1')
    found.push(isThere && (i === 0 || found[i - 1]! || damaged.includes(`"hash":"${hashes[i - 1]}"}`, 0, 'latin1')))
  }
  return found
}

function modelOf(records: readonly JournalRecord[]): ReadonlyMap<number, any> {
  const entries = new Map<number, any>()
  for (const { type, time, by, data } of records as readonly any[]) {
    const { id, first, entries: rows, ...fields } = data
    if (type === 'entry.created') entries.set(id, { id, ...fields, status: 1 })
    if (/^(entries|fields)\.(imported|kept)$/.test(type)) {
      rows.forEach((row: any, i: number) => {
        if (row === null) return
        const { changed: _, ...fields } = row
        entries.set(first + i, { id: first + i, ...fields })
      })
    }
    if (!entries.has(id)) continue
    if (type === 'entry.updated') entries.set(id, { ...entries.get(id), ...fields })
    const old = entries.get(id)
    if (type === 'entry.deleted' && old.status === 1) {
      entries.set(id, { ...old, status: 0, deleted: time, ...authorOf(by, data) })
    }
    if (type === 'entry.restored') {
      const { deleted: _, deletedBy: __, ...rest } = old
      entries.set(id, { ...rest, status: 1 })
    }
    if (type === 'entry.purged') entries.delete(id)
  }
  return entries
}

/** Who made a change, as the journal names users and operators. */
function authorOf(by: number | null, { operator }: { readonly operator?: string }): { readonly deletedBy?: number
  | string } {
  if (by !== null) return { deletedBy: by }
  return operator === undefined ? {} : { deletedBy: operator === '' ? 'operator' : `operator:${operator}` }
}

function newestId(records: readonly JournalRecord[]): number {
  return records.reduce((newest, { type, data }: any) => {
    if (type === 'entry.created') return Math.max(newest, data.id)
    return /^(entries|fields)\./.test(type) && data.first ? Math.max(newest, data.first + data.entries.length - 1)
      : newest
  }, 0)
}

function stateOf(records: readonly JournalRecord[]): State {
  const state = emptyState()
  for (const record of records) state.apply(record)
  return state
}

/** Salvages damaged bytes of a journal and holds the result against the model. Throws where something is wrong. */
export async function salvageAndCheck(
  source: Source, damaged: Buffer, { mayLoseNewestIds, moves = false }: { readonly mayLoseNewestIds: boolean,
    readonly moves?: boolean }
): Promise<void> {
  const [path, target] = [join(source.folder, 'damaged'), join(source.folder, 'salvaged')]
  for (const old of [target, `${target}.unplaced.jsonl`]) rmSync(old, { force: true })
  writeFileSync(path, damaged)
  const keys = readKeyFile(disk, keyPath(source.folder))!
  const is = openable(source, damaged)
  const making = salvage({ files: disk, source: path, target, keys, keepsAccess: false, nextId: 1,
    onProgress: () => {}, ending: UNENDED })
  if (!is.includes(true) || (moves && !is[0])) {
    await making.catch(() => {})
    if (is.includes(true)) return
    await assert.rejects(making)
    assert.ok(!existsSync(target))
    return
  }
  const { found: made } = await making
  const taken = source.records.map(({ seq }) => seq <= made.last &&
    !made.losses.some(({ from, to }) => seq >= from && (to === null || seq <= to)))
  const expected = source.records.filter((_, i) => taken[i])
  if (moves) assert.ok(taken.every((one, i) => !one || is[i]), 'no line was opened that is not there')
  else assert.deepEqual(taken, is, 'every line that can be opened was')
  assert.equal(made.opened, expected.length)
  assert.deepEqual(readFileSync(path), damaged, 'the source is as it was')
  const state = emptyState()
  const found: JournalRecord[] = []
  readJournal(disk, target, keys, record => { found.push(record); state.apply(record) })
  checkState(state)
  const whole = found.at(-1)!
  assert.equal(whole.type, 'journal.whole')
  checkEntries(state, expected)
  const isEndKnown = made.losses.every(({ to }) => to !== null)
  if (isEndKnown) assert.equal(made.last, source.lines.length, 'the end is known')
  const given = newestId(source.records)
  if (!mayLoseNewestIds) assert.ok(state.entries.size >= given, `id ${state.entries.size + 1} would be given again`)
  const last = stateOf(source.records)
  const free = [...state.users.values()].filter(user => user.isRemoved !== true && user.isLocked !== true)
  assert.ok(made.losses.length === 0 || free.length === 0, 'a user could log in, by a password or by a proxy')
  checkAccess(state, last, source, expected.length === source.lines.length && made.losses.length === 0)
  if (!mayLoseNewestIds) {
    const users = last.users.size
    assert.ok(state.users.size >= users, `user ${state.users.size + 1} would be given again`)
  }
}

function checkEntries(state: State, expected: readonly JournalRecord[]): void {
  const model = modelOf(expected)
  const made = new Map([...state.entries.entries()].map(one => {
    const { ms, by: deletedBy } = state.deletions.get(one.id) ?? {}
    const deletion = ms === undefined ? {} : { deleted: new Date(ms).toISOString(), ...deletedBy !== undefined &&
      { deletedBy } }
    return [one.id, { ...one, ...deletion }]
  }))
  assert.deepEqual(made, new Map([...model].sort(([a], [b]) => a - b)),
    'the entries are those of the records that are left')
}

/** Nobody has access who had not at the end of the journal; where nothing is lost, all have. */
function checkAccess(state: State, last: State, source: Source, isWhole: boolean): void {
  for (const [hash] of state.tokens.entries()) assert.ok(last.tokens.get(hash), 'a token that was revoked would work')
  const open = [...state.users.entries()].filter(([, { passwordHash }]) => passwordHash !== undefined)
  const truth = new Map([...last.users.entries()].map(([id, { email, passwordHash }]) => [`${id} ${email}`,
    passwordHash]))
  const known = new Set(source.records.flatMap(({ data }) => JSON.stringify(data).match(/\$scrypt[^"]+/g) ?? []))
  for (const [id, { email, passwordHash }] of open) {
    if (known.has(passwordHash!)) assert.equal(truth.get(`${id} ${email}`), passwordHash,
      'a password that was ended would work')
  }
  if (!isWhole) return
  assert.equal(state.tokens.size, last.tokens.size)
  assert.equal(open.length, [...truth.values()].filter(hash => hash !== undefined).length)
}
