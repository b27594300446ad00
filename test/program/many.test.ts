/** The program with many entries: none of them may get lost among the others. */
import { strict as assert } from 'node:assert'
import { test, type TestContext } from 'node:test'
import { startProgram } from '../support/program.ts'
import { ask, connectRaw, message } from '../support/raw.ts'
import { freshFolder } from '../support/service.ts'

const ENTRIES = 30_000
const CONNECTIONS = 64

test('§4.1 list: 30,000 entries created by 64 clients are all there, ascending, the same after a restart', async t => {
  const data = freshFolder(t)
  const timed = async <T>(what: string, act: () => Promise<T>): Promise<T> => {
    const startMs = performance.now()
    const result = await act()
    const seconds = (performance.now() - startMs) / 1000
    t.diagnostic(`${what}: ${seconds.toFixed(2)} s, ${Math.round(ENTRIES / seconds)} entries/s`)
    return result
  }
  const first = await startProgram(t, { flags: { data } })
  let sent = 0
  const createAll = async (t: TestContext): Promise<void> => {
    const client = await connectRaw(t, first.url)
    while (sent < ENTRIES) {
      const n = sent++
      await client.send(message('POST', '/api/createPassword',
        JSON.stringify({ password: `clave-${n}`, sistema: `sistema ñ ${n % 97}`, usuario: `u${n % 1009}` })))
      assert.equal((await client.answer()).status, 200)
    }
    client.destroy()
  }
  await timed('create', () => Promise.all(Array.from({ length: CONNECTIONS }, () => createAll(t))))

  const list = message('GET', '/api/listPassword')
  const { body: before, json: entries } = await timed('list', () => ask(t, first.url, list))
  assert.deepEqual(entries.map(({ id }: { id: number }) => id), Array.from({ length: ENTRIES }, (_, i) => i + 1))
  const numbers = new Set<number>()
  for (const { password, sistema } of entries) {
    const n = Number(password.slice('clave-'.length))
    assert.equal(sistema, `sistema ñ ${n % 97}`)
    numbers.add(n)
  }
  assert.ok(numbers.size === ENTRIES && numbers.has(0) && numbers.has(ENTRIES - 1))

  assert.equal((await first.stop()).code, 0)
  const second = await timed('restart', () => startProgram(t, { flags: { data } }))
  assert.match(second.stdout, /^journal +30000 records, 30000 entries \(30000 active\)$/m)
  const { body: after } = await timed('list again', () => ask(t, second.url, list))
  assert.ok(after.equals(before), 'the list is byte-identical')
  assert.equal((await second.stop()).code, 0)
})
