/** What ends a compaction: a kill before each call of the system that it makes, and a stop. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { importEntries } from '../../src/store/extra-commands.ts'
import { checkState } from '../support/check.ts'
import { ADMIN, admin, initialized } from '../support/admin.ts'
import { fileStore } from '../support/compose.ts'
import { straceMissing } from '../support/outside.ts'
import { startProgram, until } from '../support/program.ts'
import { freshFolder } from '../support/service.ts'

const NAMES = ['journal.jsonl', 'journal.key']
const NO_STRACE = straceMissing()
/** How many run at once. */
const LANES = 2

/** A folder with entries of a few megabytes, most of them changed since. */
async function filled(t: TestContext, entries: number, chars: number): Promise<string> {
  const folder = await initialized(t)
  const store = await fileStore(folder)
  const rows = Array.from({ length: entries }, (_, n) => ({ password: `${n}${'x'.repeat(chars)}`, sistema: 's', usuario: 'u', status: 1 as const }))
  await importEntries(store, rows, null)
  for (let from = 0; from < entries; from += 10_000) {
    await Promise.all(rows.slice(from, from + 10_000).map((_, n) =>
      store.updateEntry(from + n + 1, { password: `now ${n} ${'y'.repeat(chars)}` }, null)))
  }
  await store.close()
  return folder
}

async function listOf(folder: string): Promise<string> {
  const store = await fileStore(folder)
  checkState(store.state)
  const list = Buffer.concat(store.list()!).toString()
  await store.close()
  return list
}

/** What is left: the old journal alone, or the new one and the old one as its archive. */
function assertOldOrNew(folder: string, old: Buffer, what: string): 'old' | 'new' {
  const journal = readFileSync(join(folder, 'journal.jsonl'))
  const names = readdirSync(folder).filter(name => !NAMES.includes(name) && !name.endsWith('.sock'))
  assert.equal(statSync(join(folder, 'journal.jsonl')).nlink, 1, what)
  if (journal.equals(old)) { assert.deepEqual(names, [], what); return 'old' }
  assert.equal(names.length, 1, `${what}: ${names}`)
  assert.ok(readFileSync(join(folder, names[0]!)).equals(old), what)
  return 'new'
}

/** Runs a compaction under strace, which kills it at its Nth call of a name on a file of the folder; gives its calls. */
function traced(folder: string, records: number, kill?: readonly [name: string, count: number]): Promise<string[]> {
  const log = `${folder}-calls`
  const paths = ['', '/journal.jsonl', '/journal.jsonl.1.part', `/journal-1-${records}.jsonl`].flatMap(name => ['-P', folder + name])
  const inject = kill === undefined ? [] : ['-e', `inject=${kill[0]}:signal=SIGKILL:when=${kill[1]}`]
  return new Promise(resolve => {
    execFile('strace', ['-o', log, ...paths, ...inject, process.execPath, ADMIN, 'journal', 'compact', '--data', folder],
      { timeout: 60_000 }, () => resolve(readFileSync(log, 'utf8').split('\n').filter(line => /^\w+\(/.test(line))))
  })
}

test('killed before any of its calls on the disk, a compaction leaves the old journal or the new one, whole', {
  skip: NO_STRACE
}, async t => {
  const origin = await filled(t, 100, 3_000)
  const old = readFileSync(join(origin, 'journal.jsonl'))
  const records = old.toString('latin1').split('\n').length - 1
  const list = await listOf(origin)
  const copy = (): string => {
    const folder = join(freshFolder(t), 'data')
    mkdirSync(folder, { mode: 0o700 })
    for (const name of NAMES) copyFileSync(join(origin, name), join(folder, name))
    return folder
  }
  const calls = await traced(copy(), records)
  const first = calls.findIndex(call => call.includes('.part') && call.includes('O_CREAT'))
  for (const name of ['link', 'fsync', 'rename']) assert.ok(calls.slice(first).some(call => call.startsWith(name)), name)
  assert.ok(first > 0 && calls.length - first >= 15, calls.join('\n'))
  const left = { old: 0, new: 0 }
  const names = calls.map(call => call.slice(0, call.indexOf('(')))
  let next = first
  const lane = async (): Promise<void> => {
    for (let n = next++; n < calls.length; n = next++) {
      const folder = copy()
      await traced(folder, records, [names[n]!, names.slice(0, n + 1).filter(name => name === names[n]).length])
      const what = `call ${n}: ${calls[n]}`
      assert.equal(await listOf(folder), list, what)
      left[assertOldOrNew(folder, old, what)]++
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  t.diagnostic(`${calls.length - first} of ${calls.length} calls; left: ${JSON.stringify(left)}`)
  assert.ok(left.old > 5 && left.new > 2, JSON.stringify(left))
})

test('a service that is stopped meanwhile ends its compaction at once, and keeps the old journal', async t => {
  const folder = await filled(t, 10_000, 200)
  const old = readFileSync(join(folder, 'journal.jsonl'))
  const program = await startProgram(t, { flags: { data: folder } })
  const ended = admin(folder, 'journal compact')
  await until('a part of the new journal', () => readdirSync(folder).some(name => /\.part$|^journal-/.test(name)))
  const begunMs = performance.now()
  assert.equal((await program.stop('SIGTERM')).code, 0)
  const stoppedMs = performance.now() - begunMs
  assert.ok(stoppedMs < 5_000, `${stoppedMs} ms`)
  await ended
  assertOldOrNew(folder, old, 'stopped')
})
