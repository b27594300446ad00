/** Health and metrics: what they say, that it is true, and to whom they say it. */
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { test, type TestContext } from 'node:test'
import { Metrics } from '../../src/parts/metrics/metrics.ts'
import { exposition, watchEventLoop } from '../../src/parts/metrics/exposition.ts'
import { VERSION } from '../../src/version.ts'
import { call, startProtected, tokenOf } from '../support/accounts.ts'
import { memoryStore } from '../support/stores.ts'
import { parseExposition, type Family } from '../support/exposition.ts'
import { connectRaw, exchange, message } from '../support/raw.ts'
import { startService } from '../support/service.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'
import { breakDisk } from '../support/faulty-files.ts'

const OK = '{"message":"OK","status":200}'
const FAILED = '{"message":"The journal takes no more writes: read the runbook before you restart the ' +
  'service.","status":503}'
const NOT_LOCAL =
  '{"message":"Only this machine, or a token, may ask. The settings HEALTH and METRICS can allow it.","status":403}'
const ENTRY = { password: 'S3cr3ta', sistema: 'correo', usuario: 'ana' }
const PATHS = ['/healthz', '/metrics']
const REMOTE = 'X-Forwarded-For: 203.0.113.7'

/** The metrics of a service, read strictly. */
async function metricsOf(t: TestContext, url: string): Promise<ReadonlyMap<string, Family>> {
  const { status, headers, text } = await call(t, url, 'GET', '/metrics')
  assert.equal(status, 200)
  assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  assert.equal(headers['cache-control'], 'no-store')
  return parseExposition(text)
}

function samples(metrics: ReadonlyMap<string, Family>, name: string): { readonly [key: string]: number } {
  return Object.fromEntries(metrics.get(name)?.samples ?? [])
}

test('a service that takes changes is healthy; HEAD says so too, OPTIONS lists the methods', async t => {
  const { url } = await startService(t)
  const { status, text, headers } = await call(t, url, 'GET', '/healthz')
  assert.deepEqual([status, text, headers['cache-control']], [200, OK, 'no-store'])
  const head = await call(t, url, 'HEAD', '/healthz')
  assert.deepEqual([head.status, head.text, head.headers['content-length']], [200, '', String(OK.length)])
  assert.equal((await call(t, url, 'OPTIONS', '/healthz')).headers['allow'], 'GET, HEAD, OPTIONS')
  assert.equal((await call(t, url, 'POST', '/healthz')).status, 405)
})

test('a full disk counts as a failed journal in the metrics', async t => {
  const { url, service } = await startService(t)
  breakDisk(t, { of: 'append', code: 'ENOSPC', forGood: true })
  await assert.rejects(createEntry(service.store, ENTRY, null))
  assert.equal((await call(t, url, 'GET', '/healthz')).status, 503)
  assert.deepEqual(samples(await metricsOf(t, url), 'pes_journal_failed'), { pes_journal_failed: 1 })
})

test('a failed journal is not healthy, for a reason without a path; the operator sees the path', async t => {
  const { url, folder, warnings, service } = await startService(t)
  await createEntry(service.store, ENTRY, null)
  rmSync(join(folder, 'journal.jsonl'))
  for (let i = 0; i < 2; i++) {
    const { status, text } = await call(t, url, 'GET', '/healthz')
    assert.deepEqual([status, text], [503, FAILED])
  }
  assert.equal((await call(t, url, 'HEAD', '/healthz')).status, 503)
  assert.equal((await call(t, url, 'GET', '/api/getPassword/1')).status, 200, 'reads go on')
  assert.deepEqual(samples(await metricsOf(t, url), 'pes_journal_failed'), { pes_journal_failed: 1 })
  assert.deepEqual(warnings.filter(line => line.includes('was removed')).length, 1)
})

test('health and metrics are not limited, and use nothing up', async t => {
  const { url } = await startService(t, { 'rate-limit': '1' })
  for (let i = 0; i < 5; i++) {
    for (const path of PATHS) {
      const { status, headers } = await call(t, url, 'GET', path)
      assert.deepEqual([status, headers['x-ratelimit-limit']], [200, undefined], path)
    }
  }
  assert.equal((await call(t, url, 'GET', '/api/getPassword/1')).status, 404)
  assert.equal((await call(t, url, 'GET', '/api/getPassword/1')).status, 429)
  assert.equal((await call(t, url, 'GET', '/healthz')).status, 200)
})

test('only this machine may ask, not through a proxy, or another with any token; no web page may', async t => {
  const shutFlags = { 'trust-proxy': '127.0.0.1', 'allowed-hosts': 'vault.example' }
  const shut = await startProtected(t, shutFlags)
  const token = await tokenOf(shut, undefined, [])
  const pages = ['Host: evil.example', 'Sec-Fetch-Site: cross-site', 'Sec-Fetch-Site: same-site']
  const never = [...pages, REMOTE]
  const cases: readonly (readonly [url: string, status: number, fields: readonly string[], token?: string])[] = [
    ...[await startService(t), await startService(t, { 'trust-proxy': '127.0.0.1' })].flatMap(({ url }) => [
      ...[...never, 'X-Forwarded-For: 127.0.0.1', 'X-Forwarded-For: ', 'X-Forwarded-Proto: https',
        'Origin: http://evil.example',
        'X-Real-IP: 203.0.113.7', 'X-Forwarded-Host: vault.example', 'Forwarded: for=203.0.113.7', 'Via: 1.1 proxy',
        'Via: 1.1 a, 1.1 b']
        .map(field => [url, 403, [field]] as const),
      [url, 200, []] as const, [url, 200, ['Sec-Fetch-Site: none']] as const
    ]),
    ...never.map(field => [shut.url, 403, [field]] as const),
    [shut.url, 200, []], [shut.url, 200, [REMOTE], token], [shut.url, 403, [REMOTE], 'pes_wrong'],
    [shut.url, 200, ['Host: vault.example']], [shut.url, 200, ['Sec-Fetch-Site: none']]
  ]
  for (const path of PATHS) {
    for (const [url, expected, fields, token] of cases) {
      const { status, text, headers } = await call(t, url, 'GET', path, { fields, token, localAddress: '127.0.0.9' })
      assert.equal(status, expected, `${path} ${fields.join()}`)
      if (status === 403 && /^(X-|Forwarded|Via)/.test(fields[0]!)) assert.equal(text, NOT_LOCAL)
      if (url === shut.url && fields[0] === 'Host: evil.example') assert.match(text,
        /The Host of this request .* ALLOWED_HOSTS/)
      assert.deepEqual(Object.keys(headers).filter(name => name.startsWith('access-control-')), [])
    }
  }
})

test('HEALTH and METRICS each allow every client, or none', async t => {
  for (const [shown, hidden] of [['health', 'metrics'], ['metrics', 'health']] as const) {
    const { url } = await startService(t, { 'trust-proxy': '127.0.0.1', [shown]: 'public', [hidden]: 'off' })
    const path = { health: '/healthz', metrics: '/metrics' }
    assert.equal((await call(t, url, 'GET', path[shown], { fields: [REMOTE] })).status, 200)
    assert.equal((await call(t, url, 'GET', path[hidden])).status, 404)
  }
})

test('each answer is counted once, by its route and status, and none shows what was requested or stored', async t => {
  const { url, service, folder } = await startService(t, { 'rate-limit': '18' })
  const before = Object.keys(samples(await metricsOf(t, url), 'pes_http_requests_total'))
  assert.deepEqual(before, [], 'an answer counts once it is given')
  for (let i = 0; i < 3; i++) await call(t, url, 'POST', '/api/createPassword', { body: ENTRY })
  await call(t, url, 'POST', '/api/createPassword', { body: {} })
  await call(t, url, 'POST', '/api/createPassword', { body: 'text', fields: ['Content-Type: text/plain'] })
  await call(t, url, 'POST', '/api/updatePassword/1', { body: { usuario: 'eva' } })
  for (let i = 0; i < 2; i++) await call(t, url, 'POST', '/api/deletePassword/2')
  for (const id of [1, 2, 4, 'x']) await call(t, url, 'GET', `/api/getPassword/${id}`)
  await call(t, url, 'HEAD', '/api/getPassword/1')
  await call(t, url, 'GET', '/api/listPassword')
  for (let i = 0; i < 4; i++) await call(t, url, 'GET', `/api/unknown${i}`)
  for (let i = 0; i < 2; i++) await call(t, url, 'GET', '/api/listPassword')
  await call(t, url, 'GET', '/api/listPassword', { fields: ['Host: evil.example'] })
  for (const line of ['nonsense', 'CONNECT a:1 HTTP/1.1']) await exchange(t, url, `${line}\r\nHost: a\r\n\r\n`)

  const metrics = await metricsOf(t, url)
  const counted = {
    'metrics 200': 1, 'createPassword 200': 3, 'createPassword 400': 1, 'createPassword 415': 1,
    'updatePassword 200': 1, 'deletePassword 200': 2, 'getPassword 200': 3, 'getPassword 404': 2,
    'listPassword 200': 1, 'listPassword 403': 1, 'listPassword 429': 2, 'none 404': 4
  }
  assert.deepEqual(samples(metrics, 'pes_http_requests_total'), Object.fromEntries(Object.entries(counted).map(
    ([key, count]) => [`pes_http_requests_total{route="${key.split(' ')[0]}",status="${key.split(' ')[1]}"}`, count])))
  const durations = samples(metrics, 'pes_http_request_duration_seconds')
  const all = { createPassword: 5, getPassword: 5, listPassword: 4, none: 4, metrics: 1 }
  for (const [route, count] of Object.entries(all)) {
    assert.equal(durations[`pes_http_request_duration_seconds_count{route="${route}"}`], count, route)
    const sum = durations[`pes_http_request_duration_seconds_sum{route="${route}"}`]!
    assert.ok(sum > 0 && sum < 10, `${route} took ${sum} s`)
  }
  assert.deepEqual(samples(metrics, 'pes_http_malformed_requests_total'), {
    'pes_http_malformed_requests_total{status="400"}': 1, 'pes_http_malformed_requests_total{status="405"}': 1
  })
  assert.deepEqual(samples(metrics, 'pes_entries'), { 'pes_entries{status="active"}': 2,
    'pes_entries{status="deleted"}': 1 })
  assert.equal(samples(metrics, 'pes_journal_write_duration_seconds')['pes_journal_write_duration_seconds_count'], 5)
  assert.equal(service.store.journal.status().records, 6)
  const single = {
    pes_journal_records: 6, pes_journal_write_errors_total: 0, pes_journal_queue_length: 0, pes_journal_failed: 0,
    pes_rate_limit_clients: 1
  }
  for (const [name, value] of Object.entries(single)) assert.deepEqual(samples(metrics, name), { [name]: value })
  const { text } = await call(t, url, 'GET', '/metrics')
  for (const word of ['unknown', folder, ...Object.values(ENTRY)]) assert.ok(!text.includes(word), word)
})

test('a write that failed is counted as a write and as a failure', () => {
  const metrics = new Metrics()
  metrics.journalWritten(20, true)
  metrics.journalWritten(30, false)
  const delay = watchEventLoop()
  const text = exposition(metrics, delay, memoryStore(),
    { rateLimitClients: 0, connections: 0, lostLines: 0, certificateEndMs: undefined })
  delay.disable()
  const families = parseExposition(text)
  assert.deepEqual(samples(families, 'pes_journal_write_errors_total'), { pes_journal_write_errors_total: 1 })
  const writes = samples(families, 'pes_journal_write_duration_seconds')
  assert.equal(writes['pes_journal_write_duration_seconds_count'], 2)
  assert.equal(writes['pes_journal_write_duration_seconds_sum'], 0.05)
  assert.equal(writes['pes_journal_write_duration_seconds_bucket{le="0.025"}'], 1)
})

test('how late timers were is told beyond the interval in which that is measured; before any was, nothing', () => {
  const load = { rateLimitClients: 0, connections: 0, lostLines: 0, certificateEndMs: undefined }
  for (const [delay, expected] of [
    [{ count: 4, mean: 12e6, percentile: (percent: number) => percent * 1e6 }, [0.04, 0.08, 0.089, 0.008, 4]],
    [{ count: 0, mean: NaN, percentile: () => 0 }, [0, 0, 0, 0, 0]]
  ] as const) {
    const values = samples(parseExposition(exposition(new Metrics(), delay as never, memoryStore(), load)),
      'nodejs_eventloop_delay_seconds')
    const keys = ['{quantile="0.5"}', '{quantile="0.9"}', '{quantile="0.99"}', '_sum', '_count']
    assert.deepEqual(Object.entries(values).map(([key, value]) => [key, Math.round(value * 1e6) / 1e6]),
      keys.map((key, i) => [`nodejs_eventloop_delay_seconds${key}`, expected[i]]))
  }
})

test('a service that is closed measures no more how late timers are', async t => {
  const ended = t.mock.method(Object.getPrototypeOf(monitorEventLoopDelay()), 'disable')
  const { service } = await startService(t)
  assert.equal(ended.mock.callCount(), 0)
  await service.close()
  assert.equal(ended.mock.callCount(), 1)
})

test('a client that leaves before its answer is counted with status 499', { timeout: 10_000 }, async t => {
  const { url } = await startService(t)
  const client = await connectRaw(t, url)
  await client.send(message('POST', '/api/createPassword', '{"password":').subarray(0, -3))
  await call(t, url, 'GET', '/healthz')
  client.destroy()
  const key = 'pes_http_requests_total{route="createPassword",status="499"}'
  for (;;) if (samples(await metricsOf(t, url), 'pes_http_requests_total')[key] === 1) return
})

test('the process reports its memory, its processor time, its start, and its connections', async t => {
  const { url } = await startService(t)
  const cpuSeconds = (): number => Object.values(process.cpuUsage()).reduce((sum, one) => sum + one) / 1e6
  const cpuBefore = cpuSeconds()
  const metrics = await metricsOf(t, url)
  const value = (name: string): number => samples(metrics, name)[name]!
  assert.ok(Math.abs(value('process_resident_memory_bytes') / process.memoryUsage().rss - 1) < 0.5)
  assert.ok(value('nodejs_heap_size_used_bytes') > 1e6)
  assert.ok(value('nodejs_heap_size_used_bytes') <= value('nodejs_heap_size_total_bytes'))
  assert.ok(value('nodejs_external_memory_bytes') > 0)
  assert.ok(value('process_cpu_seconds_total') >= cpuBefore && value('process_cpu_seconds_total') <= cpuSeconds())
  assert.ok(Math.abs(value('process_start_time_seconds') - (Date.now() / 1000 - process.uptime())) < 2)
  assert.equal(value('pes_http_connections'), 1)
  // 1, so that it can be multiplied with to add its labels to others.
  assert.deepEqual(samples(metrics, 'pes_build_info'),
    { [`pes_build_info{node="${process.version}",version="${VERSION}"}`]: 1 })
})

test('a blocked event loop is seen', async t => {
  const { url } = await startService(t)
  await new Promise(resolve => setTimeout(resolve, 50))
  const start = performance.now()
  while (performance.now() - start < 400); // on purpose
  await new Promise(resolve => setTimeout(resolve, 50))
  const delays = samples(await metricsOf(t, url), 'nodejs_eventloop_delay_seconds')
  assert.ok(delays['nodejs_eventloop_delay_seconds{quantile="0.99"}']! > 0.3, JSON.stringify(delays))
  assert.ok(delays['nodejs_eventloop_delay_seconds{quantile="0.5"}']! < 0.1, JSON.stringify(delays))
})
