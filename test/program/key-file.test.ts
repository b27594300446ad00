/**
 * The key file is put back, lost or changed while the service runs: nothing is sealed with a key that no file holds.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, lstatSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { admin, done, initialized } from '../support/admin.ts'
import { runProgram, startProgram } from '../support/program.ts'
import { freshFolder, send } from '../support/service.ts'

const FIELDS = { password: 'p', sistema: 's', usuario: 'u' }

test('an older key file that is put back refuses changes and rotation until the newer one is back', async t => {
  const folder = await initialized(t)
  const path = join(folder, 'journal.key')
  const older = readFileSync(path)
  const program = await startProgram(t, { flags: { data: folder } })
  const create = async (): Promise<number> => (await send(program.url, 'POST', '/api/createPassword', FIELDS)).status
  assert.equal(await create(), 200)
  await done(folder, 'key rotate')
  assert.equal(await create(), 200)
  const newer = readFileSync(path)
  for (const lose of [() => writeFileSync(path, older), () => rmSync(path), () =>
    writeFileSync(path, `${'ab'.repeat(32)}\n`)]) {
    lose()
    assert.equal(await create(), 500)
    const health = await send(program.url, 'GET', '/healthz')
    assert.deepEqual([health.status, health.json.message], [503, 'The journal takes no writes at the moment.'])
    for (const words of ['key rotate', 'entry restore 1', 'entry delete 1']) {
      const { code, error } = await admin(folder, words)
      assert.notEqual(code, 0, words)
      assert.match(error, /no longer holds|there is no key file|key file is not valid/, words)
    }
    assert.equal((await send(program.url, 'GET', '/api/getPassword/1')).status, 200, 'reads go on')
    assert.match(program.stderr,
      /^warning: the journal takes no changes at the moment: [^\n]*journal\.key no longer holds [^\n]*put back/m)
    writeFileSync(path, newer)
    assert.equal(await create(), 200)
    assert.equal((await send(program.url, 'GET', '/healthz')).status, 200)
  }
  await done(folder, 'key rotate')
  assert.equal(await create(), 200)
  await program.kill()
  const again = await startProgram(t, { flags: { data: folder } })
  assert.equal((await send(again.url, 'GET', '/api/listPassword')).json.length, 6)
})

test('after key rewrite the old key still opens an older backup, and nothing of the journal', async t => {
  const folder = await initialized(t)
  const path = join(folder, 'journal.key')
  const copy = join(freshFolder(t), 'copy.jsonl')
  await done(folder, 'entry add --system s --user u --password-stdin', 'p')
  await done(folder, `journal backup ${copy}`)
  const old = readFileSync(path)
  await done(folder, 'key rotate')
  await done(folder, 'key rewrite')
  assert.match(await done(folder, `journal verify ${copy}`), /^records 2\n/)
  const both = readFileSync(path, 'latin1')
  writeFileSync(path, old)
  assert.match(await done(folder, `journal verify ${copy}`), /^records 2\n/)
  assert.equal((await admin(folder, 'journal verify')).code, 3)
  writeFileSync(path, both.split('\n').slice(1).join('\n'))
  assert.match(await done(folder, 'journal verify'), /^entries 1 \(1 active\)$/m)
  assert.equal((await admin(folder, `journal verify ${copy}`)).code, 3)
})

test('a link to the key file may be moved on to a copy, and stays a link when a key is added there', async t => {
  const folder = await initialized(t)
  const at = (name: string): string => join(folder, name)
  cpSync(at('journal.key'), at('1/journal.key'))
  rmSync(at('journal.key'))
  symlinkSync('1', at('now'))
  symlinkSync('now/journal.key', at('journal.key'))
  const program = await startProgram(t, { flags: { data: folder } })
  const create = async (): Promise<number> => (await send(program.url, 'POST', '/api/createPassword', FIELDS)).status
  assert.equal(await create(), 200)
  cpSync(at('1'), at('2'), { recursive: true })
  symlinkSync('2', at('next'))
  renameSync(at('next'), at('now'))
  rmSync(at('1'), { recursive: true })
  assert.equal(await create(), 200)
  await done(folder, 'key rotate')
  assert.equal(await create(), 200)
  assert.equal(readFileSync(at('2/journal.key'), 'latin1').trimEnd().split('\n').length, 2)
  assert.ok(lstatSync(at('journal.key')).isSymbolicLink())
  await program.stop()
  await startProgram(t, { flags: { data: folder } })
})

test('a key that no line needs any more may leave the file while the service runs', async t => {
  const folder = await initialized(t)
  const path = join(folder, 'journal.key')
  await done(folder, 'key rotate')
  await done(folder, 'key rewrite')
  const program = await startProgram(t, { flags: { data: folder } })
  const create = async (): Promise<number> => (await send(program.url, 'POST', '/api/createPassword', FIELDS)).status
  writeFileSync(path, `${readFileSync(path, 'latin1').trimEnd().split('\n').at(-1)}\n`)
  assert.equal(await create(), 200)
  await done(folder, 'key rotate')
  assert.equal(await create(), 200)
  await program.stop()
  const again = await startProgram(t, { flags: { data: folder } })
  assert.equal((await send(again.url, 'GET', '/api/listPassword')).json.length, 2)
})

test('a pipe as the key file is refused at once: it has no key that could be read again', async t => {
  const folder = await initialized(t)
  const path = join(folder, 'journal.key')
  rmSync(path)
  execFileSync('mkfifo', [path])
  const { code, stderr } = await runProgram(t, { flags: { data: folder } })
  assert.equal(code, 1)
  assert.match(stderr, /journal\.key, line 1: a key is 64 hexadecimal digits/)
})
