/** What the page does when the service fails, asks to wait, or is not there. */
import assert from 'node:assert/strict'
import { deleteEntry } from '../../../src/entries/entry-commands.ts'
import { Failure } from '../../../src/errors.ts'
import {
  CHROMIUM, createEntry, edit, EVERYWHERE, holdAnswers, inBrowser, isEditing, openPage, openService, pass, rowOf,
  systems, textOf, told, until, valueOf
} from '../../support/page.ts'
import { startService } from '../../support/service.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'

inBrowser('429: the waiting time counts down, and then the page may ask again', CHROMIUM, async t => {
  const { url } = await startService(t, { 'page': 'on', 'rate-limit': '1', 'journal': 'memory' })
  await fetch(`${url}/api/listPassword`)
  const browser = await openPage(t, url)
  assert.match(await textOf(browser, '#notice'), /Demasiadas peticiones[^]*Espera \d+ s/)
  assert.equal(await browser.run("return document.querySelector('#notice button').ariaDisabled"), 'true')
  await browser.run('const now = performance.now.bind(performance); performance.now = () => now() + 70000')
  await browser.until("return /Ya puedes/.test(document.querySelector('#notice').textContent)")
  await browser.run(`window.fetch = async () => new Response('[]')`)
  await browser.click('#notice button')
  await browser.find('#blank')
})

inBrowser('the status of a proxy\'s page is not the service\'s word, but its limit is', CHROMIUM, async t => {
  const { browser } = await openService(t)
  const row = await rowOf(browser, 'Correo')
  for (const [status, said] of [
    [429, /^Demasiadas peticiones. Espera (20|19) s/], [503, /^El servicio está ocupado. Espera (20|19) s/],
    [403, /^Algo ha fallado. Respuesta: HTTP 403/], [401, /^Algo ha fallado. Respuesta: HTTP 401/],
    [404, /^Algo ha fallado. Respuesta: HTTP 404/], [200, /^Algo ha fallado. Respuesta: HTTP 200/]
  ] as const) {
    await browser.run(`const [status] = arguments
      window.fetch = async () => new Response('<html>no JSON</html>', { status, headers: { 'Retry-After': '20' } })`,
        status)
    await browser.click(`${row} [data-act=edit]`)
    await browser.until("return document.querySelector('.message')")
    assert.match(await textOf(browser, '.message span'), said)
    await browser.click('.message .icon')
    assert.equal((await systems(browser)).length, 8, `${status}`)
  }
})

inBrowser('a page that finds no service says so, and asks again', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await browser.run("window.realFetch = window.fetch; window.fetch = () => Promise.reject(new TypeError('lost'))")
  await browser.click('#refresh')
  await pass(browser, 3_000)
  await told(browser, 'El servicio no responde')
  assert.equal((await systems(browser)).length, 8, 'what is shown stays')
  await browser.run('window.fetch = realFetch')
  await browser.click('.message .offer')
  await browser.until("return document.getElementById('spoken').textContent === 'Lista actualizada'")
})

inBrowser('deleted entries that cannot be read are not said to be none, and are asked for again', CHROMIUM, async t => {
  const { browser, service } = await openService(t, { 'extra-routes': 'on' })
  await deleteEntry(service.store, 1, null)
  await browser.run(`window.realFetch = window.fetch
    window.fetch = () => new Promise((_, fail) => { window.lose = fail })`)
  await browser.click('header .to-deleted')
  assert.match(await textOf(browser, 'main'), /Eliminadas\s+Cargando/)
  await browser.run("lose(new TypeError('lost'))")
  await browser.find('#notice')
  assert.match(await textOf(browser, 'main'), /^\s*El servicio no responde/)
  await browser.run('window.fetch = realFetch')
  await browser.click('#notice button')
  await browser.until("return document.querySelectorAll('#rows .row').length === 1")
  await browser.click('#back')
  await browser.find('#refresh')
})

/** Makes the next requests for an operation fail: after the service has done it, or before. */
const lose = (browser: Browser, operation: string, isDone: boolean, times: number = 1): Promise<unknown> =>
  browser.run(`
  const [operation, isDone] = arguments, real = window.fetch
  let left = arguments[2]
  window.fetch = async (url, init) => {
    if (!String(url).includes(operation) || left-- <= 0) return real(url, init)
    if (isDone) await real(url, init)
    throw new TypeError('lost')
  }`, operation, isDone, times)

inBrowser('a create whose answer was lost is looked for before the page reports a failure', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await lose(browser, 'createPassword', true)
  await createEntry(browser)
  await pass(browser, 1_000)
  await browser.until("return document.getElementById('editor') === null && document.querySelectorAll('#rows " +
    ".row').length === 9")
  await lose(browser, 'createPassword', false)
  await createEntry(browser)
  await pass(browser, 1_000)
  await browser.until("return /No se ha guardado. Puedes guardar de nuevo/.test(document.querySelector('#editor " +
    ".alert').textContent)")
  await browser.press(KEYS.enter)
  await until(() => service.store.state.entries.active === 10)
})

inBrowser('while the list cannot be read too, saving again checks first and makes no duplicate', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await lose(browser, 'listEntries', false, 2)
  await lose(browser, 'createPassword', true)
  await createEntry(browser)
  await pass(browser, 1_000)
  await browser.until("return /No se sabe si se guardó/.test(document.querySelector('#editor .alert').textContent)")
  await browser.press(KEYS.enter)
  await browser.until("return /Sigue sin poderse leer/.test(document.querySelector('#editor .alert').textContent)")
  await browser.press(KEYS.enter)
  await browser.until("return document.getElementById('editor') === null")
  assert.equal(service.store.state.entries.active, 9)
})

inBrowser('an update or a deletion whose answer was lost is checked, and not reported as failed', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await lose(browser, 'updatePassword', true)
  await edit(browser, 'Correo')
  await browser.fill('#usuario', 'otra')
  await browser.press(KEYS.enter)
  await browser.until("return document.getElementById('editor') === null")
  assert.equal(service.store.state.entries.get(1)?.usuario, 'otra')
  await lose(browser, 'deletePassword', true)
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=remove]`)
  await told(browser, 'Eliminada: Correo')
  await lose(browser, 'deletePassword', false)
  await browser.click(`${await rowOf(browser, 'GitHub')} [data-act=remove]`)
  await told(browser, '«GitHub» no se ha eliminado')
  assert.ok((await systems(browser)).includes('GitHub'))
})

inBrowser('503 asks to wait in the form, and long work is shown', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  Object.assign(service.store, { commit: () => Promise.reject(new Failure('queue-full', 'full')) })
  await createEntry(browser)
  await browser.until("return /^El servicio está ocupado. Espera 1 s/.test(document.querySelector('#editor " +
    ".alert').textContent)")
  assert.equal(await valueOf(browser, 'sistema'), 'sistema')
  await browser.press(KEYS.escape)
  await browser.click('#confirm .danger')
  const release = await holdAnswers(browser)
  await browser.click('#refresh')
  const row = await rowOf(browser, 'Correo')
  await browser.click(`${row} [data-act=edit]`)
  assert.deepEqual(await browser.run(`return [document.getElementById('refresh'), document.querySelector(arguments[0])]
    .map(one => one.ariaBusy)`, `${row} [data-act=edit]`), ['true', 'true'])
  await release(2)
  await browser.until("return document.getElementById('editor')?.open && document.getElementById('refresh').ariaBusy " +
    "=== null")
  assert.ok(await isEditing(browser))
})
