/** Which endpoint a client asks: what an endpoint is left for, and what not. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { EtcdClient } from '../../src/etcd/client.ts'
import { atEnd } from '../support/service.ts'

/** An endpoint that is no etcd. */
async function endpoint(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(t, () => { server.closeAllConnections(); server.close() })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

for (const [what, ends, expected] of [['silent', false, 'near'], ['cut off', true, 'far']] as const) {
  test(`a watch that is ${what} leaves the client at the ${expected} endpoint`, async t => {
    const near = await endpoint(t, (request, response) => {
      if (request.url !== '/v3/watch') { response.end('{"at":"near"}'); return }
      response.write('{"result":{}}\n')
      if (ends) setTimeout(() => response.destroy(), 50)
    })
    const far = await endpoint(t, (_request, response) => { response.end('{"at":"far"}') })
    const client = new EtcdClient({ endpoints: [near, far] })
    atEnd(t, () => client.close())
    const messages: unknown[] = []
    const { signal } = new AbortController()
    await assert.rejects(client.follow('/v3/watch', {}, message => messages.push(message), signal, 200))
    assert.equal(messages.length, 1)
    assert.equal((await client.ask('/v3/kv/txn', {}, 1_000)).at, expected)
  })
}
