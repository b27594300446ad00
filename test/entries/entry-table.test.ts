import assert from 'node:assert/strict'
import { eachId, type Ids } from '../../src/knowledge/ids.ts'
import type { Command } from '../../src/store/store.ts'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { LIST_PAGE_ENTRIES, MAX_KEPT_TAGS } from '../../src/limits.ts'
import { emptyState } from '../../src/slices.ts'
import { entryText, openFieldsOf, type Entry } from '../../src/entries/entry.ts'
import { Entries } from '../../src/entries/entry-table.ts'
import { PagedList } from '../../src/entries/paged-list.ts'
import { entriesOf } from '../../src/parts/operator/commands/find-entry.ts'
import { SOCKET_OPERATIONS } from '../../src/parts/operator/socket/operation-table.ts'
import { deletedBelow } from '../../src/parts/page-api/deleted.ts'
import { heldMiB } from '../support/heap.ts'
import { randomOf } from '../support/random.ts'

const entry = (id: number, password: string, status: 0 | 1 = 1): Entry =>
  ({ id, password, sistema: 's', usuario: 'u', status })

const usersIn = (list: Buffer | undefined): unknown =>
  list && JSON.parse(list.toString()).map(({ usuario }: Entry) => usuario)

test('a change makes its own page of a list again and no other', () => {
  const table = new Entries()
  const made: number[] = []
  const list = new PagedList(table, id => { made.push(id); return table.isActive(id) ? table.text(id) : undefined })
  for (let id = 1; id <= 4 * LIST_PAGE_ENTRIES; id++) table.set(entry(id, 'p'))
  const before = list.bytes()!
  assert.equal(list.bytes(), before, 'the same Buffer until something changes')
  made.length = 0
  table.set({ ...entry(LIST_PAGE_ENTRIES + 1, 'p'), usuario: 'x' })
  const after = list.bytes()!
  assert.deepEqual(made, Array.from({ length: LIST_PAGE_ENTRIES }, (_, i) => LIST_PAGE_ENTRIES + 1 + i))
  const users = Array<string>(4 * LIST_PAGE_ENTRIES).fill('u')
  assert.deepEqual(usersIn(before), users, 'a list that was given does not change')
  assert.deepEqual(usersIn(after), users.with(LIST_PAGE_ENTRIES, 'x'))
})

test('an entry\'s tag is that of what it is now, however often it was asked for before', () => {
  const table = new Entries()
  const otp = 'JBSWY3DPEHPK3PXP'
  for (const now of [entry(1, 'p'), entry(1, 'q'), { ...entry(1, 'q'), otp }, entry(1, 'q', 0), entry(1, 'q')]) {
    const before = table.tag(1)
    table.set(now)
    assert.deepEqual([table.tag(1), table.tag(1)], [table.tagOf(now), table.tagOf(now)])
    assert.notEqual(table.tag(1), before)
  }
  table.delete(1)
  assert.equal(table.tag(1), undefined)
  for (let id = 2; id <= MAX_KEPT_TAGS + 3; id++) table.set(entry(id, 'p'))
  for (let id = 2; id <= MAX_KEPT_TAGS + 3; id++) assert.equal(table.tag(id), table.tagOf(entry(id, 'p')))
})

test('a list may leave entries out, whole pages of them, or all', () => {
  const table = new Entries()
  for (let id = 1; id <= 4 * LIST_PAGE_ENTRIES; id++) table.set({ ...entry(id, 'p'), usuario: `${id}` })
  const ids = Array.from({ length: 4 * LIST_PAGE_ENTRIES }, (_, i) => i + 1)
  const filters: readonly ((id: number) => boolean)[] = [
    id => id % 3 === 0, id => id > LIST_PAGE_ENTRIES, id => id <= LIST_PAGE_ENTRIES, id => id === 2 * LIST_PAGE_ENTRIES,
    () => false
  ]
  for (const isIn of filters) {
    const list = new PagedList(table, id => isIn(id) ? table.text(id) : undefined)
    const wanted = ids.filter(isIn)
    assert.deepEqual(usersIn(list.bytes()), wanted.length === 0 ? undefined : wanted.map(String), String(isIn))
  }
})

test('a list in steps makes so many pages at a time, and is whole after the last step', () => {
  const table = new Entries()
  for (let id = 1; id <= 5 * LIST_PAGE_ENTRIES; id++) table.set(entry(id, 'p'))
  const list = new PagedList(table, id => table.text(id))
  assert.deepEqual([list.refresh(2), list.refresh(2), list.refresh(2)], [false, false, true])
  assert.equal(list.bytes()!.toString(), table.list()!.toString())
})

test('a list holds each byte once, whatever has changed since the one before', () => {
  const table = new Entries()
  for (let id = 1; id <= 4_000; id++) table.set(entry(id, 'x'.repeat(4_200)))
  const before = heldMiB()
  const change = (round: number): number => { // of its own, so that no register of the test holds a list
    table.set(entry(1 + round * 200, 'y'.repeat(4_200)))
    return table.list()!.length / 2 ** 20
  }
  let bytes = 0
  for (let round = 0; round < 20; round++) bytes = change(round)
  const added = heldMiB() - before
  assert.ok(added < 1.2 * bytes, `${added} MiB for a list of ${bytes}`)
})

test('an entry costs at most 200 bytes of memory beside its text', () => {
  const [state, rows, entries] = [emptyState(), 200, 200] // of rows
  const before = heldMiB()
  let bytes = 0
  for (let row = 0; row < rows; row++) {
    const data = { first: state.entries.size + 1, entries: Array.from({ length: entries }, (_, i) => ({
      password: `a password ${row} ${i}`, sistema: `a system ${row} ${i}`, usuario: `${row}.${i}@example.org`, status: 1
    })) }
    const time = '2026-01-31T12:00:00.000Z'
    state.apply({ seq: row + 1, time, type: 'entries.imported', by: null, data: JSON.parse(JSON.stringify(data)) })
    bytes += state.entries.text(data.first)!.length * entries
  }
  const added = (heldMiB() - before) * 2 ** 20
  assert.ok(added - bytes < 200 * rows * entries, `${(added - bytes) / (rows * entries)} bytes an entry`)
})

test('entries of every length are given as they were set, whatever is asked for on the way', t => {
  const random = randomOf(t)
  const table = new Entries()
  const model: (Entry | undefined)[] = []
  const lengths = [1, 1_300, 1_400, 4_000, 4_100, 9_000, 70_000]
  const assertOne = (when: string): void => {
    const asked = 1 + random.int(model.length + 2) // of which there may be none
    const text = model[asked - 1] && entryText(model[asked - 1]!)
    assert.equal(table.text(asked), text, when)
  }
  for (let step = 0; step < 1_500; step++) {
    const isNew = model.length === 0 || random.int(5) === 0
    const id = isNew ? model.length + 1 : 1 + random.int(model.length)
    const length = lengths[random.int(1 + random.int(lengths.length))]!
    if (!isNew && random.int(10) === 0) {
      if (model[id - 1] !== undefined) table.delete(id)
      model[id - 1] = undefined
    } else if (isNew || model[id - 1] !== undefined) {
      const changed = entry(id, (random.int(2) === 0 ? 'ł' : 'l').repeat(length), random.int(3) === 0 ? 0 : 1)
      table.set(changed)
      model[id - 1] = changed
    }
    assertOne(`step ${step}`)
    if (random.int(20) === 0) {
      const active = model.filter(one => one?.status === 1)
      const listed = table.list()?.toString() ?? ''
      assert.equal(listed, active.length === 0 ? '' : `[${active.map(one => entryText(one!)).join()}]`, `step ${step}`)
      assertOne(`the list of step ${step}`)
      const [below, maxBytes] = [1 + random.int(model.length + 2), random.int(100_000)]
      let left = maxBytes
      const texts = model.slice(0, below - 1).filter(one => one?.status === 0).reverse()
        .map(one => JSON.stringify({ id: one!.id, ...openFieldsOf(one!), status: 0 }))
      const fits = texts.findIndex((text, i) => (left -= Buffer.byteLength(text) + 1) < 0 && i > 0)
      const wanted = `[${texts.slice(0, fits < 0 ? texts.length : fits).join()}]`
      assert.equal(deletedBelow({ entries: table, deletions: new Map(), users: new Map() }, below, maxBytes), wanted,
        `the deleted of step ${step}`)
    }
  }
})

test('a page without deleted entries hides none at the edges of the pages beside it', () => {
  const table = new Entries()
  const deleted = [1, 64, 193, 256]
  for (let id = 1; id <= 300; id++) table.set(entry(id, 'l', deleted.includes(id) ? 0 : 1))
  const found = (below: number): number[] =>
    JSON.parse(deletedBelow({ entries: table, deletions: new Map(), users: new Map() }, below, 100_000))
      .map(({ id }: { id: number }) => id)
  assert.deepEqual([301, 257, 256, 193, 64, 1].map(found), [[256, 193, 64, 1], [256, 193, 64, 1], [193, 64, 1], [64, 1],
    [1], []])
})

test('an export reads every entry, and records each page, wherever its pages end', async () => {
  for (const large of [1, 2, 3]) {
    const entries = new Entries()
    for (let id = 1; id <= 3; id++) entries.set(entry(id, id === large ? 'x'.repeat(2 ** 20) : 'p'))
    const told: number[] = []
    const commitFirst = async (decide: Command<unknown>): Promise<unknown> => {
      const [events, outcome] = decide({} as never)
      for (const { data } of events) eachId((data as { entryIds: Ids }).entryIds, id => told.push(id))
      return outcome
    }
    const ask = (name: 'readEntries', body: never): unknown =>
      SOCKET_OPERATIONS[name].run({ store: { state: { entries } }, commits: { commitFirst } } as never, body)
    const found = await entriesOf({ store: { ask } } as never, 'all', 'export')
    assert.deepEqual([found.map(({ id }) => id), told], [[1, 2, 3], [1, 2, 3]], `the page ends behind ${large}`)
  }
})
