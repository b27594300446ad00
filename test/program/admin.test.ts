/** The operator's program, as its user runs it: beside the running server, and without it. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync,
  writeFileSync
} from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { ADMIN, admin, adminProcess, atTerminal, done, initialized, refused } from '../support/admin.ts'
import { makeJournal, putJournal, referenceLines, writeKeys } from '../support/journal.ts'
import { joined } from '../support/patterns.ts'
import { fileStore } from '../support/stores.ts'
import { READ_CHUNK_BYTES } from '../../src/limits.ts'
import { VERSION } from '../../src/version.ts'
import { SECRET_FIELDS, type Entry } from '../../src/entries/entry.ts'
import { startProgram } from '../support/program.ts'
import { freshFolder, send, startService, type Started } from '../support/service.ts'
import { createEntry, deleteEntry, updateEntry } from '../../src/entries/entry-commands.ts'
import { NO_PYTHON } from '../support/programs.ts'

async function statusWith({ url }: Pick<Started, 'url'>, token: string): Promise<number> {
  return (await fetch(`${url}/api/listPassword`, { headers: { Authorization: `Bearer ${token.trim()}` } })).status
}

const entry = { password: 'SECRET-entry', sistema: 's', usuario: 'u' }

for (const isServed of [true, false]) {
  const where = isServed ? 'beside the running server' : 'without a server'

  test(`§5 users and tokens, ${where}: added, listed, changed, revoked, removed`, async t => {
    const folder = await initialized(t)
    const program = isServed ? await startProgram(t, { flags: { data: folder, auth: 'bearer' } }) : undefined
    assert.equal(await done(folder, 'user add Ana@x.org --name Ana --password-stdin', 'SECRET-k-login\r\n'),
      'ana@x.org: added as user 1, who may do: everything\n')
    await done(folder, 'user add bob@x.org --abilities password:read --password-stdin', 'SECRET-other')
    await refused(folder, 'user add ANA@x.org --password-stdin', 1, /address already/, 'SECRET-third\n')
    // An older version has taken such an address: who has it can be removed, and nobody gets another.
    await refused(folder, 'user remove m\uFFFDller@x.org', 1, /no user/)
    await refused(folder, 'user add m\uFFFDller@x.org --password-stdin', 2, /EMAIL must be UTF-8/, 'SECRET-third\n')
    assert.deepEqual(JSON.parse(await done(folder, 'user list --json')), [
      { id: 1, email: 'ana@x.org', name: 'Ana', abilities: ['*'] },
      { id: 2, email: 'bob@x.org', name: 'bob@x.org', abilities: ['password:read'] }
    ])
    const token = await done(folder, 'token issue bob@x.org --ttl-minutes 0.5')
    assert.match(token, /^pes_[A-Za-z0-9_-]{43}\n$/)
    if (program !== undefined) assert.equal(await statusWith(program, token), 404)
    const listed = JSON.parse(await done(folder, 'token list BOB@x.org --json'))
    assert.equal(listed.length, 1)
    assert.equal(Date.parse(listed[0].expires) - Date.parse(listed[0].issued), 30_000)
    assert.deepEqual(listed[0].abilities, ['password:read'])
    assert.equal(await done(folder, `token revoke ${listed[0].id}`), `${listed[0].id}: revoked\n`)
    if (program !== undefined) assert.equal(await statusWith(program, token), 401, 'the very next request')
    await refused(folder, `token revoke ${listed[0].id}`, 1, /no token/)
    await refused(folder, 'token list typo@x.org', 1, /there is no user with this address/)
    await done(folder, 'token issue ana@x.org')
    await done(folder, 'token revoke --all ana@x.org')
    assert.deepEqual(await admin(folder, 'token list'), { code: 0, out: '', error: 'no tokens\n' })
    await done(folder, 'token issue ana@x.org')
    await done(folder, 'user password ana@x.org --password-stdin', 'SECRET-renewed\n')
    assert.equal(await done(folder, 'token list --json'), '[]\n')
    await done(folder, 'user remove bob@x.org')
    await refused(folder, 'user remove bob@x.org', 1, /no user/)
    for (const words of ['token issue bob@x.org', 'token revoke --all bob@x.org',
      'user password bob@x.org --password-stdin']) {
      await refused(folder, words, 1, /no user/, 'a long password\n')
    }
    const journal = readFileSync(join(folder, 'journal.jsonl'), 'latin1')
    const shown = await done(folder, 'journal show --reveal')
    for (const secret of ['SECRET', token.trim()]) assert.ok(!journal.includes(secret) && !shown.includes(secret))
  })
}

test('usage errors end with 2, print one line, say what may have been meant, and change nothing', async t => {
  const folder = join(freshFolder(t), 'none')
  for (const words of [
    'user add', 'user add a b', 'user list x', 'token revoke', 'token revoke ab --all a@x',
    'token issue a@x --ttl-minutes 0',
    'token issue a@x --ttl-minutes 99999999999', 'entry purge 01', 'entry purge x',
    'user add a@x --abilities a,,b --password-stdin', 'user list -x', 'entry get 1 --field x', 'entry add --system s',
    'entry get 1 --clear-after 5', 'user list --json --json', 'journal verify --head 12', 'user list --json=1',
    'entry add --system s --user u --generate 30',
    'entry add --system', 'export --output', 'entry get '
  ]) await refused(folder, words, 2, /./)
  const cases: readonly (readonly [words: string, why: RegExp])[] = [
    ['usr list', /did you mean user list\?/], ['exprot', /did you mean export\?/],
    ['ls', /did you mean entry list\?/], ['show 3', /did you mean entry get\?/],
    ['rm 3', /did you mean entry delete\?/],
    ['user', /user needs one of: add, edit, list, second-factor, password, remove$/m],
    ['user frobnicate', /user needs one of/], ['frobnicate', /--help lists them/],
    ['user list --jsn', /did you mean --json\?/], ['user list --frobnicate', /user list --help lists them/],
    ['entry add --system s --user u --generate --password-stdin', /--generate and --password-stdin do not go together/],
    ['entry get', /^error: ENTRY is missing; give an id, the whole name of a system, or --of-system NAME$/m],
    ['entry get a --of-system b', /either ENTRY or --of-system NAME$/m],
    ['entry delete 7 --of-user b', /with the name of a system, not with an id$/m],
    ['entry delete 012', joined(/an id is a positive integer without leading zeros; /,
      /--of-system NAME is for a system whose name is a number$/m)],
    ['entry get 1 SECRET', joined(/^error: too many words: entry get takes \[ENTRY\], /,
      /and a text with spaces needs quotes; usage: /m)],
    ['key rotate SECRET', /^error: too many words: key rotate takes flags alone; usage: /m],
    ['entry add --system s --user u --generate SECRET', /too many words: entry add takes flags alone/],
    ['entry add --system= --user u --generate', /^error: --system is empty$/m],
    ['entry edit 1 --user=', /^error: --user is empty$/m],
    ['user add a@x --name= --password-stdin', /^error: --name is empty$/m],
    ['user edit a@x --name=', /^error: --name is empty$/m],
    ['entry get 1 --field x', /--field must be password, system, user, url, notes, group, otp or code$/m],
    ['entry list --journal x', /--journal must be file, memory or etcd$/m],
    ['entry list --journal memory',
      /--journal must be a place that this program can reach; only the service reaches its memory$/m]
  ]
  for (const [words, why] of cases) {
    await refused(folder, words, 2, why)
    assert.ok(!(await admin(folder, words)).error.includes('SECRET'), words)
  }
  for (const words of ['user list', 'journal verify', 'entry get 1']) await refused(folder, words, 1,
    /no journal in .*none; is that folder right .*if nothing was ever stored there,.* init/)
  assert.ok(!existsSync(folder))
  const made = await initialized(t)
  await refused(made, 'user add a@x --password-stdin', 2, /empty/, '\n')
  await refused(made, 'user add a@x', 2, /no terminal/)
  await refused(made, 'user add a@x --password-stdin', 2, /at least 12 characters/, 'eleven char\n')
  const before = await admin('/nowhere', `--json --data ${made} user list`)
  assert.deepEqual(before, { code: 0, out: '[]\n', error: '' }, 'flags may stand before the command')
})

test('what the system refuses is said in words, with the file, and what to do', async t => {
  const folder = await initialized(t)
  const place = freshFolder(t)
  for (const words of [`journal verify ${place}`, `import ${place}`, `journal salvage ${place} --to ${place}/new`]) {
    await refused(folder, words, 1, new RegExp(`^error: ${place}: EISDIR; this is a folder; name a file$`, 'm'))
  }
  for (const words of ['journal verify', 'import']) {
    await refused(folder, `${words} ${place}/none`, 1, new RegExp(`^error: there is no file .*${place}/none$`, 'm'))
  }
  await done(folder, 'entry add --system s --user u --password-stdin', 'x'.repeat(READ_CHUNK_BYTES))
  for (const [words, why] of [
    [`journal backup ${place}/copy`,
      /^error: \/.*copy: EFBIG; there is no room for it, and it was not made; make some, and run the command again\n$/],
    [`export --output ${place}/copy --yes`,
      // The cut back has no room either.
      /^error: .*EFBIG; so nothing is shown\. journal rescue FILE, .*\n$/m]
  ] as const) {
    const { status, stderr } = spawnSync('sh', ['-c', 'ulimit -f 16; exec "$0" "$@"', process.execPath, ADMIN,
      ...words.split(' ')],
      { env: { DATA_DIR: folder }, encoding: 'utf8' })
    assert.match(stderr, why, words)
    assert.equal(status, 1)
  }
  assert.deepEqual(readdirSync(place), [])
  const program = await startProgram(t, { flags: { data: folder } })
  renameSync(join(folder, 'journal.jsonl'), join(folder, 'moved'))
  assert.match(await done(folder, 'entry list'), /^1 /m)
  await refused(folder, 'journal verify', 1,
    /journal\.jsonl was removed; the service has everything in memory: do not stop it before journal rescue FILE/)
  renameSync(join(folder, 'moved'), join(folder, 'journal.jsonl'))
  assert.equal((await program.stop()).code, 0)
})

test('help is printed in each of the usual ways, for each command, and names etcd only where it is chosen', async t => {
  const folder = freshFolder(t)
  const whole = await done(folder, '--help')
  assert.equal(await done(folder, 'help'), whole)
  assert.match(await done(folder, '--version'), /^\d+\.\d+\.\d+(-dev)?\n$/)
  assert.ok(whole.indexOf('entry get') < whole.indexOf('user add') &&
    whole.indexOf('user add') < whole.indexOf('journal backup'))
  assert.ok(!whole.includes('journal reopen') && (await admin(folder, 'help', '',
    { JOURNAL: 'etcd' })).out.includes('journal reopen'))
  const group = await done(folder, 'user --help')
  assert.ok(group.includes('user add') && !group.includes('token issue'))
  const one = await done(folder, 'help user add')
  assert.equal(await done(folder, 'user add a@x -h'), one)
  const valued = await initialized(t)
  assert.equal(await done(valued, 'entry add --system web --user=-h --generate'), 'entry 1 (web, -h) created\n')
  await refused(valued, 'user list -- --help', 2, /too many words: user list takes flags alone/)
  assert.equal(await done(valued, 'entry add --system web --user u --generate -h'),
    await done(folder, 'help entry add'))
  assert.ok(one.includes('--data') && !one.includes('--etcd'))
  assert.match(await done(folder, 'journal copy --help'), /--etcd-endpoints/)
  const names = [...whole.matchAll(/^ {2}(\w+(?: \w+)?) {2,}/gm)].map(match => match[1]!)
  assert.ok(names.length > 20)
  for (const name of names) assert.match(await done(folder, `${name} --help`), new RegExp(`^usage: .* ${name}`))
  assert.deepEqual(readdirSync(folder), [])
})

test('entries are added, found, shown, changed, deleted and restored; showing a password is recorded', {
  skip: NO_PYTHON
}, async t => {
  const folder = await initialized(t)
  for (const isServed of [false, true]) {
    if (isServed) await startService(t, { data: folder })
    const id = isServed ? 2 : 1
    assert.equal(await done(folder, 'entry add --system Correo --user ana --password-stdin', 'SECRET-1\n'),
      `entry ${id} (Correo, ana) created\n`)
    assert.deepEqual(JSON.parse(await done(folder, 'entry list ORRE --json')).at(-1),
      { id, sistema: 'Correo', usuario: 'ana' })
    assert.deepEqual(await admin(folder, 'entry list none'),
      { code: 0, out: '', error: 'no active entries like that\n' })
    assert.ok(!(await done(folder, `entry get ${id}`)).includes('SECRET'))
    assert.equal(await done(folder, `entry get ${id} --field password`), 'SECRET-1\n')
    assert.equal(await done(folder, `entry get ${id} --field user`), 'ana\n')
    assert.match(await done(folder, `entry get ${id}`), /^system {4}Correo\nuser {6}ana\n/m)
    assert.equal(await done(folder, `entry edit ${id} --user bea --generate`), `entry ${id} (Correo, bea) changed\n`)
    const { password, usuario } = JSON.parse(await done(folder, `entry get ${id} --reveal --json`))
    assert.deepEqual([password.length, usuario], [20, 'bea'])
    assert.equal(await done(folder, `entry delete ${id}`), `entry ${id} (Correo, bea) deleted\n`)
    assert.equal(await done(folder, 'entry list orre --json'), '[]\n')
    assert.deepEqual(JSON.parse(await done(folder, 'entry list orre --deleted --json')).map((one: Entry) => one.id),
      isServed ? [1, 2] : [1])
    assert.equal(await done(folder, `entry restore ${id}`), `entry ${id} (Correo, bea) restored\n`)
    for (const words of ['get 9', 'edit 9 --user x', 'delete 9', 'restore 9', 'purge 9 --yes', 'history 9']) {
      await refused(folder, `entry ${words}`, 1, /^error: no entry 9$/m)
    }
    await done(folder, `entry delete ${id}`)
  }
  await done(folder, 'entry add --system odd --user u --password-stdin', 'a\u001b[2J\u202eB\n')
  assert.equal(await done(folder, 'entry get odd --field password'), 'a\u001b[2J\u202eB\n', 'as it is, for a script')
  assert.ok((await atTerminal(folder, 'entry get odd --field password')).seen.includes('a\\u001b[2J\\u202eB'))
  const { code, seen } = await atTerminal(folder, 'entry get 1 --clip', [['in the clipboard', '\x03']])
  assert.equal(code, 0, seen)
  const clips = [...seen.matchAll(/\x1b\]52;c;([A-Za-z0-9+/=]+)\x07/g)].map(([, text]) =>
    String(Buffer.from(text!, 'base64')))
  assert.deepEqual([clips.length, clips[0]!.length, clips[1]], [2, 20, ' '], 'copied, and cleared')
  assert.match(seen, /entry 1 \(Correo, bea\): the password is in the clipboard, .* for 45 seconds,/)
  await refused(folder, 'entry get 1 --clip', 2, /no terminal/)
  const audit = (await done(folder, 'journal show --json')).trimEnd().split('\n').map(line => JSON.parse(line))
    .filter(({ type }) => type === 'entries.disclosed').map(({ by, data }) => [by, data])
  const got = (id: number): unknown => ['operator', { command: 'entry get', entries: 1, entryIds: [id], operator: '' }]
  assert.deepEqual(audit.slice(0, 5), [got(1), got(1), got(2), got(2), got(3)])
})

test('entries are listed whose password is old, of an unknown age, or used again', async t => {
  const folder = await initialized(t)
  const DAY_MS = 86_400_000
  let wallMs = Date.now() - 9.5 * DAY_MS
  const store = await fileStore(folder, { wallMs: () => wallMs })
  for (const [sistema, password] of Object.entries({ a: 'same', b: 'other', c: 'same', d: 'same', e: 'new' })) {
    wallMs += DAY_MS
    await createEntry(store, { sistema, password, usuario: 'u' }, null)
  }
  await updateEntry(store, 2, { usuario: 'its password is as old as before' }, null)
  await updateEntry(store, 5, { password: 'newer' }, null)
  await deleteEntry(store, 4, null)
  await store.close()
  const list = async (words: string): Promise<any[]> => JSON.parse(await done(folder, `entry list ${words} --json`))
  const ids = async (words: string): Promise<number[]> => (await list(words)).map(({ id }) => id)
  assert.deepEqual((await list('--reused')).map(({ id, reused, sameAs }) => [id, reused, sameAs]),
    [[1, 1, 1], [3, 1, 1]])
  assert.deepEqual([await ids('--old 0'), await ids('--old 7'), await ids('--old 9')], [[1, 2, 3, 5], [1, 2], []])
  assert.deepEqual(await ids('--old 6 --reused'), [1, 3])
  for (const { changed, password } of await list('--old 6')) {
    assert.ok(Date.parse(changed) > 0 && password === undefined)
  }
  const unknown = freshFolder(t)
  const secret = randomBytes(32)
  writeKeys(unknown, secret)
  const kept = { password: 'p', sistema: 'compacted before passwords had an age', usuario: 'u', status: 1 }
  putJournal(unknown, referenceLines(secret, [[{ type: 'fields.kept', data: { first: 1, entries: [kept] } }]]))
  assert.deepEqual(JSON.parse(await done(unknown, 'entry list --old 1000 --json')).map(({ id, changed }: any) =>
    [id, changed]), [[1, null]])
  assert.match(await done(unknown, 'entry list --old 1000'), /not known/)
  await refused(folder, 'entry list --old soon', 2, /--old must be a number of days/)
  await refused(folder, 'entry list --reused --deleted', 2, /--reused and --deleted do not go together/)
})

test('a word is an entry only if it is an id or a system\'s whole name; what is done names the entry', async t => {
  const folder = await initialized(t)
  for (const [system, user] of [['prod', 'ana'], ['prod-replica', 'ana'], ['GitLab', 'ana'], ['gitlab', 'béa'],
    ['12', 'carla'], ['Línea', 'dora']]) {
    await done(folder, `entry add --system ${system} --user ${user} --password-stdin`, `SECRET-${system}-${user}\n`)
  }
  assert.equal(await done(folder, 'entry delete prod'), 'entry 1 (prod, ana) deleted\n')
  const acts = ['entry delete', 'entry edit --generate', 'entry edit --user x', 'entry get',
    'entry get --field password', 'entry get --reveal', 'entry get --json']
  for (const words of acts) await refused(folder, `${words} prod`, 1,
    /^error: no active entry has a system of this name; entry list finds entries by a part of a name$/m)
  for (const words of [...acts, 'entry history', 'entry restore']) await refused(folder, `${words} replica`, 1,
    /^error: no \w*\s?entry has a system of this name/m)
  assert.equal(await done(folder, 'entry restore PROD'), 'entry 1 (prod, ana) restored\n')
  assert.match(await done(folder, 'entry history prod'), /entry\.created[^]*entry\.deleted[^]*entry\.restored/)
  for (const words of [...acts, 'entry history']) {
    const { code, out, error } = await admin(folder, `${words} gitlab`)
    assert.deepEqual([code, out], [2, ''], words)
    const kind = words === 'entry history' ? '' : 'active '
    const why = `2 ${kind}entries fit; give an id, or --of-user USER`
    assert.equal(error, 'ID  SYSTEM  USER\n3   GitLab  ana\n4   gitlab  béa\n' +
      `${words.includes('--json') ? JSON.stringify({ error: why, exitCode: 2 }) : `error: ${why}`}\n`)
  }
  await refused(folder, 'entry delete gitlab --of-user bé', 1,
    /no active entry has a system of this name and this user/)
  assert.equal(await done(folder, 'entry edit gitlab --of-user BEA --url https://x.example'),
    'entry 4 (gitlab, béa) changed\n')
  assert.equal(await done(folder, 'entry edit gitlab --of-user bea --user eva --system git'),
    'entry 4 (git, eva) changed\n')
  assert.equal(await done(folder, 'entry get linea --field password'), 'SECRET-Línea-dora\n')
  await refused(folder, 'entry get 12 --field password', 1, /no entry 12/)
  assert.equal(await done(folder, 'entry get --of-system 12 --field password'), 'SECRET-12-carla\n')
  assert.equal(await done(folder, 'entry delete 5'), 'entry 5 (12, carla) deleted\n', 'digits are an id')
  assert.deepEqual(JSON.parse(await done(folder, 'entry delete 6 --json')),
    { id: 6, sistema: 'Línea', usuario: 'dora', done: 'deleted' })
  const passwords = (await done(folder, 'export --output - --yes')).trimEnd().split('\n').map(line =>
    JSON.parse(line).password)
  assert.deepEqual(passwords, [
    'SECRET-prod-ana', 'SECRET-prod-replica-ana', 'SECRET-GitLab-ana', 'SECRET-gitlab-béa', 'SECRET-12-carla',
    'SECRET-Línea-dora'
  ], 'what was refused has changed nothing')
})

test('a part of a name finds an entry for a person at a terminal who only reads, and says which', async t => {
  const folder = await initialized(t)
  for (const [system, user] of [['github', 'ana'], ['gitlab', 'ana'], ['git', 'carla']]) {
    await done(folder, `entry add --system ${system} --user ${user} --password-stdin`, `SECRET-${system}\n`)
  }
  await done(folder, 'entry edit git --url https://repo.example/x')
  await done(folder, 'entry edit git --notes-stdin', 'a note')
  assert.match(await done(folder, 'entry list REPO.example'), /^3 +git +carla +https:/m)
  const rows: readonly (readonly [words: string, code: number, seen: RegExp])[] = [
    ['entry get HÚB', 0, /^entry 1 \(github, ana\)\r\nid +1\r\n/],
    ['entry get hub --field password', 0, /^entry 1 \(github, ana\)\r\nSECRET-github\r\n$/],
    ['entry get ana', 2, /1 +github +ana[^]*2 +gitlab +ana[^]*2 active entries fit; give an id/],
    ['entry get note', 1, /no active entry has this text in its system, user name or address/],
    ['entry delete hub', 1, /no active entry has a system of this name/]
  ]
  for (const [words, code, expected] of rows) {
    const { code: left, seen } = await atTerminal(folder, words)
    assert.equal(left, code, `${words}: ${seen}`)
    assert.match(seen.replace(/\r\x1b\[K(reading[^\r]*)?/g, ''), expected, words)
  }
})

test('what is generated can be seen or copied, which is recorded; a new password is asked for where nothing else is', {
  skip: NO_PYTHON
}, async t => {
  const folder = await initialized(t)
  const add = 'entry add --system s --user u'
  assert.equal(await done(folder, `${add} --generate`), 'entry 1 (s, u) created\n')
  const [, password] = /^entry 2 \(s, u\) created\npassword {2}(\S{20})\n$/.exec(await done(folder,
    `${add} --generate --reveal`))!
  assert.equal(await done(folder, 'entry get 2 --field password'), `${password}\n`)
  const made = JSON.parse(await done(folder, 'entry edit 2 --generate --reveal --json'))
  assert.deepEqual([made.id, made.done, made.password.length], [2, 'changed', 20])
  const { seen } = await atTerminal(folder, `${add} --generate --clip`, [['in the clipboard', '\x03']])
  assert.ok(seen.includes('entry 3 (s, u) created'), seen)
  await refused(folder, `${add} --generate --clip`, 2, /no terminal/)
  await refused(folder, 'entry edit 1 --user x --reveal', 2, /a new password; add --password or --generate/)
  assert.equal((await done(folder, 'entry list --json')).match(/"id"/g)!.length, 3, 'what was refused made nothing')
  const edited = await atTerminal(folder, 'entry edit 1',
    [['password of entry 1 (s, u): ', 'SECRET-typed'], ['again: ', 'SECRET-typed']])
  assert.ok(edited.code === 0 && !edited.seen.includes('SECRET'), edited.seen)
  assert.equal(await done(folder, 'entry get 1 --field password'), 'SECRET-typed\n')
  const commands = (await done(folder, 'journal show --json')).trimEnd().split('\n').map(line => JSON.parse(line))
    .filter(({ type }) => type === 'entries.disclosed').map(({ data }) => data.command)
  assert.deepEqual(commands, ['entry get', 'entry get'], 'whoever sets a password knows it')
})

test('who changed something is the account that ran the command, also behind sudo and after a compaction', async t => {
  const folder = await initialized(t)
  const run = async (words: string, env: NodeJS.ProcessEnv): Promise<void> => {
    const { code, error } = await admin(folder, words, 'a long password\n', env)
    assert.deepEqual([code, error], [0, ''], words)
  }
  const add = 'entry add --system s --user u --password-stdin'
  const program = await startService(t, { data: folder, 'extra-routes': 'on' })
  await run(add, { LOGNAME: 'root', SUDO_USER: 'ana' })
  await run('entry edit 1 --user v', { USER: 'b\nö@x' })
  await run('entry delete 1', {})
  await send(program.url, 'POST', '/api/updatePassword/1', { usuario: 'w' })
  const by = async (): Promise<unknown> => (await done(folder,
    'entry history 1 --json')).trimEnd().split('\n').map(line => JSON.parse(line).by)
  assert.deepEqual(await by(), ['operator:ana', 'operator:b__@x', 'operator', null])
  const { json } = await send(program.url, 'GET', '/api/historyPassword/1')
  assert.deepEqual(json.history.map((one: { by: unknown }) => one.by),
    [null, 'operator', 'operator:b__@x', 'operator:ana'])
  await run('user add a@x --password-stdin', { SUDO_USER: 'ana' })
  await run('token issue a@x', { SUDO_USER: 'ana' })
  const tokens = await done(folder, 'token list --json')
  await program.service.close()
  await done(folder, 'journal compact --json')
  assert.equal(await done(folder, 'token list --json'), tokens)
  assert.match(await done(folder, 'journal verify'), /^entries 1 /m)
})

test('a group whose name is what a list says of all or of none is told from that', async t => {
  const folder = await initialized(t)
  const given = [[], ['--groups='], ['--groups', 'all'], ['--groups', 'none'], ['--groups', '"all"'],
    ['--groups', 'all,none'], ['--groups', 'Web']]
  for (const [i, groups] of given.entries()) {
    const words = ['user', 'add', `u${i}@x`, '--password-stdin', ...groups].join(' ')
    assert.equal((await admin(folder, words, 'a long password of one')).code, 0)
  }
  const rows = (await done(folder, 'user list')).trimEnd().split('\n')
  const column = rows[0]!.indexOf('GROUPS')
  assert.deepEqual(rows.slice(1).map(row => row.slice(column).split(/ {2,}/)[0]!.trim()),
    ['all', 'none', '"all"', '"none"', '""all""', 'all,none', 'Web'])
  assert.match(await done(folder, 'user add v@x --password-stdin --groups=', 'a long password of one'), /in no group$/m)
})

test('users and tokens have groups: given, listed, changed, all again; a name that nobody has yet is said', async t => {
  const folder = await initialized(t)
  const program = await startService(t, { data: folder, auth: 'bearer' })
  await done(folder, 'entry add --system s --user u --group Web --password-stdin', 'p')
  const added = await admin(folder, 'user add a@x --groups WEB,Mail --password-stdin', 'a long password\n')
  assert.deepEqual(added, {
    code: 0, out: 'a@x: added as user 1, who may do: everything, in the groups: Web, Mail\n',
    error: 'no entry, user or token has had the group Mail until now\n'
  })
  const tokens = [await done(folder, 'token issue a@x'), await done(folder, 'token issue a@x --groups mail')]
  const statuses = async (): Promise<unknown> => Promise.all(tokens.map(token => statusWith(program, token)))
  const groups = async (what: string): Promise<unknown> =>
    (JSON.parse(await done(folder, `${what} list --json`)) as { groups?: string[] }[]).map(one => one.groups)
  assert.deepEqual([await statuses(), await groups('user'), await groups('token')],
    [[200, 404], [['Web', 'Mail']], [['Web', 'Mail'], ['Mail']]])
  for (const [flags, ofUser, ofTokens, seen, listed] of [
    ['--groups Mail', ['Mail'], [['Mail'], ['Mail']], [404, 404], /^1 +a@x +a@x +\* +Mail$/m],
    ['--groups=', [], [[], []], [404, 404], /^1 +a@x +a@x +\* +none$/m],
    ['--all-groups', undefined, [undefined, []], [200, 404], /^ID +EMAIL +NAME +ABILITIES$/m]
  ] as const) {
    assert.equal(await done(folder, `user edit a@x ${flags}`),
      `a@x: changed\n${flags === '--all-groups' ? ''
        : 'a@x knows 1 present password: entry list --exposed lists what is to be changed\n'}`)
    assert.deepEqual([await groups('user'), await groups('token'), await statuses()], [[ofUser], ofTokens, seen], flags)
    assert.match(await done(folder, 'user list'), listed)
  }
  assert.match(await done(folder, 'token list'), /ABILITIES +GROUPS +ISSUED [^]* all [^]* none /)
  for (const [flags, why] of [
    ['--groups a --all-groups', /give either --groups A,B or --all-groups/],
    ['--groups a,,b', /names, separated by commas/]
  ] as const) await refused(folder, `user edit a@x ${flags}`, 2, why)
  await refused(folder, 'user edit a@x --groups a@b', 2,
    /Each name in the groups field must have 1 to 64 characters on one line/)
  await done(folder, 'user edit a@x --groups Web')
  await refused(folder, 'token issue a@x --groups Mail', 2, /a token may see no more than its user/)
})

test('a user gets another name and other abilities; the tokens that there are may do no more, at once', async t => {
  const folder = await initialized(t)
  const program = await startService(t, { data: folder, auth: 'bearer' })
  await done(folder, 'user add a@x --password-stdin', 'a long password\n')
  const tokens = [await done(folder, 'token issue a@x'),
    await done(folder, 'token issue a@x --abilities password:read,password:create')]
  const statuses = async (): Promise<unknown> => Promise.all(tokens.map(async token => [
    await statusWith(program, token), (await fetch(`${program.url}/api/createPassword`, {
      method: 'POST', headers: { Authorization: `Bearer ${token.trim()}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(entry)
    })).status]))
  assert.deepEqual(await statuses(), [[404, 200], [404, 200]])
  assert.equal(await done(folder, 'user edit A@x --abilities password:read --name Ana'),
    'A@x: changed\nA@x knows 2 present passwords: entry list --exposed lists what is to be changed\n')
  assert.deepEqual(JSON.parse(await done(folder, 'user list --json')),
    [{ id: 1, email: 'a@x', name: 'Ana', abilities: ['password:read'] }])
  assert.deepEqual(await statuses(), [[200, 403], [200, 403]])
  await done(folder, 'user edit a@x --abilities *')
  assert.deepEqual(await statuses(), [[200, 403], [200, 403]], 'a token gets nothing back')
  await refused(folder, 'user edit a@x', 2,
    /give one or more of --name N, --abilities A,B, and --groups A,B or --all-groups/)
  await refused(folder, 'user edit b@x --name x', 1, /no user/)
  await refused(folder, 'user edit a@x --abilities password:wrong', 2, /an ability must be one of/)
  await program.service.close()
  await done(folder, 'journal compact')
  const again = await startService(t, { data: folder, auth: 'bearer' })
  assert.deepEqual([await statusWith(again, tokens[0]!),
    JSON.parse(await done(folder, 'token list --json')).map((one: any) => one.abilities)],
    [200, [['password:read'], ['password:read']]])
})

test('the keys are listed with what they have sealed, and a backup goes to a pipe as it does to a file', {
  skip: NO_PYTHON
}, async t => {
  const folder = await initialized(t)
  await done(folder, 'entry add --system s --user u --password-stdin', 'SECRET\n')
  await done(folder, 'key rotate')
  await done(folder, 'entry add --system s --user u --password-stdin', 'SECRET\n')
  const keys: { readonly line: number, readonly records: number, readonly needed: string, readonly since: string }[] =
    JSON.parse(await done(folder, 'key list --json'))
  assert.deepEqual(keys.map(({ line, needed }) => [line, needed]), [[1, 'yes'], [2, 'newest']])
  assert.ok(keys.every(({ records, since }) => records >= 1 && Date.parse(since) > 0))
  const path = join(folder, 'journal.key')
  const [older = ''] = readFileSync(path, 'utf8').split('\n')
  writeFileSync(path, `${readFileSync(path, 'utf8')}${older}\n`)
  assert.match(await done(folder, 'key list'), /^\S+ +1 .* yes\n\S+ +2 .* yes\n\S+ +3 .* newest\n$/m,
    'one that is there twice')
  writeFileSync(path, readFileSync(path, 'utf8').slice(0, -older.length - 1))
  await done(folder, 'key rewrite')
  assert.deepEqual(JSON.parse(await done(folder, 'key list --json')).map((one: { needed: string }) => one.needed),
    ['no', 'newest'])
  const { code, out, error } = await admin(folder, 'journal backup -')
  assert.deepEqual([code, out], [0, readFileSync(join(folder, 'journal.jsonl'), 'utf8')])
  assert.match(error, /^\d+ records, head [0-9a-f]{64}\n$/)
  const shown = await atTerminal(folder, 'journal backup -')
  assert.deepEqual([shown.code, /"seq"/.test(shown.seen)], [2, false], shown.seen)
})

test('commands on the journal\'s file need neither the lock nor a writable folder, and change nothing', async t => {
  const folder = await initialized(t)
  await done(folder, 'entry add --system s --user u --password-stdin', 'SECRET\n')
  const path = join(folder, 'journal.jsonl')
  const whole = readFileSync(path)
  writeFileSync(path, Buffer.concat([whole, Buffer.from('{"seq":3,"time')]))
  const before = readdirSync(folder)
  const verified = await admin(folder, 'journal verify')
  assert.ok(verified.code === 4 && /^tail +14 bytes/m.test(verified.out), verified.out)
  const copy = join(freshFolder(t), 'copy')
  for (const words of ['journal show', `journal backup ${copy}`]) await done(folder, words)
  assert.deepEqual([readFileSync(path).length, readdirSync(folder)], [whole.length + 14, before],
    'nothing was repaired')
  assert.deepEqual(readFileSync(copy), whole)
  const shown = await admin(folder, `journal show ${copy} --reveal`)
  assert.ok(shown.code === 0 && shown.out.includes('SECRET'))
  assert.match(shown.error, /^warning: .* not recorded: this is a copy/)
})

test('an entry is found and shown by a running service in two requests, which read no file', async t => {
  const program = await startService(t)
  await send(program.url, 'POST', '/api/createPassword', { ...entry, sistema: 'github' })
  const [path, aside] = [join(program.folder, 'journal.jsonl'), join(program.folder, 'aside')]
  renameSync(path, aside)
  const shown = await admin(program.folder, 'entry get github')
  assert.deepEqual([shown.code, shown.error], [0, ''])
  assert.match(shown.out, /^system +github$/m)
})

test('the first user of a new folder needs no init outside production, and the folder is named', async t => {
  const folder = join(freshFolder(t), 'data')
  const add = (env: NodeJS.ProcessEnv): Promise<{ code: number | null, error: string }> =>
    admin(folder, 'user add a@x --password-stdin', 'a long password', env)
  const refusal = await add({ NODE_ENV: 'production' })
  assert.deepEqual([refusal.code, /there is no journal/.test(refusal.error)], [1, true])
  const { code, error } = await add({})
  assert.deepEqual([code, error], [0, `new, empty store in ${folder}\n`])
  assert.match(await done(folder, 'user list'), /a@x/)
  rmSync(join(folder, 'journal.jsonl'))
  const lost = await add({})
  assert.deepEqual([lost.code, /though its key .* is there/.test(lost.error)], [1, true], lost.error)
  assert.ok(!existsSync(join(folder, 'journal.jsonl')), 'beside the key of a journal that is gone it makes none')
})

test('of several `init` at once one says that it made the journal, and the others that they found it', async t => {
  const folder = join(freshFolder(t), 'data')
  const said = await Promise.all(Array.from({ length: 3 }, () => done(folder, 'init')))
  assert.deepEqual(said.map(text => /\((.*)\)/.exec(text)![1]).sort(),
    ['found, 1 record', 'found, 1 record', 'made, empty'])
})

const NOT_ROOT = process.geteuid?.() === 0 ? false : 'only root can be another user'

test('root in a folder of another user is refused with what works there, and reads files that are named', {
  skip: NOT_ROOT
}, async t => {
  const folder = await initialized(t)
  await done(folder, 'entry add --system s --user u --password-stdin', 'p')
  for (const name of ['', 'journal.jsonl', 'journal.key']) chownSync(join(folder, name), 54_321, 54_322)
  const how = joined(/belongs to user 54321: run the command as that user, /,
    /such as setpriv --reuid=54321 --regid=54322 --clear-groups COMMAND/)
  await refused(folder, 'entry add --system s --user u --password-stdin', 1, how, 'p')
  await refused(folder, 'key rotate', 1, how)
  const copy = join(freshFolder(t), 'copy')
  copyFileSync(join(folder, 'journal.jsonl'), copy)
  await refused(folder, `journal restore ${copy}`, 1, how)
  await done(folder, `journal verify ${copy}`)
  await done(folder, `journal salvage ${copy} --to ${copy}.new`)
  await refused(folder, `journal salvage ${copy} --to ${folder}/new`, 1, how)
  assert.deepEqual(readdirSync(folder).sort(), ['journal.jsonl', 'journal.key'])
})

const OTHER = { uid: 54_321, gid: 54_322 }
const MAY_RUN = NOT_ROOT || spawnSync(process.execPath, [ADMIN, '--version'], OTHER).status === 0 ? NOT_ROOT
  : 'another user cannot reach the program'

test('a folder that its group shares, as of Kubernetes, is taken by who makes the journal, and closed to root', {
  skip: MAY_RUN
}, t => {
  const top = freshFolder(t)
  chmodSync(top, 0o755)
  const folder = join(top, 'data')
  mkdirSync(folder)
  chownSync(folder, 0, OTHER.gid)
  chmodSync(folder, 0o2775)
  const run = (words: string, who: object) =>
    spawnSync(process.execPath, [ADMIN, ...words.split(' ')],
      { env: { DATA_DIR: folder }, input: 'p', encoding: 'utf8', ...who })
  for (const words of ['init', 'entry add --system s --user u --password-stdin', 'journal compact --drop-history --yes',
    'entry list']) {
    const { status, stderr } = run(words, OTHER)
    assert.equal(status, 0, stderr)
  }
  const refusal = run('entry list', {})
  assert.deepEqual([refusal.status,
    /journal\.jsonl belongs to user 54321: run the command as that user/.test(refusal.stderr)], [1, true])
  assert.equal(statSync(folder).mode & 0o7777, 0o2775)
  for (const name of readdirSync(folder)) assert.deepEqual([statSync(join(folder, name)).uid,
    statSync(join(folder, name)).mode & 0o777], [54_321, 0o600])
})

test('a command tells nothing to a socket that another user has put into the folder', { skip: NOT_ROOT }, async t => {
  const folder = await initialized(t)
  const socket = join(folder, 'held-1-abc.sock')
  let requests = 0
  const server = createServer((_request, response) => { requests++; response.end('[]') }).on('checkContinue',
    (_request, response) => {
    requests++
    response.setHeader('X-Version', VERSION).end('[]')
  }).listen(socket)
  t.after(() => server.close())
  await once(server, 'listening')
  chownSync(socket, 54_321, 54_322)
  const input = 'a long password\n'
  await refused(folder, 'user add a@x --password-stdin', 1,
    /user 54321 listens on .*abc\.sock: if that is the service, run the command as that user/, input)
  assert.equal(requests, 0)
  chownSync(join(folder, 'journal.jsonl'), 54_321, 54_322)
  await done(folder, 'user list --json')
  assert.ok(requests > 0, 'its service may run in a folder of root')
})

test('a service of another version is refused, and nothing is sent to it', async t => {
  const folder = await initialized(t)
  for (const [version, named] of [['0.9.0', '0\\.9\\.0'], [undefined, 'an older one']] as const) {
    let bytes = 0
    const answer: RequestListener = (request, response) => {
      request.on('data', chunk => { bytes += chunk.length })
      if (version !== undefined) response.setHeader('X-Version', version)
      response.writeHead(404).end('{"message":"Not Found","status":404}')
    }
    const server = createServer(answer).on('checkContinue', answer).listen(join(folder, 'held-1-abc.sock'))
    await once(server, 'listening')
    await refused(folder, 'user add a@x --password-stdin', 1,
      new RegExp(`of another version \\(${named}, .*restart the service first$`, 'm'), 'a long password')
    assert.equal(bytes, 0)
    server.close()
    await once(server, 'close')
  }
})

test('history and restore of an entry: every value, when, by whom; passwords only with --reveal', async t => {
  const folder = await initialized(t)
  await done(folder, 'user add a@x --password-stdin', 'a long password')
  const store = await fileStore(folder)
  const by = store.accounts.session((await store.accounts.issue('a@x', undefined, undefined))!.token)!
  await createEntry(store, { ...entry, sistema: 'a\n9 forged' }, by)
  const secrets = Object.fromEntries(SECRET_FIELDS.map(field => 
    [field, `SECRET${field.toUpperCase()}`.padEnd(16, 'A')]))
  await updateEntry(store, 1, { ...secrets, password: 'SECRET-second' }, by)
  await deleteEntry(store, 1, by)
  await store.close()
  await done(folder, 'entry restore 1')
  await refused(folder, 'entry restore 2', 1, /no entry 2/)
  await refused(folder, 'entry history 2', 1, /no entry 2/)
  const lines = (await done(folder, 'entry history 1 --reveal')).trimEnd().split('\n')
  assert.deepEqual(lines.map(line => line.split(' ').slice(1, 3).join(' ')),
    ['a@x entry.created', 'a@x fields.updated', 'a@x entry.deleted', 'operator entry.restored'])
  assert.deepEqual(lines.map(line => /SECRET-\w+/.exec(line)?.[0]),
    ['SECRET-entry', 'SECRET-second', 'SECRET-second', 'SECRET-second'])
  const hidden = await done(folder, 'entry history 1') + await done(folder, 'journal show')
  assert.ok(!hidden.includes('SECRET'))
  assert.equal((await done(folder, 'journal show')).trimEnd().split('\n').length, 8)
})

test('a backup of a served journal is verified, for its owner alone, and never made over a file', async t => {
  const folder = await initialized(t)
  const program = await startService(t, { data: folder })
  for (let n = 0; n < 5; n++) await send(program.url, 'POST', '/api/createPassword', entry)
  const target = join(freshFolder(t), 'copy')
  assert.match(await done(folder, `journal backup ${target}`), joined(/^6 records, head \w{64}\n/,
    /it is read with the keys \w{8} of .*journal\.key: keep a copy of that file elsewhere\n/))
  assert.equal(statSync(target).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(dirname(target)), ['copy'])
  await refused(folder, `journal backup ${target}`, 1, /exists already; --timestamp adds the time to the name$/m)
  await done(folder, `journal backup ${target}.jsonl --timestamp`)
  assert.match(await done(folder, `journal verify ${target}`), /^records 6\n/)
})

test('several commands at once without a server all succeed', async t => {
  const folder = await initialized(t)
  const left = await Promise.all([1, 2, 3, 4, 5].map(n =>
    adminProcess(folder, `entry add --system s${n} --user u --password-stdin`, 'p')))
  assert.deepEqual(left.map(({ code, error }) => [code, error]), left.map(() => [0, '']))
  assert.equal(JSON.parse(await done(folder, 'entry list --json')).length, 5)
  assert.deepEqual(readdirSync(folder).sort(), ['journal.jsonl', 'journal.key'])
})

test('commands that follow each other without a server never fail because of one that is just ending', async t => {
  const folder = await initialized(t)
  await Promise.all([1, 2, 3].map(async () => { for (let n = 0; n < 10; n++) await done(folder, 'user list --json') }))
})

test('a command reads standard input, ends by itself with its exit code, and prints what is wrong', async t => {
  const folder = join(freshFolder(t), 'data')
  const spoilKey = (): void => writeFileSync(join(folder, 'journal.key'), `${'ab'.repeat(32)}\n`)
  for (const [words, code, line, input, before] of [
    ['init', 0, /^$/], ['user add a@x --password-stdin', 0, /^$/, 'a long password\n'],
    ['token issue b@x', 1, /^error: there is no user .*\n$/], ['user list x', 2, /^error: .*\n$/],
    ['user password a@x --password-stdin', 2, /^error: .* is not UTF-8\n$/,
      Buffer.from('a long passw\xf6rd\n', 'latin1')],
    ['user password a@x --password-stdin', 1, /^error: .* is larger than .*\n$/, Buffer.alloc(19 * 1024 * 1024, 'x')],
    ['journal verify', 3, /^error: .*needs key.*\n$/, '', spoilKey]
  ] as const) {
    before?.()
    const left = await adminProcess(folder, words, input)
    assert.equal(left.code, code, words)
    assert.match(left.error, line, words)
  }
})

for (const [what, code, says, spoil] of [
  ['a key file that is gone', 3, 'the key file of the journal does not exist: .* needs .*journal.key',
    folder => rmSync(join(folder, 'journal.key'))],
  ['a key file that holds no key', 3, 'the key file is not valid: .*journal.key, line 1',
    folder => writeFileSync(join(folder, 'journal.key'), 'key\n')],
  ['a key that is another one', 3, 'a key of the journal is missing: .*, line 1 needs key',
    folder => writeFileSync(join(folder, 'journal.key'), `${'ab'.repeat(32)}\n`)],
  ['a damaged journal', 3, 'the journal is damaged: .*, line 1 at byte 0',
    folder => writeFileSync(join(folder, 'journal.jsonl'), 'no line\n')],
  ['a record of a newer version', 3, 'the journal was written by a newer version: .*, line 2 at byte',
    folder => makeJournal(folder, [[{ type: 'test.newer', by: null, data: {} }]])],
  ['a setting that is not valid', 2, 'a setting is not valid: JOURNAL must be', undefined]
] as readonly (readonly [string, number, string, ((folder: string) => unknown) | undefined])[]) {
  test(`a command that meets ${what} ends with ${code}`, async t => {
    const folder = await initialized(t)
    await spoil?.(folder)
    const left = await admin(folder, 'user list', '', spoil === undefined ? { JOURNAL: 'tape' } : {})
    assert.equal(left.code, code)
    assert.match(left.error, new RegExp(`^error: ${says}`))
  })
}
