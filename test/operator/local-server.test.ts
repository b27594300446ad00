/** How the process that has the data folder answers the operator's program. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { disk } from '../../src/journal/files.ts'
import { lockFolder } from '../../src/journal/lock.ts'
import { requestLocal } from '../../src/parts/operator/socket/local-client.ts'
import { serveOperations } from '../../src/parts/operator/socket/local-server.ts'
import type { Operated } from '../../src/parts/operator/socket/operation-table.ts'
import { freshFolder } from '../support/service.ts'

test('a command that comes during the stop is told to come again, as before anything serves', async t => {
  const lock = await lockFolder(disk, freshFolder(t))
  t.after(() => lock.release())
  const ask = async (): Promise<readonly unknown[]> => {
    const { status, body } = await requestLocal(lock.socket, 'status', {})
    return [status, (body as { readonly message: string }).message]
  }
  assert.deepEqual(await ask(), [503, 'the service opens or closes just now'])
  const end = serveOperations(lock.server, {} as Operated) // no operation is begun
  await end()
  assert.deepEqual(await ask(), [503, 'the service stops just now'])
})
