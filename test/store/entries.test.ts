import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { LIST_PAGE_ENTRIES } from '../../src/limits.ts'
import { entryText, type Entry } from '../../src/store/entry.ts'
import { Entries } from '../../src/store/entries.ts'
import { deletedBelow } from '../../src/parts/extra/deleted.ts'
import { heapMiB } from '../support/heap.ts'
import { randomOf } from '../support/random.ts'

const entry = (id: number, password: string, status: 0 | 1 = 1): Entry =>
  ({ id, password, sistema: 's', usuario: 'u', status })

test('long entries are outside of the heap from the beginning, also where a character of them is wide', () => {
  const table = new Entries()
  const before = heapMiB()
  for (let id = 1; id < LIST_PAGE_ENTRIES; id++) table.set(entry(id, `ł${'x'.repeat(65_000)}`))
  assert.ok(heapMiB() - before < 1, `${heapMiB() - before} MiB more`)
  assert.ok(Buffer.concat([...table.list()!]).length > (LIST_PAGE_ENTRIES - 1) * 65_000)
  table.set(entry(1, 'short'))
  assert.ok(heapMiB() - before < 1, `${heapMiB() - before} MiB more after a change of the page`)
})

test('what short changes cost that nobody reads again does not return to the heap', () => {
  const table = new Entries()
  const pages = 100
  const wide = `ł${'x'.repeat(1_900)}`
  for (let id = 1; id <= pages * LIST_PAGE_ENTRIES; id++) table.set(entry(id, wide))
  table.list()
  const before = heapMiB()
  for (let page = 0; page < pages; page++) table.set(entry(1 + page * LIST_PAGE_ENTRIES, wide, 0))
  assert.ok(heapMiB() - before < 1, `${heapMiB() - before} MiB more after a change of each page`)
})

test('a list that is still read shares the long entries with the one after a change', () => {
  const table = new Entries()
  for (let id = 1; id <= LIST_PAGE_ENTRIES; id++) table.set(entry(id, id % 2 === 0 ? 'short' : 'x'.repeat(20_000)))
  const before = [...table.list()!]
  table.set(entry(2, 'changed'))
  const isShared = (piece: Buffer): boolean =>
    before.some(({ buffer, byteOffset }) => buffer === piece.buffer && byteOffset === piece.byteOffset)
  const own = [...table.list()!].filter(piece => !isShared(piece))
  assert.ok(Buffer.concat(own).length < 10_000, 'the short entries of the page')
  assert.equal((table.text(1) as Buffer).buffer, before.find(piece => piece.length > 20_000)!.buffer)
})

test('lists that are held, each of another moment, cost the heap little beside the bytes of what has changed', () => {
  const table = new Entries()
  const set = (id: number, usuario: string): void =>
    table.set({ id, password: 'x'.repeat(4_200), sistema: 's', usuario, status: 1 })
  for (let id = 1; id <= 4_000; id++) set(id, 'u')
  const before = heapMiB()
  const lists = Array.from({ length: 300 }, (_, i) => { set(1 + i * 13, 'v'); return table.list()! })
  const added = heapMiB() - before
  assert.ok(added < 3, `${added} MiB for ${lists.length}`) // with all pieces in each of them 10 MiB
})

test('entries of every length are given as they were set, whatever is asked for on the way', t => {
  const random = randomOf(t)
  const table = new Entries()
  const model: (Entry | undefined)[] = []
  const lengths = [1, 1_300, 1_400, 4_000, 4_100, 9_000, 70_000]
  const assertOne = (when: string): void => {
    const asked = 1 + random.int(model.length + 2) // of which there may be none
    const text = model[asked - 1] && entryText(model[asked - 1]!)
    assert.equal(table.text(asked)?.toString(), text, when)
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
      const listed = Buffer.concat([...table.list() ?? []]).toString()
      assert.equal(listed, active.length === 0 ? '' : `[${active.map(one => entryText(one!)).join()}]`, `step ${step}`)
      assertOne(`the list of step ${step}`)
      const [below, maxBytes] = [1 + random.int(model.length + 2), random.int(100_000)]
      let left = maxBytes
      const texts = model.slice(0, below - 1).filter(one => one?.status === 0).reverse().map(one => entryText(one!))
      const fits = texts.findIndex((text, i) => (left -= Buffer.byteLength(text) + 1) < 0 && i > 0)
      const wanted = `[${texts.slice(0, fits < 0 ? texts.length : fits).join()}]`
      const deleted = deletedBelow(table, below, maxBytes)
      assert.equal(Buffer.concat([...deleted]).toString(), wanted, `the deleted of step ${step}`)
    }
  }
})
