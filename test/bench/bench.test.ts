/** The benchmark's own pieces: a load that counts as the server does, a floor that answers the same bytes. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { journalBytes, keysOf, verify } from '../support/journal.ts'
import { ask } from '../support/raw.ts'
import { atEnd, freshFolder } from '../support/service.ts'
import { fieldsOf, makeJournal } from './journal.ts'
import { ANY_CORES, floorOf, Load, serveFloor, serveProgram } from './servers.ts'
import { creates, requestBytes, WORKS } from './works.ts'

test('the load counts what the server counts, in answers of every size, and fails on what is not 200', async t => {
  const sizes = [0, 1, 1_000, 300_000]
  let [served, status] = [0, 200]
  const server = createServer((request, response) => {
    const body = 'x'.repeat(sizes[served++ % sizes.length]!)
    request.resume().on('end', () => response.writeHead(status, { 'Content-Length': body.length }).end(body))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  atEnd(t, () => { server.close(); server.closeAllConnections() })
  const load = new Load(ANY_CORES)
  atEnd(t, () => load.end())
  const { port } = server.address() as AddressInfo
  const requests = [...WORKS['get']!.requests.slice(0, 10), ...creates(1, 1, 50_000).requests.slice(0, 2)]
  const order = { port, connections: 7, warmMs: 100, measuredMs: 200, requests: requests.map(requestBytes) }
  const { answers, rate, p50Ms, p99Ms } = await load.run(order)
  assert.equal(answers, served)
  assert.ok(rate > 0 && rate * 0.2 < answers && p50Ms > 0 && p50Ms <= p99Ms)
  status = 503
  await assert.rejects(load.run(order), /answers were not 200/)
})

test('a journal is as the program would have made it; the floor answers its bytes, and keeps creates as it does', async t => {
  const folder = freshFolder(t)
  const data = join(folder, 'data')
  makeJournal(data, 3_000, 200)
  assert.deepEqual(verify(journalBytes(data), keysOf(data)).at(-1)!.data, { id: 3_000, ...fieldsOf(3_000, 200) })
  const program = await serveProgram(data, ANY_CORES)
  atEnd(t, () => program.stop())
  const [get, create] = [WORKS['get']!.samples[0]!, WORKS['c1']!.samples[0]!]
  const journal = join(folder, 'journal.jsonl')
  const floor = await serveFloor(await floorOf(program.port, [get, create]), join(folder, 'floor'), ANY_CORES, journal)
  atEnd(t, () => floor.stop())
  for (const one of [get, create, create]) {
    const [{ line, text }, other] = await Promise.all([program, floor].map(({ port }) =>
      ask(t, `http://127.0.0.1:${port}`, requestBytes(one)))) as [any, any]
    assert.deepEqual([line, text], [other.line, other.text])
  }
  assert.deepEqual(readFileSync(journal, 'latin1').trimEnd().split('\n').map(line => JSON.parse(line).seq), [1, 2])
})

test('the benchmark runs, and prints a table', () => {
  const args = ['--import', 'tsx', fileURLToPath(new URL('bench.ts', import.meta.url)), '--only=get,start']
  const text = execFileSync(process.execPath, [...args, '--rounds=1', '--seconds=0.1', '--records=100'], {
    encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']
  })
  assert.match(text, /^\| get one of 1,000, 64 connections \| [\d,]+ \| [\d,]+ \| \d+\.\d\d \(/m)
  assert.match(text, /^\| memory an entry,/m)
})
