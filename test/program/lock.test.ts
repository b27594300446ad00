/** What happens to a running service whose lock is taken away: nothing that it acknowledged is lost. */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { disk } from '../../src/journal/files.ts'
import { lockFolder, type Lock } from '../../src/journal/lock.ts'
import { openStorage } from '../../src/storage.ts'
import { ADMIN, admin, done, initialized, refused, type Done } from '../support/admin.ts'
import { freshFolder, send } from '../support/service.ts'
import { VERSION } from '../../src/version.ts'
import { runProgram, socketsIn, startProgram, until, type Program } from '../support/program.ts'

/** Removes the sockets of a folder, as a cleaner of temporary files does; gives how many there were. */
function clean(folder: string): number {
  const sockets = socketsIn(folder)
  for (const name of sockets) rmSync(join(folder, name), { force: true })
  return sockets.length
}

async function create({ url }: Program, sistema: string): Promise<number> {
  return (await send(url, 'POST', '/api/createPassword', { password: 'p', sistema, usuario: 'u' })).status
}

async function systemsIn(folder: string): Promise<readonly string[]> {
  const listed = JSON.parse(await done(folder, 'entry list --json'))
  return listed.map(({ sistema }: { sistema: string }) => sistema)
}

test('of two processes that are started on one folder the second does not start, and changes nothing', async t => {
  const first = await startProgram(t)
  assert.equal(await create(first, 'a'), 200)
  const before = [readdirSync(first.folder), readFileSync(join(first.folder, 'journal.jsonl'))]
  const { code, stdout, stderr } = await runProgram(t, { flags: { data: first.folder } })
  assert.deepEqual([code, stderr],
    [1, `error: the lock of the data folder cannot be had: ${first.folder} belongs to process ${first.pid}\n`])
  assert.doesNotMatch(stdout, /ready/)
  assert.deepEqual([readdirSync(first.folder), readFileSync(join(first.folder, 'journal.jsonl'))], before)
  assert.equal(await create(first, 'b'), 200)
})

test('a service whose socket was removed takes no more changes and says so, while reads go on', async t => {
  const service = await startProgram(t)
  assert.equal(await create(service, 'a'), 200)
  assert.equal(clean(service.folder), 1)
  assert.equal((await send(service.url, 'GET', '/healthz')).status, 503)
  for (let n = 0; n < 2; n++) assert.equal(await create(service, 'b'), 500)
  await service.printed(/warning: the journal takes no more writes: the socket of its lock, .*, was removed/)
  assert.equal((await send(service.url, 'GET', '/api/listPassword')).json.length, 1)
  assert.deepEqual(socketsIn(service.folder), [])
  assert.equal((await service.stop()).code, 0)
  assert.deepEqual(await systemsIn(service.folder), ['a'])
})

for (const changes of [false, true]) {
  test(`${changes ? 'a journal that another changed' : 'a lock that another had'} ends changes for good`, async t => {
    const first = await startProgram(t)
    assert.equal(await create(first, 'a'), 200)
    first.child.kill('SIGSTOP')
    clean(first.folder)
    const second = await startProgram(t, { flags: { data: first.folder } })
    if (changes) assert.equal(await create(second, 'b'), 200)
    first.child.kill('SIGCONT')
    assert.equal(await create(first, 'c'), 500)
    await second.stop()
    assert.equal(await create(first, 'c'), 500)
    await first.stop()
    assert.deepEqual(await systemsIn(first.folder), changes ? ['a', 'b'] : ['a'])
  })
}

test('a socket that came back from a backup is not taken for the lock', async t => {
  const service = await startProgram(t)
  const [name = ''] = socketsIn(service.folder)
  renameSync(join(service.folder, name), join(freshFolder(t), name))
  writeFileSync(join(service.folder, name), '')
  assert.equal(await create(service, 'a'), 500)
})

test('a service asks for no body of a program of another version or of none, and changes nothing', async t => {
  const { folder } = await startProgram(t)
  const socketPath = join(folder, socketsIn(folder)[0]!)
  const body = '{"password":"p","sistema":"s","usuario":"u"}'
  for (const [version, status] of [[undefined, 400], ['0.0.1', 400], [VERSION, 200]] as const) {
    const headers = { Expect: '100-continue', 'Content-Length': body.length, ...version !== undefined &&
      { 'X-Version': version } }
    const outgoing = request({ socketPath, method: 'POST', path: '/operator/addEntry', headers })
    let isAsked = false
    outgoing.on('continue', () => { isAsked = true; outgoing.end(body) }).flushHeaders()
    const [answer] = await once(outgoing, 'response') as [IncomingMessage]
    assert.deepEqual([answer.statusCode, isAsked], [status, status === 200], version)
    outgoing.destroy()
  }
  assert.match(await done(folder, 'entry list'), /^1 /m)
  assert.doesNotMatch(await done(folder, 'entry list'), /^2 /m)
})

/** Takes a folder's lock, and serves on its socket what a test says. */
async function serve(folder: string, answer: (request: IncomingMessage, response: ServerResponse) =>
  void): Promise<Lock> {
  const held = await lockFolder(disk, folder)
  held.server.on('request', answer)
  return held
}

for (const [what, hold] of [
  ['is busy', async (folder: string) => {
    const held = await lockFolder(disk, folder)
    return () => held.release()
  }],
  ['has the request, and does not answer', async (folder: string, t: TestContext) => {
    const { pid } = await startProgram(t, { flags: { data: folder } })
    process.kill(pid, 'SIGSTOP')
    return () => { process.kill(pid, 'SIGCONT') }
  }]
] as const) {
  test(`a command that waits for a service that ${what} says so once, and is carried out when it has time`, async t => {
    const folder = await initialized(t)
    const release = await hold(folder, t)
    const command = spawn(process.execPath, [ADMIN, 'key', 'rotate', '--data', folder])
    const ended = once(command, 'close')
    let said = ''
    command.stderr.setEncoding('utf8').on('data', text => { said += text })
    try {
      await until('the command says that it waits', () =>
        said.includes('waiting; after Ctrl+C it may still carry out the command\n'))
    } finally {
      await release()
    }
    assert.deepEqual((await ended)[0], 0, said)
    assert.equal(said.split('waiting').length, 2)
  })
}

test('a change is asked for again if the service ended before it took it, not if it may have made it', async t => {
  const folder = await initialized(t)
  const [path, keyFile] = [join(folder, 'journal.jsonl'), join(folder, 'journal.key')]
  const endsAt = async (words: string, cut: (request: IncomingMessage, response: ServerResponse) =>
    void): Promise<Done> => {
    const held = await serve(folder, (request, response) => {
      if (request.url === '/operator/status') {
        response.setHeader('X-Version', VERSION)
        return void response.end(JSON.stringify({ path, keyFile, bytes: statSync(path).size }))
      }
      clean(folder)
      cut(request, response)
    })
    const ended = await admin(folder, words, 'SECRET\n')
    await held.release()
    return ended
  }
  const add = 'entry add --user u --password-stdin --system'
  const repeated = await endsAt(`${add} repeated`, ({ socket }) => socket.destroy())
  assert.deepEqual([repeated.code, repeated.error], [0, ''])
  writeFileSync(join(folder, 'e.csv'), 'name,url,username,password\ns,,u,p\n')
  for (const words of ['key rotate', `import ${join(folder, 'e.csv')}`]) {
    const { code, error } = await endsAt(words, ({ socket }) => socket.destroy())
    assert.equal(code, 0, `${words}: ${error}`)
  }
  const taken = await endsAt(`${add} taken`, (request, response) => {
    response.writeContinue()
    request.on('data', () => request.socket.destroy())
  })
  assert.match(`${taken.code} ${taken.error}`,
    /^1 error: the service cut [^\n]+ may have carried out the command; look/)
  const deleted = await endsAt('entry delete 1', ({ socket }) => socket.destroy())
  assert.deepEqual([deleted.code, deleted.error], [0, ''])
  assert.deepEqual(await systemsIn(folder), ['s'])
})

test('a command whose service cuts off every connection, as without descriptors, says so and what to do', async t => {
  const folder = await initialized(t)
  const held = await serve(folder, request => { request.socket.destroy() })
  await refused(folder, 'entry list', 1,
    /the service took no request, and nothing was changed; .+ descriptors .+ restart it/)
  await held.release()
})

test('a command that a busy service has answered for long goes on if it then ends with a connection cut', async t => {
  const folder = await initialized(t)
  const beganMs = performance.now()
  const held = await serve(folder, (request, response) => {
    if (performance.now() - beganMs < 7_000) response.writeHead(503, { 'Content-Type': 'application/json' }).end('{}')
    else {
      request.socket.destroy()
      void held.release()
    }
  })
  await done(folder, 'user list --json')
})

test('a start that loses its lock before it cuts a torn write off leaves what another has acknowledged', async t => {
  const folder = await initialized(t)
  const add = (system: string): void => {
    const words = ['entry', 'add', '--system', system, '--user', 'u', '--generate', '--data', folder]
    execFileSync(process.execPath, [ADMIN, ...words], { stdio: ['ignore', 'ignore', 'inherit'] })
  }
  add('first')
  appendFileSync(join(folder, 'journal.jsonl'), '{"seq":3,"time":"2026-')
  let isTaken = false
  const createToAppend: typeof disk.createToAppend = path => {
    if (path.includes('.torn-') && !isTaken) {
      isTaken = true
      clean(folder)
      add('second')
    }
    return disk.createToAppend(path)
  }
  const settings = { dataDir: folder, keyFile: undefined, journal: 'file' }
  const opening = openStorage(settings, { info: () => {}, warn: () => {} }, { files: { ...disk, createToAppend } })
  await assert.rejects(opening, { code: 'folder-held', message: /was removed while the journal was read/ })
  assert.ok(isTaken)
  assert.deepEqual(await systemsIn(folder), ['first', 'second'])
})
