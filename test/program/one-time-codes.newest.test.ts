/** One-time codes of entries at the terminal: set, shown, and what that leaves in the journal. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codeAt, otpIn, stepAt } from '../../src/accounts/totp.ts'
import { admin, done, initialized, refused } from '../support/admin.ts'

const SEED = 'JBSW Y3DP EHPK 3PXP'
const ADDRESS = 'otpauth://totp/git:ana?secret=JBSWY3DPEHPK3PXP&digits=8&period=60'

/** The codes of now and of the next moment: the command may run in either. */
function codesOf(seed: string): readonly string[] {
  const otp = otpIn(seed)!
  return [-1, 0, 1].map(step => codeAt(otp, stepAt(otp, Date.now()) + step))
}

test('a one-time code secret is set from standard input; its code is printed alone, its seconds beside it', async t => {
  const folder = await initialized(t)
  await done(folder, 'entry add --system git --user ana --generate')
  await refused(folder, 'entry get git --field code', 1, /entry 1 \(git, ana\) has no one-time code/)
  for (const [seed, period] of [[SEED, 30], [ADDRESS, 60]] as const) {
    assert.equal(await done(folder, 'entry edit git --otp-stdin', `${seed}\n`), 'entry 1 (git, ana) changed\n')
    const { code, out, error } = await admin(folder, 'entry get git --field code')
    assert.ok(codesOf(seed).includes(out.trimEnd()), out)
    assert.match(error, /^valid for \d+ seconds?\n$/)
    assert.equal(code, 0)
    const { seconds, ...rest } = JSON.parse(await done(folder, 'entry get git --field code --json'))
    assert.deepEqual(Object.keys(rest), ['id', 'sistema', 'usuario', 'code'])
    assert.ok(seconds >= 1 && seconds <= period)
    assert.equal(await done(folder, 'entry get git --field otp'), `${seed}\n`)
  }
  await done(folder, 'entry edit git --otp-stdin', '')
  await refused(folder, 'entry get git --field code', 1, /has no one-time code/)
})

test('a new entry takes its secret from standard input; what is no secret is refused and makes nothing', async t => {
  const folder = await initialized(t)
  for (const wrong of ['not base-32', 'otpauth://hotp/a?secret=JBSWY3DPEHPK3PXP']) {
    const refusal = await admin(folder, 'entry add --system s --user u --generate --otp-stdin', wrong)
    assert.match(refusal.error, /The otp field must be a base32 secret or an otpauth address\./)
    assert.equal(refusal.code, 2)
  }
  assert.match((await admin(folder, 'entry list')).error, /no active entries/)
  await done(folder, 'entry add --system s --user u --generate --otp-stdin', SEED)
  assert.ok(codesOf(SEED).includes((await admin(folder, 'entry get s --field code')).out.trimEnd()))
  await refused(folder, 'entry edit s --otp', 2, /no terminal to ask for the secret at; use --otp-stdin/)
  for (const other of ['password', 'notes']) {
    await refused(folder, `entry edit s --otp-stdin --${other}-stdin`, 2, /-stdin and --[a-z]+-stdin do not go/)
  }
})

test('a code is not recorded; another secret than the password is, and tells no password', async t => {
  const folder = await initialized(t)
  await done(folder, 'entry add --system s --user u --generate --otp-stdin', SEED)
  const records = async (): Promise<readonly any[]> =>
    (await done(folder, 'journal show --json')).trimEnd().split('\n').map(line => JSON.parse(line))
  const before = (await records()).length
  const env = { USER: 'bea' }
  assert.equal((await admin(folder, 'entry get s --field code', '', env)).code, 0)
  assert.equal((await records()).length, before)
  for (const field of ['otp', 'notes']) await admin(folder, `entry get s --field ${field}`, '', env)
  const told = (await records()).slice(before).map(({ type, data }) => [type, data.fields])
  assert.deepEqual(told, [['entries.disclosed', ['otp']], ['entries.disclosed', ['notas']]])
  assert.ok(!(await admin(folder, 'audit s')).out.includes('bea'))
  await admin(folder, 'entry get s --field password', '', env)
  assert.match((await admin(folder, 'audit s')).out, /bea +read/)
})
