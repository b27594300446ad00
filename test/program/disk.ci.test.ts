/** The program and the operator's on disks that are full, closed, slow, broken, taken away, or reached by links. */
import { strict as assert } from 'node:assert'
import { spawnSync } from 'node:child_process'
import {
  appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { admin, done, refused } from '../support/admin.ts'
import { fileStore } from '../support/stores.ts'
import {
  imageDisk, imageMissing, meddle, mountMissing, smallDisk, statusOf, straceMissing, system
} from '../support/system.ts'
import { runProgram, startProgram, type Program } from '../support/program.ts'
import { freshFolder, send, type Answered } from '../support/service.ts'
import { createEntry } from '../../src/entries/entry-commands.ts'

const NO_MOUNT = mountMissing()
const NO_STRACE = straceMissing()
const REFUSED = '{"message":"Error creating password","status":500}'
/** strace counts the calls of each thread: with one thread, those of the program. */
const ONE_THREAD = { UV_THREADPOOL_SIZE: '1' }
/**
 * In what time answers count as given at once: less than a change waits for the journal, and than a busy machine takes.
 */
const AT_ONCE_MS = 4_000

/** A client that knows what was acknowledged. */
class Client {
  readonly acknowledged: string[] = []
  #url: string
  #serial = 0

  constructor({ url }: Program) { this.#url = url }

  async create(length: number = 10): Promise<Answered> {
    const password = `${++this.#serial}`.padEnd(length, '-')
    const answer = await send(this.#url, 'POST', '/api/createPassword', { password, sistema: 's', usuario: 'u' })
    if (answer.status === 200) this.acknowledged.push(password)
    return answer
  }

  async created(): Promise<void> { assert.equal((await this.create()).status, 200) }

  /** Tries each kind of write, and holds that each is refused at once while reads go on. */
  async isOnlyRead(): Promise<void> {
    const started = performance.now()
    assert.equal((await this.create()).text, REFUSED)
    const updated = await send(this.#url, 'POST', '/api/updatePassword/1', { sistema: 'other' })
    assert.equal(updated.text, '{"message":"Error updating password","status":500}')
    const deleted = await send(this.#url, 'POST', '/api/deletePassword/1')
    assert.equal(deleted.text, '{"message":"Error deleting password","status":500}')
    await this.isListed()
    assert.ok(performance.now() - started < AT_ONCE_MS, `it took ${performance.now() - started} ms`)
  }

  /** Holds that the program, or another one, shows all that was acknowledged and nothing else. */
  async isListed(program?: Program): Promise<void> {
    if (program !== undefined) this.#url = program.url
    const { status, json } = await send(this.#url, 'GET', '/api/listPassword')
    assert.equal(status, 200)
    assert.deepEqual(json.map((entry: { password: string }) => entry.password), this.acknowledged)
  }
}

async function startedWithEntries(t: TestContext, data = freshFolder(t)): Promise<[Program, Client]> {
  const program = await startProgram(t, { flags: { data }, env: ONE_THREAD })
  const client = new Client(program)
  for (let n = 0; n < 3; n++) await client.created()
  return [program, client]
}

const startOn = (t: TestContext, folder: string): Promise<Program> =>
  startProgram(t, { flags: { data: folder } })

async function restarted(t: TestContext, program: Program): Promise<Program> {
  assert.equal((await program.stop()).code, 0)
  return startOn(t, program.folder)
}

function fillUp(path: string, ...how: readonly string[]): void {
  spawnSync('dd', ['if=/dev/zero', `of=${path}`, 'bs=4096', ...how], { stdio: 'ignore' })
}

/** Takes all room of a file system, that for new names too. */
function fillWithNames(folder: string): void {
  const names = join(folder, 'names')
  mkdirSync(names, { recursive: true })
  fillUp(join(folder, 'filler'))
  fillUp(join(folder, 'filler'), 'bs=512', 'oflag=append', 'conv=notrunc')
  try {
    for (let n = 0; ; n++) writeFileSync(join(names, String(n)), '')
  } catch {}
}

/** A folder with an entry for each user, whose password is `SECRET-` and the name. */
async function filled(folder: string, ...users: readonly string[]): Promise<string> {
  const store = await fileStore(folder)
  for (const usuario of users) await createEntry(store, { password: `SECRET-${usuario}`, sistema: 's', usuario }, null)
  await store.close()
  return folder
}

/** Starts a program that must end by itself, with one line that matches. */
async function isRefused(t: TestContext, data: string, line: RegExp): Promise<void> {
  const { code, stdout, stderr } = await runProgram(t, { flags: { data } })
  assert.equal(code, 1)
  assert.match(stderr, /^error: [^\n]+\n$/)
  assert.match(stderr, line)
  assert.doesNotMatch(stdout, /ready/)
}

test('§4.3 create on a full disk: `Error creating password`, also after a start; reads go on; room heals; no loss', {
  skip: NO_MOUNT
}, async t => {
  const folder = smallDisk(t, '256k')
  const [program, client] = await startedWithEntries(t, folder)
  fillUp(join(folder, 'filler'))
  let answer = await client.create(500)
  for (let n = 0; n < 20 && answer.status === 200; n++) answer = await client.create(500)
  assert.equal(answer.text, REFUSED)
  await client.isListed()
  assert.equal((await client.create(60_000)).text, REFUSED)
  const health = async ({ url }: typeof program): Promise<readonly number[]> =>
    Promise.all(['healthz', 'livez'].map(async path => (await fetch(`${url}/${path}`)).status))
  assert.deepEqual(await health(program), [503, 200])
  const { fault, bytes } = await statusOf(program)
  assert.deepEqual([fault, bytes], [undefined, statSync(join(folder, 'journal.jsonl')).size])
  await program.kill()
  const again = await startOn(t, folder)
  await client.isListed(again)
  assert.equal((await client.create(5_000)).text, REFUSED)
  rmSync(join(folder, 'filler'))
  await client.created()
  assert.deepEqual(await health(again), [200, 200])
  await again.kill()
  await client.isListed(await startOn(t, folder))
})

for (const kind of ['ext4', 'xfs'] as const) {
  const missing = imageMissing(kind)
  test(`an ${kind} disk without room for a name: a start is refused, and changes nothing; with room it serves`, {
    skip: missing
  }, async t => {
    const top = imageDisk(t, kind)
    const data = join(top, 'data')
    const first = await startOn(t, data)
    const client = new Client(first)
    for (let n = 0; n < 2; n++) await client.created()
    mkdirSync(join(top, 'full'))
    fillWithNames(join(top, 'full'))
    await isRefused(t, data, new RegExp(`belongs to process ${first.pid}\\n$`))
    await first.kill()
    // The start that was refused may have freed some.
    fillWithNames(join(top, 'full'))
    const journal = readFileSync(join(data, 'journal.jsonl'))
    await isRefused(t, data, /ENOSPC: there is no room for its lock\n$/)
    for (const words of ['journal verify', 'journal show']) await done(data, words)
    await refused(data, 'user add ana@x.org --password-stdin', 1, /ENOSPC/, 'SECRET-k-login\n')
    assert.deepEqual(readFileSync(join(data, 'journal.jsonl')), journal)
    rmSync(join(top, 'full'), { recursive: true })
    const roomy = await startOn(t, data)
    await client.isListed(roomy)
    await client.created()
    await client.isListed()
    await roomy.kill()
  })
}

test('what may only be appended to is refused at the start with a sentence, and not changed', {
  skip: imageMissing('ext4')
}, async t => {
  const data = join(imageDisk(t, 'ext4'), 'data')
  await (await startOn(t, data)).stop()
  for (const path of [join(data, 'journal.jsonl'), data]) {
    system('chattr', '+a', path)
    const before = readFileSync(join(data, 'journal.jsonl'))
    await isRefused(t, data, /^error: [^\n]*: EPERM; if it may only be appended to [^\n]*: chattr -a -i\n$/)
    assert.deepEqual(readFileSync(join(data, 'journal.jsonl')), before)
    system('chattr', '-a', path)
  }
  for (const name of readdirSync(data)) if (name.endsWith('.sock')) rmSync(join(data, name))
  await (await startOn(t, data)).stop()
})

test('on a read-only mount what reads the file works, also with a torn write at its end; a start says why it fails', {
  skip: NO_MOUNT
}, async t => {
  const folder = await filled(smallDisk(t, '512k'), 'a', 'b')
  appendFileSync(join(folder, 'journal.jsonl'), '{"seq":3,"time')
  system('mount', '-o', 'remount,ro', folder)
  const verified = await admin(folder, 'journal verify')
  assert.ok(verified.code === 4 && /^records 2$/m.test(verified.out), verified.out)
  assert.equal((await done(folder, 'journal show')).split('\n').length, 3)
  const made = join(freshFolder(t), 'made')
  await done(folder, `journal backup ${made}`)
  assert.deepEqual(readFileSync(made), readFileSync(join(folder, 'journal.jsonl')).subarray(0,
    readFileSync(made).length))
  const before = readdirSync(folder)
  await isRefused(t, folder, /^error: the data folder cannot be used: [^\n]*EROFS\n$/)
  for (const words of ['entry delete 1', 'export --yes --output -']) await refused(folder, words, 1, /EROFS/)
  assert.deepEqual(readdirSync(folder), before)
})

for (const [what, act] of [
  ['with one bit flipped in the last acknowledged line', journal => {
    const at = journal.lastIndexOf('"sealed":"') + 30
    journal[at] = journal[at] === 0x41 ? 0x43 : 0x41
    return journal
  }],
  ['compressed', journal => gzipSync(journal)]
] as readonly (readonly [what: string, act: (journal: Buffer) => Buffer])[]) {
  test(`a journal ${what}: every command that reads ends with 3 and the place, and changes nothing`, async t => {
    const folder = await filled(freshFolder(t), 'a', 'b')
    const path = join(folder, 'journal.jsonl')
    writeFileSync(path, act(readFileSync(path)), { mode: 0o644 })
    const seen = (): unknown[] =>
      [readFileSync(path), readdirSync(folder), statSync(path).ctimeMs]
    const before = seen()
    const made = join(freshFolder(t), 'made')
    const commands = ['journal verify', 'journal show', `journal backup ${made}`, `export --yes --output ${made}`]
    for (const words of commands) {
      const { code, error } = await admin(folder, words)
      assert.equal(code, 3, error)
      assert.match(error, /^error: [^\n]*line \d+ at byte \d+[^\n]*\n$/, words)
    }
    assert.deepEqual(readdirSync(join(made, '..')), [], 'no file is made')
    assert.deepEqual(seen(), before, 'not even its mode')
  })
}

describe('a data folder that goes away under the running program', () => {
  const ways: readonly (readonly [what: string, away: (folder: string) => void, back?: (folder: string) => void])[] = [
    // In one step: between its files and itself the program may make the socket of its lock again in it.
    ['removed', folder => { renameSync(folder, `${folder}-away`); rmSync(`${folder}-away`, { recursive: true }) }],
    ['renamed', folder => renameSync(folder, `${folder}-away`), folder => renameSync(`${folder}-away`, folder)],
    ['hidden by another file system mounted over it', folder => system('mount', '-t', 'tmpfs', 'tmpfs', folder),
      folder => system('umount', folder)]
  ]
  for (const [what, away, back] of ways) {
    const missing = what.includes('mounted') ? NO_MOUNT : false
    test(`${what}: writes are refused before they are acknowledged, reads go on, the stop is clean`, {
      skip: missing
    }, async t => {
      const [program, client] = await startedWithEntries(t)
      const { folder } = program
      t.after(() => rmSync(`${folder}-away`, { recursive: true, force: true }))
      away(folder)
      if (what === 'renamed') assert.match((await statusOf(program, `${folder}-away`)).fault, /was removed$/)
      await client.isOnlyRead()
      assert.match(program.stderr, /the journal takes no more writes: .* was removed/)
      assert.deepEqual(existsSync(folder) ? readdirSync(folder) : [], [], 'nothing is made anew by the running program')
      back?.(folder)
      if (back !== undefined) await client.isOnlyRead()
      const { code, stderr } = await program.stop()
      assert.equal(code, 0, stderr)
      assert.doesNotMatch(stderr, /^ +at /m)
      if (back !== undefined) await client.isListed(await startOn(t, folder))
    })
  }
})

test('EIO of one write fails: all later writes 500 at once, reads go on, a restart clears it', {
  skip: NO_STRACE
}, async t => {
  const [program, client] = await startedWithEntries(t)
  const meddling = await meddle(t, program.pid, join(program.folder, 'journal.jsonl'), 'write:error=EIO:when=1')
  for (let n = 0; n < 3; n++) await client.isOnlyRead()
  assert.ok(meddling.calls().some(call => call.includes('(INJECTED)')), 'the call did fail')
  await meddling.end()
  await client.isOnlyRead()
  assert.match((await statusOf(program)).fault, /reported an error: EIO/)
  assert.match(program.stderr, /the journal takes no more writes/)
  const { code, error } = await admin(program.folder, 'journal verify')
  assert.equal(code, 1, 'nobody who watches should be content')
  assert.match(error, /the journal takes no more changes: .*reported an error: EIO/)
  const again = await restarted(t, program)
  await client.isListed(again)
  await client.created()
  await client.isListed(await restarted(t, again))
})
