/** Every command that writes, on a full disk: what was not done, what goes on, what to do. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { PARTS } from '../../src/settings.ts'
import { admin, done } from '../support/admin.ts'
import { startProgram } from '../support/program.ts'
import { freshFolder } from '../support/service.ts'
import { mountMissing, smallDisk } from '../support/system.ts'

const FULL = 'error: the journal could not be written: ENOSPC; there is no room on the disk of JOURNAL, so nothing '
const RUN_AGAIN = 'make room, and run the command again'
const CHANGE = `${FULL}was changed; what is stored can still be read; ${RUN_AGAIN}`
const ACCESS = `${FULL}was changed; access goes on as it was: a running service answers whoever has a token; ` +
  `to end that at once, stop it; ${RUN_AGAIN}`
const SHOWS = `${FULL}is shown; ${RUN_AGAIN}, or copy the folder to another disk, and read it there (--data)`
const fileIs = (name: string, state: string): string =>
  `error: ${name}: ENOSPC; there is no room for it, and it ${state}; make some, and run the command again`
const STOP_FIRST = 'error: process PID has this journal: stop the service, '

/** The line on standard error; the second one beside a service, if it is another. FULL/ is a folder of that disk. */
const COMMANDS: readonly (readonly [words: string, line: string, served?: string])[] = [
  ['entry add --system s --user u --generate', CHANGE], ['entry edit 1 --generate', CHANGE],
  ['entry delete 1', CHANGE], ['entry restore 3', CHANGE], ['entry purge 1 --yes', CHANGE],
  ['entry get 1 --reveal', SHOWS], ['entry history 1 --reveal', SHOWS], ['journal show --reveal', SHOWS],
  ['export --output FULL/e.csv --yes', SHOWS], ['import ROWS', CHANGE],
  ['user add b@x --no-password', CHANGE], ['user add --file TEAM --passwords FULL/p.csv',
    fileIs('FULL/p.csv', 'was not made')],
  ['user edit a@x --name N', ACCESS], ['user password a@x --remove', ACCESS], ['user remove a@x', ACCESS],
  ['token issue a@x', CHANGE], ['token revoke --all a@x', ACCESS],
  ['user second-factor a@x --remove', 'a@x: nothing changed: there is no second factor'],
  ['journal backup FULL/b.jsonl', fileIs('FULL/b.jsonl', 'was not made')],
  ['journal salvage BACKUP --to FULL/s.jsonl', fileIs('FULL/s.jsonl', 'was not made')],
  ['journal compact --drop-history --yes', fileIs('JOURNAL', 'is as it was'), STOP_FIRST],
  ['key rewrite', fileIs('JOURNAL', 'is as it was'), STOP_FIRST],
  ['key rotate', fileIs('FULL/data/journal.key', 'is as it was')],
  ['journal rescue FULL/r.jsonl', 'error: no service has the lock of this folder',
    'error: the journal is whole: journal backup FILE copies it'],
  ['journal restore BACKUP', 'error: JOURNAL holds a journal; move it away first',
    'error: the lock of the data folder cannot be had: '],
  ['init', 'journal JOURNAL (found, ']
]
const READS = ['audit', 'entry list', 'journal verify', 'key list', 'token list', 'user list']
const ON_ETCD = ['journal copy', 'journal close', 'journal reopen', 'journal remove']

test('the table has every command that writes', async () => {
  const commands = (await Promise.all(PARTS.map(part => part.commands?.() ?? []))).flat().map(({ name }) => name)
  const left = commands.filter(name => !COMMANDS.some(([words]) => `${words} `.startsWith(`${name} `)))
  assert.deepEqual(left.sort(), [...READS, ...ON_ETCD].sort())
})

for (const isServed of [false, true]) test(
  `on a full disk each command changes nothing, and says that, ${isServed ? 'beside a service' : 'alone'}`, {
  skip: mountMissing()
}, async t => {
  const disk = smallDisk(t, '256k')
  const [folder, place] = [join(disk, 'data'), freshFolder(t)]
  const journal = join(folder, 'journal.jsonl')
  const names = {
    JOURNAL: journal, FULL: disk, ROWS: join(place, 'rows.csv'), TEAM: join(place, 'team.csv'),
    BACKUP: join(place, 'backup.jsonl')
  }
  const named = (text: string): string =>
    text.replace(/JOURNAL|FULL|ROWS|TEAM|BACKUP/g, name => names[name as keyof typeof names])
  writeFileSync(names.ROWS, 'name,url,username,password\ns,,u,p\n')
  writeFileSync(names.TEAM, 'email,name,groups,abilities\nc@x,,,\n')
  await done(folder, 'init')
  for (const n of [1, 2, 3]) await done(folder, `entry add --system s${n} --user u --generate`)
  await done(folder, 'entry delete 3')
  await done(folder, 'user add a@x --no-password')
  const token = (await done(folder, 'token issue a@x')).trim()
  await done(folder, `journal backup ${names.BACKUP}`)
  const program = isServed ? await startProgram(t, { flags: { data: folder, auth: 'bearer' } }) : undefined
  spawnSync('dd', ['if=/dev/zero', `of=${join(disk, 'filler')}`, 'bs=4096'], { stdio: 'ignore' })
  // The rest of the journal's last page is room, too: also for the shortest record.
  for (const words of [['entry edit 1 --generate'], ['entry delete 2', 'entry restore 2']])
    for (let n = 0; (await admin(folder, words[n % words.length]!)).code === 0; n++) assert.ok(n < 100)

  const before = [readFileSync(journal, 'latin1'), readdirSync(disk), readFileSync(join(folder, 'journal.key'))]
  for (const [words, alone, served = alone] of COMMANDS) {
    const { out, error } = await admin(folder, named(words))
    const line = named(isServed ? served : alone).replace('PID', String(program?.pid))
    assert.ok(`${error}${out}`.split('\n').some(one => one.startsWith(line)), `${words}: ${error}${out}`)
    assert.deepEqual([readFileSync(journal, 'latin1'), readdirSync(disk), readFileSync(join(folder, 'journal.key'))],
      before, words)
  }
  if (program === undefined) return
  const headers = { Authorization: `Bearer ${token}` }
  assert.equal((await fetch(`${program.url}/api/getPassword/99`, { headers })).status, 404, 'the token is answered')
})
