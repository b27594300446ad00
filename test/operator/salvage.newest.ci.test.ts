/** Salvage: what comes of damaged journals, against a model; the command, its report and its exit codes. */
import { UNENDED } from '../support/rewrite.ts'
import { strict as assert } from 'node:assert'
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, statSync, symlinkSync,
  writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { READ_CHUNK_BYTES } from '../../src/limits.ts'
import { disk } from '../../src/journal/files.ts'
import { readKeyFile } from '../../src/journal/keys.ts'
import { salvage } from '../../src/parts/operator/salvage/salvage.ts'
import { admin, done, refused } from '../support/admin.ts'
import { fileStore, type FullStore } from '../support/stores.ts'
import { bytesOf, keyPath, journalPath, linesOf, journalBytes } from '../support/journal.ts'
import { countFromEnv } from '../support/mutations.ts'
import { randomOf } from '../support/random.ts'
import { DAMAGES, KINDS, makeSource, MOVES, salvageAndCheck } from '../support/salvage.ts'
import { startProgram } from '../support/program.ts'
import { freshFolder, send } from '../support/service.ts'
import { createEntry, updateEntry } from '../../src/entries/entry-commands.ts'

const NAMES = Object.keys(DAMAGES)
/** Each damage alone and behind another one; `DAMAGES` for each kind of journal, and `SEED`, for a campaign. */
const COUNT = countFromEnv(2 * NAMES.length, 'DAMAGES')

for (const kind of KINDS) {
  test(`of a ${kind} journal damaged at random all that can be opened comes through, and nothing else`, async t => {
    const random = randomOf(t)
    let source = await makeSource(random, freshFolder(t), kind, 60)
    for (let n = 0; n < COUNT; n++) {
      if (n > 0 && n % 1_000 === 0) source = await makeSource(random, freshFolder(t), kind, 60 + random.int(140))
      const name = NAMES[n % NAMES.length]!
      const names = n % (2 * NAMES.length) < NAMES.length ? [name] : [name, random.pick(NAMES)]
      const damaged = names.reduce((bytes, one) => DAMAGES[one]!(random, bytes), source.bytes)
      t.diagnostic(names.join(', '))
      // Of lines that are gone without their bytes it is not known how many ids they gave.
      const moves = names.some(one => MOVES.test(one))
      await salvageAndCheck(source, damaged, { moves, mayLoseNewestIds: moves ||
        names.some(one => / lost|cut/.test(one)) })
    }
  })
}

test('the end of a lost line is found wherever a read of the file ends in it, before it or behind it', async t => {
  const random = randomOf(t)
  const source = await makeSource(random, freshFolder(t), 'plain', 12)
  const [first, ...rest] = source.lines
  const hash = first!.slice(first!.indexOf('"hash":"'))
  for (let before = 1; before < 300; before += 7) {
    const bytes = [Buffer.alloc(READ_CHUNK_BYTES - before), Buffer.from(hash), Buffer.alloc(400),
      Buffer.from(`\n${rest.join('\n')}\n`)]
    await salvageAndCheck(source, Buffer.concat(bytes), { mayLoseNewestIds: true })
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
  const damaged = texts.map((text, i) => lines.includes(i + 1)
    ? text.replace(/("sealed":"[^"]{20})(.)/, (_, start, one) => `${start}${one === 'A' ? 'B' : 'A'}`) : text)
  const bad = join(folder, 'bad.jsonl')
  writeFileSync(bad, bytesOf(damaged))
  return { folder, bad, good: join(folder, 'good.jsonl') }
}

const ENTRY = { password: 'p', sistema: 's', usuario: 'u' }

test('a change to an entry that is lost is kept aside, and its id is not given again', async t => {
  const { folder, bad, good } = await damagedFolder(t, async store => {
    await createEntry(store, ENTRY, null)
    await createEntry(store, ENTRY, null)
    await updateEntry(store, 2, { password: 'sécret' }, null)
  }, 2)
  const { code, out, error } = await admin(folder, `journal salvage ${bad} --to ${good} --json`)
  assert.deepEqual([code, error], [3, ''])
  const { opened, lost, entries, gone, isEndKnown, mayLackIds, unplaced, unplacedFile, nextId } = JSON.parse(out)
  assert.deepEqual({ opened, entries, isEndKnown, mayLackIds, unplaced },
    { opened: 2, entries: 1, isEndKnown: true, mayLackIds: true, unplaced: 1 })
  // The lost line may have been any, also an import.
  assert.ok(nextId > 3 && nextId < 60 && gone === `2,3-${nextId - 1}`, gone)
  assert.deepEqual(lost.map(({ from, to }: any) => [from, to]), [[2, 2]])
  const times = linesOf(readFileSync(bad)).map(line => JSON.parse(line).time)
  assert.deepEqual([lost[0].after, lost[0].before], [times[0], times[2]])
  assert.equal(statSync(unplacedFile).mode & 0o777, 0o600)
  const { seq, type, data, why } = JSON.parse(readFileSync(unplacedFile, 'utf8'))
  assert.deepEqual([seq, type, data, why], [3, 'entry.updated', { id: 2, password: 'sécret' }, 'id 2 does not exist'])
  await done(folder, `journal verify ${good}`)
  const named = JSON.parse((await admin(folder, `journal salvage ${bad} --to ${good}.2 --next-id 99 --json`)).out)
  assert.deepEqual([named.nextId, named.mayLackIds], [99, false])
  renameSync(good, journalPath(folder))
  await done(folder, 'entry add --system a --user b --password-stdin', 'pw\n')
  assert.match(await done(folder, 'entry list'), new RegExp(`^${nextId} `, 'm'))
  await done(folder, 'journal compact')
  await done(folder, 'journal verify')
})

for (const [what, line] of [['a user', 3], ['tokens', 5], ['an entry', 1]] as const) {
  test(`where a record about ${what} is lost nobody gets access back, and who loses a password is named`, async t => {
    const { folder, bad, good } = await damagedFolder(t, async store => {
      await createEntry(store, ENTRY, null)
      await store.accounts.setPassword((await store.accounts.addUser('ana@x', 'ana', ['*'], 'a long password'))!.email,
        'another long one')
      await store.accounts.issue('ana@x', undefined, undefined)
      await store.accounts.revokeAll('ana@x')
      await store.accounts.addUser('bea@x', 'bea', ['*'], 'a long password')
      await store.accounts.issue('bea@x', undefined, undefined)
    }, line)
    const report = JSON.parse((await admin(folder, `journal salvage ${bad} --to ${good} --json`)).out)
    assert.deepEqual([report.users, report.lockedUsers, report.tokens], [2, ['ana@x', 'bea@x'], 0])
    assert.equal(report.tokensLeftOut, what === 'tokens' ? 2 : 1)
    const kept = JSON.parse((await admin(folder, `journal salvage ${bad} --to ${good}.2 --keep-tokens --json`)).out)
    assert.deepEqual([kept.users, kept.lockedUsers, kept.tokensLeftOut], [2, [], 0])
  })
}

test('whose address was taken again is a user, even if the removal of the user before is lost', async t => {
  const { folder, bad, good } = await damagedFolder(t, async ({ accounts }) => {
    await accounts.addUser('ana@x', 'the first', ['*'], 'a long password')
    await accounts.removeUser('ana@x')
    await accounts.addUser('ana@x', 'the second', ['*'], 'a long password')
  }, 2)
  const { unplaced, users, lockedUsers } =
    JSON.parse((await admin(folder, `journal salvage ${bad} --to ${good} --json`)).out)
  assert.deepEqual({ unplaced, users, lockedUsers }, { unplaced: 0, users: 1, lockedUsers: ['ana@x'] })
  renameSync(good, journalPath(folder))
  const listed = JSON.parse(await done(folder, 'user list --json'))
  assert.deepEqual(listed.map(({ id, name }: any) => [id, name]), [[2, 'the second']])
})

test('a whole journal is salvaged with 0; what holds no line is refused with 1, another key with 3', async t => {
  const { folder, bad, good } = await damagedFolder(t, store => createEntry(store, ENTRY, null))
  assert.equal((await admin(folder, `journal salvage ${bad} --to ${good}`)).code, 0)
  await refused(folder, `journal salvage ${bad} --to ${good}`, 1, /exists already/)
  writeFileSync(`${bad}.text`, 'a text\n')
  await refused(folder, `journal salvage ${bad}.text --to ${good}.2`, 1, /not a journal/)
  writeFileSync(`${bad}.empty`, '')
  await refused(folder, `journal salvage ${bad}.empty --to ${good}.2`, 1, /empty/)
  const other = await damagedFolder(t, store => createEntry(store, ENTRY, null))
  copyFileSync(bad, other.bad)
  await refused(other.folder, `journal salvage ${other.bad} --to ${good}.2`, 3, /lacks key [0-9a-f]{8}/)
  await refused(folder, `journal salvage ${bad}`, 2, /--to/)
  await refused(folder, `journal salvage ${bad} --to ${good}.2 --next-id 10000001`, 2, /from 1 to 10000000\n$/)
  assert.ok(!existsSync(`${good}.2`) && !existsSync(`${good}.2.unplaced.jsonl`))
})

test('a refusal of a damaged journal names the command, and verify counts the lines that can be opened', async t => {
  const { folder, bad } = await damagedFolder(t, async store => {
    for (let n = 0; n < 9; n++) await createEntry(store, ENTRY, null)
  }, 4)
  await refused(folder, `journal verify ${bad}`, 3,
    /line 4 at byte \d+: .*journal salvage; 8 of its lines can be opened, up to record 9$/m)
})

test('one damaged record of a compacted journal costs fifty entries at most, whose ids are named', async t => {
  const { folder, bad, good } = await damagedFolder(t, async store => {
    for (let n = 0; n < 120; n++) await createEntry(store, ENTRY, null)
    await store.accounts.addUser('ana@x', 'ana', ['*'], 'a long password')
    const { compact } = await import('../support/rewrite.ts')
    await compact(store, false)
  }, 3)
  const report = JSON.parse((await admin(folder, `journal salvage ${bad} --to ${good} --json`)).out)
  assert.deepEqual([report.entries, report.gone, report.users, report.lockedUsers, report.nextId],
    [70, '51-100', 1, ['ana@x'], 121])
  const { out } = await admin(folder, `journal salvage ${bad} --to ${good}.2`)
  assert.match(out, /^gone {5}ids 51-100: nothing is left of them/m)
})

test('what the device cannot read counts as zeros', async t => {
  const { folder, bad, good } = await damagedFolder(t, async store => {
    for (let n = 0; n < 2_000; n++) await createEntry(store, ENTRY, null)
  })
  let damaged = -1
  const openToRead = (path: string): number => {
    const descriptor = disk.openToRead(path)
    damaged = path === bad ? descriptor : -1
    return descriptor
  }
  const failing = { ...disk, openToRead, readAt: (descriptor: number, into: Buffer, offset: number): number => {
    if (descriptor === damaged && offset <= 300_000 && offset +
      into.length > 300_000) throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' })
    return disk.readAt(descriptor, into, offset)
  } }
  const keys = readKeyFile(disk, keyPath(folder))!
  const { found } = await salvage({ files: failing, source: bad, target: good, keys, keepsAccess: false,
    nextId: 1, onProgress: () => {}, ending: UNENDED })
  assert.ok(found.opened > 1_994 && found.opened < 2_000, `${found.opened}`)
  assert.equal(found.unreadableBytes, 512)
  assert.equal(found.entries, found.opened)
})

test('a file that was cut right behind a seal may lack its newest lines', async t => {
  const { folder, bad, good } = await damagedFolder(t, async store => {
    for (let n = 0; n < 3; n++) await createEntry(store, ENTRY, null)
  })
  const [one, two = ''] = linesOf(journalBytes(folder))
  writeFileSync(bad, `${one}\n${two.slice(0, two.indexOf(',"hash"') + 1)}`)
  const { code, out } = await admin(folder, `journal salvage ${bad} --to ${good} --json`)
  const { opened, lost } = JSON.parse(out)
  assert.deepEqual([code, opened, lost.map(({ from, to, bytes }: any) => [from, to, bytes])], [3, 2, [[3, null, 1]]])
})

test('lines that are there twice lose nothing', async t => {
  const { folder, bad, good } = await damagedFolder(t, async store => {
    await store.accounts.addUser('ana@x', 'ana', ['*'], 'a long password')
    await store.accounts.issue('ana@x', undefined, undefined)
    for (let n = 0; n < 6; n++) await createEntry(store, ENTRY, null)
  })
  const lines = linesOf(journalBytes(folder))
  for (const [n, twice] of [
    [...lines.slice(0, 6), ...lines.slice(2, 5), ...lines.slice(6)],
    [...lines.slice(0, 5), ...lines.slice(2)], [...lines.slice(0, 7), ...lines.slice(1, 4), ...lines.slice(3)]
  ].entries()) {
    writeFileSync(bad, bytesOf(twice))
    const { code, out } = await admin(folder, `journal salvage ${bad} --to ${good}.${n} --json`)
    const { opened, lost, tokens, unplaced, nextId } = JSON.parse(out)
    assert.deepEqual([code, opened, lost, tokens, unplaced, nextId], [0, 8, [], 1, 0, 7])
  }
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
    return [code, noted, lost.map(({ from, to }: any) => [from, to]), tokens]
  }
  assert.deepEqual(await salvage('last', heads[1]!), [0, true, [], 1])
  assert.deepEqual(await salvage('gone', heads[2]!), [3, false, [[3, null]], 0])
  await refused(folder, `journal salvage ${bad} --to ${good} --head 12`, 2, /64 hexadecimal digits/)
})

test('a service that runs on the journal has all of it: salvage says so', async t => {
  const { folder, url } = await startProgram(t)
  await send(url, 'POST', '/api/createPassword', ENTRY)
  await refused(folder, `journal salvage ${journalPath(folder)} --to ${folder}/good.jsonl`, 1,
    /has everything in memory: do not stop it before journal rescue FILE/)
})

test('the runbook\'s first copy of a damaged folder holds its files, also where systemd made that a link', t => {
  const text = readFileSync(fileURLToPath(new URL('../../src/parts/operator/SALVAGE.md', import.meta.url)), 'utf8')
  const [, words = ''] = /^cp (-a .*?) +#/m.exec(text) ?? []
  const top = freshFolder(t)
  mkdirSync(join(top, 'private'))
  writeFileSync(join(top, 'private/journal.jsonl'), 'damaged')
  symlinkSync('private', join(top, 'password-entry-service'))
  execFileSync('cp', words.replace('/var/lib', top).replace('/var/backups/password-entry-service', top).split(' '))
  renameSync(join(top, 'private'), join(top, 'gone'))
  assert.equal(readFileSync(join(top, 'damaged/journal.jsonl'), 'utf8'), 'damaged')
})
