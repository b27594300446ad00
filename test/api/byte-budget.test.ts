/** What all bodies that are worked on may hold together. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { ByteBudget } from '../../src/http/byte-budget.ts'
import { route } from '../../src/http/route.ts'
import { text } from '../../src/store/validate.ts'
import { MAX_BODIES_BYTES } from '../../src/limits.ts'
import { composeService } from '../support/compose.ts'
import { until } from '../support/program.ts'
import { send, startService } from '../support/service.ts'

test('what does not fit waits in its order, and what never fits is begun alone', () => {
  const budget = new ByteBudget(10)
  const begun: string[] = []
  const late: string[] = []
  const take = (name: string, bytes: number): void => budget.take(bytes, hasWaited => {
    begun.push(name)
    if (hasWaited) late.push(name)
  })
  take('a', 6)
  take('b', 4)
  take('c', 5)
  take('d', 1)
  assert.deepEqual(begun, ['a', 'b'])
  budget.give(4)
  assert.deepEqual(begun, ['a', 'b'], 'a small one does not overtake')
  budget.give(6)
  assert.deepEqual(begun, ['a', 'b', 'c', 'd'])
  take('huge', 100)
  take('e', 1)
  budget.give(5)
  assert.equal(begun.includes('huge'), false)
  budget.give(1)
  assert.deepEqual(begun.slice(4), ['huge'])
  budget.give(100)
  assert.deepEqual(begun.slice(4), ['huge', 'e'])
  assert.deepEqual(late, ['c', 'd', 'huge', 'e'])
})

test('any number that wait and end at once are begun one after the other', () => {
  const budget = new ByteBudget(1)
  let begun = 0
  budget.take(1, () => {})
  for (let n = 0; n < 100_000; n++) {
    budget.take(1, () => {
      begun++
      budget.give(1)
    })
  }
  budget.give(1)
  assert.equal(begun, 100_000)
})

test('work that throws where it begins does not keep others from beginning', () => {
  const budget = new ByteBudget(1)
  assert.throws(() => budget.take(1, () => { throw new Error('no') }), /no/)
  budget.give(1)
  let begun = 0
  budget.take(1, () => { begun++ })
  assert.equal(begun, 1)
})

test('a body gives back what no field asked for, so that others need not wait for its answer', async t => {
  const waiting: (() => void)[] = []
  const held = route({
    operation: 'hold', method: 'POST', path: '/api/hold', shape: { name: text },
    handle: () => new Promise(resolve => waiting.push(() => resolve({ status: 204 })))
  })
  const { url } = await composeService(t, { routes: [held] })
  const body = { name: 'ana', other: 'x'.repeat(60_000) }
  const most = Math.ceil(MAX_BODIES_BYTES / 60_000)
  const answers = Array.from({ length: most + 6 }, () => send(url, 'POST', '/api/hold', body))
  await until('all of them are held', () => waiting.length === answers.length)
  for (const end of waiting.splice(0)) end()
  for (const { status } of await Promise.all(answers)) assert.equal(status, 204)
  // What was given back was given back once: of bodies that are asked for in full, no more fit than did before.
  const full = { name: 'x'.repeat(60_000) }
  const fit = Math.floor(MAX_BODIES_BYTES / JSON.stringify(full).length)
  let answered = 0
  const others = Array.from({ length: fit + 6 }, () => send(url, 'POST', '/api/hold', full).then(() => { answered++ }))
  await until('as many as fit are held', () => waiting.length >= fit)
  await new Promise(resolve => setTimeout(resolve, 200))
  assert.equal(waiting.length, fit)
  await until('all are answered', () => {
    for (const end of waiting.splice(0)) end()
    return answered === others.length
  })
})

test('what a body has held is given back once it is answered, with whatever', { timeout: 60_000 }, async t => {
  const { url } = await startService(t, { 'max-body-bytes': String(MAX_BODIES_BYTES) })
  const long = 'x'.repeat(MAX_BODIES_BYTES - 200)
  for (const [body, status] of [[{ password: long }, 400], [[long], 400], [{ password: long, sistema: 's', usuario: 'u' }, 200]] as const) {
    for (let n = 0; n < 2; n++) assert.equal((await send(url, 'POST', '/api/createPassword', body)).status, status)
  }
})
