import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { assertCreatedOnce, assertLinearizable, FIELDS, runClients } from '../support/instances.ts'
import { isLinearizable, type Operation } from '../support/linearizable.ts'

const operation = (kind: 'write' | 'read', value: string, startMs: number, endMs: number): Operation =>
  ({ kind, value, startMs, endMs })

const HISTORIES: readonly (readonly [what: string, isFine: boolean, history: readonly Operation[]])[] = [
  ['nothing', true, []],
  ['a read of what was written', true, [operation('write', 'a', 0, 1), operation('read', 'a', 2, 3)]],
  ['a read of what was there before the write', false, [operation('write', 'a', 0, 1), operation('read', '', 2, 3)]],
  ['a read during a write, either way', true, [operation('write', 'a', 0, 9), operation('read', '', 1, 2)]],
  ['a read that goes back behind another', false, [
    operation('write', 'a', 0, 9), operation('read', 'a', 1, 2), operation('read', '', 3, 4)
  ]],
  ['a write of unknown outcome that is seen late', true, [
    operation('write', 'a', 0, Infinity), operation('write', 'b', 1, 2), operation('read', 'b', 3, 4),
    operation('read', 'a', 5, 6)
  ]],
  ['a write of unknown outcome that is seen and is gone again', false, [
    operation('write', 'a', 0, Infinity), operation('read', 'a', 1, 2), operation('read', '', 3, 4)
  ]],
  ['a read of what nobody wrote', false, [operation('read', 'x', 0, 1)]],
  ['two writes at once, seen in two orders', false, [
    operation('write', 'a', 0, 9), operation('write', 'b', 0, 9), operation('read', 'a', 10, 11),
    operation('read', 'b', 12, 13)
  ]]
]

for (const [what, isFine, history] of HISTORIES) {
  test(`${what}: ${isFine ? 'linearizable' : 'not linearizable'}`, () => {
    assert.equal(isLinearizable('', history), isFine)
  })
}

type Flaw = 'none' | 'stale read' | 'update made again' | 'create made again' | 'create lost'

/**
 * A service in a few lines, with a mistake in every third request of an operation: a loaded machine makes few in a
 * round; gives its address.
 */
async function startFlawed(t: TestContext, flaw: Flaw): Promise<string> {
  const entries: string[] = [FIELDS.password, FIELDS.password]
  const before = [...entries]
  let requests = 0
  const asked = new Map<string, number>()
  /** What is done once so many requests have come, as soon or late as these are. */
  const later: { readonly at: number, readonly act: () => void }[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += String(chunk)
    const id = Number(request.url!.split('/').at(-1)) - 1
    requests++
    const operation = request.url!.split('/')[2]!
    const nth = (asked.get(operation) ?? 0) + 1
    asked.set(operation, nth)
    const isFlawed = nth % 3 === 0
    while (later[0] !== undefined && later[0].at <= requests) later.shift()!.act()
    const password: string = text === '' ? '' : JSON.parse(text).password
    if (request.url!.startsWith('/api/create')) {
      if (!(isFlawed && flaw === 'create lost')) entries.push(password)
      if (isFlawed && flaw === 'create made again') entries.push(password)
    } else if (request.url!.startsWith('/api/update')) {
      if (entries[id] !== password) before[id] = entries[id]!
      entries[id] = password
      const again = { at: requests + 7, act: () => { entries[id] = password } }
      if (isFlawed && flaw === 'update made again') later.push(again)
    }
    const shown = isFlawed && flaw === 'stale read' ? before[id] : entries[id]
    response.end(JSON.stringify(request.url === '/api/listPassword' ? entries.map(password => ({ password }))
      : { passwords: { password: shown } }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => { server.closeAllConnections(); server.close() })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

for (const flaw of ['none', 'stale read', 'update made again', 'create made again', 'create lost'] as const) {
  test(`clients and checker ${flaw === 'none' ? 'pass a good service' : `find a planted flaw: ${flaw}`}`, async t => {
    const check = async (): Promise<void> => {
      for (let rounds = flaw === 'none' ? 3 : 20; rounds > 0; rounds--) {
        const url = await startFlawed(t, flaw)
        const seen = await runClients([url], 4, 2, 400, 3)
        assertLinearizable(seen)
        await assertCreatedOnce(seen, url)
      }
    }
    if (flaw === 'none') await check()
    else await assert.rejects(check, assert.AssertionError)
  })
}
