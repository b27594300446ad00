/** The key file: how it is made and grows, what is no key file, and what a lost or wrong one leads to. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import {
  chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { disk, type Files } from '../../src/disk/files.ts'
import { removeLeftovers } from '../../src/disk/whole-file.ts'
import { addKey, createKeyFile, keyring, readKeyFile } from '../../src/journal/keys.ts'
import { FaultyFiles } from '../support/faulty-files.ts'
import {
  auditJournal, failure, journalBytes, KEY_FILE, keyName, readSecret, referenceLines, snapshot, writeJournal,
  writeKeys
} from '../support/journal.ts'
import {
  commitTogether, event, journalPath, keyPath, keysOf, openJournal, verify, writeJournal as writeRecords
} from '../support/journal-file.ts'
import { freshFolder } from '../support/service.ts'

const [a, b, c] = [randomBytes(32), randomBytes(32), randomBytes(32)]

function keyFile(t: TestContext, text: string): string {
  const path = join(freshFolder(t), KEY_FILE)
  writeFileSync(path, text)
  return path
}

test('a key is called by the first 8 hexadecimal digits of its SHA-256', () => {
  const ring = keyring([a])
  assert.equal(ring.newest.name, keyName(a))
  assert.deepEqual(ring.newest.secret.export(), a)
})

test('of several keys the last is the newest, and each is found by its name', () => {
  const ring = keyring([a, b, c])
  assert.equal(ring.newest.name, keyName(c))
  for (const secret of [a, b, c]) assert.deepEqual(ring.find(keyName(secret))?.secret.export(), secret)
  assert.equal(ring.find(keyName(randomBytes(32))), undefined)
  assert.equal(ring.find('__proto__'), undefined)
  assert.throws(() => keyring([]), /a keyring needs a key/)
})

test('the last line of a key file seals, also where the same key is further up', t => {
  const hex = (secret: Buffer): string => `${secret.toString('hex')}\n`
  assert.equal(readKeyFile(disk, keyFile(t, hex(a) + hex(b) + hex(a)))?.newest.name, keyName(a))
})

test('a key file holds one key a line; the end of the last line may be missing', t => {
  assert.equal(readKeyFile(disk, keyFile(t, a.toString('hex')))?.newest.name, keyName(a))
  assert.equal(readKeyFile(disk, keyFile(t, `${a.toString('hex')}\n${b.toString('hex')}\n`))?.newest.name, keyName(b))
})

test('where there is no key file, there are no keys', t => {
  assert.equal(readKeyFile(disk, join(freshFolder(t), KEY_FILE)), undefined)
})

test('a malformed key file is refused, naming the file and the line, and showing nothing of it', t => {
  const hex = a.toString('hex')
  const capitals = `AB${hex.slice(2)}`
  for (const [text, line] of [
    ['', 1], ['\n', 1], [`\n${hex}\n`, 1], [`${hex}\n\n`, 2], [`${hex}\n\n${hex}\n`, 2], [`${hex}\r\n`, 1],
    [` ${hex}\n`, 1],
    [`${hex} \n`, 1], [`${hex.slice(1)}\n`, 1], [`${hex}0\n`, 1], [`${capitals}\n`, 1], [`\uFEFF${hex}\n`, 1],
    [`# key\n${hex}\n`, 1], [`${hex}\n${'g'.repeat(64)}\n`, 2], [`${hex}\n${hex}\n${hex}`.slice(0, -1), 3],
    [`${hex}\0`, 1], ['\0'.repeat(65), 1]
  ] as const) {
    const path = keyFile(t, text)
    assert.throws(() => readKeyFile(disk, path), error => {
      assert.ok(error instanceof Error && error.message.includes(path) && !error.message.includes(hex.slice(8, 16)))
      return failure('key-invalid', new RegExp(`line ${line}: `))(error)
    }, JSON.stringify(text))
  }
})

test('a key file that cannot be read is refused, naming file and error', t => {
  const folder = freshFolder(t)
  mkdirSync(join(folder, KEY_FILE))
  assert.throws(() => readKeyFile(disk, join(folder, KEY_FILE)), failure('folder-unusable', /journal\.key: EISDIR/))
  rmSync(join(folder, KEY_FILE), { recursive: true })
  writeKeys(folder, a)
  const files = new FaultyFiles()
  files.fail({ at: 1, code: 'EACCES', of: 'read' })
  assert.throws(() => readKeyFile(files.files, join(folder, KEY_FILE)), failure('folder-unusable', /journal\.key: EACCES/))
})

test('a new key file is for its owner alone, whatever the umask, and holds what randomness gave', async t => {
  const umask = process.umask()
  t.after(() => { process.umask(umask) })
  for (const mask of [0o000, 0o022, 0o077]) {
    process.umask(mask)
    const path = join(freshFolder(t), KEY_FILE)
    const asked: number[] = []
    const ring = await createKeyFile(disk, path, bytes => { asked.push(bytes); return a })
    assert.deepEqual(asked, [32])
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.equal(readFileSync(path, 'latin1'), `${a.toString('hex')}\n`)
    assert.equal(ring.newest.name, keyName(a))
    assert.equal(readKeyFile(disk, path)?.newest.name, keyName(a))
  }
})

test("a new key file takes no other file's place: it is read instead", async t => {
  const path = keyFile(t, 'something')
  await assert.rejects(createKeyFile(disk, path, randomBytes), { code: 'key-invalid' })
  assert.equal(readFileSync(path, 'latin1'), 'something')
})

test('of first starts that share a key file each seals with the one that is there afterwards', async t => {
  for (const call of ['createToAppend', 'appendSync', 'close', 'link', 'stat', 'remove'] as const) {
    const folder = freshFolder(t)
    const path = join(folder, KEY_FILE)
    let other: Promise<unknown> | undefined
    // The other one makes its file, or begins to, just before this call.
    const files: Files = {
      ...disk,
      [call]: (...given: never[]) => {
        if (other === undefined) {
          other = createKeyFile(disk, path, () => b)
          removeLeftovers(disk, path) // a third one's, once
        }
        return Reflect.apply(disk[call], disk, given)
      }
    }
    const ring = await createKeyFile(files, path, () => a)
    await other
    assert.equal(ring.newest.name, readKeyFile(disk, path)!.newest.name, call)
  }
})

test('a key file that cannot be written whole is removed', async t => {
  const folder = freshFolder(t)
  const files = new FaultyFiles()
  files.fail({ at: 1, code: 'ENOSPC', of: 'appendSync' })
  await assert.rejects(createKeyFile(files.files, join(folder, KEY_FILE), randomBytes), { code: 'ENOSPC' })
  assert.deepEqual(readdirSync(folder), [])
  assert.equal(files.open.size, 0)
})

test('a machine that dies while the first start makes the key leaves nothing to clean up by hand', async t => {
  const stuck: string[] = []
  let calls = Infinity
  for (let dies = 1; dies <= calls; dies++) {
    const folder = freshFolder(t)
    const dying = new FaultyFiles()
    dying.fail({ at: dies, code: 'ENOSPC', forGood: true })
    try {
      const { journal } = await openJournal(folder, { files: dying.files })
      calls = Math.min(calls, dying.count())
      await journal.close()
    } catch {} // as at a crash
    try {
      const { journal } = await openJournal(folder)
      await journal.record('first')
      await journal.close()
      assert.deepEqual(auditJournal(journalBytes(folder), readSecret(folder)).data, ['first'])
    } catch (error) {
      stuck.push(`after a death at ${dying.calls[dies - 1]}, call ${dies}: ${String(error)}`)
    }
  }
  assert.deepEqual(stuck, [])
  assert.ok(calls >= 8, `${calls} calls`)
})

test('the first start makes a key, and later ones use it', async t => {
  const folder = freshFolder(t)
  for (const n of [1, 2, 3]) {
    const { journal, warnings } = await openJournal(folder)
    await journal.record(n)
    await journal.close()
    assert.deepEqual(warnings, [])
  }
  assert.deepEqual(readdirSync(folder).sort(), ['journal.jsonl', KEY_FILE])
  assert.deepEqual(auditJournal(journalBytes(folder), readSecret(folder)).data, [1, 2, 3])
})

test('two first starts make two keys', async t => {
  const folders = [freshFolder(t), freshFolder(t)]
  for (const folder of folders) await (await openJournal(folder)).journal.close()
  assert.notDeepEqual(readSecret(folders[0]!), readSecret(folders[1]!))
})

test('a key file may be elsewhere', async t => {
  const [folder, elsewhere] = [freshFolder(t), freshFolder(t)]
  const path = join(elsewhere, 'a.key')
  const { journal } = await openJournal(folder, { keyFile: path })
  await journal.record(1)
  await journal.close()
  assert.deepEqual(readdirSync(folder), ['journal.jsonl'])
  assert.deepEqual(readdirSync(elsewhere), ['a.key'])
  assert.deepEqual((await openJournal(folder, { keyFile: path })).journal.data, [1])
})

test('a key file in a folder that does not exist is refused, naming the key file', async t => {
  const folder = freshFolder(t)
  const path = join(folder, 'none', 'a.key')
  await assert.rejects(openJournal(folder, { keyFile: path }), error => {
    assert.ok(error instanceof Error && error.message.includes(path), String(error))
    return true
  })
  assert.deepEqual(readdirSync(folder), [])
})

test('no key is made where a journal exists, even an empty one', async t => {
  for (const content of ['', `${referenceLines(a, [['x']])[0]}\n`, 'garbage']) {
    const folder = freshFolder(t)
    writeJournal(folder, content)
    const before = snapshot(folder)
    await assert.rejects(openJournal(folder), failure('key-missing', /journal\.jsonl needs .*journal\.key/))
    assert.deepEqual(snapshot(folder), before)
  }
})

test('a malformed key file is refused at start, with or without a journal, and nothing changes', async t => {
  for (const content of [undefined, '', `${referenceLines(a, [['x']])[0]}\n`]) {
    const folder = freshFolder(t)
    writeFileSync(join(folder, KEY_FILE), `${a.toString('hex').slice(1)}\n`, { mode: 0o600 })
    if (content !== undefined) writeJournal(folder, content)
    const before = snapshot(folder)
    await assert.rejects(openJournal(folder), failure('key-invalid', /journal\.key, line 1/))
    assert.deepEqual(snapshot(folder), before)
  }
})

test("another key than the journal's is refused, naming the line and the key it needs, and nothing changes", async t => {
  const folder = freshFolder(t)
  writeKeys(folder, b, c)
  writeJournal(folder, referenceLines(a, [['x'], ['y']]).map(line => `${line}\n`).join(''))
  const before = snapshot(folder)
  await assert.rejects(openJournal(folder), failure('key-unknown', new RegExp(`line 1 needs key ${keyName(a)}`)))
  assert.deepEqual(snapshot(folder), before)
})

test("another key than the journal's is refused also where the journal has a torn tail, which stays", async t => {
  const folder = freshFolder(t)
  writeKeys(folder, b)
  writeJournal(folder, `${referenceLines(a, [['x']])[0]}\n{"seq":2,`)
  const before = snapshot(folder)
  await assert.rejects(openJournal(folder), failure('key-unknown'))
  assert.deepEqual(snapshot(folder), before)
})

test('the newest key seals, older ones still open, and one that is gone is missed', async t => {
  const folder = freshFolder(t)
  writeKeys(folder, a)
  const commit = async (data: unknown): Promise<void> => {
    const { journal } = await openJournal(folder)
    await journal.record(data)
    await journal.close()
  }
  await commit('first')
  writeKeys(folder, a, b)
  await commit('second')
  writeKeys(folder, a, b, c)
  await commit('third')
  const { lines, data } = auditJournal(journalBytes(folder), a, b, c)
  assert.deepEqual(lines.map(line => line.key), [a, b, c].map(keyName))
  assert.deepEqual(data, ['first', 'second', 'third'])
  assert.deepEqual((await openJournal(folder)).journal.data, data)
  writeKeys(folder, b, a, c)
  assert.deepEqual((await openJournal(folder)).journal.data, data, 'for reading their order does not matter')
  writeKeys(folder, a, c)
  await assert.rejects(openJournal(folder), failure('key-unknown', new RegExp(`line 2 needs key ${keyName(b)}`)))
})

test('a key file that others may read is closed to them', async t => {
  for (const mode of [0o644, 0o660, 0o604, 0o777]) {
    const folder = freshFolder(t)
    writeKeys(folder, a)
    chmodSync(join(folder, KEY_FILE), mode)
    const { journal, warnings } = await openJournal(folder)
    await journal.close()
    assert.equal(statSync(join(folder, KEY_FILE)).mode & 0o777, 0o600, mode.toString(8))
    assert.deepEqual(warnings.filter(line => !line.includes('starting a new journal')), [])
  }
})

test('a key file stricter than need be stays as it is', async t => {
  const folder = freshFolder(t)
  writeKeys(folder, a)
  chmodSync(join(folder, KEY_FILE), 0o400)
  await (await openJournal(folder)).journal.close()
  assert.equal(statSync(join(folder, KEY_FILE)).mode & 0o777, 0o400)
})

test('a key file that cannot be closed to others is warned of', async t => {
  const folder = freshFolder(t)
  writeKeys(folder, a)
  chmodSync(join(folder, KEY_FILE), 0o644)
  const files = new FaultyFiles()
  files.fail({ at: 1, code: 'EPERM', of: 'setMode' })
  const { journal, warnings } = await openJournal(folder, { files: files.files })
  await journal.close()
  assert.equal(warnings.length, 2)
  assert.match(warnings[0]!, /does not exist, though its key does; starting a new journal/)
  assert.match(warnings[1]!, /journal\.key is open to others \(mode 644\) .*EPERM/)
})

const [A, B, C] = ['a', 'b', 'c'].map(digit => digit.repeat(64)) as [string, string, string]
const nameOf = (hex: string): string => keyName(Buffer.from(hex, 'hex'))
const modeOf = (path: string): number => statSync(path).mode & 0o777

test('key file: a later start leaves it as it is, and closes it to others', async t => {
  const folder = freshFolder(t)
  await (await openJournal(folder)).journal.close()
  const key = readFileSync(keyPath(folder))
  for (const mode of [0o644, 0o660, 0o601]) {
    chmodSync(keyPath(folder), mode)
    chmodSync(journalPath(folder), mode)
    await (await openJournal(folder)).journal.close()
    assert.deepEqual([modeOf(keyPath(folder)), modeOf(journalPath(folder))].map(one => one & 0o077), [0, 0])
    assert.deepEqual(readFileSync(keyPath(folder)), key)
  }
})

test('key file: one that exists before the first start is used', async t => {
  const folder = freshFolder(t)
  writeFileSync(keyPath(folder), `${A}\n`)
  const bytes = await writeRecords(folder, [[event(1)]])
  assert.deepEqual(verify(bytes, [A]).map(line => line.key), [nameOf(A)])
  assert.equal(readFileSync(keyPath(folder), 'utf8'), `${A}\n`)
})

test('key file: a key is added after the others, mode 0600, and the old file is replaced at once', async t => {
  const folder = freshFolder(t)
  const path = keyPath(folder)
  await createKeyFile(disk, path, randomBytes)
  const [old] = keysOf(folder)
  const { calls: names, files } = new FaultyFiles()
  const inode = statSync(path).ino
  const added = await addKey(files, path, randomBytes)
  const keys = keysOf(folder)
  assert.equal(keys.length, 2)
  assert.equal(keys[0], old)
  assert.notEqual(keys[1], old)
  assert.equal(added.newest.name, nameOf(keys[1]!))
  assert.notEqual(statSync(path).ino, inode)
  assert.equal(modeOf(path), 0o600)
  assert.deepEqual(Object.keys(snapshot(folder)), ['journal.key'])
  const order = ['appendSync', 'rename', 'sync'].map(name => names.lastIndexOf(name as keyof Files))
  assert.ok(order[0]! >= 0 && order[0]! < order[1]! && order[1]! < order[2]!, names.join())
})

test('key file: what an attempt that a crash ended left is removed by the next start', async t => {
  const folder = freshFolder(t)
  await createKeyFile(disk, keyPath(folder), randomBytes)
  for (const name of ['new', '1.part', '17.part']) writeFileSync(`${keyPath(folder)}.${name}`, `${B}\n${C}`)
  await (await openJournal(folder)).journal.close()
  // A key that the operator is about to put in place is nobody else's business.
  assert.deepEqual(Object.keys(snapshot(folder)), ['journal.jsonl', 'journal.key', 'journal.key.new'])
})

test('key file: a file without a line end at its end takes a further key', async t => {
  const folder = freshFolder(t)
  writeFileSync(keyPath(folder), A)
  assert.equal(readKeyFile(disk, keyPath(folder))?.newest.name, nameOf(A))
  await addKey(disk, keyPath(folder), () => Buffer.from(B, 'hex'))
  assert.equal(readFileSync(keyPath(folder), 'utf8'), `${A}\n${B}\n`)
})

test('key file: when its folder cannot be synced a further key is refused, and the file stays as it is', async t => {
  const folder = freshFolder(t)
  await createKeyFile(disk, keyPath(folder), randomBytes)
  const before = snapshot(folder)
  const sync = (): never => { throw Object.assign(new Error('refused'), { code: 'ERR_ACCESS_DENIED' }) }
  await assert.rejects(addKey({ ...disk, sync }, keyPath(folder), randomBytes), { code: 'ERR_ACCESS_DENIED' })
  assert.deepEqual(snapshot(folder), before)
})

test('key file: a further key that cannot be written leaves the file as it is and nothing beside it', async t => {
  const folder = freshFolder(t)
  await createKeyFile(disk, keyPath(folder), randomBytes)
  const before = snapshot(folder)
  for (const name of ['createToAppend', 'appendSync', 'read'] as const) {
    const failing = (): never => { throw Object.assign(new Error('full'), { code: 'ENOSPC' }) }
    await assert.rejects(addKey({ ...disk, [name]: failing }, keyPath(folder), randomBytes), { code: 'ENOSPC' }, name)
    assert.deepEqual(snapshot(folder), before, name)
  }
})

test('key file: a crash at any call of a rotation leaves the old keys, and the next one works', async t => {
  let calls = Infinity
  for (let dies = 1; dies <= calls; dies++) {
    const folder = freshFolder(t)
    await writeRecords(folder, [[event(1)]])
    const [old] = keysOf(folder)
    const dying = new FaultyFiles()
    dying.fail({ at: dies, code: 'ENOSPC', forGood: true })
    try {
      await addKey(dying.files, keyPath(folder), randomBytes)
      calls = dying.count()
    } catch {} // as at a crash
    const { journal, records } = await openJournal(folder)
    assert.equal(records.length, 1, `call ${dies}, ${dying.calls[dies - 1]}`)
    await journal.rotateKey()
    await commitTogether(journal, [event(2)])
    await journal.close()
    const keys = keysOf(folder)
    assert.equal(keys[0], old)
    assert.equal(verify(journalBytes(folder), keys).at(-1)?.key, nameOf(keys.at(-1)!))
    assert.deepEqual(Object.keys(snapshot(folder)), ['journal.jsonl', 'journal.key'])
  }
  assert.ok(calls >= 8, `${calls}`)
})

test('key file: a rotation seals what comes after it with the new key, what came before stays readable', async t => {
  const folder = freshFolder(t)
  const { journal } = await openJournal(folder)
  const before = commitTogether(journal, [event(1), event(2)])
  const rotated = journal.rotateKey()
  const after = commitTogether(journal, [event(3)])
  const { key: name } = await rotated
  await Promise.all([before, after])
  await commitTogether(journal, [event(4)])
  await journal.close()
  const lines = verify(journalBytes(folder), keysOf(folder))
  assert.deepEqual(lines.map(line => line.data), [1, 2, 3, 4].map(n => ({ n })))
  assert.equal(lines.at(-1)?.key, name)
  assert.notEqual(lines[0]?.key, name)
  const again = await openJournal(folder)
  assert.equal(again.records.length, 4)
  await again.journal.close()
})
