/** An entry that was purged is as unknown, wherever it could be seen. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { admin, atTerminal, done, initialized, refused } from '../support/admin.ts'
import { startProgram } from '../support/program.ts'
import { NO_PYTHON } from '../support/programs.ts'
import { send } from '../support/service.ts'

const UNKNOWN = { message: 'contraseña no encontrada', status: 404 }

test('a purged entry is unknown to every operation and command, and stays so after a restart', async t => {
  const folder = await initialized(t)
  const flags = { 'data': folder, 'extra-routes': 'on' }
  let program = await startProgram(t, { flags })
  const create = (password: string) =>
    send(program.url, 'POST', '/api/createPassword', { password, sistema: 's', usuario: 'u' })
  for (const password of ['first', 'SECRET-1', 'SECRET-2']) await create(password)
  await send(program.url, 'POST', '/api/updatePassword/2', { password: 'SECRET-3' })
  await send(program.url, 'POST', '/api/deletePassword/3')
  for (const id of [2, 3]) assert.equal(await done(folder, `entry purge ${id} --yes`),
    `entry ${id} (s, u) permanently deleted
reads until now were not recorded: others may know the password
its old values leave the file with: journal compact --drop-history\n`)
  for (const isRestarted of [false, true]) {
    if (isRestarted) {
      await program.stop()
      program = await startProgram(t, { flags })
      assert.match(program.stdout, / 1 entry \(1 active\)/)
    }
    const { url } = program
    for (const id of [2, 3]) {
      for (const [method, path, body] of [
        ['GET', 'getPassword'], ['POST', 'updatePassword', { password: 'x' }], ['POST', 'deletePassword'],
        ['POST', 'restorePassword'], ['GET', 'historyPassword']
      ] as const) assert.deepEqual((await send(url, method, `/api/${path}/${id}`, body)).json, UNKNOWN, `${path}/${id}`)
    }
    for (const words of isRestarted ? [] : ['get 2', 'edit 2 --user x', 'delete 2', 'history 2 --reveal', 'restore 2',
      'purge 2 --yes']) {
      const { code, out, error } = await admin(folder, `entry ${words}`)
      assert.deepEqual([code, out, error.split('\n').at(-2)], [1, '', `error: no entry ${words.split(' ')[1]}`], words)
    }
    assert.deepEqual((await send(url, 'GET', '/api/listPassword')).json.map(({ id }: { id: number }) => id), [1])
    assert.deepEqual((await send(url, 'GET', '/api/deletedPasswords')).json.passwords, [])
    const shown = await (await fetch(`${url}/metrics`)).text()
    assert.match(shown, /\{status="active"\} 1\n[^\n]*\{status="deleted"\} 0\n/)
    for (const words of ['export --output - --yes', 'entry list']) {
      assert.doesNotMatch(await done(folder, words), /SECRET|^[23] /m)
    }
  }
  const purges = (await done(folder, 'journal show')).split('\n').filter(line => line.includes('entry.purged'))
  assert.deepEqual(purges.map(line => line.slice(line.indexOf('Z ') + 2)),
    ['operator entry.purged {"id":2,"operator":""}', 'operator entry.purged {"id":3,"operator":""}'])
})

test('a purge asks first, also where no service runs, and a refused one changes nothing', {
  skip: NO_PYTHON
}, async t => {
  const folder = await initialized(t)
  await done(folder, 'entry add --system s --user u\u001b[2J\u202eB --password-stdin', 'SECRET\n')
  const before = readFileSync(join(folder, 'journal.jsonl'))
  await refused(folder, 'entry purge 1', 2, /no terminal .* --yes/)
  await refused(folder, 'entry purge 2 --yes', 1, /no entry \d/)
  await refused(folder, 'entry purge x --yes', 2, /positive integer without leading zeros/)
  const { code, seen } = await atTerminal(folder, 'entry purge 1', [['Type yes', 'no']])
  assert.deepEqual([code, seen.includes('cancelled')], [1, true], seen)
  assert.ok(seen.includes('This permanently deletes entry 1 (s, u\\u001b[2J\\u202eB).'),
    'what moves the cursor is shown, and not obeyed')
  assert.deepEqual(readFileSync(join(folder, 'journal.jsonl')), before)
  assert.equal((await atTerminal(folder, 'entry purge 1', [['Type yes', 'yes']])).code, 0)
  await refused(folder, 'entry get 1', 1, /no entry \d/)
  assert.deepEqual(readdirSync(folder).sort(), ['journal.jsonl', 'journal.key'])
})
