/** The generator's arithmetic, without a browser: chance comes in as an argument. */
import assert from 'node:assert/strict'
import { COMMONEST } from '../../src/accounts/common-words.ts'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { bitsOf, characters, CLASSES, passphrase, randomBelow, type Class,
  type Random } from '../../src/parts/page/browser/generator.ts'

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

const PLAIN = { hasCapital: false, hasDigit: false }

test('a passphrase is that many words of the list, with a capital and a digit where chance puts them', () => {
  assert.equal(passphrase(3, ['a', 'b', 'c'], PLAIN, given(0, 4, 2)), 'a-b-c')
  assert.equal(passphrase(3, ['a', 'b', 'c'], { hasCapital: true, hasDigit: true }, given(0, 4, 2, 1, 2, 7)), 'a-B-c7')
})

const wordsOf = (name: string): readonly string[] =>
  readFileSync(new URL(`../../src/parts/page/browser/${name}.txt`, import.meta.url), 'utf8').trim().split(/\s+/)

test('the word lists are ordered, without doubles, typed with any keyboard, and large enough for six words', () => {
  for (const name of ['words-es', 'words-en']) {
    const words = wordsOf(name)
    assert.ok(words.length >= 2_800, `${name}: ${words.length}`)
    assert.ok(bitsOf(...Array<number>(6).fill(words.length)) >= 68)
    assert.deepEqual(words, [...new Set(words)].sort())
    for (const word of words) assert.match(word, /^[a-z]{3,10}$/)
  }
})

test('the commonest words are a thousand, as they are compared', () => {
  const words = COMMONEST.trim().split(/\s+/)
  assert.ok(words.length >= 1_000)
  assert.deepEqual(words, [...new Set(words)].sort())
  for (const word of ['password', 'contrasena', 'empresa', 'qwerty']) assert.ok(words.includes(word), word)
  for (const word of words) assert.equal(word, word.toLowerCase().normalize('NFD').replace(/\p{M}+/gu, ''))
})

test('the bits are those of the draws', () => {
  assert.equal(bitsOf(...Array<number>(10).fill(2)), 10)
  assert.equal(bitsOf(...Array<number>(7).fill(610)), 64)
})
