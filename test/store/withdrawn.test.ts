/** A change that waits for a rewrite: answered 503 after a few seconds, and not carried out later. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { composeService, withAccounts } from '../support/compose.ts'
import { compact } from '../support/rewrite.ts'
import { send } from '../support/service.ts'

const fields = (password: string) => ({ password, sistema: 's', usuario: 'u' })

test('a change that waits behind a long rewrite is answered 503 with Retry-After, and is not there afterwards', async t => {
  const { store, url } = await composeService(t)
  const create = (password: string): ReturnType<typeof send> => send(url, 'POST', '/api/createPassword', fields(password))
  await create('before')
  let isHeld = true
  const rewriting = compact(withAccounts(store), false, () => {}, made =>
    ({ ...made, compare: function * () { while (isHeld) yield } }))
  const late = await Promise.all([create('late'), send(url, 'POST', '/api/updatePassword/1', { password: 'late' })])
  assert.deepEqual(late.map(({ status, headers }) => [status, headers.get('Retry-After')]), [[503, '1'], [503, '1']])
  assert.equal((await send(url, 'GET', '/api/getPassword/1')).json.passwords.password, 'before', 'reads go on')
  const inTime = create('in time')
  isHeld = false
  await rewriting
  assert.equal((await inTime).status, 200)
  const { json } = await send(url, 'GET', '/api/listPassword')
  assert.deepEqual(json.map(({ password }: { password: string }) => password), ['before', 'in time'])
})
