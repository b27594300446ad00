/** Logins at several instances on etcd: a code counts once at all of them, and a removed user is in at none. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { newFactor } from '../../src/accounts/logins.ts'
import { codeAt, otpIn, stepAt } from '../../src/accounts/totp.ts'
import { ANA, call, PASSWORD } from '../support/accounts.ts'
import { etcdMissing } from '../support/etcd.ts'
import { startPair } from '../support/instances.ts'
import { freshFolder, type Started } from '../support/service.ts'

const NO_ETCD = etcdMissing()
const FLAGS = { auth: 'bearer', 'login-limit': '0', 'token-ttl-minutes': '60' }

test('a code counts once, also if two instances are given it at once, or one of them is behind', {
  skip: NO_ETCD
}, async t => {
  const { near, behind } = await startPair(t, FLAGS)
  const factor = newFactor()
  const otp = otpIn(factor)!
  const step = stepAt(otp, Date.now())
  await near.service.accounts!.addUser(ANA, undefined, ['*'], PASSWORD)
  await near.service.accounts!.giveFactor(ANA, factor, codeAt(otp, step - 1))
  const login = async ({ url }: Started, code?: string): Promise<number> =>
    (await call(t, url, 'POST', '/api/login', { body: { email: ANA, password: PASSWORD, code } })).status
  assert.equal(await login(behind), 401, 'it asks for a code, though it had not seen the user before')
  const code = codeAt(otp, step)
  assert.deepEqual((await Promise.all([login(near, code), login(behind, code)])).sort(), [200, 401])
  const next = codeAt(otp, step + 1)
  assert.deepEqual([await login(near, next), await login(behind, next), await login(near, next)], [200, 401, 401])
})

test('by company login nobody is in whom another instance has removed, and the token counts at all of them', {
  skip: NO_ETCD
}, async t => {
  const secret = randomBytes(32).toString('base64')
  const file = join(freshFolder(t), 'secret')
  writeFileSync(file, secret, { mode: 0o600 })
  const { near, behind } = await startPair(t, {
    ...FLAGS, 'trust-proxy': '127.0.0.1', 'proxy-login-header': 'Remote-Email', 'proxy-login-secret-file': file
  })
  const fields = ['Sec-Fetch-Site: same-origin', `X-Proxy-Login-Secret: ${secret}`, `Remote-Email: ${ANA}`]
  const login = ({ url }: Started): ReturnType<typeof call> =>
    call(t, url, 'POST', '/api/proxyLogin', { body: {}, fields })
  await near.service.accounts!.addUser(ANA, undefined, ['*'], null)
  const { status, json: { token } } = await login(behind)
  assert.equal(status, 200, 'it is asked for the newest users')
  assert.equal((await call(t, near.url, 'GET', '/api/listPassword', { token })).status, 404)
  await near.service.accounts!.removeUser(ANA)
  assert.equal((await login(behind)).status, 401)
  await near.service.accounts!.addUser(ANA, undefined, ['*'], null)
  const both = await Promise.all([near.service.accounts!.removeUser(ANA), login(behind)])
  assert.equal(near.service.accounts!.tokens().length, 0, `whichever was first (${both[1].status}), no token is left`)
})
