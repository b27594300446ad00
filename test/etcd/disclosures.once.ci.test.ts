/** Who is told a password by which instance: one journal says it, and no instance answers what it cannot record. */
import { knowersOf } from '../../src/knowledge/exposure.ts'
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test, type TestContext } from 'node:test'
import { call, tokenOf } from '../support/accounts.ts'
import { etcdMissing, startCluster, type Member } from '../support/etcd.ts'
import { flagsOf } from '../support/instances.ts'
import type { RawAnswer } from '../support/raw.ts'
import { startService, type Started } from '../support/service.ts'

const [ANA, BEA] = ['ana@example.org', 'bea@example.org']
const FIELDS = { password: 'SECRET-1', sistema: 's', usuario: 'u' }

interface Pair {
  readonly one: Started
  readonly two: Started
  readonly member: Member
  readonly secret: Buffer
  ask(of: Started, who: string, method: string, path: string, body?: object): Promise<RawAnswer>
}

async function pair(t: TestContext, flags: Record<string, string> = {}): Promise<Pair> {
  const { members: [member] } = await startCluster(t)
  const secret = randomBytes(32)
  const all = async (): Promise<Record<string, string>> =>
    ({ ...await flagsOf(t, member!.url, secret), auth: 'bearer', 'extra-routes': 'on', ...flags })
  const [one, two] = [await startService(t, await all()), await startService(t, await all())]
  const tokens = new Map<string, string>()
  for (const email of [ANA, BEA]) {
    await one.service.accounts!.addUser(email, email, ['*'], null)
    tokens.set(email, await tokenOf(one, email))
  }
  return {
    one, two, member: member!, secret,
    ask: (of, who, method, path, body) => call(t, of.url, method, `/api/${path}`, { token: tokens.get(who), body })
  }
}

const told = ({ service: { store: { state } } }: Started): unknown => knowersOf(state, 1, true)
const records = ({ service: { store } }: Started): number => store.status().records

describe('on etcd', { concurrency: true, skip: etcdMissing() }, () => {
  test('what one instance has told is known to the other, which records it no more', async t => {
    const { one, two, ask } = await pair(t)
    await ask(one, ANA, 'POST', 'createPassword', FIELDS)
    assert.equal((await ask(two, BEA, 'GET', 'getPassword/1')).status, 200)
    const before = records(two)
    assert.equal((await ask(one, BEA, 'GET', 'listPassword')).status, 200)
    assert.deepEqual([told(one), records(one)], [[[1, 'read'], [2, 'read']], before])
    const { knows } = (await ask(one, ANA, 'GET', 'whoKnows/1')).json
    assert.deepEqual(knows.map(({ user, how }: any) => [user.email, how]), [[ANA, 'read'], [BEA, 'read']])
  })

  test('a read at one instance beside a change at the other tells what is recorded', async t => {
    const { one, two, ask } = await pair(t)
    await ask(one, ANA, 'POST', 'createPassword', FIELDS)
    for (let n = 2; n < 30; n++) {
      const [read] = await Promise.all([ask(two, BEA, 'GET', 'getPassword/1'),
        ask(one, ANA, 'POST', 'updatePassword/1', { password: `SECRET-${n}` })])
      await ask(two, ANA, 'GET', 'getPassword/1')
      const isNew = read!.json.passwords.password === `SECRET-${n}`
      assert.deepEqual(told(two), isNew ? [[1, 'read'], [2, 'read']] : [[1, 'read']], `change ${n}`)
    }
  })

  test('with STALE_READS=on and without etcd, users are answered what they know, and nothing else', async t => {
    const { one, two, member, ask } = await pair(t, { 'stale-reads': 'on' })
    await ask(one, ANA, 'POST', 'createPassword', FIELDS)
    await ask(one, ANA, 'POST', 'createPassword', { ...FIELDS, password: 'SECRET-2' })
    assert.equal((await ask(two, BEA, 'GET', 'getPassword/1')).status, 200)
    await member.stop('SIGKILL')
    for (const of of [one, two]) {
      for (const [who, path, isKnown] of [[ANA, 'getPassword/1', true], [ANA, 'listPassword', true],
        [BEA, 'getPassword/1', true], [BEA, 'getPassword/2', false], [BEA, 'listPassword', false]] as const) {
        const { status, text } = await ask(of, who, 'GET', path)
        assert.deepEqual([status === 200, text.includes('SECRET')], [isKnown, isKnown], `${who} ${path}: ${status}`)
      }
    }
    member.start()
    for (let status = 0; status !== 200;) ({ status } = await ask(two, BEA, 'GET', 'getPassword/2'))
    assert.equal(knowersOf(two.service.store.state, 2, true).length, 2)
  })

  test('an instance without tokens answers no secret while another one records who reads', async t => {
    const { one, two, member, secret, ask } = await pair(t)
    await ask(one, ANA, 'POST', 'createPassword', FIELDS)
    await two.service.close()
    const open = async (): Promise<Started> =>
      startService(t, { ...await flagsOf(t, member.url, secret), 'extra-routes': 'on' })
    const third = await open() // its start says that recording has ended
    const refused = await ask(one, BEA, 'GET', 'getPassword/1')
    assert.equal(refused.status, 200, 'who has a token is recorded again, which begins anew')
    for (const path of ['getPassword/1', 'listPassword']) {
      const { status, text } = await call(t, third.url, 'GET', `/api/${path}`)
      assert.deepEqual([status, text.includes('SECRET')], [503, false], path)
    }
    assert.equal((await call(t, third.url, 'GET', '/api/listEntries')).status, 200)
    const { knows, unrecordedBefore } = (await ask(one, ANA, 'GET', 'whoKnows/1')).json
    assert.deepEqual([knows.length, typeof unrecordedBefore], [2, 'string'])
  })
})
