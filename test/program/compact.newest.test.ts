/** `journal compact` as its user runs it, heads that were noted, and what ends it. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { admin, atTerminal, done, initialized, refused } from '../support/admin.ts'
import { joined } from '../support/patterns.ts'
import { fileStore, rotateKey } from '../support/stores.ts'
import { compact, reencrypt } from '../support/rewrite.ts'
import { startProgram } from '../support/program.ts'
import { freshFolder, send } from '../support/service.ts'
import { createEntry, updateEntry } from '../../src/entries/entry-commands.ts'
import { NO_PYTHON, PYTHON } from '../support/programs.ts'

const NAMES = ['journal.jsonl', 'journal.key']
const VERIFIER = fileURLToPath(new URL('../verify.py', import.meta.url))
const archivesIn = (folder: string): string[] => readdirSync(folder).filter(name =>
  /^archive-\d+-\d+\.jsonl$/.test(name))

async function verified(folder: string, words = ''): Promise<any> {
  return JSON.parse(await done(folder, `journal verify --json ${words}`.trim()))
}

test('a compaction says what it has made, the file is small, and its archive has what was before', async t => {
  const folder = await initialized(t)
  const store = await fileStore(folder)
  for (let n = 1; n <= 40; n++) await createEntry(store, { password: `${n}`, sistema: 'ñ\0', usuario: '"' }, null)
  for (let n = 0; n < 400; n++) await updateEntry(store, 1 + n % 30, { password: `FORMER-${n}` }, null)
  await store.close()
  await done(folder, 'entry purge 7 --yes')
  const printed = await done(folder, 'journal compact')
  assert.match(printed, joined(/^before  \d+ records, \d+ bytes, head [0-9a-f]{64}\n/,
    /now     \d records, \d+ bytes, head [0-9a-f]{64}\narchive \/.*\/archive-1-\d+\.jsonl\n$/))
  const [archive] = archivesIn(folder)
  assert.ok(statSync(join(folder, 'journal.jsonl')).size < statSync(join(folder, archive!)).size / 5)
  assert.equal((await done(folder, `journal verify ${join(folder, archive!)}`)).split('\n').length, 6)
  const shown = await done(folder, 'journal show --reveal')
  assert.equal(shown.match(/FORMER-\d+/g)!.length, 30 - 1, 'one of each entry but the purged one')
})

test('dropping the history asks first; then no file of the folder holds a purged entry, also under the old key', {
  skip: NO_PYTHON
}, async t => {
  const folder = await initialized(t)
  for (const n of [1, 2]) await done(folder, `entry add --system SECRET-${n} --user u --password-stdin`,
    `SECRET-${n}\n`)
  await done(folder, 'entry purge 1 --yes')
  const before = readFileSync(join(folder, 'journal.jsonl'))
  await refused(folder, 'journal compact --drop-history', 2, /no terminal .* --yes/)
  assert.equal((await atTerminal(folder, 'journal compact --drop-history', [['Type yes', 'no']])).code, 1)
  assert.ok(readFileSync(join(folder, 'journal.jsonl')).equals(before))
  const [old] = readFileSync(join(folder, 'journal.key'), 'latin1').split('\n')
  await done(folder, 'key rotate')
  assert.match(await done(folder, 'journal compact --drop-history --yes'),
    /\narchive not kept\nkey \w{8} is no longer needed by this journal; archives and backups may need it\n$/)
  assert.deepEqual(readdirSync(folder).sort(), NAMES)
  writeFileSync(join(folder, 'journal.key'), readFileSync(join(folder, 'journal.key'), 'latin1').replace(`${old}\n`,
    ''))
  const shown = await done(folder, 'journal show --reveal')
  assert.deepEqual([shown.includes('SECRET-1'), shown.includes('SECRET-2')], [false, true])
  await refused(folder, 'entry get 1', 1, /no entry \d/)
  await done(folder, 'entry add --system s --user u --password-stdin', 'third\n')
  assert.equal(await done(folder, 'entry get 3 --field password'), 'third\n')
})

/** A folder that was compacted twice and re-encrypted in between; its heads after each change; its archives. */
async function longLived(t: TestContext) {
  const folder = freshFolder(t)
  const store = await fileStore(folder)
  const heads: string[] = []
  const add = async (sistema: string): Promise<void> => {
    await createEntry(store, { password: `pw-${sistema}`, sistema, usuario: 'u' }, null)
    heads.push(store.status().head)
  }
  await store.accounts.addUser('ana@x', 'ana', ['*'], 'a long password')
  for (const sistema of ['a', 'b']) await add(sistema)
  await store.accounts.removeUser('ana@x')
  const archives = [(await compact(store)).archive]
  await add('c')
  await rotateKey(store)
  await add('d')
  await reencrypt(store)
  await add('e')
  archives.push((await compact(store)).archive)
  await add('f')
  await store.close()
  // Records 1 to 4; a checkpoint of 6, two more, of which the re-encryption leaves one out and adds two, and one more.
  assert.deepEqual(archives, ['archive-1-4.jsonl', 'archive-5-13.jsonl'].map(name => join(folder, name)))
  return { folder, heads, archives }
}

test('a noted head is in the journal, or in the archive of a compaction, or nowhere', async t => {
  const { folder, heads: [, b, c, d, e, f], archives } = await longLived(t)
  const notedOf = async (head: string, file = ''): Promise<string | undefined> =>
    /^noted +(.*)$/m.exec(await done(folder, `journal verify --head ${head} ${file}`.trim()))?.[1]
  const last = (await verified(folder)).records
  assert.equal(await notedOf(f!), `at record ${last}`)
  assert.equal(await notedOf(e!, archives[1]), 'at record 9')
  assert.equal(await notedOf(b!, archives[0]), 'at record 3')
  for (const head of [b!, c!, d!, e!, 'ab'.repeat(32)]) {
    const { code, error } = await admin(folder, `journal verify --head ${head}`)
    assert.equal(code, 3)
    assert.match(error, /the noted head is nowhere in this journal: .*then an archive or backup has the head/)
  }
  await refused(folder, `journal verify --head ${'0'.repeat(64)}`, 2,
    /is the head of an empty journal, and proves nothing/)
})

test('the verifier says the same of archives that join, with the key, and refuses what the program refuses', {
  skip: NO_PYTHON
}, async t => {
  const { folder, heads: [, b, , , e, f], archives } = await longLived(t)
  const python = (...words: readonly string[]): { status: number | null, stdout: string, stderr: string } =>
    spawnSync(PYTHON, [VERIFIER, join(folder, 'journal.jsonl'), ...words], { encoding: 'utf8' })
  const given = ['--key', join(folder, 'journal.key'), ...archives.flatMap(path => ['--archive', path])]
  const { records, head } = await verified(folder)
  assert.deepEqual([python().status, python().stdout], [0, `${records} records, head ${head}\n`])
  const joined = python(...given)
  assert.deepEqual([joined.status, joined.stderr], [0, ''])
  assert.deepEqual(joined.stdout.split('\n').slice(0, -1).map(line => line.replace(/20\S+Z/, 'T')), [
    `${records} records, head ${head}`, `${archives[0]} joins: 4 records, compacted T`,
    `${archives[1]} joins: 9 records, compacted T`
  ])
  assert.deepEqual([python(f!).status, python(e!, ...given.slice(0, 2)).status], [0, 0])
  assert.deepEqual([python(b!).status, python(b!, ...given).status], [3, 0])
  writeFileSync(archives[0]!, Buffer.concat([readFileSync(archives[0]!), Buffer.from('{"seq":5,"time":"')]))
  const torn = python(...given)
  assert.match(torn.stdout, /does not join|it is not a line/)
  assert.equal(torn.status, 3)
  assert.match(python('--key', join(await initialized(t), 'journal.key')).stdout, /line 1 at byte 0: .*key/)
})

test('beside a service what rewrites the journal is refused, says what to do, and changes nothing; rotation works',
  async t => {
    const program = await startProgram(t)
    await send(program.url, 'POST', '/api/createPassword', { password: 'p', sistema: 's', usuario: 'u' })
    const path = join(program.folder, 'journal.jsonl')
    const aside = freshFolder(t)
    await done(program.folder, `journal backup ${join(aside, 'copy')}`)
    const before = readFileSync(path)
    for (const [words, what] of [['journal compact', 'compaction'], ['key rewrite', 're-encryption']] as const) {
      await refused(program.folder, words, 1,
        new RegExp(`process ${program.pid} has this journal: stop the service, run the command again, and start ` +
        `the service\\. A ${what} takes about \\d+\\.\\d s, since the last start has read the journal in \\d+\\.\\d s$`,
          'm'))
    }
    await refused(program.folder, `journal restore ${join(aside, 'copy')}`, 1, new RegExp(`process ${program.pid}`))
    await refused(program.folder, `journal salvage ${path} --to ${join(aside, 'saved')}`, 1,
      /a service runs on this journal/)
    assert.ok(readFileSync(path).equals(before))
    assert.deepEqual(readdirSync(aside), ['copy'])
    await done(program.folder, 'key rotate')
    assert.equal((await send(program.url, 'GET', '/api/getPassword/1')).status, 200)
    assert.equal((await program.stop()).code, 0)
    for (const words of ['journal compact', 'key rewrite']) await done(program.folder, words)
    assert.match(await done(program.folder, 'journal verify'), /^entries 1 \(1 active\)$/m)
  })

test('a start does not notice an older copy, nor newest lines that were cut off: a noted head shows both', async t => {
  const folder = await initialized(t)
  const path = join(folder, 'journal.jsonl')
  const add = (): Promise<string> => done(folder, 'entry add --system s --user u --password-stdin', 'p')
  await add()
  const older = readFileSync(path)
  for (let n = 0; n < 2; n++) await add()
  const whole = readFileSync(path)
  const { head } = await verified(folder)
  assert.match(await done(folder, `journal verify --head ${head}`), /^noted +at record 4$/m)
  const cut = whole.subarray(0, whole.lastIndexOf(10, whole.length - 2) + 1)
  for (const [what, bytes, entries] of [['an older copy', older, 1], ['cut', cut, 2]] as const) {
    writeFileSync(path, bytes)
    assert.equal(JSON.parse(await done(folder, 'entry list --json')).length, entries, what)
    assert.equal((await verified(folder)).records, entries + 1, what)
    const { code, error } = await admin(folder, `journal verify --head ${head}`)
    assert.equal(code, 3, what)
    assert.match(error, /the noted head is nowhere in this journal/, what)
  }
  writeFileSync(path, older)
  await add()
  assert.equal((await admin(folder, `journal verify --head ${head}`)).code, 3, 'also once it has grown again')
})
