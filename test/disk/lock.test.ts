import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { Failure } from '../../src/errors.ts'
import { localSockets, probe } from '../../src/http/local-socket.ts'
import { disk, type FileStat, type Files } from '../../src/journal/files.ts'
import { heldSockets, lockFolder, type UnixSockets, type FolderLock } from '../../src/journal/lock.ts'
import { lockJournal } from '../../src/storage.ts'
import { whicheverCallFails } from '../support/faulty-files.ts'
import { failure } from '../support/journal.ts'
import { freshFolder } from '../support/service.ts'

const sockets: UnixSockets = localSockets((_request, response) => { response.end() })

function hold(folder: string, files: Files = disk, by: UnixSockets = sockets): Promise<FolderLock> {
  return lockFolder(files, folder, by, process.pid, randomInt)
}

/** Sockets that do something once one is open. */
function socketsThat(afterOpen: (close: () => Promise<void>) => Promise<() => Promise<void>>): UnixSockets {
  return { open: async path => afterOpen(await sockets.open(path)), probe: path => sockets.probe(path) }
}

function countingSockets(): { sockets: UnixSockets, closers: Set<() => Promise<void>> } {
  const closers = new Set<() => Promise<void>>()
  const counting = socketsThat(async close => {
    const counted = async (): Promise<void> => { closers.delete(counted); await close() }
    closers.add(counted)
    return counted
  })
  return { sockets: counting, closers }
}

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

test('a second process is refused, learns which process has the folder, and changes nothing', async t => {
  const folder = freshFolder(t)
  const held = await hold(folder)
  t.after(() => held.release())
  const before = readdirSync(folder)
  const asked: number[] = []
  const random = (below: number): number => { asked.push(below); return 0 }
  await assert.rejects(lockFolder(disk, folder, sockets, process.pid, random),
    failure('folder-held', new RegExp(`${folder} belongs to process ${process.pid}$`)))
  assert.deepEqual(asked, [2 ** 47, 200, 2 ** 47, 200, 2 ** 47], 'three attempts, after waits of less than 200 ms')
  assert.deepEqual(readdirSync(folder), before)
  assert.equal(await sockets.probe(heldSockets(disk, folder)[0]!), true)
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
  await assert.rejects(hold('/proc/self'), failure('folder-unusable', /: \/proc\/self: E[A-Z]+(; it belongs to user \d+)?$/))
})

test('what has failed first is the reason, also where the socket cannot be removed either', async t => {
  const fails = (code: string) => (): never => { throw Object.assign(new Error(code), { code }) }
  const files = { ...disk, setMode: fails('EPERM'), remove: fails('EACCES') }
  await assert.rejects(hold(freshFolder(t), files), failure('folder-unusable', /: EPERM$/))
})

for (const [errno, name] of [[-122, 'EDQUOT'], [-116, 'ESTALE']] as const) {
  test(`an error for which Node has no name is named ${name}, for a disk and for a socket`, async t => {
    for (const code of [`Unknown system error ${errno}`, 'UNKNOWN']) {
      const setMode = (): never => { throw Object.assign(new Error(code), { code, errno }) }
      await assert.rejects(hold(freshFolder(t), { ...disk, setMode }), failure('folder-unusable', new RegExp(`: ${name}$`)))
    }
  })
}

test('a socket that cannot be looked at, as on a disk that fails, is not said to be removed', async t => {
  const folder = freshFolder(t)
  const lines: string[] = []
  let fails = false
  const stat = (path: string): FileStat | undefined => {
    if (fails) throw Object.assign(new Error('EIO'), { code: 'EIO' })
    return disk.stat(path)
  }
  const held = await lockFolder({ ...disk, stat }, folder, sockets, process.pid, randomInt, { warn: line => lines.push(line) })
  t.after(() => held.release())
  fails = true
  await assert.rejects(held.keep(), { code: 'EIO' })
  assert.equal(lines.length, 1)
  assert.match(lines[0]!, /^the socket of the lock is gone, or cannot be looked at; no changes until it is back: EIO$/)
})

test('sockets that dead processes left are removed, of whatever stage; other files stay', async t => {
  const folder = freshFolder(t)
  const dead = ['held-1-a.sock', 'held-2-b.sock', 'opening-3-c.sock'].map(name => join(folder, name))
  for (const path of dead) await leaveDeadSocket(path)
  const others = ['held-x.sock', 'held-1-a.sock.old', 'journal.jsonl']
  for (const name of others) writeFileSync(join(folder, name), '')
  const held = await hold(folder)
  t.after(() => held.release())
  for (const path of dead) assert.equal(existsSync(path), false)
  for (const name of others) assert.ok(existsSync(join(folder, name)))
})

test('one whose socket a winner swept away while it opened is refused as folder-held', async t => {
  const folder = freshFolder(t)
  let winner: FolderLock | undefined
  t.after(() => winner?.release())
  const late = socketsThat(async close => { winner ??= await hold(folder); return close })
  await assert.rejects(hold(folder, disk, late), { code: 'folder-held' })
  assert.equal(await sockets.probe(heldSockets(disk, folder)[0]!), true)
})

test('one whose socket a winner swept away, and who is gone by then, tries again and shows that it holds', async t => {
  const folder = freshFolder(t)
  let sweeps = 0
  const late = socketsThat(async close => { if (sweeps++ === 0) await (await hold(folder)).release(); return close })
  const held = await hold(folder, disk, late)
  t.after(() => held.release())
  assert.equal(await sockets.probe(heldSockets(disk, folder)[0]!), true)
})

for (const forGood of [false, true]) {
  test(`whichever file call fails ${forGood ? 'for good' : 'once'}, no socket stays open, and the next attempt gets the folder`,
    async t => {
      await whicheverCallFails({ code: 'EIO', forGood }, async ({ files }, begin) => {
        const folder = freshFolder(t)
        for (const name of ['held-1-a.sock', 'opening-1-a.sock']) await leaveDeadSocket(join(folder, name))
        const { sockets, closers } = countingSockets()
        begin()
        try {
          await (await hold(folder, files, sockets)).release()
        } catch (error) {
          if (error instanceof Failure) assert.equal(error.code, 'folder-unusable')
          else assert.match(String(error), /EIO/)
        }
        const left = closers.size
        for (const close of [...closers]) await close()
        assert.equal(left, 0)
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
    for (const reason of reasons) assert.match(reason, /another process has the lock of the data folder/)
    assert.deepEqual(readdirSync(folder), [])
  }
  for (const contenders of [2, 3, 5]) await Promise.all(Array.from({ length: 12 }, () => round(contenders)))
})

test('a folder that took the place of the one that was locked is left to others', async t => {
  const folder = join(freshFolder(t), 'data')
  const held = await hold(folder)
  t.after(() => held.release())
  renameSync(folder, `${folder}.away`)
  mkdirSync(folder)
  await assert.rejects(held.keep(), failure('folder-unusable', /was removed or replaced/))
  assert.deepEqual([readdirSync(folder), held.isHeld()], [[], false])
})

test('a lock that was given back is not taken again by who still writes', async t => {
  const folder = freshFolder(t)
  const held = await hold(folder)
  await held.release()
  await held.keep()
  const taken = heldSockets(disk, folder)
  await held.release()
  assert.deepEqual(taken, [])
})

test('where the folder that a linked journal is in is taken, the lock of the link\'s own folder is given back', async t => {
  const [folder, target] = [freshFolder(t), freshFolder(t)]
  writeFileSync(join(target, 'journal.jsonl'), '')
  symlinkSync(join(target, 'journal.jsonl'), join(folder, 'journal.jsonl'))
  const other = await lockJournal(disk, target, sockets)
  t.after(() => other.release())
  await assert.rejects(lockJournal(disk, folder, sockets), { code: 'folder-held' })
  assert.deepEqual(heldSockets(disk, folder), [])
})

test('of a linked journal both folders are locked, either lock is taken again where it was lost, and both are given back', async t => {
  const [folder, target] = [freshFolder(t), freshFolder(t)]
  writeFileSync(join(target, 'journal.jsonl'), '')
  symlinkSync(join(target, 'journal.jsonl'), join(folder, 'journal.jsonl'))
  const lock = await lockJournal(disk, folder, sockets)
  assert.deepEqual([folder, target].map(one => heldSockets(disk, one).length), [1, 1])
  for (const one of [folder, target]) {
    rmSync(heldSockets(disk, one)[0]!)
    assert.equal(lock.isHeld(), false)
    const other = await hold(one)
    await assert.rejects(lock.keep(), { code: 'folder-held' })
    assert.match(lock.fault() ?? '', new RegExp(`${one} belongs to process`))
    await other.release()
    await lock.keep()
    assert.deepEqual([lock.isHeld(), lock.fault()], [true, undefined])
  }
  await lock.release()
  assert.deepEqual([folder, target].map(one => heldSockets(disk, one).length), [0, 0])
})

test('a folder may hold several linked journals of other names, of which each has a lock of its own', async t => {
  const [target, ...folders] = [freshFolder(t), freshFolder(t), freshFolder(t), freshFolder(t)]
  for (const [i, folder] of folders.entries()) {
    const path = join(target, ['a.jsonl', 'b.jsonl', 'a.jsonl'][i]!)
    writeFileSync(path, '')
    symlinkSync(path, join(folder, 'journal.jsonl'))
  }
  const locks = await Promise.all(folders.slice(0, 2).map(folder => lockJournal(disk, folder, sockets)))
  t.after(() => Promise.all(locks.map(lock => lock.release())))
  await assert.rejects(lockJournal(disk, folders[2]!, sockets), { code: 'folder-held' })
})

test('only a socket that nobody listens on is dead: any other error may be a busy process', async t => {
  const folder = freshFolder(t)
  writeFileSync(join(folder, 'file'), '')
  const close = await localSockets(() => {}).open(join(folder, 'live'))
  assert.deepEqual(await Promise.all(['live', 'none', 'file', 'file/below'].map(name => probe(join(folder, name)))),
    [true, false, false, true])
  await close()
})
