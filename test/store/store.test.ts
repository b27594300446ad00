import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { MAX_COMMIT_BYTES, LIST_PAGE_ENTRIES, MAX_ENTRY_BYTES } from '../../src/limits.ts'
import type { Entry, EntryChanges, EntryFields, EntryRow } from '../../src/entries/entry.ts'
import { openMemoryJournal } from '../../src/journal/journal.ts'
import { emptyState } from '../../src/slices.ts'
import { Store } from '../../src/store/store.ts'
import { purgeEntry } from '../../src/parts/operator/socket/operator-changes.ts'
import { checkState } from '../support/check.ts'
import { fileStore, freshStore, memoryStore } from '../support/stores.ts'
import { FaultyFiles, holdAppend } from '../support/faulty-files.ts'
import { journalBytes, keysOf, verify } from '../support/journal.ts'
import { randomOf, type Random } from '../support/random.ts'
import { importEntries } from '../support/rewrite.ts'
import { freshFolder, startService } from '../support/service.ts'
import { createEntry, deleteEntry, updateEntry } from '../../src/entries/entry-commands.ts'

const fields: EntryFields = { password: 'p', sistema: 's', usuario: 'u' }

/** What a store should be: a plain list of plain entries. */
class Model {
  /** By id, which is one more than the place; undefined where one was purged. */
  entries: (Entry | undefined)[] = []
  /** How many changes changed something. */
  records = 0

  create(given: EntryFields): Entry {
    const entry: Entry = { id: this.entries.length + 1, ...given, status: 1 }
    this.entries.push(entry)
    this.records++
    return entry
  }

  update(id: number, changes: EntryChanges): Entry | undefined {
    const old = this.entries[id - 1]
    if (old === undefined) return undefined
    const given = Object.entries(changes).filter(([, value]) => value !== undefined)
    const entry: Entry = { ...old, ...Object.fromEntries(given) }
    return this.#replace(old, entry)
  }

  import(given: readonly EntryRow[]): number {
    const first = this.entries.length + 1
    this.entries.push(...given.map((entry, i) => ({ id: first + i, ...entry })))
    if (given.length > 0) this.records++
    return first
  }

  delete(id: number): boolean {
    const old = this.entries[id - 1]
    if (old !== undefined) this.#replace(old, { ...old, status: 0 })
    return old !== undefined
  }

  purge(id: number): boolean {
    const isThere = this.entries[id - 1] !== undefined
    if (isThere) { this.entries[id - 1] = undefined; this.records++ }
    return isThere
  }

  #replace(old: Entry, entry: Entry): Entry {
    if (JSON.stringify(old) !== JSON.stringify(entry)) this.records++
    return this.entries[old.id - 1] = entry
  }
}

function listText(store: Store): string | undefined {
  return store.state.entries.list()?.toString()
}

/** Holds everything that a store shows against the model. */
function assertShows(store: Store, model: Model): void {
  checkState(store.state)
  const known = model.entries.filter(entry => entry !== undefined)
  const active = known.filter(({ status }) => status === 1)
  assert.deepEqual([store.state.entries.size, store.state.entries.count, store.state.entries.active],
    [model.entries.length, known.length, active.length])
  assert.deepEqual([...store.state.entries.entries()].filter(({ status }) => status === 1), active)
  assert.equal(store.journal.status().records, model.records)
  assert.equal(listText(store), active.length === 0 ? undefined : JSON.stringify(active))
  for (const [i, entry] of model.entries.entries()) {
    assert.deepEqual(store.state.entries.get(i + 1), entry)
    assert.equal(store.state.entries.text(i + 1), entry && JSON.stringify(entry))
  }
  for (const id of [0, -1, model.entries.length + 1, 0.5, NaN, Infinity]) {
    assert.equal(store.state.entries.get(id), undefined)
    assert.equal(store.state.entries.text(id), undefined)
  }
}

/** Starts a random change on the store, does the same to the model, and gives the check of the outcome. */
function change(store: Store, model: Model, random: Random): () => Promise<void> {
  const text = (): string =>
    random.pick(['a', 'ñ', '😀', '\ud800', '\udfff', '\0', '\x1f\x7f', '\u0080\u2028', '"\\/', ' ', '__proto__',
      'x'.repeat(random.int(300) + 1)])
  const id = random.int(model.entries.length + 3)
  const kind = random.int(12)
  if (kind === 10) {
    const given = Array.from({ length: random.int(LIST_PAGE_ENTRIES) }, () =>
      ({ password: text(), sistema: text(), usuario: text(), status: random.pick([0, 1] as const) }))
    const [outcome, expected] = [importEntries(store, given), model.import(given)]
    return async () => assert.equal(await outcome, expected)
  }
  if (kind < 4) {
    const given = { password: text(), sistema: text(), usuario: text() }
    const [outcome, expected] = [createEntry(store, given, null), model.create(given)]
    return async () => assert.deepEqual(await outcome, expected)
  }
  if (kind < 8) {
    const changes = Object.fromEntries(['password', 'sistema', 'usuario']
      .filter(() => random.int(2) === 0).map(field => [field, random.int(8) === 0 ? undefined : text()]))
    const [outcome, expected] = [updateEntry(store, id, changes, null), model.update(id, changes)]
    return async () => assert.deepEqual(await outcome, expected)
  }
  const [outcome, expected] = kind === 11 ? [purgeEntry(store, id).then(entry => entry !== undefined), model.purge(id)]
    : [deleteEntry(store, id, null), model.delete(id)]
  return async () => assert.equal(await outcome, expected)
}

test('one change after the other, a store is what a plain list would be', async t => {
  const random = randomOf(t)
  for (let round = 0; round < 100; round++) {
    const [store, model] = [memoryStore(), new Model()]
    for (let i = random.int(60); i > 0; i--) await change(store, model, random)()
    assertShows(store, model)
    await store.close()
  }
})

test('changes that share a write see each other, and a restart shows what was served', async t => {
  const random = randomOf(t)
  for (let round = 0; round < 12; round++) {
    const folder = freshFolder(t)
    const [store, model] = [await fileStore(folder), new Model()]
    for (let batch = random.int(8); batch >= 0; batch--) {
      const outcomes = Array.from({ length: 1 + random.int(40) }, () => change(store, model, random))
      for (const outcome of outcomes) await outcome()
      assertShows(store, model)
    }
    // A journal without a record gets its first one from the restart.
    if (model.records === 0) assert.deepEqual(await createEntry(store, fields, null), model.create(fields))
    await store.close()
    const restarted = await fileStore(folder)
    assertShows(restarted, model)
    await change(restarted, model, random)()
    assertShows(restarted, model)
    await restarted.close()
  }
})

test('nothing of a change is seen before it is durable', async t => {
  const disk = new FaultyFiles()
  const store = await freshStore(t, { files: disk.files })
  await createEntry(store, fields, null)
  const before = listText(store)
  const held = disk.hold()
  const changes = [
    createEntry(store, fields, null), updateEntry(store, 1, { password: 'new' }, null), deleteEntry(store, 1, null)
  ]
  await held.reached
  assert.equal(listText(store), before)
  assert.deepEqual([store.state.entries.count, store.state.entries.active, store.state.entries.get(1),
    store.state.entries.get(2)],
    [1, 1, { id: 1, ...fields, status: 1 }, undefined])
  held.release()
  await Promise.all(changes)
  assert.equal(listText(store), JSON.stringify([{ id: 2, ...fields, status: 1 }]))
})

async function filled(count: number): Promise<[Store, Model]> {
  const [store, model] = [memoryStore(), new Model()]
  for (let i = 1; i <= count; i++) {
    const given = { ...fields, usuario: `u${i}` }
    await createEntry(store, given, null)
    model.create(given)
  }
  return [store, model]
}

for (const count of [1, LIST_PAGE_ENTRIES - 1, LIST_PAGE_ENTRIES, LIST_PAGE_ENTRIES + 1, 2 * LIST_PAGE_ENTRIES,
  3 * LIST_PAGE_ENTRIES + 7]) {
  test(`the list of ${count} entries is theirs`, async () => {
    const [store, model] = await filled(count)
    assertShows(store, model)
    assertShows(store, model) // from the pages that the first one made
  })
}

test('whole pages that are deleted leave no trace in the list, whichever and however many', async () => {
  const pages = 4
  for (let gone = 1; gone < 2 ** pages; gone++) {
    const [store, model] = await filled(pages * LIST_PAGE_ENTRIES)
    store.state.entries.list()
    for (let id = 1; id <= pages * LIST_PAGE_ENTRIES; id++) {
      if ((gone >> Math.floor((id - 1) / LIST_PAGE_ENTRIES) & 1) === 0) continue
      await deleteEntry(store, id, null)
      model.delete(id)
    }
    const active = model.entries.filter(entry => entry?.status === 1)
    assert.equal(listText(store), active.length === 0 ? undefined : JSON.stringify(active), `pages ${gone.toString(2)}`)
    checkState(store.state)
  }
})

test('over several pages, whatever is done meanwhile, the list is the model\'s and stays as it was taken', async t => {
  const random = randomOf(t)
  const [store, model] = await filled(2 * LIST_PAGE_ENTRIES + 100)
  const taken: [Buffer, string][] = []
  for (let i = 0; i < 300; i++) {
    await change(store, model, random)()
    const active = model.entries.filter(entry => entry?.status === 1)
    if (random.int(4) === 0) taken.push([store.state.entries.list()!, JSON.stringify(active)])
  }
  for (const [list, text] of taken) assert.equal(list.toString(), text)
  assertShows(store, model)
})

test('what a write reads of entries counts towards its bound', async t => {
  let writes = 0
  const store = await fileStore(freshFolder(t), { observer: { journalWritten: () => { writes++ } } })
  for (let id = 1; id <= 2; id++) await createEntry(store, { ...fields, password: 'x'.repeat(MAX_COMMIT_BYTES) }, null)
  writes = 0
  await Promise.all([1, 2].map(id => updateEntry(store, id, { usuario: 'new' }, null)))
  await store.close()
  assert.equal(writes, 2)
})

test('an entry grows no further than an export can carry, when it is made and by changes', async () => {
  const store = memoryStore()
  const most = MAX_ENTRY_BYTES - JSON.stringify({ id: 1, ...fields, notas: '', status: 1 }).length
  const notas = 'x'.repeat(most)
  await createEntry(store, { ...fields, notas }, null)
  const tooLarge = { code: 'entry-too-large' }
  await assert.rejects(createEntry(store, { ...fields, notas: `${notas}x` }, null), tooLarge)
  await assert.rejects(updateEntry(store, 1, { sistema: 'ss' }, null), tooLarge)
  await updateEntry(store, 1, { sistema: 't' }, null)
})

test('changes that are being written when the store is closed are made, answered and kept', async t => {
  const folder = freshFolder(t)
  const store = await fileStore(folder)
  const { reached, release } = holdAppend(t)
  const made = [1, 2].map(() => createEntry(store, fields, null))
  await reached
  const closed = store.close()
  await new Promise(resolve => setImmediate(resolve))
  release()
  assert.deepEqual((await Promise.all(made)).map(({ id }) => id), [1, 2])
  await closed
  const again = await fileStore(folder)
  assert.equal(again.state.entries.size, 2)
  await again.close()
})

test('the head that a stop says is that of the last change, also of one that was still waiting', async t => {
  const { service: { store, close }, folder, info } = await startService(t)
  const closeStore = store.close.bind(store)
  let made: Promise<unknown> | undefined
  store.close = () => {
    made ??= createEntry(store, fields, null)
    return closeStore()
  }
  await close()
  await made
  const { hash } = verify(journalBytes(folder), keysOf(folder)).at(-1)!
  assert.deepEqual(info.filter(line => line.endsWith(', at the stop')), [`chain head     ${hash}, at the stop`])
})

test('a change is answered as it was decided last, if a journal that others write has it decided again', async () => {
  const state = emptyState()
  const plain = openMemoryJournal(Date.now, state.apply)
  const append: typeof plain.append = decide => { decide(); return plain.append(decide) }
  const store = new Store({ ...plain, append }, state)
  const deciding = (...outcomes: readonly (string | Error)[]): Promise<string> => {
    let n = 0
    return store.commit(() => {
      const outcome = outcomes[n++]!
      if (outcome instanceof Error) throw outcome
      return [[], outcome]
    })
  }
  assert.deepEqual(await Promise.allSettled([deciding(new Error('before'), 'made'), deciding('made', 'made again')]),
    ['made', 'made again'].map(value => ({ status: 'fulfilled', value })))
  await assert.rejects(deciding('made', new Error('by others')), /by others/)
})
