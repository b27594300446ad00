/** After a gap that a running service records: who may know what was set before it, as whoever may ask is told. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEntry, updateEntry } from '../../src/entries/entry-commands.ts'
import type { Groups } from '../../src/rights/rights.ts'
import { event } from '../../src/store/events.ts'
import { ANA, call, startProtected, tokenOf } from '../support/accounts.ts'

/** Abilities and groups, and of each of two entries of the group: whether `unrecordedBefore` is said. */
const CALLERS: readonly (readonly [who: string, abilities: readonly string[], groups: Groups, isTold: boolean])[] = [
  ['who sees all', ['*'], undefined, true],
  ['of the group', ['*'], ['a'], true],
  ['who may not read', ['entry:list', 'entry:knowledge'], undefined, true],
  ['without entry:knowledge', ['password:read'], undefined, false]
]

test('a gap is said at once, with its time, of passwords set before it, and of none that is set after it', async t => {
  const started = await startProtected(t, { 'extra-routes': 'on' },
    { [ANA]: ['*'], ...Object.fromEntries(CALLERS.map(([, abilities], n) => [`u${n}@x`, abilities])) })
  const { url, service: { store, accounts } } = started
  const tokens = await Promise.all(CALLERS.map(async ([, , groups], n) => {
    await accounts!.changeUser(`u${n}@x`, undefined, undefined, groups ?? null)
    return tokenOf(started, `u${n}@x`)
  }))
  const set = (n: number): Promise<unknown> =>
    createEntry(store, { password: `p${n}`, sistema: 's', usuario: 'u', grupo: 'a' }, null)
  const times: string[] = []
  const gap = async (): Promise<void> => {
    while (Date.now() <= Date.parse(store.state.recorded)) await new Promise(resolve => setImmediate(resolve))
    await store.commit(() => [[event('recording.gap', null, { why: 'restored' })], undefined])
    times.push(store.state.recorded)
  }
  /** By caller: what whoKnows says of each entry, and listEntries in its rows. */
  const assertSaid = async (what: string, expected: readonly (string | undefined)[]): Promise<void> => {
    for (const [n, [who, , , isTold]] of CALLERS.entries()) {
      const token = tokens[n]
      const ask = (path: string): Promise<any> => call(t, url, 'GET', `/api/${path}`, { token })
      const told = expected.map(time => isTold ? time : undefined)
      const list = await ask('listEntries')
      assert.deepEqual(list.json.map((row: any) => row.unrecordedBefore), told, `listEntries, ${who}: ${what}`)
      const answers = await Promise.all(expected.map((_, i) => ask(`whoKnows/${i + 1}`)))
      assert.deepEqual(answers.map(({ status, json }) => [status, json.unrecordedBefore]),
        told.map(time => isTold ? [200, time] : [403, undefined]), `whoKnows, ${who}: ${what}`)
      const again = await call(t, url, 'GET', '/api/listEntries',
        { token, fields: [`If-None-Match: ${list.headers['etag']}`] })
      assert.equal(again.status, 304)
    }
  }
  await set(1)
  await set(2)
  await assertSaid('before a gap', [undefined, undefined])
  await gap()
  await assertSaid('after a gap', [times[0], times[0]])
  await set(3)
  await updateEntry(store, 1, { password: 'new' }, null)
  await updateEntry(store, 2, { usuario: 'another' }, null)
  await assertSaid('after what is set behind it', [undefined, times[0], undefined])
  await gap()
  assert.ok(times[1]! > times[0]!)
  await assertSaid('after a second gap', [times[1], times[1], times[1]])
})
