/** The lock of a data folder: one process has it, whatever dies, fails or starts at the same time. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { createConnection, createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { Failure } from '../../src/errors.ts'
import { disk, type Files } from '../../src/journal/files.ts'
import { heldSockets, lockFolder, probe, type Lock } from '../../src/journal/lock.ts'
import { whicheverCallFails } from '../support/faulty-files.ts'
import { failure } from '../support/journal.ts'
import { freshFolder } from '../support/service.ts'

const hold = (folder: string, files: Files = disk): Promise<Lock> => lockFolder(files, folder)

/** A socket under a name behind which nobody is: what a killed process leaves. */
async function leaveDeadSocket(path: string): Promise<void> {
  const server = createServer().listen(`${path}.tmp`)
  await once(server, 'listening')
  renameSync(`${path}.tmp`, path)
  server.close()
  await once(server, 'close')
  assert.ok(statSync(path).isSocket())
}

test('a folder is made with mode 0700 and shows who holds it by a socket of mode 0600', async t => {
  const folder = join(freshFolder(t), 'a', 'b')
  const held = await hold(folder)
  t.after(() => held.release())
  assert.equal(statSync(folder).mode & 0o777, 0o700)
  const [socket = ''] = heldSockets(disk, folder)
  assert.equal(statSync(socket).mode & 0o777, 0o600)
  assert.match(socket, new RegExp(`held-${process.pid}-[0-9a-f]+\\.sock$`))
})

test('whoever comes second is refused, learns that its own process has the folder, and changes nothing', async t => {
  const folder = freshFolder(t)
  const held = await hold(folder)
  t.after(() => held.release())
  const before = readdirSync(folder)
  const asked: number[] = []
  const random = (below: number): number => { asked.push(below); return 0 }
  await assert.rejects(lockFolder(disk, folder, random),
    failure('folder-held', new RegExp(`${folder} belongs to this process, which has it open already$`)))
  assert.deepEqual(asked, [2 ** 47, 200, 2 ** 47, 200, 2 ** 47], 'three attempts, after waits of less than 200 ms')
  assert.deepEqual(readdirSync(folder), before)
  assert.equal(await probe(heldSockets(disk, folder)[0]!), true)
})

for (const [kind, name] of [['characters', 'x'.repeat(120)], ['bytes, not characters,', 'ñ'.repeat(40)]] as const) {
  test(`a path of too many ${kind} for a socket is a clear failure`, async t => {
    const base = freshFolder(t)
    const folder = join(base, name)
    mkdirSync(folder)
    await assert.rejects(hold(folder), failure('folder-unusable', /longer than 103 bytes, the most for a socket/))
    assert.deepEqual([readdirSync(folder), readdirSync(base).length], [[], 1])
  })
}

test('a folder in which no socket can be made is named, and why', async () => {
  await assert.rejects(hold('/proc/self'), failure('folder-unusable',
    /: \/proc\/self: E[A-Z]+(; it belongs to user \d+\b[^\n]*)?$/))
})

test('what has failed first is the reason, also where the socket cannot be removed either', async t => {
  const fails = (code: string) => (): never => { throw Object.assign(new Error(code), { code }) }
  const files = { ...disk, setMode: fails('EPERM'), remove: fails('EACCES') }
  await assert.rejects(hold(freshFolder(t), files), failure('folder-unusable', /: EPERM; .*chattr -a/))
})

for (const [errno, name] of [[-122, 'EDQUOT'], [-116, 'ESTALE']] as const) {
  test(`an error for which Node has no name is named ${name}, for a disk and for a socket`, async t => {
    for (const code of [`Unknown system error ${errno}`, 'UNKNOWN']) {
      const setMode = (): never => { throw Object.assign(new Error(code), { code, errno }) }
      await assert.rejects(hold(freshFolder(t), { ...disk, setMode }),
        failure('folder-unusable', new RegExp(`: ${name}\\b`)))
    }
  })
}


test('sockets that dead processes left are removed; other files stay', async t => {
  const folder = freshFolder(t)
  const dead = ['held-1-a.sock', 'held-2-b.sock'].map(name => join(folder, name))
  for (const path of dead) await leaveDeadSocket(path)
  const others = ['held-x.sock', 'held-1-a.sock.old', 'journal.jsonl']
  for (const name of others) writeFileSync(join(folder, name), '')
  const held = await hold(folder)
  t.after(() => held.release())
  for (const path of dead) assert.equal(existsSync(path), false)
  for (const name of others) assert.ok(existsSync(join(folder, name)))
})



for (const forGood of [false, true]) {
  test(`whichever file call fails ${forGood ? 'for good'
    : 'once'}, no socket stays open, and the next attempt gets the folder`,
    async t => {
      await whicheverCallFails({ code: 'EIO', forGood }, async ({ files }, begin) => {
        const folder = freshFolder(t)
        for (const name of ['held-1-a.sock', 'opening-1-a.sock']) await leaveDeadSocket(join(folder, name))
        begin()
        try {
          await (await hold(folder, files)).release()
        } catch (error) {
          if (error instanceof Failure) assert.equal(error.code, 'folder-unusable')
          else assert.match(String(error), /EIO/)
        }
        for (const name of readdirSync(folder)) assert.equal(await probe(join(folder, name)), false)
        await (await hold(folder)).release()
      })
    })
}

test('of many that try at once in one process exactly one wins, and the others learn why', async t => {
  const round = async (contenders: number): Promise<void> => {
    const folder = freshFolder(t)
    const results = await Promise.allSettled(Array.from({ length: contenders }, () => hold(folder)))
    const winners = results.filter(result => result.status === 'fulfilled')
    const reasons = results.flatMap(result => result.status === 'rejected' ? [String(result.reason)] : [])
    for (const { value } of winners) await value.release()
    assert.equal(winners.length, 1, `of ${contenders}: ${reasons.join('; ')}`)
    for (const reason of reasons) assert.match(reason, /the lock of the data folder cannot be had/)
    assert.deepEqual(readdirSync(folder), [])
  }
  for (const contenders of [2, 3, 5]) await Promise.all(Array.from({ length: 12 }, () => round(contenders)))
})

test('a lock is held as long as its socket is where it was put, and can be looked at', async t => {
  const folder = freshFolder(t)
  let fails = false
  const stat: Files['stat'] = path => {
    if (fails) throw Object.assign(new Error('EIO'), { code: 'EIO' })
    return disk.stat(path)
  }
  const held = await hold(folder, { ...disk, stat })
  assert.equal(held.isHeld(), true)
  fails = true
  assert.equal(held.isHeld(), false)
  fails = false
  renameSync(held.socket, `${held.socket}.away`)
  assert.equal(held.isHeld(), false)
  writeFileSync(held.socket, '')
  assert.equal(held.isHeld(), false, 'as of a backup that was put back')
  await held.release()
  assert.equal(held.isHeld(), false)
})

test('the lock answers 503 until something else serves it, which may be asked before the body is sent', async t => {
  const held = await hold(freshFolder(t))
  t.after(() => held.release())
  const ask = async (): Promise<number | undefined> => {
    const asked = request({ socketPath: held.socket, path: '/', method: 'POST',
      headers: { Expect: '100-continue' } }).end('x')
    const [response] = await once(asked, 'response')
    response.resume()
    return response.statusCode
  }
  assert.equal(await ask(), 503)
  held.server.on('request', (_request, response) => { response.end('served') })
  assert.equal(await ask(), 200)
})

test('only a socket that nobody listens on is dead: any other error may be a busy process', async t => {
  const folder = freshFolder(t)
  writeFileSync(join(folder, 'file'), '')
  const live = createServer().listen(join(folder, 'live'))
  await once(live, 'listening')
  assert.deepEqual(await Promise.all(['live', 'none', 'file', 'file/below'].map(name => probe(join(folder, name)))),
    [true, false, false, true])
  live.close()
  const full = createServer(socket => socket.destroy()).listen({ path: join(folder, 'full'), backlog: 1 })
  t.after(() => full.close())
  await once(full, 'listening')
  // All in one turn of the event loop, in which nothing is accepted.
  const waiting = Array.from({ length: 8 }, () => createConnection(join(folder, 'full')).on('error', () => {}))
  const isAlive = await probe(join(folder, 'full'))
  for (const socket of waiting) socket.destroy()
  assert.ok(isAlive, 'so many wait that no more may')
})
