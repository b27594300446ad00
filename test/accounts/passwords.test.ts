/** Password hashes: their form, their cost, and how many are computed at once. */
import assert from 'node:assert/strict'
import { AsyncLocalStorage, createHook } from 'node:async_hooks'
import { scryptSync } from 'node:crypto'
import { test } from 'node:test'
import { Failure } from '../../src/errors.ts'
import { MAX_HASHES, MAX_HASH_QUEUE, MAX_HASH_WAIT_MS, MAX_KNOWN_CLIENTS } from '../../src/limits.ts'
import { KnownClients } from '../../src/accounts/logins.ts'
import { PasswordHasher } from '../../src/accounts/passwords.ts'
import { CHEAP, hashAtFullCost } from '../support/hashes.ts'

const cheap = (): PasswordHasher => new PasswordHasher(CHEAP)

test('a hash is a PHC string that scrypt gives for N=2^15, r=8, p=3 and a salt of 16 bytes', async t => {
  hashAtFullCost(t)
  const hasher = new PasswordHasher()
  const phc = await hasher.hash('secreto')
  const [, salt = '', hash = ''] =
    /^\$scrypt\$ln=15,r=8,p=3\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/.exec(phc) ?? assert.fail(phc)
  const expected = scryptSync('secreto', Buffer.from(salt, 'base64'), 32, { N: 2 ** 15, r: 8, p: 3, maxmem: 2 ** 27 })
  assert.equal(hash, expected.toString('base64').replaceAll('=', ''))
  assert.equal(await hasher.verify('secreto', phc), true)
  assert.equal(await hasher.verify('secreto', phc.slice(0, -2)), false, 'a part of a hash')
})

test('the same password has another salt each time, and both are right', async () => {
  const hasher = cheap()
  const [a, b] = [await hasher.hash('x'), await hasher.hash('x')]
  assert.notEqual(a.split('$')[3], b.split('$')[3])
  for (const phc of [a, b]) assert.equal(await hasher.verify('x', phc), true)
})

test('every part of a password counts, its case, its spaces, its end, and any Unicode', async () => {
  const hasher = cheap()
  const phc = await hasher.hash(' contraseña 密碼 🔑')
  assert.equal(await hasher.verify(' contraseña 密碼 🔑', phc), true)
  for (const wrong of ['contraseña 密碼 🔑', ' Contraseña 密碼 🔑', ' contraseña 密碼 ', ' contrasena 密碼 🔑', '']) {
    assert.equal(await hasher.verify(wrong, phc), false, wrong)
  }
})

test('a password is the same however its letters are composed', async () => {
  const phc = await cheap().hash('contrase\u00f1a')
  assert.equal(await cheap().verify('contrasen\u0303a', phc), true)
})

test('a password with half a surrogate pair is wrong, also if its bytes would be those that were hashed', async () => {
  const phc = await cheap().hash('\ufffd'.repeat(12))
  for (const half of ['\ud801', '\udc01']) assert.equal(await cheap().verify(half.repeat(12), phc), false)
  assert.equal(await cheap().verify('\ufffd'.repeat(12), phc), true)
})

test('without a user a password is wrong, whichever it is', async () => {
  for (const password of ['', 'x', 'correct']) assert.equal(await cheap().verify(password, undefined), false)
})

for (const cost of [{ ln: 3, r: 1, p: 1 }, { ln: 5, r: 1, p: 1 }, { ln: 3, r: 2, p: 2 }]) {
  test(`a hash that was made at the cost ${JSON.stringify(cost)} is right at another`, async () => {
    const phc = await new PasswordHasher(cost).hash('x')
    assert.deepEqual([await cheap().verify('x', phc), await cheap().verify('y', phc)], [true, false])
  })
}

test('what is no scrypt PHC string is a broken invariant', async () => {
  const argon2 = '$argon2id$v=19$m=1,t=1,p=1$AAAA$AAAA'
  const wrong = ['', 'x', '$scrypt$ln=4,r=1,p=1$AAAA', argon2, '$scrypt$ln=4,r=1,p=1$$AA']
  for (const phc of wrong) await assert.rejects(cheap().verify('x', phc), /not an scrypt PHC string/)
})

test('two are computed at once', async t => {
  assert.equal(MAX_HASHES, 2)
  const running = new Set<number>()
  let most = 0
  const hook = createHook({
    init: (id, type) => { if (type === 'SCRYPTREQUEST') most = Math.max(most, running.add(id).size) },
    before: id => { running.delete(id) }
  }).enable()
  t.after(() => { hook.disable() })
  const hasher = new PasswordHasher({ ln: 10, r: 8, p: 1 })
  await Promise.all(Array.from({ length: 20 }, (_, i) => hasher.hash(`password ${i}`, i % 2 === 0)))
  assert.equal(most, 2)
})

/** How each call ended, in this order: its place in the order of ends, or `busy`. */
async function endsOf(calls: readonly boolean[]): Promise<readonly (number | 'busy')[]> {
  const hasher = cheap()
  let ended = 0
  return Promise.all(calls.map(isKnown => hasher.verify('x', undefined, isKnown).then(() => ended++, error => {
    assert.ok(error instanceof Failure && error.code === 'hashes-busy', String(error))
    return 'busy' as const
  })))
}

test('of the calls that wait the known ones come first, each kind in order', async t => {
  const caller = new AsyncLocalStorage<number>()
  const begun: number[] = []
  const hook = createHook({
    init: (_, type) => { if (type === 'SCRYPTREQUEST') begun.push(caller.getStore()!) }
  }).enable()
  t.after(() => { hook.disable() })
  const hasher = cheap()
  const calls = Array.from({ length: MAX_HASHES + 40 }, (_, i) => i)
  const isKnown = (i: number): boolean => i % 4 === 3
  await Promise.all(calls.map(i => caller.run(i, () => hasher.verify('x', undefined, isKnown(i)))))
  const waited = calls.slice(MAX_HASHES)
  const inOrder = [...waited.filter(isKnown), ...waited.filter(i => !isKnown(i))]
  assert.deepEqual(begun, [...calls.slice(0, MAX_HASHES), ...inOrder])
})

test('in a full queue an unknown call is refused; a known one takes the place of the last unknown one', async () => {
  const full = Array<boolean>(MAX_HASHES + MAX_HASH_QUEUE).fill(false)
  const busyIn = async (...later: readonly boolean[]): Promise<readonly number[]> =>
    (await endsOf([...full, ...later])).flatMap((end, i) => end === 'busy' ? [i] : [])
  const last = full.length - 1
  assert.deepEqual(await busyIn(false, false), [last + 1, last + 2])
  assert.deepEqual(await busyIn(true, true, false), [last - 1, last, last + 3])
  const known = Array<boolean>(MAX_HASH_QUEUE + 1).fill(true)
  assert.deepEqual((await busyIn(...known)).at(-1), last + 1 + MAX_HASH_QUEUE,
    'a known one, too, if all that wait are known')
})

test('a hash that cannot be computed gives its place back', async () => {
  const hasher = cheap()
  // p this large needs more memory than is granted.
  const impossible = '$scrypt$ln=4,r=1,p=999$AAAA$AAAA'
  for (let i = 0; i < 5; i++) await assert.rejects(hasher.verify('x', impossible))
  const phc = await hasher.hash('x')
  assert.equal(await hasher.verify('x', phc), true)
})

test('a password that has waited too long is refused when its turn comes, and the next one is hashed', async t => {
  const realNow = performance.now.bind(performance)
  let ahead = 0
  t.mock.method(performance, 'now', () => realNow() + ahead)
  const hasher = cheap()
  const running = Array.from({ length: MAX_HASHES }, () => hasher.hash('x'))
  const late = hasher.hash('x')
  ahead = MAX_HASH_WAIT_MS + 1
  const soon = hasher.hash('x')
  await assert.rejects(late, { code: 'hashes-busy' })
  await Promise.all([...running, soon])
})

test('beyond the bound the clients seen longest ago are known no more; one seen again stays with the new ones', () => {
  const half = MAX_KNOWN_CLIENTS / 2
  const clients = new KnownClients()
  const add = (from: number): void => { for (let n = from; n < from + half; n++) clients.add(`client ${n}`) }
  const known = (): boolean[] => [1, 2, half, half + 1, 2 * half + 1].map(n => clients.has(`client ${n}`))
  add(1)
  add(half + 1)
  assert.deepEqual(known(), [true, true, true, true, false])
  clients.add('client 2')
  assert.deepEqual(known(), [false, true, false, true, false])
  add(2 * half + 1)
  assert.deepEqual(known(), [false, true, false, false, true])
})
