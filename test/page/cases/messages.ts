/** What is told in passing: each message has its time, waits while it is used, and is within reach in dialogs too. */
import assert from 'node:assert/strict'
import { ANA } from '../../support/accounts.ts'
import {
  CHROMIUM, edit, EVERYWHERE, focus, holdTime, inBrowser, keepCopies, logIn, openProtected, openService, rowOf,
  systems, textOf, told, until, view
} from '../../support/page.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'
import { createEntry, deleteEntry } from '../../../src/store/commands.ts'

const offers = (browser: Browser): Promise<number> =>
  browser.run("return [...document.querySelectorAll('.message .offer')].filter(one => one.checkVisibility()).length")

inBrowser('each deletion keeps its own way back until its time is over, whatever else is told', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  const timeIsOver = await holdTime(browser)
  for (const system of ['Correo', 'Impresora']) await browser.click(`${await rowOf(browser, system)} [data-act=remove]`)
  assert.equal(await focus(browser), 'rowheader: Nómina', 'the focus goes to the next row')
  await browser.click(`${await rowOf(browser, 'Ágora')} [data-act=copyUser]`)
  await browser.until("return document.querySelectorAll('.message').length === 3")
  assert.equal(await offers(browser), 2)
  await browser.click('.message .offer')
  await browser.until("return document.querySelectorAll('#rows .row').length === 7")
  assert.ok((await systems(browser)).includes('Correo'), 'the first one comes back, and not the newest')
  assert.equal(await focus(browser), 'rowheader: Correo')
  assert.equal(service.store.state.entries.active, 8)
  await browser.hover('#query')
  await timeIsOver()
  await until(() => service.store.state.entries.active === 7)
  assert.equal(service.store.state.entries.get(6)?.status, 0)
  assert.equal(await browser.run("return document.querySelectorAll('.message').length"), 0)
})

inBrowser('a double click acts once: it deletes one entry, or takes one deletion back, whatever comes under the pointer', CHROMIUM, async t => {
  const { browser } = await openService(t)
  const doubleClick = (selector: string): Promise<number> => browser.run(`
    const { x, y, width, height } = document.querySelector(arguments[0]).getBoundingClientRect()
    for (const detail of [1, 2]) {
      document.elementFromPoint(x + width / 2, y + height / 2).dispatchEvent(new MouseEvent('click', { bubbles: true, detail }))
    }
    return document.querySelectorAll('#rows .row').length`, selector)
  for (const left of [7, 6]) assert.equal(await doubleClick('#rows .row:first-child [data-act=remove]'), left)
  assert.equal(await doubleClick('.message .offer'), 7)
})

inBrowser('a message waits while the focus or the pointer is on it', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  const timeIsOver = await holdTime(browser)
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=remove]`)
  await browser.run("document.querySelector('.message .offer').focus()")
  for (let i = 0; i < 3; i++) await timeIsOver()
  assert.equal(await offers(browser), 1)
  assert.equal(service.store.state.entries.active, 8)
  await browser.run("document.getElementById('query').focus()")
  // WebKit's driver does not answer when the pointer moves onto one.
  if (browser.native.prefer !== undefined) {
    await browser.hover('.message span')
    await timeIsOver()
    assert.equal(await offers(browser), 1, 'the pointer is on it')
    await browser.hover('#query')
  }
  await timeIsOver()
  await until(() => service.store.state.entries.active === 7)
})

inBrowser('a deletion that the end of the session was in the way of is told to whom it was to be done for', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  const remove = async (system: string = 'Correo'): Promise<void> =>
    browser.click(`${await rowOf(browser, system)} [data-act=remove]`)
  const isAtLogin = "return document.getElementById('login').hidden === false"
  const answer = (how: string): Promise<unknown> => browser.run(`const real = window.fetch
    window.fetch = (url, init) => String(url).includes('deletePassword') ? ${how} : real(url, init)`)
  await logIn(browser)
  const timeIsOver = await holdTime(browser)
  await remove()
  await service.accounts!.revokeAll(ANA)
  await timeIsOver()
  await browser.until(isAtLogin)
  assert.equal(await browser.run("return document.querySelectorAll('.message').length"), 0, 'nobody else sees its name')
  await logIn(browser)
  await told(browser, '«Correo» no se eliminó.')
  // What was done all the same, its answer too late, is not told.
  await answer('real(url, init).then(() => new Promise(() => {}))')
  await remove('GitHub')
  await timeIsOver()
  await until(() => service.store.state.entries.active === 7)
  await remove()
  await service.accounts!.revokeAll(ANA)
  await browser.click('#refresh')
  await browser.until(isAtLogin)
  await logIn(browser)
  await told(browser, '«Correo» no se eliminó.')
  assert.equal(await browser.run("return document.querySelectorAll('.message').length"), 1)
  // Refused while the person logs out.
  await answer("Promise.resolve(new Response('{}', { status: 429, headers: { 'Retry-After': '30' } }))")
  await remove()
  await browser.click('#logout')
  await browser.until("return document.getElementById('login-note').textContent === 'Has salido.'")
  await told(browser, '«Correo» no se eliminó.')
  assert.equal(service.store.state.entries.active, 7)
  // While the page locks itself.
  await logIn(browser)
  await remove()
  await browser.run(`const now = Date.now
    Date.now = () => now() + 606000
    document.dispatchEvent(new Event('visibilitychange'))`)
  await browser.until("return document.getElementById('login-note').textContent.startsWith('La sesión se ha cerrado')")
  assert.equal(await browser.run("return document.querySelectorAll('.message').length"), 0)
  await logIn(browser)
  await told(browser, '«Correo» no se eliminó.')
  // A service that is silent.
  await answer('new Promise(() => {})')
  await remove()
  await browser.click('#logout')
  await browser.until("return document.getElementById('loading').innerText === 'Saliendo…'")
  assert.equal(await browser.run('return document.activeElement.id'), 'help')
})

inBrowser('in a dialog messages can be read out and used, and the key undoes there too', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await holdTime(browser)
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=remove]`)
  await browser.click(`${await rowOf(browser, 'Impresora')} [data-act=remove]`)
  await browser.click('#help')
  await browser.until("return document.getElementById('more').contains(document.getElementById('status'))")
  await browser.click('.message .offer')
  await browser.until("return document.querySelectorAll('#rows .row').length === 7")
  assert.ok(await browser.run("return document.getElementById('more').contains(document.activeElement)"), 'the focus stays in the dialog')
  await browser.press(KEYS.control, 'z')
  await browser.until("return document.querySelectorAll('#rows .row').length === 8")
  await browser.press(KEYS.escape)
  await browser.until("return document.getElementById('status').parentElement === document.body")
  assert.notEqual(await focus(browser), '', 'the focus is somewhere')
  assert.equal(await browser.run('return document.activeElement === document.body'), false)
})

inBrowser('the countdown to the lock is seen and read out in a dialog, twice and not each second', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await view(browser, 'Correo')
  await browser.run(`const now = window.Date.now
    window.Date.now = () => now() + 9.01 * 60000
    window.spoken = []
    new MutationObserver(() => spoken.push(document.getElementById('spoken').textContent))
      .observe(document.getElementById('spoken'), { childList: true })`)
  await browser.until("return /se bloqueará en 5\\d s/.test(document.querySelector('#viewer #idle')?.innerText)")
  assert.ok((await browser.run<string[]>('return spoken')).length <= 1)
})

inBrowser('deleted by mistake: in the default configuration it is found and restored', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  const timeIsOver = await holdTime(browser)
  await view(browser, 'Correo')
  await browser.click('#viewer [data-act=remove]')
  await told(browser, '«Correo» eliminada.')
  await browser.hover('#query')
  await timeIsOver()
  await until(() => service.store.state.entries.get(1)?.status === 0)
  assert.equal(await focus(browser), 'rowheader: GitHub')
  await browser.click('#show-trash')
  await browser.find('#deleted button')
  assert.equal(await textOf(browser, '#deleted-count'), 'Eliminadas: 1, las más recientes primero')
  await browser.click('#deleted button')
  await told(browser, '«Correo» restaurada.')
  assert.equal(service.store.state.entries.get(1)?.status, 1)
  // It failed once in Firefox, which nothing explains so far: a failure says what has the focus, and what else may be the cause.
  await browser.until("return document.getElementById('trash').contains(document.activeElement)").catch(async () => {
    const state = await browser.run(`return [document.activeElement?.outerHTML.slice(0, 200), document.hasFocus(), navigator.onLine,
      [...document.querySelectorAll('dialog[open]')].map(one => one.id)]`)
    assert.fail(`the focus is not in the dialog: ${JSON.stringify(state)}`)
  })
  await browser.press(KEYS.escape)
  assert.ok((await systems(browser)).includes('Correo'))
})

inBrowser('of deleted entries that several answers hold each can be found, and all of them seen', CHROMIUM, async t => {
  const many = 2_400
  const { browser } = await openService(t, {}, async store => {
    const usuario = 'u'.repeat(1_000)
    const ids = Array.from({ length: many }, (_, i) => i + 1)
    await Promise.all(ids.map(i => createEntry(store, { sistema: `Viejo ${i}`, usuario, password: 'p' }, null)))
    await Promise.all(ids.map(i => deleteEntry(store, i, null)))
  })
  await browser.click('#show-trash')
  await browser.until("return document.getElementById('deleted-count').textContent.startsWith('Eliminadas: 2400')")
  assert.equal(await browser.run("return document.querySelectorAll('#deleted li').length"), 100)
  await browser.click('#more-deleted')
  assert.equal(await browser.run("return document.querySelectorAll('#deleted li').length"), 200)
  assert.equal(await focus(browser), `button: Restaurar Viejo ${many - 100}`)
  await browser.fill('#trash-query', 'viejo 11')
  const hits = Array.from({ length: many }, (_, i) => i + 1).filter(i => `${i}`.includes('11')).length
  for (let shown = 100; shown < hits; shown += 100) await browser.click('#more-deleted')
  assert.equal(await browser.run("return document.querySelectorAll('#deleted li').length"), hits)
  await browser.run("document.querySelector('#deleted li:last-child button').click()")
  await told(browser, '«Viejo 11» restaurada.')
  assert.equal(await browser.run("return document.querySelectorAll('#deleted li').length"), hits - 1)
  await browser.run("document.getElementById('trash-query').focus()")
  await browser.press(KEYS.escape)
  assert.equal(await browser.run("return document.querySelectorAll('#deleted li').length"), Math.ceil(hits / 100) * 100, 'all again')
})

inBrowser('who stays on a page with unsaved work has changed nothing by trying to leave', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await holdTime(browser)
  await keepCopies(browser)
  await browser.click(`${await rowOf(browser, 'GitHub')} [data-act=copy]`)
  await told(browser, 'Copiada')
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=remove]`)
  await edit(browser, 'Nómina')
  await browser.fill('#usuario', 'typed')
  const isAsked = await browser.run("return !dispatchEvent(new Event('beforeunload', { cancelable: true }))")
  assert.ok(isAsked)
  assert.equal(await offers(browser), 1)
  assert.equal(service.store.state.entries.active, 8)
  assert.deepEqual(await browser.run('return window.copied'), ['ghp-no-es-esto'], 'the clipboard is not emptied')
  await browser.press(KEYS.escape)
  await browser.click('#discard')
})

inBrowser('in the protected configuration nothing is asked without a token, and no error is logged', CHROMIUM, async t => {
  const { browser } = await openProtected(t)
  const asked = await browser.run<string[]>("return performance.getEntriesByType('resource').map(one => one.name)")
  assert.deepEqual(asked.filter(name => name.includes('/api/')), [])
  await logIn(browser)
  assert.equal((await systems(browser)).length, 8)
})
