/** Import and export, beside a running server and without one. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { EventEmitter } from 'node:events'
import { readdirSync, readFileSync, statfsSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { MAX_IMPORT_BYTES } from '../../src/limits.ts'
import { MAX_ENTRY_BYTES } from '../../src/limits.ts'
import type { RequestBody, OperationName, Result } from '../../src/parts/commands/operation.ts'
import { StoreAccess } from '../../src/parts/operator/program/connect.ts'
import { COMMANDS } from '../../src/parts/operator/transfer/transfer-commands.ts'
import { Terminal } from '../../src/parts/commands/terminal.ts'
import { SETTINGS } from '../../src/settings.ts'
import type { Entry } from '../../src/entries/entry.ts'
import { admin, atTerminal, done, initialized, refused } from '../support/admin.ts'
import { joined } from '../support/patterns.ts'
import { mountMissing, smallDisk } from '../support/system.ts'
import { freshFolder, send, startService } from '../support/service.ts'

const NO_MOUNT = mountMissing()

function fileOf(t: TestContext, text: string): string {
  const path = join(freshFolder(t), 'file')
  writeFileSync(path, text)
  return path
}

function chromeRows(count: number): string {
  const row = (_: unknown, i: number): string => `site ${i},https://${i}.example/,user${i},"SECRET, ${i}",\r\n`
  return `name,url,username,password,note\r\n${Array.from({ length: count }, row).join('')}`
}

async function entriesOf(folder: string): Promise<Entry[]> {
  const text = await done(folder, 'export --output - --yes')
  return text.split('\n').filter(line => line !== '').map(line => JSON.parse(line))
}

const BITWARDEN = [
  'folder,favorite,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp',
  ',,login,correo,,,0,,ana,SECRET-1,', ',,note,a note,text,,0,,,,', ',,login,correo,,,0,,ana,SECRET-1,',
  ',,login,,,,0,https://banco.example/x,,SECRET-ñ,'
].join('\n')

for (const isServed of [true, false]) {
  const where = isServed ? 'beside the running server' : 'without a server'

  test(`import, ${where}: tried, imported, and not imported twice`, async t => {
    const folder = await initialized(t)
    if (isServed) await startService(t, { data: folder })
    const file = fileOf(t, BITWARDEN)
    const report = 'format       Bitwarden\nno entry     1 (line 3)\n'
    const lost = 'not kept     no password: 1 (line 3)\nnot kept     note: 1 (line 3)\n'
    const beware = /^beware +such a file never contains cards, .*; look there before you delete the vault\n/m
    const run = async (words: string): Promise<string> => {
      const out = await done(folder, words)
      assert.match(out, beware)
      return out.replace(beware, '')
    }
    const tried = await run(`import ${file} --dry-run`)
    assert.equal(tried, 'line 2: correo ana\nline 5: banco.example -\n' +
      `${report}duplicates   1 (line 4)\n${lost}would make   2\n`)
    assert.deepEqual(await entriesOf(folder), [])
    assert.equal(await run(`import ${file}`), `${report}duplicates   1 (line 4)\n${lost}made         2, ids 1 to 2\n`)
    const made = [
      { id: 1, password: 'SECRET-1', sistema: 'correo', usuario: 'ana', status: 1 },
      { id: 2, password: 'SECRET-ñ', sistema: 'banco.example', usuario: '-', url: 'https://banco.example/x', status: 1 }
    ]
    assert.deepEqual(await entriesOf(folder), made)
    assert.equal(await run(`import ${file}`), `${report}duplicates   3 (lines 2, 4, 5)\n${lost}made         0\n`)
    const kept = await run(`import ${file} --keep-duplicates --dry-run`)
    assert.equal(kept.match(/^line |^would make {3}3$/gm)?.length, 4, kept)
    assert.equal(await run(`import ${file} --keep-duplicates`),
      `${report}duplicates   3 (lines 2, 4, 5), kept\n${lost}made         3, ids 3 to 5\n`)
    assert.deepEqual((await entriesOf(folder)).slice(0, 2), made)
    assert.match(await done(folder, 'journal verify'), /^records 6\nentries 5 \(5 active\)\n/)
    const history = await done(folder, 'entry history 4 --reveal')
    assert.match(history, joined(/^\S+ operator fields\.imported /,
      /\{"password":"SECRET-1","sistema":"correo","usuario":"ana"\}\n$/))
    for (const words of ['journal show', 'entry history 4']) assert.ok(!(await done(folder, words)).includes('SECRET'))
    await refused(folder, 'entry history 6', 1, /no entry 6/)
    truncateSync(file, 64 * 1024 * 1024 + 1)
    await refused(folder, `import ${file}`, 1, /larger than 67108864 bytes; split it/)
  })
}

test('imported entries are served at once, and sealed', async t => {
  const folder = await initialized(t)
  const program = await startService(t, { data: folder })
  await send(program.url, 'POST', '/api/createPassword', { password: 'first', sistema: 's', usuario: 'u' })
  await done(folder, `import ${fileOf(t, chromeRows(3_000))}`)
  await send(program.url, 'POST', '/api/createPassword', { password: 'last', sistema: 's', usuario: 'u' })
  const { json } = await send(program.url, 'GET', '/api/listPassword')
  assert.equal(json.length, 3_002)
  assert.deepEqual(json[3_000], { id: 3_001, password: 'SECRET, 2999', sistema: 'site 2999', usuario: 'user2999',
    url: 'https://2999.example/', status: 1 })
  assert.equal(json[3_001].password, 'last')
  assert.ok(!readFileSync(join(folder, 'journal.jsonl'), 'latin1').includes('SECRET'))
  await refused(folder, 'key rewrite --to-prefix /pes-2', 2, /has no such flag/)
  await refused(folder, 'user list --stale-reads on', 2, /has no such flag/) // a service's alone
})

const HOSTILE = [
  '"', '""', ',', ' a ', '\r\n', '\n\r', 'a\nb', '=HYPERLINK("x")', '+1', '-1', '@SUM(A1)', '\'', ';', '\t', '\0',
  '\x1b[2J',
  '\x7f', '\x85', '\u2028', '\ufeff', '\ufffd', '🔑👩‍👩‍👧', 'e\u0301', '\u202eevil', 'пароль', '{"id":1}', '\\u0041', '-'
]

for (const [format, texts] of [['csv', HOSTILE], ['jsonl', [...HOSTILE, '\ud83d', 'a\udd11b']]] as const) {
  test(`what was exported as ${format} imports to the same entries, whatever characters they contain`, async t => {
    const { url, folder } = await startService(t)
    const create = async (password: string, sistema: string, usuario: string): Promise<void> => {
      assert.equal((await send(url, 'POST', '/api/createPassword', { password, sistema, usuario })).status, 200)
    }
    for (const [i, text] of texts.entries()) await create(text, texts.at(i - 1)!, texts.at(i - 2)!)
    await create('same', 'same', 'same')
    await create('same', 'same', 'same')
    for (const id of [1, 4, texts.length]) await send(url, 'POST', `/api/deletePassword/${id}`)
    const path = join(freshFolder(t), 'export')
    assert.equal(await done(folder, `export --format ${format} --output ${path} --yes`),
      `${path}: ${texts.length + 2} entries as ${format}, in plain text\n`)
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.deepEqual(readdirSync(dirname(path)), ['export'])
    const other = await initialized(t)
    await done(other, `import ${path}`)
    const entries = await entriesOf(folder)
    assert.deepEqual(entries.map(({ password }) => password), [...texts, 'same', 'same'])
    assert.deepEqual(await entriesOf(other), entries)
    assert.match(await done(other, `import ${path}`), /^made +0$/m)
  })
}

test('what was exported as bitwarden imports to the same active entries, and is one more time what it was', async t => {
  const folder = await initialized(t)
  const texts = HOSTILE
  const lines = texts.map((text, i) => JSON.stringify({ password: text, sistema: texts.at(i - 1),
    usuario: texts.at(i - 2), status: 1 }))
  await done(folder, `import ${fileOf(t, [...lines, lines[0],
    '{"id":100,"password":"gone","sistema":"s","usuario":"u","status":0}'].join('\n'))} --keep-duplicates`)
  const path = join(freshFolder(t), 'export.json')
  await done(folder, `export --format bitwarden --output ${path} --yes`)
  const other = await initialized(t)
  assert.match(await done(other, `import ${path}`), new RegExp(`^made +${texts.length + 1}, ids`, 'm'))
  const active = (await entriesOf(folder)).filter(({ status }) => status === 1)
  assert.deepEqual(await entriesOf(other), active)
  const again = join(freshFolder(t), 'again.json')
  await done(other, `export --format bitwarden --output ${again} --yes`)
  assert.equal(readFileSync(again, 'utf8'), readFileSync(path, 'utf8'))
})

test('an export is of the format that its file is named for, where none is named', async t => {
  const folder = await initialized(t)
  await done(folder, 'entry add --system s --user u --password-stdin', 'SECRET\n')
  const place = freshFolder(t)
  for (const [name, begins] of [['e.csv', 'id,sistema'], ['e.jsonl', '{"id"'], ['e', '{"id"'],
    ['e.txt', '{"id"']] as const) {
    await done(folder, `export --output ${join(place, name)} --yes`)
    assert.ok(readFileSync(join(place, name), 'utf8').startsWith(begins), name)
  }
  await refused(folder, `export --output ${join(place, 'e.json')} --yes`, 2,
    /may be --format bitwarden or --format jsonl/)
  await done(folder, `export --output ${join(place, 'e.json')} --format csv --yes`)
  assert.ok(readFileSync(join(place, 'e.json'), 'utf8').startsWith('id,sistema'))
})

test('an export of several pages is recorded page by page, and each of its entries once', async t => {
  const folder = await initialized(t)
  const rows = Array.from({ length: 5 }, (_, n) => JSON.stringify({ password: `${n}`.repeat(500_000), sistema: 's',
    usuario: 'u' }))
  await done(folder, 'import -', rows.join('\n'))
  await done(folder, 'entry delete 5')
  let before = 0
  for (const [flags, entries] of [['', 5], [' --format bitwarden', 4]] as const) {
    await done(folder, `export --output ${join(freshFolder(t), 'export.jsonl')} --yes${flags}`)
    const shown = (await done(folder, 'journal show --json')).trim().split('\n').map(line => JSON.parse(line))
    const told = shown.filter(({ type }) => type === 'entries.disclosed').map(({ data }) => data)
    assert.ok(told.every(({ command }) => command === 'export') && told.length > before + 1, 'several pages')
    assert.equal(told.slice(before).reduce((sum, { entries }) => sum + entries, 0), entries)
    before = told.length
  }
})

type Acts = { readonly [operation: string]: () => Promise<unknown> }

/** The way to a store on which something else happens right before an operation is asked for. */
class Racing extends StoreAccess {
  readonly #before: Acts

  constructor(folder: string, terminal: Terminal, before: Acts) {
    const settings = { dataDir: folder, keyFile: undefined, journal: 'file', abilities: SETTINGS.abilities.fallback }
    super(settings, 'refuse', terminal)
    this.#before = before
  }

  override async ask<N extends OperationName>(name: N, body: RequestBody<N>): Promise<Result<N>> {
    await this.#before[name]?.()
    return super.ask(name, body)
  }
}

for (const format of ['chrome', 'jsonl']) {
  test(`who exports as ${format} while an entry is deleted knows what the file has, and nothing else`, async t => {
    const folder = await initialized(t)
    const { url, service } = await startService(t, { data: folder })
    for (const n of [1, 2]) {
      await send(url, 'POST', '/api/createPassword', { password: `p${n}`, sistema: `s${n}`, usuario: 'u' })
    }
    await service.close()
    await (await startService(t, { data: folder, auth: 'bearer' })).service.close() // from now on it is recorded
    const streams = Object.assign(new EventEmitter(), { stdin: new PassThrough(), stdout: new PassThrough(),
      stderr: new PassThrough(), exit: process.exit })
    const terminal = new Terminal(streams as unknown as ConstructorParameters<typeof Terminal>[0], true)
    const store = new Racing(folder, terminal, { readEntries: () => admin(folder, 'entry delete 2') })
    const output = join(freshFolder(t), 'export')
    const { run } = COMMANDS.find(({ name }) => name === 'export')!
    await run({ positionals: [], flags: { output, format, yes: true }, terminal, store })
    const written = [1, 2].filter(n => readFileSync(output, 'utf8').includes(`p${n}`))
    assert.deepEqual(written, format === 'chrome' ? [1] : [1, 2])
    assert.match(await done(folder, 'entry list --deleted --json'), /s2/)
    const { knows } = JSON.parse((await admin(folder, 'audit --json')).out)
    assert.deepEqual(knows.map(({ id, how }: any) => [id, how]), written.map(id => [id, 'read']))
  })
}

test('an export asks first, replaces no file, and leaves nothing when it fails', async t => {
  const folder = await initialized(t)
  await done(folder, `import ${fileOf(t, '{"id":9,"password":"SECRET","sistema":"\\ud800","usuario":"u","status":1}')}`)
  const place = freshFolder(t)
  const path = join(place, 'export')
  writeFileSync(`${path}.part`, 'of somebody else')
  await refused(folder, `export --output ${path}`, 2, /no terminal .* --yes/)
  await refused(folder, 'export --yes', 2, /--output FILE, or --output -/)
  await refused(folder, `export --output ${path} --format xml --yes`, 2, /must be jsonl, csv, bitwarden or chrome$/m)
  await refused(folder, `export --output ${path} --format csv --yes`, 1,
    /entry 1 has a character that CSV cannot contain/)
  await refused(folder, `export --output ${join(place, 'none', 'x')} --yes`, 1, /there is no file or folder .*none$/m)
  const { code, seen } = await atTerminal(folder, `export --output ${path}`, [['Type yes', 'y']])
  assert.deepEqual([code, seen.includes('cancelled')], [1, true], seen)
  const shown = await atTerminal(folder, 'export --output - --yes')
  assert.deepEqual([shown.code, shown.seen.includes('SECRET')], [2, false], shown.seen)
  assert.deepEqual(readdirSync(place), ['export.part'])
  assert.equal((await atTerminal(folder, `export --output ${path}`, [['Type yes', 'yes']])).code, 0)
  assert.equal(readFileSync(path, 'utf8'),
    '{"id":1,"password":"SECRET","sistema":"\\ud800","usuario":"u","status":1}\n')
  await refused(folder, `export --output ${path} --yes`, 1, /exists already/)
  assert.deepEqual(readdirSync(place), ['export', 'export.part'])
  assert.equal(readFileSync(`${path}.part`, 'utf8'), 'of somebody else')
})

test('the largest import is taken beside a service as it is without one', async t => {
  const { folder, service } = await startService(t)
  const row = (n: number): string => JSON.stringify({ password: `${n}`.padEnd(10_000, '-'), sistema: 's',
    usuario: 'u' })
  const bytes = (n: number): number => JSON.stringify({ ...JSON.parse(row(n)), status: 1, isOwn: false }).length + 1
  const rows: string[] = []
  for (let sum = bytes(1); sum <= MAX_IMPORT_BYTES; sum += bytes(rows.length + 1)) rows.push(row(rows.length + 1))
  const file = fileOf(t, rows.join('\n'))
  const more = fileOf(t, [...rows, row(0)].join('\n'))
  for (const isThere of [true, false]) {
    if (!isThere) await service.close()
    const fault = new RegExp(`line ${rows.length + 1}: .* \\(${MAX_IMPORT_BYTES} bytes\\); split the file`)
    await refused(folder, `import ${more}`, 1, fault)
    assert.match(await done(folder, `import ${file} --dry-run --json`), new RegExp(`"wouldMake":${rows.length}`))
  }
})

test('an export for browsers comes back as it was, but for what it has no place for, which is said', async t => {
  const folder = await initialized(t)
  await done(folder, `import ${fileOf(t, [
    { password: 'a,"b"', sistema: 'Shop', usuario: 'ann', url: 'https://a.example/', notas: 'two\nlines' },
    { password: '=1', sistema: 'Mail', usuario: 'bob', grupo: 'Ops', otp: 'JBSWY3DPEHPK3PXP' },
    { password: 'gone', sistema: 'Old', usuario: 'bob', status: 0 }
  ].map(one => JSON.stringify(one)).join('\n'))}`)
  const path = join(freshFolder(t), 'passwords.csv')
  const said = await done(folder, `export --output ${path} --format chrome --yes`)
  assert.match(said, /2 entries as chrome/)
  assert.match(said, /^not written: .*group.*: 1$/m)
  assert.match(said, /^not written: .*one-time codes.*: 1$/m)
  assert.equal(readFileSync(path, 'utf8'), 'name,url,username,password,note\r\n' +
    'Shop,https://a.example/,ann,"a,""b""","two\nlines"\r\nMail,"",bob,=1,""\r\n')
  const other = await initialized(t)
  assert.match(await done(other, `import ${path}`), /^format +Chrome\n/)
  assert.deepEqual(await entriesOf(other), [
    { id: 1, password: 'a,"b"', sistema: 'Shop', usuario: 'ann', url: 'https://a.example/', notas: 'two\nlines',
      status: 1 },
    { id: 2, password: '=1', sistema: 'Mail', usuario: 'bob', status: 1 }
  ])
})

test('an export as Bitwarden comes back with its groups and one-time codes', async t => {
  const [folder, other] = [await initialized(t), await initialized(t)]
  const row = { password: 'p', sistema: 'Mail', usuario: 'bob', grupo: 'Ops', otp: 'JBSWY3DPEHPK3PXP' }
  await done(folder, `import ${fileOf(t, JSON.stringify(row))}`)
  const path = join(freshFolder(t), 'b.json')
  await done(folder, `export --output ${path} --format bitwarden --yes`)
  await done(other, `import ${path}`)
  assert.deepEqual(await entriesOf(other), [{ id: 1, ...row, status: 1 }])
})

test('an import names each group, how many entries go there, whether it is new, and in whose list it is', async t => {
  const folder = await initialized(t)
  for (const words of ['eva@example.org --groups Personal,Ops',
    'dan@example.org --groups personal', 'ann@example.org']) {
    assert.equal((await admin(folder, `user add ${words} --no-password`)).code, 0)
  }
  const file = fileOf(t, 'type,name,url,email,username,password,note,totp,createTime,modifyTime,vault\n' +
    'login,A,,,ana,p1,,,1,1,PERSONAL\nlogin,B,,,ana,p2,,,1,1,Personal\nlogin,C,,,ana,p3,,,1,1,Shop\n')
  const groups = 'group        Personal: 2 entries, in the list of eva@example.org, dan@example.org\n' +
    'group        Shop (new): 1 entry, in no list of groups\n'
  for (const flag of [' --dry-run', '']) {
    assert.ok((await done(folder, `import ${file}${flag}`)).startsWith(groups), flag)
  }
  const again = JSON.parse(await done(folder, `import ${file} --keep-duplicates --dry-run --json`))
  assert.deepEqual(again.groups, [
    { name: 'Personal', entries: 2, isNew: false, seenBy: ['eva@example.org', 'dan@example.org'] },
    { name: 'Shop', entries: 1, isNew: false, seenBy: [] }
  ])
  assert.ok(!(await done(folder, `import ${file} --no-groups`)).includes('group '))
})

test('a short secret of one-time codes comes back from this program alone', async t => {
  const [folder, other] = [await initialized(t), await initialized(t)]
  await done(folder, `import ${fileOf(t, '{"id":1,"password":"p","sistema":"s","usuario":"u","otp":"MZXW6YTBOI"}')}`)
  for (const [format, name] of [['jsonl', 'e.jsonl'], ['csv', 'e.csv'], ['bitwarden', 'b.json']] as const) {
    const path = join(freshFolder(t), name)
    await done(folder, `export --output ${path} --format ${format} --yes`)
    assert.ok(!(await done(other, `import ${path} --keep-duplicates`)).includes('not kept'), format)
  }
  assert.deepEqual((await entriesOf(other)).map(({ otp }) => otp), Array(3).fill('MZXW6YTBOI'))
})

test('a file with any error imports nothing, nor does a dry run', async t => {
  const folder = await initialized(t)
  await refused(folder, `import ${fileOf(t, `${chromeRows(10)}a,b\n`)}`, 1, /line 12, column 1: 2 cells/)
  const deleted = fileOf(t, '{"id":1,"sistema":"s","usuario":"u","password":"p","status":0}\n')
  assert.match(await done(folder, `import ${deleted} --dry-run`), /^line 1: s u \(deleted\)$/m)
  const large = (id: number, length: number): string =>
    `${JSON.stringify({ id, password: 'x'.repeat(length), sistema: 's', usuario: 'u', status: 1 })}\n`
  const { length } = large(1, 0)
  await refused(folder, `import ${fileOf(t, large(1, MAX_ENTRY_BYTES - length + 8))}`, 1,
    /line 1: an entry may have 18874368 bytes/)
  assert.match(await done(folder, `import ${fileOf(t, large(1, MAX_ENTRY_BYTES - length + 1))} --dry-run`),
    /would make +1$/m)
  const halves = [1, 2].map(id => large(id, MAX_IMPORT_BYTES / 2)).join('')
  await refused(folder, `import ${fileOf(t, halves)}`, 1, /line 2: .* split the file/)
  await refused(folder, 'import', 2, /usage/)
  assert.deepEqual(await entriesOf(folder), [])
})

test('of two imports of one file at once the second makes only what is missing', async t => {
  const { folder } = await startService(t)
  const file = fileOf(t, chromeRows(500))
  const made = await Promise.all([1, 2].map(() => done(folder, `import ${file} --json`)))
  assert.deepEqual(made.map(text => JSON.parse(text).made).sort(), [0, 500])
  assert.equal((await entriesOf(folder)).length, 500)
})

test('a full disk keeps no part of an import or an export, and still does what has room', {
  skip: NO_MOUNT
}, async t => {
  const folder = smallDisk(t, '512k')
  const { url, service } = await startService(t, { data: folder })
  await refused(folder, `import ${fileOf(t, chromeRows(6_000))}`, 1, /could not be written/)
  assert.equal((await send(url, 'GET', '/api/listPassword')).status, 404)
  await done(folder, `import ${fileOf(t, chromeRows(2_000))}`)
  writeFileSync(join(folder, 'filler'), Buffer.alloc(statfsSync(folder).bavail * 4096 - 8192))
  for (const [words, file] of [
    ['export --output FILE --yes', 'export'], ['journal backup FILE', 'backup'], ['journal compact', 'journal.jsonl'],
    ['key rewrite', 'journal.jsonl']
  ] as const) {
    const path = join(folder, file)
    if (words === 'journal compact') await service.close()
    await refused(folder, words.replace('FILE', path), 1,
      new RegExp(`^error: ${path}: ENOSPC; there is no room for it, and it [^;]+; make some, and run`, 'm'))
  }
  assert.deepEqual(readdirSync(folder).filter(name => /^(export|backup)/.test(name)), [])
  assert.equal((await entriesOf(folder)).length, 2_000)
})
