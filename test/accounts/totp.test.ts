/** One-time codes: the vectors of the RFCs, and oathtool as a judge of random secrets. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { base32Of, codeAt, newOtpIn, otpIn, secondsLeft, stepAt, type Otp } from '../../src/accounts/totp.ts'
import { randomOf } from '../support/random.ts'

const DIGITS = '1234567890'.repeat(7)
const ofRfc = (algorithm: Otp['algorithm'], bytes: number, digits: number): Otp =>
  ({ secret: Buffer.from(DIGITS.slice(0, bytes)), algorithm, digits, period: 30 })

test('codes are those of RFC 6238, appendix B', () => {
  const rows: readonly (readonly [number, string, string, string])[] = [
    [59, '94287082', '46119246', '90693936'],
    [1111111109, '07081804', '68084774', '25091201'],
    [1111111111, '14050471', '67062674', '99943326'],
    [1234567890, '89005924', '91819424', '93441116'],
    [2000000000, '69279037', '90698825', '38618901'],
    [20000000000, '65353130', '77737706', '47863826']
  ]
  for (const [seconds, ...codes] of rows) {
    const found = [ofRfc('SHA1', 20, 8), ofRfc('SHA256', 32, 8), ofRfc('SHA512', 64, 8)]
      .map(otp => codeAt(otp, stepAt(otp, seconds * 1000)))
    assert.deepEqual(found, codes, `at ${seconds} s`)
  }
})

test('codes are those of RFC 4226, appendix D', () => {
  const found = Array.from({ length: 10 }, (_, count) => codeAt(ofRfc('SHA1', 20, 6), count))
  assert.deepEqual(found, ['755224', '287082', '359152', '969429', '338314', '254676', '287922', '162583', '399871',
    '520489'])
})

test('base32 is that of RFC 4648, in both directions', () => {
  const rows = [['f', 'MY'], ['fo', 'MZXQ'], ['foo', 'MZXW6'], ['foob', 'MZXW6YQ'], ['fooba', 'MZXW6YTB'],
    ['foobar', 'MZXW6YTBOI']]
  for (const [text, base32] of rows) {
    assert.equal(base32Of(Buffer.from(text!)), base32)
    for (const spelled of [base32!, base32!.toLowerCase(), base32!.replace(/(..)/g, '$1 '),
      `${base32}${'='.repeat((8 - base32!.length % 8) % 8)}`]) {
      assert.equal(otpIn(spelled)?.secret.toString(), text, spelled)
    }
  }
})

test('a secret or an otpauth address is read; what gives no code, or another than its owner has, is not', () => {
  const bytes = Buffer.from('Hello!\xde\xad\xbe\xef', 'latin1')
  const usual = { secret: bytes, algorithm: 'SHA1', digits: 6, period: 30 }
  const read: readonly (readonly [string, object | undefined])[] = [
    ['JBSWY3DPEHPK3PXP', usual],
    ['jbsw y3dp ehpk 3pxp', usual],
    ['JBSW-y3dp-EHPK - 3pxp-', usual],
    ['OTPAUTH://totp/x?secret=JBSWY3DPEHPK3PXP', usual],
    ['otpauth://totp/ACME:ana@example.org?secret=JBSWY3DPEHPK3PXP&issuer=ACME', usual],
    ['otpauth://TOTP/x?secret=jbsw%20y3dp+ehpk3pxp', usual],
    ['otpauth://totp?secret=JBSWY3DPEHPK3PXP', usual],
    ['otpauth://totp/x?secret=JBSWY3DPEHPK3PXP&algorithm=SHA256&digits=8&period=300',
      { ...usual, algorithm: 'SHA256', digits: 8, period: 300 }],
    ['otpauth://totp/x?secret=JBSWY3DPEHPK3PXP&algorithm=sha-512&digits=7&period=1',
      { ...usual, algorithm: 'SHA512', digits: 7, period: 1 }],
    ...[
      '', ' ', '=', 'A', '1234', '-', '- -', 'contraseña', 'JBSW\nY3DP', 'JBSWY3DP========', 'otpauth:', 'otpauth://',
      'otpauth://totp/x',
      'otpauth://totp/x?secret=', 'otpauth://totp/x?secret=0', 'otpauth://hotp/x?secret=JBSWY3DPEHPK3PXP&counter=1',
      'https://totp/x?secret=JBSWY3DPEHPK3PXP', 'steam://JBSWY3DPEHPK3PXP', ' otpauth://totp/x?secret=JBSWY3DP',
      ...['algorithm=MD5', 'algorithm=', 'digits=5', 'digits=9', 'digits=06', 'digits=', 'period=0', 'period=301',
        'period=1.5', 'period=-1', 'period=1e2']
        .map(more => `otpauth://totp/x?secret=JBSWY3DPEHPK3PXP&${more}`)
    ].map(text => [text, undefined] as const)
  ]
  for (const [text, otp] of read) assert.deepEqual(otpIn(text), otp, text)
})

test('a new secret has at least 80 bits: words and codes are none', () => {
  const taken = ['JBSWY3DPEHPK3PXP', 'jbsw-y3dp-ehpk-3pxp', 'JBSWY3DPEHPK3PXPA',
    'OTPAUTH://TOTP/x?secret=JBSWY3DPEHPK3PXP']
  const short = ['none', 'NULL', 'no', '222222', '234567234567', 'JBSWY3DPEHPK3PX', 'JBSWY3DPEHPK3PX=',
    'otpauth://totp/x?secret=JBSWY3DP', 'undefined', 'N-o-t---s-e-t------']
  for (const text of taken) assert.deepEqual(newOtpIn(text), otpIn(text) ?? assert.fail(text), text)
  for (const text of short) {
    assert.equal(newOtpIn(text), undefined, text)
    assert.notEqual(otpIn(text), undefined, `${text} gives codes where it is`)
  }
})

test('a code has the whole of its period left at its first moment, and a second at its last', () => {
  const otp = { ...ofRfc('SHA1', 20, 6), period: 30 }
  for (const [ms, step, seconds] of [[0, 0, 30], [999, 0, 30], [1_000, 0, 29], [29_999, 0, 1],
    [30_000, 1, 30]] as const) {
    assert.deepEqual([stepAt(otp, ms), secondsLeft(otp, ms)], [step, seconds], `${ms} ms`)
  }
})

const noOathtool = ((): string | false => {
  try {
    execFileSync('oathtool', ['--version'], { stdio: 'pipe' })
    return false
  } catch {
    return 'oathtool is not installed'
  }
})()

test('oathtool makes the same codes of random secrets, algorithms, digits, periods and times', {
  skip: noOathtool
}, t => {
  const random = randomOf(t)
  for (let i = 0; i < 60; i++) {
    const secret = base32Of(random.bytes(1 + random.int(80)))
    const [algorithm, digits, period, seconds] = [random.pick(['SHA1', 'SHA256', 'SHA512']), 6 + random.int(3), 1 +
      random.int(300), random.int(4e9)]
    const otp = otpIn(`otpauth://totp/x?secret=${secret}&algorithm=${algorithm}&digits=${digits}&period=${period}`)!
    const words = [`--totp=${algorithm}`, '--base32', `--digits=${digits}`, `--time-step-size=${period}s`,
      `--now=@${seconds}`, secret]
    const said = execFileSync('oathtool', words, { encoding: 'utf8', env: { ...process.env, TZ: 'UTC' } }).trim()
    assert.equal(codeAt(otp, stepAt(otp, seconds * 1000)), said, words.join(' '))
  }
})
