/** A compaction of a store: the same state from fewer records, and the old journal or the new one whatever happens. */
import assert from 'node:assert/strict'
import { knowersOf, unrecordedBeforeMs } from '../../src/knowledge/exposure.ts'
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { copyFileSync, linkSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { disk } from '../../src/journal/files.ts'
import type { Event } from '../../src/journal/journal.ts'
import { CHECKPOINT_RECORD_BYTES, CHECKPOINT_RECORD_ROWS } from '../../src/parts/operator/rewriting/checkpoint.ts'
import { purgeEntry } from '../../src/parts/operator/socket/operator-changes.ts'
import { checkState } from '../support/check.ts'
import { fileStore, type FileStoreOptions, type FullStore } from '../support/stores.ts'
import { compact, importEntries, reencrypt } from '../support/rewrite.ts'
import { FaultyFiles, whicheverCallFails } from '../support/faulty-files.ts'
import {
  journalBytes, journalPath, keysOf, linesOf, putJournal, recordsOf, referenceLines, verify, writeKeys
} from '../support/journal.ts'
import { freshFolder } from '../support/service.ts'
import { createEntry, deleteEntry, updateEntry } from '../../src/entries/entry-commands.ts'
import { event } from '../../src/store/events.ts'
import { isExpired } from '../../src/rights/rights.ts'

const NAMES = ['journal.jsonl', 'journal.key']
const fields = { password: 'p', sistema: 's', usuario: 'u' }
let wallMs = Date.UTC(2026, 0, 31)

async function open(folder: string, options: FileStoreOptions = {}): Promise<FullStore> {
  const store = await fileStore(folder, { wallMs: () => wallMs, ...options })
  checkState(store.state)
  return store
}

function shown(store: FullStore): unknown {
  const { accounts, state: { entries, deletions, knowledge, tokens } } = store
  return [entries.list()?.toString(), Array.from({ length: entries.size + 1 }, (_, i) => entries.get(i + 1) ?? null),
    accounts.users(), [...tokens].filter(([, token]) => !isExpired(token, wallMs))
      .map(([hash, { usedMs: _, ...token }]) => [hash, token]),
    entries.count, entries.active, [...deletions], knowledge.keptRecording(),
    [...knowledge.kept()]]
}

/** Entries that were changed, deleted and purged, users who were removed, and tokens that have ended. */
async function filled(store: FullStore): Promise<void> {
  const { accounts } = store
  for (let n = 1; n <= 6; n++) await createEntry(store, { ...fields, password: `FORMER-${n}`, usuario: 'ñ😀\ud800' },
    null)
  for (let n = 1; n <= 6; n++) await updateEntry(store, n, { password: `now ${n}` }, null)
  await updateEntry(store, 1, { url: 'https://a.example', notas: 'n', grupo: 'Web', otp: 'JBSWY3DPEHPK3PXP' }, null)
  await deleteEntry(store, 2, null)
  await deleteEntry(store, 3, null)
  for (const id of [3, 5, 6]) assert.equal((await purgeEntry(store, id))?.id, id)
  for (const name of ['ana', 'bob', 'eva']) await accounts.addUser(`${name}@x`, name, ['*'], 'a long password')
  for (const email of ['ana@x', 'bob@x', 'eva@x']) await accounts.issue(email, ['password:read'], undefined)
  await accounts.issue('eva@x', undefined, 1)
  assert.ok(await accounts.login({ email: 'eva@x', password: 'a long password', client: '' }, 60))
  await accounts.setPassword('ana@x', 'another long password')
  await accounts.issue('ana@x', undefined, 60)
  await accounts.removeUser('bob@x')
  wallMs += 120_000
}

test('a compaction keeps when an import brought a password that an entry had', async t => {
  const store = await open(freshFolder(t))
  await createEntry(store, { ...fields, password: 'the same' }, null)
  await importEntries(store, ['the same', 'another'].map(password => ({ ...fields, password, status: 1 })))
  const said = (): unknown => [shown(store), [1, 2, 3].map(id => unrecordedBeforeMs(store.state, id, false))]
  const before = said()
  await compact(store)
  assert.deepEqual(said(), before)
})

test('a compacted journal shows what was shown, in a few records, and nothing of what was before', async t => {
  const folder = freshFolder(t)
  const store = await open(folder)
  await filled(store)
  const [before, health, bytes] = [shown(store), store.status(), journalBytes(folder)]
  const made = await compact(store)
  assert.deepEqual([shown(store), store.status().records], [before, 6])
  const archive = join(folder, `archive-1-${health.records}.jsonl`)
  assert.deepEqual(made, { path: journalPath(folder), records: 6, head: store.status().head,
    bytes: journalBytes(folder).length, archive, unneeded: [],
    before: { records: health.records, head: health.head, bytes: bytes.length } })
  assert.ok(readFileSync(archive).equals(bytes))
  const [first, ...rest] = recordsOf(verify(journalBytes(folder), keysOf(folder)))
  assert.deepEqual([first!.type, first!.data], ['journal.rewritten', { why: 'compacted', head: health.head,
    records: health.records, time: recordsOf(verify(bytes, keysOf(folder))).at(-1)!.time }])
  assert.deepEqual(rest.map(({ type }) => type), ['fields.kept', 'users.kept', 'tokens.kept',
    'recording.kept', 'journal.whole'])
  assert.doesNotMatch(JSON.stringify(rest), /FORMER|now [356]|bob/)
  assert.equal((await createEntry(store, fields, null)).id, 7)
  assert.equal((await store.accounts.addUser('new@x', undefined, [], 'a long password'))!.id, 4)
  const after = shown(store)
  await store.close()
  const again = await open(folder)
  assert.deepEqual(shown(again), after)
  await again.close()
})

test('a compaction keeps who knows which password, removed users too, and who deleted what and when', async t => {
  const folder = freshFolder(t)
  let store = await open(folder)
  await filled(store)
  const { accounts } = store
  const told = (by: number | null, data: object): Promise<void> =>
    store.commit(() => [[event('passwords.told', by, { operation: 'getPassword', ...data })], undefined])
  await store.commit(() => [[event('recording.begun', null, {})], undefined])
  for (const name of ['max', 'rita']) await accounts.addUser(`${name}@x`, name, ['*'], 'a long password')
  for (let n = 0; n < 3; n++) await createEntry(store, { ...fields, usuario: 'new' }, null)
  await told(1, { entryIds: [1, 7] })
  await told(3, { entryIds: [1, 4, [7, 9]] })
  await told(4, { entryIds: [8] })
  await told(5, { entryIds: [7] })
  await told(null, { entryIds: [4], operator: 'root' })
  await store.commit(() => [[event('entry.deleted', 3, { id: 8 })], undefined])
  await updateEntry(store, 7, { password: 'another' }, null) // 8 has the same, and who knew 7 knows it
  for (const name of ['max', 'rita']) await accounts.removeUser(`${name}@x`)
  const before = shown(store)
  const unrecorded = (): unknown => [1, 7].map(id => unrecordedBeforeMs(store.state, id, false))
  const unrecordedBefore = unrecorded()
  assert.deepEqual(unrecordedBefore, [wallMs, undefined])
  await compact(store)
  assert.deepEqual([shown(store), unrecorded()], [before, unrecordedBefore])
  await store.close()
  store = await open(folder)
  assert.deepEqual([shown(store), unrecorded()], [before, unrecordedBefore])
  const { users, addresses, deletions } = store.state
  assert.deepEqual(knowersOf(store.state, 8, false),
    [['host', 'read'], [3, 'read'], [4, 'read'], [1, 'equal'], [5, 'equal']])
  assert.deepEqual([4, 5, 2].map(id => users.get(id)!.email), ['max@x', 'rita@x', ''], 'only who knows something')
  assert.deepEqual(['max@x', 'rita@x'].map(email => addresses.has(email)), [false, false])
  assert.deepEqual([deletions.get(8), deletions.get(2)!.by], [{ ms: wallMs, by: 3 }, undefined])
  assert.equal(await store.accounts.setPassword('max@x', 'a long password'), false)
  assert.equal((await store.accounts.addUser('max@x', 'Max', ['*'], 'a long password'))!.id, 6)
  await store.close()
})

test('again and again: archive numbers go on, all earlier ends are named, a name that is taken is not', async t => {
  const folder = freshFolder(t)
  const store = await open(folder)
  const ends: [string, number][] = []
  const archives: (string | undefined)[] = []
  for (const how of ['keeps', 're-encrypts', 'drops', 'keeps'] as const) {
    for (let n = 0; n < 3; n++) await createEntry(store, fields, null)
    ends.unshift([store.status().head, store.status().records])
    if (how === 're-encrypts') await reencrypt(store)
    else archives.push((await compact(store, how === 'keeps')).archive?.slice(folder.length + 1))
  }
  // 3 records; a checkpoint of 4, 3 more, and 1 for the re-encryption; those and 3, dropped; a checkpoint of 6 and 3.
  assert.deepEqual(archives, ['archive-1-3.jsonl', undefined, 'archive-15-23.jsonl'])
  const named = recordsOf(verify(journalBytes(folder), keysOf(folder))).slice(0, 4).map(({ data }) => data as any)
  assert.deepEqual(named.map(({ head, records }) => [head, records]), ends)
  assert.deepEqual(named.map(({ why }) => why), ['compacted', 'compacted', 're-encrypted', 'compacted'])
  const before = journalBytes(folder)
  writeFileSync(join(folder, 'archive-24-30.jsonl'), 'of somebody else')
  await assert.rejects(compact(store), /archive-24-30.jsonl exists already; move it away/)
  assert.ok(journalBytes(folder).equals(before))
  await store.close()
})

test('a journal as the first version wrote it is compacted, and shows the same', async t => {
  const folder = freshFolder(t)
  const secret = randomBytes(32)
  writeKeys(folder, secret)
  const lines = referenceLines(secret, [
    { type: 'entry.created', data: { id: 1, ...fields } },
    { type: 'entry.updated', data: { id: 1, password: 'second' } },
    { type: 'entry.created', data: { id: 2, ...fields } }, { type: 'entry.deleted', data: { id: 2 } }
  ].map(record => [record]))
  putJournal(folder, lines)
  const store = await open(folder)
  const before = shown(store)
  assert.equal((await compact(store)).before.head, JSON.parse(lines.at(-1)!).hash)
  assert.deepEqual(shown(store), before)
  await store.close()
  assert.deepEqual(linesOf(readFileSync(join(folder, 'archive-1-4.jsonl'))), lines)
  const again = await open(folder)
  assert.deepEqual([shown(again), again.state.entries.get(1)!.password, again.state.entries.get(2)!.status],
    [before, 'second', 0])
  await again.close()
})

test('an empty journal is not compacted', async t => {
  const folder = freshFolder(t)
  const store = await open(folder)
  await assert.rejects(compact(store), /has no records that could be compacted/)
  await store.close()
  assert.deepEqual(readdirSync(folder).sort(), NAMES)
})

test('records of a compacted journal are bounded, but one entry may be larger; progress is told', async t => {
  const folder = freshFolder(t)
  const store = await open(folder)
  const many = Array.from({ length: 2 * CHECKPOINT_RECORD_ROWS + 1 }, (_, n) =>
    ({ ...fields, password: `${n}`, status: n % 3 === 0 ? 0 : 1 } as const))
  await importEntries(store, many)
  await createEntry(store, { ...fields, password: 'x'.repeat(2 * CHECKPOINT_RECORD_BYTES) }, null)
  for (let n = 0; n < 5; n++) await createEntry(store, { ...fields, password: 'y'.repeat(CHECKPOINT_RECORD_BYTES / 3) },
    null)
  const shares: number[] = []
  await compact(store, true, share => { shares.push(share) })
  assert.ok(shares.every((share, i) => share >= (shares[i - 1] ?? 0) && share <= 1), shares.join(' '))
  const [, ...kept] = recordsOf(verify(journalBytes(folder), keysOf(folder)))
  assert.deepEqual(kept.filter(({ type }) => type === 'fields.kept').map(({ data }) => (data as any).entries.length),
    [50, 50, 1, 1, 2, 2, 1])
  assert.ok(shares.length > 4 && shares.at(-1) === 1, shares.join(' '))
  const after = shown(store)
  await store.close()
  const again = await open(folder)
  assert.deepEqual(shown(again), after)
  await again.close()
})

/** A folder with a filled journal, copied from one that was made once. */
async function copies(t: TestContext): Promise<() => string> {
  const origin = freshFolder(t)
  const store = await open(origin)
  await filled(store)
  await store.close()
  return () => {
    const folder = freshFolder(t)
    for (const name of NAMES) copyFileSync(join(origin, name), join(folder, name))
    return folder
  }
}

const WAYS = {
  'a compaction that keeps history': (store: FullStore) => compact(store, true),
  'a compaction that drops history': (store: FullStore) => compact(store, false),
  'a re-encryption': reencrypt
}

/** Asserts that there is the old journal alone, or the new one, with its archive where one is kept. */
function assertOldOrNew(folder: string, old: Buffer, isOld: boolean, keepsHistory: boolean): void {
  const archives = readdirSync(folder).filter(name => !NAMES.includes(name))
  assert.equal(journalBytes(folder).equals(old), isOld)
  assert.deepEqual(archives.map(name => /^archive-1-\d+\.jsonl$/.test(name)), isOld || !keepsHistory ? [] : [true])
  for (const name of archives) assert.ok(readFileSync(join(folder, name)).equals(old))
  assert.equal(statSync(journalPath(folder)).nlink, 1)
  assert.doesNotThrow(() => verify(journalBytes(folder), keysOf(folder)))
}

for (const [what, act] of Object.entries(WAYS)) {
  for (const dies of [true, false]) {
    const fails = dies ? 'a crash' : 'a failure'
    test(`${fails} at any call of ${what} leaves the old journal or the new one, and all that was shown`, async t => {
      const copy = await copies(t)
      let swapped = 0
      const calls = await whicheverCallFails({ code: 'ENOSPC', forGood: dies }, async (failing, begin) => {
        const folder = copy()
        const old = journalBytes(folder)
        const store = await open(folder, { files: failing.files })
        const before = shown(store)
        begin()
        const isDone = await act(store).then(() => true, () => false)
        if (!dies || failing.failed === undefined) failing.heal()
        const isNew = !journalBytes(folder).subarray(0, 99).equals(old.subarray(0, 99))
        if (!dies && !isNew) assertOldOrNew(folder, old, true, false)
        const isStuck = await createEntry(store, fields, null).then(() => false, () => true)
        if (!dies) assert.equal(store.status().fault !== undefined, isStuck)
        if (!dies && !isStuck && isNew) assert.ok(isDone || failing.failed === 'close')
        if (!dies && isStuck) assert.ok(isNew || failing.failed === 'stat')
        await store.close().catch(() => {})
        const again = await open(folder)
        if (isStuck) assert.deepEqual(shown(again), before)
        else assert.notEqual(again.state.entries.text(7), undefined)
        await again.close()
        if (isStuck) assertOldOrNew(folder, old, !isNew, what.includes('keeps'))
        swapped += Number(isNew)
      })
      assert.ok(calls >= 12 && swapped > 0, `${calls} calls, ${swapped} swapped`)
    })
  }
}

test('a journal with the second name of a killed compaction opens and loses that; others are refused', async t => {
  const copy = await copies(t)
  const folder = copy()
  for (const name of ['archive-1-9.jsonl', 'journal-1-9.jsonl']) {
    linkSync(journalPath(folder), join(folder, name))
    await (await open(folder)).close()
    assert.deepEqual(readdirSync(folder).sort(), NAMES)
  }
  for (const name of ['archive-1.jsonl', 'other-1-9.jsonl']) {
    const other = copy()
    linkSync(journalPath(other), join(other, name))
    await assert.rejects(open(other), { code: 'folder-unusable' })
    assert.deepEqual(readdirSync(other).sort(), [name, ...NAMES].sort())
  }
})

test('where a file has no second name the archive is refused, the journal stays, and dropping it works', async t => {
  const folder = (await copies(t))()
  const faulty = new FaultyFiles()
  faulty.fail({ of: 'link', code: 'EPERM', forGood: true })
  const store = await open(folder, { files: faulty.files })
  const before = journalBytes(folder)
  await assert.rejects(compact(store), { code: 'EPERM' })
  assert.deepEqual([journalBytes(folder).equals(before), readdirSync(folder).sort()], [true, NAMES])
  await compact(store, false)
  await store.close()
  await (await open(folder)).close()
})

test('a device that keeps another state than it was given ends it, and the journal stays', async t => {
  const folder = (await copies(t))()
  const store = await open(folder)
  await store.commit(() => [[event('recording.begun', null, {}),
    event('passwords.told', 1, { operation: 'listPassword', entryIds: [1, 4] } as never)], undefined])
  const before = journalBytes(folder)
  for (const lose of ['fields.kept', 'users.kept', 'tokens.kept', 'knowers.kept', 'recording.kept']) {
    const changed = compact(store, true, () => {}, checkpoint =>
      ({ ...checkpoint, events: Array.from(checkpoint.events).filter(({ type }) => type !== lose) }))
    await assert.rejects(changed, /would be|does not exist/, lose)
  }
  const others: readonly [type: string, rows: string, other: object][] = [
    ['fields.kept', 'entries', { usuario: 'other' }], ['users.kept', 'users', { name: 'other' }],
    ['tokens.kept', 'tokens', { abilities: ['other'] }]
  ]
  for (const [type, rows, other] of others) {
    const first = (event: Event): Event => {
      const data = event.data as { readonly [rows: string]: readonly object[] }
      return event.type === type ? { ...event, data: { ...data,
        [rows]: [{ ...data[rows]![0], ...other }, ...data[rows]!.slice(1)] } } : event
    }
    const changed = compact(store, true, () => {}, checkpoint =>
      ({ ...checkpoint, events: Array.from(checkpoint.events).map(first) }))
    await assert.rejects(changed, /would be/, type)
  }
  assert.deepEqual([journalBytes(folder).equals(before), readdirSync(folder).sort()], [true, NAMES])
  await store.close()
})

test('a device that gives back another whole journal than it was given ends it, and the journal stays', async t => {
  const copy = await copies(t)
  const other = copy()
  const otherStore = await open(other)
  await createEntry(otherStore, fields, null)
  await reencrypt(otherStore)
  await otherStore.close()
  for (const [what, act] of Object.entries(WAYS)) {
    const folder = copy()
    const files = { ...disk, openToRead: (path: string): number =>
      disk.openToRead(path.endsWith('.part') ? journalPath(other) : path) }
    const store = await open(folder, { files })
    const before = journalBytes(folder)
    await assert.rejects(act(store), /does not read back the same/, what)
    assert.ok(journalBytes(folder).equals(before), what)
    await store.close()
  }
})

test('a compacted journal shows no state of a large entry that it never had', async t => {
  const folder = freshFolder(t)
  const store = await open(folder)
  const large = { ...fields, notas: 'x'.repeat(3 * CHECKPOINT_RECORD_BYTES),
    sistema: 'y'.repeat(CHECKPOINT_RECORD_BYTES) }
  await createEntry(store, large, null)
  await compact(store, false)
  await store.close()
  const made = recordsOf(verify(journalBytes(folder), keysOf(folder))).filter(({ type }) =>
    /^(entry|entries|fields)\./.test(type))
  assert.deepEqual(made.map(({ type, data }) => [type, { ...(data as any).entries?.[0], changed: undefined }]),
    [['fields.kept', { ...large, status: 1, changed: undefined }]])
})

test('a compaction by a clock a year ahead ends no token; one expired before the newest record goes', async t => {
  const folder = freshFolder(t)
  wallMs = Date.UTC(2026, 0, 31)
  const store = await open(folder)
  await store.accounts.addUser('ana@x', 'ana', ['*'], 'a long password')
  await store.accounts.issue('ana@x', undefined, 1)
  wallMs += 120_000
  await store.accounts.issue('ana@x', undefined, 60)
  await store.accounts.issue('ana@x', undefined, undefined)
  const live = store.accounts.tokens()
  assert.equal(live.length, 2)
  await store.close()
  wallMs += 365 * 86_400_000
  const ahead = await open(folder)
  await compact(ahead, false)
  await ahead.close()
  wallMs -= 365 * 86_400_000
  const again = await open(folder)
  assert.deepEqual(again.accounts.tokens(), live)
  assert.equal([...again.state.tokens.entries()].length, 2)
  await again.close()
})
