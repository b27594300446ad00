/** Settings of any text: each is a value that the program can work with, or refused in one line that names it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSettings, type ServiceSettings } from '../../src/settings.ts'
import { SETTINGS, type Settings } from '../../src/settings.ts'
import { Failure } from '../../src/errors.ts'
import { OPERATIONS } from '../../src/contract.ts'
import { countFromEnv } from '../support/mutations.ts'
import { randomOf, type Random } from '../support/random.ts'

const COUNT = countFromEnv(30_000)

/** Pieces that values are made of, good ones and bad. */
const PIECES: readonly string[] = [
  '0', '1', '9', '00', '65535', '65536', '1e3', '-', '+', '.', '0.5', ' ', '\t', '\n', '\r', '\0', ',', ',,',
  '=', ':', '/', '[', ']', '%', '*', '@', '#', '?', '\\', '"', '::', '::1', '127.0.0.1', '10.0.0.0/8',
  'fe80::1%eth0', '2001:db8::/32', '/33', '/0', '256', 'localhost', 'example.org', 'https://', 'http://',
  'https://example.org', 'null', 'file:///etc/passwd', 'javascript:', 'none', 'bearer', 'ip', 'user', 'on',
  'off', 'file', 'memory', 'etcd', 'password:read', 'listPassword=', 'createPassword=a', '__proto__',
  'constructor', 'toString', 'é', 'ı', 'İ', '\u2028', '\ud800', '😀', 'Infinity', 'NaN', '--port', '-p', '--',
  '--port=1'
]

function someText(random: Random): string {
  const chance = random.next()
  if (chance < 0.2) return random.pick(PIECES)
  if (chance < 0.22) return random.pick(PIECES).repeat(1 + random.int(20_000))
  if (chance < 0.3) return random.bytes(random.int(20)).toString('latin1')
  return Array.from({ length: 1 + random.int(chance < 0.6 ? 2 : 6) }, () => random.pick(PIECES)).join('')
}

const within = (least: number, most: number) => (value: unknown): boolean =>
  Number.isInteger(value) && Number(value) >= least && Number(value) <= most
const among = (...words: readonly unknown[]) => (value: unknown): boolean => words.includes(value)
const eachOf = (isFine: (item: string) => boolean) => (value: unknown): boolean =>
  [...value as Iterable<string>].every(isFine)

/** What a value must be like that was taken. */
const FINE: { readonly [K in keyof Settings]?: (value: unknown) => boolean } = {
  port: within(0, 65_535),
  rateLimit: within(0, 1_000_000),
  rateLimitBy: among('ip', 'user'),
  loginLimit: within(0, 1_000_000),
  auth: among('none', 'bearer'),
  tokenTtlMinutes: value => typeof value === 'number' && value > 0 && !isNaN(Date.now() + value * 60_000),
  abilities: value => [...value as Map<string, string>].every(([operation, ability]) =>
    Object.hasOwn(OPERATIONS, operation) && /^[\w:.-]+$/.test(ability)),
  corsOrigins: eachOf(item => /^https?:\/\//.test(item) && !item.includes('*') && new URL(item).origin === item),
  allowedHosts: eachOf(item => /^[a-z0-9.-]+(:\d+)?$/.test(item)),
  trustProxy: value => typeof value === 'object' && value !== null,
  maxBodyBytes: within(1, 16 * 1024 * 1024),
  journal: among('file', 'memory', 'etcd'),
  health: among('local', 'public', 'off'),
  metrics: among('local', 'public', 'off'),
  etcdEndpoints: eachOf(item => /^https?:\/\//.test(item) && new URL(item).origin === item),
  etcdPrefix: value => /^[!-~]*[!-.0-~]$/.test(String(value))
}

/** Any other one is a switch, or a text. */
function isFine(key: keyof Settings, value: unknown): boolean {
  const isOther = typeof SETTINGS[key].fallback === 'boolean' ? typeof value === 'boolean'
    : typeof value === 'string' && value !== ''
  return FINE[key]?.(value) ?? isOther
}

/** The settings; undefined where they were refused as they should be. */
function read(
  args: readonly string[], env: { [name: string]: string }, names: readonly string[]
): ServiceSettings | undefined {
  try {
    return readSettings(args, env)
  } catch (error) {
    assert.ok(error instanceof Failure, `${String(error)} for ${JSON.stringify([args, env])}`)
    assert.equal(error.code, 'setting-invalid')
    const shown = JSON.stringify(error.message)
    assert.ok(!/[\p{Cc}\p{Zl}\p{Zp}]/u.test(error.message), `not a line of text: ${shown}`)
    assert.ok(names.length === 0 || names.some(name => error.message.includes(name)), `names nothing: ${shown}`)
    return undefined
  }
}

test('a setting of any text is a value within its bounds, or refused by its name in one line', t => {
  const random = randomOf(t)
  const keys = Object.keys(SETTINGS) as (keyof Settings)[]
  const seen = new Map(keys.map(key => [key, { taken: 0, refused: 0 }]))
  for (let done = 0; done < COUNT; done++) {
    const key = keys[done % keys.length]!
    const { flag, variable, fallback } = SETTINGS[key]
    const text = someText(random)
    const isFlag = text === '' || random.next() < 0.5 // an empty variable is none
    const settings = isFlag ? read([`--${flag}=${text}`], {}, [`--${flag}`, 'TLS_CERT', 'ETCD_'])
      : read([], { [variable]: text }, [variable])
    if (settings === undefined) { seen.get(key)!.refused++; continue }
    const value = settings[key]
    assert.ok(isFine(key, value), `${key} from ${JSON.stringify(text)}: ${String(value)}`)
    for (const other of keys) {
      if (other !== key) assert.deepEqual(settings[other], SETTINGS[other].fallback, `${key} has changed ${other}`)
    }
    if (value !== fallback) seen.get(key)!.taken++
  }
  const pairs = ['tlsCert', 'tlsKey', 'etcdUser', 'etcdPasswordFile', 'etcdCert', 'etcdKey']
  const anything = ['host', 'dataDir', 'keyFile', 'etcdCa']
  for (const [key, { taken, refused }] of seen) {
    const isPair = pairs.includes(key)
    if (!isPair) assert.ok(taken > 0, `${key} was never taken`)
    if (!anything.includes(key) || isPair) assert.ok(refused > 0, `${key} was never refused`)
  }
})

test('any words on the command line are settings or refused in one line', t => {
  const random = randomOf(t)
  const flags = Object.values(SETTINGS).map(({ flag }) => `--${flag}`)
  let taken = 0
  let refused = 0
  for (let done = 0; done < COUNT / 3; done++) {
    const word = (): string => {
      const chance = random.next()
      if (chance < 0.4) return random.pick(flags)
      return chance < 0.7 ? `${random.pick(flags)}=${random.pick(PIECES)}` : someText(random)
    }
    const args = Array.from({ length: 1 + random.int(3) }, word)
    const env = random.next() < 0.1 ? { NODE_ENV: 'production' } : {}
    if (read(args, env, []) === undefined) refused++
    else taken++
  }
  t.diagnostic(JSON.stringify({ taken, refused }))
  assert.ok(taken > 0 && refused > 0)
})
