/** Who knows which password, against an oracle that keeps a plain set of knowers for each entry and no marks. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { purgeEntry } from '../../src/parts/operator/socket/operator-changes.ts'
import { createEntry, deleteEntry, restoreEntry, updateEntry } from '../../src/entries/entry-commands.ts'
import { event } from '../../src/store/event.ts'
import { KnowledgeDraft } from '../../src/knowledge/knowledge-draft.ts'
import {
  Knowledge, type Knower, type KnowledgeTable, type List, type Listable, type Tells
} from '../../src/knowledge/knowledge.ts'
import { PASSWORD, World } from '../support/accounts.ts'
import { randomOf, type Random } from '../support/random.ts'
import type { FullStore } from '../support/stores.ts'

const KNOWERS: readonly Knower[] = [1, 2, 3, 'operator', 'operator:ana', 'host']
const GROUPS = ['a', 'b', 'c']
/** Active ones without a group. */
const ENTRIES: Listable = { size: 0, get: () => undefined, isActive: () => true, grupo: () => undefined }

const PASSWORDS = Array.from({ length: 12 }, (_, n) => `p${n}`)

interface Known { isThere: boolean, isActive: boolean, group: string | undefined, setBy: Knower | undefined,
  knowers: Set<Knower>, password: string }

class Oracle {
  readonly known = new Map<number, Known>()
  /** Who knew a password when it was that of an entry. */
  readonly former = new Map<string, Set<Knower>>()
  size: number = 0;

  get(id: number): { readonly password: string } | undefined {
    const one = this.known.get(id)
    return one?.isThere === true ? one : undefined
  }

  leave({ password, knowers }: Known): void {
    this.former.set(password, new Set([...this.former.get(password) ?? [], ...knowers]))
  }

  /** Of those that entries have. */
  formerNow(): ReadonlyMap<string, ReadonlySet<Knower>> {
    const there = [...this.known.values()].filter(({ isThere }) => isThere)
    const present = new Set(there.map(({ password }) => password))
    return new Map([...this.former].filter(([password]) => present.has(password)))
  }

  isActive(id: number): boolean { const one = this.known.get(id); return one?.isThere === true && one.isActive }
  grupo(id: number): string | undefined { return this.known.get(id)?.group }

  listed(list: List): number[] {
    return [...this.known].filter(([, one]) => one.isThere &&
      (list === 'all' || (one.isActive && (list === 'active' || list.includes(one.group ?? ''))))).map(([id]) => id)
  }

  idsOf(tells: Tells): readonly number[] {
    if (typeof tells === 'number') return [tells]
    return 'list' in tells ? this.listed(tells.list) : tells
  }

  /** One change of an entry, with what it tells the table. */
  step(random: Random, table: KnowledgeTable): void {
    const by = random.int(4) === 0 ? undefined : random.pick(KNOWERS)
    const there = [...this.known].filter(([, one]) => one.isThere)
    const [id, one] = there.length === 0 ? [] : random.pick(there)
    const what = random.int(9)
    if (id === undefined || one === undefined || what <= 1) {
      this.known.set(++this.size, {
        isThere: true, isActive: random.int(8) > 0, group: random.pick([undefined, ...GROUPS]), setBy: by,
        knowers: new Set(by === undefined ? [] : [by]), password: random.pick(PASSWORDS)
      })
      table.set(this.size, by)
    } else if (what === 2) {
      const { password } = one
      this.leave(one)
      one.password = random.pick(PASSWORDS)
      one.setBy = by
      one.knowers = new Set(by === undefined ? [] : [by])
      table.set(id, by, { from: password, to: one.password })
    } else if (what === 3 && one.isActive) {
      table.leaveLists(id)
      one.isActive = false
    } else if (what === 4 && !one.isActive) {
      table.changeLists(id)
      one.isActive = true
    } else if (what === 5) {
      table.changeLists(id)
      one.group = random.pick([undefined, ...GROUPS])
    } else if (what === 6 && random.int(4) === 0) {
      table.forget(id, one.password)
      this.leave(one)
      one.isThere = false
      one.setBy = undefined
      one.knowers = new Set()
    } else {
      this.tell(random, table)
    }
  }

  tell(random: Random, table: KnowledgeTable): void {
    const there = [...this.known].filter(([, one]) => one.isThere).map(([id]) => id)
    const knower = random.pick(KNOWERS)
    const tells: Tells = random.pick([
      random.pick(there), there.filter(() => random.int(3) === 0), { list: 'active' }, { list: 'all' },
      { list: GROUPS.filter(() => random.int(2) === 0) }
    ] as const)
    for (const id of this.idsOf(tells)) this.known.get(id)!.knowers.add(knower)
    table.tell(knower, tells)
  }
}

function check(knowledge: Knowledge, oracle: Oracle): void {
  for (const [id, { knowers, setBy }] of oracle.known) {
    for (const knower of KNOWERS) {
      assert.equal(knowledge.knows(knower, id), knowers.has(knower), `${knower} knows ${id}`)
    }
    const said = knowledge.knowersOf(id)
    assert.deepEqual(new Set(said.map(one => one.knower)), knowers)
    const { password, isThere } = oracle.known.get(id)!
    if (isThere) {
      const former = new Set(knowledge.formerKnowers(password))
      assert.deepEqual(former, oracle.former.get(password) ?? new Set(), `who knew ${password}`)
    }
    assert.deepEqual(said.filter(({ how }) => how === 'set').map(one => one.knower), setBy === undefined ? [] : [setBy])
  }
  for (const knower of KNOWERS) {
    assert.equal(knowledge.knowsAny(knower), [...oracle.known.values()].some(({ knowers }) => knowers.has(knower)))
    for (const list of ['active', 'all', [], ['a'], ['b', 'c']] as const) {
      const isKnown = oracle.listed(list).every(id => oracle.known.get(id)!.knowers.has(knower))
      // A list may be told once too often, never once too little.
      if (knowledge.isKnown(knower, { list })) assert.ok(isKnown, `${knower} knows ${list}`)
    }
  }
}

/** As a compaction keeps it. */
function restored(from: Knowledge, oracle: Oracle): Knowledge {
  const made = new Knowledge(oracle)
  const former = oracle.formerNow()
  for (const id of oracle.known.keys()) made.set(id, undefined) // the entries come first
  const through = <T>(rows: Iterable<T>): T[] => JSON.parse(JSON.stringify([...rows]))
  made.restoreKnowers(through(from.keptKnowers()))
  made.restorePages(through(from.keptPages()))
  made.restoreChanges(1, through(from.keptChanges()))
  made.former.restore(through(from.former.kept()))
  made.restore(through([from.kept()])[0]!)
  oracle.former.clear()
  for (const [password, knowers] of former) oracle.former.set(password, new Set(knowers))
  const keptOf = (one: Knowledge): unknown =>
    [one.kept(), [...one.keptKnowers()], [...one.keptPages()], [...one.keptChanges()],
      one.former.kept()]
  assert.deepEqual(keptOf(made), keptOf(from))
  return made
}

test('whoever set or was told a present password knows it, and nobody else, over any changes and compactions', t => {
  const random = randomOf(t)
  for (let life = 0; life < 60; life++) {
    const oracle = new Oracle()
    let knowledge = new Knowledge(oracle)
    for (let n = 0; n < 120; n++) {
      oracle.step(random, knowledge)
      if (n % 10 === 9) check(knowledge, oracle)
      if (random.int(40) === 0) knowledge = restored(knowledge, oracle)
    }
    check(knowledge, oracle)
  }
})

const KEPT = ['knowers', 'pages', 'changes', 'former', 'kept'] as const

test('if a salvage lacks a kept record, nobody is named who did not know, and whoever is told later is', t => {
  const random = randomOf(t)
  for (let life = 0; life < 100; life++) {
    const oracle = new Oracle()
    const whole = new Knowledge(oracle)
    for (let n = 0; n < 60; n++) oracle.step(random, whole)
    const lost = KEPT[life % KEPT.length]!
    const made = new Knowledge(oracle)
    for (const [id, { isThere }] of oracle.known) if (isThere) made.set(id, undefined)
    const ids = [...oracle.known].filter(([, { isThere }]) => isThere).map(([id]) => id)
    const places = [...whole.keptKnowers()]
    const gone = lost === 'knowers' && places.length > 0 ? random.pick(places).place : undefined
    made.restoreKnowers(places.filter(({ place }) => place !== gone))
    const pages = [...whole.keptPages()].filter(({ place }) => place !== gone)
    if (lost !== 'changes') made.restoreChanges(1, [...whole.keptChanges()])
    if (lost !== 'pages') made.restorePages(pages)
    if (lost !== 'former') made.former.restore(whole.former.kept())
    if (lost !== 'kept') made.restore(whole.kept())
    const named = (id: number): Set<Knower> => new Set(made.knowersOf(id).map(({ knower }) => knower))
    for (const id of ids) {
      for (const knower of named(id)) assert.ok(whole.knows(knower, id), `${lost}: ${knower} is named for ${id}`)
    }
    made.tell('operator:new', ids.slice(0, 1))
    assert.deepEqual(ids.filter(id => named(id).has('operator:new')), ids.slice(0, 1), `${lost}: one who is new`)
    for (const list of ['active', 'all', ['a'], ['b', 'c']] as const) {
      const isKnown = oracle.listed(list).every(id => made.knows(1, id))
      if (made.isKnown(1, { list })) assert.ok(isKnown, `${lost}: 1 counts as knowing ${list}`)
      made.tell(1, { list })
      for (const id of oracle.listed(list)) assert.ok(made.knows(1, id), `${lost}: 1 was told ${id}`)
      assert.ok(made.isKnown(1, { list }))
    }
  }
})

test('a draft never takes anybody for knowing who would not know once its events are applied', t => {
  const random = randomOf(t)
  for (let life = 0; life < 60; life++) {
    const oracle = new Oracle()
    const knowledge = new Knowledge(oracle)
    for (let n = 0; n < 40; n++) oracle.step(random, knowledge)
    const draft = new KnowledgeDraft(knowledge)
    const seen = new Oracle()
    for (const [id, one] of oracle.known) seen.known.set(id, { ...one, knowers: new Set(one.knowers) })
    seen.size = oracle.size
    const both: KnowledgeTable = {
      recording: undefined,
      set: (id, by) => { draft.set(id, by) }, leaveLists: () => { draft.leaveLists() },
      changeLists: () => { draft.changeLists() },
      forget: id => { draft.forget(id) }, record: what => { draft.record(what) },
      tell: (knower, tells) => {
        draft.tell(knower, tells)
        assert.equal(draft.isKnown(knower, tells), true, 'what was told in this write is known in it')
      }
    }
    for (let n = 0; n < 12; n++) {
      seen.step(random, both)
      for (const knower of KNOWERS) {
        for (const [id, { knowers }] of seen.known) {
          if (draft.isKnown(knower, id)) assert.ok(knowers.has(knower), `${knower} knows ${id}`)
        }
        for (const list of ['active', 'all', ['a'], ['b', 'c']] as const) {
          const isKnown = seen.listed(list).every(id => seen.known.get(id)!.knowers.has(knower))
          if (draft.isKnown(knower, { list })) assert.ok(isKnown, `${knower} knows ${list}`)
        }
      }
    }
  }
})

test('whoever creates and lists in turns is told nothing new; the 65th change since the last list is', () => {
  const knowledge = new Knowledge(ENTRIES)
  knowledge.tell(1, { list: 'active' })
  for (let id = 1; id <= 64; id++) {
    knowledge.set(id, 1)
    assert.equal(knowledge.isKnown(1, { list: 'active' }), true)
    assert.equal(knowledge.isKnown(2, { list: 'active' }), false)
  }
  knowledge.set(65, 1)
  assert.equal(knowledge.isKnown(1, { list: 'active' }), false)
  knowledge.tell(1, { list: 'active' })
  knowledge.set(65, 2)
  assert.equal(knowledge.isKnown(1, { list: 'active' }), false, 'somebody else has set one')
})

test('who was narrowed to a group after a full list still knows all of it, and is told what is new there', () => {
  const groups = ['a', 'b']
  const knowledge = new Knowledge({ ...ENTRIES, grupo: id => groups[id - 1] })
  for (const id of [1, 2]) knowledge.set(id, 9)
  knowledge.tell(1, { list: 'active' })
  assert.equal(knowledge.isKnown(1, { list: ['a'] }), true)
  knowledge.set(1, 9)
  assert.equal(knowledge.isKnown(1, { list: ['a'] }), false)
  assert.equal(knowledge.isKnown(1, { list: ['b'] }), true, 'the change is in another group')
  knowledge.tell(1, { list: ['a'] })
  assert.deepEqual([1, 2].map(id => knowledge.knows(1, id)), [true, true])
  knowledge.leaveLists(2) // deleted
  knowledge.set(1, 9)
  assert.deepEqual([1, 2].map(id => knowledge.knows(1, id)), [false, true])
})

test('only what was set before the newest begin or gap may have unknown readers', () => {
  const knowledge = new Knowledge(ENTRIES)
  const before = (): readonly (number | undefined)[] => [1, 2, 3].map(id => knowledge.unrecordedBeforeMs(id))
  knowledge.set(1, 1)
  assert.deepEqual(before(), [undefined, undefined, undefined])
  knowledge.record('begun', 10)
  knowledge.set(2, 1)
  assert.deepEqual(before(), [10, undefined, undefined])
  knowledge.record('gap', 20)
  knowledge.set(3, 1)
  assert.deepEqual(before(), [20, 20, undefined])
  knowledge.changeLists(1) // restored: its readers stay unknown
  knowledge.set(2, 1)
  assert.deepEqual(before(), [20, undefined, undefined])
  assert.equal(knowledge.recording, 'begun')
  knowledge.record('ended', 30)
  assert.deepEqual([knowledge.recording, ...before()], ['ended', 20, undefined, undefined])
  assert.deepEqual(knowledge.knowers(), [1], 'nobody is named who is not known')
})

test('a new password is known to nobody at the edges of pages of bits; entries beside it keep their readers', () => {
  const knowledge = new Knowledge(ENTRIES)
  const ids = Array.from({ length: 2050 }, (_, i) => i + 1)
  for (const id of ids) knowledge.set(id, 9)
  knowledge.tell(1, ids)
  const renewed = [1, 7, 8, 9, 1023, 1024, 1025, 2047, 2048, 2049]
  for (const id of renewed) knowledge.set(id, 9, { from: 'the one before', to: 'another' })
  assert.deepEqual(ids.filter(id => !knowledge.knows(1, id)), renewed)
})

test('a gap is about deleted entries, too', () => {
  const knowledge = new Knowledge({ ...ENTRIES, isActive: id => id === 1 })
  for (const id of [1, 2]) knowledge.set(id, 9)
  knowledge.record('gap', 10)
  assert.deepEqual([1, 2].map(id => knowledge.unrecordedBeforeMs(id)), [10, 10])
})

/** A change of entry 1 in group a; who knows it then (1 had read all, 2 group a, 3 b), and to whose lists it is new. */
const CHANGES: readonly (readonly [
  what: string, act: (store: FullStore) => Promise<unknown>, knowers: readonly Knower[], newTo: readonly Knower[]
])[] = [
  ['another user name', store => updateEntry(store, 1, { usuario: 'v', notas: 'n' }, null), [1, 2], []],
  ['deleted', store => deleteEntry(store, 1, null), [1, 2], []],
  ['restored', async store => { await deleteEntry(store, 1, null); await restoreEntry(store, 1, null) }, [1, 2], []],
  ['moved to b', store => updateEntry(store, 1, { grupo: 'b' }, null), [1, 2], [3]],
  ['moved out of groups', store => updateEntry(store, 1, { grupo: '' }, null), [1, 2], []],
  ['moved while deleted, and restored', async store => {
    await deleteEntry(store, 1, null)
    await updateEntry(store, 1, { grupo: 'b' }, null)
    await restoreEntry(store, 1, null)
  }, [1, 2], [3]],
  ['moved there and back', async store => {
    await updateEntry(store, 1, { grupo: 'b' }, null)
    await updateEntry(store, 1, { grupo: 'a' }, null)
  }, [1, 2], []],
  ['another password', store => updateEntry(store, 1, { password: 'q' }, null), [], [1, 2]],
  ['another password and group', store => updateEntry(store, 1, { password: 'q', grupo: 'b' }, null), [], [1, 3]],
  ['purged', store => purgeEntry(store, 1), [], []]
]

test('each change of an entry leaves who knows its password, and is new to the lists of those who do not', async () => {
  for (const [what, act, knowers, newTo] of CHANGES) {
    const store = new World().open()
    const { knowledge } = store.state
    const lists: readonly List[] = ['active', ['a'], ['b']]
    for (const n of [1, 2, 3]) await store.accounts.addUser(`u${n}@x`, undefined, ['*'], PASSWORD)
    for (const grupo of ['a', 'b']) await createEntry(store, { password: 'p', sistema: 's', usuario: 'u', grupo }, null)
    await store.commit(() =>
      [lists.map((list, i) => event('passwords.told', i + 1, { operation: 'listPassword', list })), undefined])
    await act(store)
    assert.deepEqual(knowledge.knowersOf(1).map(({ knower }) => knower), knowers, what)
    const asked = lists.filter((list, i) => !knowledge.isKnown(i + 1, { list }))
    assert.deepEqual(asked.map(list => lists.indexOf(list) + 1), newTo, `${what}: new to lists`)
    assert.deepEqual([1, 2, 3].filter(n => knowledge.knows(n, 2)), [1, 3], `${what}: the other entry`)
  }
})
