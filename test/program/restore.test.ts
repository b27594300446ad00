/** A restore, and what else may happen to the folder meanwhile; services and kills beside it are the model's. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  constants, copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync,
  truncateSync, writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { admin, adminProcess, done, initialized, refused } from '../support/admin.ts'
import { joined } from '../support/patterns.ts'
import { hold, isReached, letGo } from '../support/slow-disk.ts'
import { runProgram, startProgram, until, type Program } from '../support/program.ts'
import { freshFolder } from '../support/service.ts'
import { fileStore } from '../support/stores.ts'
import { disk } from '../../src/journal/files.ts'
import { assertNotPacked } from '../../src/parts/operator/commands/journal-files.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'

const JOURNAL = 'journal.jsonl'
const ENTRIES = 3

/** A folder with a key and an empty journal, and a copy of what was in it. */
async function emptied(t: TestContext): Promise<{ readonly folder: string, readonly copy: string }> {
  const folder = freshFolder(t)
  const store = await fileStore(folder)
  for (let n = 0; n < ENTRIES; n++) await createEntry(store, { password: 'p', sistema: 's', usuario: 'u' }, null)
  await store.close()
  const copy = join(freshFolder(t), 'copy.jsonl')
  copyFileSync(join(folder, JOURNAL), copy)
  writeFileSync(join(folder, JOURNAL), '')
  return { folder, copy }
}

test('a restore ends all tokens, of every user, unless it is told to keep them', async t => {
  const folder = await initialized(t)
  const store = await fileStore(folder)
  for (const email of ['ana@x', 'eva@x']) {
    await store.accounts.addUser(email, email, ['*'], 'a long password')
    await store.accounts.issue(email, undefined, undefined)
    assert.ok(await store.accounts.login({ email, password: 'a long password', code: undefined, client: '' },
      undefined))
  }
  await store.close()
  const copy = join(freshFolder(t), 'copy')
  await done(folder, `journal backup ${copy}`)
  // Twice: the second time nothing is left that the first one ended.
  for (const [flag, tokens, says] of [['', 0, /^4 tokens ended/m], ['', 0, /^4 tokens ended/m],
    [' --keep-tokens', 4, /^users and tokens are as of .*: ana@x, eva@x$/m]] as const) {
    renameSync(join(folder, JOURNAL), join(freshFolder(t), 'old'))
    const restored = await done(folder, `journal restore ${copy}${flag}`)
    assert.match(restored, says)
    assert.match(restored, /remove those who have left: user remove EMAIL/)
    assert.equal(JSON.parse(await done(folder, 'token list --json')).length, tokens, flag)
  }
})

test('a restore replaces no journal that was written while it read, nor one that has appeared', async t => {
  const { folder, copy } = await emptied(t)
  const holds = freshFolder(t)
  for (const begin of ['empty', 'missing']) {
    if (begin === 'missing') renameSync(join(folder, JOURNAL), join(freshFolder(t), JOURNAL))
    else writeFileSync(join(folder, JOURNAL), '')
    hold(holds, 'read', copy)
    const ended = adminProcess(folder, `journal restore ${copy}`, '', holds)
    await until('the restore to read', () => isReached(holds))
    writeFileSync(join(folder, JOURNAL), 'what another program wrote')
    letGo(holds)
    const { code, error } = await ended
    assert.equal(code, 1)
    assert.match(error, joined(/^error: .*journal\.jsonl /,
      /(was changed by another program, and was left as it is|exists already)\n$/))
    assert.deepEqual(readdirSync(folder).sort(), [JOURNAL, 'journal.key'])
  }
})

test('a restore replaces the empty journal that init has made, and none with a record besides', async t => {
  const { folder, copy } = await emptied(t)
  await done(folder, 'init')
  assert.match(await done(folder, 'journal verify'), /^records 1\n/)
  await done(folder, `journal restore ${copy}`)
  assert.match(await done(folder, 'journal verify'), new RegExp(`^records ${ENTRIES}\n`))
  await refused(folder, `journal restore ${copy}`, 1, /holds a journal; move it away first/)
  rmSync(join(folder, JOURNAL))
  const packed = join(freshFolder(t), 'copy.jsonl.gz')
  writeFileSync(packed, gzipSync(readFileSync(copy)))
  await refused(folder, `journal restore ${packed}`, 1, /is not a journal: gzip; unpack it first/)
})

test('a packed copy is named by its format, which its first bytes tell', t => {
  const beginnings: readonly (readonly [format: string, bytes: string | Buffer])[] = [
    ['gzip', gzipSync('x')], ['zstd', '\x28\xb5\x2f\xfd\x04\x58\x09\x00'], ['xz', '\xfd7zXZ\x00\x00\x04'],
    ['bzip2', 'BZh91AY&'], ['zip', 'PK\x03\x04\x14\x00\x00\x00'], ['age', 'age-encryption.org/v1\n']
  ]
  const path = join(freshFolder(t), 'copy')
  for (const [format, bytes] of beginnings) {
    writeFileSync(path, bytes, 'latin1')
    const message = `${path} is not a journal: ${format}; unpack it first`
    assert.throws(() => assertNotPacked(disk, path), { message })
  }
  for (const text of ['', '{"seq":1,', 'BZ', '(']) {
    writeFileSync(path, text)
    assertNotPacked(disk, path)
  }
})

test('a restore refuses a copy without a record, and one named like a leftover which it removes', async t => {
  const { folder, copy } = await emptied(t)
  const part = join(folder, `${JOURNAL}.1.part`)
  copyFileSync(copy, part)
  await refused(folder, `journal restore ${part}`, 1,
    /journal\.jsonl\.1\.part has the name of a killed command's left-over/)
  assert.ok(existsSync(part))
  truncateSync(copy, 0)
  await refused(folder, `journal restore ${copy}`, 1, /copy\.jsonl holds no record\n$/)
  assert.deepEqual(readdirSync(folder).sort(), [JOURNAL, 'journal.key'])
  assert.equal(statSync(join(folder, JOURNAL)).size, 0)
})

test('a journal that is no regular file is neither started on nor replaced, also behind a link', async t => {
  const { folder, copy } = await emptied(t)
  const [place, elsewhere] = [join(folder, JOURNAL), freshFolder(t)]
  for (const pipe of [place, join(elsewhere, 'pipe')]) {
    rmSync(place)
    spawnSync('mkfifo', ['-m', '644', pipe])
    if (pipe !== place) symlinkSync(pipe, place)
    for (const words of ['init', `journal restore ${copy}`]) {
      await refused(folder, words, 1,
        /journal\.jsonl is (a link|no regular file); put the file itself there: DATA_DIR names its folder\n$/)
    }
    const { code, stderr } = await runProgram(t, { flags: { data: folder } })
    assert.deepEqual([code, /is (a link|no regular file)/.test(stderr)], [1, true])
    const { mode } = statSync(place)
    assert.deepEqual([mode & constants.S_IFMT, mode & 0o777], [constants.S_IFIFO, 0o644])
    assert.deepEqual([...readdirSync(folder).sort(), ...readdirSync(elsewhere)],
      [JOURNAL, 'journal.key', ...pipe === place ? [] : ['pipe']])
  }
})

test('a restore of a copy that ends in a part of a line says so, and restores what is before it', async t => {
  const { folder, copy } = await emptied(t)
  truncateSync(copy, statSync(copy).size - 40)
  const { code, out, error } = await admin(folder, `journal restore ${copy}`)
  assert.match(error, joined(/^warning: [^\n]*copy\.jsonl ends with \d+ bytes of a line that is cut off\. /,
    /They were left out\. [^\n]+\n$/))
  assert.deepEqual([code, /: 2 records, head /.test(out)], [0, true])
})

test('a restore says the next id, and gives none below --next-id, also after a start and a compaction', async t => {
  const { folder, copy } = await emptied(t)
  const restored = async (flags: string): Promise<string> => {
    writeFileSync(join(folder, JOURNAL), '')
    return done(folder, `journal restore ${copy}${flags}`)
  }
  assert.match(await restored(''),
    /^the next new entry gets id 4\nif entries .*from 4 on, will be given again; .* --next-id N$/m)
  assert.match(await restored(' --next-id 2 --json'), /"nextId":4/)
  assert.match(await restored(' --next-id 5000'), /^the next new entry gets id 5000\n(?!if entries)/m)
  const add = async (id: number): Promise<void> => {
    await done(folder, 'entry add --system a --user b --password-stdin', 'pw\n')
    assert.match(await done(folder, 'entry list'), new RegExp(`^${id} `, 'm'))
  }
  await add(5_000)
  await done(folder, 'journal compact')
  await add(5_001)
  await done(folder, 'journal verify')
  await refused(folder, `journal restore ${copy} --next-id 0`, 2, /from 1 to 10000000\n$/)
})

test('while a service runs, a restore is refused with a line that names its process', async t => {
  const service = await startProgram(t)
  const copy = join(freshFolder(t), 'copy.jsonl')
  await done(service.folder, `journal backup ${copy}`)
  await refused(service.folder, `journal restore ${copy}`, 1,
    new RegExp(`process ${service.pid}; if that is the service, stop it first`))
  await refused(join(service.folder, 'nowhere'), `journal restore ${copy} --key-file ${service.folder}/journal.key`, 1,
    /there is no folder/)
})

test('a backup beside which a service begins names no head for a restore', async t => {
  const { folder, program } = await withReader(t)
  await program.stop()
  const holds = freshFolder(t)
  hold(holds, 'read', join(folder, JOURNAL))
  const copy = join(freshFolder(t), 'copy.jsonl')
  const ended = adminProcess(folder, `journal backup ${copy}`, '', holds)
  await until('the backup to read', () => isReached(holds))
  await startProgram(t, { flags: { data: folder } })
  letGo(holds)
  const { code, out: said } = await ended
  assert.equal(code, 0)
  assert.match(said, /^a service has the journal: passwords may be read after this head/m)
  assert.doesNotMatch(said, /--head [0-9a-f]{64}/)
})

test('a backup verifies its copy: one that the device has changed is refused, and gets no name', async t => {
  const { folder } = await emptied(t)
  await done(folder, 'init')
  await done(folder, 'entry add --system s --user u --password-stdin', 'p')
  const holds = freshFolder(t)
  const [place, target] = [freshFolder(t), 'copy.jsonl']
  hold(holds, 'rewrite')
  const ended = adminProcess(folder, `journal backup ${join(place, target)}`, '', holds)
  await until('the backup to read its copy', () => isReached(holds))
  const [part] = readdirSync(place)
  const bytes = readFileSync(join(place, part!))
  bytes[bytes.length - 100]! ^= 1
  writeFileSync(join(place, part!), bytes)
  letGo(holds)
  const { code, error } = await ended
  assert.equal(code, 3, error)
  assert.match(error, /line 2 at byte \d+/)
  assert.deepEqual(readdirSync(place), [])
})

test('with the head of its service\'s stop a restore leaves no gap; with another one it changes nothing', async t => {
  const { folder, program, token } = await withReader(t)
  const path = join(folder, JOURNAL)
  const copy = join(freshFolder(t), 'copy.jsonl')
  const beside = await done(folder, `journal backup ${copy}.beside`)
  assert.match(beside, /^a service has the journal: passwords may be read after this head, [^\n]+--head$/m)
  assert.ok(!/--head [0-9a-f]{64}/.test(beside))
  await read(program, token)
  const { stdout } = await program.stop()
  const [, head = ''] = /^chain head {5}([0-9a-f]{64}), at the stop\n/m.exec(stdout) ?? assert.fail(stdout)
  const backup = await done(folder, `journal backup ${copy}`)
  assert.match(backup, new RegExp(`^until a service starts on it again: journal restore ${copy} --head ${head}$`, 'm'))
  renameSync(path, join(freshFolder(t), 'aside'))

  for (const file of [`${copy}.beside`, copy]) {
    const wrong = file === copy ? 'a'.repeat(64) : head
    await refused(folder, `journal restore ${file} --head ${wrong}`, 1,
      joined(/copy\.jsonl\S* does not end with that head, and nothing was changed: /,
        /its last whole line has the head [0-9a-f]{64}, and 0 bytes follow$/m))
    assert.ok(!existsSync(path))
  }
  truncateSync(`${copy}.beside`, statSync(`${copy}.beside`).size - 1)
  await refused(folder, `journal restore ${copy}.beside --head ${head}`, 1, /does not end with that head/)
  writeFileSync(`${copy}.more`, Buffer.concat([readFileSync(copy), Buffer.from('{"seq":')]))
  await refused(folder, `journal restore ${copy}.more --head ${head}`, 1,
    new RegExp(`does not end with that head, .* has the head ${head}, and 7 bytes follow$`, 'm'))

  const said = await done(folder, `journal restore ${copy} --head ${head} --keep-tokens`)
  assert.doesNotMatch(said, /reads after|counts as new|given again/)
  assert.equal((await admin(folder, 'audit')).code, 0)
  assert.match(await done(folder, 'audit'), /^1 +s +u +active +ana@x +read$/m)

  rmSync(path)
  const without = await done(folder, `journal restore ${copy}`)
  assert.match(without, /^reads after \S+Z are not known: others may know every password of this copy; --head HEAD/m)
  assert.match(without, COUNTS_AS_NEW)
  assert.equal((await admin(folder, 'audit')).code, 1)
  const salvaged = await admin(folder, `journal salvage ${copy} --to ${copy}.salvaged`)
  assert.match(salvaged.out, COUNTS_AS_NEW)
  assert.match(await done(folder, 'journal compact'), COUNTS_AS_NEW)
})

test('where no read was ever recorded, no restore, salvage or compaction says what counts as new', async t => {
  const folder = await initialized(t)
  await done(folder, 'entry add --system s --user u --password-stdin', 'SECRET')
  const copy = join(freshFolder(t), 'copy.jsonl')
  renameSync(join(folder, JOURNAL), copy)
  for (const words of [`restore ${copy}`, `salvage ${copy} --to ${copy}.salvaged`, 'compact']) {
    assert.doesNotMatch(await done(folder, `journal ${words}`), COUNTS_AS_NEW, words)
  }
})

for (const by of ['command', 'stop']) test(`a rescue by the ${by} says what counts as new after it`, async t => {
  const { folder, program, token } = await withReader(t)
  await read(program, token)
  renameSync(join(folder, JOURNAL), join(freshFolder(t), 'aside'))
  const said = by === 'command' ? await done(folder, `journal rescue ${join(freshFolder(t), 'rescued')}`) : ''
  const { stderr } = await program.stop()
  assert.match(`${said}${stderr.replaceAll('warning: ', '')}`, COUNTS_AS_NEW)
})

test('with --json, a rescue, restore, salvage and compaction say it in fields of their own', async t => {
  const { folder, program, token } = await withReader(t)
  const copy = join(freshFolder(t), 'rescued.jsonl')
  const asked = async (words: string): Promise<unknown> => {
    const { forgetsFormer, readsUnknownAfter, asOf } = JSON.parse(await done(folder, `journal ${words} --json`))
    return [words.split(' ')[0], forgetsFormer, readsUnknownAfter && readsUnknownAfter === asOf]
  }
  const changed = async (): Promise<unknown> =>
    [await asked(`restore ${copy}`), await asked(`salvage ${copy} --to ${copy}.salvaged`), await asked('compact')]
  await read(program, token)
  renameSync(join(folder, JOURNAL), join(freshFolder(t), 'aside'))
  assert.deepEqual(await asked(`rescue ${copy}`), ['rescue', true, undefined])
  await program.stop()
  assert.deepEqual(await changed(),
    [['restore', true, true], ['salvage', true, undefined], ['compact', true, undefined]])
  for (const name of readdirSync(folder)) rmSync(join(folder, name))
  await done(folder, 'init')
  for (const file of [copy, `${copy}.salvaged`]) rmSync(file)
  renameSync(join(folder, JOURNAL), copy)
  assert.deepEqual(await changed(),
    [['restore', false, undefined], ['salvage', false, undefined], ['compact', false, undefined]])
})

const COUNTS_AS_NEW =
  /^a password that this journal has no more counts as new if it is entered again, and nobody who knew it is named:/m

async function read(program: Program, token: string): Promise<void> {
  const { status } = await fetch(`${program.url}/api/getPassword/1`, { headers: { Authorization: `Bearer ${token}` } })
  assert.equal(status, 200)
}

/** A service with an entry, and a user who has not read it yet. */
async function withReader(t: TestContext): Promise<{ readonly folder: string, readonly program: Program,
  readonly token: string }> {
  const program = await startProgram(t, { flags: { auth: 'bearer' } })
  const { folder } = program
  await done(folder, 'user add ana@x --no-password')
  await done(folder, 'entry add --system s --user u --password-stdin', 'SECRET')
  return { folder, program, token: (await done(folder, 'token issue ana@x')).trim() }
}
