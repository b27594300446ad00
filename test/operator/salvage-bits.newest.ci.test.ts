/** Salvage against an oracle: each bit, each head and each joint of small journals that have every type of event. */
import { strict as assert } from 'node:assert'
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { disk, type Files } from '../../src/journal/files.ts'
import type { JournalRecord } from '../../src/journal/journal.ts'
import { keyring } from '../../src/journal/keys.ts'
import { FIRST_HASH, sealBatch } from '../../src/journal/line.ts'
import { PROOFS } from '../../src/parts/operator/salvage/proofs.ts'
import { rebuild } from '../../src/parts/operator/salvage/salvage.ts'
import type { Events } from '../../src/store/events.ts'
import { emptyState } from '../../src/slices.ts'
import type { State } from '../../src/store/state.ts'
import { checkState } from '../support/check.ts'
import { randomOf } from '../support/random.ts'

type Change = { readonly [T in keyof Events]: readonly [type: T, data: Events[T], by?: number] }[keyof Events]

const TIME = '2026-01-31T12:00:00.000Z'
const ROW = { password: 'p', sistema: 's', usuario: 'u', status: 1 } as const
const { status: _, ...FIELDS } = ROW
const END = { why: 'compacted', head: 'a'.repeat(64), records: 9, time: TIME }
const user = (name: string): { email: string, name: string, abilities: string[], passwordHash: string } =>
  ({ email: `${name}@x`, name, abilities: ['*'], passwordHash: `$scrypt$${name}` })
const token = (digit: string, user: number): Events['token.issued'] =>
  ({ hash: digit.repeat(64), user, abilities: ['*'], issued: TIME, expires: null })

/** A journal with every type of event: what a compaction kept, and the lives of entries, users and tokens. */
const LIFE: readonly Change[] = [
  ['journal.rewritten', END], ['journal.continued', END],
  ['entries.kept', { first: 1, entries: [ROW, null, ROW] }],
  ['fields.kept', { first: 4, entries: [{ ...ROW, url: 'https://x', changed: TIME }, null] }],
  ['users.kept', { first: 1, users: [user('ana'), null, user('bea')] }],
  ['tokens.kept', { tokens: [token('a', 1), token('b', 3)] }],
  ['knowledge.kept', { changes: 3, recent: [1, 3, 4], recording: 'begun' }],
  ['knowledge.knowers', { knowers: [{ knower: 1, lists: [['*', 3]] }, { knower: 'operator:root', lists: [] }] }],
  ['knowledge.changes', { first: 1, changes: [[1, 1], [0, 0], [2, 2], [3, 1], [0, 0]] }],
  ['knowledge.pages', { pages: [{ place: 1, page: 0, bits: Buffer.alloc(128, 2).toString('base64') }] }],
  ['knowledge.former', { passwords: [[7, 1, 'operator:root']] }],
  ['knowledge.addresses', { users: [{ id: 2, email: 'cleo@example.org', name: 'cleo' }] }],
  ['knowers.kept', { knowers: [{ knower: 1, ids: [1], equal: [3] }, { knower: 'operator:root', ids: [[1, 4]] },
    { knower: '', equal: [4], time: TIME }] }],
  ['recording.kept', { recording: 'begun', unrecordedBefore: TIME }],
  ['journal.whole', { records: 14 }], ['journal.begun', {}],
  ['recording.begun', {}], ['recording.gap', { why: 'restored' }],
  ['passwords.told', { operation: 'getPassword', ids: [3] }, 1],
  ['passwords.told', { operation: 'listPassword', list: 'active' }, 3],
  ['passwords.told', { operation: 'getPassword', entryIds: [1, [3, 4]] }, 3],
  ['passwords.told', { operation: 'formerPassword', password: 'former' }, 3],
  ['recording.ended', {}],
  ['entry.created', { id: 6, ...FIELDS }], ['fields.created', { id: 7, ...FIELDS, notas: 'n' }, 3],
  ['entry.updated', { id: 6, password: 'other' }], ['fields.updated', { id: 7, url: 'https://y' }],
  ['entry.deleted', { id: 6 }, 1], ['entry.restored', { id: 6 }], ['entry.purged', { id: 6 }],
  ['entries.imported', { first: 8, entries: [ROW, ROW, ROW] }],
  ['fields.imported', { first: 11, entries: [{ ...ROW, url: 'https://z' }, ROW] }],
  ['entries.disclosed', { command: 'entry get', entries: 1, id: 7 }],
  ['entries.disclosed', { command: 'entry history', entries: 1, entryIds: [7], former: ['once'] }],
  ['user.added', { id: 4, ...user('eva') }], ['user.changed', { id: 4, abilities: ['password:read'] }],
  ['token.issued', token('c', 4), 4], ['token.issued', token('d', 3)], ['token.revoked', { hash: 'd'.repeat(64) }],
  ['password.rehashed', { id: 4, passwordHash: '$scrypt$eva2' }],
  ['password.changed', { id: 4, passwordHash: '$scrypt$eva3' }], ['token.issued', token('e', 4), 4],
  ['factor.given', { id: 4, factor: 'JBSWY3DPEHPK3PXP', step: 1 }], ['factor.removed', { id: 4 }],
  ['tokens.revoked', { user: 4 }], ['user.removed', { id: 3 }],
  ['user.added', { id: 5, email: 'kim@example.org', name: 'kim', abilities: ['*'], hasNoPassword: true }],
  ['password.changed', { id: 4, hasNoPassword: true }]
]

const KEYS = keyring([randomBytes(32)])

interface Journal {
  readonly lines: readonly string[]
  readonly records: readonly JournalRecord[]
  readonly bytes: Buffer
  readonly truth: State
}

function journalOf(changes: readonly Change[]): Journal {
  const events = changes.map(([type, data, by = null]) => ({ type, by, data, json: JSON.stringify(data) }))
  const { lines, records } = sealBatch(events, 0, FIRST_HASH,
    { time: TIME, key: KEYS.newest, nonce: () => randomBytes(12) })
  const truth = emptyState()
  for (const record of records) truth.apply(record)
  return { lines, records, bytes: bytesOf(lines), truth }
}

function bytesOf(lines: readonly string[]): Buffer { return Buffer.from(lines.map(line => `${line}\n`).join(''),
  'latin1') }

const JOURNALS = LIFE.map((_, i) => journalOf(LIFE.slice(0, i + 1)))
const WHOLE = JOURNALS.at(-1)!

function fileOf(bytes: Buffer): Files {
  return {
    ...disk, stat: () => ({ size: bytes.length }) as ReturnType<Files['stat']>, openToRead: () => 0, close: () => {},
    readAt: (_file: unknown, into: Buffer, at: number) => bytes.copy(into, 0, at, at + into.length)
  } as Files
}

function rebuilt(bytes: Buffer): ReturnType<typeof rebuild> {
  return rebuild({ files: fileOf(bytes), source: 'bad', keys: KEYS, keepsAccess: false, nextId: 1,
    onProgress: () => {} })
}

/**
 * Holds what comes of damaged bytes against the whole journal. `isThere`: no bytes are gone, so not even the ids that
 * the newest lines gave may be given again.
 */
function check({ lines, records, truth }: Journal, damaged: Buffer, isThere: boolean): void {
  const { made } = rebuilt(damaged)
  const { state, losses } = made
  checkState(state)
  const lost = losses.reduce((sum, { from, to }) => sum + (to === null ? 0 : to - from + 1), 0)
  const isEndKnown = losses.every(({ to }) => to !== null)
  assert.equal(made.last - made.opened, lost,
    'each line before the newest that opened was opened, or is known to be lost')
  if (isEndKnown) assert.equal(made.opened + lost, lines.length, 'the end is known, and every lost line')
  for (const what of ['entries', 'users'] as const) {
    const isKept = state[what].size >= truth[what].size
    assert.ok(isKept || (!isThere && made.mayLackIds), `${what}: id ${state[what].size + 1} would be given again`)
  }
  const passwords = new Set(JSON.stringify(records).match(/\$scrypt\$[a-z0-9]+/g))
  for (const user of state.users.values()) {
    if (user.passwordHash === undefined || !passwords.has(user.passwordHash)) continue
    const { passwords: _, ...known } = user
    const { passwords: __, ...right } = truth.users.get(user.id)!
    assert.deepEqual(known, right, 'nobody comes back, has an older password or may do more')
  }
  for (const { id, isRemoved, isLocked } of state.users.values()) {
    assert.ok(losses.length === 0 || isRemoved || isLocked, `user ${id} could log in, by a password or a proxy`)
  }
  for (const [hash, token] of state.tokens) assert.deepEqual(token, truth.tokens.get(hash), 'no token works again')
}

function checked(journal: Journal, damaged: Buffer, what: () => string, isThere = true): void {
  try {
    check(journal, damaged, isThere)
  } catch (error) {
    if (/no line of it is left|lines can be opened/.test((error as Error).message)) return
    throw new Error(`${what()}: ${(error as Error).message}`, { cause: error })
  }
}

test('the journals of these tests have every type of event, and of a whole one nothing is lost', () => {
  assert.deepEqual([...new Set(LIFE.map(([type]) => type))].sort(), Object.keys(PROOFS).sort())
  for (const journal of JOURNALS) {
    const { made, lockedUsers } = rebuilt(journal.bytes)
    assert.deepEqual([made.losses, made.unplaced, lockedUsers, made.mayLackIds], [[], [], [], false])
    checked(journal, journal.bytes, () => 'whole')
  }
})

/** Of a seal, and amid other lines, one bit in each byte, or all with `ALL_BITS`. */
function * flips({ lines }: Journal, line: number, one: number): Generator<readonly [at: number, bit: number]> {
  const text = lines[line]!
  const [sealed, end] = [text.indexOf('"sealed":"') + 10, text.indexOf('","hash"')]
  const start = bytesOf(lines.slice(0, line)).length
  for (let i = 0; i <= text.length; i++) {
    const all = process.env['ALL_BITS'] !== undefined || (line === lines.length - 1 && (i < sealed || i >= end))
    for (let bit = 0; bit < 8; bit++) if (all || bit === (one + i) % 8) yield [start + i, bit]
  }
}

for (const [i, [type]] of LIFE.entries()) {
  test(`any bit of line ${i + 1}, ${type}, as the last or amid others: no id again, nobody back, no silent loss`, t => {
    const one = randomOf(t).int(8)
    for (const journal of i === LIFE.length - 1 ? [WHOLE] : [JOURNALS[i]!, WHOLE]) {
      for (const [at, bit] of flips(journal, i, one)) {
        const bytes = Buffer.from(journal.bytes)
        bytes[at]! ^= 1 << bit
        checked(journal, bytes, () => `bit ${bit} of byte ${at} of ${journal.lines.length} lines`)
      }
    }
  })
}

test('whatever the head of a line says that does not open, it counts as any', () => {
  const types = Object.keys(PROOFS)
  for (const [i, line] of WHOLE.lines.entries()) {
    for (const journal of [JOURNALS[i]!, WHOLE]) {
      const heads = [
        ...types.map(type => line.replace(/"type":"[a-z.]+"/, `"type":"${type}"`)),
        ...[1, i, i + 2, WHOLE.lines.length + 1, 9_007_199_254_740_991].map(seq =>
          line.replace(/"seq":\d+/, `"seq":${seq}`)),
        line.replace(/"key":"[0-9a-f]+"/, '"key":"00000000"')
      ]
      for (const head of heads.filter(head => head !== line)) {
        checked(journal, bytesOf(journal.lines.map((one, n) => n === i ? head : one)), () => head.slice(0, 100))
      }
    }
  }
})

test('joined lines, since bytes from one to a later one are gone, are known to be lost or the end is not known', t => {
  const random = randomOf(t)
  for (let i = 0; i < 100; i++) {
    const journal = random.pick(JOURNALS.slice(3))
    const count = journal.lines.length
    const to = random.int(3) === 0 ? 1 + random.int(count - 1) : count - 1
    const from = Math.max(0, to - 1 - random.int(4))
    const [one, other] = [journal.lines[from]!, journal.lines[to]!]
    const seals = [one, other].map(line => line.indexOf('"sealed":"') + 10)
    const hashes = [one, other].map(line => line.indexOf(',"hash":'))
    for (let x = 1 + random.int(8); x <= one.length; x += 1 + random.int(16)) {
      // At the same place of both, at every alignment of the base64 of the seals, and anywhere.
      for (const y of [x, x - seals[0]! + seals[1]!, x - hashes[0]! + hashes[1]!, 1 + random.int(other.length)]) {
        if (y < 1 || y > other.length) continue
        const lines = [...journal.lines.slice(0, from), one.slice(0, x) + other.slice(y),
          ...journal.lines.slice(to + 1)]
        // Whole lines that are cut from the end leave no trace.
        if (lines.at(-1) === one && lines.length === from + 1) continue
        checked(journal, bytesOf(lines), () => `line ${from + 1} to ${x}, line ${to + 1} from ${y}, of ${count}`, false)
      }
    }
  }
})

test('lines at another place lose nothing quietly: the newest before others, two exchanged, all of them twice', () => {
  for (const journal of JOURNALS.slice(2)) {
    const { lines } = journal
    const newest = lines.at(-1)!
    for (let to = 0; to < lines.length - 1; to++) {
      const before = [...lines.slice(0, to), newest, ...lines.slice(to, -1)]
      checked(journal, bytesOf(before), () => `the newest before line ${to + 1}`)
      const exchanged = lines.with(to, newest).with(lines.length - 1, lines[to]!)
      checked(journal, bytesOf(exchanged), () => `the newest and line ${to + 1} exchanged`)
    }
    const { made } = rebuilt(Buffer.concat([journal.bytes, journal.bytes]))
    assert.deepEqual([made.losses.map(({ to }) => to), made.opened], [[null], lines.length])
  }
})

test('lines of another journal under the same key do not continue this one unnoticed', () => {
  const other = journalOf(LIFE)
  for (let i = 1; i < LIFE.length - 1; i++) {
    const lines = [...WHOLE.lines.slice(0, i), ...other.lines.slice(i - 1)]
    const { made } = rebuilt(bytesOf(lines))
    assert.ok(made.losses.length > 0, `after line ${i}`)
  }
})
