/** The generator's arithmetic, without a browser: chance comes in as an argument. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { bitsOf, characters, CLASSES, passphrase, randomBelow, type Class, type Random } from '../../src/parts/page/browser/generator.ts'
import { ENGLISH_WORDS, SPANISH_WORDS } from '../../src/parts/page/browser/words.ts'

const real: Random = into => crypto.getRandomValues(into)

/** Chance that gives these numbers in turn. */
function given(...numbers: readonly number[]): Random {
  const rest = [...numbers]
  return into => {
    const next = rest.shift()
    assert.ok(next !== undefined, 'it draws no more than this')
    into[0] = next
  }
}

test('a number above the last whole multiple of the bound is drawn again', () => {
  assert.equal(randomBelow(10, given(2 ** 32 - 1, 2 ** 32 - 6, 7)), 7)
  assert.equal(randomBelow(10, given(2 ** 32 - 7)), 9)
  assert.equal(randomBelow(3, given(2 ** 32 - 1, 5)), 2)
  assert.equal(randomBelow(2 ** 16, given(2 ** 32 - 1)), 2 ** 16 - 1, 'a power of two needs no second draw')
})

test('every value comes as often as any other', () => {
  const counts = new Array<number>(26).fill(0)
  const draws = 52_000
  for (let i = 0; i < draws; i++) counts[randomBelow(26, real)]!++
  const expected = draws / counts.length
  const chiSquare = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
  assert.ok(chiSquare < 70, `chi square ${chiSquare} of 25 degrees of freedom`) // beyond it: once in 200,000 runs
})

test('a password has the length, each class that was chosen, and nothing else', () => {
  const names = Object.keys(CLASSES) as Class[]
  for (let choice = 1; choice < 16; choice++) {
    const chosen = names.filter((_name, i) => (choice & 1 << i) !== 0)
    for (let i = 0; i < 50; i++) {
      const password = characters(8, chosen, real)
      assert.equal(password.length, 8)
      for (const name of names) {
        assert.equal([...password].some(one => CLASSES[name].includes(one)), chosen.includes(name), name)
      }
    }
  }
})

test('the classes share no character, and hold none that is taken for another', () => {
  const all = Object.values(CLASSES).join('')
  assert.equal(new Set(all).size, all.length)
  assert.doesNotMatch(all, /[lIO01|`'"\\]/)
})

test('a passphrase is that many words of the list', () => {
  assert.equal(passphrase(3, ['a', 'b', 'c'], given(0, 4, 2)), 'a-b-c')
})

test('the word lists are ordered, without doubles, and typed with any keyboard', () => {
  for (const words of [SPANISH_WORDS, ENGLISH_WORDS]) {
    assert.ok(words.length >= 600)
    assert.deepEqual(words, [...new Set(words)].sort())
    for (const word of words) assert.match(word, /^[a-z]{3,12}$/)
  }
})

test('the bits are those of the draws', () => {
  assert.equal(bitsOf(10, 2), 10)
  assert.equal(bitsOf(7, 610), 64)
})
