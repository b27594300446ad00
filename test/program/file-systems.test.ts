/** The program and the operator's program on file systems of their own: full, read-only, and reached by links. */
import { strict as assert } from 'node:assert'
import { spawnSync } from 'node:child_process'
import {
  appendFileSync, copyFileSync, linkSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync,
  symlinkSync, writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { admin, done, refused } from '../support/admin.ts'
import { fileStore } from '../support/compose.ts'
import { imageDisk, imageMissing, mountMissing, smallDisk, system } from '../support/outside.ts'
import { runProgram, startProgram, type Program } from '../support/program.ts'
import { atEnd, freshFolder, send } from '../support/service.ts'

const NO_MOUNT = mountMissing()
const REFUSED = '{"message":"Error creating password","status":500}'

async function create({ url }: Program, password: string): Promise<string> {
  return (await send(url, 'POST', '/api/createPassword', { password, sistema: 's', usuario: 'u' })).text
}

async function listed({ url }: Program): Promise<string[]> {
  const { status, json } = await send(url, 'GET', '/api/listPassword')
  assert.equal(status, 200)
  return json.map(({ password }: { password: string }) => password)
}

/** Takes all room of a file system, that for new names too. */
function fillUp(folder: string): void {
  const filler = join(folder, 'filler')
  mkdirSync(join(folder, 'names'), { recursive: true })
  spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=1M'], { stdio: 'ignore' })
  spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=512', 'oflag=append', 'conv=notrunc'], { stdio: 'ignore' })
  for (let n = 0; ; n++) {
    try {
      writeFileSync(join(folder, 'names', String(n)), '')
    } catch {
      return
    }
  }
}

/** A folder with an entry for each user, whose password is `SECRET-` and the name. */
async function filled(folder: string, ...users: readonly string[]): Promise<string> {
  const store = await fileStore(folder)
  for (const usuario of users) await store.createEntry({ password: `SECRET-${usuario}`, sistema: 's', usuario }, null)
  await store.close()
  return folder
}

for (const kind of ['ext4', 'xfs'] as const) {
  const missing = imageMissing(kind)
  test(`an ${kind} disk without room for a name: a start serves what is there, one beside another is refused; it heals`, {
    skip: missing
  }, async t => {
    const top = imageDisk(t, kind)
    const data = join(top, 'data')
    const flags = { data }
    const first = await startProgram(t, { flags })
    for (const password of ['a', 'b']) await create(first, password)
    mkdirSync(join(top, 'full'))
    fillUp(join(top, 'full'))
    const { code, stderr } = await runProgram(t, { flags })
    assert.equal(code, 1)
    assert.match(stderr, new RegExp(`belongs to process ${first.pid}\\n$`))
    await first.kill()
    // The start that was refused may have freed some.
    fillUp(join(top, 'full'))
    const journal = readFileSync(join(data, 'journal.jsonl'))
    const full = await startProgram(t, { flags })
    assert.deepEqual(await listed(full), ['a', 'b'])
    assert.equal(await create(full, 'c'), REFUSED)
    assert.match(full.stderr, /^warning: the journal takes no writes until a restart: .* no room for a lock \(ENOSPC\)$/m)
    for (const words of ['journal verify', 'journal show', 'entry list']) await done(data, words)
    assert.deepEqual(readFileSync(join(data, 'journal.jsonl')), journal)
    rmSync(join(top, 'full'), { recursive: true })
    const roomy = await startProgram(t, { flags })
    await create(roomy, 'd')
    assert.deepEqual(await listed(roomy), ['a', 'b', 'd'])
    const stale = await send(full.url, 'GET', '/api/listPassword')
    assert.equal(stale.status, 503, 'what another process has changed since is not served')
    await full.stop()
    await roomy.kill()
  })
}

describe('a read-only mount', { skip: NO_MOUNT }, () => {
  test('what only reads works, also where a torn write is at the end; a start says why it does not', async t => {
    const folder = await filled(smallDisk(t, '512k'), 'a', 'b')
    appendFileSync(join(folder, 'journal.jsonl'), '{"seq":3,"time')
    system('mount', '-o', 'remount,ro', folder)
    const elsewhere = freshFolder(t)
    assert.match(await done(folder, 'journal verify'), /^records 2$/m)
    assert.equal((await done(folder, 'journal show')).split('\n').length, 3)
    assert.match(await done(folder, 'entry history 1'), /sistema|s /)
    const backup = join(elsewhere, 'backup')
    await done(folder, `journal backup ${backup}`)
    const file = join(elsewhere, 'export')
    const { code, error } = await admin(folder, `export --yes --output ${file}`)
    assert.equal(code, 0, error)
    assert.ok(readFileSync(file, 'utf8').includes('SECRET-a'))
    const { code: started, stderr } = await runProgram(t, { flags: { data: folder } })
    assert.equal(started, 1)
    assert.match(stderr, /^error: the data folder cannot be used: [^\n]*EROFS\n$/)
    await refused(folder, 'entry delete 1', 1, /EROFS/)
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
      const disk = freshFolder(t)
      const path = join(folder, 'journal.jsonl')
      writeFileSync(path, act(readFileSync(path)), { mode: 0o644 })
      system('mount', '--bind', folder, disk)
      atEnd(t, () => { spawnSync('umount', ['-l', disk]) })
      system('mount', '-o', 'remount,bind,ro', disk)
      const seen = (): unknown[] =>
        [readFileSync(path), readdirSync(folder), statSync(path).ctimeMs, statSync(folder).ctimeMs]
      const before = seen()
      const made = join(freshFolder(t), 'made')
      for (const words of ['journal verify', 'journal show', `journal backup ${made}`, `export --yes --output ${made}`]) {
        const { code, error } = await admin(disk, words)
        assert.deepEqual([words, code], [words, 3], error)
        assert.match(error, /line \d+ at byte \d+/, words)
        assert.doesNotMatch(error, /\n.*\n/s, words)
      }
      assert.deepEqual(readdirSync(join(made, '..')), [], 'no file is made')
      assert.deepEqual(seen(), before, 'not even its mode')
    })
  }
})

describe('two folders with one journal', () => {
  /** A folder with one entry, and an empty one beside it that has the same key. */
  async function folders(t: TestContext): Promise<readonly [served: string, other: string]> {
    const served = await filled(freshFolder(t), 'u')
    const other = freshFolder(t)
    copyFileSync(join(served, 'journal.key'), join(other, 'journal.key'))
    return [served, other]
  }

  test('by a hard link: both are refused', async t => {
    const [served, other] = await folders(t)
    linkSync(join(served, 'journal.jsonl'), join(other, 'journal.jsonl'))
    for (const data of [served, other]) {
      const { code, stderr } = await runProgram(t, { flags: { data } })
      assert.equal(code, 1)
      assert.match(stderr, /is a hard link/)
    }
  })

  for (const name of ['journal.jsonl', 'real.jsonl']) {
    test(`by symbolic links to ${name}: one serves, the other is refused and named its process`, async t => {
      const [served, other] = await folders(t)
      const target = join(served, name)
      const [a, b] = name === 'journal.jsonl' ? [served, other] : [freshFolder(t), other]
      if (a !== served) {
        renameSync(join(served, 'journal.jsonl'), target)
        copyFileSync(join(served, 'journal.key'), join(a, 'journal.key'))
        symlinkSync(target, join(a, 'journal.jsonl'))
      }
      symlinkSync(target, join(b, 'journal.jsonl'))
      for (const [first, second] of a === served ? [[a, b], [b, a]] as const : [[b, a]] as const) {
        const program = await startProgram(t, { flags: { data: first } })
        const { code, stderr } = await runProgram(t, { flags: { data: second } })
        assert.equal(code, 1)
        assert.match(stderr, new RegExp(`belongs to process ${program.pid}\\n$`))
        assert.equal(await create(program, 'SECRET'), '{"message":"SE CREÓ UNA NUEVA CONTRASEÑA","status":200}')
        assert.equal((await program.stop()).code, 0)
      }
      for (const folder of [served, a, b]) assert.ok(!readdirSync(folder).some(one => one.endsWith('.sock')), folder)
      assert.match(await done(b, 'journal verify'), a === served ? /^records 3$/m : /^records 2$/m)
    })
  }

  test('two journals of other names in one folder are served at once', async t => {
    const shelf = freshFolder(t)
    const programs = await Promise.all(['a', 'b'].map(async name => {
      const data = await filled(freshFolder(t))
      renameSync(join(data, 'journal.jsonl'), join(shelf, name))
      symlinkSync(join(shelf, name), join(data, 'journal.jsonl'))
      return startProgram(t, { flags: { data } })
    }))
    for (const program of programs) await create(program, 'x')
    for (const program of programs) assert.deepEqual(await listed(program), ['x'])
  })
})
