/**
 * What a service still holds whose journal is damaged, replaced or gone: a command writes it elsewhere, or the stop
 * does.
 */
import assert from 'node:assert/strict'
import {
  copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync
} from 'node:fs'
import { basename, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { admin, done, initialized, refused } from '../support/admin.ts'
import { joined } from '../support/patterns.ts'
import { runProgram, startProgram, type Program } from '../support/program.ts'
import { freshFolder, send } from '../support/service.ts'

const ENTRY = { password: 'SECRET', sistema: 's', usuario: 'u' }
const IN_MEMORY = /the service has everything in memory: do not stop it before journal rescue FILE/

const inFolder = (folder: string, name: string): string => join(folder, name)
const remove = (folder: string,
  ...names: readonly string[]): void => { for (const name of names) rmSync(inFolder(folder, name)) }
const create = async ({ url }: Program): Promise<number> =>
  (await send(url, 'POST', '/api/createPassword', ENTRY)).status
const rescuedIn = (folder: string): string[] => readdirSync(folder).filter(name => name.startsWith('journal.rescued-'))

async function withThree(t: TestContext, flags: Record<string, string> = {}): Promise<Program> {
  const program = await startProgram(t, { flags })
  for (let n = 0; n < 3; n++) assert.equal(await create(program), 200)
  return program
}

interface Loss { readonly lose: (folder: string) => void, readonly keys?: boolean, readonly isUnnoticed?: boolean }
const LOSSES: { readonly [what: string]: Loss } = {
  'removed': { lose: folder => remove(folder, 'journal.jsonl') },
  'replaced by another file': {
    lose: folder => {
      remove(folder, 'journal.jsonl')
      writeFileSync(inFolder(folder, 'journal.jsonl'), 'what another program wrote')
    }
  },
  'damaged in the middle': {
    isUnnoticed: true,
    lose: folder => {
      const bytes = readFileSync(inFolder(folder, 'journal.jsonl'))
      bytes[Math.floor(bytes.length / 2)]! ^= 1
      writeFileSync(inFolder(folder, 'journal.jsonl'), bytes, { flag: 'r+' })
    }
  },
  'removed with its key': { keys: true, lose: folder => remove(folder, 'journal.jsonl', 'journal.key') },
  'there, and its key file is another one': {
    keys: true, lose: folder => writeFileSync(inFolder(folder, 'journal.key'), `${'ab'.repeat(32)}\n`)
  }
}

for (const [what, { lose, keys = false, isUnnoticed = false }] of Object.entries(LOSSES)) {
  test(`a journal that is ${what}: rescue writes what is held, the stop no more; restore brings it back`, async t => {
    const program = await withThree(t)
    const { folder } = program
    const elsewhere = freshFolder(t)
    const [file, keyFile] = [join(elsewhere, 'rescued.jsonl'), join(elsewhere, 'rescued.key')]
    lose(folder)
    if (isUnnoticed) assert.match((await admin(folder, 'journal verify')).error, IN_MEMORY)
    if (keys) {
      await refused(folder, `journal rescue ${file}`, 1,
        /journal\.key lacks the key that the service seals with, and nothing was written: add --keys FILE/)
      assert.deepEqual(readdirSync(elsewhere), [])
    }
    const said = await done(folder, `journal rescue ${file}${keys ? ` --keys ${keyFile}` : ''}`)
    assert.match(said, /rescued\.jsonl: \d+ records, 3 entries, head [0-9a-f]{64}$/m)
    assert.match(said, what.includes('there, and') ? /^next +copy \S+rescued\.key to \S+journal\.key, /m :
      /^next +stop the service, .*journal restore .*rescued\.jsonl/m)
    for (const path of readdirSync(elsewhere)) assert.equal(statSync(join(elsewhere, path)).mode & 0o777, 0o600)
    assert.equal(await create(program), 500, 'nothing is acknowledged that the rescued file lacks')
    const names = readdirSync(folder).filter(name => !name.endsWith('.sock'))
    const { code, stderr } = await program.stop()
    assert.equal(code, 0)
    assert.match(stderr, /^warning: the journal had failed; journal rescue has written all of it$/m)
    assert.deepEqual(rescuedIn(folder), [])
    if (!keys) assert.deepEqual(readdirSync(folder), names)
    // The command's file of keys may be lost as well: the service's own keys stay in the folder.
    else assert.ok(readdirSync(folder).some(name => name.startsWith('journal.key') &&
      readFileSync(inFolder(folder, name), 'utf8') === readFileSync(keyFile, 'utf8')))
    const fresh = freshFolder(t)
    if (keys) renameSync(keyFile, join(fresh, 'journal.key'))
    else renameSync(join(folder, 'journal.key'), join(fresh, 'journal.key'))
    await done(fresh, `journal restore ${file}`)
    assert.equal(await done(fresh, 'entry get 3 --field password'), 'SECRET\n')
  })
}

test('a whole journal is not rescued but backed up; no name is taken that a start would take or remove', async t => {
  const { folder } = await withThree(t)
  const elsewhere = freshFolder(t)
  await refused(folder, `journal rescue ${join(elsewhere, 'r')}`, 1,
    /the journal is whole: journal backup FILE copies it$/m)
  remove(folder, 'journal.jsonl')
  await refused(folder, `journal rescue ${folder}/journal.jsonl`, 1,
    /is the name of the journal itself; name another file/)
  for (const words of ['rescue', 'backup']) {
    await refused(folder, `journal ${words} ${folder}/journal.jsonl.1.part`, 1,
      /name of a killed command's left-over, which a start removes/)
  }
  writeFileSync(join(elsewhere, 'r'), 'of somebody else')
  await refused(folder, `journal rescue ${join(elsewhere, 'r')}`, 1, /r exists already/)
  assert.equal(readFileSync(join(elsewhere, 'r'), 'utf8'), 'of somebody else')
})

test('if the key file alone is lost, the step that rescue names keeps the former values, without a stop', async t => {
  const { folder } = await withThree(t)
  await done(folder, 'entry edit 1 --password-stdin', 'a later one')
  rmSync(inFolder(folder, 'journal.key'))
  const place = freshFolder(t)
  const said = await done(folder, `journal rescue ${place}/r.jsonl --keys ${place}/keys`)
  assert.match(said, /^lacks +the former values of entries, .*: \S+journal\.jsonl has them$/m)
  assert.doesNotMatch(said, /counts as new/)
  const [, from, to] = /^next +copy (\S+) to (\S+), /m.exec(said)!
  copyFileSync(from!, to!)
  await done(folder, 'journal verify')
  assert.match(await done(folder, 'entry history 1 --reveal'), /SECRET[^]*a later one/)
  await done(folder, 'entry edit 1 --password-stdin', 'the newest one')
})

test('what was rescued before a later change does not count: the stop writes again', async t => {
  const program = await withThree(t)
  const { folder } = program
  const key = inFolder(folder, 'journal.key')
  const away = join(freshFolder(t), 'away')
  renameSync(key, away)
  await done(folder, `journal rescue ${away}.jsonl --keys ${away}.keys`)
  renameSync(away, key)
  assert.equal(await create(program), 200, 'a key file that is back ends the fault')
  remove(folder, 'journal.jsonl')
  assert.equal((await program.stop()).code, 0)
  const [rescued] = rescuedIn(folder)
  await done(folder, `journal restore ${join(folder, rescued!)}`)
  assert.match(await done(folder, 'entry list'), /^4 /m)
})

for (const place of ['in the folder', 'elsewhere']) {
  test(`of an emptied folder, keys ${place}, the stop writes what was held, and the keys if they are gone`, async t => {
    const keyFile = place === 'elsewhere' ? join(freshFolder(t), 'keys') : undefined
    const program = await withThree(t, keyFile === undefined ? {} : { 'key-file': keyFile })
    const { folder } = program
    for (const name of readdirSync(folder)) rmSync(join(folder, name))
    assert.equal(await create(program), 500)
    const key = keyFile === undefined ? '' : ` --key-file ${keyFile}`
    await refused(folder, `journal rescue ${join(freshFolder(t), 'r')}${key}`, 1,
      /no service has the lock .* stop it by SIGTERM, never kill -9/)
    const { code, stderr } = await program.stop()
    assert.equal(code, 0)
    assert.match(stderr, joined(/the journal had failed: all that was in memory is in .*/,
      /journal\.rescued-[^ ]+\.jsonl; take it back with the operator's command /,
      /journal restore \S+ --head [0-9a-f]{64}$/m))
    assert.ok(existsSync(keyFile ?? inFolder(folder, 'journal.key')))
    const [rescued] = rescuedIn(folder)
    assert.match(await done(folder, `journal restore ${join(folder, rescued!)}${key}`), /: \d+ records, head /)
    assert.match(await done(folder, `entry get 3 --field password${key}`), /^SECRET$/m)
  })
}

for (const [what, other] of [['another one', `${'ab'.repeat(32)}\n`], ['spoilt', 'no key\n']] as const) test(
  `a key file that is ${what} by the stop stays, and the keys of the service stand beside it`, async t => {
  const program = await withThree(t)
  const { folder } = program
  const key = inFolder(folder, 'journal.key')
  const right = readFileSync(key, 'utf8')
  writeFileSync(key, other)
  assert.equal((await program.stop()).code, 0)
  const beside = readdirSync(folder).find(name => name.startsWith('journal.key.rescued-'))
  assert.deepEqual([readFileSync(key, 'utf8'), readFileSync(inFolder(folder, beside!), 'utf8')], [other, right])
})

test('a key file that lacks an older key by the stop stays, and all keys of the service stand beside it', async t => {
  const program = await withThree(t)
  const { folder } = program
  const key = inFolder(folder, 'journal.key')
  await done(folder, 'key rotate')
  assert.equal(await create(program), 200)
  const both = readFileSync(key, 'utf8')
  const newest = `${both.trimEnd().split('\n').at(-1)}\n`
  writeFileSync(key, newest)
  assert.equal((await program.stop()).code, 0)
  const beside = readdirSync(folder).find(name => name.startsWith('journal.key.rescued-'))
  assert.deepEqual([readFileSync(key, 'utf8'), readFileSync(inFolder(folder, beside!), 'utf8')], [newest, both])
})

test('a rescue whose keys cannot be written does not count: the stop writes the journal and the keys', async t => {
  const program = await withThree(t)
  const { folder } = program
  remove(folder, 'journal.jsonl', 'journal.key')
  const elsewhere = freshFolder(t)
  await refused(folder, `journal rescue ${elsewhere}/r --keys ${elsewhere}/missing/keys`, 1, /missing/)
  assert.equal((await program.stop()).code, 0)
  assert.equal(rescuedIn(folder).length, 1)
  await done(folder, `journal restore ${join(folder, rescuedIn(folder)[0]!)}`)
  assert.equal(await done(folder, 'entry get 3 --field password'), 'SECRET\n')
})

test('without a service a rescue names restore, then salvage', async t => {
  const folder = await initialized(t)
  await refused(folder, `journal rescue ${join(freshFolder(t), 'r')}`, 1,
    joined(/no service has the lock .* leaves journal\.rescued-TIME\.jsonl .* /,
      /restore a backup \(journal restore\), or .*\(journal salvage\)$/m))
})

/** Names of files that may hold the newest state, from this version and earlier ones. */
const LEFT = [
  'journal.rescued-2026-01-31T120000.000Z.jsonl', 'journal.jsonl.replaced-2026-01-31T120000.000Z',
  'journal.jsonl.repaired-2026-01-31T120000.000Z', 'archive-1-3.jsonl', 'journal-1-3.jsonl'
]

for (const name of LEFT) {
  test(`beside ${name} no journal is begun: records, time and the command that takes it back are named`, async t => {
    const folder = await initialized(t)
    for (let n = 0; n < 2; n++) await done(folder, 'entry add --system s --user u --password-stdin', 'SECRET')
    const left = inFolder(folder, name)
    renameSync(inFolder(folder, 'journal.jsonl'), left)
    const { time } = JSON.parse(readFileSync(left, 'utf8').trimEnd().split('\n').at(-1)!)
    const says = new RegExp(`${left.replaceAll('.',
      '\\.')} \\(3 records, the last of ${time}\\) may hold what was stored here: .*journal restore ${left}`)
    const keyElsewhere = join(freshFolder(t), 'keys')
    renameSync(inFolder(folder, 'journal.key'), keyElsewhere)
    for (const place of ['there', 'elsewhere', 'empty']) {
      if (place === 'empty') writeFileSync(inFolder(folder, 'journal.jsonl'), '')
      const key = place === 'there' ? '' : ` --key-file ${keyElsewhere}`
      const names = readdirSync(folder)
      for (const words of ['init', 'entry list', 'journal verify', `journal rescue ${keyElsewhere}.r`]) {
        const { code, error } = await admin(folder, `${words}${key}`)
        if (place === 'empty' && words !== 'init') continue // an empty file is verified, and has no entries
        assert.notEqual(code, 0, words)
        assert.match(error, says, words)
      }
      const { code, stderr } = await runProgram(t, { flags: { data: folder, ...place === 'there' ? {}
        : { 'key-file': keyElsewhere } } })
      assert.deepEqual([code, says.test(stderr)], [1, true], stderr)
      assert.deepEqual(readdirSync(folder), names)
    }
    assert.match(await done(folder, `journal restore ${left} --key-file ${keyElsewhere}`), /: 3 records, head /)
    assert.match(await done(folder, `entry list --key-file ${keyElsewhere}`), /^2 /m)
  })
}

test('what a killed rescue has left is named if nothing else is there, and no journal is begun beside it', async t => {
  const folder = await initialized(t)
  await done(folder, 'entry add --system s --user u --password-stdin', 'SECRET')
  const left = inFolder(folder, 'journal.rescued-2026-01-31T120000.000Z.jsonl.123.part')
  const bytes = readFileSync(inFolder(folder, 'journal.jsonl'))
  const keys = join(freshFolder(t), 'keys')
  renameSync(inFolder(folder, 'journal.key'), keys)
  const saysOf = (records: string): RegExp => new RegExp(`${left.replaceAll('.', '\\.')} \\(${records}, the last of ` +
    '20[^)]+\\) may hold some or all of what was stored here: look at each \\(journal verify FILE\\)')
  remove(folder, 'journal.jsonl')
  for (const [cut, records] of [[40, '1 record'], [0, '2 records']] as const) {
    writeFileSync(left, bytes.subarray(0, bytes.length - cut))
    const { code, stderr } = await runProgram(t, { flags: { data: folder } })
    assert.deepEqual([code, saysOf(records).test(stderr)], [1, true], stderr)
    await refused(folder, 'init', 1, saysOf(records))
    assert.deepEqual(readdirSync(folder), [basename(left)])
  }
  assert.match(await done(folder, `journal restore ${left} --key-file ${keys}`), /: 2 records, head /)
})

test('several such files are named, the latest first; a damaged journal names what was rescued', async t => {
  const folder = await initialized(t)
  const copy = readFileSync(inFolder(folder, 'journal.jsonl'))
  await done(folder, 'entry add --system s --user u --password-stdin', 'SECRET')
  for (const [name, bytes] of [['archive-1-1.jsonl', copy],
    ['journal.rescued-T.jsonl', readFileSync(inFolder(folder, 'journal.jsonl'))]] as const) {
    writeFileSync(inFolder(folder, name), bytes)
  }
  const bytes = readFileSync(inFolder(folder, 'journal.jsonl'))
  bytes[50]! ^= 1
  writeFileSync(inFolder(folder, 'journal.jsonl'), bytes)
  const damaged = await runProgram(t, { flags: { data: folder } })
  assert.match(damaged.stderr,
    joined(/the journal is damaged: .*journal\.rescued-T\.jsonl \(2 records, the last of 20[^)]+\) /,
      /may hold a newer state: take it back with /))
  remove(folder, 'journal.jsonl')
  await refused(folder, 'init', 1,
    /journal\.rescued-T\.jsonl \(2 records, .*archive-1-1\.jsonl \(1 record, .* look at each \(journal verify FILE\)/)
})
