/** What each command says the second time: what it has established, and not what it was asked for. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { codeAt, otpIn, stepAt } from '../../src/accounts/totp.ts'
import { PARTS } from '../../src/settings.ts'
import { ADMIN, admin, done, initialized } from '../support/admin.ts'
import { freshFolder, startService } from '../support/service.ts'

const PASSWORD = 'correct horse 77 stable\n'
const AS_IT_WAS = /^entry 1 \(git, ana\) nothing changed: it is so already\n$/
const NO_ID = /^error: an id is a positive integer without leading zeros; entry list and entry list --deleted show /
const SAME_USER = /^a@x: nothing changed: the user is as given already\n/

interface Act {
  readonly words: string
  readonly input?: string
  readonly first: RegExp
  readonly second: RegExp
  /** Of the second time: 0 unless given. */
  readonly code?: number
  /** The second time does it once more. */
  readonly again?: true
}

/** In their order. NEW is a name that is free, OLD a copy of the journal. */
const ACTS: readonly Act[] = [
  { words: 'init', first: /found, 1 record/, second: /found, 1 record/ },
  { words: 'entry add --system git --user ana --password-stdin', input: PASSWORD,
    first: /^entry 1 \(git, ana\) created\n$/, second: /^entry 2 \(git, ana\) created\n$/, again: true },
  { words: 'entry purge 2 --yes', first: /^entry 2 \(git, ana\) permanently deleted\n/, second: /^error: no entry 2\n$/,
    code: 1 },
  { words: 'entry purge git', first: NO_ID, second: NO_ID, code: 2 },
  { words: 'entry edit git --password-stdin', input: 'another one', first: /^entry 1 \(git, ana\) changed\n$/,
    second: AS_IT_WAS },
  { words: 'entry edit 1 --group Web', first: / changed\n$/, second: AS_IT_WAS },
  { words: 'entry edit 1 --group web --user ana', first: AS_IT_WAS, second: AS_IT_WAS },
  { words: 'entry edit 1 --group=', first: / changed\n$/, second: AS_IT_WAS },
  { words: 'entry edit 1 --notes-stdin', input: '', first: AS_IT_WAS, second: AS_IT_WAS },
  { words: 'entry delete 1', first: / deleted\n$/, second: AS_IT_WAS },
  { words: 'entry restore git', first: / restored\n$/, second: /^error: no deleted entry has a system of this name/,
    code: 1 },
  { words: 'entry restore 1', first: AS_IT_WAS, second: AS_IT_WAS },
  { words: 'user add a@x --password-stdin', input: PASSWORD, first: /^a@x: added as user 1/,
    second: /^error: there is a user with this address already\n$/, code: 1 },
  { words: 'user edit a@x --name Ana --groups Web', first: /^a@x: changed\n/, second: SAME_USER },
  { words: 'user edit A@X --groups web --abilities *', first: /^A@X: nothing changed: /,
    second: /: nothing changed: / },
  { words: 'user edit a@x --all-groups', first: /^a@x: changed\n/, second: SAME_USER },
  { words: 'user password a@x --password-stdin', input: PASSWORD, first: /^a@x: password set, all tokens revoked\n$/,
    second: /^a@x: password set, all tokens revoked\n$/, again: true },
  { words: 'user second-factor a@x --remove', first: /^a@x: nothing changed: there is no second factor\n$/,
    second: /^a@x: nothing changed: there is no second factor\n$/ },
  { words: 'token issue a@x', first: /^pes_/, second: /^pes_/, again: true },
  { words: 'token revoke 0123456789ab', first: /^error: there is no token with this id\n$/,
    second: /no token/, code: 1 },
  { words: 'token revoke --all a@x', first: /^a@x: all tokens revoked\n$/,
    second: /^a@x: nothing changed: there is no token\n$/ },
  { words: 'user password a@x --remove', first: /^a@x: has no password now, all tokens revoked\n$/,
    second: /^a@x: nothing changed: there is no password and no token\n$/ },
  { words: 'user remove a@x', first: /^a@x: removed, all tokens revoked\n/, second: /^error: there is no user with /,
    code: 1 },
  { words: 'import ROWS', first: /^made +1, id 3$/m, second: /^duplicates +1 \(line 2\)\nmade +0$/m },
  { words: 'export --output NEW.csv --yes', first: /NEW\.csv: 2 entries as csv/, second: /NEW\.csv exists already\n$/,
    code: 1 },
  { words: 'journal backup NEW.jsonl', first: /^\d+ records, head /, second: /exists already; --timestamp/, code: 1 },
  { words: 'journal salvage OLD --to NEW.2', first: / 0 lost$/m, second: /NEW\.2 exists already\n$/, code: 1 },
  { words: `journal verify --head ${'0'.repeat(64)}`, first: /^error: --head is the head of an empty journal/,
    second: /proves nothing of this one/, code: 2 },
  { words: 'key rotate', first: / seals from now on$/m, second: / seals from now on$/m, again: true }
]
/** They need a service that is stopped, or one that has failed, or none that is there, or etcd. */
const STOPPED: readonly Act[] = [
  { words: 'journal restore OLD', first: /holds a journal; move it away first/, second: /holds a journal/, code: 1 },
  { words: 'journal rescue NEW.3', first: /^error: no service has the lock/, second: /nobody to ask/, code: 1 },
  { words: 'key rewrite', first: /^head /m, second: /^head /m, again: true },
  { words: 'journal compact', first: /^archive .+archive-1-\d+\.jsonl$/m, second: /^archive .+\.jsonl$/m, again: true }
]
const READS = ['entry list', 'entry get', 'entry history', 'user list', 'token list', 'audit',
  'journal show', 'key list']
const ON_ETCD = ['journal copy', 'journal close', 'journal reopen', 'journal remove']

test('the table has every command that changes something', async () => {
  const commands = (await Promise.all(PARTS.map(part => part.commands?.() ?? []))).flat().map(({ name }) => name)
  const words = [...ACTS, ...STOPPED].map(({ words }) => `${words} `)
  const left = commands.filter(name => !words.some(one => one.startsWith(`${name} `)))
  assert.deepEqual(left.sort(), [...READS, ...ON_ETCD].sort())
})

for (const isServed of [false, true]) test(
  `each act says the second time what it established, ${isServed ? 'beside a service' : 'without one'}`, async t => {
  const folder = await initialized(t)
  const [journal, place] = [join(folder, 'journal.jsonl'), freshFolder(t)]
  const names = { NEW: join(place, 'NEW'), OLD: join(place, 'old.jsonl'), ROWS: join(place, 'rows.csv') }
  writeFileSync(names.ROWS, 'name,url,username,password\ns,,u,p\n')
  if (isServed) await startService(t, { data: folder })
  for (const { words, input, first, second, code = 0, again = false } of isServed ? ACTS : [...ACTS, ...STOPPED]) {
    copyFileSync(journal, names.OLD)
    const typed = words.replace(/NEW|OLD|ROWS/g, name => names[name as keyof typeof names])
    const said = await admin(folder, typed, input)
    assert.match(said.out || said.error, first, `${words}: ${said.out}${said.error}`)
    const bytes = statSync(journal).size
    const more = await admin(folder, typed, input)
    assert.match(more.out || more.error, second, words)
    assert.equal(more.code, code, words)
    if (!again) assert.equal(statSync(journal).size, bytes, `${words} leaves no record`)
  }
})

/** As a program that is given its first code by a program. */
async function givenFactor(folder: string): Promise<
  { readonly out: string, readonly error: string, readonly held: boolean }> {
  const child = spawn(process.execPath, [ADMIN, 'user', 'second-factor', 'a@x'], { env: { DATA_DIR: folder } })
  let [out, error, held] = ['', '', false]
  child.stdout.setEncoding('utf8').on('data', text => { out += text })
  child.stderr.setEncoding('utf8').on('data', text => {
    const secret = /^address .*secret=(\w+)/m.exec(error += text)?.[1]
    if (secret === undefined || !child.stdin.writable) return
    held ||= readdirSync(folder).some(name => name.startsWith('held-'))
    const otp = otpIn(secret)!
    child.stdin.end(`${codeAt(otp, stepAt(otp, Date.now()))}\n`)
  })
  assert.deepEqual(await once(child, 'close'), [0, null], error)
  return { out, error, held }
}

test('a second factor in the place of another is called so, before its code is asked for and behind it', async t => {
  const folder = await initialized(t)
  await done(folder, 'user add a@x --no-password')
  const [first, second] = [await givenFactor(folder), await givenFactor(folder)]
  assert.match(first.out, /^a@x: second factor given; logins ask for its codes alone/)
  assert.doesNotMatch(first.error, /replaces/)
  assert.match(second.error, /^a@x has a second factor already: the new one replaces it$/m)
  assert.match(second.out, /^a@x: second factor replaced; /)
  assert.deepEqual([first.held, second.held], [false, false], 'a service may start while a code is waited for')
  assert.equal(await done(folder, 'user second-factor a@x --remove'), 'a@x: second factor removed\n')
})

test('with --json `done` says it', async t => {
  const folder = await initialized(t)
  await done(folder, 'user add a@x --no-password')
  await done(folder, 'entry add --system git --user ana --generate')
  for (const words of ['entry edit 1 --user ana', 'entry restore 1', 'user edit a@x --name a@x',
    'token revoke --all a@x', 'user second-factor a@x --remove', 'user password a@x --remove']) {
    const { done: said, isChanged } = JSON.parse(await done(folder, `${words} --json`))
    assert.deepEqual([said, isChanged], ['nothing changed', undefined], words)
  }
})
