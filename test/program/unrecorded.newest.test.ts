/** An operator is shown passwords only if that is recorded. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { admin, done, initialized, refused } from '../support/admin.ts'
import { joined } from '../support/patterns.ts'
import { mountMissing, smallDisk } from '../support/system.ts'
import { startProgram, type Program } from '../support/program.ts'
import { freshFolder } from '../support/service.ts'

const NO_MOUNT = mountMissing()

/** Every command that shows passwords which others have set; OUT is a file that is not there. */
const SHOWING = [
  'entry get 1 --reveal', 'entry get 1 --field password', 'entry get 1 --field otp', 'entry get 1 --field notes',
  'entry history 1 --reveal',
  'export --output OUT --yes', 'export --output - --yes --format jsonl', 'journal show --reveal'
] as const

function notesIn(folder: string): readonly string[] { return readdirSync(folder).filter(name =>
  name.startsWith('unrecorded-')) }

async function withEntry(folder: string): Promise<void> {
  await done(folder, 'user add ana@x --no-password')
  await done(folder, 'entry add --system s --user u --password-stdin', 'SECRET\n')
  await done(folder, 'entry edit 1 --notes-stdin', 'SECRET notes')
}

function served(t: TestContext, folder: string): Promise<Program> { return startProgram(t,
  { flags: { data: folder, auth: 'bearer', 'extra-routes': 'on' } }) }

async function gapsIn(folder: string): Promise<readonly string[]> {
  const records = (await done(folder, 'journal show --json')).trimEnd().split('\n').map(line => JSON.parse(line))
  return records.filter(({ type }) => type === 'recording.gap').map(({ data }) => data.why)
}

/** Nothing of it is shown, and no file is made. */
async function showsNothing(folder: string, words: string, out: string, why: RegExp): Promise<void> {
  const ended = await admin(folder, words.replace('OUT', out))
  assert.equal(ended.code, 1, `${words}: ${ended.error}`)
  assert.match(ended.error, why, words)
  assert.ok(!`${ended.out}${ended.error}`.includes('SECRET'), words)
  assert.deepEqual(readdirSync(join(out, '..')), [], words)
}

const HOW = /so nothing is shown\. journal rescue FILE, or a copy of the folder, takes it to another disk/

test('with a failed journal nothing is shown, and the refusal says where it can be read', async t => {
  const folder = await initialized(t)
  await withEntry(folder)
  const program = await served(t, folder)
  const path = join(folder, 'journal.jsonl')
  const out = join(freshFolder(t), 'out')
  renameSync(path, join(freshFolder(t), 'aside'))
  const refusal = joined(/^error: the journal takes no more writes: .*was removed; /, HOW)
  for (const words of SHOWING) await showsNothing(folder, words, out, /journal show/.test(words)
    ? /takes no more changes/ : words.includes('history') ? /journal/ : refusal)
  await refused(folder, 'entry get 1 --reveal --unrecorded', 2, /has no such flag/)
  await program.stop()
})

test('with a full disk nothing is shown; with room it is recorded', { skip: NO_MOUNT }, async t => {
  const folder = smallDisk(t, '256k')
  await done(folder, 'init')
  await withEntry(folder)
  const program = await served(t, folder)
  const out = join(freshFolder(t), 'out')
  spawnSync('dd', ['if=/dev/zero', `of=${join(folder, 'filler')}`, 'bs=4096'], { stdio: 'ignore' })
  // The rest of the journal's last page is room, too: also for the shortest record.
  for (const length of [100, 1]) {
    const named = async (n: number): Promise<number | null> =>
      (await admin(folder, `user edit ana@x --name ${`${n % 10}`.padEnd(length, 'n')}`)).code
    for (let n = 0; await named(n) === 0; n++) assert.ok(n < 100)
  }
  for (const words of SHOWING) await showsNothing(folder, words, out,
    /^error: [^\n]+: ENOSPC; there is no room on the disk of \S+, so nothing is shown; make room, and .+ \(--data\)$/m)
  rmSync(join(folder, 'filler'))
  for (const words of SHOWING) {
    const { code, error } = await admin(folder, words.replace('OUT', out))
    assert.deepEqual([code, error], [0, ''], words)
  }
  const { code, out: said } = await admin(folder, 'audit 1 --json')
  assert.deepEqual(JSON.parse(said).knows.map(({ who, how }: any) => [who, how]), [['operator', 'set']])
  assert.equal(code, 1, 'a password of before recording began')
  await program.stop()
})

const NOTES = [1, 2].map(n => `unrecorded-2026-01-0${n}T00:00:00.000Z-7-${n}.json`)

const NOTED = /unrecorded-2026-01-01\S+, unrecorded-2026-01-02\S+: operators were shown passwords/

/** What becomes of notes that an earlier build has left, and what the start says. */
const STARTS = [
  ['with tokens they become a gap', 'bearer', () => {}, ['unrecorded'], 0,
    /; now a record says that, and these files are removed/],
  ['without tokens reads are not recorded', 'none', () => {}, [], 0,
    /; reads are not recorded anyway, and these files are removed/],
  ['what cannot be removed is named, though a record says it', 'bearer',
    (folder: string) => { rmSync(join(folder, NOTES[0]!)); mkdirSync(join(folder, NOTES[0]!)) }, ['unrecorded'], 2,
    /; now a record says that, but these files could not all be removed: delete them, or each start says this again: E/]
] as const

for (const [title, auth, prepare, gaps, left, what] of STARTS) test(`notes of an earlier build: ${title}`, async t => {
  const folder = await initialized(t)
  await withEntry(folder)
  await (await served(t, folder)).stop()
  for (const name of NOTES) writeFileSync(join(folder, name), '{}\n')
  prepare(folder)
  const program = await startProgram(t, { flags: { data: folder, auth } })
  assert.deepEqual([notesIn(folder).length, await gapsIn(folder)], [left, gaps], 'one gap for both')
  const { stderr } = await program.stop()
  assert.match(stderr, joined(NOTED, what))
})

test('notes of an earlier build stay on a full disk, until a start has recorded them', { skip: NO_MOUNT }, async t => {
  const folder = smallDisk(t, '256k')
  await done(folder, 'init')
  await withEntry(folder)
  await (await served(t, folder)).stop()
  for (const name of NOTES) writeFileSync(join(folder, name), '')
  spawnSync('dd', ['if=/dev/zero', `of=${join(folder, 'filler')}`, 'bs=4096'], { stdio: 'ignore' })
  // The rest of the journal’s last page is room, too, also for a shorter record.
  for (const length of [100, 1]) {
    const named = async (n: number): Promise<number | null> =>
      (await admin(folder, `user edit ana@x --name ${`${n % 10}`.padEnd(length, 'n')}`)).code
    for (let n = 0; await named(n) === 0; n++) assert.ok(n < 100)
  }
  const { stderr } = await (await served(t, folder)).stop()
  assert.match(stderr, joined(NOTED, /, and that could not be recorded: .*ENOSPC/))
  assert.equal(notesIn(folder).length, 2)
  rmSync(join(folder, 'filler'))
  await (await served(t, folder)).stop()
  assert.deepEqual([notesIn(folder), await gapsIn(folder)], [[], ['unrecorded']])
})
