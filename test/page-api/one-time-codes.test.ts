/** The secret of one-time codes, which is taken and never answered, and the codes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openService } from '../../src/embedding/embedded-service.ts'
import { codeAt, otpIn, stepAt } from '../../src/accounts/totp.ts'
import { call, startProtected, tokenOf } from '../support/accounts.ts'
import { event } from '../../src/store/events.ts'
import { fileStore } from '../support/stores.ts'
import { compact } from '../support/rewrite.ts'
import { freshFolder, send, startService } from '../support/service.ts'

const FLAGS = { 'extra-routes': 'on' }
const OTP = 'JBSWY3DPEHPK3PXP'
const FIELDS = { password: 'p', sistema: 's', usuario: 'u' }
const INVALID = { otp: ['The otp field must be a base32 secret or an otpauth address.'] }

const OTHER = 'otpauth://totp/x?secret=MZXW6YTBOIMZXW6YTBOI&algorithm=SHA256&digits=8&period=300'

/** Of the text at a moment between two moments. */
function assertCode(text: string, { code, seconds, status }: any, fromMs: number): void {
  const otp = otpIn(text)!
  const steps = [stepAt(otp, fromMs), stepAt(otp, Date.now())]
  assert.ok(steps.some(step => codeAt(otp, step) === code), `${code} for ${text}`)
  assert.ok(seconds >= 1 && seconds <= otp.period && status === 200, `${seconds} seconds, status ${status}`)
}

test('no answer has the secret of codes; a change of it changes the tag, and the history names it', async t => {
  const { url } = await startService(t, FLAGS)
  const answers: string[] = []
  const ask = async (method: string, path: string, body?: unknown): Promise<Awaited<ReturnType<typeof send>>> => {
    const answer = await send(url, method, `/api/${path}`, body)
    answers.push(answer.text + JSON.stringify([...answer.headers]))
    return answer
  }
  await ask('POST', 'createPassword', FIELDS)
  const tags = [(await ask('GET', 'getPassword/1')).headers.get('etag')]
  for (const otp of [OTP, OTHER, '']) {
    const { json, headers } = await ask('POST', 'updatePassword/1', { otp })
    assert.deepEqual(json.password, { id: 1, ...FIELDS, status: 1 })
    tags.push(headers.get('etag'))
    assert.equal((await ask('GET', 'getPassword/1')).headers.get('etag'), tags.at(-1))
    const [row] = (await ask('GET', 'listEntries')).json
    assert.equal(row.otp, otp === '' ? undefined : true)
  }
  assert.equal(new Set(tags).size, 3)
  assert.equal(tags[3], tags[0], 'cleared, the entry is as it was')
  await ask('POST', 'createPassword', { ...FIELDS, otp: OTP, notas: 'n' })
  for (const path of ['listPassword', 'getPassword/2', 'listEntries', 'oneTimeCode/2']) await ask('GET', path)
  const namesOf = async (id: number): Promise<string[][]> =>
    (await ask('GET', `historyPassword/${id}`)).json.history.map(({ fields }: { fields: string[] }) => fields)
  assert.deepEqual(await namesOf(1), [['otp'], ['otp'], ['otp'], ['password', 'sistema', 'usuario']])
  assert.deepEqual(await namesOf(2), [['password', 'sistema', 'usuario', 'notas', 'otp']])
  for (const path of ['formerPassword/1/2', 'formerPassword/2/1', 'formerNotes/2/1']) await ask('GET', path)
  await ask('POST', 'deletePassword/2')
  for (const path of ['deletedPasswords', 'deletedPasswords/3', 'getPassword/2']) await ask('GET', path)
  for (const secret of [OTP, 'MZXW6YTBOIMZXW6YTBOI']) assert.ok(answers.every(text => !text.includes(secret)), secret)
})

test('the code is that of this moment, also after a restart and a compaction, and for a deleted entry', async t => {
  const folder = freshFolder(t)
  const ask = async (url: string, id: number): Promise<void> => {
    const fromMs = Date.now()
    const { json } = await send(url, 'GET', `/api/oneTimeCode/${id}`)
    assertCode([OTP, OTHER][id - 1]!, json, fromMs)
  }
  const first = await openService({ dataDir: folder })
  await first.createPassword({ ...FIELDS, otp: OTP })
  await first.createPassword(FIELDS)
  await first.updatePassword(2, { otp: OTHER })
  await first.deletePassword(2)
  await first.close()
  const { url, service } = await startService(t, { ...FLAGS, data: folder })
  for (const id of [1, 2]) await ask(url, id)
  await service.close()
  const store = await fileStore(folder)
  await compact(store)
  await store.close()
  const again = await startService(t, { ...FLAGS, data: folder })
  for (const id of [1, 2]) await ask(again.url, id)
})

test('an entry without a secret of codes is answered as an unknown id', async t => {
  const { url } = await startService(t, FLAGS)
  await send(url, 'POST', '/api/createPassword', { ...FIELDS, otp: OTP })
  await send(url, 'POST', '/api/createPassword', FIELDS)
  await send(url, 'POST', '/api/updatePassword/1', { otp: null })
  const unknown = await send(url, 'GET', '/api/getPassword/99')
  for (const id of ['1', '2', '99', '0', 'x']) {
    const { status, text } = await send(url, 'GET', `/api/oneTimeCode/${id}`)
    assert.deepEqual([status, text], [404, unknown.text], id)
  }
})

test('what is no secret of codes is refused in a create and an update, and changes nothing', async t => {
  const { url } = await startService(t, FLAGS)
  await send(url, 'POST', '/api/createPassword', { ...FIELDS, otp: OTP })
  for (const otp of ['1', 'none', '222222', 'JBSWY3DPEHPK3PX', 'otpauth://hotp/x?secret=JBSWY3DPEHPK3PXP', ' ']) {
    for (const path of ['createPassword', 'updatePassword/1']) {
      const { status, json } = await send(url, 'POST', `/api/${path}`, { ...FIELDS, sistema: 'other', otp })
      assert.deepEqual([status, json.errors], [400, INVALID], `${path} ${otp}`)
    }
  }
  assert.deepEqual((await send(url, 'POST', '/api/updatePassword/1', { otp: 5 })).json.errors,
    { otp: ['The otp field must be a string.'] })
  assert.deepEqual((await send(url, 'GET', '/api/listPassword')).json, [{ id: 1, ...FIELDS, status: 1 }])
  assert.equal((await send(url, 'GET', '/api/oneTimeCode/1')).status, 200)
})

test('a secret of codes that is shorter than a new one may be stays, and a change may repeat it', async t => {
  const folder = freshFolder(t)
  const store = await fileStore(folder)
  await store.commit(() => [[event('fields.created', null, { id: 1, ...FIELDS, otp: 'MZXW6YTBOI' })], undefined])
  await store.close()
  const { url } = await startService(t, { ...FLAGS, data: folder })
  const fromMs = Date.now()
  assertCode('MZXW6YTBOI', (await send(url, 'GET', '/api/oneTimeCode/1')).json, fromMs)
  const update = async (body: object): Promise<unknown> => {
    const { status, json } = await send(url, 'POST', '/api/updatePassword/1', body)
    return status === 200 ? 200 : json.errors
  }
  assert.equal(await update({ otp: 'MZXW6YTBOI', usuario: 'v' }), 200)
  assert.deepEqual(await update({ otp: 'MZXW6YTBOJ', usuario: 'w' }), INVALID)
  assert.equal((await send(url, 'GET', '/api/getPassword/1')).json.passwords.usuario, 'v')
  assertCode('MZXW6YTBOI', (await send(url, 'GET', '/api/oneTimeCode/1')).json, Date.now())
  assert.equal(await update({ otp: '' }), 200)
  assert.deepEqual(await update({ otp: 'MZXW6YTBOI' }), INVALID)
})

test('who may read an entry may have its code, and nobody else', async t => {
  const started = await startProtected(t, FLAGS)
  const token = await tokenOf(started)
  const create = await call(t, started.url, 'POST', '/api/createPassword', { token, body: { ...FIELDS, otp: OTP } })
  assert.equal(create.status, 200)
  const rows = [['password:read', 200], ['entry:list', 403], ['password:update', 403]] as const
  for (const [ability, status] of rows) {
    const token = await tokenOf(started, undefined, [ability])
    assert.equal((await call(t, started.url, 'GET', '/api/oneTimeCode/1', { token })).status, status, ability)
  }
  assert.equal((await call(t, started.url, 'GET', '/api/oneTimeCode/1')).status, 401)
})

test('an embedder gives the secret of codes and never gets it', async () => {
  const service = await openService({ journal: 'memory' })
  const made = await service.createPassword({ ...FIELDS, otp: OTP })
  const changed = await service.updatePassword(1, { usuario: 'v' }, { ifUnchanged: made })
  const all = [made, changed, await service.getPassword(1), ...await service.listPassword()]
  await service.close()
  for (const entry of all) assert.deepEqual(Object.keys(entry!), ['id', 'password', 'sistema', 'usuario', 'status'])
})
