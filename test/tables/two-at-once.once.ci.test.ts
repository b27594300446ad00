/**
 * Commands of the operator two at a time, beside clients that change entries: each is done, or refused by a sentence;
 * no change that was acknowledged is lost, the journal is whole, and a restart shows what was served. And a command
 * that waits for a person keeps no service from its start.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { PARTS } from '../../src/settings.ts'
import { ANA, call, PASSWORD, startProtected, tokenOf } from '../support/accounts.ts'
import { admin, atTerminal, done } from '../support/admin.ts'
import { NO_PYTHON } from '../support/programs.ts'
import { freshFolder, startService, within } from '../support/service.ts'

const FLAGS = { auth: 'bearer', 'login-limit': '0', 'extra-routes': 'on' }

/** `HOME` is a folder of the test's own, `N` the number of the call. */
interface Row {
  readonly words: string
  /** It may be refused, since the other command has done it, or does it just now. */
  readonly mayFail?: boolean
  /** Beside it every other command is tried: it stops all others, or takes what they need. */
  readonly isMet?: boolean
}
const COMMANDS: { readonly [name: string]: Row } = {
  'key rotate': { words: '', mayFail: true, isMet: true },
  'key rewrite': { words: '', mayFail: true },
  'journal compact': { words: '', mayFail: true },
  'journal rescue': { words: 'HOME/rescued-N.jsonl', mayFail: true },
  import: { words: 'HOME/import.jsonl --keep-duplicates', mayFail: true },
  export: { words: '--output HOME/export-N.jsonl --yes' },
  audit: { words: '2', mayFail: true }, // its exit code says what was not recorded
  'entry list': { words: '' },
  'entry get': { words: '2 --reveal' },
  'entry add': { words: '--system two-N --user u --generate' },
  'entry edit': { words: '2 --url https://N.example --generate' },
  'entry delete': { words: '2' },
  'entry restore': { words: '2' },
  'entry purge': { words: '1 --yes', mayFail: true },
  'entry history': { words: '2 --reveal', mayFail: true },
  'user add': { words: 'user-N@example.org --password-stdin' },
  'user edit': { words: 'ana@example.org --name AN' },
  'user list': { words: '' },
  'user password': { words: 'bea@example.org --password-stdin' },
  'user second-factor': { words: 'ana@example.org --remove', mayFail: true },
  'user remove': { words: 'user-N@example.org', mayFail: true },
  'token issue': { words: 'ana@example.org' },
  'token list': { words: '' },
  'token revoke': { words: '--all bea@example.org' },
  'journal verify': { words: '', mayFail: true },
  'journal show': { words: '--reveal', mayFail: true },
  'journal backup': { words: 'HOME/backup-N.jsonl', mayFail: true },
  'key list': { words: '', mayFail: true },
  init: { words: '' }
}
/** They touch no journal, or no journal that a service has. */
const NOT_HERE = ['journal restore', 'journal salvage', 'journal copy', 'journal close', 'journal reopen',
  'journal remove']

test('the table knows every command', async () => {
  const commands = (await Promise.all(PARTS.map(part => part.commands?.() ?? []))).flat().map(({ name }) => name)
  const known = [...Object.keys(COMMANDS).filter(name => !name.includes(' --')), ...NOT_HERE]
  assert.deepEqual(commands.sort(), known.sort())
})

test('each command beside each that stops others, and itself, is done or says why not; nothing is lost', async t => {
  const home = freshFolder(t)
  writeFileSync(join(home, 'import.jsonl'), `${JSON.stringify({ password: 'i', sistema: 's', usuario: 'i',
    status: 1 })}\n`)
  const started = await startProtected(t, FLAGS, { [ANA]: ['*'], 'bea@example.org': ['*'] })
  const { url, folder } = started
  const token = await tokenOf(started)
  const acknowledged = new Set<string>()
  let serial = 0
  const create = async (): Promise<void> => {
    const usuario = `change ${++serial}`
    const { status } = await call(t, url, 'POST', '/api/createPassword',
      { token, body: { password: 'p', sistema: 's', usuario } })
    // A change that waits too long for a rewriting is withdrawn.
    assert.ok(status === 200 || status === 503, `a change is answered ${status}`)
    if (status === 200) acknowledged.add(usuario)
  }
  for (let n = 0; n < 3; n++) await create()
  acknowledged.delete('change 1') // which is purged
  let counted = 0
  const run = async (name: string): Promise<string | undefined> => {
    const words = `${name} ${COMMANDS[name]!.words}`.trim().replaceAll('N', String(++counted)).replace('HOME', home)
    const { code, error } = await admin(folder, words, PASSWORD)
    if (code === 0) return undefined
    assert.equal(COMMANDS[name]!.mayFail, true, `${words} ends with ${code}: ${error}`)
    if (name !== 'audit') assert.match(error, /^([^\n]+\n)*error: [^\n]{10,}\n$/, words)
    return words
  }
  const names = Object.keys(COMMANDS)
  const met = names.filter(name => COMMANDS[name]!.isMet === true)
  for (const [i, name] of names.entries()) {
    for (const other of [...met.filter(one => names.indexOf(one) >= i || COMMANDS[name]!.isMet !== true),
      ...met.includes(name) ? [] : [name]]) {
      await Promise.all([run(name), run(other), create(), create()])
    }
    await done(folder, 'journal verify')
  }
  const list = async (at: string): Promise<string> => (await call(t, at, 'GET', '/api/listPassword', { token })).text
  const shown = await list(url)
  const users = new Map<string, number>()
  for (const { usuario } of JSON.parse(shown)) users.set(usuario, (users.get(usuario) ?? 0) + 1)
  assert.deepEqual([...acknowledged].filter(usuario => users.get(usuario) !== 1), [],
    'each that was acknowledged is there once')
  await started.service.close()
  await within(async scope => {
    const again = await startService(scope, { ...FLAGS, data: folder })
    assert.equal(await list(again.url), shown)
  })
})

/** Commands that wait for a person, and what they say then. */
const WAITS: readonly (readonly [words: string, said: string])[] = [
  ['entry get 1 --clip', 'in the clipboard'], ['entry add --system a --user b --generate --clip', 'in the clipboard'],
  ['entry edit 1 --generate --clip', 'in the clipboard'],
  ['entry add --system a --user b', 'password of the new entry: '], ['entry edit 1', 'password of entry 1 '],
  ['entry purge 1', 'Type yes'], ['user add bea@example.org', 'or more): '],
  ['user password ana@example.org', 'or more): '],
  ['export --output HOME/export.jsonl', 'Type yes'], ['journal compact --drop-history', 'Type yes']
]

describe('a service starts while a command waits for a person', { concurrency: 3 }, () => {
  for (const [words, said] of WAITS) {
    test(words, { skip: NO_PYTHON }, async t => {
      const home = freshFolder(t)
      const folder = join(home, 'data')
      await done(folder, 'init')
      await done(folder, 'entry add --system s --user u --password-stdin', 'p')
      await done(folder, 'user add ana@example.org --password-stdin', PASSWORD)
      let status = 0
      await atTerminal(folder, words.replace('HOME', home), [[said, 'MEANWHILE'], ['', '\x03']], undefined, () =>
        within(async scope => {
        const { url } = await startService(scope, { data: folder })
        status = (await call(scope, url, 'POST', '/api/createPassword',
          { body: { password: 'p', sistema: 's', usuario: 'u' } })).status
      }))
      assert.equal(status, 200)
    })
  }
})
