/** The table of exit codes (`src/parts/commands/exit-codes.ts`), held against each command. */
import assert from 'node:assert/strict'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { EXIT_CODES } from '../../src/parts/commands/exit-codes.ts'
import { PARTS } from '../../src/settings.ts'
import { VERSION } from '../../src/version.ts'
import { admin, initialized } from '../support/admin.ts'
import { startProgram } from '../support/program.ts'
import { freshFolder } from '../support/service.ts'

const commands = (await Promise.all(PARTS.map(part => part.commands?.() ?? []))).flat()

/** What follows a command's name so that it is called in a right way. */
const WORDS: { readonly [name: string]: string } = {
  'entry get': '1', 'entry edit': '1 --user u', 'entry delete': '1', 'entry restore': '1', 'entry purge': '1 --yes',
  'entry history': '1', 'entry add': '--system s --user u --generate', 'user add': 'a@x --no-password',
  'user edit': 'a@x --name n', 'user password': 'a@x --remove', 'user second-factor': 'a@x --remove',
  'user remove': 'a@x', 'token issue': 'a@x', 'token revoke': '0123456789ab', 'audit': '1', 'journal backup': 'NEW',
  'journal restore': 'COPY', 'journal salvage': 'COPY --to NEW', 'journal rescue': 'NEW', 'import': 'ROWS',
  'export': '--output NEW --yes', 'journal copy': '--to etcd', 'journal remove': '/none --from etcd'
}
/** `rescue` asks a service, and there is none; the others lack a setting. */
const NOT_LOST: { readonly [name: string]: number } =
  { 'journal rescue': 1, 'journal close': 2, 'journal reopen': 2, 'journal remove': 2 }

test('each command ends with 2 for a flag that it has not, and with 3 if the key file is missing', async t => {
  const folder = await initialized(t)
  const place = freshFolder(t)
  const [copy, rows] = [join(place, 'copy.jsonl'), join(place, 'rows.csv')]
  copyFileSync(join(folder, 'journal.jsonl'), copy)
  writeFileSync(rows, 'name,url,username,password\ns,,u,p\n')
  rmSync(join(folder, 'journal.key'))
  for (const { name } of commands) {
    const words = `${name} ${WORDS[name] ?? ''}`.trim()
      .replace('NEW', join(place, 'new.csv')).replace('COPY', copy).replace('ROWS', rows)
    const unknown = await admin(folder, `${words} --no-such-flag`)
    assert.deepEqual([unknown.code, /has no such flag/.test(unknown.error)], [2, true], words)
    if (name === 'journal restore') rmSync(join(folder, 'journal.jsonl'))
    const { code, error } = await admin(folder, words)
    assert.equal(code, NOT_LOST[name] ?? 3, `${words}: ${error}`)
    copyFileSync(copy, join(folder, 'journal.jsonl'))
  }
})

for (const isServed of [false, true]) test(
  `what is given and not valid ends with 2, what is not there with 1, ${isServed ? 'beside a service' : 'without one'}`,
  async t => {
  const folder = await initialized(t)
  if (isServed) await startProgram(t, { flags: { data: folder } })
  assert.equal((await admin(folder, 'user add a@x --no-password --abilities password:read')).code, 0)
  const team = join(freshFolder(t), 'team.csv')
  const rows: readonly (readonly [words: string, code: number, team?: string])[] = [
    ['user add b@x --no-password --abilities foo', 2], ['user add b@x --no-password --groups a,,b', 2],
    ['user add b@x --no-password --groups a@b', 2], ['user add b --no-password', 2],
    ['user add b@x --password-stdin', 2], ['user add a@x --no-password', 1],
    ['user edit a@x --abilities foo', 2], ['user edit a@x --groups *', 2], ['user edit b@x --name n', 1],
    ['user remove b@x', 1], ['user remove b', 2],
    ['token issue a@x --abilities foo', 2], ['token issue a@x --ttl-minutes 0', 2], ['token issue b@x', 1],
    ['token issue a@x --abilities password:update', 2], ['token revoke 0123456789ab', 1],
    ['entry get 1', 1], ['entry get 01', 2], ['entry delete 1', 1], ['entry list --old x', 2],
    ['journal verify --head x', 2], ['journal verify /none', 1], ['import /none', 1], ['key list', 0],
    ['journal verify', 0],
    ...['email,name,groups,abilities\nc@x,,"a,,b",\n', 'email,name,groups,abilities\nc@x,,,foo\n', 'email\nc@x\n',
      'email,name,groups,abilities\nc,,,\n', 'email,name,groups,abilities\n"c,,,\n'].map(text =>
        [`user add --dry-run --file ${team}`, 2, text] as const),
    ['user add --dry-run --file /none', 1]
  ]
  for (const [words, code, text] of rows) {
    if (text !== undefined) writeFileSync(team, text)
    const left = await admin(folder, words, '\n')
    assert.equal(left.code, code, `${words}: ${text ?? ''} ${left.error}`)
  }
})

test('a salvage that can open no line ends with 3, one of a file that is no journal with 1', async t => {
  const [folder, other, place] = [await initialized(t), await initialized(t), freshFolder(t)]
  const notes = join(place, 'notes.txt')
  writeFileSync(notes, 'no journal\n')
  for (const [file, code, said] of [
    [join(folder, 'journal.jsonl'), 3, /the key file lacks key/], [notes, 1, /it is not a journal/]
  ] as const) {
    const left = await admin(other, `journal salvage ${file} --to ${join(place, 'new.jsonl')}`)
    assert.equal(left.code, code, left.error)
    assert.match(left.error, said)
  }
})

test('help, each help of a command, and COMMANDS.md say what the exit codes mean', async () => {
  const plain = readFileSync('src/parts/operator/COMMANDS.md', 'utf8').replace(/`/g, '').replace(/\s+/g, ' ')
  assert.ok(plain.includes(EXIT_CODES.replace(/\.$/, '')), EXIT_CODES)
  for (const words of ['--help', 'help', ...commands.map(({ name }) => `help ${name}`)])
    assert.ok((await admin('/none', words)).out.endsWith(`${EXIT_CODES}\n`), words)
})

test('with --json, help, --version and errors are JSON, wherever the flag stands', async t => {
  const json = async (words: string): Promise<any> => {
    const { code, out, error } = await admin('/none', words)
    assert.deepEqual([code, error], [0, ''], words)
    return JSON.parse(out)
  }
  for (const words of ['--version --json', '--json --version', '-V --json'])
    assert.deepEqual(await json(words), { version: VERSION }, words)
  for (const words of ['--help --json', 'help --json', '--json help', '--json --help'])
    assert.deepEqual((await json(words)).commands.map(({ name }: any) => name).includes('entry add'), true, words)
  assert.ok((await json('help user --json')).commands.every(({ name }: any) => name.startsWith('user ')))
  for (const { name, options = {} } of commands) for (const words of [`help ${name} --json`, `${name} --help --json`]) {
    const told = await json(words)
    assert.deepEqual([told.name, Object.keys(told.options)], [name, [...Object.keys(options), 'json']])
  }
  const folder = await initialized(t)
  for (const [words, exitCode] of [['entry get 1 --json', 1], ['--json entry get 01', 2], ['user frobnicate --json', 2],
    ['entry list --old --json', 2], ['user list --jsn --json', 2]] as const) {
    const { code, out, error } = await admin(folder, words)
    const told = JSON.parse(error)
    assert.deepEqual([code, out, Object.keys(told), told.exitCode], [exitCode, '', ['error', 'exitCode'], exitCode])
  }
  assert.match((await admin(folder, 'entry get 1 -- --json')).error, /^error: too many words/)
  rmSync(join(folder, 'journal.key'))
  assert.equal(JSON.parse((await admin(folder, 'user list --json')).error).exitCode, 3)
})
