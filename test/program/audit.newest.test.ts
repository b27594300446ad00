/** `audit`: who knows which present password, by the journal alone. */
import assert from 'node:assert/strict'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { SOCKET_OPERATIONS } from '../../src/parts/operator/socket/operation-table.ts'
import { createEntry, deleteEntry, updateEntry } from '../../src/entries/entry-commands.ts'
import { startProtected } from '../support/accounts.ts'
import { admin, done, initialized, refused } from '../support/admin.ts'
import { joined } from '../support/patterns.ts'
import { startProgram, type Program } from '../support/program.ts'
import { atEnd, freshFolder } from '../support/service.ts'

interface Served {
  readonly program: Program
  ask(method: string, path: string, user: string, body?: object): Promise<number>
}

async function served(t: TestContext, folder: string): Promise<Served> {
  const program = await startProgram(t, { flags: { data: folder, auth: 'bearer', 'extra-routes': 'on' } })
  const tokens = new Map<string, string>()
  return {
    program,
    ask: async (method, path, user, body) => {
      if (!tokens.has(user)) tokens.set(user, (await done(folder, `token issue ${user}`)).trim())
      const { status } = await fetch(`${program.url}/api/${path}`, {
        method, headers: { Authorization: `Bearer ${tokens.get(user)}`, ...body &&
          { 'Content-Type': 'application/json' } }, ...body && { body: JSON.stringify(body) }
      })
      return status
    }
  }
}

async function withUsers(t: TestContext): Promise<string> {
  const folder = await initialized(t)
  for (const email of ['ana@x', 'bea@x']) await done(folder, `user add ${email} --no-password`)
  return folder
}

/** Of each row: entry, who, how. */
async function audited(folder: string, words = ''): Promise<{ readonly code: number | null, readonly rows: unknown[],
  readonly report: any, readonly error: string }> {
  const { code, out, error } = await admin(folder, `audit --json ${words}`.trim())
  const report = out === '' ? assert.fail(error) : JSON.parse(out)
  return { code, report, error, rows: report.knows.map(({ id, who, how }: any) => [id, who, how]) }
}

test('who set or got a password knows it till the next; HEAD, refusal, list without secrets tell nothing', async t => {
  const folder = await withUsers(t)
  const { ask, program } = await served(t, folder)
  for (const n of [1, 2, 3, 4]) await ask('POST', 'createPassword', 'ana@x',
    { password: `p${n}`, sistema: `s${n}`, usuario: 'u' })
  await ask('GET', 'getPassword/1', 'bea@x')
  await ask('HEAD', 'getPassword/2', 'bea@x')
  await ask('GET', 'listEntries', 'bea@x')
  await ask('GET', 'getPassword/9', 'bea@x')
  await ask('POST', 'updatePassword/3', 'bea@x', { usuario: 'v' })
  await done(folder, 'entry get 4 --reveal')
  const before = await audited(folder)
  assert.deepEqual(before.rows, [
    [1, 'ana@x', 'read'], [1, 'bea@x', 'read'], [2, 'ana@x', 'read'], [3, 'ana@x', 'read'], [3, 'bea@x', 'read'],
    [4, 'ana@x', 'read'], [4, 'operator', 'read']
  ])
  assert.deepEqual([before.code, before.error], [0, ''])
  await ask('POST', 'updatePassword/1', 'ana@x', { password: 'new' })
  await ask('POST', 'updatePassword/2', 'ana@x', { password: 'p3' })
  assert.deepEqual((await audited(folder, 'bea@x')).rows, [[2, 'bea@x', 'equal'], [3, 'bea@x', 'read']],
    'an equal password is known, too')
  await ask('GET', 'getPassword/1', 'bea@x')
  const records = (await done(folder, 'journal show --json')).trimEnd().split('\n').map(line => JSON.parse(line))
  const lastOf = (wanted: string, of: (data: any) => boolean): string =>
    records.findLast(({ type, data }) => type === wanted && of(data)).time
  const since = [lastOf('entry.updated', ({ id }) => id === 1),
    lastOf('passwords.told', ({ entryIds }) => entryIds.includes(1))]
  assert.deepEqual((await audited(folder, '1')).report.knows.map((row: any) => [row.who, row.since]),
    [['ana@x', since[0]], ['bea@x', since[1]]], 'since the present password')
  const { rows, report } = await audited(folder, 's3')
  assert.deepEqual(rows, [[3, 'ana@x', 'set'], [3, 'bea@x', 'read']])
  assert.ok(report.knows.every(({ since }: any) => Date.parse(since) > 0))
  assert.deepEqual((await audited(folder, '3')).rows, rows)
  await program.stop('SIGKILL')
  assert.deepEqual((await audited(folder, 's3')).rows, rows, 'a kill loses no reader')
})

test('a removed user, also one whose address is taken again, is named after a compaction; audit joins all', async t => {
  const folder = await withUsers(t)
  const { ask, program } = await served(t, folder)
  for (const n of [1, 2]) await ask('POST', 'createPassword', 'ana@x',
    { password: `p${n}`, sistema: `s${n}`, usuario: 'u' })
  await ask('GET', 'getPassword/1', 'bea@x')
  assert.match(await done(folder, 'user remove bea@x'),
    joined(/^bea@x: removed, all tokens revoked\n/,
      /bea@x knows 1 present password: entry list --exposed lists what is to be changed\n$/))
  await program.stop()
  await done(folder, 'journal compact --drop-history --yes')
  assert.deepEqual((await audited(folder, 'bea@x')).rows, [[1, 'bea@x (removed)', 'read']])
  assert.deepEqual((await audited(folder, '#2')).rows, [[1, 'bea@x (removed)', 'read']])
  assert.deepEqual((await audited(folder, '1')).report.knows.map(({ since }: any) => since), [null, null])
  await done(folder, 'user add bea@x --no-password')
  const again = await served(t, folder)
  await again.ask('GET', 'getPassword/2', 'bea@x')
  assert.deepEqual((await audited(folder, 'BEA@x')).rows, [[1, 'bea@x (removed)', 'read'], [2, 'bea@x', 'read']])
  await again.ask('POST', 'updatePassword/1', 'ana@x', { password: 'new' })
  assert.deepEqual((await audited(folder, 'bea@x')).rows, [[2, 'bea@x', 'read']])
  await done(folder, 'entry edit 2 --generate')
  assert.deepEqual(await admin(folder, 'audit bea@x'), { code: 0, out: '', error: 'nobody\n' })
})

test('what was not recorded is said, with exit code 1: without tokens, and before they were asked for', async t => {
  const folder = await withUsers(t)
  await done(folder, 'entry add --system s --user u --password-stdin', 'SECRET')
  const open = await audited(folder)
  assert.deepEqual([open.code, open.report.unrecordedBefore], [1, { now: [1] }])
  assert.match(open.error, /^warning: reads until now were not recorded: others may know 1 password, of ids 1\n$/)
  const { ask } = await served(t, folder)
  const { code, report, error } = await audited(folder, 's')
  const [[when, ids] = []] = Object.entries(report.unrecordedBefore)
  assert.deepEqual([code, Date.parse(String(when)) > 0, ids], [1, true, [1]])
  assert.match(error, /^warning: reads before \S+ were not recorded: others may know 1 password, of ids 1\n$/)
  await ask('POST', 'updatePassword/1', 'ana@x', { password: 'new' })
  assert.deepEqual([(await audited(folder)).code, (await audited(folder)).rows], [0, [[1, 'ana@x', 'read']]])
})

test('a name that fits nobody, or more than one entry, is refused', async t => {
  const folder = await withUsers(t)
  for (const n of [1, 2]) await done(folder, `entry add --system a@b --user u${n} --password-stdin`, 'SECRET')
  for (const words of ['audit typo@x', 'audit #9', 'audit nowhere']) await refused(folder, words, 1,
    /no user, operator or system has this name/)
  await refused(folder, 'audit 7', 1, /no entry 7/)
  const { code, out } = await admin(folder, 'audit a@b')
  assert.deepEqual([code, out], [2, ''])
  assert.deepEqual((await audited(folder, 'a@b --of-user u2')).rows, [[2, 'operator', 'set']])
})

test('exposed entries are those that somebody knows who may not, also by equal ones, until they change', async t => {
  const folder = await withUsers(t)
  const { ask, program } = await served(t, folder)
  const exposed = async (): Promise<unknown[]> => JSON.parse(await done(folder, 'entry list --exposed --json'))
    .map(({ id, exposed, exposedTo, status, notas, otp, ...rest }: any) => {
      assert.deepEqual([exposed, exposedTo.map((who: string) => who.replace(' (removed)', '')), rest.password],
        [1, ['bea@x'], undefined])
      return [id, status, notas, otp]
    })
  for (const [n, more] of [[1, { grupo: 'Web', notas: 'n' }], [2, { otp: 'JBSWY3DPEHPK3PXP' }], [2, {}], [4, {}],
    [5, {}]] as const) {
    await ask('POST', 'createPassword', 'ana@x', { password: `p${n}`, sistema: `s${n}`, usuario: 'u', ...more })
  }
  for (const id of [1, 3, 5]) await ask('GET', `getPassword/${id}`, 'bea@x')
  await done(folder, 'entry delete 5')
  assert.deepEqual(await exposed(), [])
  await done(folder, 'user edit bea@x --groups Web')
  const deleted = [5, 'deleted', undefined, undefined]
  const others = [[2, 'active', undefined, true], [3, 'active', undefined, undefined], deleted]
  assert.deepEqual(await exposed(), others)
  await done(folder, 'user edit bea@x --all-groups')
  assert.deepEqual(await exposed(), [])
  await done(folder, 'user edit bea@x --abilities password:create')
  const all = [[1, 'active', true, undefined], ...others]
  assert.deepEqual(await exposed(), all)
  assert.match(await done(folder, 'user remove bea@x'), /^bea@x knows 4 present passwords: /m, 'as many as are listed')
  assert.deepEqual(await exposed(), all)
  assert.match(await done(folder, 'entry list --exposed'),
    joined(/^ID +SYSTEM +USER +GROUP +STATUS +NOTES +KNOWN BY +OTP\n/,
      /1 +s1 +u +Web +active +yes +bea@x \(removed\) +-\n/, /2 +s2 +u +- +active +- +bea@x \(removed\) +yes\n/,
      /3 +s2 +u +- +active +- +bea@x \(removed\) +-\n5 +s5 +u +- +deleted +- +bea@x \(removed\) +-\n$/))
  await program.stop()
  assert.deepEqual(await exposed(), all, 'without a service, too')
  for (const id of [1, 2, 3]) await done(folder, `entry edit ${id} --generate`)
  assert.deepEqual(await exposed(), [deleted])
  assert.equal(await done(folder, 'entry purge 5 --yes'), `entry 5 (s5, u) permanently deleted
known to bea@x (removed): if the system still takes this password, change it there
its old values leave the file with: journal compact --drop-history\n`)
  assert.deepEqual(await admin(folder, 'entry list --exposed'),
    { code: 0, out: '', error: 'no entries like that\n' })
  await refused(folder, 'entry list --exposed --deleted', 2, /do not go together/)
})

test('an export of the active entries makes its operator know no deleted one', async t => {
  const folder = await withUsers(t)
  const { ask } = await served(t, folder)
  for (const n of [1, 2]) await ask('POST', 'createPassword', 'ana@x',
    { password: `p${n}`, sistema: `s${n}`, usuario: 'u' })
  await ask('POST', 'deletePassword/2', 'ana@x')
  const knows = async (): Promise<unknown[]> => (await audited(folder, 'operator')).rows
  await done(folder, `export --output ${join(freshFolder(t), 'active')} --format bitwarden --yes`)
  assert.deepEqual(await knows(), [[1, 'operator', 'read']])
  await done(folder, `export --output ${join(freshFolder(t), 'all')} --format jsonl --yes`)
  assert.deepEqual(await knows(), [[1, 'operator', 'read'], [2, 'operator', 'read']])
})

/** Something is done whenever the service has answered that operation. */
function behind(t: TestContext, name: 'readEntries' | 'disclose', act: () => Promise<unknown>): void {
  const operation: { run(...given: any[]): unknown } = SOCKET_OPERATIONS[name]
  const { run } = operation
  atEnd(t, () => { operation.run = run })
  operation.run = async (...given) => {
    const answer = await run(...given)
    await act()
    return answer
  }
}

test('of what is deleted while an export is read, its operator is known to have the password', async t => {
  const { folder, service: { store } } = await startProtected(t)
  for (const sistema of ['deleted meanwhile', 'kept', 'deleted before']) {
    await createEntry(store, { sistema, usuario: 'u', password: `of ${sistema}` }, null)
  }
  await deleteEntry(store, 3, null)
  behind(t, 'readEntries', () => deleteEntry(store, 1, null))
  const out = join(freshFolder(t), 'out')
  await done(folder, `export --output ${out} --format bitwarden --yes`)
  assert.match(readFileSync(out, 'utf8'), /of deleted meanwhile/)
  assert.deepEqual((await audited(folder, 'operator')).rows, [[1, 'operator', 'read'], [2, 'operator', 'read']])
})

test('a history that is shown beside changes shows nothing that is newer than the record of it', async t => {
  const { folder, service: { store } } = await startProtected(t)
  await createEntry(store, { sistema: 's', usuario: 'u', password: 'p0' }, null)
  let changes = 0
  behind(t, 'disclose', () => updateEntry(store, 1, { password: `p${++changes}` }, null))
  for (const [n, command] of ['entry history 1 --reveal', 'journal show --reveal'].entries()) {
    const shown = await done(folder, command)
    assert.equal(changes, n + 1)
    assert.deepEqual([shown.includes(`"p${n}"`), shown.includes(`"p${changes}"`)], [true, false], command)
  }
})

test('after a restore it is said that others may know a password, whether the tokens are kept or not', async t => {
  const folder = await withUsers(t)
  const { ask, program } = await served(t, folder)
  await ask('POST', 'createPassword', 'ana@x', { password: 'p', sistema: 's', usuario: 'u' })
  await program.stop()
  assert.deepEqual((await audited(folder)).code, 0)
  const copy = join(freshFolder(t), 'copy')
  await done(folder, `journal backup ${copy}`)
  for (const flag of ['', ' --keep-tokens']) {
    rmSync(join(folder, 'journal.jsonl'))
    await done(folder, `journal restore ${copy}${flag}`)
    const { code, rows, report } = await audited(folder)
    assert.deepEqual([code, rows, Object.values(report.unrecordedBefore)], [1, [[1, 'ana@x', 'read']], [[1]]], flag)
  }
})
