/** An operator is shown passwords only if that is recorded, or noted beside the journal with `--unrecorded`. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { call } from '../support/accounts.ts'
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

test('with a failed journal nothing is shown; --unrecorded shows an entry from memory, and marks a gap', async t => {
  const folder = await initialized(t)
  await withEntry(folder)
  const program = await served(t, folder)
  await done(folder, 'entry add --system later --user u --password-stdin', 'OTHER\n')
  const { token } = JSON.parse(await done(folder, 'token issue ana@x --json'))
  const known = async (): Promise<any> => (await call(t, program.url, 'GET', '/api/whoKnows/2', { token })).json
  assert.deepEqual(await known(), { knows: [{ operator: '', how: 'set' }], status: 200 })
  const [path, aside] = [join(folder, 'journal.jsonl'), join(freshFolder(t), 'aside')]
  const out = join(freshFolder(t), 'out')
  renameSync(path, aside)
  const refusal = joined(/^error: the journal takes no more writes: .*was removed; so nothing is shown; /,
    /--unrecorded shows it, and leaves a gap in what audit knows; .*journal rescue/)
  for (const words of SHOWING) await showsNothing(folder, words, out, /journal show/.test(words)
    ? /takes no more changes/ : words.includes('history') ? /was removed; so/ : refusal)
  assert.deepEqual(notesIn(folder), [])
  const shown = await admin(folder, 'entry get s --field password --unrecorded')
  assert.deepEqual([shown.code, shown.out], [0, 'SECRET\n'])
  assert.match(shown.error, /^warning: this disclosure of passwords was not recorded: .*was removed/)
  const [note = '', ...others] = notesIn(folder)
  assert.deepEqual([others, statSync(join(folder, note)).mode & 0o777], [[], 0o600])
  const { time, ...said } = JSON.parse(readFileSync(join(folder, note), 'utf8'))
  assert.deepEqual([said, time > '2026'], [{ by: 'operator', command: 'entry get', entries: 1, id: 1 }, true])
  await done(folder, 'user list')
  assert.equal(notesIn(folder).length, 1, 'nothing can be recorded yet')
  const { knows, unrecordedBefore } = await known()
  assert.deepEqual([knows.length, Date.parse(unrecordedBefore) > 0], [1, true], 'whoKnows says that it does not know')
  const { stderr } = await program.stop()
  assert.match(stderr, /entry get has shown the passwords of entry 1 to operator, which is not recorded/)
  for (const name of readdirSync(folder)) if (name.startsWith('journal.rescued')) rmSync(join(folder, name))
  renameSync(aside, path)
  const before = await admin(folder, 'audit 2 --json') // all reads of it are recorded, as far as the journal knows
  assert.equal(before.code, 1)
  assert.match(before.error,
    new RegExp(`^warning: operators were shown passwords, and no record says so yet: ${join(folder, note)}\n$`))
  const again = await served(t, folder)
  assert.deepEqual([notesIn(folder), await gapsIn(folder)], [[], ['unrecorded']])
  const { code, error } = await admin(folder, 'audit 1')
  assert.equal(code, 1)
  assert.match(error, /^warning: reads before \S+ were not recorded: others may know 1 password, of ids 1\n$/)
  await again.stop()
})

test('with a full disk nothing is shown, also by --unrecorded if the note has no room; with room it is recorded', {
  skip: NO_MOUNT
}, async t => {
  const folder = smallDisk(t, '256k')
  await done(folder, 'init')
  await withEntry(folder)
  const program = await served(t, folder)
  const out = join(freshFolder(t), 'out')
  const fill = (): unknown => spawnSync('dd', ['if=/dev/zero', `of=${join(folder, 'filler')}`, 'bs=4096'],
    { stdio: 'ignore' })
  fill()
  // The rest of the journal's last page is room, too: also for the shortest record.
  for (const length of [100, 1]) {
    const named = async (n: number): Promise<number | null> =>
      (await admin(folder, `user edit ana@x --name ${`${n % 10}`.padEnd(length, 'n')}`)).code
    for (let n = 0; await named(n) === 0; n++) assert.ok(n < 100)
  }
  for (const words of SHOWING) {
    await showsNothing(folder, words, out,
      joined(/^error: the journal could not be written: ENOSPC; so nothing is shown; /,
        /--unrecorded shows it, and leaves a gap in what audit knows\n$/))
    await showsNothing(folder, `${words} --unrecorded`, out,
      /^error: nothing is shown: it cannot be recorded, and \S+unrecorded-\S+ cannot be written, either: ENOSPC\n$/)
  }
  assert.deepEqual(notesIn(folder), [])
  rmSync(join(folder, 'filler'))
  for (const words of SHOWING) {
    const { code, error } = await admin(folder, `${words} --unrecorded`.replace('OUT', out))
    assert.deepEqual([code, error], [0, ''], words)
  }
  assert.deepEqual([notesIn(folder), await gapsIn(folder)], [[], []], 'it was recorded')
  const { code, out: said } = await admin(folder, 'audit 1 --json')
  assert.deepEqual(JSON.parse(said).knows.map(({ who, how }: any) => [who, how]), [['operator', 'set']])
  assert.equal(code, 1, 'a password of before recording began')
  await program.stop()
})

test('a note is a gap at the next command that may write, and stays while nothing can be recorded', async t => {
  const folder = await initialized(t)
  await withEntry(folder)
  await (await served(t, folder)).stop()
  const key = join(folder, 'journal.key')
  const program = await served(t, folder)
  renameSync(key, join(folder, 'aside.key'))
  await refused(folder, 'entry get 1 --reveal', 1, /so nothing is shown; --unrecorded/)
  for (const field of ['password', 'notes']) assert.equal((await admin(folder,
    `entry get 1 --field ${field} --unrecorded`)).code, 0)
  assert.equal(notesIn(folder).length, 2)
  renameSync(join(folder, 'aside.key'), key)
  await done(folder, 'entry list')
  assert.deepEqual([notesIn(folder), await gapsIn(folder)], [[], ['unrecorded']],
    'the running service, and one gap for both')
  await program.stop()
})
