/** New passwords of users: what is guessed first is refused, and what is not is taken. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { passwordFault } from '../../src/accounts/password-rules.ts'
import { randomOf } from '../support/random.ts'

const EMAIL = 'ana.garcia@vault.example.org'
const SHORT = 'The password field must be at least 12 characters.'
const GUESSED = 'The password field must not be made of a few common words, digits, keys in their order, the address ' +
  'or the name of ' +
  'this service: such passwords are guessed first.'

test('short passwords, NUL and halves of surrogate pairs are refused, each by its own sentence', () => {
  const rows = [
    ['elevenchars', SHORT], ['ñ'.normalize('NFD').repeat(11), SHORT],
    ['🔑🐎🌳🏠🎻🚲🍋🧵🪁🎲🥁', SHORT], // eleven
    ['a' + '\0'.repeat(11), 'The password field must not have a NUL character.'],
    [`${'\ud800'}hk2ls9qmw4xz`, 'The password field must be Unicode without halves of surrogate pairs.'],
    ['k2'.repeat(513), 'The password field must not be greater than 1024 characters.']
  ] as const
  for (const [password, fault] of rows) assert.equal(passwordFault(password, EMAIL), fault, JSON.stringify(password))
})

const REFUSED = {
  'the commonest passwords of this length': [
    '123qweasdzxc', '1qaz2wsx3edc', 'q1w2e3r4t5y6', '1q2w3e4r5t6y', 'qazwsxedcrfv', '123456qwerty', 'qwerty123456',
    'leavemealone', 'motherfucker',
    '123456654321', '112233445566', 'finalfantasy', '1qaz2wsx3edc4rfv', 'unbelievable', 'administrator', 'justinbieber',
    'needforspeed', '123456789012',
    'counterstrike', 'zaq1xsw2cde3', 'qwertyasdfgh', 'password1234', '12345678900987654321', 'qwertyuiop123',
    'iloveyou1234', 'contraseña123',
    'passwordpassword', 'abcdefghijkl', 'teamomucho123'
  ],
  'the same in other letters': ['Password1234!', 'P@ssw0rd2024', 'CONTRASEÑA2024', 'Qwerty123456', 'Adm1n1strat0r',
    'ÜnbelievablE'],
  'twelve digits': ['839201746552', '0612-345-678', '24.12.1984 !'],
  'one repeated character, or a few': ['aaaaaaaaaaaa', '............', 'abababababab', '123123123123', 'ñññññññññññññ',
    '🙂'.repeat(12), '11111111111111111111'],
  'what is made of the address': [EMAIL, EMAIL.toUpperCase(), 'ana.garcia2024', 'garcia.ana.12', 'vault.example',
    'ana@vault.example', 'GarciaGarcia1'],
  'the name of the service': ['PasswordEntryService', 'password-entry', 'passwordservice', 'entry-service-1',
    'servicepassword']
}
for (const [what, passwords] of Object.entries(REFUSED)) {
  test(`refused: ${what}`, () => {
    for (const password of passwords) assert.equal(passwordFault(password, EMAIL), GUESSED, password)
  })
}

test('refused: what is made of an address in capitals or with accents, in other letters than there', () => {
  for (const email of ['ZWERKOVA@x.example', 'żwerková@x.example']) {
    for (const password of ['zwerkova2024!', 'ŻWERKOVÁ-2024'])
      assert.equal(passwordFault(password, email), GUESSED, email)
  }
  assert.equal(passwordFault('zwerkova2024!', EMAIL), undefined, 'of another user')
})

test('taken: phrases of four words, random characters, and long texts that have a common word in them', () => {
  const taken = [
    'correct horse battery staple', 'battery staple horse correct', 'casa-perro-luna-gato', 'xK9#mQ2$vL7p',
    'mi perro come tres manzanas',
    'garcia hates tall buildings', 'zpassworq8831', '口令口令一二三四五六七八', 'k2'.repeat(512).replace(/k2$/, 'q!')
  ]
  for (const password of taken) assert.equal(passwordFault(password, EMAIL), undefined, password)
})

test('twelve random letters and digits are never refused', t => {
  const random = randomOf(t)
  for (let i = 0; i < 2_000; i++) {
    const password = Array.from({ length: 12 }, () =>
      random.pick([...'abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789'])).join('')
    assert.equal(passwordFault(password, EMAIL), undefined, password)
  }
})

test('the longest password is judged at once, whatever it is made of', () => {
  for (const unit of ['a', 'ab1', 'password', '1', 'aaaab', 'qwertyuiop', ' ']) {
    const password = `${unit.repeat(1024)}x`.slice(-1024)
    const startMs = performance.now()
    passwordFault(password, `${'a.'.repeat(120)}@example.org`)
    assert.ok(performance.now() - startMs < 2_000, `${unit}: ${performance.now() - startMs} ms`)
  }
})
