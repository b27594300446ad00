/**
 * What is installed beside the program: the wrapper, the backup, the image's settings, as far as a machine without
 * containers can try them.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync
} from 'node:fs'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readSettings } from '../../src/settings.ts'
import { ADMIN, done, initialized } from '../support/admin.ts'
import { freshFolder } from '../support/service.ts'

const INSTALL = fileURLToPath(new URL('../../src/parts/operator/install/', import.meta.url))
const RUNBOOK = fileURLToPath(new URL('../../src/parts/operator/README.md', import.meta.url))
const NOT_ROOT = process.geteuid?.() === 0 ? false : 'only root can give files to another user'

/** A folder of commands that stand in for those of the machine, before its own. */
function pathWith(t: TestContext, commands: { readonly [name: string]: string }): string {
  const folder = freshFolder(t)
  for (const [name, script] of Object.entries(commands)) writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`,
    { mode: 0o755 })
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

const BACKUP = join(INSTALL, 'pes-backup')
const OWN = /^pes-backup-(\d{6})-\d{8}T\d{6}Z\.(jsonl|key)$/
const ownIn = (folder: string): string[] => readdirSync(folder).filter(name => OWN.test(name)).sort()

/** Folders for backups and keys, and what `pes-backup` needs to know. */
function places(t: TestContext, keyFile: string, PATH: string): { readonly backups: string, readonly keys: string,
  readonly env: NodeJS.ProcessEnv } {
  const [backups, keys] = [join(freshFolder(t), 'backups'), join(freshFolder(t), 'keys')]
  for (const made of [backups, keys]) mkdirSync(made)
  return { backups, keys, env: { PATH, BACKUPS: backups, KEY_BACKUPS: keys, KEY_FILE: keyFile } }
}

test('the backup is verified, copies the keys, clears what a killed one left, and fails if it is not good', async t => {
  const folder = await initialized(t)
  const PATH = pathWith(t, { 'pes-admin': `exec "${process.execPath}" "${ADMIN}" --data "${folder}" "$@"` })
  const { backups, keys, env } = places(t, join(folder, 'journal.key'), PATH)
  const others = [
    'notes.txt', 'archive-1-9.jsonl', 'journal-1-9.jsonl', 'before-upgrade-20250101T000000Z.jsonl',
    'journal-20250101T000000Z.jsonl'
  ]
  for (const name of others) writeFileSync(join(backups, name), 'of somebody else')
  for (const name of ['jsonl.new', 'jsonl.new.123.part']) writeFileSync(join(backups,
    `pes-backup-000007-20250101T000000Z.${name}`), 'killed')
  writeFileSync(join(keys, 'pes-backup-000008-20250101T000000Z.key'), 'an older one')
  const { status, stderr, stdout } = spawnSync(BACKUP, { env, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  assert.deepEqual(readdirSync(backups).sort(), [...others, ...ownIn(backups)].sort())
  const [made = ''] = ownIn(backups)
  assert.match(made, /^pes-backup-000009-/, 'numbers go on in both folders')
  assert.ok(stdout.endsWith(`${join(backups, made)}\n`), stdout)
  await done(folder, `journal verify ${join(backups, made)}`)
  const key = join(keys, made.replace('.jsonl', '.key'))
  assert.deepEqual(readFileSync(key), readFileSync(join(folder, 'journal.key')))
  assert.equal(statSync(key).mode & 0o777, 0o600)
  for (const [word, code] of [['backup', 3], ['verify', 4]] as const) {
    const failing = pathWith(t,
      { 'pes-admin': `[ "$2" = ${word} ] && exit ${code}
exec "${process.execPath}" "${ADMIN}" --data "${folder}" "$@"` })
    assert.equal(spawnSync(BACKUP, { env: { ...env, PATH: failing } }).status, code)
    assert.deepEqual([ownIn(backups), ownIn(keys).length], [[made], 2],
      'it has no name of a backup, and nothing is removed')
  }
  const held = spawnSync('flock', [backups, BACKUP], { env, encoding: 'utf8' })
  assert.deepEqual([held.status, held.stderr], [1, `error: another pes-backup works in ${backups}\n`])
})

test('in a year of nights the newest fourteen stay, whatever the clock says, and nothing of another hand goes', t => {
  // The day is a number: that of a journal, and of a clock that may jump.
  const place = freshFolder(t)
  const PATH = pathWith(t, {
    date: 'echo "$CLOCK"',
    'pes-admin': `case "$1 $2" in
'journal backup') set -C; cat "${place}/journal.jsonl" > "$3";;
'journal verify') read -r line < "$3"; [ "$line" = "night $NIGHT" ];;
esac`
  })
  const { backups, keys, env } = places(t, join(place, 'journal.key'), PATH)
  const others = new Set<string>()
  const put = (name: string): void => {
    const path = join(backups, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, 'the only copy')
    others.add(path)
  }
  for (let night = 1; night <= 365; night++) {
    const day = night >= 100 && night < 140 ? night + 3650 : night >= 200 && night < 220 ? night - 400 : night
    const clock = new Date(Date.UTC(2026, 0, day, 2)).toISOString().replace(/[-:]|\.\d+/g, '')
    writeFileSync(join(place, 'journal.jsonl'), `night ${night}\n`)
    writeFileSync(join(place, 'journal.key'), `key ${night}\n`, { mode: 0o600 })
    if (night % 26 === 0) put(`${night % 52 === 0 ? 'journal' : 'archive'}-${night}-${night + 9}.jsonl`)
    if (night % 90 === 0) put(`damaged-${night}/pes-backup-000${night}-20260101T000000Z.jsonl`)
    const { status, stderr } = spawnSync(BACKUP, { env: { ...env, CLOCK: clock, NIGHT: String(night) },
      encoding: 'utf8' })
    assert.equal(status, 0, `night ${night}: ${stderr}`)
    if (night % 20 !== 0 && night !== 365) continue
    const kept = Array.from({ length: Math.min(night, 14) }, (_, i) => night - Math.min(night, 14) + 1 + i)
    assert.deepEqual(ownIn(backups).map(name => readFileSync(join(backups, name), 'utf8')),
      kept.map(one => `night ${one}\n`), `night ${night}`)
    assert.deepEqual(ownIn(keys).map(name => readFileSync(join(keys, name), 'utf8')), kept.map(one => `key ${one}\n`),
      `night ${night}`)
  }
  for (const path of others) assert.equal(readFileSync(path, 'utf8'), 'the only copy', path)
  assert.equal(others.size, 14 + 4)
})

test('the line for the monitoring finds a backup of tonight, and no archive, damaged copy or half a backup', t => {
  const [, line = ''] = /`(find \/var\/backups\/password-entry-service [^`]*)`/.exec(readFileSync(RUNBOOK, 'utf8')) ??
    []
  const folder = freshFolder(t)
  const isFresh = (): boolean => spawnSync('sh', ['-c',
    line.replace('/var/backups/password-entry-service', folder)]).status === 0
  mkdirSync(join(folder, 'damaged'))
  for (const name of ['journal-1-9.jsonl', 'archive-1-9.jsonl', 'damaged/pes-backup-000001-20260101T000000Z.jsonl',
    'pes-backup-000002-20260101T000000Z.jsonl.new']) {
    writeFileSync(join(folder, name), '')
    assert.equal(isFresh(), false, name)
  }
  writeFileSync(join(folder, 'pes-backup-000002-20260101T000000Z.jsonl'), '')
  assert.equal(isFresh(), true)
})

test('a copy of the keys has the owner of the key file', { skip: NOT_ROOT }, async t => {
  const folder = await initialized(t)
  const key = join(folder, 'journal.key')
  chownSync(key, 54_321, 54_322)
  const { keys, env } = places(t, key, pathWith(t, { 'pes-admin': '[ "$2" = verify ] || : > "$3"' }))
  assert.equal(spawnSync(BACKUP, { env }).status, 0)
  const { uid, gid, mode } = statSync(join(keys, ownIn(keys)[0]!))
  assert.deepEqual([uid, gid, mode & 0o777], [54_321, 54_322, 0o600])
})

test('the settings of the image and of the compose file are taken, and protect what is stored', () => {
  const dockerfile = readFileSync(join(INSTALL, 'Dockerfile'), 'utf8').replaceAll('\\\n', ' ')
  const env = Object.fromEntries([.../^ENV (.*)$/m.exec(dockerfile)![1]!.matchAll(/(\w+)=(\S+)/g)].map(([, name,
    value]) => [name!, value!]))
  const [, proxies = ''] = /TRUST_PROXY: (\S+), ACCESS_LOG: 'on' \}/.exec(readFileSync(join(INSTALL, 'compose.yaml'),
    'utf8')) ?? []
  const { auth, isProduction, tokenTtlMinutes, loginLimit, rateLimitBy, dataDir, keyFile } =
    readSettings([], { ...env, TRUST_PROXY: proxies })
  assert.deepEqual({ auth, isProduction, tokenTtlMinutes, loginLimit, rateLimitBy, dataDir, keyFile }, {
    auth: 'bearer', isProduction: true, tokenTtlMinutes: 720, loginLimit: 30, rateLimitBy: 'user', dataDir: '/data',
    keyFile: '/keys/journal.key'
  })
  assert.throws(() => readSettings([], env), /needs TLS_CERT and TLS_KEY, or a proxy in TRUST_PROXY$/)
})

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
  const { status, stderr } = spawnSync('systemd-analyze',
    ['verify', ...readdirSync(folder).map(name => join(folder, name))], { encoding: 'utf8' })
  assert.deepEqual([status, stderr], [0, ''])
})

test('the steps from a unit with DynamicUser give the folders to the user of the service, which then reads them', {
  skip: NOT_ROOT
}, async t => {
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
  assert.deepEqual([lstatSync(data).isDirectory(), statSync(data).uid, statSync(key).uid, statSync(data).mode & 0o777],
    [true, 54_321, 54_321, 0o700])
  const run = spawnSync(process.execPath, [ADMIN, 'entry', 'list'],
    { uid: 54_321, gid: 54_322, env: { DATA_DIR: data, KEY_FILE: key }, encoding: 'utf8' })
  if (!/MODULE_NOT_FOUND|EACCES.*dist/.test(run.stderr)) assert.match(run.stdout, /^1 +s +u$/m, run.stderr)
})

test('the settings of the unit are taken, and protect what is stored', () => {
  const lines = [...readFileSync(RUNBOOK, 'utf8').matchAll(/^Environment=(.*)$/gm)].flatMap(([, line]) =>
    line!.split(' '))
  const env = Object.fromEntries(lines.map(one => one.split('=')))
  const { auth, isProduction, tokenTtlMinutes, loginLimit, rateLimitBy, accessLog } = readSettings([], env)
  assert.deepEqual([auth, isProduction, tokenTtlMinutes, loginLimit, rateLimitBy, accessLog],
    ['bearer', true, 720, 30, 'user', true])
})
