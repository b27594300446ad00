/** Who knows which password, against an oracle that remembers each person's texts and no numbers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idLists, eachId, type Ids } from '../../src/knowledge/ids.ts'
import {
  Knowledge, KnowledgeDraft, OTHERS, type Knower, type KnowledgeTable
} from '../../src/knowledge/knowledge.ts'
import { randomOf, type Random } from '../support/random.ts'

const KNOWERS: readonly Knower[] = [1, 2, 3, 'operator', 'operator:ana', 'host', OTHERS]
const LEAST_FORMER = 1024
/** Few, so that they come again; some are alike but for their end, some are long. */
const TEXTS = [
  ...Array.from({ length: 9 }, (_, n) => `p${n}`), 'x'.repeat(64), 'x'.repeat(65), `${'x'.repeat(64)}y`, '', '\ud800',
  '\ud801', '\u00e9', 'e\u0301', '__proto__'
]

interface Entry { readonly id: number, password: string, status: 0 | 1 }

/** A plain life: texts, and who was told which of which entry. */
class Oracle {
  readonly entries = new Map<number, Entry>()
  readonly texts = new Map<Knower, Set<string>>()
  readonly own = new Map<Knower, Set<number>>()
  /** Values that no entry has, the one that was longest ago first. */
  former: string[] = []
  ever = new Set<string>()
  size: number = 0

  copy(): Oracle {
    const made = new Oracle()
    for (const [id, one] of this.entries) made.entries.set(id, { ...one })
    for (const [knower, texts] of this.texts) made.texts.set(knower, new Set(texts))
    for (const [knower, ids] of this.own) made.own.set(knower, new Set(ids))
    made.former = [...this.former]
    made.ever = new Set(this.ever)
    made.size = this.size
    return made
  }

  #of<T>(of: Map<Knower, Set<T>>, knower: Knower): Set<T> {
    if (!of.has(knower)) of.set(knower, new Set())
    return of.get(knower)!
  }

  tell(knower: Knower, id: number): void {
    this.#of(this.own, knower).add(id)
    this.#of(this.texts, knower).add(this.entries.get(id)!.password)
  }

  tellFormer(knower: Knower, text: string): void {
    this.ever.add(text)
    this.#of(this.texts, knower).add(text)
    this.#settle(text)
  }

  tellAll(knower: Knower): void {
    for (const text of this.ever) this.#of(this.texts, knower).add(text)
    for (const id of this.entries.keys()) this.#of(this.own, knower).add(id)
  }

  set(id: number, password: string | undefined, status: 0 | 1): void {
    const old = this.entries.get(id)?.password
    if (old !== password) for (const ids of this.own.values()) ids.delete(id)
    if (password === undefined) this.entries.delete(id)
    else {
      this.entries.set(id, { id, password, status })
      this.ever.add(password)
      this.former = this.former.filter(one => one !== password)
    }
    if (old !== undefined && old !== password) this.#settle(old)
  }

  /** A value that has left its last entry is the newest of the former ones; the oldest is forgotten by everybody. */
  #settle(text: string): void {
    this.former = this.former.filter(one => one !== text)
    if ([...this.entries.values()].some(one => one.password === text)) return
    this.former.push(text)
    if (this.former.length <= Math.max(LEAST_FORMER, this.entries.size)) return
    const oldest = this.former.shift()!
    this.ever.delete(oldest)
    for (const texts of this.texts.values()) texts.delete(oldest)
  }

  how(knower: Knower, id: number, byEntry: boolean): 'read' | 'equal' | undefined {
    if (this.own.get(knower)?.has(id) === true) return 'read'
    return !byEntry && this.texts.get(knower)?.has(this.entries.get(id)!.password) === true ? 'equal' : undefined
  }

  /** As a compaction keeps it. */
  compact(): void {
    const present = new Set([...this.entries.values()].map(({ password }) => password))
    for (const texts of this.texts.values()) for (const text of texts) if (!present.has(text)) texts.delete(text)
    this.ever = present
    this.former = []
  }
}

function step(
  random: Random, oracle: Oracle, table: KnowledgeTable, texts: () => string, mostEntries: number = Infinity
): void {
  const by = random.int(4) === 0 ? undefined : random.pick(KNOWERS.filter(one => one !== OTHERS))
  const knower = random.pick(KNOWERS)
  const there = [...oracle.entries.values()]
  const one = there.length === 0 ? undefined : random.pick(there)
  const what = random.int(10)
  const put = (entry: Entry): void => {
    const old = oracle.entries.get(entry.id)
    table.put(entry, old && { ...old }, by)
    oracle.set(entry.id, entry.password, entry.status)
    if (by !== undefined && old?.password !== entry.password) oracle.tell(by, entry.id)
  }
  if (one === undefined || (what <= 1 && there.length < mostEntries)) {
    put({ id: ++oracle.size, password: texts(), status: random.int(8) > 0 ? 1 : 0 })
  }
  else if (what <= 3) put({ ...one, password: texts() })
  else if (what === 4) put({ ...one, status: one.status === 1 ? 0 : 1 })
  else if (what === 5 && random.int(4) === 0) {
    table.purge({ ...one })
    oracle.set(one.id, undefined, 0)
  } else if (what === 6) {
    const text = texts()
    table.tellFormer(knower, text)
    oracle.tellFormer(knower, text)
  } else if (what === 7 && random.int(6) === 0) {
    table.tellAll(knower)
    oracle.tellAll(knower)
  } else {
    const told = what === 8 ? [one] : there.filter(() => random.int(3) === 0)
    for (const ids of idLists(told.map(({ id }) => id))) table.tell(knower, ids)
    for (const { id } of told) oracle.tell(knower, id)
  }
}

function check(knowledge: Knowledge, oracle: Oracle, former: readonly string[] = TEXTS): void {
  const { numbers } = knowledge
  for (const [id, { password }] of oracle.entries) {
    for (const knower of KNOWERS) {
      for (const byEntry of [true, false]) {
        const [found, right] = [knowledge.how(knower, id, byEntry), oracle.how(knower, id, byEntry)]
        assert.equal(found, right, `${knower} knows ${id} (${password}), by entry: ${byEntry}`)
      }
    }
    const equal = [...oracle.entries.values()].filter(one => one.password === password)
    assert.equal(numbers.active(numbers.of(id)), equal.filter(({ status }) => status === 1).length)
    assert.equal(numbers.isShared(numbers.of(id)), equal.length > 1)
  }
  for (const text of former) {
    for (const knower of KNOWERS) {
      assert.equal(knowledge.knowsFormer(knower, text), oracle.texts.get(knower)?.has(text) === true,
        `${knower} knows ${JSON.stringify(text)}`)
    }
  }
}

function compacted(from: Knowledge, oracle: Oracle): Knowledge {
  const made = new Knowledge({ now: 0 })
  for (const entry of oracle.entries.values()) made.put(entry, undefined, undefined)
  for (const [knower, ids, equal, ms] of from.kept()) {
    for (const list of idLists(ids)) made.tell(knower, JSON.parse(JSON.stringify(list)) as Ids)
    for (const list of idLists(equal)) made.tellEqual(knower, JSON.parse(JSON.stringify(list)) as Ids, ms)
  }
  made.restoreRecording(from.keptRecording())
  assert.deepEqual([...made.kept()], [...from.kept()])
  oracle.compact()
  return made
}

test('each person knows the texts that this person was told or has set, over any changes and compactions', t => {
  const random = randomOf(t)
  for (let life = 0; life < 30; life++) {
    const oracle = new Oracle()
    let knowledge = new Knowledge({ now: 0 })
    for (let n = 0; n < 150; n++) {
      step(random, oracle, knowledge, () => random.pick(TEXTS))
      if (n % 10 === 9) check(knowledge, oracle)
      if (random.int(50) === 0) knowledge = compacted(knowledge, oracle)
    }
    check(knowledge, oracle)
  }
})

test('as many former values as there are entries are kept, at least 1,024, in the order in which they left', t => {
  const random = randomOf(t)
  const oracle = new Oracle()
  const knowledge = new Knowledge({ now: 0 })
  const recent: string[] = []
  // New ones mostly, and values of some time ago.
  const text = (): string => {
    if (recent.length > 0 && random.int(5) === 0) return random.pick(recent.slice(-1400))
    recent.push(`new ${recent.length}`)
    return recent.at(-1)!
  }
  for (let n = 0; n < 5_000; n++) {
    step(random, oracle, knowledge, text, 40)
    if (n % 1_000 === 999) check(knowledge, oracle, recent)
  }
  assert.equal(oracle.former.length, LEAST_FORMER, 'more have left than are kept')
})

test('with more entries than the least number, as many former values as there are entries are kept', () => {
  const knowledge = new Knowledge({ now: 0 })
  const entries = LEAST_FORMER + 100
  const of = (id: number, kind: string): Entry => ({ id, password: `${kind} ${id}`, status: 1 })
  for (let id = 1; id <= entries; id++) knowledge.put(of(id, 'first'), undefined, 1)
  for (let id = 1; id <= entries; id++) knowledge.put(of(id, 'second'), of(id, 'first'), 1)
  const known = (): unknown[] => [1, 2, entries].map(id => knowledge.knowsFormer(1, `first ${id}`))
  assert.deepEqual(known(), [true, true, true])
  knowledge.put(of(1, 'third'), of(1, 'second'), 1)
  assert.deepEqual(known(), [false, true, true], 'the one that left longest ago is forgotten')
})

test('a draft knows what its write has told and set, and what was known before', t => {
  const random = randomOf(t)
  for (let life = 0; life < 60; life++) {
    const oracle = new Oracle()
    const knowledge = new Knowledge({ now: 0 })
    for (let n = 0; n < 40; n++) step(random, oracle, knowledge, () => random.pick(TEXTS))
    const draft = new KnowledgeDraft(knowledge)
    const seen = oracle.copy()
    for (let n = 0; n < 12; n++) {
      step(random, seen, draft, () => random.pick(TEXTS))
      for (const knower of KNOWERS) {
        for (const id of seen.entries.keys()) {
          if (draft.knows(knower, id)) assert.equal(seen.how(knower, id, true), 'read', `${knower} knows ${id}`)
        }
        for (const text of TEXTS) {
          if (draft.knowsFormer(knower, text)) assert.ok(seen.texts.get(knower)!.has(text), `${knower} knows ${text}`)
        }
      }
      const told = [...seen.entries.keys()].slice(0, 3)
      draft.tell(2, told)
      for (const id of told) {
        seen.tell(2, id)
        assert.ok(draft.knows(2, id), 'what was told in this write is known in it')
      }
    }
  }
})

test('beside an entry with a new password the others keep their readers, also where pages of bits meet', () => {
  const knowledge = new Knowledge({ now: 0 })
  const ids = Array.from({ length: 2 * 8_192 + 3 }, (_, n) => n + 1)
  for (const id of ids) knowledge.put({ id, password: `p${id}`, status: 1 }, undefined, undefined)
  knowledge.tell(1, ids)
  const unknown = (byEntry: boolean): number[] => ids.filter(id => knowledge.how(1, id, byEntry) === undefined)
  assert.deepEqual(unknown(true), [])
  const renewed = [1, 7, 8, 9, 8_191, 8_192, 8_193, 16_383, 16_384, 16_385]
  for (const id of renewed) {
    knowledge.put({ id, password: `q${id}`, status: 1 }, { id, password: `p${id}`, status: 1 }, undefined)
  }
  assert.deepEqual([unknown(true), unknown(false)], [renewed, renewed])
})

test('lists of ids say exactly which, in pieces that a record holds, whatever the ids are', t => {
  const random = randomOf(t)
  const lists = [
    [], [1], [5, 6, 7], Array.from({ length: 100_000 }, (_, i) => i + 1),
    Array.from({ length: 60_000 }, (_, i) => 2 * i + 1), [1, 900_000, 900_001],
    Array.from({ length: 400_000 }, (_, i) => i + 1).filter(() => random.int(2) === 0),
    Array.from({ length: 1_000_000 }, (_, i) => i + 1).filter(() => random.int(50) === 0)
  ]
  for (const ids of lists) {
    const found: number[] = []
    const pieces = idLists(ids)
    for (const piece of pieces) {
      const text = JSON.stringify(piece)
      assert.ok(text.length <= 33 * 1024, String(text.length))
      eachId(JSON.parse(text) as Ids, id => found.push(id))
    }
    assert.deepEqual(found, ids)
    const most = Math.max(40, (ids.at(-1) ?? 0) / 4)
    assert.ok(JSON.stringify(pieces).length <= most, `${JSON.stringify(pieces).length} for ${ids.length}`)
  }
})

test('what begins or lacks records makes others know every text so far, former ones too', () => {
  const knowledge = new Knowledge({ now: 0 })
  knowledge.put({ id: 1, password: 'left', status: 1 }, undefined, 1)
  knowledge.put({ id: 1, password: 'p', status: 1 }, { id: 1, password: 'left', status: 1 }, 1)
  const known = (): readonly boolean[] => ['left', 'p', 'later'].map(text => knowledge.knowsFormer(OTHERS, text))
  assert.deepEqual(known(), [false, false, false])
  knowledge.record('begun', 10)
  knowledge.put({ id: 2, password: 'later', status: 1 }, undefined, 1)
  assert.deepEqual([known(), knowledge.gapMs], [[true, true, false], 10])
  knowledge.record('gap', 20)
  assert.deepEqual([known(), knowledge.gapMs], [[true, true, true], 20])
  knowledge.record('ended', 30)
  assert.deepEqual([knowledge.recording, knowledge.gapMs], ['ended', 20])
  assert.deepEqual(knowledge.knowers(), [1], 'nobody is named who is not known')
})
