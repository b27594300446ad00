/** The operator's program, as its user runs it: beside the running server, and without it. */
import assert from 'node:assert/strict'
import {
  copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync
} from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { atTerminal, done, initialized, refused } from '../support/admin.ts'
import { startProgram, type Program } from '../support/program.ts'
import { send, freshFolder } from '../support/service.ts'

const bearer = (token: string): RequestInit => ({ headers: { Authorization: `Bearer ${token}` } })
const entry = { password: 'SECRET-entry', sistema: 's', usuario: 'u' }

for (const isServed of [true, false]) {
  const where = isServed ? 'beside the running server' : 'without a server'

  test(`§5 users and tokens, ${where}: added, listed, changed, revoked, removed`, async t => {
    const folder = await initialized(t)
    if (isServed) await startProgram(t, { flags: { data: folder, auth: 'bearer' } })
    assert.equal(await done(folder, 'user add Ana@x.org --name Ana --password-stdin', 'SECRET-login\r\n'),
      'ana@x.org: added as user 1\n')
    await done(folder, 'user add bob@x.org --abilities password:read --password-stdin', 'SECRET-other')
    await refused(folder, 'user add ANA@x.org --password-stdin', 1, /address already/, 'x\n')
    assert.deepEqual(JSON.parse(await done(folder, 'user list --json')), [
      { id: 1, email: 'ana@x.org', name: 'Ana', abilities: ['*'] },
      { id: 2, email: 'bob@x.org', name: 'bob@x.org', abilities: ['password:read'] }
    ])
    const token = await done(folder, 'token issue bob@x.org --ttl-minutes 0.5')
    assert.match(token, /^pes_[A-Za-z0-9_-]{43}\n$/)
    const listed = JSON.parse(await done(folder, 'token list BOB@x.org --json'))
    assert.equal(listed.length, 1)
    assert.equal(Date.parse(listed[0].expires) - Date.parse(listed[0].issued), 30_000)
    assert.deepEqual(listed[0].abilities, ['password:read'])
    assert.equal(await done(folder, `token revoke ${listed[0].id}`), `${listed[0].id}: revoked\n`)
    await refused(folder, `token revoke ${listed[0].id}`, 1, /no token/)
    await done(folder, 'token issue ana@x.org')
    await done(folder, 'token revoke --all ana@x.org')
    assert.equal(await done(folder, 'token list'), '')
    await done(folder, 'token issue ana@x.org')
    await done(folder, 'user password ana@x.org --password-stdin', 'SECRET-new\n')
    assert.equal(await done(folder, 'token list'), '')
    await done(folder, 'user remove bob@x.org')
    await refused(folder, 'user remove bob@x.org', 1, /no user/)
    await refused(folder, 'token issue bob@x.org', 1, /no user/)
    const journal = readFileSync(join(folder, 'journal.jsonl'), 'latin1')
    const shown = await done(folder, 'journal show --reveal')
    for (const secret of ['SECRET', token.trim()]) assert.ok(!journal.includes(secret) && !shown.includes(secret))
  })
}

test('§5.7 a revocation is refused by the very next request, and after a restart', async t => {
  const folder = await initialized(t)
  const program = await startProgram(t, { flags: { data: folder, auth: 'bearer' } })
  await done(folder, 'user add a@x --password-stdin', 'pw')
  const token = (await done(folder, 'token issue a@x')).trim()
  const status = async (at: Program): Promise<number> => (await fetch(`${at.url}/api/listPassword`, bearer(token))).status
  assert.equal(await status(program), 404)
  await done(folder, 'token revoke --all a@x')
  assert.equal(await status(program), 401)
  await program.kill()
  assert.equal(await status(await startProgram(t, { flags: { data: folder, auth: 'bearer' } })), 401)
})

test('commands that are called in a wrong way end with 2, print one line, and make nothing', async t => {
  const folder = join(freshFolder(t), 'none')
  for (const words of [
    'user', 'bogus', 'user add', 'user add a b', 'user list x', 'user list --bogus', 'token revoke',
    'token revoke ab --all a@x', 'token issue a@x --ttl-minutes 0', 'token issue a@x --ttl-minutes 99999999999',
    'entry history 01', 'entry restore x', 'user add a@x', 'user add a@x --abilities a,,b --password-stdin'
  ]) await refused(folder, words, 2, /./)
  await refused(folder, 'user add a@x --password-stdin', 2, /empty/, '\n')
  await refused(folder, 'user list', 1, /no journal .* init/)
  await refused(folder, 'journal verify', 1, /no journal/)
  assert.ok(!existsSync(folder))
})

test('`--help` of the program and of each command tells all, and ends with 0', async t => {
  const folder = freshFolder(t)
  const overview = await done(folder, '--help')
  const names = [...overview.matchAll(/^ {2}(\w+(?: \w+)?) {2,}/gm)].map(match => match[1]!)
  assert.equal(names.length, 18)
  for (const name of names) assert.match(await done(folder, `${name} --help`), new RegExp(`^usage: .* ${name}`))
  assert.deepEqual(readdirSync(folder), [])
})

test('history and restore of an entry: every value, when, by whom; passwords only with --reveal', async t => {
  const folder = await initialized(t)
  await done(folder, 'user add a@x --password-stdin', 'pw')
  const token = (await done(folder, 'token issue a@x')).trim()
  const { url } = await startProgram(t, { flags: { data: folder, auth: 'bearer' } })
  const post = async (path: string, body?: object): Promise<void> => {
    const { status } = await fetch(url + path, {
      method: 'POST', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body)
    })
    assert.equal(status, 200)
  }
  await post('/api/createPassword', { ...entry, sistema: 'a\n9 forged' })
  await post('/api/updatePassword/1', { password: 'SECRET-second' })
  await post('/api/deletePassword/1')
  await done(folder, 'entry restore 1')
  await refused(folder, 'entry restore 2', 1, /no entry/)
  await refused(folder, 'entry history 2', 1, /no entry/)
  assert.equal((await fetch(`${url}/api/listPassword`, bearer(token))).status, 200)
  const lines = (await done(folder, 'entry history 1 --reveal')).trimEnd().split('\n')
  assert.deepEqual(lines.map(line => line.split(' ').slice(1, 3).join(' ')),
    ['a@x entry.created', 'a@x entry.updated', 'a@x entry.deleted', '- entry.restored'])
  assert.deepEqual(lines.map(line => /SECRET-\w+/.exec(line)?.[0]),
    ['SECRET-entry', 'SECRET-second', 'SECRET-second', 'SECRET-second'])
  const hidden = await done(folder, 'entry history 1') + await done(folder, 'journal show')
  assert.ok(!hidden.includes('SECRET'))
  assert.equal((await done(folder, 'journal show')).trimEnd().split('\n').length, 6)
})

test('a backup is taken under load, verified, never over a file, and restores', async t => {
  const folder = await initialized(t)
  const program = await startProgram(t, { flags: { data: folder } })
  let isOver = false
  let created = 0
  const load = (async () => {
    while (!isOver) if ((await send(program.url, 'POST', '/api/createPassword', entry)).status === 200) created++
  })()
  while (created < 50) await new Promise(resolve => setImmediate(resolve))
  const target = join(freshFolder(t), 'copy')
  const before = created
  writeFileSync(`${target}.part`, 'of somebody else')
  const printed = await done(folder, `journal backup ${target}`)
  isOver = true
  await load
  assert.ok(Number(/^(\d+) records/.exec(printed)?.[1]) >= before)
  assert.equal(statSync(target).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(dirname(target)), ['copy', 'copy.part'])
  assert.equal(readFileSync(`${target}.part`, 'utf8'), 'of somebody else')
  await refused(folder, `journal backup ${target}`, 1, /stands already/)
  const restored = join(freshFolder(t), 'restored')
  mkdirSync(restored)
  copyFileSync(target, join(restored, 'journal.jsonl'))
  copyFileSync(join(folder, 'journal.key'), join(restored, 'journal.key'))
  assert.match(await done(restored, 'journal verify'), new RegExp(`^records ${/^\d+/.exec(printed)![0]}\n`))
})

test('a damaged journal and a wrong key end with 3, naming line and byte', async t => {
  const folder = await initialized(t)
  for (const name of ['a@x', 'b@x', 'c@x']) await done(folder, `user add ${name} --password-stdin`, 'pw')
  const path = join(folder, 'journal.jsonl')
  const good = readFileSync(path)
  const second = good.indexOf('\n') + 1
  writeFileSync(path, Buffer.concat([good.subarray(0, second), good.subarray(good.indexOf('\n', second) + 1)]))
  await refused(folder, 'journal verify', 3, new RegExp(`line 2 at byte ${second}: its seq is 3`))
  writeFileSync(path, good)
  writeFileSync(join(folder, 'journal.key'), `${'ab'.repeat(32)}\n`)
  await refused(folder, 'journal verify', 3, /line 1 needs key/)
})

test('keys are rotated and the journal rewritten under load; nothing is lost, and the old key can go', async t => {
  const folder = await initialized(t)
  const program = await startProgram(t, { flags: { data: folder } })
  let isOver = false
  let created = 0
  const load = Promise.all([1, 2, 3, 4].map(async () => {
    while (!isOver) if ((await send(program.url, 'POST', '/api/createPassword', entry)).status === 200) created++
  }))
  while (created < 100) await new Promise(resolve => setImmediate(resolve))
  const old = readFileSync(join(folder, 'journal.key'), 'latin1')
  assert.match(await done(folder, 'key rotate'), /^key [0-9a-f]{8} seals from now on\n$/)
  await refused(folder, 'key rewrite --to-prefix /pes-2', 2, /--to-prefix is for a journal in etcd/)
  const printed = await done(folder, 'key rewrite')
  assert.match(printed, /^head [0-9a-f]{64}\nkey [0-9a-f]{8} is no longer needed by this journal\n$/)
  isOver = true
  await load
  const unneeded = /^key (\w+)/m.exec(printed)![1]
  assert.ok(!readFileSync(join(folder, 'journal.jsonl'), 'latin1').includes(`"key":"${unneeded}"`))
  await program.kill()
  writeFileSync(join(folder, 'journal.key'), readFileSync(join(folder, 'journal.key'), 'latin1').replace(old, ''))
  const again = await startProgram(t, { flags: { data: folder } })
  assert.equal((await send(again.url, 'GET', '/api/listPassword')).json.length, created)
})

test('several commands at once without a server all come to pass', async t => {
  const folder = await initialized(t)
  await Promise.all([1, 2, 3, 4, 5].map(n => done(folder, `user add u${n}@x --password-stdin`, 'pw')))
  assert.equal(JSON.parse(await done(folder, 'user list --json')).length, 5)
  assert.deepEqual(readdirSync(folder).sort(), ['journal.jsonl', 'journal.key'])
})

test('commands that take turns without a server never run into one that is just leaving', async t => {
  const folder = await initialized(t)
  await Promise.all([1, 2, 3, 4].map(async () => { for (let n = 0; n < 5; n++) await done(folder, 'user list') }))
})

test('a password is asked for without echo, twice, at a terminal', async t => {
  const folder = await initialized(t)
  for (const [email, again, code] of [['a@x', 'SECRET-typed', 0], ['b@x', 'other', 2]] as const) {
    const typed = [['password: ', 'SECRET-typed'], ['again: ', again]] as const
    const { code: ended, seen } = await atTerminal(folder, `user add ${email}`, typed)
    assert.equal(ended, code, seen)
    assert.ok(seen.includes('password: ') && !seen.includes('SECRET'), seen)
  }
  assert.equal(JSON.parse(await done(folder, 'user list --json')).length, 1)
})
