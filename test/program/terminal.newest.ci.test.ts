/** What the programs show on a terminal, and what is typed there. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Terminal, visible } from '../../src/parts/commands/terminal.ts'
import { ADMIN, atTerminal, done, initialized, refused } from '../support/admin.ts'
import { startProgram, until, type Program } from '../support/program.ts'
import { freshFolder } from '../support/service.ts'
import { BODY_BYTES, created, makeJournal, makeJournalOf } from '../campaigns/bench/journal.ts'
import { NO_PYTHON } from '../support/programs.ts'
import { straceMissing } from '../support/system.ts'

const SERVER = fileURLToPath(new URL('../../dist/server.js', import.meta.url))
const fullMissing = existsSync('/dev/full') ? false : 'this system has no /dev/full'

async function filled(t: TestContext): Promise<string> {
  const folder = await initialized(t)
  await done(folder, 'user add a@x --name A\u001b[2J\u202eB --password-stdin', 'a long password\n')
  await done(folder, 'user add longer@x --abilities password:read,password:create --password-stdin',
    'a long password\n')
  return folder
}

test('users are listed as a table, and no name in it, nor one in an error, can move the cursor', async t => {
  const folder = await filled(t)
  const rows = (await done(folder, 'user list')).split('\n').map(row => row.replace(/ {2,}/g, ' | '))
  assert.deepEqual(rows, [
    'ID | EMAIL | NAME | ABILITIES', '1 | a@x | A\\u001b[2J\\u202eB | *',
    '2 | longer@x | longer@x | password:read,password:create', ''
  ])
  await refused(folder, 'journal verify no\u001b[2Jfile', 1, /no\\u001b\[2Jfile\n$/)
})

test('a character that is not seen is shown as JSON escapes it', () => {
  for (const [character, shown] of [
    ['\u001b', '\\u001b'], ['\u200b', '\\u200b'], ['\u00ad', '\\u00ad'], ['\ufeff', '\\ufeff'], ['\u202e', '\\u202e'],
    ['\u2028', '\\u2028'],
    ['\u{e0041}', '\\udb40\\udc41'], ['\ud800', '\\ud800'], ['é', 'é'], ['🔑', '🔑'], ['e\u0301', 'e\u0301']
  ] as const) {
    assert.equal(visible(`a${character}b`), `a${shown}b`)
    assert.equal(JSON.parse(`"a${visible(character)}b"`), `a${character}b`, 'which JSON reads back')
  }
})

test('a table is cut to the width of a terminal, and to nothing in a pipe', { skip: NO_PYTHON }, async t => {
  const folder = await initialized(t)
  const [system, user] = ['s'.repeat(60), 'ñ'.repeat(40)]
  await done(folder, `entry add --system ${system} --user ${user} --password-stdin`, 'SECRET\n')
  const { seen } = await atTerminal(folder, 'entry list')
  const lines = seen.split('\r\n').filter(line => line !== '')
  assert.deepEqual(lines.map(line => [...line].length <= 80), [true, true], seen)
  assert.match(lines[1]!, /^1 {3}s{36,37}… {2}ñ{36,38}…?$/)
  assert.ok((await done(folder, 'entry list')).includes(`${system}  ${user}\n`))
})

test('at a terminal a password is asked for twice, without echo, until it can be taken, edited or cancelled', {
  skip: NO_PYTHON
}, async t => {
  const folder = await initialized(t)
  const prompt = 'password (12 characters or more): '
  const good = [[prompt, 'SECRET\x7f\x7f\x7f\x7f\x7f\ba long password'], ['again: ', 'a long password']] as const
  for (const [email, typed, code, says] of [
    ['a@x', good, 0, 'added as user 1'],
    ['b@x', [[prompt, 'a long password'], ['again: ', 'another password'], ['the two passwords differ', ''],
      ['is empty', 'secret\x03']], 1, 'error: cancelled'],
    ['b@x', [[prompt, 'SECRET'], ['at least 12 characters', 'a long password'], ['again: ', 'a long password']], 0,
      'added as user 2']
  ] as const) {
    const left = await atTerminal(folder, `user add ${email}`, typed)
    assert.equal(left.code, code, left.seen)
    assert.ok(left.seen.includes(says) && !/SECRET|long/.test(left.seen), left.seen)
  }
})

test('a secret of several lines is kept whole, but for one line end at its end', async t => {
  const folder = await initialized(t)
  for (const [i, [given, kept]] of [['-----BEGIN\nSECRET\n-----END\n', '-----BEGIN\nSECRET\n-----END'],
    ['a\n\n', 'a\n'], ['a\r\n', 'a']].entries()) {
    await done(folder, 'entry add --system s --user u --password-stdin', given)
    assert.equal(await done(folder, `entry get ${i + 1} --field password`), `${kept}\n`)
  }
})

test('while a password is typed, the signal that opens the debugger of Node does nothing', {
  skip: NO_PYTHON
}, async t => {
  const prompt = 'password (12 characters or more): '
  const typed = [[prompt, 'SIGUSR1'], [prompt, 'a long password'], ['again: ', 'a long password']] as const
  const { code, seen } = await atTerminal(await initialized(t), 'user add a@x', typed)
  assert.ok(code === 0 && !seen.includes('Debugger'), seen)
})

test('while a password is typed, a service may start; what was typed goes to that', { skip: NO_PYTHON }, async t => {
  const folder = await initialized(t)
  const prompt = 'password (12'
  const typed = [[prompt, 'MEANWHILE'], [prompt, 'a long password'], ['again: ', 'a long password']] as const
  for (const words of ['user add a@x', 'user password a@x']) {
    let service: Program | undefined
    const { code, seen } = await atTerminal(folder, words, typed, ADMIN, async () => {
      service = await startProgram(t, { flags: { data: folder } })
    })
    assert.equal(code, 0, seen)
    assert.match(await done(folder, 'user list'), /a@x/)
    await service!.stop()
  }
})

test('a command that waits for the service says so, and goes on when that answers', async t => {
  const service = await startProgram(t)
  await done(service.folder, 'entry add --system s --user u --password-stdin', 'SECRET\n')
  service.child.kill('SIGSTOP')
  const child = spawn(process.execPath, [ADMIN, 'entry', 'get', '1'], { env: { DATA_DIR: service.folder } })
  t.after(() => child.kill('SIGKILL'))
  let said = ''
  child.stderr.setEncoding('utf8').on('data', text => { said += text })
  const ended = once(child, 'close')
  await until('the line', () => said.includes('\n'))
  service.child.kill('SIGCONT')
  assert.deepEqual(await ended, [0, null])
  assert.match(said, /^the service has not answered yet[^\n]+\n$/)
})

test('without a command the program lists the commands and ends with 2', () => {
  const { status, stdout } = spawnSync(process.execPath, [ADMIN], { encoding: 'utf8' })
  assert.equal(status, 2)
  assert.match(stdout, /^usage: /)
})

test('when the reader of its output goes away, the command ends with 1 and prints nothing', async t => {
  const child = spawn(process.execPath, [ADMIN, 'journal', 'show'], { env: { DATA_DIR: await filled(t) } })
  child.stdout.destroy()
  let printed = ''
  child.stderr.setEncoding('utf8').on('data', text => { printed += text })
  const [code] = await once(child, 'close')
  assert.deepEqual([code, printed], [1, ''])
})

test('when its output cannot be written, the command ends with 1 and says why', { skip: fullMissing }, async t => {
  const env = { DATA_DIR: await filled(t) }
  const full = openSync('/dev/full', 'w')
  const { status, stderr } = spawnSync(process.execPath, [ADMIN, 'journal', 'show'], {
    env, stdio: ['ignore', full, 'pipe']
  })
  closeSync(full)
  assert.deepEqual([status, String(stderr)], [1, 'error: the output could not be written: ENOSPC\n'])
})

for (const words of ['journal backup -', 'entry list --json']) {
  test(`where a file takes only a part of its output, ${words} ends with 1 and says why`, async t => {
    const folder = join(freshFolder(t), 'data')
    makeJournal(folder, 500, BODY_BYTES)
    const file = join(freshFolder(t), 'file')
    const { status, stderr } = spawnSync('sh', ['-c', 'ulimit -f 16; exec "$0" "$@" > "$FILE"', process.execPath, ADMIN,
      ...words.split(' ')], {
      env: { DATA_DIR: folder, FILE: file }, encoding: 'utf8'
    })
    assert.match(stderr, /^(warning: .+\n)*error: the output could not be written: EFBIG\n$/)
    assert.equal(status, 1)
    assert.ok(statSync(file).size > 0, 'a part of it was taken')
  })
}

for (const words of ['journal backup -', 'export --yes --output -']) {
  test(`a file that ${words} fills is on the device when the command ends with 0: an error of its sync is told`, {
    skip: straceMissing()
  }, async t => {
    const folder = await initialized(t)
    await done(folder, 'entry add --system s --user u --generate')
    const file = join(freshFolder(t), 'file')
    const run = (how: string): { readonly status: number | null, readonly stderr: string } => spawnSync('sh',
      ['-c', 'exec strace -f -o /dev/null -P "$FILE" -e "inject=fsync:$HOW" "$0" "$@" > "$FILE"', process.execPath,
        ADMIN, ...words.split(' ')],
      { env: { ...process.env, DATA_DIR: folder, FILE: file, HOW: how }, encoding: 'utf8' })
    const refused = run('error=EIO')
    assert.deepEqual([refused.status, /^error: the output could not be written: EIO$/m.test(refused.stderr)], [1, true],
      refused.stderr)
    assert.equal(run('delay_exit=1').status, 0)
    assert.ok(statSync(file).size > 0)
  })
}

test('output waits for its reader: the head of a backup into a pipe is said once all of it was taken', async t => {
  const folder = join(freshFolder(t), 'data')
  makeJournal(folder, 1_000, 20_000)
  const journal = readFileSync(join(folder, 'journal.jsonl'))
  const child = spawn(process.execPath, [ADMIN, 'journal', 'backup', '-'], { env: { DATA_DIR: folder } })
  t.after(() => child.kill('SIGKILL'))
  const pieces: Buffer[] = []
  let taken = 0
  let takenAtHead: number | undefined
  child.stdout.on('data', (piece: Buffer) => { pieces.push(piece); taken += piece.length })
  child.stderr.on('data', () => { takenAtHead ??= taken })
  assert.deepEqual(await once(child, 'close'), [0, null])
  assert.ok(Buffer.concat(pieces).equals(journal))
  assert.ok(journal.length - takenAtHead! < 2 ** 20, `${journal.length - takenAtHead!} bytes were on their way`)
})

test('what cannot be recorded is not exported: where the journal cannot grow either, nothing is written', async t => {
  const folder = join(freshFolder(t), 'data')
  makeJournal(folder, 500, BODY_BYTES)
  const command = 'ulimit -f 16; exec "$0" "$@"'
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command, process.execPath, ADMIN,
    ...'export --yes --output -'.split(' ')], { env: { DATA_DIR: folder }, encoding: 'utf8' })
  assert.match(stderr, /^(warning: .+\n)*error: the journal takes no more writes: .*EFBIG; so nothing is shown/)
  assert.deepEqual([status, stdout], [1, ''])
})

test('a list may have more lines than a call has arguments', () => {
  const items = Array.from({ length: 150_000 }, (_, n) => ({ n }))
  const printed = (asJson: boolean): string[] => {
    let text = ''
    const stdout = { write: (piece: string) => { text += piece } }
    new Terminal({ stdin: {}, stdout, stderr: {} } as never, asJson).list(items, 'nothing')
    return text.trimEnd().split('\n')
  }
  assert.deepEqual([printed(false).length, printed(true).length], [150_001, 1])
})

test('a history is printed while it is read, in memory that does not grow with it', async t => {
  const folder = join(freshFolder(t), 'data')
  makeJournalOf(folder, 2_000, n => n === 1
    ? created({ id: 1, password: 'p', sistema: 's'.repeat(60_000), usuario: 'u' })
    : { type: 'entry.updated', data: { id: 1, password: `p${n}` } })
  const args = ['--max-old-space-size=64', ADMIN, 'entry', 'history', '1']
  const child = spawn(process.execPath, args, { env: { DATA_DIR: folder } })
  t.after(() => child.kill('SIGKILL'))
  let lines = 0
  child.stdout.on('data', (piece: Buffer) => { for (const byte of piece) if (byte === 0x0a) lines++ })
  child.stderr.resume()
  assert.deepEqual([...await once(child, 'close'), lines], [0, null, 2_000])
})

/** An event that makes a user, the first one, or one of the user's tokens. */
function userOrToken(n: number): { readonly type: string, readonly data: object } {
  const abilities = ['*']
  if (n === 1) return { type: 'user.added', data: { id: 1, email: 'a@x', name: 'A', abilities, passwordHash: 'none' } }
  const hash = String(n).padStart(64, '0')
  return { type: 'token.issued', data: { hash, user: 1, abilities, issued: '2026-01-01T00:00:00.000Z', expires: null } }
}

test('a list that nobody takes out of its pipe holds up no service', async t => {
  const folder = join(freshFolder(t), 'data')
  makeJournalOf(folder, 10_000, userOrToken)
  const child = spawn(process.execPath, [ADMIN, 'token', 'list'], { env: { DATA_DIR: folder } })
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'readable')
  const service = await startProgram(t, { flags: { data: folder } })
  const text = await child.stdout.setEncoding('utf8').toArray()
  assert.equal(text.join('').split('\n').length, 10_001, 'a header, a line each, and nothing behind the last')
  await service.stop()
})

test('the access log is refused on a terminal, which could be paused', { skip: NO_PYTHON }, async t => {
  const { code, seen } = await atTerminal(freshFolder(t), '--access-log=on --port=0', [], SERVER)
  assert.equal(code, 2, seen)
  assert.match(seen, /error: .*a paused terminal would hold up requests/)
})

test('a start shows at a terminal how much of the journal is read, clears that, and shows nothing in a pipe', {
  skip: NO_PYTHON
}, async t => {
  const folder = join(freshFolder(t), 'data')
  makeJournal(folder, 10_000, BODY_BYTES)
  const { code, seen } = await atTerminal(folder, '--port=0', [['ready', '\x03']], SERVER)
  assert.equal(code, 0, seen)
  const shares = [...seen.matchAll(/\r\x1b\[Kreading the journal (\d+) %/g)].map(match => Number(match[1]))
  assert.ok(shares.length > 10, seen)
  assert.deepEqual(shares, shares.toSorted((a, b) => a - b))
  assert.match(seen, / %\r\x1b\[Kjournal +10000 records, 10000 entries/)
  const piped = await (await startProgram(t, { flags: { data: folder } })).stop()
  assert.equal(piped.code, 0)
  assert.doesNotMatch(piped.stdout + piped.stderr, /[\r\x1b]|reading/)
})

test('standard input is read in pieces up to its bound, that included', async () => {
  const read = (maxBytes: number): Promise<Buffer> => {
    const stdin = Readable.from([Buffer.from('ab'), Buffer.from('c')])
    return new Terminal({ stdin, stdout: {}, stderr: {} } as never, false).readInput(maxBytes)
  }
  assert.equal(String(await read(3)), 'abc')
  await assert.rejects(read(2), /larger than 2 bytes; split it/)
})

test('no part of a name finds an entry for a command that changes it or prints JSON; a whole one needs no answer', {
  skip: NO_PYTHON
}, async t => {
  const folder = await initialized(t)
  for (const [system, user] of [['github', 'ana'], ['git', 'carla']]) {
    await done(folder, `entry add --system ${system} --user ${user} --password-stdin`, `SECRET-${system}\n`)
  }
  await done(folder, 'entry edit git --url https://repo.example/x')
  const rows: readonly (readonly [words: string, code: number, seen: RegExp])[] = [
    ['entry get Git --field user', 0, /^carla\r\n$/],
    ['entry get repo.example', 0, /^entry 2 \(git, carla\)\r\n/],
    ['entry history carla', 0, /^entry 2 \(git, carla\)\r\n.*entry\.created/],
    ['entry get ana --json', 1, /no active entry has a system of this name/],
    ['entry get nowhere', 1, /no active entry has this text/],
    ...['entry edit hub --user x', 'entry edit hub --generate', 'entry restore hub']
      .map(words => [words, 1, /no (active|deleted) entry has a system of this name/] as const)
  ]
  for (const [words, code, expected] of rows) {
    const { code: left, seen } = await atTerminal(folder, words)
    assert.equal(left, code, `${words}: ${seen}`)
    assert.match(seen.replace(/\r\x1b\[K(reading[^\r]*)?/g, ''), expected, words)
  }
})
