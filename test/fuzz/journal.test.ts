/** Journals that somebody has laid hands on: whatever their bytes, the records are a true beginning, or none. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { readFileSync, rmSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { Failure } from '../../src/errors.ts'
import {
  bytesOf, journalBytes, openJournal, putJournal, rechain, referenceLines, snapshot, tornFiles, writeKeys,
  type OpenedJournal
} from '../support/journal.ts'
import { countFromEnv, mutate } from '../support/mutations.ts'
import { randomOf, type Random } from '../support/random.ts'
import { freshFolder } from '../support/service.ts'

const COUNT = countFromEnv(150)

interface Original {
  readonly lines: readonly string[]
  readonly bytes: Buffer
  readonly data: readonly string[]
}

/** A journal of some writes of one to four records each. */
function original(secret: Buffer | ((line: number) => Buffer), name: string, random: Random): Original {
  const writes = Array.from({ length: 4 + random.int(5) }, (_, write) =>
    Array.from({ length: 1 + random.int(4) }, (_, i) => `${name} ${write}.${i} ${'x'.repeat(random.int(60))}`))
  const lines = referenceLines(secret, writes)
  return { lines, bytes: bytesOf(lines), data: writes.flat() }
}

function tampered(of: Original, random: Random, others: readonly Original[]): Buffer {
  const chance = random.next()
  if (chance < 0.4) return mutate(of.bytes, random, others.map(({ bytes }) => bytes))
  if (chance < 0.5) return zeroed(of.bytes, random)
  const lines = [...of.lines]
  const foreign = random.pick(others).lines
  for (let rest = 1 + random.int(3); rest > 0; rest--) {
    const at = random.int(lines.length)
    const act = random.int(5)
    if (act === 0) lines.splice(at, 1)
    else if (act === 1) lines.splice(at, 0, lines[random.int(lines.length)] ?? '')
    else if (act === 2) [lines[at], lines[0]] = [lines[0] ?? '', lines[at] ?? '']
    else if (act === 3) lines[at] = foreign[Math.min(at, foreign.length - 1)]!
    else lines.splice(at, lines.length, ...foreign.slice(at))
  }
  // Whoever has no key can still number the lines and compute the chain anew.
  const whole = lines.filter(line => line !== '')
  return bytesOf(chance < 0.75 ? whole : rechain(whole))
}

/** Some sectors from anywhere on read as zeros, as after a power cut; sometimes it is shorter as well. */
function zeroed(bytes: Buffer, random: Random): Buffer {
  const copy = Buffer.from(bytes.subarray(0, random.next() < 0.5 ? bytes.length : random.int(bytes.length + 1)))
  const start = random.int(copy.length + 1)
  copy.fill(0, start, Math.min(copy.length, start + 1 + random.int(600)))
  return copy
}

function isBeginning(data: readonly unknown[], of: readonly unknown[]): boolean {
  return data.length <= of.length && data.every((one, i) => one === of[i])
}

/** Tries cases in a folder; each must be refused with nothing changed, or give the beginning of an original. */
async function tryAll(
  t: TestContext, folder: string, random: Random, originals: readonly Original[], isWithinReach: boolean
): Promise<void> {
  const seen: { [what: string]: number } = { whole: 0, shorter: 0, torn: 0, 'journal-damaged': 0, 'key-unknown': 0 }
  // By chance a few cases may lack one of these.
  const wanted = ['shorter', 'torn', 'journal-damaged', ...isWithinReach ? [] : ['key-unknown']]
  const lacks = (): boolean => wanted.some(what => seen[what] === 0)
  for (let done = 0; done < COUNT / 2 || lacks() && done < 20 * COUNT; done++) {
    const bytes = tampered(random.pick(originals), random, originals)
    putJournal(folder, bytes)
    try {
      const what = await tryOne(folder, bytes, originals, random)
      for (const one of what) seen[one] = (seen[one] ?? 0) + 1
    } catch (error) {
      t.diagnostic(`case ${done}, the journal's bytes, base64: ${bytes.toString('base64')}`)
      throw error
    }
  }
  t.diagnostic(JSON.stringify(seen))
  for (const what of wanted) assert.ok(seen[what]! > 0, what)
  assert.equal(seen['key-unknown']! > 0, !isWithinReach, 'key-unknown where, and only where, a key is missing')
}

async function tryOne(
  folder: string, bytes: Buffer, originals: readonly Original[], random: Random
): Promise<readonly string[]> {
  const before = snapshot(folder)
  let opened: OpenedJournal
  try {
    opened = await openJournal(folder)
  } catch (error) {
    assert.ok(error instanceof Failure, String(error))
    if (bytes.length === 0 && error.code === 'journal-missing') return [error.code]
    assert.ok(error.code === 'key-unknown' || error.code === 'journal-damaged', error.message)
    const says = error.code === 'key-unknown' ? /, line \d+ needs key [0-9a-f]{8}(; the keys there are [0-9a-f, ]+)?$/
      : /, line \d+ at byte \d+: .+$/
    assert.match(error.message, says)
    assert.deepEqual(snapshot(folder), before, 'a refusal changes nothing')
    return [error.code]
  }
  const { data } = opened.journal
  const of = originals.find(one => isBeginning(data, one.data))
  assert.ok(of !== undefined, `nobody ever wrote ${JSON.stringify(data)}`)
  const torn = tornFiles(folder)
  const cut = torn.map(path => readFileSync(path))
  assert.ok(Buffer.concat([journalBytes(folder), ...cut]).equals(bytes), 'what was cut off is kept')
  assert.equal(opened.warnings.length, torn.length)
  for (const path of torn) rmSync(path)
  // What was opened can be written to, and reads the same the next time.
  if (random.next() < 0.1) await opened.journal.record('more')
  const again = [...opened.journal.data]
  await opened.journal.close()
  const second = await openJournal(folder, { mayCreate: true }) // which one without a record needs
  assert.deepEqual(second.journal.data, again)
  assert.deepEqual(second.warnings, [])
  await second.journal.close()
  const isWhole = data.length === of.data.length
  return [isWhole ? 'whole' : 'shorter', ...torn.length > 0 ? ['torn'] : []]
}

for (const isOneKey of [true, false]) {
  const keys = isOneKey ? 'the same key' : 'other keys'
  test(`a journal mixed with others under ${keys} gives the beginning of one of them, or is refused`, async t => {
    const random = randomOf(t)
    const folder = freshFolder(t)
    const [older, newer, foreign] = [random.bytes(32), random.bytes(32), random.bytes(32)]
    const first = original(older, 'a', random)
    // One that starts like another and goes its own way, as after a backup was put back.
    const data = [...first.data.slice(0, 3), 'b 1', 'b 2', 'b 3']
    const lines = referenceLines(older, [...data.slice(0, 4).map(one => [one]), data.slice(4)])
    const others = isOneKey
      ? [original(older, 'c', random), { lines, bytes: bytesOf(lines), data }]
      : [newer, foreign, (line: number) => line < 5 ? older : newer].map((secret, i) =>
        original(secret, 'bcd'[i]!, random))
    writeKeys(folder, older, newer)
    await tryAll(t, folder, random, [first, ...others], isOneKey)
  })
}
