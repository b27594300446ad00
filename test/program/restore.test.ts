/** A restore, beside whatever else may happen to the folder meanwhile. */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, readdirSync, readlinkSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { ADMIN, done, refused } from '../support/admin.ts'
import { launchProgram, socketsIn, startProgram } from '../support/program.ts'
import { freshFolder, send } from '../support/service.ts'
import { fileStore } from '../support/compose.ts'

const JOURNAL = 'journal.jsonl'
const ENTRIES = 120

/** A folder with a key and an empty journal, and a copy of what was in it, which takes a while to read. */
async function emptied(t: TestContext): Promise<{ readonly folder: string, readonly copy: string }> {
  const folder = freshFolder(t)
  const store = await fileStore(folder)
  const password = 'x'.repeat(100_000)
  for (let n = 0; n < ENTRIES; n++) await store.createEntry({ password, sistema: 's', usuario: 'u' }, null)
  await store.close()
  const copy = join(freshFolder(t), 'copy.jsonl')
  copyFileSync(join(folder, JOURNAL), copy)
  writeFileSync(join(folder, JOURNAL), '')
  return { folder, copy }
}

interface Restoring {
  readonly child: ChildProcess
  /** Its exit code and what it has said. */
  readonly ended: Promise<readonly [number | null, string]>
}

function restoring(t: TestContext, folder: string, copy: string): Restoring {
  const child = spawn(process.execPath, [ADMIN, 'journal', 'restore', copy], { env: { DATA_DIR: folder } })
  t.after(() => { child.kill('SIGKILL') })
  let error = ''
  child.stderr.setEncoding('utf8').on('data', text => { error += text })
  return { child, ended: once(child, 'close').then(([code]) => [code, error] as const) }
}

/** Waits until a process has a file open, and stops it there. */
async function stopAtReading({ child, ended }: Restoring, file: string): Promise<void> {
  let isOver = false
  void ended.then(() => { isOver = true })
  const fds = `/proc/${child.pid}/fd`
  const reads = (): boolean => readdirSync(fds).some(fd => {
    try {
      return readlinkSync(join(fds, fd)) === file
    } catch {
      return false // closed meanwhile
    }
  })
  while (!isOver && !reads()) await new Promise(setImmediate)
  child.kill('SIGSTOP')
  assert.equal(isOver, false, 'it ended before it could be stopped')
}

const NO_PROC = !existsSync('/proc/self/fd') && 'there is no /proc'

test('a service that is started while a journal is restored is refused, and the copy is restored', { skip: NO_PROC }, async t => {
  const { folder, copy } = await emptied(t)
  const restore = restoring(t, folder, copy)
  await stopAtReading(restore, copy)
  const service = launchProgram(t, { flags: { data: folder, page: 'off' } })
  const acknowledged: string[] = []
  if (await service.ready) {
    const url = /^address +(\S+)$/m.exec(service.stdout)![1]!
    const made = await send(url, 'POST', '/api/createPassword', { password: 'p', sistema: 'mine', usuario: 'u' })
    if (made.status === 200) acknowledged.push('mine')
    await service.stop()
  }
  restore.child.kill('SIGCONT')
  const [code, error] = await restore.ended
  const listed = JSON.parse(await done(folder, 'entry list --json')).map(({ sistema }: { sistema: string }) => sistema)
  assert.deepEqual(acknowledged.filter(sistema => !listed.includes(sistema)), [], 'what was acknowledged is there')
  assert.match(service.stderr, new RegExp(`belongs to process ${restore.child.pid}`))
  assert.deepEqual([code, error, listed.length], [0, '', ENTRIES])
})

test('a restore replaces no journal that was written while it read, nor one that has appeared', { skip: NO_PROC }, async t => {
  const { folder, copy } = await emptied(t)
  for (const begin of ['empty', 'missing']) {
    if (begin === 'missing') renameSync(join(folder, JOURNAL), join(freshFolder(t), JOURNAL))
    else writeFileSync(join(folder, JOURNAL), '')
    const restore = restoring(t, folder, copy)
    await stopAtReading(restore, copy)
    writeFileSync(join(folder, JOURNAL), 'what another program wrote')
    restore.child.kill('SIGCONT')
    const [code, error] = await restore.ended
    assert.equal(code, 1)
    assert.match(error, /^error: .*journal\.jsonl (was changed by another program, and was left as it is|exists already)\n$/)
    assert.deepEqual(readdirSync(folder).sort(), [JOURNAL, 'journal.key'])
  }
})

test('a restore that was killed at any moment leaves no journal or the whole one, and can be repeated', async t => {
  const { folder, copy } = await emptied(t)
  for (let round = 0; round < 12; round++) {
    const { child, ended } = restoring(t, folder, copy)
    await new Promise(resolve => setTimeout(resolve, 100 + Math.random() * 300))
    child.kill('SIGKILL')
    await ended
    const { stderr } = await startOnce(t, folder)
    assert.doesNotMatch(stderr, /journal/)
    const [line] = (await done(folder, 'journal verify')).split('\n')
    assert.ok(line === 'records 0' || line === `records ${ENTRIES}`, line)
    assert.deepEqual(socketsIn(folder), [])
    writeFileSync(join(folder, JOURNAL), '')
  }
  await done(folder, `journal restore ${copy}`)
  assert.match(await done(folder, 'journal verify'), new RegExp(`^records ${ENTRIES}\n`))
})

async function startOnce(t: TestContext, folder: string): Promise<{ readonly stderr: string }> {
  const service = await startProgram(t, { flags: { data: folder, page: 'off' } })
  return service.stop()
}

test('a restore replaces the empty journal that init has made, and none with a record besides', async t => {
  const { folder, copy } = await emptied(t)
  await done(folder, 'init')
  assert.match(await done(folder, 'journal verify'), /^records 1\n/)
  await done(folder, `journal restore ${copy}`)
  assert.match(await done(folder, 'journal verify'), new RegExp(`^records ${ENTRIES}\n`))
  await refused(folder, `journal restore ${copy}`, 1, /holds a journal; move it away first/)
})

test('while a service runs, a restore is refused with a line that names its process', async t => {
  const service = await startProgram(t, { flags: { page: 'off' } })
  const copy = join(freshFolder(t), 'copy.jsonl')
  await done(service.folder, `journal backup ${copy}`)
  await refused(service.folder, `journal restore ${copy}`, 1, new RegExp(`process ${service.pid}; if that is the service, stop it first`))
  await refused(join(service.folder, 'nowhere'), `journal restore ${copy} --key-file ${service.folder}/journal.key`, 1, /there is no folder/)
})
