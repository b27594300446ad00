/** The dialogs of an entry: to look at it, to create and to change it. */
import assert from 'node:assert/strict'
import {
  CHROMIUM, documentOf, edit, entries, EVERYWHERE, focus, holdAnswers, inBrowser, isEditing, keepCopies, loadAgain,
  openService, pass, sendEntry, textOf, until, valueOf, view
} from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'
import { updateEntry } from '../../../src/entries/entry-commands.ts'

inBrowser('what is missing or refused is said at its field, and keeps what was typed', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await browser.click('#create')
  await browser.click('#editor .main')
  assert.deepEqual(await browser.run("return [...document.querySelectorAll('#editor .fault')].map(one => " +
    "one.textContent).filter(text => text !== '')"),
    Array(3).fill('Este campo es obligatorio.'))
  assert.equal(await focus(browser), 'textbox: Sistema')
  const faults = await browser.run(`const described = document.activeElement.getAttribute('aria-describedby')
    return document.getElementById(described).textContent`)
  assert.equal(faults, 'Este campo es obligatorio.')
  await browser.fill('#sistema', 's')
  await browser.fill('#usuario', 'u')
  await browser.fill('#password', 'p'.repeat(70_000))
  await browser.click('#editor .main')
  await browser.until("return document.getElementById('password-fault').textContent === 'Demasiado larga para el " +
    "servicio.'")
  assert.equal(await valueOf(browser, 'sistema'), 's')
  assert.equal(service.store.state.entries.active, 8)
})

inBrowser('changes are discarded only when asked, and not at all while they are saved', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await edit(browser, 'Correo')
  await browser.press(KEYS.escape)
  await browser.until("return document.getElementById('editor') === null")
  await edit(browser, 'Correo')
  await browser.fill('#usuario', 'changed')
  await browser.press(KEYS.escape)
  await browser.find('#confirm')
  assert.equal(await focus(browser), 'button: Seguir editando')
  await browser.press(KEYS.escape)
  assert.equal(await valueOf(browser, 'usuario'), 'changed')
  const release = await holdAnswers(browser)
  await browser.click('#editor .main')
  await browser.until('return held.length === 1')
  await browser.click('#editor .main') // which sends nothing again
  await browser.press(KEYS.escape)
  await browser.run("document.querySelector('#editor .second').click()")
  assert.ok(await isEditing(browser))
  assert.equal(await browser.run("return document.getElementById('confirm')"), null)
  await browser.drawn()
  await release(1)
  await browser.until("return document.getElementById('editor') === null")
  assert.equal(service.store.state.entries.get(1)?.usuario, 'changed')
})

inBrowser('the generator keeps its options in the address, never a password', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await browser.click('#create')
  await browser.click('#generate')
  await browser.run("document.querySelector('input[value=words]').click()")
  await browser.until("return /^[a-z]+(-[a-z]+){5}$/.test(document.getElementById('password').value)")
  assert.match(await textOf(browser, '.field:has(#password)'), /Fuerte/)
  await browser.run("document.querySelector('input[value=capital]').click()")
  await browser.run("document.querySelector('input[value=digit]').click()")
  await browser.until("return /[A-Z]/.test(document.getElementById('password').value) && " +
    "/\\d/.test(document.getElementById('password').value)")
  const phrase = await valueOf(browser, 'password')
  assert.ok(!(await browser.run<string>('return location.href')).includes(phrase))
  await browser.press(KEYS.escape)
  await browser.click('#confirm .danger')
  await browser.reload()
  await browser.click('#create')
  await browser.click('#generate')
  await browser.until("return /[A-Z]/.test(document.getElementById('password').value) && " +
    "/-/.test(document.getElementById('password').value)")
  const first = await valueOf(browser, 'password')
  await browser.click('#generate')
  await browser.until("return document.getElementById('password').value !== arguments[0]", first)
  await browser.fill('#password', 'typed by hand')
  assert.equal(await browser.run("return document.getElementById('generator')"), null, 'what is typed has no options')
})

inBrowser('a generated password is in the field at once; the first Enter or click saves it', EVERYWHERE, async t => {
  const { browser, service } = await openService(t, {}, entries())
  for (const [id, save] of [[1, () => browser.click('#editor .main')], [2, () => browser.press(KEYS.enter)]] as const) {
    await browser.click(id === 1 ? '#blank button' : '#create')
    await browser.fill('#sistema', `s${id}`)
    await browser.fill('#usuario', 'u')
    await browser.click('#generate')
    await browser.until("return document.getElementById('password').value.length === 20")
    const password = await valueOf(browser, 'password')
    await save()
    await until(() => service.store.state.entries.get(id)?.password === password)
    await browser.until("return document.getElementById('editor') === null")
  }
})

inBrowser('a shown password hides itself, in dialog and editor; nothing is asked for before', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await view(browser, 'Banco Central')
  assert.ok(!(await browser.run<string[]>("return performance.getEntriesByType('resource').map(one => " +
    "one.name)")).some(name => name.includes('getPassword')))
  await browser.run(`window.seen = 0
    new MutationObserver(() => { if (/v7#Kq/.test(document.body.textContent)) seen++ })
      .observe(document.body, { subtree: true, childList: true, characterData: true })`)
  await browser.click('#view-password .icon')
  await pass(browser, 60_000)
  await browser.until("return seen > 0 && document.querySelector('.revealed') === null")
  assert.doesNotMatch(await documentOf(browser), /v7#Kq/)
  await browser.press(KEYS.escape)
  await browser.click('#create')
  await browser.fill('#password', 'typed')
  await browser.click('#peek')
  assert.equal(await browser.run("return document.getElementById('peek').ariaPressed"), 'true')
  await pass(browser, 60_000)
  assert.equal(await browser.run("return document.getElementById('peek').ariaPressed"), 'false')
})

inBrowser('address and notes are created, found, shown when asked for, changed and cleared', EVERYWHERE, async t => {
  const { browser, service } = await openService(t, {}, entries(['Otro', 'ana', 'p']))
  await browser.click('#create')
  await browser.fill('#url', 'https://bank.example.com/login')
  await browser.fill('#notas', 'PIN 4711\nsecond line')
  await sendEntry(browser, 'Banco')
  await browser.until("return document.querySelectorAll('#rows .row').length === 2")
  assert.deepEqual({ ...service.store.state.entries.get(2) }, {
    id: 2, password: 'password', sistema: 'Banco', usuario: 'usuario', url: 'https://bank.example.com/login',
    notas: 'PIN 4711\nsecond line', status: 1
  })
  await loadAgain(browser)
  await browser.fill('#query', 'bank.example')
  await view(browser, 'Banco')
  assert.equal(await browser.run("return document.querySelector('#view-url a')?.href"),
    'https://bank.example.com/login')
  assert.doesNotMatch(await documentOf(browser), /PIN 4711/)
  await browser.click('#view-notes button')
  await browser.until("return document.querySelector('#view-notes .code').textContent === 'PIN 4711\\nsecond line'")
  assert.doesNotMatch(await textOf(browser, '#view-notes'), /líneas/, 'two are counted at a glance')
  assert.equal(await (await browser.find('#view-notes button')).name(), 'Ocultar las notas')
  await browser.click('#viewer .end .main')
  await browser.until("return document.getElementById('editor')?.open")
  await browser.click('#change-notas')
  await browser.fill('#notas', '')
  await browser.fill('#url', 'ftp://files.example')
  await browser.click('#editor .main')
  await until(() => service.store.state.entries.get(2)?.url === 'ftp://files.example')
  assert.equal(service.store.state.entries.get(2)?.notas, undefined)
  await browser.until("return document.getElementById('editor') === null")
  await browser.fill('#query', '')
  await view(browser, 'Banco')
  assert.equal(await browser.run("return document.querySelector('#view-url a')"), null,
    'only http and https are opened')
})

inBrowser('an entry of the contract\'s fields alone is sent with them alone', CHROMIUM, async t => {
  const { browser, service } = await openService(t, {}, entries())
  await browser.run(`const real = window.fetch
    window.sent = []
    window.fetch = (url, init) => { if (init?.body) sent.push(JSON.parse(init.body)); return real(url, init) }`)
  await browser.click('#create')
  await sendEntry(browser)
  await until(() => service.store.state.entries.active === 1)
  assert.deepEqual(await browser.run('return sent'), [{ sistema: 'sistema', usuario: 'usuario', password: 'password' }])
  await browser.until("return document.getElementById('editor') === null && document.querySelector('#rows .row')")
  await edit(browser, 'sistema')
  await browser.fill('#usuario', 'other')
  await browser.press(KEYS.enter)
  await browser.until('return sent.length === 2')
  assert.deepEqual(await browser.run('return sent[1]'), { usuario: 'other' })
})

inBrowser('a secret is shown with look-alikes, spaces and what cannot be seen marked', EVERYWHERE, async t => {
  const { browser } = await openService(t, {}, entries(['AAA', 'ana', 'O0l1I| \u0430bc\u202e  ']))
  await view(browser, 'AAA')
  await browser.click('#view-password .icon')
  await browser.find('#viewer .revealed')
  assert.deepEqual(await browser.run(`return ['space', 'digit', 'foreign', 'symbol', 'unseeable'].map(kind =>
    [...document.querySelectorAll('#viewer .' + kind)].map(one => one.textContent).join(''))`),
      ['   ', '01', '\u0430', '|', 'U+202E'])
})

inBrowser('a space is marked by a ground as high as its line, by no character; notes have none', CHROMIUM, async t => {
  const { browser, service } = await openService(t, {}, entries(['AAA', 'ana', 'a b_c']))
  await updateEntry(service.store, 1, { notas: 'one two 3 _ 4' }, null)
  await loadAgain(browser)
  await view(browser, 'AAA')
  await browser.click('#view-password .icon')
  await browser.find('#viewer .revealed')
  const [height, line, image, ground, plain] = await browser.run<[number, number, string, string, string]>(`
    const space = document.querySelector('#viewer .space'), style = getComputedStyle(space)
    const { height } = space.getBoundingClientRect()
    const code = getComputedStyle(space.parentElement)
    return [height, parseFloat(code.fontSize), style.backgroundImage, style.backgroundColor, code.backgroundColor]`)
  assert.ok(height >= line, `${height} of ${line}`)
  assert.equal(image, 'none')
  assert.notEqual(ground, plain)
  await browser.click('#view-notes .icon')
  await browser.until("return document.querySelector('#view-notes .revealed') !== null")
  assert.equal(await browser.run("return document.querySelectorAll('#view-notes .code span').length"), 0)
})

inBrowser('notes have a row if there are any, are copied, and hidden while edited until asked', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await updateEntry(service.store, 1, { notas: 'PIN of the door: 4711' }, null)
  await loadAgain(browser)
  await view(browser, 'Banco Central')
  assert.equal(await browser.run("return document.getElementById('view-notes')"), null)
  await browser.press(KEYS.escape)
  await view(browser, 'Correo')
  await keepCopies(browser)
  await browser.click('#view-notes [data-act=copyNotes]')
  await browser.until("return copied[0] === 'PIN of the door: 4711'")
  await browser.click('#viewer .end .main')
  await browser.find('#show-notas')
  assert.doesNotMatch(await documentOf(browser), /PIN of the door/)
  await browser.click('#show-notas')
  await browser.until("return document.querySelector('#editor .revealed')?.textContent === 'PIN of the door: 4711'")
  await browser.click('#change-notas')
  assert.equal(await valueOf(browser, 'notas'), 'PIN of the door: 4711', 'a change begins with what is there')
  await browser.fill('#notas', 'another PIN')
  await browser.click('#editor .main')
  await until(() => service.store.state.entries.get(1)?.notas === 'another PIN')
})

inBrowser('what a dialog has shown is not held after it is closed', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await view(browser, 'Banco Central')
  await browser.click('#view-password .icon')
  // a driver would hold what it finds
  await browser.until("return document.querySelector('#viewer .revealed') !== null")
  await browser.run("window.shown = new WeakRef(document.querySelector('#view-password .code'))")
  await browser.press(KEYS.escape)
  await browser.until("return document.getElementById('viewer') === null")
  for (let i = 0; i < 20; i++) {
    await browser.drawn()
    await browser.devtools('HeapProfiler.collectGarbage')
    if (await browser.run('return shown.deref() === undefined')) return
  }
  assert.fail('the element with the secret is still held')
})

inBrowser('a double click on a row leaves its entry open', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  const click = [{ type: 'pointerDown', button: 0 }, { type: 'pointerUp', button: 0 }]
  await browser.hover('#rows .system .tile')
  await browser.native.call('act', { actions: [{ type: 'pointer', id: 'mouse', actions: [...click, ...click] }] })
  await browser.find('#viewer')
  await browser.drawn()
  assert.ok(await browser.run("return document.getElementById('viewer')?.open"))
  await browser.hover('#query')
  await browser.native.call('act', { actions: [{ type: 'pointer', id: 'mouse', actions: click }] })
  await browser.until("return document.getElementById('viewer') === null")
})

inBrowser('a double click acts once, whatever comes under the pointer', CHROMIUM, async t => {
  const { browser } = await openService(t)
  const doubleClick = (selector: string): Promise<number> => browser.run(`
    const { x, y, width, height } = document.querySelector(arguments[0]).getBoundingClientRect()
    for (const detail of [1, 2]) {
      document.elementFromPoint(x + width / 2, y + height / 2)
        .dispatchEvent(new MouseEvent('click', { bubbles: true, detail }))
    }
    return document.querySelectorAll('#rows .row').length`, selector)
  for (const left of [7, 6]) assert.equal(await doubleClick('#rows .row:first-child [data-act=remove]'), left)
})
