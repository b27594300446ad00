/** The settings, their refusals, and what the program says of itself when it starts or cannot. */
import { strict as assert } from 'node:assert'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import type { Variables } from '../../src/config/read.ts'
import { readSettings, type ServiceSettings } from '../../src/settings.ts'
import { SETTINGS, type Settings } from '../../src/settings.ts'
import { Failure } from '../../src/errors.ts'
import { runProgram, socketsIn, startProgram } from '../support/program.ts'
import { freshFolder, send } from '../support/service.ts'

type Name = keyof Settings

/** A value of each setting, what it means, and another one. The default is neither. */
const VALUES: { readonly [N in Name]: readonly [text: string, value: unknown, other: string] } = {
  host: ['0.0.0.0', '0.0.0.0', '::1'],
  port: ['8080', 8080, '65535'],
  dataDir: ['some folder', 'some folder', '/elsewhere'],
  keyFile: ['keys/k', 'keys/k', 'other.key'],
  rateLimit: ['0', 0, '1000000'],
  rateLimitBy: ['user', 'user', 'ip'],
  loginLimit: ['0', 0, '7'],
  auth: ['bearer', 'bearer', 'none'],
  tokenTtlMinutes: ['0.5', 0.5, '52560000'],
  abilities: [
    'listPassword=read, getPassword=a:b.c_d-1',
    new Map([['listPassword', 'read'], ['getPassword', 'a:b.c_d-1']]),
    'deletePassword=x'
  ],
  corsOrigins: [
    'https://a.example,http://b.example:8080', new Set(['https://a.example', 'http://b.example:8080']),
    'http://c.example'
  ],
  allowedHosts: ['Pes.Example, two.example:81', new Set(['pes.example', 'two.example:81']), 'three.example'],
  trustProxy: ['10.0.0.0/8, ::1', 'in', '192.0.2.1'],
  tlsCert: ['cert.pem', 'cert.pem', 'other.pem'],
  tlsKey: ['key.pem', 'key.pem', 'other.pem'],
  maxBodyBytes: ['1', 1, '16777216'],
  accessLog: ['on', true, 'off'],
  journal: ['memory', 'memory', 'file'],
  etcdEndpoints: [
    'https://a.example:2379, http://127.0.0.1:2379/', ['https://a.example:2379', 'http://127.0.0.1:2379'],
    'http://[::1]:2379'
  ],
  etcdPrefix: ['/a/b', '/a/b', 'c'],
  etcdUser: ['pes', 'pes', 'other'],
  etcdPasswordFile: ['password', 'password', 'other.password'],
  etcdCa: ['ca.pem', 'ca.pem', 'other.pem'],
  etcdCert: ['cert.pem', 'cert.pem', 'other.pem'],
  etcdKey: ['key.pem', 'key.pem', 'other.pem'],
  etcdPlainHttp: ['on', true, 'off'],
  staleReads: ['on', true, 'off'],
  extraRoutes: ['on', true, 'off'],
  health: ['public', 'public', 'off'],
  metrics: ['off', 'off', 'public'],
  page: ['off', false, 'on']
}

/** What a setting is without being given. */
const DEFAULTS: { readonly [N in Name]: unknown } = {
  host: '127.0.0.1', port: 3000, dataDir: 'data', keyFile: undefined, rateLimit: 60, rateLimitBy: 'ip', loginLimit: 6,
  auth: 'none', tokenTtlMinutes: undefined,
  abilities: new Map([
    ['listPassword', 'password:read'], ['getPassword', 'password:read'], ['createPassword', 'password:create'],
    ['updatePassword', 'password:update'], ['deletePassword', 'password:delete'],
    ['deletedPasswords', 'password:deleted'], ['restorePassword', 'password:restore'],
    ['historyPassword', 'password:history'], ['changeOwnPassword', 'account:password']
  ]),
  corsOrigins: new Set(), allowedHosts: new Set(), trustProxy: undefined, tlsCert: undefined, tlsKey: undefined,
  maxBodyBytes: 65536, accessLog: false, journal: 'file',
  etcdEndpoints: [], etcdPrefix: '/pes', etcdUser: undefined, etcdPasswordFile: undefined, etcdCa: undefined,
  etcdCert: undefined, etcdKey: undefined, etcdPlainHttp: false, staleReads: false,
  extraRoutes: false, health: 'local', metrics: 'local', page: true
}

const NAMES = Object.keys(SETTINGS) as Name[]

/** Two settings go together; whoever reads one gives the other as well. */
function partner(name: Name): Variables {
  const pairs: readonly (readonly [Name, Name])[] =
    [['tlsCert', 'tlsKey'], ['etcdUser', 'etcdPasswordFile'], ['etcdCert', 'etcdKey']]
  const other = pairs.find(pair => pair.includes(name))?.find(one => one !== name)
  return other === undefined ? {} : { [SETTINGS[other].variable]: 'partner' }
}

/** A setting's value in a form that can be compared: of a set of proxies, whether 10.1.2.3 is in it. */
function valueOf(settings: ServiceSettings, name: Name): unknown {
  const value = settings[name]
  if (name !== 'trustProxy' || value === undefined) return value
  return settings.trustProxy?.check('10.1.2.3') ? 'in' : 'out'
}

/** The one line that refuses settings. */
function refusalOf(args: readonly string[], env: Variables = {}): string {
  try {
    readSettings(args, env)
  } catch (error) {
    assert.ok(error instanceof Failure, String(error))
    assert.equal(error.code, 'setting-invalid')
    assert.doesNotMatch(error.message, /\n/)
    return error.message
  }
  return assert.fail(`${args.join(' ')} ${JSON.stringify(env)} is accepted`)
}

describe('a setting', () => {
  test('the tables of this test know every setting', () => {
    assert.deepEqual(Object.keys(VALUES), NAMES)
    assert.deepEqual(Object.keys(DEFAULTS), NAMES)
  })

  for (const name of NAMES) {
    const { flag, variable } = SETTINGS[name]
    const [text, value, other] = VALUES[name]

    test(`${variable}: has its default where it is not given, or empty`, () => {
      for (const env of [{}, { [variable]: '' }]) assert.deepEqual(valueOf(readSettings([], env), name), DEFAULTS[name])
    })

    test(`${variable}: is read from its flag in either form, or its variable; the flag beats it`, () => {
      const env = partner(name)
      assert.deepEqual(valueOf(readSettings([`--${flag}=${text}`], env), name), value)
      assert.deepEqual(valueOf(readSettings([`--${flag}`, text], env), name), value)
      assert.deepEqual(valueOf(readSettings([], { ...env, [variable]: text }), name), value)
      assert.deepEqual(valueOf(readSettings([`--${flag}=${text}`], { ...env, [variable]: other }), name), value)
      assert.deepEqual(valueOf(readSettings([`--${flag}=${text}`], { ...env, [variable]: '' }), name), value)
      assert.notDeepEqual(valueOf(readSettings([`--${flag}=${other}`], { ...env, [variable]: text }), name), value)
    })
  }
})

const NOT_INTEGERS = ['-1', '+1', '1.5', '1e3', '0x10', '007', ' 1', '1 ', 'ten', 'NaN', '99999999999999999999']

const MALFORMED: { readonly [N in Name]: readonly string[] } = {
  host: [],
  port: [...NOT_INTEGERS, '65536'],
  dataDir: [],
  keyFile: [],
  rateLimit: [...NOT_INTEGERS, '1000001', 'off'],
  rateLimitBy: ['IP', 'token', 'ip,user'],
  loginLimit: [...NOT_INTEGERS, '1000001'],
  auth: ['Bearer', 'basic', 'true', 'none '],
  tokenTtlMinutes: ['0', '0.0', '-1', '1e3', '.5', '5.', 'never', '1h', 'Infinity', '52560001'],
  abilities: [
    'listPasswords=x', 'list=x', 'listPassword', 'listPassword=', 'listPassword=a b', 'listPassword=a=b',
    '=x', 'listPassword=x,login=y', 'listpassword=x', '__proto__=x', 'listPassword:x', 'listPassword=*',
    'listPassword=x,listPassword=y'
  ],
  corsOrigins: [
    '*', 'https://a.example,*', 'https://*.example', 'null', 'a.example', 'https://a.example/', 'https://a.example/x',
    'HTTPS://a.example', 'https://A.example', 'https://a.example:443', 'https://u@a.example', 'ftp://a.example',
    'https://', 'https://a.example https://b.example', 'file:///x'
  ],
  allowedHosts: ['*', 'a b', 'http://a.example', 'a.example/', 'a.example:', 'a.example:x', 'u@a.example', 'ä.example'],
  trustProxy: [
    'localhost', 'proxy.example', '*', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/08', '10.0.0.0/-1', '10.0.0',
    '10.0.0.1-10.0.0.9', '10.0.0.0/8/8', '10.0.0.1:80', '[::1]', '10.0.0.1 10.0.0.2', ',',
    '0.0.0.0/0', '10.0.0.0/8,::/0'
  ],
  tlsCert: [],
  tlsKey: [],
  maxBodyBytes: [...NOT_INTEGERS, '0', '16777217', '64k'],
  accessLog: ['yes', 'true', '1', 'ON'],
  journal: ['disk', 'Memory', 'none', 'Etcd'],
  etcdEndpoints: [
    'a.example:2379', '127.0.0.1:2379', 'ftp://a.example', 'https://', 'https://u:p@a.example', 'https://a.example/x',
    'https://a.example?x', 'https://a.example#x', 'https://a.example https://b.example'
  ],
  etcdPrefix: ['a/', '/', 'a b', 'ä', 'x'.repeat(201)],
  etcdUser: [],
  etcdPasswordFile: [],
  etcdCa: [],
  etcdCert: [],
  etcdKey: [],
  etcdPlainHttp: ['yes', 'true', 'ON'],
  staleReads: ['yes', '1', 'On'],
  health: ['on', 'Local', 'true'],
  metrics: ['on', 'Public', 'none'],
  page: ['yes', 'true', '1', 'ON'],
  extraRoutes: ['yes', 'true', '1', 'ON']
}

describe('a malformed value', () => {
  for (const name of NAMES) {
    const { flag, variable } = SETTINGS[name]
    for (const text of MALFORMED[name]) {
      test(`${variable}=${text} is refused in one line that names where it came from`, () => {
        assert.match(refusalOf([], { [variable]: text }), new RegExp(`^a setting is not valid: ${variable} must be `))
        assert.match(refusalOf([`--${flag}=${text}`]), new RegExp(`^a setting is not valid: --${flag} must be `))
      })
    }
    if (!['abilities', 'corsOrigins', 'allowedHosts'].includes(name)) {
      test(`--${flag}= with nothing behind it is refused`, () => {
        assert.match(refusalOf([`--${flag}=`], partner(name)), new RegExp(`--${flag} must be `))
      })
    }
    test(`--${flag} without a value is refused`, () => {
      assert.match(refusalOf([`--${flag}`]), new RegExp(`--${flag}\\b`))
      assert.match(refusalOf([`--${flag}`, '--port=1']), new RegExp(`--${flag}\\b`))
    })
  }

  for (const arg of ['--unknown', '--unknown=1', '--no-port', '--Port=1', '-p', '--__proto__=1', '--DATA_DIR=x', '--', '--=x']) {
    test(`the unknown flag ${arg} is refused by its name`, () => {
      assert.ok(refusalOf([arg]).includes(arg.split('=')[0]!))
    })
  }

  for (const args of [['serve'], ['--port=1', 'x']]) {
    test(`the command line ${args.join(' ')}, with a word that belongs to no flag, is refused by it`, () => {
      assert.ok(refusalOf(args).includes(args.at(-1)!))
    })
  }

  const TLS = { TLS_CERT: 'c', TLS_KEY: 'k' }
  const PAIRS: readonly (readonly [what: string, env: Variables, names: RegExp])[] = [
    ['a certificate without its key', { TLS_CERT: 'c' }, /TLS_CERT and TLS_KEY/],
    ['a key without its certificate', { TLS_KEY: 'k' }, /TLS_CERT and TLS_KEY/],
    ['production without TLS or a proxy', { NODE_ENV: 'production' }, /NODE_ENV=production.*TLS_CERT.*TRUST_P/],
    ['production with a certificate alone', { NODE_ENV: 'production', TLS_CERT: 'c' }, /TLS_CERT and TLS_KEY/],
    ['production with an empty proxy', { NODE_ENV: 'production', TRUST_PROXY: '' }, /NODE_ENV=production/],
    ['etcd without an address', { JOURNAL: 'etcd' }, /JOURNAL=etcd needs ETCD_ENDPOINTS/],
    ['a user of etcd without a password', { ETCD_USER: 'u' }, /ETCD_USER and ETCD_PASSWORD_FILE/],
    ['a certificate for etcd without its key', { ETCD_CERT: 'c' }, /ETCD_CERT and ETCD_KEY/],
    ['plain HTTP to etcd on another machine', { ETCD_ENDPOINTS: 'https://10.0.0.2:1,http://10.0.0.1:1' },
      /http:\/\/10\.0\.0\.1:1 without TLS, which ETCD_PLAIN_HTTP=on/]
  ]
  for (const [what, env, names] of PAIRS) {
    test(`${what} is refused`, () => { assert.match(refusalOf([], env), names) })
  }

  test('what makes those pairs safe is accepted', () => {
    assert.equal(readSettings([], TLS).tlsKey, 'k')
    for (const env of [TLS, { TRUST_PROXY: '127.0.0.1' }]) {
      assert.equal(readSettings([], { ...env, NODE_ENV: 'production' }).isProduction, true)
    }
    const far = { ETCD_ENDPOINTS: 'http://10.0.0.1:1', ETCD_PLAIN_HTTP: 'on' }
    const near = { ETCD_ENDPOINTS: 'http://localhost:1,http://127.0.0.2:1,http://[::1]:1', JOURNAL: 'etcd' }
    assert.deepEqual([far, near].map(env => readSettings([], env).etcdEndpoints.length), [1, 3])
    for (const env of ['', 'development', 'test']) assert.equal(readSettings([], { NODE_ENV: env }).isProduction, false)
  })
})

/** All files of a folder with their bytes and modes. */
function snapshot(folder: string): ReadonlyMap<string, string> {
  return new Map(readdirSync(folder).map(name => {
    const path = join(folder, name)
    const events = statSync(path)
    return [name, `${events.mode.toString(8)} ${events.isDirectory() ? '' : readFileSync(path, 'hex')}`]
  }))
}

/** A folder in which a program has created three entries and stopped. */
async function filledFolder(t: TestContext): Promise<string> {
  const { url, folder, stop } = await startProgram(t)
  for (const password of ['a', 'b', 'c']) {
    assert.equal((await send(url, 'POST', '/api/createPassword', { password, sistema: 's', usuario: 'u' })).status, 200)
  }
  assert.equal((await stop()).code, 0)
  return folder
}

describe('the program', { concurrency: 2 }, () => {
  type Given = { readonly [name: string]: string }
  const REFUSED: readonly (readonly [args: readonly string[], env: Given, name: RegExp])[] = [
    [['--port=x'], {}, /--port must be/],
    [[], { PORT: '70000' }, /PORT must be/],
    [['--unknown'], {}, /'--unknown'/],
    [['serve'], {}, /'serve'/],
    [[], { CORS_ORIGINS: '*' }, /CORS_ORIGINS must be/],
    [[], { TLS_CERT: 'c' }, /TLS_CERT and TLS_KEY/],
    [[], { NODE_ENV: 'production' }, /NODE_ENV=production/],
    [[], { ABILITIES: 'steal=x' }, /ABILITIES must be operations out of listPassword,/]
  ]
  for (const [args, env, name] of REFUSED) {
    test(`refuses ${JSON.stringify([args, env])} with exit code 2 and one line, and makes no folder`, async t => {
      const cwd = freshFolder(t)
      const { code, stdout, stderr } = await runProgram(t, { args, env, cwd })
      assert.deepEqual([code, stdout], [2, ''])
      assert.match(stderr, /^error: a setting is not valid: [^\n]+\n$/)
      assert.match(stderr, name)
      assert.deepEqual(readdirSync(cwd), [])
    })
  }

  test('--help prints each flag, variable and default, and starts nothing', async t => {
    const cwd = freshFolder(t)
    const { code, stdout, stderr } = await runProgram(t, { args: ['--help', '--port=x'], cwd })
    assert.deepEqual([code, stderr], [0, ''])
    const lines = stdout.split('\n')
    for (const name of NAMES) {
      const { flag, variable, shown, help } = SETTINGS[name]
      const line = lines.filter(text => text.startsWith(`  --${flag} `))
      assert.equal(line.length, 1, flag)
      for (const part of [variable, `default ${shown}.`, help]) {
        assert.ok(line[0]!.includes(part.replaceAll('`', '')), `${flag}: ${part}`)
      }
    }
    assert.deepEqual(readdirSync(cwd), [])
  })

  test('says at its start where its data is, what is in it, where it listens and to whom', async t => {
    const folder = await filledFolder(t)
    const { url, stdout, stop } = await startProgram(t, { flags: { data: folder, 'rate-limit': '60' } })
    const head = /,"hash":"([0-9a-f]{64})"\}\n$/.exec(readFileSync(join(folder, 'journal.jsonl'), 'latin1'))?.[1]
    assert.deepEqual(stdout.split('\n'), [
      `data folder    ${folder}`,
      'journal        3 records, 3 entries (3 active)',
      `chain head     ${head}`,
      `address        ${url}`,
      'configuration  open: anyone who reaches the address can read and change every entry',
      'ready',
      ''
    ])
    assert.match(url, /^http:\/\/127\.0\.0\.1:[1-9][0-9]*$/)
    assert.equal((await stop()).stderr, '')
  })

  test('keeps its data in `data` of the working folder, and says so by an absolute path', async t => {
    const cwd = realpathSync(freshFolder(t))
    const { stdout } = await startProgram(t, { args: [], env: { PORT: '0' }, cwd })
    assert.ok(stdout.startsWith(`data folder    ${join(cwd, 'data')}\n`), stdout)
    assert.equal(statSync(join(cwd, 'data')).mode & 0o777, 0o700)
    for (const name of ['journal.jsonl', 'journal.key']) {
      assert.equal(statSync(join(cwd, 'data', name)).mode & 0o777, 0o600, name)
    }
  })

  test('§5.2 says of the protected configuration how many may use it', async t => {
    const { stdout } = await startProgram(t, { flags: { auth: 'bearer' } })
    assert.match(stdout, /^configuration  protected: 0 users, 0 tokens$/m)
  })

  const WARNINGS: readonly (readonly [flags: Given, lines: readonly RegExp[]])[] = [
    [{}, []],
    [{ host: 'localhost' }, []],
    [{ host: '127.0.0.2' }, []],
    [{ 'rate-limit': '0' }, [/^warning: the rate limit is off$/]],
    [{ journal: 'memory' }, [/^warning: JOURNAL=memory keeps nothing beyond this process$/]],
    [{ host: '0.0.0.0' }, [/^warning: 0\.0\.0\.0 is reachable .* asks for no password/, /^warning: 0\.0\.0\.0 .* TLS_CERT/]],
    [{ host: '0.0.0.0', auth: 'bearer' }, [/^warning: 0\.0\.0\.0 is reachable .* TLS_CERT/]],
    [{ host: '0.0.0.0', auth: 'bearer', 'trust-proxy': '10.0.0.1' }, []]
  ]
  for (const [flags, lines] of WARNINGS) {
    test(`warns of what is dangerous in ${JSON.stringify(flags)}, and of nothing else`, async t => {
      const { stop } = await startProgram(t, { flags: { 'rate-limit': '60', ...flags } })
      const { stderr } = await stop()
      const warnings = stderr.split('\n').slice(0, -1)
      assert.equal(warnings.length, lines.length, stderr)
      for (const [i, line] of lines.entries()) assert.match(warnings[i]!, line)
    })
  }

  test('whose port is in use ends with exit code 1 and one line, and lets go of its folder', async t => {
    const other = createServer().listen(0, '127.0.0.1')
    t.after(() => { other.close() })
    await once(other, 'listening')
    const port = String((other.address() as AddressInfo).port)
    const data = freshFolder(t)
    const { code, stdout, stderr } = await runProgram(t, { flags: { data, port } })
    assert.equal(code, 1)
    assert.equal(stderr, `error: the address cannot be listened on: 127.0.0.1 port ${port}: EADDRINUSE\n`)
    assert.doesNotMatch(stdout, /^(address|ready)/m)
    assert.deepEqual(socketsIn(data), [])
    await startProgram(t, { flags: { data } })
  })

  test('whose address is not this machine\'s ends with exit code 1 and one line', async t => {
    const { code, stderr } = await runProgram(t, { flags: { host: '192.0.2.1' } })
    assert.equal(code, 1)
    assert.match(stderr, /^error: the address cannot be listened on: 192\.0\.2\.1 port 0: EADDRNOTAVAIL\n$/)
  })

  test('whose certificate cannot be read ends with exit code 1 and one line, and lets go of its folder', async t => {
    const data = freshFolder(t)
    const missing = join(data, 'none.pem')
    const { code, stderr } = await runProgram(t, { flags: { data, 'tls-cert': missing, 'tls-key': missing } })
    assert.equal(code, 1)
    assert.equal(stderr, `error: the certificate or its key is not valid: ${missing}: ENOENT\n`)
    assert.deepEqual(socketsIn(data), [])
  })

  test('whose data folder lies below a file ends with exit code 1 and one line', async t => {
    const file = join(freshFolder(t), 'file')
    writeFileSync(file, 'content')
    for (const data of [file, join(file, 'below')]) {
      const { code, stderr } = await runProgram(t, { flags: { data } })
      assert.equal(code, 1)
      assert.match(stderr, new RegExp(`^error: the data folder cannot be used: ${data}: (ENOTDIR|EEXIST)\n$`))
    }
    assert.equal(readFileSync(file, 'utf8'), 'content')
  })

  /** Ways to harm a folder, and the line that says so. The key file and the journal are given by their paths. */
  const HARMS: readonly (readonly [what: string, harm: (key: string, journal: string) => void, line: RegExp])[] = [
    ['a missing key', key => rmSync(key), /^error: the journal exists, but its key file does not: .*journal\.key; is KEY_FILE right\?\n$/],
    [
      'another key', key => writeFileSync(key, `${randomBytes(32).toString('hex')}\n`),
      /^error: the key file lacks a key of the journal: .*journal\.jsonl, line 1 needs key [0-9a-f]{8}\n$/
    ],
    [
      'an empty key file', key => writeFileSync(key, ''),
      /^error: the key file is not valid: .*journal\.key, line 1: a key is 64 hexadecimal digits in lower case\n$/
    ],
    ['a key file that is a folder', key => { rmSync(key); mkdirSync(key) }, /^error: .*journal\.key: EISDIR\n$/],
    [
      'a changed byte in the journal\'s first line',
      (_key, journal) => {
        const bytes = readFileSync(journal)
        const at = bytes.indexOf('"sealed":"') + 20
        bytes[at] = bytes[at] === 0x41 ? 0x42 : 0x41
        writeFileSync(journal, bytes)
      },
      /^error: the journal is damaged: .*journal\.jsonl, line 1 at byte 0: its hash does not follow .*\n$/
    ],
    [
      'a line that is gone',
      (_key, journal) => {
        const [first, , ...rest] = readFileSync(journal, 'latin1').split('\n')
        writeFileSync(journal, [first, ...rest].join('\n'))
      },
      /^error: the journal is damaged: .*journal\.jsonl, line 2 at byte [1-9][0-9]*: its seq is 3\n$/
    ],
    [
      'a line of another kind in front',
      (_key, journal) => writeFileSync(journal, `hello\n${readFileSync(journal, 'latin1')}`),
      /^error: the journal is damaged: .*journal\.jsonl, line 1 at byte 0: it is not a line of a journal.*\n$/
    ]
  ]
  for (const [what, harm, line] of HARMS) {
    test(`that finds ${what} ends with exit code 1 and one line, and changes nothing`, async t => {
      const folder = await filledFolder(t)
      const key = join(folder, 'journal.key')
      harm(key, join(folder, 'journal.jsonl'))
      const before = snapshot(folder)
      const { code, stdout, stderr } = await runProgram(t, { flags: { data: folder } })
      assert.equal(code, 1)
      assert.match(stderr, line)
      assert.doesNotMatch(stdout, /^(address|ready)/m)
      assert.deepEqual(snapshot(folder), before)
    })
  }
})
