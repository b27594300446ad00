/** The bench's own pieces: a load that counts as the server does, percentiles that are right, plots that are XML. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import test from 'node:test'
import { FIRST_HASH, isChained, parseLine } from '../../src/journal/line.ts'
import { verify, journalBytes, keysOf } from '../support/journal-file.ts'
import { seeded } from '../support/random.ts'
import { ask } from '../support/raw.ts'
import { atEnd, freshFolder, startService } from '../support/service.ts'
import { Histogram, HISTOGRAM_ERROR } from './histogram.ts'
import { BODY_BYTES, fieldsOf, makeJournal } from './journal.ts'
import { measureSides } from './measure.ts'
import { Misuse, readOptions } from './options.ts'
import { curvePlot, speedPlot } from './plot.ts'
import {
  ANY_CORES, floorOf, Load, requestBytes, serveFloor, serveProgram, type Asked, type Served
} from './processes.ts'
import { spread } from './report.ts'
import { creates, WORKS } from './works.ts'

test('a percentile is within half a bucket of the sorted list\'s', () => {
  const random = seeded(1)
  const histogram = new Histogram()
  assert.equal(histogram.percentileMs(0.5), 0)
  const all = Array.from({ length: 10_000 }, () => 0.002 * 1e6 ** random.next())
  for (const ms of all) histogram.add(ms)
  all.sort((a, b) => a - b)
  assert.equal(histogram.count, all.length)
  for (const share of [0.0001, 0.5, 0.9, 0.99, 0.999, 1]) {
    const factor = histogram.percentileMs(share) / all[Math.ceil(all.length * share) - 1]!
    assert.ok(Math.max(factor, 1 / factor) <= HISTOGRAM_ERROR * 1.0001, `p${share * 100} is off by ${factor}`)
  }
})

test('a latency outside of what the histogram holds counts as the nearest', () => {
  const histogram = new Histogram()
  histogram.add(0)
  histogram.add(1e9)
  assert.ok(histogram.percentileMs(0.5) < 0.002)
  assert.ok(histogram.percentileMs(1) > 3_600_000)
})

test('the spread of some values is their median and their ends', () => {
  assert.deepEqual(spread([3, 1, 2]), { median: 2, min: 1, max: 3 })
  assert.deepEqual(spread([4, 1, 2, 3]), { median: 2.5, min: 1, max: 4 })
})

test('the load counts what the server counts, in answers of every size', { timeout: 20_000 }, async t => {
  const sizes = [0, 1, 1_000, 300_000]
  let served = 0
  const server = createServer((request, response) => {
    const body = 'x'.repeat(sizes[served++ % sizes.length]!)
    request.resume().on('end', () => response.writeHead(200, { 'Content-Length': body.length }).end(body))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  atEnd(t, () => { server.close(); server.closeAllConnections() })
  const load = new Load(ANY_CORES)
  atEnd(t, () => load.end())
  const { port } = server.address() as AddressInfo
  const requests = [...WORKS['get']!.requests.slice(0, 10), ...creates(1, 1, 50_000).requests.slice(0, 2)]
  const order = { port, connections: 7, warmMs: 100, measuredMs: 200, requests: requests.map(requestBytes) }
  const { answers, refusals, rate, p50Ms, p99Ms } = await load.run(order)
  assert.equal(answers, served)
  assert.equal(refusals, 0)
  assert.ok(rate > 0 && rate * 0.2 < answers)
  assert.ok(p50Ms > 0 && p50Ms <= p99Ms)
})

test('the load fails where an answer is not 200, and where the server closes', { timeout: 20_000 }, async t => {
  let status = 404
  const server = createServer((_request, response) => {
    if (status === 0) response.destroy()
    else response.writeHead(status, { 'Content-Length': 0 }).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  atEnd(t, () => { server.close(); server.closeAllConnections() })
  const load = new Load(ANY_CORES)
  atEnd(t, () => load.end())
  const { port } = server.address() as AddressInfo
  const requests = WORKS['get']!.requests.map(requestBytes)
  const order = { port, connections: 2, warmMs: 0, measuredMs: 50, requests }
  await assert.rejects(load.run(order), /answers were not 200/)
  status = 0
  await assert.rejects(load.run(order), /closed a connection|ECONNRESET/)
})

test('the floor answers the very bytes that the program answers', { timeout: 20_000 }, async t => {
  const folder = freshFolder(t)
  makeJournal(join(folder, 'data'), 100, BODY_BYTES)
  const program = await serveProgram(join(folder, 'data'), ANY_CORES)
  atEnd(t, () => program.stop())
  const asked = WORKS['mixed']!.samples.map(one => one.method === 'GET' ? { ...one, path: '/api/getPassword/7' } : one)
  const floor = await serveFloor(await floorOf(program.port, asked), join(folder, 'floor.json'), ANY_CORES)
  atEnd(t, () => floor.stop())
  const answerOf = async ({ port }: Served, one: Asked): Promise<unknown> => {
    const { line, headers, text } = await ask(t, `http://127.0.0.1:${port}`, requestBytes(one))
    return { line, headers: Object.entries(headers).filter(([name]) => name !== 'date'), text }
  }
  for (const one of asked) assert.deepEqual(await answerOf(floor, one), await answerOf(program, one))
})

test('the shortest way writes a line whose chain holds before it answers', { timeout: 20_000 }, async t => {
  const folder = freshFolder(t)
  const answer = { headers: ['Content-Length', '2'], body: Buffer.from('{}').toString('base64') }
  const path = join(folder, 'journal.jsonl')
  const floor = { keepAliveMs: 5_000, answers: { POST: answer } }
  const served = await serveFloor(floor, join(folder, 'floor.json'), ANY_CORES, path)
  atEnd(t, () => served.stop())
  const request = requestBytes(WORKS['c1']!.samples[0]!)
  await Promise.all([1, 2, 3].map(() => ask(t, `http://127.0.0.1:${served.port}`, request)))
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n').map(text => parseLine(text)!)
  assert.deepEqual(lines.map(({ seq }) => seq), [1, 2, 3])
  for (const [i, line] of lines.entries()) assert.ok(isChained(line, lines[i - 1]?.hash ?? FIRST_HASH))
})

test('a work is measured on the real program beside a floor of the same bytes', { timeout: 30_000 }, async t => {
  const folder = freshFolder(t)
  let serial = 0
  const path = (): string => join(folder, String(++serial))
  const bench = {
    cores: ANY_CORES, warmMs: 0, measuredMs: 50, path,
    dataFolder: (entries: number, bodyBytes: number) => {
      const made = path()
      makeJournal(made, entries, bodyBytes)
      return made
    }
  }
  const reports = await measureSides(bench, WORKS['mixed']!, ['floor', 'shortest', 'program'])
  for (const side of ['floor', 'shortest', 'program'] as const) assert.ok(reports[side]!.answers > 0)
})

test('a journal is made as the program would have made it', async t => {
  const folder = join(freshFolder(t), 'data')
  makeJournal(folder, 3_000, 200)
  const lines = verify(journalBytes(folder), keysOf(folder))
  assert.deepEqual(lines.at(-1)!.data, { id: 3_000, ...fieldsOf(3_000, 200) })
  for (const bytes of [100, 200]) assert.equal(JSON.stringify(fieldsOf(1, bytes)).length, bytes)
  const { service } = await startService(t, { data: folder })
  assert.equal(service.store.activeCount, 3_000)
})

/** The names of a text's elements as they close; throws where it is not well-formed. */
function elementsOf(xml: string): string[] {
  const open: string[] = []
  const closed: string[] = []
  const rest = xml.replace(/<(\/?)([a-z]+)((?: [a-zA-Z0-9-]+="[^"<>]*")*)(\/?)>/g,
    (_all, end: string, name: string, attributes: string, isEmpty: string) => {
      const names = [...attributes.matchAll(/ ([a-zA-Z0-9-]+)=/g)].map(found => found[1])
      assert.equal(new Set(names).size, names.length, `<${name}> has an attribute twice`)
      if (end === '' && isEmpty === '') { open.push(name); return '' }
      if (end !== '') assert.equal(open.pop(), name)
      closed.push(name)
      return ''
    })
  assert.deepEqual(open, [])
  assert.doesNotMatch(rest, /[<>]|&(?!amp;|lt;|gt;|quot;)/)
  return closed
}

test('the plots are well-formed, whatever the titles, and hold every value', () => {
  const one = { median: 0.9, min: 0.8, max: 1.3 }
  const speed = speedPlot('<"&>', [{ title: 'a & b', ratio: one, control: one }])
  assert.equal(elementsOf(speed).filter(name => name === 'rect').length, 3)
  assert.ok(speed.includes('a &amp; b'))
  const points = [[1, 5], [1_000, 5], [1_000_000, 0.001]] as const
  const series = [{ name: 'get', isMeasure: false, points }, { name: 'bare', isMeasure: true, points }]
  const curve = curvePlot('<curve>', Array.from({ length: 4 }, () => ({ title: 'p99', series })))
  assert.equal(elementsOf(curve).filter(name => name === 'polyline').length, 8)
  for (const plot of [speed, curve]) assert.doesNotMatch(plot, /NaN|Infinity|undefined/)
})

test('the command line is read whole, and what is wrong with it is named', () => {
  const choice = readOptions(['--only=get,start', '--rounds', '3', '--seconds', '0.5'])
  assert.ok(choice !== 'help')
  const { folder, ...rest } = choice
  assert.ok(folder !== '')
  assert.deepEqual(rest,
    { names: ['get', 'start'], rounds: 3, seconds: 0.5, records: 200_000, curve: false, readme: false, writes: false })
  assert.equal(readOptions(['--help']), 'help')
  for (const [args, named] of [
    [['--only', 'get,put'], 'put'], [['--rounds', '1.5'], '--rounds'], [['--seconds', '0'], '--seconds'],
    [['--records', 'many'], '--records'], [['--turbo'], '--turbo'], [['get'], 'get'],
    [['--only', 'get', '--readme'], '--only'], [['--folder', '/nowhere'], '/nowhere']
  ] as const) {
    assert.throws(() => readOptions(args), (error: Error) => error instanceof Misuse && error.message.includes(named))
  }
})
