/** What the page does when the service fails, or asks to wait. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { disk } from '../../../src/journal/files.ts'
import { Failure } from '../../../src/errors.ts'
import { pageRoutes } from '../../../src/parts/page/page-routes.ts'
import { atEnd } from '../../support/service.ts'
import { composeService } from '../../support/compose.ts'
import { FaultyFiles } from '../../support/faulty-files.ts'
import {
  CHROMIUM, createEntry, edit, holdAnswers, hurryCheck, inBrowser, isEditing, openPage, openService, rowOf, sendEntry,
  settled, systems, textOf, told, valueOf, view
} from '../../support/page.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'
import { createEntry as create } from '../../../src/store/commands.ts'

inBrowser('429: the waiting time counts down, and then the page may ask again', CHROMIUM, async t => {
  let nowMs = 0
  const { browser, store } = await composed(t, { rateLimit: 1, nowMs: () => nowMs })
  await create(store, { sistema: 's', usuario: 'u', password: 'p' }, null)
  nowMs = 54_000
  await browser.reload()
  await settled(browser)
  assert.match(await textOf(browser, '#notice'), /Demasiadas peticiones[^]*Espera [1-7] s/)
  assert.equal(await browser.run("return document.querySelector('#notice button').ariaDisabled"), 'true')
  nowMs = 62_000
  await browser.until("return /Ya puedes/.test(document.querySelector('#notice p').textContent)")
  await browser.click('#notice button')
  await browser.find('#rows .row')
  assert.equal(await browser.run('return document.activeElement === document.body'), false)
  // In the dialog as well; what was typed is still there.
  await createEntry(browser)
  await browser.find('#editor .alert')
  const [, seconds] = /Demasiadas peticiones. Espera (\d+) s/.exec(await textOf(browser, '#editor .alert'))!
  assert.ok(Number(seconds) > 1, 'as long as the service said')
  assert.equal(await browser.run("return document.querySelector('#editor .end .main').ariaDisabled"), 'true')
  assert.equal(await valueOf(browser, 'sistema'), 'sistema')
  // What goes wrong next is not covered by the countdown of what did before.
  await browser.press(KEYS.escape)
  await browser.click('#discard')
  const fails = async (why: string): Promise<void> => {
    await browser.click('#refresh')
    await browser.until("return document.getElementById('notice').dataset.why === arguments[0]", why)
  }
  await fails('limited')
  await browser.run('window.fetch = () => Promise.reject(new Error())')
  await fails('lost')
  await new Promise(resolve => setTimeout(resolve, 1_100))
  assert.match(await textOf(browser, '#notice'), /no responde/)
  // Nor is a list that ends early taken for a whole one, nor for none what a proxy says in its place.
  for (const text of ['[{}', '<!--[if IE]><![endif]-->', '{"errors":[]}']) {
    await browser.run('const [text] = arguments; window.fetch = async () => new Response(text)', text)
    await fails('lost')
  }
})

inBrowser('the status of an answer counts also where a proxy has put its own page in the place of what the service says', CHROMIUM, async t => {
  const { browser } = await openService(t)
  const row = await rowOf(browser, 'Correo')
  for (const [status, said] of [
    [429, /^Demasiadas peticiones. Espera (20|19) s/], [503, /^El servicio está ocupado. Espera (20|19) s/],
    [403, /^El servicio ha fallado. Respondió: 403/],
    // Neither is there no entry, nor is it gone, nor has the session ended.
    [401, /^El servicio ha fallado. Respondió: 401/],
    [404, /^El servicio ha fallado. Respondió: 404/], [200, /^El servicio no responde/]
  ] as const) {
    await browser.run(`const [status] = arguments
      window.fetch = async () => new Response('<html>no JSON</html>', { status, headers: { 'Retry-After': '20' } })`, status)
    await browser.click(`${row} [data-act=edit]`)
    await browser.until("return document.querySelectorAll('.message').length === 1")
    assert.match(await textOf(browser, '.message span'), said)
    await browser.click('.message .dismiss')
    await browser.click('#refresh')
    await browser.until("return document.getElementById('notice').checkVisibility()")
    assert.match((await textOf(browser, '#notice')).replace(/\n+/, '. '), said)
    assert.equal((await systems(browser)).length, 8, `${status}`)
    await browser.click(`${row} [data-act=remove]`)
    await browser.click('.message .dismiss')
    await browser.until("return document.querySelector('.message')?.textContent.includes('no se eliminó')")
    await browser.click('.message .dismiss')
  }
})

inBrowser('without a connection the page says so and shows nothing stored, also when opened, until it is back', CHROMIUM, async t => {
  const { browser, url } = await openService(t)
  const network = (isThere: boolean): Promise<unknown> => browser.devtools('Network.emulateNetworkConditions',
    { offline: !isThere, latency: 0, downloadThroughput: -1, uploadThroughput: -1 })
  await browser.devtools('Network.enable')
  atEnd(t, async () => { await network(true) })
  for (const open of [async () => {}, () => view(browser, 'Correo'), () => browser.click('#show-trash')]) {
    await open()
    await network(false)
    await browser.find('#notice')
    assert.match(await textOf(browser, '#notice'), /Sin conexión/)
    assert.equal((await systems(browser)).length, 0)
    assert.equal(await browser.run("return document.querySelectorAll('dialog[open]').length"), 0)
    await network(true)
    await browser.until("return document.getElementById('notice').hidden && document.querySelectorAll('#rows .row').length === 8")
  }
  // There is no worker that would answer: the browser says itself that there is no connection.
  await network(false)
  await browser.go(`${url}/?lang=es`).catch(() => {})
  assert.doesNotMatch(await browser.run('return document.documentElement.innerText'), /Banco Central/)
  assert.equal(await browser.run("return document.getElementById('rows')"), null)
})

inBrowser('a failure is shown with the id of its request, and in the dialog', CHROMIUM, async t => {
  const faulty = new FaultyFiles()
  const { browser, store } = await composed(t, { files: faulty.files })
  await browser.click('#blank button')
  for (const name of ['sistema', 'usuario', 'password']) await browser.fill(`#${name}`, name)
  await hurryCheck(browser)
  faulty.fail({ at: 1, of: 'append', code: 'ENOSPC', forGood: true })
  await browser.press(KEYS.enter)
  await browser.find('#editor .alert')
  assert.match(await textOf(browser, '#editor .alert'), /El servicio ha fallado. Respondió: Error creating password. No se guardó/)
  faulty.heal()
  await browser.press(KEYS.enter)
  await browser.until("return !document.getElementById('editor').open")
  const { entries } = store.state
  Object.assign(entries, { list: () => { Reflect.deleteProperty(entries, 'list'); throw new Error('broken') } })
  await browser.click('#refresh')
  await browser.find('#notice')
  assert.match(await textOf(browser, '#notice'), /Server Error · Petición [0-9a-f-]{36}/)
})

/** Makes the next request for an operation fail: after the service has done it, or before. */
const lose = (browser: Browser, operation: string, isDone: boolean, times: number = 1): Promise<unknown> => browser.run(`
  const [operation, isDone] = arguments, real = window.fetch
  let left = arguments[2]
  window.fetch = async (url, init) => {
    if (!String(url).includes(operation) || left-- <= 0) return real(url, init)
    if (isDone) await real(url, init)
    throw new TypeError('lost')
  }`, operation, isDone, times)

inBrowser('a create whose answer was lost is looked for before the page reports a failure', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await hurryCheck(browser)
  await lose(browser, 'createPassword', true)
  await createEntry(browser)
  await told(browser, 'El servicio no respondió, pero la contraseña se guardó.')
  assert.equal(await isEditing(browser), false)
  assert.equal(service.store.state.entries.active, 9)
  await lose(browser, 'createPassword', false)
  await createEntry(browser)
  await browser.until("return /No se guardó. Puedes guardar de nuevo/.test(document.querySelector('#editor .alert').textContent)")
  await browser.press(KEYS.enter)
  await told(browser, 'Contraseña guardada.')
  assert.equal(service.store.state.entries.active, 10)
})

inBrowser('while the list cannot be read either, saving again checks first and makes no duplicate', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await hurryCheck(browser)
  await lose(browser, 'listPassword', false, 2)
  await lose(browser, 'createPassword', true)
  await createEntry(browser)
  await browser.until("return /No se sabe si se guardó/.test(document.querySelector('#editor .alert').textContent)")
  await browser.press(KEYS.enter)
  await browser.until("return /Sigue sin poderse leer/.test(document.querySelector('#editor .alert').textContent)")
  await browser.press(KEYS.enter)
  await told(browser, 'El servicio no respondió, pero')
  assert.equal(service.store.state.entries.active, 9)
})

inBrowser('what is typed after a create of which nothing is known was given up is an entry of its own', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await hurryCheck(browser)
  await lose(browser, 'listPassword', false)
  await lose(browser, 'createPassword', true)
  await createEntry(browser)
  await browser.until("return /No se sabe si se guardó/.test(document.querySelector('#editor .alert').textContent)")
  await browser.press(KEYS.escape)
  await browser.click('#discard')
  await browser.until("return !document.getElementById('editor').open")
  await browser.click('#create')
  await sendEntry(browser, ' of the next one')
  await told(browser, 'Contraseña guardada.')
  assert.deepEqual([9, 10].map(id => service.store.state.entries.get(id)?.sistema), ['sistema', 'sistema of the next one'])
})

inBrowser('an update whose answer was lost is checked, and not reported as failed', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await lose(browser, 'updatePassword', true)
  await edit(browser, 'Correo')
  await browser.fill('#usuario', 'otra')
  await browser.press(KEYS.enter)
  await told(browser, 'Cambios guardados.')
  assert.equal(service.store.state.entries.get(1)?.usuario, 'otra')
})

inBrowser('503 is not shown as too many requests, and long work is shown', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  Object.assign(service.store, { commit: () => Promise.reject(new Failure('queue-full', 'full')) })
  await createEntry(browser)
  await browser.until("return /^El servicio está ocupado. Espera 1 s/.test(document.querySelector('#editor .alert').textContent)")
  await browser.press(KEYS.escape)
  await browser.click('#discard')
  const row = await rowOf(browser, 'Correo')
  const release = await holdAnswers(browser)
  await browser.click('#refresh')
  await browser.click(`${row} [data-act=edit]`)
  assert.deepEqual(await browser.run(`return [document.getElementById('refresh').ariaBusy, document.querySelector(arguments[0]).ariaBusy]`,
    `${row} [data-act=edit]`), ['true', 'true'])
  await release(2)
  await browser.until("return document.getElementById('editor').open && document.getElementById('refresh').ariaBusy === null")
})

async function composed(
  t: TestContext, options: Parameters<typeof composeService>[1]
): Promise<Awaited<ReturnType<typeof composeService>> & { readonly browser: Browser }> {
  const service = await composeService(t, { routes: pageRoutes(disk, () => []), ...options })
  const browser = await openPage(t, service.url)
  return { ...service, browser }
}
