/** `user add --file`: a team at once, or nobody. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { admin, adminProcess, atTerminal, done, initialized, refused } from '../support/admin.ts'
import { until } from '../support/program.ts'
import { freshFolder, send, startService } from '../support/service.ts'
import { hold, isReached, letGo } from '../support/slow-disk.ts'

/** As the runbook has it. */
const RUNBOOK = readFileSync(new URL('../../src/parts/operator/TEAM.md', import.meta.url), 'utf8')
const TEAM = /^```\n(email,[^`]+)```/m.exec(RUNBOOK)![1]!.replaceAll('\n', '\r\n')

test('a team is shown, added in one write with passwords in a new file, and not twice', async t => {
  const folder = await initialized(t)
  const [team, passwords] = ['team.csv', 'passwords.csv'].map(name => join(freshFolder(t), name)) as [string, string]
  writeFileSync(team, TEAM)
  const tried = await admin(folder, `user add --file ${team} --dry-run`)
  assert.equal(tried.error, ['Web', 'Mail'].map(name => `no entry, user or token has had the group ${name} until now\n`)
    .join(''))
  assert.deepEqual(tried.out.trim().split('\n').map(line => line.split(/ {2,}/)), [
    ['EMAIL', 'NAME', 'ABILITIES', 'GROUPS'], ['ana@example.org', 'Ana', '*', 'all'],
    ['bob@example.org', 'Bob', 'password:read,password:create,password:update', 'Web,Mail'],
    ['eva@example.org', 'Eva', 'none', 'none']
  ])
  assert.equal((await admin(folder, 'user add --file - --dry-run', TEAM)).out, tried.out)
  assert.equal(JSON.parse(await done(folder, 'user list --json')).length ?? 0, 0)
  await refused(folder, `user add --file ${team}`, 2, /no terminal to show the passwords at; use --passwords FILE/)
  writeFileSync(passwords, 'of somebody else')
  assert.match((await admin(folder, `user add --file ${team} --passwords ${passwords}`)).error, /exists already/)
  assert.equal(readFileSync(passwords, 'utf8'), 'of somebody else')
  assert.match((await admin(folder, 'user list')).error, /no users/)

  const made = `${passwords}.new`
  const added = await admin(folder, `user add --file ${team} --passwords ${made} --json`)
  assert.equal(added.code, 0, added.error)
  assert.deepEqual(JSON.parse(added.out).added.map(({ email, groups }: any) => [email, groups]),
    [['ana@example.org', undefined], ['bob@example.org', ['Web', 'Mail']], ['eva@example.org', []]])
  assert.equal(statSync(made).mode & 0o777, 0o600)
  const rows = readFileSync(made, 'utf8').trim().split('\r\n').map(line => line.split(','))
  assert.deepEqual(rows.map(([email]) => email), ['email', 'ana@example.org', 'bob@example.org', 'eva@example.org'])
  const shown = (await done(folder, 'journal show --json')).trim().split('\n').map(line => JSON.parse(line))
  const users = shown.filter(({ type }) => type === 'user.added')
  assert.deepEqual(users.map(({ data }) => data.firstPassword), [true, true, true])

  const { url } = await startService(t, { data: folder, auth: 'bearer' })
  const password = rows[1]!.slice(1).join(',').replace(/^"(.*)"$/, '$1')
  const { json } = await send(url, 'POST', '/api/login', { email: 'ana@example.org', password })
  assert.equal(json.user.firstPassword, true)
  writeFileSync(team, `${TEAM}max@example.org,,,\r\n`)
  await refused(folder, `user add --file ${team} --passwords ${passwords}.2`, 1,
    /are users already, and nobody was added: ana@example.org, bob@example.org, eva@example.org$/m)
  assert.ok(!existsSync(`${passwords}.2`))
  assert.ok(!(await done(folder, 'user list')).includes('max'))
})

test('a file that is not as the first line must say adds nobody', async t => {
  const folder = await initialized(t)
  const file = join(freshFolder(t), 'team.csv')
  const rows: readonly (readonly [text: string, why: RegExp])[] = [
    ['email,name,groups\na@b.c,,\n', /four columns: email, name, groups, abilities$/m],
    ['email,name,groups,abilities,more\n', /four columns/], ['', /four columns/],
    ['email,name,groups,abilities\n', /there is no user in it/],
    ['email,name,groups,abilities\nana,,,\n', /line 2: The email field must be a valid email address/],
    ['email,name,groups,abilities\na@b.c,,"Web,,Mail",\n', /line 2: groups must be names, separated by commas, or \*/],
    ['email,name,groups,abilities\na@b.c,,"*,Mail",\n', /line 2: Each name in the groups field must/],
    ['email,name,groups,abilities\na@b.c,,,\nd@b.c,,,\nA@B.c,,,\n', /line 4: A@B.c stands in line 2, too/],
    ['email,name,groups,abilities\na@b.c,,,foo\n', /an ability must be one of/],
    ['email,name,groups,abilities\na@b.c,,We\u3164b,\n', /groups field must have new names of .*invisible characters/]
  ]
  for (const [text, why] of rows) {
    writeFileSync(file, text)
    const { code, error } = await admin(folder, `user add --file ${file} --passwords ${file}.out`)
    assert.match(error, why, text)
    assert.notEqual(code, 0)
    assert.deepEqual([existsSync(`${file}.out`), error.includes('has passwords')], [false, false], text)
    assert.deepEqual(await admin(folder, `user add --file ${file} --dry-run`), { code, error, out: '' }, text)
    assert.match((await admin(folder, 'user list')).error, /no users/, text)
  }
  for (const words of ['--name N', '--all-groups', '--abilities *', '--no-password']) {
    await refused(folder, `user add --file ${file} ${words}`, 2, /^error: --file does not go together with --/)
  }
  await refused(folder, `user add a@b.c --file ${file}`, 2, /--file does not go together with EMAIL/)
  await refused(folder, 'user add a@b.c --passwords x', 2, /--passwords goes together with --file alone/)
  await refused(folder, 'user add', 2, /give either EMAIL or --file TEAM.csv/)
})

test('an address that is taken while the passwords are written adds nobody, and the command says so', async t => {
  const { folder } = await startService(t)
  const [place, holds] = [freshFolder(t), freshFolder(t)]
  const [team, passwords] = [join(holds, 'team.csv'), join(place, 'passwords.csv')]
  writeFileSync(team, TEAM)
  hold(holds, 'read', place) // the folder, before its new file
  const ended = adminProcess(folder, `user add --file ${team} --passwords ${passwords}`, '', holds)
  await until('the passwords to be written', () => isReached(holds))
  await done(folder, 'user add bob@example.org --no-password')
  letGo(holds)
  const { code, error } = await ended
  assert.equal(code, 1)
  assert.match(error, /passwords\.csv has passwords of users who may not be there: see user list$/m)
  assert.match(error, /^error: these are users already, and nobody was added: bob@example\.org$/m)
  const users: any[] = JSON.parse(await done(folder, 'user list --json'))
  assert.deepEqual(users.map(({ email }) => email), ['bob@example.org'])
})

test('at a terminal the passwords are shown', async t => {
  const folder = await initialized(t)
  const file = join(freshFolder(t), 'team.csv')
  writeFileSync(file, 'abilities;groups;name;email\n*;*;;ana@example.org\n')
  const { code, seen } = await atTerminal(folder, `user add --file ${file}`)
  assert.equal(code, 0, seen)
  assert.match(seen, /ana@example\.org {2}\S{20}\r\n.*1 user added; the first passwords are above/s)
})
