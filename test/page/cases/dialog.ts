/** The dialog of an entry, and its generator. */
import assert from 'node:assert/strict'
import { Failure } from '../../../src/errors.ts'
import {
  CHROMIUM, edit, entries, EVERYWHERE, focus, holdAnswers, hurryCheck, inBrowser, isEditing, openService, passwordIn,
  settled, systems, textOf, told, valueOf
} from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'
import { updateEntry } from '../../../src/store/commands.ts'

inBrowser('a missing field is marked with a message, and nothing is sent', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await browser.click('#create')
  await browser.fill('#usuario', 'ana')
  await browser.click('#editor .end .main')
  assert.equal(await textOf(browser, '#sistema-fault'), 'Este campo es obligatorio.')
  assert.equal(await textOf(browser, '#usuario-fault'), '')
  assert.equal(await browser.run('return document.activeElement.id'), 'sistema')
  assert.equal(await browser.run("return document.getElementById('sistema').ariaInvalid"), 'true')
  await browser.press('x')
  assert.equal(await textOf(browser, '#sistema-fault'), '', 'it goes with the first letter')
  const asked = await browser.run("return performance.getEntriesByType('resource').map(one => one.name)")
  assert.equal((asked as string[]).filter(name => name.includes('/api/')).length, 1, 'the list was asked for once')
})

inBrowser('a password that is looked at in the dialog hides itself again, and not too early', CHROMIUM, async t => {
  const { browser } = await openService(t)
  const isSeen = (): Promise<boolean> => browser.run(`return document.getElementById('password').value !== ''
    && document.getElementById('peek').ariaPressed === 'true'`)
  const hidden = "return document.getElementById('password').value === ''"
  // What is to happen after a while happens when the test says so.
  await browser.run(`const real = setTimeout, due = window.due = []
    window.setTimeout = (f, ms, ...rest) => ms === 60000 ? due.push(f) : real(f, ms, ...rest)
    window.clearTimeout = id => { if (due[id - 1]) due[id - 1] = () => {} }`)
  const wait = (which: number): Promise<unknown> => browser.run('due[arguments[0]]()', which)
  await edit(browser, 'Correo')
  await browser.click('#peek')
  assert.ok(await isSeen())
  await browser.click('#peek')
  await browser.click('#peek')
  await wait(0)
  assert.ok(await isSeen(), 'it was looked at again since')
  await wait(1)
  assert.ok(await browser.run(hidden))
  assert.equal(await passwordIn(browser), 'S3cr3ta-del-correo')
  await browser.click('#generate')
  await browser.click('#use')
  assert.ok(await isSeen())
  await browser.run('due.at(-1)()')
  assert.ok(await browser.run(hidden), 'a generated one too')
})

inBrowser('editing sends what was changed, and what was not stays as it is, line breaks too', CHROMIUM, async t => {
  const { browser, service } = await openService(t, {}, entries(['Dos\nlíneas', 'ana', 'a\nb'], ['Zeta', 'ana', 'z']))
  // Somebody else changes it meanwhile: the dialog has it as it is now.
  await updateEntry(service.store, 1, { usuario: 'eva' }, null)
  await browser.click('#rows [data-act=edit]')
  await browser.until("return document.getElementById('editor').open")
  assert.equal(await valueOf(browser, 'usuario'), 'eva')
  // To have looked at it changes nothing either.
  const look = (): Promise<unknown> => browser.run("for (let i = 0; i < 2; i++) document.getElementById('peek').click()")
  await look()
  await browser.press(KEYS.escape)
  assert.equal(await isEditing(browser), false, 'nothing was typed')
  await browser.click('#rows [data-act=edit]')
  await browser.until("return document.getElementById('editor').open")
  await look()
  await browser.fill('#usuario', 'luz')
  await browser.press(KEYS.enter)
  await browser.until("return !document.getElementById('editor').open")
  assert.deepEqual(JSON.parse(String(service.store.state.entries.text(1))),
    { id: 1, password: 'a\nb', sistema: 'Dos\nlíneas', usuario: 'luz', status: 1 })
  assert.equal(await textOf(browser, '#rows .user'), 'luz')
  assert.equal(await browser.run("return document.activeElement.className"), 'system', 'the focus is on its row')
})

inBrowser('a late answer disturbs no dialog that was opened since, and is reported', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  const typed = (): Promise<unknown> =>
    browser.run("return [document.getElementById('editor').open, document.getElementById('sistema').value]")
  const create = async (text: string): Promise<void> => {
    await browser.click('#create')
    await browser.run("for (const one of document.querySelectorAll('#editor .field input')) one.value = arguments[0]", text)
  }
  // Saved, closed before that was answered, and another one begun.
  const release = await holdAnswers(browser)
  await create('first')
  await browser.press(KEYS.enter)
  await browser.press(KEYS.escape)
  await browser.click('#discard')
  await create('second')
  await release(1)
  await told(browser, 'Contraseña guardada.')
  assert.deepEqual(await typed(), [true, 'second'])
  // The same, when the first one fails.
  await hurryCheck(browser)
  const releaseFailure = await holdAnswers(browser)
  Object.assign(service.store, { commit: () => Promise.reject(new Error('broken')) })
  await browser.press(KEYS.enter)
  await browser.press(KEYS.escape)
  await browser.click('#discard')
  await create('third')
  await releaseFailure(1)
  await told(browser, 'El servicio ha fallado. Respondió:')
  assert.deepEqual(await typed(), [true, 'third'])
  assert.equal(await browser.run("return document.querySelector('#editor .alert').hidden"), true)
  await browser.press(KEYS.escape)
  await browser.click('#discard')
  // Asked to edit one, and to make a new one before it was there.
  const releaseEntry = await holdAnswers(browser)
  await browser.click('#rows [data-act=edit]')
  await create('fourth')
  await releaseEntry(1)
  await browser.run('return new Promise(done => setTimeout(done, 50))')
  assert.deepEqual(await typed(), [true, 'fourth'])
})

inBrowser('while an entry is saved nothing more is typed, and closing asks; what fails is still there', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  Object.assign(service.store, { commit: () => Promise.reject(new Failure('queue-full', 'many wait')) })
  await browser.click('#create')
  for (const name of ['sistema', 'usuario', 'password']) await browser.fill(`#${name}`, name)
  const release = await holdAnswers(browser)
  await browser.press(KEYS.enter)
  await browser.press('x')
  await browser.run("for (const id of ['generate', 'use', 'generate']) document.getElementById(id).click()")
  await browser.press(KEYS.escape)
  await browser.find('#discard')
  await release(1)
  await browser.click('[data-mode=discard] [data-back]')
  await browser.find('#editor .alert')
  assert.deepEqual(await browser.run("return ['sistema', 'usuario'].map(id => document.getElementById(id).value)"), ['sistema', 'usuario'])
  assert.equal(await passwordIn(browser), 'password')
  await browser.fill('#usuario', 'again')
})

inBrowser('an entry that cannot be read as it is now is not opened to be changed', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await browser.run('window.realFetch = window.fetch; window.fetch = () => Promise.reject(new TypeError())')
  await browser.click('#rows [data-act=edit]')
  await told(browser, 'El servicio no responde')
  assert.equal(await isEditing(browser), false)
  await browser.run('window.fetch = window.realFetch')
  await browser.click('#rows [data-act=edit]')
  await browser.find('#sistema')
})

inBrowser('Enter that is held down acts on nothing that comes next', CHROMIUM, async t => {
  const { browser } = await openService(t)
  const held = (): Promise<unknown> => browser.run(`
    for (let n = 0; n < 5; n++) {
      const event = new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true, repeat: true })
      if (document.activeElement.dispatchEvent(event)) document.activeElement.click()
    }`)
  await browser.run("document.querySelector('#rows [data-act=remove]').focus()")
  await held()
  assert.equal((await systems(browser)).length, 8)
})

inBrowser('a password in the dialog is masked, in a field that was never one that browsers offer to keep', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await browser.run(`window.kinds = new Set()
    const note = () => { for (const one of document.querySelectorAll('#editor input')) kinds.add(one.type) }
    note()
    new MutationObserver(note).observe(document.body, { subtree: true, childList: true, attributes: true })`)
  await edit(browser, 'Correo')
  await browser.click('#password')
  await browser.press('x')
  assert.equal(await browser.run("return getComputedStyle(document.getElementById('password')).webkitTextSecurity"), 'disc')
  await browser.click('#peek')
  await browser.until("return getComputedStyle(document.getElementById('password')).webkitTextSecurity === 'none'")
  await browser.click('#generate')
  await browser.click('#use')
  await browser.press(KEYS.enter)
  await told(browser, 'Cambios guardados.')
  assert.deepEqual(await browser.run('return [...kinds].sort()'), ['checkbox', 'radio', 'range', 'text'])
  assert.equal(await browser.run("return document.getElementById('password').autocomplete"), 'off')
})

inBrowser('the button that shows what is typed takes a click that lasts as long as a finger does', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await edit(browser, 'Correo')
  await browser.click('#password')
  await browser.press('x')
  await browser.click('#peek', 100)
  await browser.until("return document.getElementById('peek').ariaPressed === 'true'")
})

inBrowser('typing a password goes on where it was; what was stored before is replaced', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await browser.click('#create')
  await browser.fill('#password', 'first-half-')
  await browser.click('#usuario')
  assert.equal(await valueOf(browser, 'password'), '', 'it is in the document only while it is typed')
  await browser.click('#password') // where the key leads there, WebKit selects all of it
  await browser.press(...'second')
  assert.equal(await valueOf(browser, 'password'), 'first-half-second')
  await browser.click('#usuario')
  assert.equal(await passwordIn(browser), 'first-half-second')
  await browser.press(KEYS.escape)
  await browser.click('#discard')
  await edit(browser, 'Banco Central')
  await browser.click('#password')
  assert.equal(await valueOf(browser, 'password'), '')
  await browser.press(...'new')
  await browser.click('#usuario')
  assert.equal(await passwordIn(browser), 'new')
})

inBrowser('what was typed is discarded only when that is asked for', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await browser.click('#create')
  await browser.press(KEYS.escape)
  assert.equal(await isEditing(browser), false, 'nothing was typed')
  await browser.click('#create')
  await browser.click('#generate')
  await browser.click('#use')
  const typed = await passwordIn(browser)
  // The browser lets a second Esc pass without asking the page, if that only listens for it to be cancelled.
  for (let i = 0; i < 4; i++) {
    await browser.press(KEYS.escape)
    assert.equal(await browser.run("return document.querySelector('#editor [data-mode=discard]').hidden"), i % 2 === 1)
  }
  // What a phone has for it.
  assert.equal(await browser.run("return document.getElementById('editor').dispatchEvent(new Event('cancel', { cancelable: true }))"), false)
  assert.equal(await browser.run("return document.querySelector('#editor [data-mode=discard]').hidden"), false)
  await browser.press(KEYS.escape)
  assert.equal(await isEditing(browser), true)
  assert.equal(await passwordIn(browser), typed)
  await browser.click('#editor [data-close]')
  assert.equal(await focus(browser), 'button: Seguir editando')
  await browser.click('#discard')
  assert.equal(await isEditing(browser), false)
  assert.equal(await valueOf(browser, 'password'), '')
  // One that the browser closes all the same leaves nothing in the document either.
  await browser.click('#create')
  await browser.fill('#sistema', 'typed')
  await browser.run("document.getElementById('editor').close()")
  await browser.until("return document.getElementById('sistema').value === ''")
})

inBrowser('the strength of what is typed, and where else it is used', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await edit(browser, 'GitHub')
  for (const [text, rating] of [
    ['contraseña123', 'Débil'], ['4711', 'Débil. También se usa en: Impresora'],
    [`${'x'.repeat(100)}${'1'.repeat(100)}`, 'Débil'], ['kV8#qz!Rw2p', 'Aceptable'],
    ['kV8#qz!Rw2pLm9', 'Segura']
  ] as const) {
    await browser.fill('#password', text)
    assert.equal(await textOf(browser, '#rating span'), rating, text)
    const shown = await browser.run(`const { value, low, high } = document.querySelector('#rating meter')
      return ['Débil', 'Aceptable', 'Segura'][value < low ? 0 : value < high ? 1 : 2]`)
    assert.equal(shown, rating.split('.')[0], `the meter of ${text}`)
  }
  await browser.click('#editor [data-close]')
  await browser.click('#discard')
  await browser.click('#create')
  assert.equal(await browser.run("return document.getElementById('rating').hidden"), true, 'nothing is typed yet')
})

inBrowser('the generator starts with words that the page calls strong, leaves one class chosen, and keeps its options across a reload, but no password', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await browser.click('#create')
  await browser.click('#generate')
  await browser.click('input[value=words]')
  assert.ok(await browser.run("const meter = document.getElementById('strength'); return meter.value >= meter.high"))
  assert.match(await textOf(browser, '#proposal'), /^[a-z]+(-[a-z]+){5,}$/)
  for (const [language, label] of [['en', 'Words'], ['es', 'Palabras']] as const) {
    await browser.run(`document.querySelector('[data-language=${language}]').click()`)
    assert.equal(await textOf(browser, '.range span'), label, 'what the slider counts')
  }
  await browser.click('input[value=characters]')
  for (const name of ['lower', 'upper', 'symbols', 'digits']) await browser.click(`#classes input[value=${name}]`)
  assert.match(await textOf(browser, '#proposal'), /^[2-9]+$/, 'the last class stays')
  for (const name of ['lower', 'upper']) await browser.click(`#classes input[value=${name}]`)
  await browser.run("const range = document.getElementById('length'); range.value = 31; range.dispatchEvent(new Event('input', { bubbles: true }))")
  await browser.reload()
  await settled(browser)
  assert.match(await browser.run('return location.search'), /^\?lang=es&generator=characters\.31\.lower\.upper\.digits$/)
  await browser.click('#create')
  await browser.click('#generate')
  assert.match(await textOf(browser, '#proposal'), /^[A-Za-z2-9]{31}$/)
  assert.match(await textOf(browser, '#bits'), /^1\d\d bits de entropía$/)
  assert.deepEqual(await browser.run('return [localStorage.length, sessionStorage.length, document.cookie]'), [0, 0, ''])
})
