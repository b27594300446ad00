/** The page's texts without a browser: what cannot be seen has a number, long names are cut, sentences have one stop. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { JsonItems } from '../../src/parts/page/browser/json-items.ts'
import { briefName, plainText, sentences } from '../../src/parts/page/browser/plain.ts'
import { Rights } from '../../src/parts/page/browser/rights.ts'
import { seeded } from '../support/random.ts'

test('what cannot be seen, and what is no character, is shown by its number', () => {
  for (const [text, shown] of [
    ['a\ufffeb', 'a⟨U+FFFE⟩b'], ['\uffff', '⟨U+FFFF⟩'], ['\u{1fffe}', '⟨U+1FFFE⟩'], ['   ', '⟨U+0020⟩⟨U+0020⟩⟨U+0020⟩'],
    ['\u00a0', '⟨U+00A0⟩'], [' a ', ' a '], ['❤\ufe0f', '❤\ufe0f'], ['a\u202eb', 'a⟨U+202E⟩b'], ['ñ', 'ñ']
  ] as const) assert.equal(plainText(text), shown)
})

test('a name in a message has at most sixty characters, and no half of a pair', () => {
  assert.equal(briefName('x'.repeat(60)), 'x'.repeat(60))
  assert.equal(briefName('x'.repeat(61)), `${'x'.repeat(60)}…`)
  assert.equal(briefName(`${'x'.repeat(59)}👨y`), `${'x'.repeat(59)}…`)
})

test('sentences in a row have one full stop each', () => {
  assert.equal(sentences('Sin conexión', 'Comprueba la conexión.', 'No se guardó.'), 'Sin conexión. Comprueba la conexión. No se guardó.')
  assert.equal(sentences('Débil', ''), 'Débil')
  assert.equal(sentences('', 'a', '', 'b'), 'a. b')
})

test('the objects of a list are the same however its text is cut', () => {
  const seed = Number(process.env['SEED'] ?? Date.now() % 1e9)
  const { int: random } = seeded(seed)
  const texts = ['"', '\\', '}', '{', ']', '[', ',', 'a', 'ñ', '😀', '\n', '\u2028']
  for (let round = 0; round < 300; round++) {
    const text = (): string => Array.from({ length: random(6) }, () => texts[random(texts.length)]).join('')
    const items = Array.from({ length: random(5) }, (_, id) => ({ id, password: text(), sistema: text(), usuario: text() }))
    const list = JSON.stringify(items, undefined, random(2))
    const whole = random(2) === 0 ? list : `{"passwords": ${list}, "status": 200}`
    const reader = new JsonItems()
    const found: unknown[] = []
    for (let at = 0; at < whole.length;) {
      assert.ok(!reader.isWhole || whole.slice(at).trim() === '' || whole !== list, `seed ${seed}`)
      const next = at + 1 + random(8)
      found.push(...reader.add(whole.slice(at, next)))
      at = next
    }
    assert.deepEqual(found, items, `seed ${seed}: ${whole}`)
    assert.ok(reader.isWhole, `seed ${seed}: ${whole}`)
    const cut = new JsonItems()
    cut.add(list.slice(0, -1))
    assert.equal(cut.isWhole, false, 'what is cut is not whole')
    assert.throws(() => new JsonItems().add(`<!-- {"passwords":${list}`))
  }
})

test('what an account may do: all with the one ability, else what it names; nothing that is not served', () => {
  const rights = new Rights()
  rights.serve(new Map([['createPassword', 'password:create'], ['restorePassword', 'password:restore'], ['getPassword', null]]))
  assert.ok(rights.may('createPassword') && rights.may('restorePassword') && !rights.may('historyPassword'))
  rights.begin(['password:create'])
  assert.ok(rights.may('createPassword') && !rights.may('restorePassword'))
  assert.ok(rights.may('getPassword'), 'one that asks for no ability')
  rights.begin(['*'])
  assert.ok(rights.may('restorePassword'))
  rights.deny('restorePassword')
  assert.ok(!rights.may('restorePassword'))
  rights.begin()
  assert.ok(rights.may('restorePassword'), 'forgotten with the session')
})
