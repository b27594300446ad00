/** Salvage of files that hold lines of two journals, a fork or the one before a compaction, or lack a line. */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createEntry } from '../../src/entries/entry-commands.ts'
import { purgeEntry } from '../../src/parts/operator/socket/operator-changes.ts'
import { admin } from '../support/admin.ts'
import { bytesOf, journalBytes, journalPath, keyPath, keysOf, linesOf, verify } from '../support/journal.ts'
import { event } from '../../src/store/events.ts'
import { compact, importEntries } from '../support/rewrite.ts'
import { freshFolder } from '../support/service.ts'
import { fileStore, type FullStore } from '../support/stores.ts'

const ENTRY = { password: 'p', sistema: 's', usuario: 'u' }

async function changed(folder: string, change: (store: FullStore) => Promise<unknown>): Promise<readonly string[]> {
  const store = await fileStore(folder)
  await change(store)
  await store.close()
  return linesOf(journalBytes(folder))
}

type Report = { readonly code: number | null, readonly [what: string]: any }

async function salvaged(folder: string, bytes: Buffer, more = ''): Promise<Report> {
  writeFileSync(join(folder, 'bad.jsonl'), bytes)
  const good = join(folder, `good-${Math.random()}.jsonl`)
  const { code, out, error } = await admin(folder,
    `journal salvage ${join(folder, 'bad.jsonl')} --to ${good} --json${more}`)
  assert.equal(error, '')
  return { ...JSON.parse(out), code }
}

test('a record of a fork is unplaced, and what is there twice may stand where others were: nobody keeps access',
  async t => {
  const [folder, restored] = [freshFolder(t), freshFolder(t)]
  const backup = await changed(folder, async ({ accounts }) => {
    await accounts.addUser('ana@x', 'ana', ['*'], 'a long password')
    await accounts.issue('ana@x', undefined, undefined)
  })
  copyFileSync(keyPath(folder), keyPath(restored))
  writeFileSync(journalPath(restored), bytesOf(backup))
  const own = await changed(folder, store => createEntry(store, ENTRY, null))
  const fork = await changed(restored, ({ accounts }) => accounts.removeUser('ana@x'))
  assert.equal(own.length, fork.length)
  for (const [what, lines, code, tokens] of [
    ['own', own, 0, 1], ['its last line twice', [...own, own.at(-1)!], 3, 0], ['own twice', [...own, ...own], 3, 0],
    ['a line twice before others', [...own.slice(0, 2), own[1]!, ...own.slice(2)], 0, 1],
    ['an older line over the newest', [...own.slice(0, -1), own[1]!], 3, 0],
    ['the line before over the newest', [...own.slice(0, -1), own.at(-2)!], 3, 0],
    ['the first line over the newest', [...own.slice(0, -1), own[0]!], 3, 0],
    ['fork', fork, 0, 0], ['a line of the fork behind it', [...own, fork.at(-1)!], 3, 0],
    ['all of the fork behind it', [...own, ...fork], 3, 0], ['the other way round', [...fork, ...own], 3, 0],
    ['the fork between', [...own.slice(0, -1), fork.at(-1)!, own.at(-1)!], 3, 0]
  ] as const) {
    const report = await salvaged(folder, bytesOf(lines))
    assert.deepEqual([report.code, report.tokens], [code, tokens], what)
  }
})

test('a block of the journal before a compaction, over the new beginning, brings no purged entry back', async t => {
  const folder = freshFolder(t)
  let before = Buffer.alloc(0)
  const lines = await changed(folder, async store => {
    for (let n = 0; n < 400; n++) await createEntry(store, { ...ENTRY, password: `${n}`.padEnd(120, 'x') }, null)
    await purgeEntry(store, 3)
    before = journalBytes(folder)
    await compact(store)
    await createEntry(store, ENTRY, null)
  })
  const bytes = bytesOf(lines)
  for (const blocks of [1, 2, 4]) {
    const mixed = Buffer.concat([before.subarray(0, blocks * 4096), bytes.subarray(blocks * 4096)])
    const report = await salvaged(folder, mixed)
    assert.equal(report.code, 3)
    const [, head = ''] = /"hash":"([0-9a-f]{64})"\}$/.exec(lines.at(-1)!) ?? []
    for (const [noted, isThere] of [[head, true], ['a'.repeat(64), false]] as const) {
      if (blocks === 1) assert.equal((await salvaged(folder, mixed, ` --head ${noted}`))['noted'], isThere)
    }
    const shown = readFileSync(report['path'], 'latin1')
    assert.ok(shown.length > 0)
    const state = (await admin(folder, `journal show ${report['path']} --reveal`)).out
    assert.ok(!state.includes(`"2${'x'.repeat(119)}"`), `${blocks} blocks`)
    assert.ok(report['entries'] >= 300, `${report['entries']} entries of 400 with ${blocks} blocks`)
    assert.equal(report['nextId'], 402)
  }
})

/** Lost but for its hash, without which the next line would not open; the bytes are gone. */
function losing(lines: readonly string[], type: string): Buffer {
  const hashOf = (line: string): string => line.slice(line.lastIndexOf('","hash":"'))
  return bytesOf(lines.map(line => line.includes(`"type":"${type}"`) ? hashOf(line) : line))
}

test('ids that a record of what was shown names are not given again, if the record that gave them is lost', async t => {
  for (const shown of [
    event('entries.disclosed', null, { command: 'export', entries: 50, entryIds: [[1, 50]] }),
    event('passwords.told', null, { operation: 'listPassword', entryIds: [[1, 50]] })
  ]) {
    const folder = freshFolder(t)
    const lines = await changed(folder, async store => {
      await importEntries(store, Array.from({ length: 50 }, () => ({ ...ENTRY, status: 1 as const })))
      await store.commit(() => [[shown], undefined])
    })
    const { code, gone, nextId } = await salvaged(folder, losing(lines, 'entries.imported'))
    assert.deepEqual([code, gone, nextId], [3, '1-50', 51], shown.type)
  }
})

test('a salvage that makes no journal leaves no records aside', async t => {
  const folder = freshFolder(t)
  const lines = await changed(folder, async ({ accounts }) => {
    await accounts.addUser('ana@x', 'ana', ['*'], 'a long password')
    await accounts.issue('ana@x', undefined, undefined)
  })
  const [bad, taken, good] = [join(folder, 'bad.jsonl'), join(folder, 'taken.jsonl'), join(folder, 'good.jsonl')]
  writeFileSync(bad, losing(lines, 'user.added'))
  writeFileSync(taken, 'of somebody')
  for (const [target, code, hasAside] of [[taken, 1, false], [good, 3, true]] as const) {
    assert.equal((await admin(folder, `journal salvage ${bad} --to ${target}`)).code, code)
    assert.equal(existsSync(`${target}.unplaced.jsonl`), hasAside)
  }
})

test('records that do not fit make a salvage end with 3, though no line is lost', async t => {
  const folder = freshFolder(t)
  const token = { hash: 'a'.repeat(64), user: 7, abilities: ['*'], issued: '2026-01-31T12:00:00.000Z', expires: null }
  const lines = await changed(folder, async store => {
    await createEntry(store, ENTRY, null)
    const unfit = store.commit(() => [[event('token.issued', null, token)], undefined])
    await assert.rejects(unfit, { code: 'journal-failed' }) // and it is durable
  })
  const { code, lost, unplaced, entries } = await salvaged(folder, bytesOf(lines))
  assert.deepEqual([code, lost, unplaced, entries], [3, [], 1, 1])
})

test('a salvage says that reads may be missing though it finds no line lost: those at the end leave no trace',
  async t => {
  const folder = freshFolder(t)
  const store = await fileStore(folder, { wallMs: () => Date.UTC(2020, 0, 31, 12) }) // at no time of the salvage
  await createEntry(store, ENTRY, null)
  for (const one of [event('recording.begun', null, {}),
    event('passwords.told', null, { operation: 'getPassword', entryIds: [[1, 1]] })]) {
    await store.commit(() => [[one], undefined])
  }
  await store.close()
  const { code, lost, path } = await salvaged(folder, bytesOf(linesOf(journalBytes(folder)).slice(0, -1)))
  assert.deepEqual([code, lost], [0, []])
  const records = verify(readFileSync(path), keysOf(folder))
  const { data } = records.find(({ type }) => type === 'recording.kept')!
  assert.deepEqual(data, { recording: 'begun', unrecordedBefore: records[0]!.time })
})
