/** The operator's routes for an import, on a store that is busy. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Failure } from '../../src/errors.ts'
import { importRoutes } from '../../src/parts/operator/import-routes.ts'
import type { Reply } from '../../src/http/reply.ts'
import { memoryStore } from '../support/compose.ts'

test('an import that a full queue refused can be committed again, and after that only once', async () => {
  const store = memoryStore()
  const [begin, add, commit] = importRoutes(store)
  const call = async (route: typeof begin, body?: object): Promise<Reply> => route!.handle({
    head: { method: 'POST', path: '/' }, params: {}, body, client: '', isGone: () => false, session: undefined
  })
  const { id } = JSON.parse(String((await call(begin)).body))
  await call(add, { id, entries: [{ password: 'p', sistema: 's', usuario: 'u', status: 1 }] })
  const { commit: commitToStore } = store
  store.commit = () => Promise.reject(new Failure('queue-full', 'many wait'))
  await assert.rejects(call(commit, { id }), { code: 'queue-full' })
  store.commit = commitToStore
  assert.equal((await call(commit, { id })).body, '{"first":1}')
  assert.equal((await call(commit, { id })).status, 409)
  assert.equal(store.state.entries.count, 1)
})
