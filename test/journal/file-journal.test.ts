/** A journal in a file behind the commit loop: what a write shares, what fails it, and what a later start finds. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  appendFileSync, chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync,
  statSync,
  truncateSync, unlinkSync, writeFileSync
} from 'node:fs'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { disk, type Files } from '../../src/journal/files.ts'
import { Failure } from '../../src/errors.ts'
import type { Event } from '../../src/journal/journal.ts'
import { MAX_GATHER_TURNS } from '../../src/limits.ts'
import type { Store } from '../../src/store/store.ts'
import { checkState } from '../support/check.ts'
import { fileStore } from '../support/stores.ts'
import { FaultyFiles, whicheverCallFails } from '../support/faulty-files.ts'
import { freshFolder } from '../support/service.ts'
import {
  assertRefused, decisionOn, failure, JOURNAL_FILE, journalPath, KEY_FILE, keyPath, openJournal, putJournal,
  startAndStop,
  type FileBehindLoop, type OpenedJournal
} from '../support/journal.ts'
import { joined } from '../support/patterns.ts'
import { createEntry, deleteEntry, restoreEntry } from '../../src/entries/entry-commands.ts'

/** A journal on a faulty disk in a fresh folder; the test closes it. */
async function openFaulty(
  t: TestContext
): Promise<OpenedJournal & { folder: string, path: string, faulty: FaultyFiles }> {
  const folder = freshFolder(t)
  const faulty = new FaultyFiles()
  const opened = await openJournal(folder, { files: faulty.files })
  t.after(() => opened.journal.close())
  return { ...opened, folder, path: journalPath(folder), faulty }
}

const event = (data: unknown): Event => ({ type: 'test.made', by: null, data })

/** The data of all records that a fresh start on the real disk finds, whose numbers must have no gaps. */
async function recovered(folder: string): Promise<unknown[]> {
  const { records } = await startAndStop(folder)
  assert.deepEqual(records.map(({ seq }) => seq), records.map((_, i) => i + 2))
  return records.map(({ data }) => data)
}

/** `done`, or the failure's code. */
function outcomeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => 'done', error => error instanceof Failure ? error.code : `not a Failure: ${error}`)
}

/** Commits these together, and says what became of each. */
function commitAll(journal: FileBehindLoop, data: readonly unknown[]): Promise<string[]> {
  return Promise.all(data.map(item => outcomeOf(journal.commit(decisionOn(event(item))))))
}

const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
const count = (n: number, from = 1): number[] => Array.from({ length: n }, (_, i) => from + i)
const fields = (password: string) => ({ password, sistema: 's', usuario: 'u' })

/** Collects, until the test ends, what is thrown where nobody catches it. */
function catchUncaught(t: TestContext): unknown[] {
  const thrown: unknown[] = []
  process.setUncaughtExceptionCaptureCallback(error => { thrown.push(error) })
  t.after(() => process.setUncaughtExceptionCaptureCallback(null))
  return thrown
}

/** Looks once a turn of the event loop, at most that many times. */
async function waitUntil(is: () => boolean, turns: number = 10_000): Promise<void> {
  while (!is() && turns-- > 0) await turn()
}

test('a decision without a record looks only at the files; a removal before the first record is noticed', async t => {
  const { journal, path, faulty } = await openFaulty(t)
  const changes = (): number => faulty.count() - ['stat', 'read', 'openStat'].reduce((sum, of) => sum +
    faulty.count(of as 'stat'), 0)
  const before = changes()
  await journal.commit(decisionOn(undefined))
  assert.equal(changes(), before)
  unlinkSync(path)
  assert.match(journal.status().fault!, /was removed/)
})

test('a write waits for what each turn of the event loop still brings, and not for ever', async t => {
  const { journal, faulty } = await openFaulty(t)
  const commits: Promise<string[]>[] = []
  for (let n = 1; n <= 5; n++, await turn()) commits.push(commitAll(journal, [n]))
  await Promise.all(commits)
  assert.equal(faulty.count('append'), 1)
  assert.deepEqual(journal.data, count(5))

  const held = faulty.hold()
  let asked = 5
  for (; faulty.count('append') === 1 && asked < 1000; await turn()) commits.push(commitAll(journal, [++asked]))
  assert.equal(asked - 5, MAX_GATHER_TURNS + 1)
  held.release()
  await Promise.all(commits)
  assert.deepEqual(journal.data, count(asked))
})

test('a change that could not be sealed rejects, throws nowhere else, and harms nothing decided after it', async t => {
  const folder = freshFolder(t)
  await startAndStop(folder)
  let fails = false
  const random = (bytes: number): Buffer => {
    if (fails && bytes > 0) { fails = false; throw new Error('no randomness') }
    return randomBytes(bytes)
  }
  const store = await fileStore(folder, { random })
  const thrown = catchUncaught(t)
  fails = true
  const passwords = ['a', 'b', 'c']
  const outcomes: string[] = []
  passwords.forEach((p, i) => void outcomeOf(createEntry(store, fields(p), null)).then(got => { outcomes[i] = got }))
  await waitUntil(() => outcomes.filter(Boolean).length === 3 || thrown.length > 0)
  assert.deepEqual(thrown, [])
  assert.notEqual(outcomes[0], 'done')
  await createEntry(store, fields('d'), null)
  await store.close()
  const acknowledged = [...passwords.filter((_, i) => outcomes[i] === 'done'), 'd']
  const reopened = await fileStore(folder)
  assert.deepEqual(count(reopened.state.entries.count).map(id => reopened.state.entries.get(id)!.password),
    acknowledged)
  checkState(reopened.state)
  await reopened.close()
})

const within = (bytesOf: (line: number) => number) => (faulty: FaultyFiles, line: number): void =>
  faulty.shorten(bytesOf(line))

for (const [what, fail] of [
  ...['ENOSPC', 'EDQUOT', 'EFBIG'].map(code =>
    [`finds no room (${code})`, (faulty: FaultyFiles) => faulty.fail({ of: 'append', code })] as const),
  ['ends before its first byte', within(() => 0)], ['ends after its first byte', within(() => 1)],
  ['ends within its first line', within(line => line >> 1)],
  ['ends before its first line end', within(line => line - 1)], ['ends after its first line', within(line => line)],
  ['ends within its second line', within(line => line + 9)],
  ['ends before its last byte', within(line => 2 * line - 1)]
] as readonly (readonly [string, (faulty: FaultyFiles, line: number) => void])[]) {
  test(`a write that ${what} fails, is cut back and reported, and the next one works`, async t => {
    const { journal, folder, path, faulty, warnings } = await openFaulty(t)
    const before = statSync(path).size
    await commitAll(journal, [1])
    const good = readFileSync(path)
    fail(faulty, good.length - before)
    assert.deepEqual(await commitAll(journal, [2, 3]), ['write-failed', 'write-failed'])
    assert.deepEqual(readFileSync(path), good)
    assert.deepEqual([journal.status().fault, journal.status().records, warnings.length], [undefined, 2, 1])
    assert.match(warnings[0]!, new RegExp(/E[A-Z]+/.exec(what)?.[0] ?? ''))
    assert.deepEqual(await commitAll(journal, [4]), ['done'])
    assert.deepEqual([journal.data, await recovered(folder)], [[1, 4], [1, 4]])
  })
}

test('if the newest write found no room the status says since when, and the log has its beginning and end', async t => {
  const { journal, faulty, warnings } = await openFaulty(t)
  await commitAll(journal, [1])
  assert.equal(journal.status().fullSince, undefined)
  faulty.fail({ of: 'append', code: 'ENOSPC', forGood: true })
  const sinceMs: unknown[] = []
  for (let n = 0; n < 3; n++) {
    assert.deepEqual(await commitAll(journal, [2]), ['write-failed'])
    sinceMs.push(journal.status().fullSince)
  }
  assert.deepEqual([new Set(sinceMs).size, typeof sinceMs[0], journal.status().fault, warnings.length],
    [1, 'number', undefined, 1])
  faulty.heal()
  assert.deepEqual(await commitAll(journal, [3]), ['done'])
  assert.deepEqual([journal.status().fullSince, warnings.length], [undefined, 2])
  assert.match(warnings.join('\n'),
    /found no room \(ENOSPC\) and was cut back; changes fail until there is\n.* has room again/)
})

for (const [what, fail, fault] of [
  ...['EIO', 'ENODATA', 'EREMOTEIO', 'ETIMEDOUT', 'EINTR'].map(code => [
    `an error of the device (${code})`, (faulty: FaultyFiles) => faulty.fail({ of: 'append', code }),
    new RegExp(`device reported an error: ${code}`)
  ] as const),
  ['a failed write that cannot be cut back', (faulty: FaultyFiles) => {
    faulty.fail({ of: 'append', code: 'ENOSPC' })
    faulty.fail({ of: 'truncate', code: 'EROFS' })
  }, /ENOSPC.*EROFS/],
  ['a file system that has become read-only', (faulty: FaultyFiles) => {
    faulty.fail({ of: 'append', code: 'EROFS' })
    faulty.fail({ of: 'openToOverwrite', code: 'EROFS' })
  }, /EROFS/],
  ['a short write that cannot be cut back', (faulty: FaultyFiles) => {
    faulty.shorten(10)
    faulty.fail({ of: 'truncate', code: 'EIO' })
  }, /could not be cut back/],
  ['a file that cannot be looked at', (faulty: FaultyFiles) => {
    faulty.fail({ of: 'stat', code: 'EACCES' })
  }, /EACCES/]
] as const) {
  test(`${what} fails the journal until it is opened again`, async t => {
    const { journal, folder, faulty, warnings } = await openFaulty(t)
    await commitAll(journal, [1])
    fail(faulty)
    const held = faulty.hold()
    const caught = commitAll(journal, [2, 3])
    if (what !== 'a file that cannot be looked at') await held.reached
    const queued = commitAll(journal, [4])
    held.release()
    assert.deepEqual([...await caught, ...await queued], count(3).map(() => 'journal-failed'))
    faulty.heal()
    const { calls } = faulty
    const before = calls.length
    const rejected = journal.commit(decisionOn(undefined))
    await assert.rejects(rejected, error => error instanceof Failure && error.code === 'journal-failed' &&
      fault.test(error.message))
    assert.match(journal.status().fault!, fault)
    assert.equal(calls.length, before)
    assert.equal(warnings.filter(line => line.includes('takes no more writes')).length, 1)
    assert.deepEqual(journal.data, [1])
    await journal.close()
    assert.equal(faulty.open.size, 0)
    const reopened = await openJournal(folder)
    assert.equal(reopened.journal.status().fault, undefined)
    assert.deepEqual(await commitAll(reopened.journal, [5]), ['done'])
    await reopened.journal.close()
    assert.deepEqual(await recovered(folder), [1, 5])
  })
}

test('a look at the journal while a write is on its way finds nothing wrong', async t => {
  const { journal, faulty } = await openFaulty(t)
  const faults: unknown[] = []
  faulty.afterAppend = () => { faults.push(journal.status().fault) }
  assert.deepEqual([await commitAll(journal, [1]), faults], [['done'], [undefined]])
})

/** What another program does to the journal's file, and what the journal says of it. */
const TAMPERINGS: readonly (readonly [string, (path: string) => void, RegExp])[] = [
  ['removed', path => unlinkSync(path), /was removed/],
  ['moved away', path => renameSync(path, `${path}.old`), /was removed/],
  ['replaced by a copy of itself', path => {
    copyFileSync(path, `${path}.copy`)
    renameSync(`${path}.copy`, path)
  }, /was replaced/],
  ['appended to', path => appendFileSync(path, 'x'), /was changed by another program/],
  ['truncated', path => truncateSync(path, statSync(path).size - 1), /was changed by another program/],
  ['emptied', path => truncateSync(path, 0), /was changed by another program/]
]

for (const [what, tamper, fault] of TAMPERINGS) {
  test(`a file that is ${what} is noticed without a write, before one, and before one is acknowledged`, async t => {
    for (const isLooked of [true, false]) {
      const { journal, path, faulty, warnings } = await openFaulty(t)
      await commitAll(journal, [1])
      assert.equal(journal.status().fault, undefined)
      tamper(path)
      const before = faulty.count('append')
      if (isLooked) for (let i = 0; i < 2; i++) assert.match(journal.status().fault!, fault)
      assert.deepEqual(await commitAll(journal, [2]), ['journal-failed'])
      assert.deepEqual([faulty.count('append'), journal.data, warnings.length], [before, [1], 1])
      assert.match(journal.status().fault!, fault)
    }
    const { journal, path, faulty } = await openFaulty(t)
    await commitAll(journal, [1])
    faulty.afterAppend = () => { faulty.afterAppend = () => {}; tamper(path) }
    assert.deepEqual(await commitAll(journal, [2, 3]), ['journal-failed', 'journal-failed'])
    assert.match(journal.status().fault!, fault)
    assert.deepEqual([journal.data, journal.status().records], [[1], 2])
  })
}

test('an edit that keeps the length is noticed by the next start, and not before', async t => {
  const { journal, folder, path } = await openFaulty(t)
  await commitAll(journal, [1])
  const bytes = readFileSync(path)
  const at = bytes.lastIndexOf('"sealed":"') + 30
  bytes[at] = bytes[at] === 0x41 ? 0x42 : 0x41
  writeFileSync(path, bytes, { flag: 'r+' })
  assert.equal(journal.status().fault, undefined)
  assert.deepEqual(await commitAll(journal, [2]), ['done'])
  await journal.close()
  await assert.rejects(openJournal(folder), error => failure('journal-damaged', /line 2 at byte \d+/)(error))
})

test('a failed write cuts nothing off a file that took the place of the journal meanwhile', async t => {
  const { journal, path, faulty } = await openFaulty(t)
  await commitAll(journal, [1])
  faulty.fail({ of: 'append', code: 'ENOSPC' })
  const other = 'a file of somebody else '.repeat(100)
  faulty.beforeAppend = () => {
    writeFileSync(`${path}.other`, other)
    renameSync(`${path}.other`, path)
  }
  assert.deepEqual(await commitAll(journal, [2]), ['journal-failed'])
  assert.equal(statSync(path).size, other.length)
})

/** What changes came to: the passwords of all entries that were asked for, those promised, and those refused. */
interface Campaign { readonly attempted: string[], readonly acknowledged: string[], readonly refused: string[] }

/** Changes in four writes: of one record, of several, behind another, and all kinds. */
async function campaign(store: Store, faulty: FaultyFiles): Promise<Campaign> {
  const result: Campaign = { attempted: [], acknowledged: [], refused: [] }
  const create = async (password: string): Promise<void> => {
    result.attempted.push(password)
    const outcome = await outcomeOf(createEntry(store, fields(password), null))
    assert.match(outcome, /^(done|write-failed|journal-failed|key-unknown)$/)
    if (outcome === 'done') result.acknowledged.push(password)
    if (outcome === 'write-failed') result.refused.push(password)
  }
  await create('a')
  const held = faulty.hold()
  const together = ['b', 'c', 'd'].map(create)
  await Promise.race([held.reached, Promise.all(together)])
  together.push(...['e', 'f'].map(create))
  held.release()
  await Promise.all(together)
  await Promise.all([create('g'), outcomeOf(deleteEntry(store, 1, null)), outcomeOf(restoreEntry(store, 1, null))])
  await create('h')
  return result
}

/** Holds what a fresh start finds against what was promised. */
async function assertKept(folder: string, { attempted, acknowledged, refused }: Campaign): Promise<void> {
  const store = await fileStore(folder)
  const found = count(store.state.entries.count).map(id => store.state.entries.get(id)!.password)
  assert.deepEqual(acknowledged.filter(password => !found.includes(password)), [], 'an acknowledged change is lost')
  assert.deepEqual(refused.filter(password => found.includes(password)), [], 'a change that was cut back is there')
  assert.deepEqual(found, attempted.filter(password => found.includes(password)), 'in their order')
  checkState(store.state)
  await createEntry(store, fields('last'), null)
  await store.close()
  const again = await fileStore(folder)
  assert.equal(again.state.entries.get(found.length + 1)?.password, 'last', 'what followed is lost')
  await again.close()
}

const NOTHING: Campaign = { attempted: [], acknowledged: [], refused: [] }

/** A start on a disk that fails, which may be refused as a start may. */
async function startFailing(folder: string, { files, open }: FaultyFiles): Promise<void> {
  try {
    // A time of its own: the next start falls into another millisecond, as any real one does.
    await startAndStop(folder, { files, wallMs: () => 0 })
  } catch (error) {
    assert.deepEqual([...open], [], 'a start that fails leaves no descriptor open')
    if (!(error instanceof Failure || /close fails/.test(String(error)))) throw error
  }
}

for (const forGood of [false, true]) {
  const times = forGood ? 'for good from then on' : 'once'

  for (const code of ['ENOSPC', 'EIO']) {
    test(`whichever file call gives ${code} ${times} while changes are made, no acknowledged one is lost`, async t => {
      await whicheverCallFails({ code, forGood }, async (faulty, begin) => {
        const folder = freshFolder(t)
        const store = await fileStore(folder, { files: faulty.files })
        begin()
        const result = await campaign(store, faulty)
        checkState(store.state)
        await store.close().catch(() => {})
        await assertKept(folder, result)
        if (faulty.failed === undefined) assert.deepEqual(result.acknowledged, [...'abcdefgh'])
      })
    })
  }

  test(`whichever file call fails ${times} during a first start, the next start finds a folder that it can open`,
    async t => {
      await whicheverCallFails({ code: 'EIO', forGood }, async (faulty, begin) => {
        const folder = freshFolder(t)
        begin()
        await startFailing(folder, faulty)
        await assertKept(folder, NOTHING)
      })
    })
}

test('a file that cannot be closed after the last write rejects the close, and throws nowhere else', async t => {
  const faulty = new FaultyFiles()
  const { journal } = await openJournal(freshFolder(t), { files: faulty.files })
  const thrown = catchUncaught(t)
  faulty.fail({ of: 'close', code: 'EIO' })
  const committed = commitAll(journal, [1])
  let closed: string | undefined
  void journal.close().then(() => { closed = 'closed' }, () => { closed = 'rejected' })
  assert.deepEqual(await committed, ['done'])
  await waitUntil(() => closed !== undefined || thrown.length > 0)
  assert.deepEqual([thrown, closed], [[], 'rejected'])
})

/** A folder with a journal and its key, of these modes. */
async function withModes(t: TestContext, mode: number): Promise<string> {
  const folder = freshFolder(t)
  await startAndStop(folder)
  for (const path of [journalPath(folder), keyPath(folder)]) chmodSync(path, mode)
  return folder
}

const modeOf = (path: string): number => statSync(path).mode & 0o777

test('every file that is made is for its owner alone, whatever the umask', async t => {
  const umask = process.umask(0)
  t.after(() => process.umask(umask))
  const folder = freshFolder(t)
  await startAndStop(folder)
  appendFileSync(journalPath(folder), '{"seq":2,"time":"2026-01-31T12:00:00.000Z","type":"test.noted"')
  assert.equal((await startAndStop(folder)).warnings.length, 1)
  assert.deepEqual(readdirSync(folder).map(name => modeOf(join(folder, name))), [0o600, 0o600, 0o600])
})

const notRoot = process.geteuid?.() === 0 ? false : 'only root may write where the mode forbids it'

for (const mode of [0o644, 0o640, 0o604, 0o666, 0o620, 0o777, 0o601, 0o400]) {
  const skip = (mode & 0o200) === 0 && notRoot
  test(`a journal and a key file of mode ${mode.toString(8)} are closed to others at start, and stay as they are`, {
    skip
  }, async t => {
    const folder = await withModes(t, mode)
    const key = readFileSync(keyPath(folder))
    const { warnings } = await startAndStop(folder)
    assert.deepEqual([journalPath(folder), keyPath(folder)].map(modeOf), [mode & 0o600, mode & 0o600])
    assert.deepEqual([warnings, readFileSync(keyPath(folder))], [[], key])
  })
}

for (const [mode, expected] of [[0o755, 0o700], [0o777, 0o700], [0o710, 0o700], [0o500, 0o500]] as const) {
  const skip = (mode & 0o200) === 0 && notRoot
  test(`a data folder of mode ${mode.toString(8)} has mode ${expected.toString(8)} after the start`, {
    skip
  }, async t => {
    const folder = await withModes(t, 0o600)
    chmodSync(folder, mode)
    assert.deepEqual((await startAndStop(folder)).warnings, [])
    assert.equal(modeOf(folder), expected)
  })
}

for (const name of [JOURNAL_FILE, KEY_FILE]) {
  test(`a ${name} that cannot be closed to others is warned of and used`, async t => {
    const folder = await withModes(t, 0o600)
    chmodSync(join(folder, name), 0o644)
    const faulty = new FaultyFiles()
    faulty.fail({ of: 'setMode', code: 'EPERM' })
    const { journal, warnings } = await openJournal(folder, { files: faulty.files })
    assert.deepEqual(await commitAll(journal, [1]), ['done'])
    await journal.close()
    assert.equal(warnings.length, 1)
    assert.match(warnings[0]!, new RegExp(`${name} is open to others \\(mode 644\\) .*EPERM`))
  })
}

test('a key file that the device fails to sync is not used', async t => {
  const folder = await withModes(t, 0o600)
  const isKeyFile = (path: string): boolean => path.endsWith(KEY_FILE)
  const fails: Files['sync'] = path => {
    if (isKeyFile(path)) throw Object.assign(new Error('EIO'), { code: 'EIO' })
    disk.sync(path)
  }
  await assert.rejects(openJournal(folder, { files: { ...disk, sync: fails } }), { code: 'folder-unusable' })
})

const GONE = joined(/^there is no journal: [^\n]*\.jsonl (does not exist|is empty), though its key /,
  /[^\n]*journal restore[^\n]*command init$/)

/** What a start makes of a key, where it is, beside which file: a text that it fails with, or warns of. */
for (const [what, isElsewhere, journal, refuses, warns] of [
  ['in the folder without its journal', false, undefined, true, false],
  ['in the folder beside an empty file', false, '', true, false],
  ['elsewhere without a journal', true, undefined, false, true],
  ['elsewhere beside an empty file', true, '', false, true]
] as const) {
  test(`a key ${what} ${refuses ? 'is no new store' : 'begins one, with a warning'}, until init is run`, async t => {
    for (const options of [{}, { mustExist: true }, { mayCreate: true }, { mayCreate: true, mustExist: true }]) {
      const folder = freshFolder(t)
      const keyFile = isElsewhere ? join(freshFolder(t), 'k') : keyPath(folder)
      writeFileSync(keyFile, `${'ab'.repeat(32)}\n`, { mode: 0o600 })
      if (journal !== undefined) putJournal(folder, journal)
      const given = { ...options, keyFile }
      if (!('mayCreate' in options) && (refuses || 'mustExist' in options)) {
        await assertRefused(folder, 'journal-missing', 'mustExist' in options ? /journal restore/ : GONE, given)
        continue
      }
      const { warnings } = await startAndStop(folder, given)
      const says = 'mayCreate' in options || !warns ? /^$/ : /^[^\n]* though its key does; starting a new journal$/
      assert.match(warnings.join('\n'), says)
      assert.match(readFileSync(journalPath(folder), 'latin1'),
        /^\{"seq":1,"time":"[^"]+","type":"journal\.begun",[^\n]+\n$/)
      assert.deepEqual((await startAndStop(folder, { keyFile, mustExist: true })).warnings, [])
    }
  })
}

test('a first start killed once its key had its name goes on; one that was killed before begins anew', async t => {
  const [made, folder] = [freshFolder(t), freshFolder(t)]
  await startAndStop(made)
  copyFileSync(keyPath(made), keyPath(folder))
  await assertRefused(folder, 'journal-missing', GONE)
  copyFileSync(journalPath(made), `${journalPath(folder)}.1.part`)
  await assertRefused(folder, 'journal-missing', GONE) // that of a restore
  renameSync(`${journalPath(folder)}.1.part`, `${journalPath(folder)}.0.part`)
  const { journal } = await openJournal(folder)
  assert.deepEqual(await commitAll(journal, [1]), ['done'])
  await journal.close()
  assert.deepEqual([readdirSync(folder).sort(), await recovered(folder)], [[JOURNAL_FILE, KEY_FILE], [1]])
})

test('a new journal is made once the names of all folders above it are durable, where that can be asked', async t => {
  const folder = join(freshFolder(t), 'a/b')
  mkdirSync(folder, { recursive: true })
  const synced: string[] = []
  const failing = (code?: string): Files => ({ ...disk, sync: path => {
    if (path === dirname(folder)) synced.push(path)
    if (code !== undefined && dirname(folder).startsWith(path)) throw Object.assign(new Error(code), { code })
  } })
  for (let tries = 0; tries < 2; tries++) await assert.rejects(startAndStop(folder, { files: failing('EIO') }),
    failure('folder-unusable', /EIO/))
  assert.deepEqual(readdirSync(folder), [])
  for (const code of ['EACCES', 'ERR_ACCESS_DENIED', undefined]) {
    await startAndStop(folder, { files: failing(code) })
    for (const name of readdirSync(folder)) rmSync(join(folder, name))
  }
  await startAndStop(folder)
  await startAndStop(folder, { files: failing() })
  assert.equal(synced.length, 5, 'not once it is there')
})

test('a failed write cuts nothing off that another process has written since it took the lock', async t => {
  let isHeld = true
  const faulty = new FaultyFiles()
  const folder = freshFolder(t)
  const lock = { isHeld: () => isHeld, socket: 'held.sock' }
  const { journal } = await openJournal(folder, { files: faulty.files, lock })
  t.after(() => journal.close())
  await commitAll(journal, [1])
  faulty.fail({ of: 'append', code: 'ENOSPC' })
  faulty.beforeAppend = () => {
    isHeld = false
    appendFileSync(journalPath(folder), 'another process')
  }
  assert.deepEqual(await commitAll(journal, [2]), ['journal-failed'])
  assert.match(readFileSync(journalPath(folder), 'latin1'), /\nanother process$/)
})

test('a change whose lock is lost before or while it is written is not acknowledged', async t => {
  for (const when of ['beforeAppend', 'afterAppend'] as const) {
    let isHeld = true
    const faulty = new FaultyFiles()
    faulty[when] = () => { isHeld = false }
    const { journal, warnings } = await openJournal(freshFolder(t),
      { files: faulty.files, lock: { isHeld: () => isHeld, socket: 'held.sock' } })
    assert.deepEqual(await commitAll(journal, [1]), ['journal-failed'])
    isHeld = true
    assert.deepEqual([await commitAll(journal, [2]), journal.data], [['journal-failed'], []])
    assert.match(warnings.join(), /the socket of its lock, held\.sock, was removed/)
    await journal.close()
  }
})

for (const [what, ms, time] of [
  ['in the year 10000', Date.UTC(10_000, 0, 1), '9999-12-31T23:59:59.999Z'],
  ['beyond what a date can be', 9e15, '9999-12-31T23:59:59.999Z'],
  ['before 1970', Date.UTC(1969, 0, 1), '1970-01-01T00:00:00.000Z'],
  ['that tells no time', NaN, undefined]
] as const) {
  test(`a clock ${what} writes nothing that the next start refuses`, async t => {
    const folder = freshFolder(t)
    await startAndStop(folder)
    const { journal } = await openJournal(folder, { wallMs: () => ms })
    const [outcome] = await commitAll(journal, [1])
    await journal.close().catch(() => {})
    const { records } = await startAndStop(folder)
    if (time !== undefined) assert.equal(outcome, 'done')
    assert.deepEqual(records.map(one => one.time), time === undefined ? [] : [time])
  })
}

test('where a folder cannot be synced, the start says so and goes on', async t => {
  const folder = freshFolder(t)
  const faulty = new FaultyFiles()
  faulty.fail({ of: 'sync', code: 'ERR_ACCESS_DENIED', forGood: true })
  const { warnings } = await startAndStop(folder, { files: faulty.files })
  assert.equal(warnings.length, 1)
  assert.match(warnings[0]!, /names in .* a crash .* could undo them/)
  assert.ok(existsSync(journalPath(folder)))
})
