/** What the program writes, where to, and what it says of files that it cannot use. */
import { strict as assert } from 'node:assert'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync, chownSync, closeSync, constants, cpSync, existsSync, mkdirSync, openSync, readFileSync, readSync,
  readdirSync, realpathSync, renameSync, rmSync, truncateSync, writeFileSync, writeSync
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { done, initialized } from '../support/admin.ts'
import { joined } from '../support/patterns.ts'
import { mountMissing, smallDisk } from '../support/system.ts'
import { runProgram, SERVER, startProgram, until } from '../support/program.ts'
import { freshFolder, send } from '../support/service.ts'

const DIST = fileURLToPath(new URL('../../dist', import.meta.url))
const PRODUCTION = { NODE_ENV: 'production', AUTH: 'none', TRUST_PROXY: '127.0.0.1', PORT: '0' }

test('with ACCESS_LOG=on standard output holds JSON lines alone, and a person reads standard error', async t => {
  const program = await startProgram(t, { flags: { 'access-log': 'on' } })
  await send(program.url, 'POST', '/api/createPassword', { password: 'p', sistema: 's', usuario: 'u' })
  const { code, stdout, stderr } = await program.stop()
  assert.equal(code, 0)
  const [started, line, ...rest] = stdout.trimEnd().split('\n').map(text => JSON.parse(text))
  assert.deepEqual([started.service, line.route, line.entry, rest.map(({ service }) => service)],
    ['started', 'createPassword', 1, ['stopped']])
  assert.match(stderr, /^data folder [^]*^address [^]*^ready\nchain head .*, at the stop\nstopped\n$/m)
})

test('a reader of the output that goes away costs lines, not the service', async t => {
  const program = await startProgram(t, { flags: { 'access-log': 'on' } })
  for (const stream of [program.child.stdout!, program.child.stderr!]) stream.destroy()
  for (let n = 0; n < 20; n++) assert.equal((await send(program.url, 'GET', '/api/listPassword')).status, 404)
  assert.equal((await program.stop()).code, 0)
})

test('an access log whose disk fills up counts the lines that it loses, and goes on with whole ones when there is room',
  {
  skip: mountMissing()
}, async t => {
  const folder = smallDisk(t, '64k')
  const [path, filler] = [join(folder, 'access.log'), join(folder, 'filler')]
  const command = ['sh', '-c', 'exec "$@" >"$0"', path, process.execPath, join(DIST, 'server.js')]
  const program = await startProgram(t, { flags: { 'access-log': 'on' }, command })
  const ask = async (times: number): Promise<void> => {
    for (let n = 0; n < times; n++) assert.equal((await send(program.url, 'GET', '/api/listPassword')).status, 404)
  }
  await ask(1)
  await until('the first line, which is written a moment after its answer', () => readFileSync(path).length > 0)
  spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4096'], { stdio: 'ignore' })
  await ask(30)
  rmSync(filler)
  await ask(2)
  const metrics = await (await fetch(`${program.url}/metrics`)).text()
  const lost = Number(/^pes_access_log_lost_lines_total (\d+)$/m.exec(metrics)?.[1])
  const { stderr } = await program.stop()
  assert.equal(stderr.match(/^warning: the access log loses lines, which are counted: ENOSPC$/gm)?.length, 1, stderr)
  const written = readFileSync(path, 'utf8').split('\n').filter(line => line.endsWith('}'))
  const lines = written.map(line => JSON.parse(line))
  // A line without its end is lost, although it may have ended with its page.
  assert.ok(lost > 5 && [36, 37].includes(lines.length + lost), `${lines.length} written, ${lost} lost`)
  assert.deepEqual(lines.slice(-4).map(({ service, status }) => service ?? status), [404, 404, 200, 'stopped'])
})

for (const [signal, end] of [['SIGTERM', [0, null]], ['SIGHUP', [null, 'SIGHUP']]] as const) test(
  `a reader of the output who takes nothing holds up no ${signal}, and does not change its end`, {
  timeout: 60_000
}, async t => {
  const pipe = join(freshFolder(t), 'pipe')
  spawnSync('mkfifo', [pipe])
  const descriptor = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
  t.after(() => closeSync(descriptor))
  const args = [join(DIST, 'server.js'), '--journal=memory', '--port=0']
  const child = spawn(process.execPath, args, { env: {}, stdio: ['ignore', descriptor, 'ignore'] })
  t.after(() => child.kill('SIGKILL'))
  const over = once(child, 'exit')
  let printed = ''
  await until('it is ready', () => {
    printed += taken(descriptor)
    return /^ready$/m.test(printed)
  })
  assert.throws(() => { for (;;) writeSync(descriptor, 'x'.repeat(4_096)) }, { code: 'EAGAIN' }, 'the pipe is full')
  child.kill(signal)
  assert.deepEqual(await over, end)
})

/** What stands in a pipe, which does not wait for more. */
function taken(descriptor: number): string {
  const into = Buffer.alloc(4_096)
  try {
    return into.toString('utf8', 0, readSync(descriptor, into))
  } catch {
    return ''
  }
}

test('--version and -h are answered and start nothing; an unknown flag is refused in the program’s words', async t => {
  for (const flag of ['--version', '-V']) {
    const version = await runProgram(t, { args: [flag] })
    assert.deepEqual([version.code, version.stderr, /^\d+\.\d+\.\d+(-dev)?\n$/.test(version.stdout)], [0, '', true])
  }
  const help = await runProgram(t, { args: ['-h'] })
  assert.equal(help.code, 0)
  assert.ok(help.stdout.startsWith(`usage: node ${realpathSync(SERVER)} [settings]\n`), help.stdout.slice(0, 200))
  for (const [args, why] of [[['--prot', '1'], "there is no flag '--prot'; did you mean --port?"],
    [['--port=0', '--port=0'], '--port is given twice']] as const) {
    const { code, stderr } = await runProgram(t, { args })
    assert.deepEqual([code, stderr], [2, `error: a setting is not valid: ${why}\n`])
  }
})

test('in production a folder that was named and does not exist is refused, and the message names init', async t => {
  const folder = join(freshFolder(t), 'mistyped')
  const { code, stderr } = await runProgram(t, { args: [], env: { ...PRODUCTION, DATA_DIR: folder } })
  assert.equal(code, 1)
  assert.match(stderr, /^error: [^\n]*mistyped\/journal\.jsonl does not exist; [^\n]* init\b[^\n]*\n$/)
  assert.ok(!existsSync(folder))
  await done(folder, 'init')
  await startProgram(t, { args: [`--data=${folder}`], env: PRODUCTION })
  assert.ok(readdirSync(folder).includes('journal.jsonl'))
})

test('in production a journal that is gone, empty, or cut to nothing is refused until init was run', async t => {
  const folder = await initialized(t)
  const [journal, key] = [join(folder, 'journal.jsonl'), join(folder, 'journal.key')]
  const begun = readFileSync(journal)
  const lose: readonly (() => void)[] = [
    () => rmSync(journal), () => truncateSync(journal, 0), () => truncateSync(journal, 40),
    () => { rmSync(journal); rmSync(key) }
  ]
  for (const [i, change] of lose.entries()) {
    change()
    const before = readdirSync(folder)
    const { code, stderr } = await runProgram(t, { args: [], env: { ...PRODUCTION, DATA_DIR: folder } })
    assert.equal(code, 1, `${i}: ${stderr}`)
    assert.match(stderr, joined(/^error: there is no journal: [^\n]* init\b[^\n]*\n$/,
      /|^error: the journal is damaged: [^\n]*\n$/))
    assert.deepEqual(readdirSync(folder), before, 'nothing is made')
    if (i < 3) writeFileSync(journal, begun)
  }
  await done(folder, 'init')
  const program = await startProgram(t, { args: [`--data=${folder}`], env: PRODUCTION })
  await program.stop()
  await startProgram(t, { args: [`--data=${folder}`], env: PRODUCTION })
})

const NOBODY = 65_534
const asNobody = { uid: NOBODY, gid: NOBODY, env: {}, encoding: 'utf8' } as const
const isRoot = process.geteuid?.() === 0 && spawnSync(process.execPath, ['--version'], asNobody).status === 0
const notRoot = isRoot ? false : 'only root can be another user, who needs to be able to run this Node'

for (const [file, owner] of [['journal.jsonl', 'root'], ['journal.key', 'root'], ['journal.key', 'below']] as const) {
  const whose = owner === 'root' ? 'belongs to another user' : 'is in a folder of another user'
  test(`a ${file} that ${whose} is named, not the data folder`, { skip: notRoot }, async t => {
    const place = freshFolder(t)
    chmodSync(place, 0o755)
    cpSync(DIST, join(place, 'dist'), { recursive: true })
    cpSync(join(DIST, '../package.json'), join(place, 'package.json'))
    const folder = join(place, 'data')
    await done(folder, 'init')
    const keys = owner === 'root' ? folder : join(place, 'keys')
    mkdirSync(keys, { recursive: true, mode: 0o700 })
    renameSync(join(folder, 'journal.key'), join(keys, 'journal.key'))
    const others = readdirSync(folder).filter(name => name !== file)
    const run = (...words: readonly string[]): unknown[] => {
      const args = [join(place, 'dist', words[0]!), ...words.slice(1), `--data=${folder}`,
        `--key-file=${join(keys, 'journal.key')}`]
      const { status, stderr } = spawnSync(process.execPath, args, { ...asNobody, cwd: place, timeout: 20_000 })
      return [status, stderr]
    }
    assert.match(String(run('admin.js', 'user', 'list')),
      /^1,error: [^\n]+data belongs to user 0: run the command as that user, such as [^\n]+\n$/)
    for (const name of [...others, '']) chownSync(join(folder, name), NOBODY, NOBODY)
    const path = join(file === 'journal.key' ? keys : folder, file)
    const mend = `as root, chown --reference=${folder} ${path} gives it to the owner of the folder`
    const why = owner === 'root' ? `EACCES; it belongs to user 0: ${mend}` : 'EACCES'
    const line = `error: the data folder cannot be used: ${path}: ${why}\n`
    assert.deepEqual([run('server.js', '--port=0'), run('admin.js', 'user', 'list')], [[1, line], [1, line]])
  })
}

test('a column begins at the same place of the terminal, however wide the letters before it are', async t => {
  const folder = await initialized(t)
  /** How many columns a terminal takes for it: East Asian letters and emoji two, marks none. */
  const widths: readonly (readonly [text: string, columns: number])[] = [
    ['日本語の銀行', 12], ['Banco', 5], ['cafe\u0301', 4], ['ñandú', 5], ['🔑🚀', 4], ['☎\ufe0f', 2], ['한국', 4],
    ['ａｂ', 4], ['Пошта', 5], ['\u{20000}', 2], ['🇪🇸', 2], ['ก\u0e49', 1]
  ]
  for (const [i, [system]] of widths.entries())
    await done(folder, `entry add --system ${system} --user user-${i} --generate`)
  const lines = (await done(folder, 'entry list')).trimEnd().split('\n')
  assert.equal(lines[0], `ID  SYSTEM${' '.repeat(6)}  USER`)
  for (const [i, [system, columns]] of widths.entries())
    assert.equal(lines[i + 1], `${String(i + 1).padEnd(2)}  ${system}${' '.repeat(12 - columns)}  user-${i}`)
})
