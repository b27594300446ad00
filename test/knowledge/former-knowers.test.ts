/** Who knew a former password, against an oracle that forgets nobody. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FormerKnowers, numberOf } from '../../src/knowledge/former-knowers.ts'
import { Knowledge } from '../../src/knowledge/knowledge.ts'
import { randomOf, type Random } from '../support/random.ts'

/** As `SECURITY.md` says it: so many changes are remembered in any case. */
const REMEMBERED = 1024

/** Entries by id, and who knew a password when an entry lost it. */
class Vault {
  readonly former = new FormerKnowers(this)
  readonly #passwords: (string | undefined)[] = [undefined]
  /** By password: how many entries have it. */
  readonly #counts = new Map<string, number>()
  /** By password: all who ever knew it from an entry that lost it, and those of them who have to be named. */
  readonly ever = new Map<string, Set<number>>()
  readonly must = new Map<string, Set<number>>()
  /** By password that no entry has: the count of changes when the last one lost it. */
  readonly #absentSince = new Map<string, number>()
  #changes = 0

  get size(): number { return this.#passwords.length - 1 }

  get(id: number): { readonly password: string } | undefined {
    const password = this.#passwords[id]
    return password === undefined ? undefined : { password }
  }

  /** Undefined: it is purged. */
  change(id: number, to: string | undefined, knower: number): void {
    const from = this.#passwords[id]
    if (from === to) return
    if (to !== undefined) this.#got(to)
    if (from !== undefined) {
      this.former.change(from, to, [knower])
      this.#lost(from, knower)
    }
    this.#passwords[id] = to
  }

  #got(password: string): void {
    const count = this.#counts.get(password) ?? 0
    this.#counts.set(password, count + 1)
    if (count > 0 || this.#changes - (this.#absentSince.get(password) ?? this.#changes) < REMEMBERED) return
    this.must.set(password, new Set(this.named(password))) // whoever is named once stays
  }

  #lost(password: string, knower: number): void {
    this.#changes++
    for (const of of [this.ever, this.must]) of.set(password, (of.get(password) ?? new Set()).add(knower))
    const count = this.#counts.get(password)! - 1
    this.#counts.set(password, count)
    if (count === 0) this.#absentSince.set(password, this.#changes)
  }

  named(password: string): number[] { return [...this.former.of(numberOf(password))] as number[] }

  check(passwords: Iterable<string>): void {
    for (const password of passwords) {
      if ((this.#counts.get(password) ?? 0) === 0) continue
      const named = new Set(this.named(password))
      const missing = [...this.must.get(password) ?? []].filter(knower => !named.has(knower))
      const wrong = [...named].filter(knower => this.ever.get(password)?.has(knower) !== true)
      assert.deepEqual([missing, wrong], [[], []], `${password} after ${this.#changes} changes`)
    }
  }

  present(): Set<string> { return new Set(this.#passwords.filter(password => password !== undefined)) }
}

function step(vault: Vault, random: Random, shared: readonly string[]): void {
  // Each third entry stays as it is, so that some passwords are shared for all the time.
  const id = random.int(60) === 0 ? vault.size + 1 : 1 + 3 * random.int(Math.ceil(vault.size / 3))
  const isThere = vault.get(id) !== undefined || id > vault.size
  const to = random.int(200) === 0 ? undefined : random.int(2) === 0 ? random.pick(shared) : `one-${random.int(1e9)}`
  if (isThere && id <= vault.size + 1) vault.change(id, to, random.int(9))
}

test('who knew a password from an entry that lost it is named while another has it, and memory is bounded', t => {
  const random = randomOf(t)
  for (const [entries, steps] of [[3, 8_000], [60, 8_000], [1_200, 8_000]] as const) {
    const vault = new Vault()
    const shared = Array.from({ length: Math.ceil(entries / 2) }, (_, n) => `shared-${n}`)
    for (let id = 1; id <= entries; id++) vault.change(id, shared[id % shared.length], 0)
    for (let n = 0; n < steps; n++) {
      step(vault, random, shared)
      if (n % 50 === 0) vault.check(shared)
    }
    vault.check(vault.present())
    const most = 2 * Math.max(REMEMBERED, vault.size) + vault.size
    assert.ok(vault.former.size <= most, `${vault.former.size} passwords of ${vault.size} entries`)
    const kept = vault.former.kept()
    const expected = [...vault.present()].filter(password => vault.named(password).length > 0).map(numberOf)
    assert.deepEqual(kept.map(([number]) => number), expected.sort((a, b) => a - b), 'a compaction keeps these')
    const restored = new FormerKnowers(vault)
    restored.restore(kept)
    assert.deepEqual(restored.kept(), kept)
  }
})

test('a former password that is set again is recognised if fewer than 1,024 passwords were changed meanwhile', () => {
  // By then a round has just begun, is under way, or is about to end.
  for (const before of [0, 500, REMEMBERED - 2, REMEMBERED - 1, REMEMBERED]) {
    for (const [meanwhile, isRecognised] of [[REMEMBERED - 1, true], [2 * REMEMBERED, false]] as const) {
      const passwords = ['', 'first', 'other']
      const get = (id: number): { readonly password: string } => ({ password: passwords[id]! })
      const knowledge = new Knowledge({ size: 2, get, isActive: () => true, grupo: () => undefined })
      const change = (id: number, to: string): void => {
        knowledge.set(id, 9, { from: passwords[id]!, to })
        passwords[id] = to
      }
      const changeOther = (times: number): void => { for (let n = 0; n < times; n++) change(2, `other-${n}`) }
      for (const id of [1, 2]) knowledge.set(id, 7)
      changeOther(before)
      change(1, 'second')
      changeOther(meanwhile)
      change(1, 'first')
      const what = `${before} changes before, ${meanwhile} meanwhile`
      assert.deepEqual(knowledge.formerKnowers('first'), isRecognised ? [7] : [], what)
      changeOther(2 * REMEMBERED)
      assert.deepEqual(knowledge.formerKnowers('first'), isRecognised ? [7] : [], `${what}, and so it stays`)
    }
  }
})
