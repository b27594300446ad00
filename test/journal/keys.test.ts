/** The key file: how it is made and grows, what is no key file, and what a lost or wrong one leads to. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import {
  lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync, symlinkSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { disk, type Files } from '../../src/journal/files.ts'
import { keyring, readKeyFile, watchKeys } from '../../src/journal/keys.ts'
import { openJournalFile } from '../../src/journal/folder.ts'
import { addKey } from '../../src/parts/commands/new-keys.ts'
import { FaultyFiles, whicheverCallFails } from '../support/faulty-files.ts'
import {
  assertRefused, commitTogether, event, failure, journalBytes, KEY_FILE, keyName, keyPath, keysOf, makeJournal,
  openJournal, putJournal, readSecret, referenceLines, startAndStop, verify, writeKeys
} from '../support/journal.ts'
import { freshFolder } from '../support/service.ts'

const [a, b, c] = [randomBytes(32), randomBytes(32), randomBytes(32)]
const hex = (secret: Buffer): string => `${secret.toString('hex')}\n`

function keyFile(t: TestContext, text: string): string {
  const path = keyPath(freshFolder(t))
  writeFileSync(path, text)
  return path
}

test('of several keys the last is the newest, and each is found by its name', () => {
  const ring = keyring([a, b, c])
  assert.equal(ring.newest.name, keyName(c))
  for (const secret of [a, b, c]) assert.deepEqual(ring.find(keyName(secret))?.secret.export(), secret)
  assert.equal(ring.find(keyName(randomBytes(32))), undefined)
  assert.equal(ring.find('__proto__'), undefined)
  assert.throws(() => keyring([]), /a keyring needs a key/)
})

test('a key file holds one key a line, the last one seals; the end of the last line may be missing', t => {
  for (const [text, newest] of [[hex(a).trimEnd(), a], [hex(a) + hex(b), b], [hex(a) + hex(b) + hex(a), a]] as const) {
    assert.equal(readKeyFile(disk, keyFile(t, text))?.newest.name, keyName(newest))
  }
  assert.equal(readKeyFile(disk, keyPath(freshFolder(t))), undefined, 'without a file there are no keys')
})

test('a malformed key file is refused, naming the file and the line, and showing nothing of it', t => {
  const digits = a.toString('hex')
  for (const [text, line] of [
    ['', 1], ['\n', 1], [`\n${digits}\n`, 1], [`${digits}\n\n`, 2], [`${digits}\n\n${digits}\n`, 2],
    [`${digits}\r\n`, 1], [` ${digits}\n`, 1], [`${digits} \n`, 1], [`${digits.slice(1)}\n`, 1], [`${digits}0\n`, 1],
    [`AB${digits.slice(2)}\n`, 1], [`\uFEFF${digits}\n`, 1], [`# key\n${digits}\n`, 1],
    [`${digits}\n${'g'.repeat(64)}\n`, 2], [`${digits}\n${digits}\n${digits}`.slice(0, -1), 3],
    [`${digits}\0`, 1], ['\0'.repeat(65), 1]
  ] as const) {
    const path = keyFile(t, text)
    assert.throws(() => readKeyFile(disk, path), error => {
      assert.ok(error instanceof Error && error.message.includes(path) && !error.message.includes(digits.slice(8, 16)))
      return failure('key-invalid', new RegExp(`line ${line}: `))(error)
    }, JSON.stringify(text))
  }
})

test('a key file that cannot be read is refused, naming file and error', t => {
  const folder = freshFolder(t)
  mkdirSync(keyPath(folder))
  assert.throws(() => readKeyFile(disk, keyPath(folder)), failure('key-invalid', /journal\.key: EISDIR/))
  rmSync(keyPath(folder), { recursive: true })
  writeKeys(folder, a)
  const { files } = faulty('read', 'EACCES')
  assert.throws(() => readKeyFile(files, keyPath(folder)), failure('folder-unusable', /journal\.key: EACCES/))
})

test('a key file that cannot be read any more is said to lack what is needed, until it can be', t => {
  const folder = freshFolder(t)
  writeKeys(folder, a)
  let isBroken = true
  const read: Files['read'] = path => {
    if (isBroken) throw Object.assign(new Error('no'), { code: 'EIO', path })
    return disk.read(path)
  }
  const watch = watchKeys({ ...disk, read }, keyPath(folder), new Set([keyName(a)]))
  for (let n = 0; n < 2; n++) assert.match(watch() ?? '', /journal\.key: EIO$/)
  isBroken = false
  assert.equal(watch(), undefined)
})

test('every change of a key file is seen, and a look at one that has not changed costs no read', async t => {
  const folder = freshFolder(t)
  const path = keyPath(folder)
  const counted = new FaultyFiles()
  const watch = watchKeys(counted.files, path, new Set([keyName(a)]))
  for (const [text, lacks] of [[hex(a), false], [hex(b), true], [hex(b) + hex(a), false], ['x', true],
    [undefined, true], [hex(a), false]] as const) {
    if (text === undefined) rmSync(path)
    else writeFileSync(path, text)
    assert.equal(watch() !== undefined, lacks, text)
    await new Promise(resolve => setTimeout(resolve, 20)) // a tick of the file system's clock
  }
  const before = counted.count('read')
  for (let n = 0; n < 9; n++) assert.equal(watch(), undefined)
  assert.equal(counted.count('read'), before)
  writeFileSync(path, hex(b), { flag: 'r+' }) // the same file, of the same length
  assert.match(watch()!, new RegExp(keyName(a)))
})

function faulty(of: keyof Files, code: string): FaultyFiles {
  const made = new FaultyFiles()
  made.fail({ of, code, forGood: true })
  return made
}

test('a new key file replaces none that another process made meanwhile; the next start seals with that', async t => {
  for (const call of ['createToAppend', 'appendSync', 'link'] as const) {
    const [folder, elsewhere] = [freshFolder(t), freshFolder(t)]
    const path = keyPath(elsewhere)
    let isOther = false
    const files: Files = {
      ...disk,
      [call]: (...given: never[]) => {
        if (!isOther && readdirSync(folder).length > 0) writeKeys(elsewhere, b)
        isOther ||= readdirSync(folder).length > 0
        return Reflect.apply(disk[call], disk, given)
      }
    }
    await assert.rejects(startAndStop(folder, { files, keyFile: path }),
      failure('key-unwritable', /could not be made: EEXIST/))
    assert.deepEqual([isOther, readSecret(elsewhere)], [true, b], call)
    const { journal } = await openJournal(folder, { keyFile: path })
    await journal.record(1)
    await journal.close()
    assert.deepEqual(verify(journalBytes(folder), keysOf(elsewhere)).length, 2)
    assert.deepEqual(readdirSync(elsewhere), [KEY_FILE])
  }
})

test('a key file may be elsewhere, and its name is durable before a change is', async t => {
  const [folder, elsewhere] = [freshFolder(t), freshFolder(t)]
  const synced = new Set<string>()
  const files = { ...disk, sync: (path: string) => { synced.add(path); disk.sync(path) } }
  const options = { keyFile: join(elsewhere, 'a.key'), files }
  const { journal } = await openJournal(folder, options)
  assert.ok(synced.has(folder) && synced.has(elsewhere), [...synced].join())
  await journal.record(1)
  await journal.close()
  assert.deepEqual([readdirSync(folder), readdirSync(elsewhere)], [['journal.jsonl'], ['a.key']])
  assert.deepEqual((await startAndStop(folder, options)).journal.data, [1])
})

const line = `${referenceLines(a, [['x']])[0]}\n`
const twoLines = referenceLines(a, [['x'], ['y']]).map(text => `${text}\n`).join('')
const needsA = new RegExp(`line 1 needs key ${keyName(a)}`)

for (const [what, keys, journals, code, message] of [
  ['no key file beside a journal, even an empty one,', undefined, ['', line, 'garbage'], 'key-missing',
    /journal\.jsonl needs .*journal\.key/],
  ['a malformed key file, with or without a journal,', hex(a).slice(1), [undefined, '', line], 'key-invalid',
    /journal\.key, line 1/],
  ["another key than the journal's", hex(b) + hex(c), [twoLines], 'key-unknown', needsA],
  ["another key than the journal's, which has a torn tail,", hex(b), [`${line}{"seq":2,`], 'key-unknown', needsA]
] as const) {
  test(`${what} is refused at start, and nothing changes`, async t => {
    for (const content of journals) {
      const folder = freshFolder(t)
      if (keys !== undefined) writeFileSync(keyPath(folder), keys, { mode: 0o600 })
      if (content !== undefined) putJournal(folder, content)
      await assertRefused(folder, code, message)
    }
  })
}

test('the newest key seals, older ones still open, and one that is gone is missed', async t => {
  const folder = freshFolder(t)
  for (const [data, ...keys] of [['first', a], ['second', a, b], ['third', a, b, c]] as const) {
    writeKeys(folder, ...keys)
    const { journal } = await openJournal(folder, { mayCreate: true })
    await journal.record(data)
    await journal.close()
  }
  const [, ...lines] = verify(journalBytes(folder), keysOf(folder))
  const data = ['first', 'second', 'third']
  assert.deepEqual(lines.map(one => [one.key, one.data]), [a, b, c].map((key, i) => [keyName(key), data[i]]))
  for (const keys of [[a, b, c], [b, a, c]]) {
    writeKeys(folder, ...keys)
    assert.deepEqual((await startAndStop(folder)).journal.data, data, 'for reading their order does not matter')
  }
  const { journal } = await openJournal(folder)
  writeKeys(folder, a, c)
  await assert.rejects(journal.record('fourth'), { code: 'key-unknown' }, 'what seals older lines is watched as well')
  await journal.close()
  await assertRefused(folder, 'key-unknown', `line 3 needs key ${keyName(b)}`)
})

test('a key is added after the others, mode 0600, and the old file is replaced at once', async t => {
  const folder = freshFolder(t)
  const path = keyPath(folder)
  writeKeys(folder, a)
  const [old] = keysOf(folder)
  const { calls: names, files } = new FaultyFiles()
  const inode = statSync(path).ino
  const added = await addKey(files, path, randomBytes)
  const [first, second, ...more] = keysOf(folder)
  assert.deepEqual([first, second === old, more], [old, false, []])
  assert.equal(added.newest.name, keyName(readSecret(folder)))
  assert.notEqual(statSync(path).ino, inode)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(folder), [KEY_FILE])
  const order = (['appendSync', 'rename', 'sync'] as const).map(name => names.lastIndexOf(name))
  assert.ok(order[0]! >= 0 && order[0]! < order[1]! && order[1]! < order[2]!, names.join())
})

test('what an attempt that a crash ended left beside the key file is removed by the next start', async t => {
  const folder = freshFolder(t)
  await startAndStop(folder)
  for (const name of ['new', '1.part', '17.part']) writeFileSync(`${keyPath(folder)}.${name}`, hex(b))
  await startAndStop(folder)
  // A key that the operator is about to put in place is nobody else's business.
  assert.deepEqual(readdirSync(folder).sort(), ['journal.jsonl', KEY_FILE, `${KEY_FILE}.new`])
})

test('a file without a line end at its end takes a further key', async t => {
  const path = keyFile(t, hex(a).trimEnd())
  await addKey(disk, path, () => b)
  assert.equal(readFileSync(path, 'latin1'), hex(a) + hex(b))
})

test('a crash at any call of a rotation leaves the old keys, and the next one works', async t => {
  const calls = await whicheverCallFails({ code: 'ENOSPC', forGood: true }, async (dying, begin) => {
    const folder = freshFolder(t)
    await makeJournal(folder, [[event(1)]])
    const [old] = keysOf(folder)
    begin()
    await addKey(dying.files, keyPath(folder), randomBytes).catch(() => {})
    const { journal, records } = await openJournal(folder)
    assert.equal(records.length, 1)
    await journal.rotateKey()
    await commitTogether(journal, [event(2)])
    await journal.close()
    const keys = keysOf(folder)
    assert.equal(keys[0], old)
    assert.equal(verify(journalBytes(folder), keys).at(-1)?.key, keyName(readSecret(folder)))
    assert.deepEqual(readdirSync(folder).sort(), ['journal.jsonl', KEY_FILE])
  })
  assert.ok(calls >= 8, `${calls} calls`)
})

test('a key file that is a symbolic link stays a link, also when a key is added', async t => {
  const folder = freshFolder(t)
  const elsewhere = freshFolder(t)
  await startAndStop(folder)
  renameSync(keyPath(folder), join(elsewhere, 'real.key'))
  symlinkSync(join(elsewhere, 'real.key'), keyPath(folder))
  const { journal } = await openJournal(folder)
  await journal.record(1)
  await journal.rotateKey()
  await journal.close()
  assert.ok(lstatSync(keyPath(folder)).isSymbolicLink())
  assert.equal(readFileSync(join(elsewhere, 'real.key'), 'latin1').split('\n').length, 3)
  await startAndStop(folder)
})

test('a key file that is the journal itself is refused', async t => {
  const folder = realpathSync(freshFolder(t))
  await assert.rejects(openJournal(folder, { keyFile: join(folder, 'journal.jsonl') }), { code: 'key-invalid' })
})

test('a folder of keys that may not be listed nor synced hinders no start; leftovers stay there', async t => {
  const folder = freshFolder(t)
  const keys = freshFolder(t)
  const keyFile = join(keys, 'k')
  writeFileSync(keyFile, hex(a), { mode: 0o600 })
  writeFileSync(`${keyFile}.1.part`, '')
  const refused = (path: string): void => {
    if (path === keys) throw Object.assign(new Error('EACCES'), { code: 'EACCES' })
  }
  const files: Files = {
    ...disk,
    list: path => { refused(path); return disk.list(path) },
    sync: path => { refused(path); disk.sync(path) }
  }
  for (let starts = 0; starts < 2; starts++) {
    const journal = openJournalFile({ files, folder, keyFile, random: randomBytes, wallMs: Date.now, warn: () => {} },
      () => {})
    assert.equal(journal.status().fault, undefined)
    await journal.close()
  }
  assert.deepEqual(readdirSync(keys).sort(), ['k', 'k.1.part'])
})
