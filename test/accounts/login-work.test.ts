/**
 * Logins that fail do the same work, whoever the user is and whatever is wrong: so their time tells nothing. Work is
 * counted, since a clock shows it only roughly: each scrypt with its cost, each HMAC, each write.
 */
import assert from 'node:assert/strict'
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { after, test } from 'node:test'
import { event } from '../../src/store/events.ts'
import { MAX_HASHES } from '../../src/limits.ts'
import { newFactor } from '../../src/accounts/logins.ts'
import { codeAt, otpIn, stepAt } from '../../src/accounts/totp.ts'
import { PASSWORD, World } from '../support/accounts.ts'

const done: string[] = []
/** The passwords whose hashes have begun, in order. */
const begun: string[] = []
const { scrypt, createHmac } = crypto
const counted = crypto as { -readonly [N in 'scrypt' | 'createHmac']: (typeof crypto)[N] }
counted.scrypt = ((password: string, salt: Buffer, length: number, cost: crypto.ScryptOptions, then: never) => {
  begun.push(password)
  done.push(`scrypt ${salt.length} ${length} ${cost.N} ${cost.r} ${cost.p}`)
  scrypt(password, salt, length, cost, then)
}) as typeof scrypt
counted.createHmac = ((...given: Parameters<typeof createHmac>) => {
  done.push(`HMAC ${given[0]}`)
  return createHmac(...given)
}) as typeof createHmac
syncBuiltinESMExports()
after(() => {
  Object.assign(counted, { scrypt, createHmac })
  syncBuiltinESMExports()
})

test('logins that fail do the same work, whoever the user is, and whatever factor or password is wrong', async () => {
  const world = new World()
  const store = world.open()
  const { accounts } = store
  const factor = newFactor()
  const codeOf = (ahead: number): string => codeAt(otpIn(factor)!, stepAt(otpIn(factor)!, world.nowMs) + ahead)
  for (const name of ['plain', 'factor', 'removed', 'locked']) {
    await accounts.addUser(`${name}@x.org`, undefined, ['*'], PASSWORD)
  }
  await accounts.addUser('without@x.org', undefined, ['*'], null)
  await accounts.giveFactor('factor@x.org', factor, codeOf(0))
  await accounts.removeUser('removed@x.org')
  await store.commitAlone(() => [[event('password.changed', null, { id: 4, isLocked: true })], undefined])
  world.nowMs += 60_000
  const wrongCode = String((Number(codeOf(0)) + 1) % 1_000_000).padStart(6, '0')
  const ways: readonly (readonly [name: string, password: string, code?: string])[] = [
    ['plain', 'wrong'], ['plain', 'wrong', codeOf(0)], ['unknown', PASSWORD], ['unknown', PASSWORD, codeOf(0)],
    ['removed', PASSWORD], ['locked', PASSWORD], ['locked', PASSWORD, codeOf(0)], ['without', PASSWORD],
    ['factor', 'wrong'], ['factor', 'wrong', codeOf(0)], ['factor', PASSWORD], ['factor', PASSWORD, ''],
    ['factor', PASSWORD, wrongCode], ['factor', PASSWORD, codeOf(-5)], ['factor', PASSWORD, codeOf(-2)],
    ['factor', PASSWORD, 'no code at all']
  ]
  const work = async (name: string, password: string, code?: string): Promise<readonly string[]> => {
    const records = world.records.length
    done.length = 0
    const issued = await accounts.login({ email: `${name}@x.org`, password, code, client: '' }, undefined)
    assert.equal(issued, undefined, `${name} ${password} ${code}`)
    return [...done, `${world.records.length - records} records`]
  }
  const first = await work(...ways[0]!)
  assert.deepEqual(first, ['scrypt 16 32 16 1 1', 'HMAC SHA1', 'HMAC SHA1', 'HMAC SHA1', '0 records'])
  for (const way of ways) assert.deepEqual(await work(...way), first, way.join(' '))
  done.length = 0
  const code = codeOf(0)
  assert.ok(await accounts.login({ email: 'factor@x.org', password: PASSWORD, code, client: '' }, undefined))
  assert.deepEqual(await work('factor', PASSWORD, code), first, 'a used code')
})

test('the order of answers tells nothing of users, only whether a token came from the client’s address', async () => {
  const store = new World().open()
  const { accounts } = store
  for (const name of ['token', 'plain', 'removed', 'without']) {
    await accounts.addUser(`${name}@x.org`, undefined, ['*'], name === 'without' ? null : PASSWORD)
  }
  await accounts.removeUser('removed@x.org')
  const { token } = (await accounts.login({ email: 'token@x.org', password: PASSWORD, client: 'new' }, 1))!
  assert.ok(accounts.session(token, 'known'))
  const names = ['unknown', 'token', 'removed', 'plain', 'other', 'without', 'token']
  const logins = names.flatMap((name, i) => ['new', 'known'].map(client => ({ name, client, i })))
  begun.length = 0
  await Promise.all(logins.map(({ name, client, i }) =>
    accounts.login({ email: `${name}@x.org`, password: `${client} ${name} ${i}`, client }, 1)))
  const all = logins.map(({ name, client, i }) => `${client} ${name} ${i}`)
  const waited = all.slice(MAX_HASHES)
  const isKnown = (one: string): boolean => one.startsWith('known ')
  assert.deepEqual(begun,
    [...all.slice(0, MAX_HASHES), ...waited.filter(isKnown), ...waited.filter(one => !isKnown(one))])
})
