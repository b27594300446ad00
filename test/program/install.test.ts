/** What is installed beside the program: the wrapper, the backup, the image's settings, as far as a machine without containers can try them. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readSettings } from '../../src/settings.ts'
import { ADMIN, done, initialized } from '../support/admin.ts'
import { freshFolder } from '../support/service.ts'

const INSTALL = fileURLToPath(new URL('../../src/parts/operator/install/', import.meta.url))

/** A folder of commands that stand in for those of the machine, before its own. */
function pathWith(t: TestContext, commands: { readonly [name: string]: string }): string {
  const folder = freshFolder(t)
  for (const [name, script] of Object.entries(commands)) writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return `${folder}:${process.env['PATH']}`
}

test('the wrapper runs the program as the user of the service, with its folders, and names who asks', t => {
  const PATH = pathWith(t, { setpriv: 'echo "$LOGNAME $*"', id: 'echo root' })
  const run = (env: NodeJS.ProcessEnv): string =>
    spawnSync(join(INSTALL, 'pes-admin'), ['entry', 'get', 'a b'], { env: { PATH, ...env }, encoding: 'utf8' }).stdout
  const words = 'node /opt/password-entry-service/dist/admin.js --data /var/lib/password-entry-service ' +
    '--key-file /var/lib/password-entry-service-key/journal.key entry get a b\n'
  assert.equal(run({ SUDO_USER: 'ana' }), `ana --reuid=password-entry --regid=password-entry --clear-groups ${words}`)
  assert.match(run({}), /^root /)
})

test('the backup is verified, copies the keys, and keeps fourteen of each', async t => {
  const folder = await initialized(t)
  const [backups, keys] = [join(freshFolder(t), 'backups'), join(freshFolder(t), 'keys')]
  for (const made of [backups, keys]) mkdirSync(made)
  for (let day = 10; day < 26; day++) {
    writeFileSync(join(backups, `journal-202501${day}T000000Z.jsonl`), 'older')
    writeFileSync(join(keys, `journal-202501${day}T000000Z.key`), 'older')
  }
  writeFileSync(join(backups, 'notes.txt'), 'of somebody else')
  const PATH = pathWith(t, { 'pes-admin': `exec "${process.execPath}" "${ADMIN}" --data "${folder}" "$@"` })
  const env = { PATH, BACKUPS: backups, KEY_BACKUPS: keys, KEY_FILE: join(folder, 'journal.key') }
  const { status, stderr } = spawnSync(join(INSTALL, 'pes-backup'), { env, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  const [left, keysLeft] = [readdirSync(backups).sort(), readdirSync(keys).sort()]
  assert.deepEqual([left.length, left.includes('notes.txt'), keysLeft.length], [15, true, 14])
  const newest = join(backups, left.filter(name => name.startsWith('journal-')).at(-1)!)
  await done(folder, `journal verify ${newest}`)
  assert.deepEqual(readFileSync(join(keys, keysLeft.at(-1)!)), readFileSync(join(folder, 'journal.key')))
  const failing = spawnSync(join(INSTALL, 'pes-backup'), { env: { ...env, PATH: pathWith(t, { 'pes-admin': 'exit 3' }) } })
  assert.equal(failing.status, 3, 'a backup that is not good is no success')
  assert.equal(readdirSync(backups).length, 15, 'and removes none')
})

test('the settings of the image and of the compose file are taken, and protect what is stored', () => {
  const dockerfile = readFileSync(join(INSTALL, 'Dockerfile'), 'utf8').replaceAll('\\\n', ' ')
  const env = Object.fromEntries([.../^ENV (.*)$/m.exec(dockerfile)![1]!.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name!, value!]))
  const [, proxies = ''] = /TRUST_PROXY: (\S+), ACCESS_LOG: 'on' \}/.exec(readFileSync(join(INSTALL, 'compose.yaml'), 'utf8')) ?? []
  const { auth, isProduction, tokenTtlMinutes, loginLimit, rateLimitBy, dataDir, keyFile } = readSettings([], { ...env, TRUST_PROXY: proxies })
  assert.deepEqual({ auth, isProduction, tokenTtlMinutes, loginLimit, rateLimitBy, dataDir, keyFile }, {
    auth: 'bearer', isProduction: true, tokenTtlMinutes: 720, loginLimit: 30, rateLimitBy: 'user', dataDir: '/data', keyFile: '/keys/journal.key'
  })
  assert.throws(() => readSettings([], env), /needs TLS_CERT and TLS_KEY, or a proxy in TRUST_PROXY$/)
})

const RUNBOOK = fileURLToPath(new URL('../../src/parts/operator/README.md', import.meta.url))
const NO_SYSTEMD = spawnSync('systemd-analyze', ['--version']).status === 0 ? false : 'systemd is not installed'

test('systemd takes the unit of the runbook and those of the backup as they are', { skip: NO_SYSTEMD }, t => {
  const folder = freshFolder(t)
  const unit = /```ini\n(# \/etc\/systemd[^]*?)```/.exec(readFileSync(RUNBOOK, 'utf8'))![1]!
  // What they start is not installed here.
  const local = (text: string): string => text.replace(/^ExecStart=.*$/m, `ExecStart=${process.execPath}`)
  writeFileSync(join(folder, 'password-entry-service.service'), local(unit))
  for (const name of ['pes-backup.service', 'pes-backup.timer']) {
    writeFileSync(join(folder, name), local(readFileSync(join(INSTALL, name), 'utf8')))
  }
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', ...readdirSync(folder).map(name => join(folder, name))], { encoding: 'utf8' })
  assert.deepEqual([status, stderr], [0, ''])
})

const NOT_ROOT = process.geteuid?.() === 0 ? false : 'only root can give files to another user'

test('the steps from a unit with DynamicUser give the folders to the user of the service, which then reads them', { skip: NOT_ROOT }, async t => {
  const top = freshFolder(t)
  chmodSync(top, 0o755)
  const [, steps = ''] = /`(for d in password-entry-service [^`]*done)`/.exec(readFileSync(RUNBOOK, 'utf8')) ?? []
  for (const name of ['password-entry-service', 'password-entry-service-key']) {
    mkdirSync(join(top, 'private', name), { recursive: true, mode: 0o700 })
    symlinkSync(`private/${name}`, join(top, name))
  }
  const [data, key] = [join(top, 'password-entry-service'), join(top, 'password-entry-service-key/journal.key')]
  await done(data, `init --key-file ${key}`)
  await done(data, `entry add --system s --user u --password-stdin --key-file ${key}`, 'p')
  for (const path of [join(top, 'private'), join(data, 'journal.jsonl'), key]) chownSync(path, 61_184, 61_184)
  const text = steps.replaceAll('\n', ' ').replaceAll('/var/lib', top).replace('password-entry:', '54321:54322')
  const moved = spawnSync('sh', ['-c', `set -e; ${text}`], { encoding: 'utf8' })
  assert.deepEqual([moved.status, moved.stderr], [0, ''])
  assert.deepEqual([lstatSync(data).isDirectory(), statSync(data).uid, statSync(key).uid, statSync(data).mode & 0o777], [true, 54_321, 54_321, 0o700])
  const run = spawnSync(process.execPath, [ADMIN, 'entry', 'list'], { uid: 54_321, gid: 54_322, env: { DATA_DIR: data, KEY_FILE: key }, encoding: 'utf8' })
  if (!/MODULE_NOT_FOUND|EACCES.*dist/.test(run.stderr)) assert.match(run.stdout, /^1 +s +u$/m, run.stderr)
})

test('the settings of the unit are taken, and protect what is stored', () => {
  const lines = [...readFileSync(RUNBOOK, 'utf8').matchAll(/^Environment=(.*)$/gm)].flatMap(([, line]) => line!.split(' '))
  const env = Object.fromEntries(lines.map(one => one.split('=')))
  const { auth, isProduction, tokenTtlMinutes, loginLimit, rateLimitBy, accessLog } = readSettings([], env)
  assert.deepEqual([auth, isProduction, tokenTtlMinutes, loginLimit, rateLimitBy, accessLog], ['bearer', true, 720, 30, 'user', true])
})
