/** `audit`: who was given which password since it was last set, by access logs beside the journal. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { admin, done, initialized, refused } from '../support/admin.ts'
import { putJournal, referenceLines, writeKeys } from '../support/journal.ts'
import { startProgram, type Program } from '../support/program.ts'
import { freshFolder, send } from '../support/service.ts'

const PASSWORD = 'correct horse battery staple'
type Logged = readonly [method: string, path: string, user: string, body?: object]

/** A protected service with two users; what `ask` asks is logged, until `stop` gives the log. */
async function protectedService(t: TestContext, folder: string, log: 'on' | 'off' = 'on') {
  const program: Program = await startProgram(t, { flags: { data: folder, auth: 'bearer', 'extra-routes': 'on', 'access-log': log, 'login-limit': '0' } })
  const tokens = new Map<string, string>()
  const ask = async (...[method, path, user, body]: Logged): Promise<any> => {
    if (!tokens.has(user)) tokens.set(user, (await send(program.url, 'POST', '/api/login', { email: user, password: PASSWORD })).json.token)
    const answer = await fetch(`${program.url}/api/${path}`, {
      method, headers: { Authorization: `Bearer ${tokens.get(user)}`, ...body && { 'Content-Type': 'application/json' } }, ...body && { body: JSON.stringify(body) }
    })
    return answer.json()
  }
  const stop = async (): Promise<string> => (await program.stop()).stdout
  return { ask, stop }
}

async function withUsers(t: TestContext): Promise<string> {
  const folder = await initialized(t)
  for (const email of ['ana@x', 'bea@x']) await done(folder, `user add ${email} --password-stdin`, PASSWORD)
  return folder
}

/** What an audit says with such a log: its exit code, and of each row entry, person and ways. */
async function audited(folder: string, log: string, words = ''): Promise<{ code: number | null, report: any, rows: unknown[] }> {
  const { code, out, error } = await admin(folder, `audit ${words} --json --log -`.replace('  ', ' '), log)
  const report = out === '' ? assert.fail(error) : JSON.parse(out)
  return { code, report, rows: report.given.map(({ id, who, how }: any) => [id, who, how.join()]) }
}

test('who was given a password since it was last set: by get, list, update, history, and the operator\'s commands', async t => {
  const folder = await withUsers(t)
  const { ask, stop } = await protectedService(t, folder)
  for (const n of [1, 2, 3, 4]) await ask('POST', 'createPassword', 'ana@x', { password: `p${n}`, sistema: `s${n}`, usuario: 'u' })
  await ask('GET', 'getPassword/1', 'bea@x')
  await ask('GET', 'listPassword', 'bea@x')
  await ask('POST', 'updatePassword/1', 'ana@x', { password: 'new' })
  await ask('POST', 'deletePassword/3', 'ana@x')
  await ask('GET', 'getPassword/2', 'bea@x')
  await ask('GET', 'listEntries', 'bea@x')
  await ask('POST', 'updatePassword/3', 'ana@x', { password: 'newer' })
  await ask('GET', 'listPassword', 'bea@x')
  await ask('GET', 'deletedPasswords', 'bea@x')
  await ask('GET', 'historyPassword/4', 'bea@x')
  await done(folder, 'entry get 4 --reveal')
  const log = await stop()
  const { code, rows, report } = await audited(folder, log)
  const operator = rows.map(row => (row as string[])[1]!).find(who => who.startsWith('operator'))!
  assert.deepEqual(rows, [
    [1, 'ana@x', 'set it,updatePassword'], [1, 'bea@x', 'listPassword'],
    [2, 'ana@x', 'set it'], [2, 'bea@x', 'getPassword,listPassword'],
    [3, 'ana@x', 'set it,updatePassword'], [3, 'bea@x', 'deletedPasswords'],
    [4, 'ana@x', 'set it'], [4, 'bea@x', 'historyPassword,listPassword'], [4, operator, 'entry get']
  ])
  assert.deepEqual([code, report.setEarlier, report.setInGaps, report.covers.gaps], [0, 0, 0, []])
  assert.deepEqual((await audited(folder, log, 'BEA@x')).rows.map(row => (row as number[])[0]), [1, 2, 3, 4])
  assert.deepEqual((await audited(folder, log, 's2')).rows.length, 2)
  assert.match((await admin(folder, 'audit 1 --log -', log)).out,
    /^covers {3}\S+ to \S+, 0 gaps\nID +SYSTEM +USER +WHO +HOW +LAST\n1 +s1 +u +ana@x +set it,updatePassword +20\S+\n1 .*\n$/)
})

test('a removed user is found by address, and of a compacted journal by number', async t => {
  const folder = await withUsers(t)
  await done(folder, 'entry add --system s --user u --password-stdin', 'p')
  const { ask, stop } = await protectedService(t, folder)
  await ask('GET', 'getPassword/1', 'bea@x')
  await done(folder, 'user remove bea@x')
  const log = await stop()
  assert.deepEqual((await audited(folder, log, 'bea@x')).rows, [[1, 'bea@x', 'getPassword']])
  const left = log.replace(/^(.*"getPassword".*"status":)200/m, '$1499')
  assert.notEqual(left, log)
  assert.deepEqual((await audited(folder, left, 'bea@x')).rows, [[1, 'bea@x', 'getPassword']], 'who left may have had it')
  await done(folder, 'journal compact')
  await refused(folder, 'audit bea@x --log -', 1, /give it as #NUMBER$/m, log)
  assert.deepEqual((await audited(folder, log, '#2')).rows, [[1, '#2', 'getPassword']])
})

test('logs that begin too late, or lack a run of the service, end with 1 and say so', async t => {
  const folder = await withUsers(t)
  const first = await protectedService(t, folder)
  await first.ask('POST', 'createPassword', 'ana@x', { password: 'p', sistema: 's', usuario: 'u' })
  const early = await first.stop()
  const unlogged = await protectedService(t, folder, 'off')
  await unlogged.ask('GET', 'getPassword/1', 'bea@x')
  assert.equal(await unlogged.stop().then(text => text.includes('"route"')), false)
  const last = await protectedService(t, folder)
  await last.ask('GET', 'getPassword/1', 'ana@x')
  const late = await last.stop()
  const beginsLate = await audited(folder, late)
  assert.deepEqual([beginsLate.code, beginsLate.report.setEarlier], [1, 1])
  // As if a night lay between the runs: the login of the run without a log is in the journal.
  const journal = readFileSync(join(folder, 'journal.jsonl'), 'utf8').trimEnd().split('\n').map(line => JSON.parse(line))
  const login = Date.parse(journal.filter(({ type }: any) => type === 'token.issued')[1].time)
  const moved = (log: string, byMs: number): string => log.split('\n').map(line => {
    if (!line.startsWith('{')) return line
    const { time, ...rest } = JSON.parse(line)
    return JSON.stringify({ time: new Date(Date.parse(time) + byMs).toISOString(), ...rest })
  }).join('\n')
  const { code, report } = await audited(folder, `${moved(early, -120_000)}${moved(late, 120_000)}`)
  assert.deepEqual([code, report.covers.gaps.length, report.setEarlier, report.setInGaps], [1, 1, 0, 1])
  assert.ok(Date.parse(report.covers.gaps[0].from) < login && login < Date.parse(report.covers.gaps[0].to))
  const lost = `${early.trimEnd()}\n{"time":"${new Date().toISOString()}","dropped":3}\n{"time":"2026-`
  const dropped = await audited(folder, lost)
  assert.deepEqual([dropped.code, dropped.report.covers.gaps[0].why, dropped.report.covers.unreadableLines], [1, '3 lines were lost', 1])
})

test('an audit names what it cannot read: no log, no line of a log, a packed one, a missing one', async t => {
  const folder = await withUsers(t)
  const path = join(freshFolder(t), 'access.log')
  await refused(folder, 'audit', 2, /give --log FILE, or - for standard input, such as: journalctl/)
  await refused(folder, 'audit --log -', 1, /no line of an access log/, 'ready\n')
  writeFileSync(path, gzipSync('x'))
  await refused(folder, `audit --log ${path}`, 1, /is not an access log: gzip; unpack it first/)
  await refused(folder, `audit --log ${path}.1`, 1, /there is no file/)
  await refused(folder, 'audit nobody@x --log -', 1, /no user had this address/)
})

test('entries are listed whose password is old, of an unknown age, or used again', async t => {
  const folder = await initialized(t)
  for (const [system, password] of [['a', 'same'], ['b', 'other'], ['c', 'same'], ['d', 'same']] as const) {
    await done(folder, `entry add --system ${system} --user u --password-stdin`, password)
  }
  await done(folder, 'entry delete 4')
  const list = async (words: string): Promise<any[]> => JSON.parse(await done(folder, `entry list ${words} --json`))
  assert.deepEqual((await list('--reused')).map(({ id, reused, sameAs }) => [id, reused, sameAs]), [[1, 1, 1], [3, 1, 1]])
  assert.deepEqual((await list('--old 0')).map(({ id }) => id), [1, 2, 3])
  assert.deepEqual(await list('--old 1'), [])
  assert.ok((await list('--old 0')).every(({ changed, password }) => Date.parse(changed) > 0 && password === undefined))
  const old = freshFolder(t)
  const secret = randomBytes(32)
  writeKeys(old, secret)
  const kept = { password: 'p', sistema: 'compacted before passwords had an age', usuario: 'u', status: 1 }
  putJournal(old, referenceLines(secret, [[{ type: 'fields.kept', data: { first: 1, entries: [kept] } }]]))
  const [unknown] = JSON.parse(await done(old, 'entry list --old 1000 --json'))
  assert.deepEqual([unknown.id, unknown.changed], [1, null])
  await refused(folder, 'entry list --old soon', 2, /--old must be a number of days/)
  await refused(folder, 'entry list --old', 2, /--old needs a value/)
})
