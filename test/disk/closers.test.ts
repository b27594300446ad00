/** What was opened is released, whatever is thrown on the way. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closeAll } from '../../src/service.ts'

type Close = () => void | Promise<void>

/** Closers of three, of which those named throw; `closed` is the order in which they were asked. */
function three(...failing: readonly number[]): { readonly closers: Close[], readonly closed: number[] } {
  const closers: Close[] = []
  const closed: number[] = []
  for (const n of [1, 2, 3]) {
    closers.push(n === 2 ? async () => { await null; close(n) } : () => close(n))
  }
  const close = (n: number): void => {
    closed.push(n)
    if (failing.includes(n)) throw new Error(`of ${n}`)
  }
  return { closers, closed }
}

test('the last opened is released first, and each is released once', async () => {
  const { closers, closed } = three()
  await closeAll(closers)
  await closeAll(closers)
  assert.deepEqual(closed, [3, 2, 1])
})

for (const failing of [[1], [2], [3], [2, 1], [3, 2, 1]] as const) {
  test(`all are released though ${failing.join(' and ')} fail; the first error is the one that is thrown`, async () => {
    const { closers, closed } = three(...failing)
    await assert.rejects(closeAll(closers), { message: `of ${failing[0]}` })
    assert.deepEqual(closed, [3, 2, 1])
  })
}
