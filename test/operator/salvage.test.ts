/** Salvage: what comes of damaged journals, against a model; the command, its report and its exit codes. */
import { strict as assert } from 'node:assert'
import { execFileSync } from 'node:child_process'
import {
  chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync,
  writeFileSync
} from 'node:fs'
import { join, relative } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { READ_CHUNK_BYTES } from '../../src/limits.ts'
import { admin, done, refused } from '../support/admin.ts'
import { fileStore, type FullStore } from '../support/compose.ts'
import { bytesOf, journalPath, linesOf, journalBytes } from '../support/journal.ts'
import { countFromEnv } from '../support/mutations.ts'
import { randomOf } from '../support/random.ts'
import { DAMAGES, KINDS, makeSource, salvageAndCheck } from '../support/salvage.ts'
import { freshFolder } from '../support/service.ts'

const NAMES = Object.keys(DAMAGES)
/** Each damage alone and behind another one; `COUNT` for each kind of journal, and `SEED`, for a campaign. */
const COUNT = countFromEnv(2 * NAMES.length)

for (const kind of KINDS) {
  test(`of a ${kind} journal that is damaged at random all that can be opened comes through, and nothing else`, async t => {
    const random = randomOf(t)
    let source = await makeSource(random, freshFolder(t), kind, 60)
    for (let n = 0; n < COUNT; n++) {
      if (n > 0 && n % 1_000 === 0) source = await makeSource(random, freshFolder(t), kind, 60 + random.int(140))
      const name = NAMES[n % NAMES.length]!
      const names = n % (2 * NAMES.length) < NAMES.length ? [name] : [name, random.pick(NAMES)]
      const damaged = names.reduce((bytes, one) => DAMAGES[one]!(random, bytes), source.bytes)
      t.diagnostic(names.join(', '))
      // Of lines that are gone without their bytes it is not known how many ids they gave.
      await salvageAndCheck(source, damaged, names.some(one => / lost|cut/.test(one)))
    }
  })
}

test('the end of a lost line is found wherever a read of the file ends in it, before it or behind it', async t => {
  const random = randomOf(t)
  const source = await makeSource(random, freshFolder(t), 'plain', 12)
  const [first, ...rest] = source.lines
  const hash = first!.slice(first!.indexOf('"hash":"'))
  for (let before = 1; before < 300; before += 7) {
    const bytes = [Buffer.alloc(READ_CHUNK_BYTES - before), Buffer.from(hash), Buffer.alloc(400), Buffer.from(`\n${rest.join('\n')}\n`)]
    await salvageAndCheck(source, Buffer.concat(bytes), true)
  }
})

/** A folder whose journal has lost some lines, counted from 1; each has a bit flipped. */
async function damagedFolder(
  t: TestContext, fill: (store: FullStore, clock: { aheadMs: number }) => Promise<unknown>, ...lines: readonly number[]
): Promise<{ readonly folder: string, readonly bad: string, readonly good: string }> {
  const folder = freshFolder(t)
  const clock = { aheadMs: 0 }
  const store = await fileStore(folder, { wallMs: () => Date.now() + clock.aheadMs })
  await fill(store, clock)
  await store.close()
  const texts = linesOf(journalBytes(folder))
  const damaged = texts.map((text, i) => lines.includes(i + 1) ? text.replace(/("sealed":"[^"]{20})(.)/, (_, start, one) => `${start}${one === 'A' ? 'B' : 'A'}`) : text)
  const bad = join(folder, 'bad.jsonl')
  writeFileSync(bad, bytesOf(damaged))
  return { folder, bad, good: join(folder, 'good.jsonl') }
}

const ENTRY = { password: 'p', sistema: 's', usuario: 'u' }

test('a change to an entry that is lost is kept aside, and its id is not given again', async t => {
  const { folder, bad, good } = await damagedFolder(t, async store => {
    await store.createEntry(ENTRY, null)
    await store.createEntry(ENTRY, null)
    await store.updateEntry(2, { password: 'sécret' }, null)
  }, 2)
  const { code, out, error } = await admin(folder, `journal salvage ${bad} --to ${good} --json`)
  assert.deepEqual([code, error], [3, ''])
  const { opened, lost, entries, whole, mayLackChanges, unplaced, unplacedFile, unplacedRecords, nextId } = JSON.parse(out)
  assert.deepEqual({ opened, entries, whole, mayLackChanges, unplaced },
    { opened: 2, entries: 1, whole: 0, mayLackChanges: '1', unplaced: 1 })
  assert.ok(nextId > 2, 'what is lost may have been an import of several')
  assert.deepEqual(lost.map(({ from, to }: any) => [from, to]), [[2, 2]])
  assert.equal(statSync(unplacedFile).mode & 0o777, 0o600)
  const { data, line, type } = JSON.parse(readFileSync(unplacedFile, 'utf8'))
  assert.deepEqual([data, line, type], [{ id: 2, password: 'sécret' }, 3, 'entry.updated'])
  assert.deepEqual(unplacedRecords.map(({ line, type, id, why }: any) => [line, type, id, why]),
    [[3, 'entry.updated', 2, 'id 2 does not exist']])
  await done(folder, `journal verify ${good}`)
  renameSync(good, journalPath(folder))
  await done(folder, 'entry add --system a --user b --password-stdin', 'pw\n')
  assert.match(await done(folder, 'entry list'), new RegExp(`^${nextId} `, 'm'))
  await done(folder, 'journal compact')
  await done(folder, 'journal verify')
})

test('who had access before a record that is lost has none afterwards, unless that is asked for', async t => {
  const { folder, bad, good } = await damagedFolder(t, async store => {
    await store.accounts.addUser('ana@x', 'ana', ['*'], 'a long password')
    await store.accounts.issue('ana@x', undefined, undefined)
    await store.accounts.revokeAll('ana@x')
    await store.accounts.addUser('bea@x', 'bea', ['*'], 'a long password')
    await store.accounts.issue('bea@x', undefined, undefined)
  }, 3)
  const report = JSON.parse((await admin(folder, `journal salvage ${bad} --to ${good} --json`)).out)
  assert.deepEqual([report.users, report.lockedUsers, report.tokens, report.tokensLeftOut], [2, ['ana@x'], 1, 1])
  const kept = JSON.parse((await admin(folder, `journal salvage ${bad} --to ${good}.2 --keep-tokens --json`)).out)
  assert.deepEqual([kept.users, kept.lockedUsers, kept.tokens, kept.tokensLeftOut], [2, [], 2, 0])
  for (const { mayHaveFewerAbilities } of [report, kept]) assert.deepEqual(mayHaveFewerAbilities, ['ana@x'])
  const { out } = await admin(folder, `journal salvage ${bad} --to ${good}.3`)
  assert.match(out, /^ {9}these may have had fewer abilities; check user list: ana@x$/m)
})

test('a whole journal is salvaged with 0; what holds no line, or is sealed with another key, is refused with 1', async t => {
  const { folder, bad, good } = await damagedFolder(t, store => store.createEntry(ENTRY, null))
  assert.equal((await admin(folder, `journal salvage ${bad} --to ${good}`)).code, 0)
  await refused(folder, `journal salvage ${bad} --to ${good}`, 1, /exists already/)
  writeFileSync(`${bad}.text`, 'a text\n')
  await refused(folder, `journal salvage ${bad}.text --to ${good}.2`, 1, /not a journal/)
  writeFileSync(`${bad}.empty`, '')
  await refused(folder, `journal salvage ${bad}.empty --to ${good}.2`, 1, /empty/)
  const other = await damagedFolder(t, store => store.createEntry(ENTRY, null))
  copyFileSync(bad, other.bad)
  await refused(other.folder, `journal salvage ${other.bad} --to ${good}.2`, 1, /lacks key [0-9a-f]{8}/)
  await refused(folder, `journal salvage ${bad}`, 2, /--to/)
  await refused(folder, `journal salvage ${bad} --to ${good}.2 --next-id 10000001`, 2, /from 1 to 10000000\n$/)
  assert.ok(!existsSync(`${good}.2`) && !existsSync(`${good}.2.unplaced.jsonl`))
})

test('a refusal of a damaged journal names the command, and verify counts the lines that can be opened behind it', async t => {
  const { folder, bad } = await damagedFolder(t, async store => {
    for (let n = 0; n < 9; n++) await store.createEntry(ENTRY, null)
  }, 4)
  await refused(folder, `journal verify ${bad}`, 3, /line 4 at byte \d+: .*journal salvage; of the lines from there on 5 can be opened$/m)
})

test('damage in a checkpoint takes nobody\'s access', async t => {
  const { folder, bad, good } = await damagedFolder(t, async store => {
    for (let n = 0; n < 3; n++) await store.createEntry(ENTRY, null)
    await store.accounts.addUser('ana@x', 'ana', ['*'], 'a long password')
    await store.accounts.issue('ana@x', undefined, undefined)
    const { compact } = await import('../support/rewrite.ts')
    await compact(store, false)
  }, 2)
  const report = JSON.parse((await admin(folder, `journal salvage ${bad} --to ${good} --json`)).out)
  assert.deepEqual([report.entries, report.users, report.lockedUsers, report.tokens], [0, 1, [], 1])
  assert.deepEqual(report.mayHaveFewerAbilities, [])
  assert.ok(report.nextId > 3)
})

test('a line is opened whose predecessor is left as the end of what begins as another line', async t => {
  const { folder, bad, good } = await damagedFolder(t, async store => {
    for (let n = 0; n < 5; n++) await store.createEntry(ENTRY, null)
  })
  const [one, two, three, four, five] = linesOf(journalBytes(folder)) as [string, string, string, string, string]
  const half = two.indexOf('"sealed":"') + 30
  writeFileSync(bad, bytesOf([one, two.slice(0, half) + four.slice(half), three, five]))
  const { code, out } = await admin(folder, `journal salvage ${bad} --to ${good} --json`)
  const { opened, lost } = JSON.parse(out)
  assert.deepEqual([code, opened, lost.map(({ from, to }: any) => [from, to])], [3, 2, [[2, 4]]])
})

test('a file that was cut right behind a seal may lack its newest lines', async t => {
  const { folder, bad, good } = await damagedFolder(t, async store => {
    for (let n = 0; n < 3; n++) await store.createEntry(ENTRY, null)
  })
  const [one, two = ''] = linesOf(journalBytes(folder))
  writeFileSync(bad, `${one}\n${two.slice(0, two.indexOf(',"hash"') + 1)}`)
  const { code, out } = await admin(folder, `journal salvage ${bad} --to ${good} --json`)
  const { opened, lost } = JSON.parse(out)
  assert.deepEqual([code, opened, lost], [3, 2, [{ from: 3, to: null, bytes: 1 }]])
})

test('lines that are there twice, elsewhere too, lose nothing', async t => {
  const { folder, bad, good } = await damagedFolder(t, async store => {
    await store.accounts.addUser('ana@x', 'ana', ['*'], 'a long password')
    await store.accounts.issue('ana@x', undefined, undefined)
    for (let n = 0; n < 6; n++) await store.createEntry(ENTRY, null)
  })
  const lines = linesOf(journalBytes(folder))
  for (const [n, twice] of [
    [...lines.slice(0, 6), ...lines.slice(2, 5), ...lines.slice(6), ...lines.slice(3, 4)],
    [...lines.slice(0, 5), ...lines.slice(2)], [...lines.slice(0, 7), ...lines.slice(1, 4), ...lines.slice(3)]
  ].entries()) {
    writeFileSync(bad, bytesOf(twice))
    const { code, out } = await admin(folder, `journal salvage ${bad} --to ${good}.${n} --json`)
    const { opened, lost, tokens, unplaced, nextId } = JSON.parse(out)
    assert.deepEqual([code, opened, lost, tokens, unplaced, nextId], [0, 8, [], 1, 0, 7])
  }
})

test('lines of a journal that went on from an older copy are kept aside, and do not replace what is there', async t => {
  const { folder, bad, good } = await damagedFolder(t, async store => { await store.createEntry(ENTRY, null) })
  const older = journalBytes(folder)
  const goOn = async (system: string, count: number): Promise<string[]> => {
    writeFileSync(journalPath(folder), older)
    const store = await fileStore(folder)
    for (let n = 0; n < count; n++) await store.createEntry({ ...ENTRY, sistema: system }, null)
    await store.close()
    return linesOf(journalBytes(folder))
  }
  const [one, ...others] = await goOn('other', 5)
  const own = await goOn('own', 3)
  assert.equal(own[0], one)
  writeFileSync(bad, bytesOf([...own, ...others]))
  const { code, out } = await admin(folder, `journal salvage ${bad} --to ${good} --json`)
  const { opened, entries, unplaced, unplacedRecords } = JSON.parse(out)
  assert.deepEqual([code, opened, entries, unplaced], [3, 4, 4, 5])
  for (const { why } of unplacedRecords) assert.match(why, /^it may be of another journal: its place is taken/)
  assert.match(await done(folder, `journal show ${good}`), /"sistema":"own"/)
})

test('lines behind a lost one where the clock was set back are placed and called doubtful, unless others claim their places', async t => {
  const { folder, bad, good } = await damagedFolder(t, async (store, clock) => {
    await store.createEntry(ENTRY, null)
    clock.aheadMs = 1e12
    await store.createEntry(ENTRY, null)
    clock.aheadMs = 0
    await store.createEntry(ENTRY, null)
    await store.accounts.addUser('ana@x', 'ana', ['*'], 'a long password')
    await store.accounts.issue('ana@x', undefined, undefined)
    await store.createEntry(ENTRY, null)
  }, 3)
  const lines = linesOf(readFileSync(bad))
  const { code, out } = await admin(folder, `journal salvage ${bad} --to ${good} --json`)
  const { opened, lostLines, unplaced, doubtful, mayLackChanges, lockedUsers, tokens } = JSON.parse(out)
  assert.deepEqual([code, opened, lostLines, unplaced, doubtful], [3, 5, 1, 0, [{ from: 4, to: 6 }]])
  assert.deepEqual([mayLackChanges, lockedUsers, tokens], ['1-2,4', ['ana@x'], 0])
  const shown = await admin(folder, `journal salvage ${bad} --to ${good}.kept --keep-tokens`)
  assert.match(shown.out, /^doubtful 4 to 6 are older than what comes before them[^]+^tokens   1$/m)
  writeFileSync(journalPath(folder), bytesOf(linesOf(journalBytes(folder)).slice(0, 3)))
  const store = await fileStore(folder)
  for (let n = 0; n < 2; n++) await store.createEntry({ ...ENTRY, sistema: 'other' }, null)
  await store.close()
  writeFileSync(bad, bytesOf([...lines, ...linesOf(journalBytes(folder)).slice(2).map((line, i) => i === 0 ? line.slice(-90) : line)]))
  const claimed = JSON.parse((await admin(folder, `journal salvage ${bad} --to ${good}.claimed --json`)).out)
  assert.deepEqual([claimed.opened, claimed.unplaced, claimed.doubtful], [2, 5, []])
})

test('what an older, compacted journal has left behind the end is kept aside, also where its first line has no time of its own', async t => {
  const { compact } = await import('../support/rewrite.ts')
  const { folder, bad, good } = await damagedFolder(t, async store => {
    await store.accounts.addUser('ana@x', 'ana', ['*'], 'a long password')
    for (let n = 0; n < 3; n++) await store.createEntry(ENTRY, null)
    await compact(store, false)
    await store.createEntry({ ...ENTRY, sistema: 'older' }, null)
  })
  const older = linesOf(journalBytes(folder))
  const whole = older.findIndex(line => line.includes('"journal.whole"'))
  rmSync(journalPath(folder))
  await pause(2)
  const store = await fileStore(folder)
  for (let n = 0; n < whole; n++) await store.createEntry(ENTRY, null)
  await store.close()
  writeFileSync(bad, bytesOf([...linesOf(journalBytes(folder)), older[whole - 1]!.slice(-90), ...older.slice(whole)]))
  const { opened, entries, unplaced } = JSON.parse((await admin(folder, `journal salvage ${bad} --to ${good} --json`)).out)
  assert.deepEqual([opened, entries, unplaced], [whole, whole, 2])
})

test('lines older than a compaction and behind its first line are called doubtful; behind that of a journal sealed again they are not', async t => {
  const { compact, reencrypt } = await import('../support/rewrite.ts')
  const rewrites = [[(store: FullStore) => compact(store, false), [{ from: 3, to: 3 }]], [reencrypt, []]] as const
  for (const [rewrite, expected] of rewrites) {
    const { folder, bad, good } = await damagedFolder(t, async store => {
      for (let n = 0; n < 3; n++) await store.createEntry(ENTRY, null)
    })
    const older = linesOf(journalBytes(folder))
    await pause(2)
    const store = await fileStore(folder)
    await rewrite(store)
    await store.close()
    writeFileSync(bad, bytesOf([linesOf(journalBytes(folder))[0]!, older[1]!.slice(-90), older[2]!]))
    const { opened, doubtful } = JSON.parse((await admin(folder, `journal salvage ${bad} --to ${good} --json`)).out)
    assert.deepEqual([opened, doubtful], [2, expected])
  }
})

/** A folder whose journal was compacted with its history kept; some of its lines, counted from 1, are damaged. */
async function compactedFolder(
  t: TestContext, ...lines: readonly number[]
): Promise<{ readonly folder: string, readonly bad: string, readonly good: string, readonly archive: string }> {
  const { compact } = await import('../support/rewrite.ts')
  const made = await damagedFolder(t, async store => {
    for (let n = 0; n < 3; n++) await store.createEntry(ENTRY, null)
    await store.accounts.addUser('ana@x', 'ana', ['*'], 'a long password')
    await store.accounts.issue('ana@x', undefined, undefined)
    await compact(store)
    await store.updateEntry(2, { password: 'newer' }, null)
    await store.createEntry(ENTRY, null)
  }, ...lines)
  return { ...made, archive: join(made.folder, 'journal-1-5.jsonl') }
}

for (const [what, lines] of [
  ['its entries', [2]], ['its users', [3]], ['its end', [5]], ['all but its end', [2, 3, 4]]
] as const) {
  test(`an archive gives what is lost of a checkpoint: ${what}`, async t => {
    const { folder, bad, good, archive } = await compactedFolder(t, ...lines)
    const { code, out, error } = await admin(folder, `journal salvage ${bad} --to ${good} --archive ${archive} --json`)
    const report = JSON.parse(out)
    assert.deepEqual([code, error, report.archive, report.lostLines], [0, '', archive, 0])
    assert.deepEqual([report.entries, report.users, report.tokens, report.unplaced], [4, 1, 1, 0])
    const shown = (await done(folder, `journal show ${good}`)).split('\n')
    assert.match(shown[0]!, new RegExp(`"why":"salvaged".*"archive":"${archive}"`))
    await done(folder, `journal verify ${good}`)
    renameSync(journalPath(folder), `${bad}.whole`)
    await done(folder, `journal restore ${good}`)
    assert.equal(await done(folder, 'entry get 2 --field password --reveal'), 'newer\n')
    assert.match(await done(folder, 'entry list'), /^4 /m)
  })
}

test('where more than the checkpoint may be lost with its end, an archive gives its part, and access ends', async t => {
  const { folder, bad, good, archive } = await compactedFolder(t, 2, 3, 4, 5, 6)
  const report = JSON.parse((await admin(folder, `journal salvage ${bad} --to ${good} --archive ${archive} --json`)).out)
  assert.deepEqual([report.archive, report.entries, report.lostLines, report.tokens], [archive, 4, 5, 0])
})

test('the report names the archive that would help', async t => {
  const { folder, bad, good } = await compactedFolder(t, 2)
  const shown = await admin(folder, `journal salvage ${bad} --to ${good}`)
  assert.match(shown.out, /^archive  --archive with the journal before the compaction of \S+, 5 records, can give what is lost/m)
})

test('the end of a checkpoint alone takes nobody\'s access with it', async t => {
  const { folder, bad, good } = await compactedFolder(t, 5)
  const report = JSON.parse((await admin(folder, `journal salvage ${bad} --to ${good} --json`)).out)
  assert.deepEqual([report.lostLines, report.tokens, report.mayLackChanges], [1, 1, ''])
})

test('an archive is not needed where the checkpoint is whole, and refused where nothing says that it is one', async t => {
  const { folder, bad, good, archive } = await compactedFolder(t, 6)
  const { code, out } = await admin(folder, `journal salvage ${bad} --to ${good} --archive ${archive} --json`)
  const { archive: used, lostLines } = JSON.parse(out)
  assert.deepEqual([code, used, lostLines], [3, null, 1])
  await refused(folder, `journal salvage ${bad} --to ${good}.2 --archive ${journalPath(folder)}`, 1, /where no journal ended/)
  const first = await compactedFolder(t, 1)
  await refused(first.folder, `journal salvage ${first.bad} --to ${first.good} --archive ${first.archive}`, 1, /its first line, is lost/)
  assert.ok(!existsSync(first.good))
})

test('a noted head shows that lines are gone from the end without a trace', async t => {
  const { folder, bad, good } = await damagedFolder(t, async store => {
    await store.accounts.addUser('ana@x', 'ana', ['*'], 'a long password')
    await store.accounts.issue('ana@x', undefined, undefined)
    await store.accounts.revokeAll('ana@x')
  })
  const lines = linesOf(journalBytes(folder))
  const heads = lines.map(line => line.slice(-66, -2))
  writeFileSync(bad, bytesOf(lines.slice(0, 2)))
  const salvage = async (name: string, head: string): Promise<readonly unknown[]> => {
    const { code, out } = await admin(folder, `journal salvage ${bad} --to ${good}.${name} --head ${head} --json`)
    const { noted, lost, tokens } = JSON.parse(out)
    return [code, noted, lost, tokens]
  }
  assert.deepEqual(await salvage('last', heads[1]!), [0, true, [], 1])
  assert.deepEqual(await salvage('gone', heads[2]!), [3, false, [{ from: 3, to: null, bytes: 0 }], 0])
  await refused(folder, `journal salvage ${bad} --to ${good} --head 12`, 2, /64 hexadecimal digits/)
})

const NOT_ROOT = process.geteuid?.() === 0 ? false : 'only root can be another user'

test('root salvages from and into a folder of another user, whose service it does not keep out', { skip: NOT_ROOT }, async t => {
  const { folder: own, bad, archive } = await compactedFolder(t, 2)
  const place = freshFolder(t)
  chmodSync(place, 0o711)
  const folder = join(place, 'data')
  mkdirSync(folder, { mode: 0o700 })
  for (const name of ['journal.key', 'journal.jsonl']) {
    copyFileSync(name === 'journal.jsonl' ? bad : join(own, name), join(folder, name))
    chownSync(join(folder, name), 54_321, 54_322)
  }
  chownSync(folder, 54_321, 54_322)
  const owners = (at: string): unknown => readdirSync(at).sort().map(name => [name, statSync(join(at, name)).uid])
  const given = `journal salvage ${journalPath(folder)} --archive ${archive}`
  await done(folder, `${given} --to ${own}/salvaged.jsonl`)
  assert.equal(statSync(`${own}/salvaged.jsonl`).uid, 0)
  await done(own, `${given} --to ${own}/again.jsonl`)
  await done(folder, `journal salvage ${journalPath(folder)} --archive ${relative(process.cwd(), archive)} --to ${folder}/salvaged.jsonl`)
  assert.deepEqual(owners(folder), [['journal.jsonl', 54_321], ['journal.key', 54_321], ['salvaged.jsonl', 54_321]])
})

test('the first copy that the runbook makes of a damaged folder holds its files, also where systemd made that a link', t => {
  const text = readFileSync(fileURLToPath(new URL('../../src/parts/operator/SALVAGE.md', import.meta.url)), 'utf8')
  const [, words = ''] = /^cp (-a .*?) +#/m.exec(text) ?? []
  const top = freshFolder(t)
  mkdirSync(join(top, 'private'))
  writeFileSync(join(top, 'private/journal.jsonl'), 'damaged')
  symlinkSync('private', join(top, 'password-entry-service'))
  execFileSync('cp', words.replace('/var/lib', top).replace('/root', top).split(' '))
  renameSync(join(top, 'private'), join(top, 'gone'))
  assert.equal(readFileSync(join(top, 'damaged/journal.jsonl'), 'utf8'), 'damaged')
})
