/** What is asked of the device to cut a file back, to make durable what another program wrote, and to make folders. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { constants, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { test } from 'node:test'
import { disk, type Descriptor, type Files } from '../../src/journal/files.ts'
import { cutBack as cutOpen, settle as settleOpen } from '../../src/journal/file-journal.ts'
import { makeWhole } from '../../src/parts/commands/whole-file.ts'
import { BLOCK_BYTES, READ_CHUNK_BYTES } from '../../src/limits.ts'
import { FaultyFiles } from '../support/faulty-files.ts'
import { event, makeJournal, putJournal, startAndStop } from '../support/journal.ts'
import { freshFolder } from '../support/service.ts'

function opened<T>(files: Files, path: string, act: (file: Descriptor) => T): T {
  const file = files.openToOverwrite(path)
  try {
    return act(file)
  } finally {
    files.close(file)
  }
}

const cutBack = (files: Files, path: string, bytes: number): void =>
  opened(files, path, file => cutOpen(files, file, bytes))
const settle = (files: Files, path: string, from: number): void =>
  opened(files, path, file => settleOpen(files, file, from))

/** The disk, and what changes a file there, in order: what was written at which offset, cut to which length, synced. */
function watched(base: Files = disk): { readonly files: Files, readonly steps: string[] } {
  const steps: string[] = []
  const files: Files = {
    ...base,
    syncOpen: file => { base.syncOpen(file); steps.push('sync') },
    truncate: (descriptor, bytes) => { steps.push(`cut to ${bytes}`); base.truncate(descriptor, bytes) },
    writeAt: (descriptor, bytes, offset) => {
      const what = bytes.every(byte => byte === 0) ? 'zeros' : 'bytes'
      steps.push(`${what} ${offset}-${offset + bytes.length}`)
      return base.writeAt(descriptor, bytes, offset)
    }
  }
  return { files, steps }
}

const END = BLOCK_BYTES + READ_CHUNK_BYTES

for (const [what, kept, size, expected] of [
  ['within a block', 100, BLOCK_BYTES - 1, ['zeros 100-4095', 'cut to 100', 'sync', 'bytes 99-100']],
  ['over several blocks', 100, END + 7, [
    `zeros 100-${BLOCK_BYTES}`, `zeros ${BLOCK_BYTES}-${END}`, `zeros ${END}-${END + 7}`, 'cut to 100', 'sync',
    'bytes 99-100'
  ]],
  // There, zeros would look like a lost block.
  ['at the end of a block', BLOCK_BYTES, BLOCK_BYTES + 9, ['cut to 4096', 'sync', 'bytes 4095-4096']],
  ['to nothing', 0, 10, ['cut to 0', 'sync']]
] as const) {
  test(`a file that is cut back ${what}: its rest is overwritten first, and the cut is durable`, t => {
    const path = join(freshFolder(t), 'file')
    writeFileSync(path, 'x'.repeat(size))
    const { files, steps } = watched()
    cutBack(files, path, kept)
    assert.deepEqual(steps, expected)
    assert.equal(readFileSync(path, 'latin1'), 'x'.repeat(kept))
  })
}

test('what is doubtful is written again behind a sync; where nothing can be synced, the last block is at least', t => {
  const path = join(freshFolder(t), 'file')
  const bytes = Buffer.from('x'.repeat(READ_CHUNK_BYTES + 5))
  writeFileSync(path, bytes)
  const faulty = new FaultyFiles()
  for (const [base, from, expected] of [
    [disk, Infinity, ['sync']],
    [disk, READ_CHUNK_BYTES, ['sync', `bytes ${READ_CHUNK_BYTES}-${bytes.length}`]],
    [faulty.files, Infinity, [`bytes ${READ_CHUNK_BYTES}-${bytes.length}`]],
    [faulty.files, 7, [`bytes 7-${READ_CHUNK_BYTES + 5}`]]
  ] as const) {
    faulty.fail({ of: 'syncOpen', code: 'ERR_ACCESS_DENIED', forGood: true })
    const { files, steps } = watched(base)
    settle(files, path, from)
    assert.deepEqual(steps, expected)
    assert.deepEqual(readFileSync(path), bytes)
  }
  const { files } = watched()
  const syncOpen = (): never => { throw Object.assign(new Error('EIO'), { code: 'EIO' }) }
  assert.throws(() => settle({ ...files, syncOpen }, path, 0), { code: 'EIO' })
})

test('a write that has returned is on the device, whichever way the file was opened', t => {
  const path = join(freshFolder(t), 'file')
  for (const open of [disk.createToAppend, disk.openToAppend, disk.openToOverwrite]) {
    const descriptor = open(path)
    const flags = parseInt(/^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1'))![1]!, 8)
    disk.close(descriptor)
    assert.ok((flags & constants.O_DSYNC) !== 0, open.name)
    assert.equal((flags & constants.O_APPEND) !== 0, open !== disk.openToOverwrite, open.name)
  }
})

test('a file that is made whole replaces none that took its name meanwhile, and leaves nothing', async t => {
  const folder = freshFolder(t)
  const path = join(folder, 'file')
  const made = makeWhole(disk, path, file => {
    file.write('made')
    writeFileSync(path, 'taken')
  })
  await assert.rejects(made, { code: 'EEXIST' })
  assert.deepEqual([readdirSync(folder), readFileSync(path, 'latin1')], [['file'], 'taken'])
})

for (const [what, code, refusals, kept] of [
  ['the new one takes the place', undefined, [], 'new'],
  ['the old one stays if the system refuses', 'EIO', [], 'old'],
  ['the old one stays if the look before refuses', undefined, [1], 'old']
] as const) {
  test(`a file that is replaced by a whole one: ${what}, and nothing else is left`, async t => {
    const folder = freshFolder(t)
    const path = join(folder, 'file')
    writeFileSync(path, 'old')
    const rename: Files['rename'] = (from, to) => {
      if (code !== undefined) throw Object.assign(new Error(code), { code })
      disk.rename(from, to)
    }
    let looks = 0
    const confirm = (): void => { if (refusals.includes(++looks as never)) throw new Error('refused') }
    const replaces = disk.stat(path)!
    const made = makeWhole({ ...disk, rename }, path, file => file.write('new'), { replaces, confirm })
    if (kept === 'new') await made
    else await assert.rejects(made, refusals.length > 0 ? /^Error: refused$/ : { code })
    assert.deepEqual([readdirSync(folder), readFileSync(path, 'latin1')], [['file'], kept])
  })
}

test('a new file takes its place where there are no second names, not if the system has another reason', async t => {
  for (const [code, names] of [['EPERM', ['file']], ['EIO', []]] as const) {
    const folder = freshFolder(t)
    const faulty = new FaultyFiles()
    faulty.fail({ of: 'link', code })
    const made = makeWhole(faulty.files, join(folder, 'file'), file => file.write('x'))
    if (names.length > 0) await made
    else await assert.rejects(made, { code })
    assert.deepEqual(readdirSync(folder), names)
  }
})

test('where the names in a folder cannot be made durable, the error names the folder, and says what helps', async t => {
  const folder = freshFolder(t)
  for (const [code, advice] of [['EINVAL', true], ['ENOTSUP', true], ['EOPNOTSUPP', true], ['EIO', false]] as const) {
    const faulty = new FaultyFiles()
    faulty.fail({ of: 'sync', code })
    await assert.rejects(makeWhole(faulty.files, join(folder, 'file'), file => file.write('x')),
      (error: NodeJS.ErrnoException) => {
      assert.deepEqual([error.code, error.path], [code, folder])
      return !advice ||
        error.message === `${folder}: ${code}; its file system cannot make names durable; use another file system`
    })
  }
  assert.deepEqual(readdirSync(folder), [])
})

test('syncing a folder asks the system for it, and leaves nothing open', t => {
  const folder = freshFolder(t)
  const open = (): number => readdirSync('/proc/self/fd').length
  const before = open()
  disk.sync(folder)
  assert.throws(() => disk.sync('/proc'), { code: 'EINVAL' }) // where nothing can be synced
  assert.equal(open(), before)
})

test('the names of a file that is made whole are durable in the order in which they must be', async t => {
  const folder = freshFolder(t)
  const [path, kept] = [join(folder, 'file'), join(folder, 'kept')]
  const calls: string[] = []
  const told = Object.fromEntries(['sync', 'createToAppend', 'link', 'rename',
    'appendSync'].map(name => [name, (...given: never[]) => {
    calls.push(name)
    return (disk as unknown as Record<string, (...given: never[]) => unknown>)[name]!(...given)
  }]))
  const files = { ...disk, ...told } as Files
  const made = async (options?: Parameters<typeof makeWhole>[3]): Promise<string> => {
    calls.length = 0
    await makeWhole(files, path, file => file.write('x'), options)
    return calls.join(' ')
  }
  // A folder that cannot be synced is found out before anything is made.
  assert.equal(await made(), 'sync createToAppend appendSync link sync')
  const replaces = disk.stat(path)!
  assert.equal(await made({ replaces, keepsAs: kept }), 'sync createToAppend appendSync link sync rename sync')
  assert.equal(await made({ replaces: disk.stat(path)! }), 'sync createToAppend appendSync rename sync')
})

/** What changes or syncs names, and what cuts, in order; `.N.part` and times are left out. */
function namesOf(folder: string): { readonly files: Files, readonly steps: string[] } {
  const steps: string[] = []
  const plain = (path: string): string =>
    relative(folder, path).replace(/\.\d+\.part$/, '.part').replace(/torn-.*/, 'torn')
  const files: Files = {
    ...disk,
    createToAppend: path => { steps.push(`make ${plain(path)}`); return disk.createToAppend(path) },
    link: (path, name) => { steps.push(`name ${plain(name)}`); disk.link(path, name) },
    rename: (from, to) => { steps.push(`name ${plain(to)}`); disk.rename(from, to) },
    sync: path => { steps.push(`sync ${plain(path)}`); disk.sync(path) },
    truncate: (descriptor, bytes) => { steps.push(`cut to ${bytes}`); disk.truncate(descriptor, bytes) }
  }
  return { files, steps }
}

test('a first start makes each name durable before the next: the first record, its key, the journal', async t => {
  const folder = freshFolder(t)
  const [data, keys] = [join(folder, 'data'), join(folder, 'keys')]
  for (const one of [data, keys]) mkdirSync(one)
  const { files, steps } = namesOf(folder)
  await startAndStop(data, { files, keyFile: join(keys, 'key') })
  assert.deepEqual(steps.slice(steps.indexOf('make data/journal.jsonl.part')), [
    'make data/journal.jsonl.part', 'sync data', 'make keys/key.part', 'name keys/key', 'sync keys',
    'name data/journal.jsonl', 'sync keys/key', 'sync keys', 'sync data'
  ])
})

test('a torn tail is cut off once the copy of it has a durable name', async t => {
  const folder = freshFolder(t)
  const whole = await makeJournal(folder, [[event(1)]])
  putJournal(folder, Buffer.concat([whole, Buffer.from('{"seq":2,')]))
  const { files, steps } = namesOf(folder)
  await startAndStop(folder, { files })
  assert.deepEqual(steps.slice(steps.indexOf('make journal.jsonl.torn')),
    ['make journal.jsonl.torn', 'sync ', `cut to ${whole.length}`])
})
