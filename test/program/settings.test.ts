/** The settings, their refusals, and what the program says of itself when it starts or cannot. */
import { strict as assert } from 'node:assert'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, realpathSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { readSettings, SETTINGS, type ServiceSettings, type Settings,
  type Variables } from '../../src/settings.ts'
import { isTrusted } from '../../src/http/client.ts'
import { Failure } from '../../src/errors.ts'
import { ADMIN } from '../support/admin.ts'
import { fileStore } from '../support/stores.ts'
import { runProgram, socketsIn, startProgram } from '../support/program.ts'
import { freshFolder, startService } from '../support/service.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'

type Name = keyof Settings

/** A setting's default; a text, what it means, and another text, neither of them the default; and what is refused. */
type Case = readonly [fallback: unknown, text: string, value: unknown, other: string, malformed?: readonly string[]]

const NOT_INTEGERS = ['-1', '+1', '1.5', '1e3', '0x10', '007', ' 1', '1 ', 'ten', 'NaN', '99999999999999999999']
const NOT_SWITCHES = ['yes', 'true', '1', 'ON']
const ABILITIES = {
  listPassword: ['password:read'], getPassword: ['password:read'], createPassword: ['password:create'],
  updatePassword: ['password:update'], deletePassword: ['password:delete'], deletedPasswords: ['password:deleted'],
  olderDeletedPasswords: ['password:deleted'],
  restorePassword: ['password:restore'], listEntries: ['entry:list'], historyPassword: ['password:history'],
  formerPassword: ['password:history'], formerNotes: ['password:history'],
  whoKnows: ['entry:knowledge'], oneTimeCode: ['password:read'],
  changeOwnPassword: undefined, ownSessions: undefined, endOwnSessions: undefined
}

const CASES: { readonly [N in Name]: Case } = {
  host: ['127.0.0.1', '0.0.0.0', '0.0.0.0', '::1'],
  port: [3000, '8080', 8080, '65535', [...NOT_INTEGERS, '65536']],
  dataDir: ['data', 'some folder', 'some folder', '/elsewhere'],
  keyFile: [undefined, 'keys/k', 'keys/k', 'other.key'],
  rateLimit: [60, '0', 0, '1000000', [...NOT_INTEGERS, '1000001', 'off']],
  rateLimitBy: ['ip', 'user', 'user', 'ip', ['IP', 'token', 'ip,user']],
  loginLimit: [6, '0', 0, '7', [...NOT_INTEGERS, '1000001']],
  auth: ['none', 'bearer', 'bearer', 'none', ['Bearer', 'basic', 'true', 'none ']],
  tokenTtlMinutes: [undefined, '0.5', 0.5, '52560000', [
    '0', '0.0', '-1', '1e3', '.5', '5.', 'never', '1h', 'Infinity', '52560001'
  ]],
  tokensPerUser: [1000, '1', 1, '1000000', [...NOT_INTEGERS, '0', '1000001']],
  abilities: [
    new Map(Object.entries(ABILITIES)), 'listPassword=read, getPassword=a:b.c_d-1, createPassword=any',
    new Map(Object.entries({
      ...ABILITIES, listPassword: ['read'], getPassword: ['a:b.c_d-1'], oneTimeCode: ['a:b.c_d-1'],
      createPassword: undefined, listEntries: ['entry:list', 'read']
    })),
    'deletePassword=x', [
      'listPasswords=x', 'list=x', 'listPassword', 'listPassword=', 'listPassword=a b', 'listPassword=a=b', '=x',
      'listPassword=x,login=y', 'listpassword=x', '__proto__=x', 'listPassword:x', 'listPassword=*',
      'listPassword=x,listPassword=y', 'listPassword=any,listPassword=x', 'login=x'
    ]
  ],
  corsOrigins: [
    new Set(), 'https://a.example,http://b.example:8080', new Set(['https://a.example', 'http://b.example:8080']),
    'chrome-extension://abcdefghijklmnop,capacitor://localhost', [
      'chrome-extension://*', 'chrome-extension://', 'chrome-extension://a/', 'file://a', 'ws://a.example',
      '*', 'https://a.example,*', 'https://*.example', 'null', 'a.example', 'https://a.example/', 'https://a.example/x',
      'HTTPS://a.example', 'https://A.example', 'https://a.example:443', 'https://u@a.example', 'ftp://a.example',
      'https://', 'https://a.example https://b.example', 'file:///x'
    ]
  ],
  allowedHosts: [
    new Set(), 'Pes.Example, two.example:81', new Set(['pes.example', 'two.example:81']), 'three.example', [
      '*', 'a b', 'http://a.example', 'a.example/', 'a.example:', 'a.example:x', 'u@a.example', 'ä.example'
    ]
  ],
  trustProxy: [undefined, '10.0.0.0/8, ::1', 'in', '192.0.2.1', [
    'localhost', 'proxy.example', '*', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/08', '10.0.0.0/-1', '10.0.0',
    '10.0.0.1-10.0.0.9', '10.0.0.0/8/8', '10.0.0.1:80', '[::1]', '10.0.0.1 10.0.0.2', ',',
    '0.0.0.0/0', '10.0.0.0/8,::/0'
  ]],
  tlsCert: [undefined, 'cert.pem', 'cert.pem', 'other.pem'],
  tlsKey: [undefined, 'key.pem', 'key.pem', 'other.pem'],
  maxBodyBytes: [65536, '1', 1, '16777216', [...NOT_INTEGERS, '0', '16777217', '64k']],
  journal: ['file', 'memory', 'memory', 'file', ['disk', 'Memory', 'none', 'Etcd']],
  accessLog: [false, 'on', true, 'off', NOT_SWITCHES],
  etcdEndpoints: [
    [], 'https://a.example:2379, http://127.0.0.1:2379/', ['https://a.example:2379', 'http://127.0.0.1:2379'],
    'http://[::1]:2379', [
      'a.example:2379', '127.0.0.1:2379', 'ftp://a.example', 'https://', 'https://u:p@a.example', 'https://a.example/x',
      'https://a.example?x', 'https://a.example#x', 'https://a.example https://b.example'
    ]
  ],
  etcdPrefix: ['/pes', '/a/b', '/a/b', 'c', ['a/', '/', 'a b', 'ä', 'x'.repeat(201), '/pes.turn', '/pes.turn/a']],
  etcdUser: [undefined, 'pes', 'pes', 'other'],
  etcdPasswordFile: [undefined, 'password', 'password', 'other.password'],
  etcdCa: [undefined, 'ca.pem', 'ca.pem', 'other.pem'],
  etcdCert: [undefined, 'cert.pem', 'cert.pem', 'other.pem'],
  etcdKey: [undefined, 'key.pem', 'key.pem', 'other.pem'],
  etcdPlainHttp: [false, 'on', true, 'off', NOT_SWITCHES],
  staleReads: [false, 'on', true, 'off', NOT_SWITCHES],
  health: ['local', 'public', 'public', 'off', ['on', 'Local', 'true']],
  metrics: ['local', 'off', 'off', 'public', ['on', 'Public', 'none']],
  page: [true, 'off', false, 'on', NOT_SWITCHES],
  extraRoutes: [false, 'on', true, 'off', NOT_SWITCHES],
  proxyLoginHeader: [undefined, 'X-Forwarded-Email', 'X-Forwarded-Email', 'X-Auth-Request-Email', [
    'X_Auth_Email', 'Email', 'X-Auth Email', 'X-Auth-Émail', 'X-Proxy-Login-Secret', 'X-Forwarded-For',
    'X-Forwarded-User',
    'Sec-Fetch-Site', 'X-Real-IP', 'Proxy-Authorization', '-', 'X-', '-X', 'X--Y', `X-${'y'.repeat(63)}`
  ]],
  proxyLoginSecretFile: [undefined, 'secret', 'secret', 'other.secret']
}

const NAMES = Object.keys(SETTINGS) as Name[]

/** Two settings go together; whoever reads one gives the other as well. */
function partner(name: Name): Variables {
  const pairs: readonly (readonly [Name, Name])[] =
    [['tlsCert', 'tlsKey'], ['etcdUser', 'etcdPasswordFile'], ['etcdCert', 'etcdKey']]
  if (name === 'proxyLoginHeader' || name === 'proxyLoginSecretFile') {
    const all = { PROXY_LOGIN_HEADER: 'Partner-Email', PROXY_LOGIN_SECRET_FILE: 'partner' }
    return { ...all, [SETTINGS[name].variable]: undefined, AUTH: 'bearer', TRUST_PROXY: '::1', TOKEN_TTL_MINUTES: '1' }
  }
  const other = pairs.find(pair => pair.includes(name))?.find(one => one !== name)
  return other === undefined ? {} : { [SETTINGS[other].variable]: 'partner' }
}

/** A setting's value in a form that can be compared: of a set of proxies, whether 10.1.2.3 is in it. */
function valueOf(settings: ServiceSettings, name: Name): unknown {
  const value = settings[name]
  if (name !== 'trustProxy' || value === undefined) return value
  return isTrusted('10.1.2.3', settings.trustProxy) ? 'in' : 'out'
}

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

test('the table of this test knows every setting', () => assert.deepEqual(Object.keys(CASES), NAMES))

for (const name of NAMES) {
  const { flag, variable } = SETTINGS[name]
  const [fallback, text, value, other, malformed = []] = CASES[name]

  test(`${variable} has its default, is read from its flag in both forms or its variable; the flag beats that`, () => {
    for (const env of [{}, { [variable]: '' }]) assert.deepEqual(valueOf(readSettings([], env), name), fallback)
    const env = partner(name)
    const given: readonly (readonly [args: readonly string[], text?: string])[] = [
      [[`--${flag}=${text}`]], [[`--${flag}`, text]], [[], text], [[`--${flag}=${text}`], other],
      [[`--${flag}=${text}`], '']
    ]
    for (const [args, set] of given) {
      const variables = set === undefined ? env : { ...env, [variable]: set }
      assert.deepEqual(valueOf(readSettings(args, variables), name), value)
    }
    assert.notDeepEqual(valueOf(readSettings([`--${flag}=${other}`], { ...env, [variable]: text }), name), value)
  })

  test(`${variable} of another form, or none, is refused in one line that names where it came from`, () => {
    for (const wrong of malformed) {
      const refusals = [refusalOf([], { [variable]: wrong }), refusalOf([`--${flag}=${wrong}`])]
      for (const [i, by] of [variable, `--${flag}`].entries()) {
        assert.match(refusals[i]!, new RegExp(`^a setting is not valid: ${by} must be `), wrong)
      }
    }
    if (!['abilities', 'corsOrigins', 'allowedHosts'].includes(name)) {
      assert.match(refusalOf([`--${flag}=`], partner(name)), new RegExp(`--${flag} must be `))
    }
    for (const more of [[], ['--port=1']]) assert.match(refusalOf([`--${flag}`, ...more]), new RegExp(`--${flag}\\b`))
  })
}

test('an unknown flag, or a word that belongs to no flag, is refused by its name', () => {
  const flags = [
    '--unknown', '--unknown=1', '--no-port', '--Port=1', '-p', '--__proto__=1', '--DATA_DIR=x', '--', '--=x'
  ]
  for (const args of [...flags.map(flag => [flag]), ['serve'], ['--port=1', 'x']]) {
    assert.ok(refusalOf(args).includes(args.at(-1)!.split('=')[0]!), args.join(' '))
  }
})

test('settings that do not go together are refused, by their names', () => {
  const pairs: readonly (readonly [env: Variables, names: RegExp])[] = [
    [{ TLS_CERT: 'c' }, /TLS_CERT and TLS_KEY/],
    [{ TLS_KEY: 'k' }, /TLS_CERT and TLS_KEY/],
    [{ JOURNAL: 'etcd' }, /JOURNAL=etcd needs ETCD_ENDPOINTS/],
    [{ ETCD_USER: 'u' }, /ETCD_USER and ETCD_PASSWORD_FILE/],
    [{ ETCD_CERT: 'c' }, /ETCD_CERT and ETCD_KEY/],
    [{ ETCD_ENDPOINTS: 'https://10.0.0.2:1,http://10.0.0.1:1' },
      /http:\/\/10\.0\.0\.1:1 without TLS, which ETCD_PLAIN_HTTP=on/]
  ]
  for (const [env, names] of pairs) assert.match(refusalOf([], env), names)
  const far = { ETCD_ENDPOINTS: 'http://10.0.0.1:1', ETCD_PLAIN_HTTP: 'on' }
  const near = { ETCD_ENDPOINTS: 'http://localhost:1,http://127.0.0.2:1,http://[::1]:1', JOURNAL: 'etcd' }
  assert.deepEqual([far, near].map(env => readSettings([], env).etcdEndpoints.length), [1, 3])
})

test('with NODE_ENV=production unsafe settings are refused, and each missing setting is named', () => {
  const production = { NODE_ENV: 'production' }
  const auth = 'AUTH=bearer, or AUTH=none on purpose'
  const https = 'TLS_CERT and TLS_KEY, or a proxy in TRUST_PROXY'
  const missing: readonly (readonly [env: Variables, ...names: readonly string[]])[] = [
    [{}, auth, https], [{ TRUST_PROXY: '' }, auth, https],
    [{ TRUST_PROXY: '127.0.0.1' }, auth], [{ TLS_CERT: 'c', TLS_KEY: 'k' }, auth],
    [{ AUTH: 'bearer' }, https], [{ AUTH: 'none' }, https]
  ]
  for (const [env, ...names] of missing) {
    const said = refusalOf([], { ...env, ...production })
    for (const one of [auth, https, ...names]) {
      assert.equal(said.includes(one), names.includes(one), `${JSON.stringify(env)}: ${said}`)
    }
  }
  const tls = { TLS_CERT: 'c', TLS_KEY: 'k' }
  assert.equal(readSettings([], tls).tlsKey, 'k')
  for (const env of [tls, { TRUST_PROXY: '127.0.0.1' }]) {
    for (const AUTH of ['none', 'bearer']) assert.equal(readSettings([], { ...env, ...production, AUTH }).isProduction,
      true)
    assert.equal(readSettings(['--auth=none'], { ...env, ...production }).auth, 'none')
  }
  for (const env of ['', 'development', 'test']) assert.equal(readSettings([], { NODE_ENV: env }).isProduction, false)
})

describe('the program', { concurrency: 2 }, () => {
  type Given = { readonly [name: string]: string }
  test('refuses settings with exit code 2 and one line, and makes no folder', async t => {
    const cwd = freshFolder(t)
    const refused: readonly (readonly [args: readonly string[], env: Given, name: RegExp])[] = [
      [['serve'], {}, /'serve'/],
      [[], { ABILITIES: 'steal=x' }, /ABILITIES must be operations out of listPassword,/],
      [[], { NODE_ENV: 'production' }, /NODE_ENV=production/]
    ]
    for (const [args, env, name] of refused) {
      const { code, stdout, stderr } = await runProgram(t, { args, env, cwd })
      assert.deepEqual([code, stdout], [2, ''])
      assert.match(stderr, /^error: a setting is not valid: [^\n]+\n$/)
      assert.match(stderr, name)
    }
    assert.deepEqual(readdirSync(cwd), [])
  })

  test('bytes that are not UTF-8, in a word or a flag of the operator\'s program, are refused and make nothing', t => {
    const cwd = freshFolder(t)
    for (const [words, name] of [
      ['entry add --user u --generate --system="$x"', '--system'], ['entry list "$x"', 'FILTER'],
      ['journal backup "$x"', 'FILE']
    ]) {
      const { status, stderr } = spawnSync('sh', ['-c', `x=$(printf 'caf\\351'); exec "$0" "$1" ${words}`,
        process.execPath, ADMIN],
        { cwd, encoding: 'utf8', timeout: 20_000, env: { DATA_DIR: join(cwd, 'base') } })
      assert.equal(status, 2, `${words}: ${stderr}`)
      assert.match(String(stderr), new RegExp(`^error: ${name} must be UTF-8[^\n]*\n$`))
    }
    assert.deepEqual(readdirSync(cwd), [])
  })

  test('--help prints each flag, variable and default, and starts nothing', async t => {
    const cwd = freshFolder(t)
    const { code, stdout, stderr } = await runProgram(t, { args: ['--help', '--port=x'], cwd })
    assert.deepEqual([code, stderr], [0, ''])
    const lines = stdout.split('\n')
    for (const name of NAMES) {
      const { flag, variable, shown, help } = SETTINGS[name]
      const line = lines.filter(text => new RegExp(`^  --${flag} \\S`).test(text)) // with what its value is called
      assert.equal(line.length, 1, flag)
      for (const part of [variable, `default ${shown}.`, help]) {
        assert.ok(line[0]!.includes(part.replaceAll('`', '')), `${flag}: ${part}`)
      }
    }
    assert.deepEqual(readdirSync(cwd), [])
  })

  test('says at its start where its data is, what is in it, where it listens and to whom', async t => {
    const folder = freshFolder(t)
    const store = await fileStore(folder)
    for (const password of ['a', 'b', 'c']) await createEntry(store, { password, sistema: 's', usuario: 'u' }, null)
    await store.close()
    const { url, stdout, stop } = await startProgram(t, { flags: { data: folder, 'rate-limit': '60', page: 'on' } })
    const head = /,"hash":"([0-9a-f]{64})"\}\n$/.exec(readFileSync(join(folder, 'journal.jsonl'), 'latin1'))?.[1]
    assert.deepEqual(stdout.split('\n'), [
      `data folder    ${folder}`,
      'journal        3 records, 3 entries (3 active)',
      `chain head     ${head}`,
      `address        ${url}`,
      'configuration  open: anyone who reaches the address can read and change every entry',
      `page           ${url}/`,
      'ready',
      ''
    ])
    assert.match(url, /^http:\/\/127\.0\.0\.1:[1-9][0-9]*$/)
    assert.equal((await stop()).stderr, '')
  })

  test('keeps its data in `data` of the working folder, and says so by an absolute path', async t => {
    const cwd = realpathSync(freshFolder(t))
    const { stdout, stop } = await startProgram(t, { args: [], env: { PORT: '0' }, cwd })
    assert.ok(stdout.startsWith(`data folder    ${join(cwd, 'data')}\n`), stdout)
    assert.ok(stdout.includes(`\nnew, empty store in ${join(cwd, 'data')}\n`), stdout)
    assert.equal(statSync(join(cwd, 'data')).mode & 0o777, 0o700)
    for (const name of ['journal.jsonl', 'journal.key']) {
      assert.equal(statSync(join(cwd, 'data', name)).mode & 0o777, 0o600, name)
    }
    await stop()
    assert.doesNotMatch((await startProgram(t, { args: [], env: { PORT: '0' }, cwd })).stdout, /new, empty store/)
  })

  test('§5.2 says of the protected configuration how many may use it', async t => {
    const { stdout } = await startProgram(t, { flags: { auth: 'bearer' } })
    assert.match(stdout, /^configuration  protected: 0 users, 0 tokens$/m)
  })

  const WARNINGS: readonly (readonly [flags: Given, lines: readonly RegExp[]])[] = [
    [{}, []],
    [{ host: 'localhost' }, []],
    [{ host: '127.0.0.2' }, []],
    [{ 'rate-limit': '0' }, [/^the rate limit is off$/]],
    [{ journal: 'memory' }, [/^JOURNAL=memory keeps nothing beyond this process$/]],
    [{ host: '0.0.0.0' }, [/^0\.0\.0\.0 is reachable .* asks for no password/, /^0\.0\.0\.0 .* TLS_CERT/]],
    [{ host: '0.0.0.0', auth: 'bearer' }, [/^nobody can log in yet: the operator’s command user add EMAIL/,
      /^0\.0\.0\.0 is reachable .* TLS_CERT/]],
    [{ host: '0.0.0.0', auth: 'bearer', 'trust-proxy': '10.0.0.1' }, [/^nobody can log in yet/]],
    [{ 'trust-proxy': '10.0.0.1' }, [/^whoever reaches the proxy can read and change every entry: AUTH=bearer/]]
  ]
  test('warns of what is dangerous, and of nothing else', async t => {
    for (const [flags, lines] of WARNINGS) {
      const { warnings } = await startService(t, { 'rate-limit': '60', ...flags })
      assert.equal(warnings.length, lines.length, warnings.join('\n'))
      for (const [i, line] of lines.entries()) assert.match(warnings[i]!, line)
    }
  })

  test('whose port is in use ends with exit code 1 and one line, and lets go of its folder', async t => {
    const other = createServer().listen(0, '127.0.0.1')
    t.after(() => { other.close() })
    await once(other, 'listening')
    const port = String((other.address() as AddressInfo).port)
    const data = freshFolder(t)
    const { code, stdout, stderr } = await runProgram(t, { flags: { data, port } })
    assert.equal(code, 1)
    assert.equal(stderr, `error: the address cannot be listened on: HOST 127.0.0.1, PORT ${port}: EADDRINUSE; ` +
      'another program has that port: --port takes another one\n')
    assert.doesNotMatch(stdout, /^(address|ready)/m)
    assert.deepEqual(socketsIn(data), [])
    await startProgram(t, { flags: { data } })
  })

  test('what cannot be used ends with exit code 1 and one line', async t => {
    const data = freshFolder(t)
    const file = join(data, 'file')
    writeFileSync(file, 'content')
    const looped = freshFolder(t)
    symlinkSync('journal.jsonl', join(looped, 'journal.jsonl'))
    const long = join(data, 'x'.repeat(300))
    const production = { env: { NODE_ENV: 'production', AUTH: 'none', TRUST_PROXY: '127.0.0.1' } }
    const cases: readonly (readonly [flags: Given, line: string, more?: object])[] = [
      [{ data: looped }, `the data folder cannot be used: ${join(looped, 'journal.jsonl')} is a link; [^\n]+`],
      [{ data, 'key-file': data }, `the key file is not valid: ${data}: EISDIR`],
      [{ data, 'key-file': join(data, 'no/k') },
        `the key file cannot be changed: ${join(data, 'no/k')} could not be made: ENOENT`],
      [{ data: long }, `the data folder cannot be used: ${long}: ENAMETOOLONG`, production],
      [{ host: '192.0.2.1' }, 'the address cannot be listened on: HOST 192\\.0\\.2\\.1, PORT 0: EADDRNOTAVAIL'],
      [{ data: file }, `the data folder cannot be used: ${file}: (ENOTDIR|EEXIST)`],
      [{ data: join(file, 'below') }, `the data folder cannot be used: ${file}(/below)?: (ENOTDIR|EEXIST)`]
    ]
    for (const [flags, line, more] of cases) {
      const { code, stderr } = await runProgram(t, { flags, ...more })
      assert.match(stderr, new RegExp(`^error: ${line}\n$`))
      assert.equal(code, 1)
    }
    assert.deepEqual(socketsIn(data), [])
    assert.equal(readFileSync(file, 'utf8'), 'content')
  })
})
