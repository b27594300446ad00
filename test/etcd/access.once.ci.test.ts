/** How etcd is reached: over TLS, as a user, with tokens that end; as its releases answer. */
import assert from 'node:assert/strict'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { done } from '../support/admin.ts'
import { certificate } from '../support/certificate.ts'
import { base64, callEtcd, etcdMissing, NEWER_ETCDS, pause, startCluster, startProxy,
  versionOf } from '../support/etcd.ts'
import { create, FIELDS, flagsOf, list, until } from '../support/instances.ts'
import { failure } from '../support/journal.ts'
import { freshFolder, send, startService } from '../support/service.ts'

const NO_ETCD = etcdMissing()
const PASSWORD = 'the password'

/** Has etcd ask for a user, and makes one for the prefix. */
async function enableUsers(
  call: (path: string, body: object) => Promise<unknown>, [first, end]: readonly [string, string] = ['/pes', '/pet']
): Promise<void> {
  const range = { key: base64(first), range_end: base64(end) }
  await call('/v3/auth/role/add', { name: 'root' })
  await call('/v3/auth/role/add', { name: 'pes' })
  await call('/v3/auth/role/grant', { name: 'pes', perm: { permType: 'READWRITE', ...range } })
  for (const [name, password] of [['root', 'r'], ['pes', PASSWORD]] as const) {
    await call('/v3/auth/user/add', { name, password })
    await call('/v3/auth/user/grant', { user: name, role: name })
  }
  await call('/v3/auth/enable', {})
}

function put(folder: string, name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const TOKEN_KINDS = {
  simple: () => ['--auth-token-ttl', '1'],
  jwt: folder => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048, publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs1', format: 'pem' }
    })
    const paths = `pub-key=${put(folder, 'jwt.pub', publicKey)},priv-key=${put(folder, 'jwt.key', privateKey)}`
    return ['--auth-token', `jwt,${paths},sign-method=RS256,ttl=1s`]
  }
} satisfies { [kind: string]: (folder: string) => string[] }

// They mostly wait.
describe('access to etcd', { concurrency: true }, () => {
  for (const program of ['etcd', ...NEWER_ETCDS]) {
    for (const [kind, argsOf] of Object.entries(TOKEN_KINDS)) {
      const title = 'one that has ended, or that members have forgotten, is asked for again'
      const name = `etcd ${versionOf(program)}, ${kind} tokens: ${title}`
      const missing = etcdMissing(program)
      test(name, { skip: missing }, async t => {
        const folder = freshFolder(t)
        const { endpoints, members: [member], ready } = await startCluster(t, { program, args: argsOf(folder) })
        const flags = await flagsOf(t, endpoints, randomBytes(32))
        await enableUsers((path, body) => callEtcd(endpoints, path, body))
        const { url } = await startService(t, {
          ...flags, 'etcd-user': 'pes', 'etcd-password-file': put(folder, 'p', PASSWORD)
        })
        const createAndGet = async (): Promise<number[]> => [
          (await send(url, 'POST', '/api/createPassword', FIELDS)).status,
          (await send(url, 'GET', '/api/getPassword/1')).status
        ]
        assert.deepEqual(await createAndGet(), [200, 200])
        await pause(2_500) // a simple token lives a second or two longer than it should
        assert.deepEqual(await createAndGet(), [200, 200], 'once the token has ended')
        await member!.stop()
        member!.start()
        await ready()
        assert.deepEqual(await createAndGet(), [200, 200], 'once the member was restarted')
      })
    }
  }

  test('a role for the keys of the prefix is enough; a watch that it forbids is told once, and not retried at once', {
    skip: NO_ETCD
  }, async t => {
    const folder = freshFolder(t)
    const { endpoints } = await startCluster(t)
    const flags: Record<string, string> = {
      ...await flagsOf(t, endpoints, randomBytes(32)), 'etcd-user': 'pes',
      'etcd-password-file': put(folder, 'p', PASSWORD)
    }
    await enableUsers((path, body) => callEtcd(endpoints, path, body), ['/pes.key', '/pes/1'])
    const one = await startService(t, flags)
    assert.deepEqual([await create(one), await list(one)], [200, 200])
    const { token } = await callEtcd(endpoints, '/v3/auth/authenticate', { name: 'root', password: 'r' })
    const range = (key: string, end: string): object => ({ key: base64(key), range_end: base64(end) })
    await callEtcd(endpoints, '/v3/auth/role/revoke', { role: 'pes', ...range('/pes.key', '/pes/1') }, token)
    for (const [key, end] of [['/pes.key', '/pes.kez'], ['/pes.turn/', '/pes.turn0'], ['/pes/', '/pes/1']] as const) {
      await callEtcd(endpoints, '/v3/auth/role/grant', { name: 'pes',
        perm: { permType: 'READWRITE', ...range(key, end) } }, token)
    }
    const proxy = await startProxy(t, endpoints)
    let watches = 0
    proxy.before = body => { if (body.includes('create_request')) watches++ }
    const other = await startService(t, { ...flags, 'data': freshFolder(t),
      'key-file': join(flags['data']!, 'journal.key'), 'etcd-endpoints': proxy.url })
    await until(() => other.warnings.some(line => /may not watch/.test(line)))
    const { requests } = proxy
    await pause(2_000)
    assert.ok(proxy.requests - requests < 5, `${proxy.requests - requests} requests`)
    assert.equal(await create(one), 200)
    assert.deepEqual([await create(other), await list(other)], [200, 200])
    await until(() => watches > 1)
    await pause(500) // by then it is refused again
    const said = other.warnings.filter(line =>
      /etcd's user may not watch the journal, .* from \/pes\.key to \/pes\/1$/.test(line))
    assert.equal(said.length, 1)
  })

  test('etcd asks for a certificate and a user, and forgets its tokens', { skip: NO_ETCD }, async t => {
    const folder = freshFolder(t)
    const pem = certificate('') // with a name the gateway refuses it, for the user is to be the token's
    const [cert, key] = [put(folder, 'cert.pem', pem.cert), put(folder, 'key.pem', pem.key)]
    const { endpoints, members: [member] } = await startCluster(t, {
      scheme: 'https',
      args: ['--cert-file', cert, '--key-file', key, '--trusted-ca-file', cert, '--client-cert-auth']
    })
    const call = (path: string, body: object, token?: string): Promise<any> => new Promise((resolve, reject) => {
      const headers = token === undefined ? {} : { Authorization: token }
      request(endpoints + path, { method: 'POST', ca: pem.cert, cert: pem.cert, key: pem.key, headers },
        async answer => {
        let text = ''
        for await (const chunk of answer.setEncoding('utf8')) text += String(chunk)
        if (answer.statusCode === 200) resolve(JSON.parse(text))
        else reject(new Error(`${answer.statusCode}`))
      }).on('error', reject).end(JSON.stringify(body))
    })
    const isReady = (): Promise<boolean> => // 4xx: it asks for a user
      call('/v3/kv/range', { key: 'AA==' }).then(() => true, (error: Error) => error.message.startsWith('4'))
    const ready = async (): Promise<void> => { for (let tries = 0; tries < 600 &&
      !await isReady(); tries++) await pause(50) }
    await ready()
    await enableUsers(call)
    const flags: Record<string, string> = {
      ...await flagsOf(t, endpoints, randomBytes(32)), 'etcd-ca': cert, 'etcd-cert': cert, 'etcd-key': key,
      'etcd-user': 'pes', 'etcd-password-file': put(folder, 'password', `${PASSWORD}\n`)
    }
    const at = Object.entries(flags).filter(([name]) => !['data', 'rate-limit'].includes(name))
    await done(flags['data']!, `init ${at.map(([name, value]) => `--${name} ${value}`).join(' ')}`)
    const { url } = await startService(t, flags)
    assert.equal((await send(url, 'POST', '/api/createPassword', FIELDS)).status, 200)
    await member!.stop()
    member!.start()
    await ready()
    assert.equal((await send(url, 'POST', '/api/updatePassword/1', { password: 'x' })).status, 200, 'with a new token')
    assert.equal((await send(url, 'GET', '/api/getPassword/1')).json.passwords.password, 'x')
    const { token } = await call('/v3/auth/authenticate', { name: 'root', password: 'r' })
    await call('/v3/auth/user/changepw', { name: 'pes', password: 'another' }, token)
    await member!.stop()
    member!.start()
    await ready()
    assert.equal((await send(url, 'POST', '/api/updatePassword/1', { password: 'y' })).status, 500,
      'it is not known yet')
    put(folder, 'password', 'another\n')
    assert.equal((await send(url, 'POST', '/api/updatePassword/1', { password: 'y' })).status, 200,
      'once the file has it')
    const wrong = { ...flags, 'data': freshFolder(t), 'key-file': join(flags['data']!, 'journal.key') }
    await assert.rejects(startService(t, { ...wrong, 'etcd-password-file': put(folder, 'other', 'no') }),
      failure('journal-refused', /^the journal refused .*: user pes: .*invalid user ID or password$/))
    await assert.rejects(startService(t, { ...wrong, 'etcd-prefix': '/elsewhere' }),
      failure('journal-refused', /permission denied/))
  })
})

const NO_NEWER = NEWER_ETCDS.length === 0 && 'ETCD_NEWER names no program; .ci/newer-etcd fetches some'
test('there is a newer etcd than the installed one', { skip: NO_NEWER }, () => {})
