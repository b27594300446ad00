/**
 * A table of bounds: each way in which a client can make the process hold or do much, over TCP, over TLS and in an
 * embedder's process, on a heap of 64 MiB. A row holds what it may cost in memory, and that others are answered.
 */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { certificateFiles } from '../support/certificate.ts'
import { memoryMiB, workedMs } from '../support/system.ts'
import { launchProgram, startProgram, type ProgramOptions } from '../support/program.ts'
import { chunked, message } from '../support/raw.ts'
import { freshFolder, startService } from '../support/service.ts'
import { plainName, testFiles } from '../support/test-names.ts'

/** Another build of the same program, to compare with. */
const DIST = process.env['BOUNDS_DIST'] ?? fileURLToPath(new URL('../../dist', import.meta.url))
/** The rows to run alone, as a pattern. */
const ONLY = new RegExp(process.env['BOUNDS_ROWS'] ?? '')
const NODE = [process.execPath, '--max-old-space-size=64']
/**
 * The work that the process does at most between somebody else's request and its answer, in ms of processor time:
 * mostly 500, three times as much on cores that others use, too.
 */
const SERVED_MS = 4_000
const OVER = ['TCP', 'TLS', 'embedded'] as const
type Over = typeof OVER[number]

interface Row {
  readonly way: string
  /** What the whole of it may add to the process's memory. */
  readonly mostMiB: number
  /** The connections at once, and what each sends; what is answered is read only where it says so. */
  readonly connections: number
  /** From how many addresses they come. */
  readonly clients?: number
  readonly sends: readonly (string | Buffer)[]
  readonly isRead?: boolean
  /** Whether all of it arrives at once, as at a process that was kept waiting. */
  readonly isAtOnce?: boolean
  /** Where it is somebody else's server that decides. */
  readonly not?: Over
}

const ENTRY = { password: `é${'x'.repeat(50_000)}`, sistema: 's', usuario: 'u' }
const ENTRIES = 200
const GET = message('GET', '/api/getPassword/1')
const tiny = (count: number): string => '1\r\nx\r\n'.repeat(count)

const ROWS: readonly Row[] = [
  { way: 'bodies in one-byte chunks', connections: 58, mostMiB: 60, isAtOnce: true,
    sends: [chunked('POST', '/api/createPassword', []), tiny(60_000)] },
  { way: 'bodies in one-byte chunks that are not needed', connections: 40, mostMiB: 60, isAtOnce: true,
    sends: [chunked('POST', '/api/nope', []), tiny(60_000)] },
  { way: 'bodies in one-byte chunks of a route without a body', connections: 40, mostMiB: 60, isAtOnce: true,
    sends: [chunked('POST', '/api/deletePassword/200', []), tiny(60_000)] },
  { way: 'unfinished heads of many short fields', connections: 2_000, mostMiB: 120, not: 'embedded',
    sends: ['GET / HTTP/1.1\r\n', 'a:\r\n'.repeat(3_900)] },
  { way: 'unfinished heads of one long field', connections: 2_000, mostMiB: 140, not: 'embedded',
    sends: ['GET / HTTP/1.1\r\na: ', 'x'.repeat(16_000)] },
  { way: 'the deleted entries, not read', connections: 300, mostMiB: 90,
    sends: [message('GET', '/api/deletedPasswords')] },
  { way: 'the list, not read', connections: 40, mostMiB: 60, sends: [message('GET', '/api/listPassword')] },
  { way: 'lists in a series, not read', connections: 40, mostMiB: 90,
    sends: [Buffer.concat(Array<Buffer>(200).fill(message('GET', '/api/listPassword')))] },
  { way: 'gets of large entries in a series, not read', connections: 300, mostMiB: 90, not: 'embedded',
    sends: [Buffer.concat(Array<Buffer>(1_000).fill(GET))] },
  { way: 'short requests in a series, not read', connections: 300, mostMiB: 150, not: 'embedded',
    sends: ['GET / HTTP/1.1\r\n\r\n'.repeat(3_600)] },
  // 64 MiB of bodies; over TLS 55 MiB of connections, 37 KB each; what bodies have outgrown, which V8 collects once it
  // is 64 MiB; and the young generation of the heap, 32 MiB at most: 215 MiB.
  { way: 'bodies that stop before their end', connections: 1_500, mostMiB: 240, not: 'embedded',
    sends: [message('POST', '/api/createPassword', 'x'.repeat(65_000)).subarray(0, -9)] },
  // Long entries stay in memory: a heap of 64 MiB is for ordinary ones.
  { way: 'whole bodies at once', connections: 200, mostMiB: 190, isRead: true,
    sends: [message('POST', '/api/createPassword',
    JSON.stringify({ password: `é${'x'.repeat(65_000)}`, sistema: 's', usuario: 'u' }))] },
  { way: 'long heads, whose connections stay when they are answered', connections: 4_000, clients: 5, mostMiB: 90,
    not: 'TLS',
    isRead: true, sends: [message('GET', '/nope', undefined, [`X: ${'x'.repeat(15_500)}`])] },
  { way: 'connections that never say a word', connections: 2_000, mostMiB: 90, sends: [] },
  { way: 'long targets, not read', connections: 300, mostMiB: 90, not: 'embedded',
    sends: [`GET /${'x'.repeat(12_000)} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(5)] },
  { way: 'If-Match of commas alone', connections: 600, mostMiB: 120, isRead: true, sends: [message(
    'POST', '/api/deletePassword/200', undefined, [`If-Match: ${','.repeat(15_500)}`])] },
  { way: 'changes of a long entry behind a list, not read', connections: 300, mostMiB: 140, not: 'embedded',
    sends: [message('GET', '/api/listPassword'), message('POST', '/api/updatePassword/200', '{"usuario":"v"}')] },
  { way: 'short requests in a series behind a change', connections: 300, mostMiB: 90, not: 'embedded', isRead: true,
    sends: [message('POST', '/api/updatePassword/200', '{"usuario":"v"}'), 'GET / HTTP/1.1\r\n\r\n'.repeat(3_600)] }
]

/** What JSON can be made of that is cheap to send and dear to keep: each as large as a body may be. */
const MAX_BODY = 65_536
const filled = (begin: string, unit: string, end: string): string =>
  begin + unit.repeat(Math.floor((MAX_BODY - begin.length - end.length) / unit.length)) + end
const JSONS: { readonly [shape: string]: string } = {
  'arrays in arrays': filled('', '[', ''),
  'objects in objects': filled('', '{"a":', ''),
  'an array of empty objects': filled('[{}', ',{}', ']'),
  'a field of arrays in an array': filled('{"a":[[1]', ',[1]', ']}'),
  'a field of objects with the index of an array for their key': filled('{"a":[{"999":0}', ',{"999":0}', ']}'),
  'an object of many keys': `{${Array.from({ length: 7_000 }, (_, i) => `"${i.toString(36)}":1`).join()}}`,
  'one key many times': filled('{"a":1', ',"a":1', '}'),
  'a string of escapes': filled('{"password":"', '\\u00f1', '"}'),
  'numbers of many digits': filled('[1', '0', ']'),
  'an unfinished string': filled('{"password":"', 'ñ', '')
}
const SHAPES: readonly Row[] = Object.entries(JSONS).map(([shape, text]) => ({
  way: `JSON: ${shape}`, connections: 60, mostMiB: 90, isRead: true,
  sends: [message('POST', '/api/createPassword', text)]
}))

/**
 * A row for each route that gives something, as the service describes itself: so a new one has a row. How many requests
 * of a connection are begun at once is the business of an embedder's server.
 */
async function routes(t: TestContext, over: Over): Promise<readonly Row[]> {
  const { url } = await startService(t, { 'extra-routes': 'on' })
  const { paths } = await (await fetch(`${url}/openapi.json`)).json() as { paths: { [path: string]: { get?: object } } }
  const gets = ['/', ...Object.keys(paths).filter(path => paths[path]!.get !== undefined)]
  assert.ok(gets.includes('/api/getPassword/{id}') && gets.includes('/api/historyPassword/{id}'), gets.join())
  return gets.map(path => ({
    way: `${path}, not read`, connections: 30, mostMiB: 90,
    sends: [Buffer.concat(Array<Buffer>(over === 'embedded' ? 1
      : 20).fill(message('GET', path.replace('{id}', '400'))))]
  }))
}

/** What shows each bound of the listener: a row, or the test that reaches it. A new bound without one of them fails. */
const SHOWN: { readonly [bound: string]: string } = {
  ANSWER_BYTES_PER_SECOND: 'program/slow-reader',
  ANSWER_TIMEOUT_MS: 'program/slow-reader',
  BYTES_PER_PAID_MS: 'http/connections',
  CORS_MAX_AGE_SECONDS: 'http/cors',
  DESCRIPTOR_RESERVE: 'program/hostile',
  DRAIN_TIMEOUT_MS: 'http/connections',
  HEADERS_TIMEOUT_MS: 'program/hostile',
  HSTS_MAX_AGE_SECONDS: 'tables/answers',
  KEPT_HEADER_FIELDS: 'unfinished heads of many short fields',
  KEEP_ALIVE_TIMEOUT_MS: 'program/hostile',
  MAX_BODIES_BYTES: 'bodies that stop before their end',
  MAX_CONNECTIONS: 'program/hostile',
  MAX_DRAIN_BYTES: 'bodies in one-byte chunks that are not needed',
  MAX_HEADER_BYTES: 'unfinished heads of one long field',
  MAX_HEADER_FIELDS: 'unfinished heads of many short fields',
  MAX_JSON_DEPTH_LEVELS: 'json/parse',
  MAX_JSON_KEYS: 'json/parse',
  MAX_NESTED_VALUES: 'json/parse',
  MAX_LOOKS: 'http/places',
  MAX_RATE_LIMIT_CLIENTS: 'api/rate-limit',
  MAX_SMALL_PIECES: 'bodies in one-byte chunks',
  MAX_UNSENT_BYTES: 'http/sending',
  MAX_WARNED_PROXIES: 'http/proxy-warnings',
  NEW_REQUEST_MS: 'http/connections',
  PAID_AHEAD_MS: 'http/connections',
  RATE_LIMIT_WINDOW_SECONDS: 'api/rate-limit',
  REQUEST_TIMEOUT_MS: 'program/hostile',
  SEND_BYTES: 'the list, not read',
  SEND_COPIED_BYTES: 'the list, not read',
  SHORT_BODY_BYTES: 'gets of large entries in a series, not read',
  SHUTDOWN_SWEEP_MS: 'tables/answers',
  SMALL_PIECE_BYTES: 'bodies in one-byte chunks',
  TIMEOUT_CHECK_MS: 'program/hostile',
  TLS_CHECK_MS: 'program/tls'
}

test('each bound of the listener has a row, or a test that reaches it', () => {
  const src = fileURLToPath(new URL('../../src/http/', import.meta.url))
  const names = readdirSync(src).filter(name => name.endsWith('.ts'))
  const used = names.flatMap(name => {
    const [, names = ''] = /import \{([^}]*)\} from '\.\.\/limits\.ts'/.exec(readFileSync(join(src, name), 'utf8')) ??
      []
    return names.match(/\w+/g) ?? []
  })
  assert.deepEqual([...new Set(used)].sort(), Object.keys(SHOWN).sort())
  const tests = new Set(testFiles().map(plainName))
  const ways = new Set(ROWS.map(({ way }) => way))
  const missing = Object.values(SHOWN).filter(by => !ways.has(by) && !tests.has(by))
  assert.deepEqual(missing, [])
})

const HOST = `
import { createServer } from 'node:http'
const { openService } = await import(${JSON.stringify(join(DIST, 'index.js'))})
const service = await openService({ dataDir: process.argv[2], rateLimit: 0, extraRoutes: true, page: false })
// As long as the service's own: 5 s, which Node has, may pass on a busy machine between two questions of the test.
const server = createServer({ keepAliveTimeout: 65_000 }, service.handle)
server.listen(0, '127.0.0.1', () => { console.log('http://127.0.0.1:' + server.address().port) })
`
/** What both say of where they serve. */
const ADDRESS = /https?:\/\/\S+:(\d+)$/m

function hosted(t: TestContext, folder: string): ProgramOptions {
  const host = join(freshFolder(t), 'host.mjs')
  writeFileSync(host, HOST)
  return { command: [...NODE, host], args: [folder] }
}

/** Fills a folder with a list of 10 MB, and as much that is deleted, by the program that is measured. */
async function fill(t: TestContext): Promise<string> {
  const program = await startProgram(t, { command: [process.execPath, join(DIST, 'server.js')] })
  const { port } = new URL(program.url)
  const socket = connectTcp({ port: Number(port), host: '127.0.0.1' })
  for (let id = 1; id <= 2 * ENTRIES; id++) {
    await answered(socket, message('POST', '/api/createPassword', JSON.stringify(ENTRY)))
    if (id > ENTRIES) await answered(socket, message('POST', `/api/deletePassword/${id}`))
  }
  socket.destroy()
  await program.stop()
  return program.folder
}

/** A service on a small heap, with a copy of what was filled. */
async function serve(t: TestContext, over: Over, filled: string) {
  const folder = freshFolder(t)
  cpSync(filled, folder, { recursive: true })
  const program = launchProgram(t, over === 'embedded' ? hosted(t, folder) : {
    flags: { 'extra-routes': 'on', data: folder, ...over === 'TLS' ? certificateFiles(freshFolder(t)) : {} },
    command: [...NODE, join(DIST, 'server.js')]
  })
  let isOver = false
  void program.ended.then(() => { isOver = true })
  await program.printed(ADDRESS)
  const port = Number(ADDRESS.exec(program.stdout)![1])
  const connect = async (client = 1): Promise<Socket> => {
    const place = { port, host: '127.0.0.1', localAddress: `127.0.0.${client}` }
    const socket = over === 'TLS' ? connectTls({ ...place, rejectUnauthorized: false }) : connectTcp(place)
    t.after(() => { socket.destroy() })
    socket.on('error', () => {})
    await Promise.race([once(socket, over === 'TLS' ? 'secureConnect' : 'connect'),
      once(socket, 'close')]).catch(() => {})
    return socket
  }
  return { program, connect, isAlive: () => !isOver }
}

/** Sends a request and resolves when its answer has begun, which comes in one piece. */
async function answered(socket: Socket, request: Buffer): Promise<void> {
  socket.write(request)
  const bytes = await new Promise<Buffer>((resolve, reject) => {
    const gone = (): void => reject(new Error('the connection ended without an answer'))
    socket.once('close', gone).once('data', bytes => { socket.off('close', gone); resolve(bytes) })
  })
  assert.match(bytes.toString('latin1'), /^HTTP\/1\.1 200 /)
}

for (const over of OVER) {
  test(`${over}: what a client can make large is bounded, and others are served meanwhile`, async t => {
    // What leaves nothing behind shares a service.
    const filled = await fill(t)
    const shared = await serve(t, over, filled)
    const alike = [...SHAPES, ...await routes(t, over)]
    for (const row of [...ROWS, ...alike]) {
      const { way, mostMiB, connections, clients = 1, sends, isRead = false, isAtOnce = false, not } = row
      if (not === over || !ONLY.test(way)) continue
      await t.test(way, async t => {
        const { program, connect, isAlive } = alike.includes(row) ? shared : await serve(t, over, filled)
        const before = memoryMiB(program.pid)
        let slowestMs = 0
        let isDone = false
        const others = (async () => {
          const other = await connect()
          while (!isDone && isAlive()) {
            const beforeMs = workedMs(program.pid)
            await answered(other, message('GET', '/healthz'))
            if (isAlive()) slowestMs = Math.max(slowestMs, workedMs(program.pid) - beforeMs)
            await new Promise(resolve => setTimeout(resolve, 20))
          }
        })()
        others.catch(() => {}) // it is awaited below
        let most = before
        const look = (): void => {
          // It may have ended a moment ago, which is asserted below.
          try { most = Math.max(most, memoryMiB(program.pid)) } catch {}
        }
        const sockets: Socket[] = []
        while (sockets.length < connections && isAlive()) {
          const batch = await Promise.all(Array.from(
            { length: Math.min(100, connections - sockets.length) }, (_, i) => connect(1 + i % clients)))
          if (isAtOnce) program.child.kill('SIGSTOP')
          for (const socket of batch) {
            if (isRead) socket.resume()
            else socket.pause()
            for (const bytes of sends) socket.write(bytes)
          }
          sockets.push(...batch)
          if (isAtOnce) {
            await new Promise(resolve => setTimeout(resolve, 500))
            program.child.kill('SIGCONT')
          }
          look()
        }
        for (let n = 0; n < 20 && isAlive(); n++) {
          await new Promise(resolve => setTimeout(resolve, 50))
          look()
        }
        isDone = true
        for (const socket of sockets) socket.destroy()
        const added = (most - before).toFixed()
        t.diagnostic(`${over}, ${way}: ${added} MiB more, others waited for ${slowestMs} ms of work at most`)
        assert.ok(isAlive(), `the process has ended, with ${added} MiB more: ${program.stderr}`)
        await others
        assert.ok(most - before < mostMiB, `${added} MiB more`)
        assert.ok(slowestMs < SERVED_MS, `another client waited for ${slowestMs} ms of work`)
      })
    }
  })
}
