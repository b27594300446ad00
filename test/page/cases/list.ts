/** The list in the open configuration: search, reveal, delete, and the language. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import {
  CHROMIUM, documentOf, entries, EVERYWHERE, focus, holdAnswers, holdTime, hurry, inBrowser, openService, rowOf, settled,
  systems, textOf, told, until, valueOf
} from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'
import { createEntry, deleteEntry } from '../../../src/store/commands.ts'

inBrowser('an empty service says so, and its first entry is created with the generator', EVERYWHERE, async t => {
  const { browser, service } = await openService(t, {}, entries())
  assert.match(await textOf(browser, '#blank'), /Todavía no hay contraseñas/)
  await createEntry(service.store, { sistema: 'De otra persona', usuario: 'eva', password: 'x' }, null)
  await browser.click('#refresh')
  await browser.find('#rows .row')
  await deleteEntry(service.store, 1, null)
  await browser.click('#refresh')
  await browser.click('#blank button')
  await browser.fill('#sistema', 'Correo')
  await browser.fill('#usuario', 'ana')
  await browser.click('#generate')
  await browser.click('#again')
  const proposed = await textOf(browser, '#proposal')
  assert.match(proposed, /^[!-~]{20}$/)
  await browser.click('#use')
  assert.equal(await valueOf(browser, 'password'), proposed)
  await browser.press(KEYS.enter)
  await browser.until("return !document.getElementById('editor').open")
  await told(browser, 'Contraseña guardada.')
  assert.deepEqual(await systems(browser), ['Correo'])
  assert.deepEqual(JSON.parse(String(service.store.state.entries.text(2))),
    { id: 2, password: proposed, sistema: 'Correo', usuario: 'ana', status: 1 })
  assert.equal(await valueOf(browser, 'password'), '', 'nothing stays in the form')
})

inBrowser('the search takes words of system and user, without case and accents', CHROMIUM, async t => {
  const { browser } = await openService(t)
  assert.deepEqual(await systems(browser), ['Ágora', 'Banco Central', 'Biblioteca municipal', 'Correo', 'GitHub',
    'Impresora', 'Nómina', 'Router de la oficina'])
  for (const [query, hits] of [
    ['nomina', ['Nómina']], ['GARCIA', ['Banco Central', 'GitHub', 'Nómina']], ['cen ana', ['Banco Central']],
    ['zanahoria', []]
  ] as const) {
    await browser.fill('#query', query)
    assert.deepEqual(await systems(browser), hits, query)
  }
  await hurry(browser)
  await browser.fill('#query', 'zanahorias')
  assert.match(await textOf(browser, '#blank'), /Ningún sistema ni usuario contiene «zanahorias»/)
  await browser.until("return document.getElementById('spoken').textContent === 'Sin resultados'")
  await browser.click('#blank button')
  assert.equal((await systems(browser)).length, 8)
  assert.equal(await textOf(browser, '#count'), '8 entradas')
})

inBrowser('a password is hidden until asked for, and hides itself again', CHROMIUM, async t => {
  const { browser } = await openService(t)
  const row = await rowOf(browser, 'Banco Central')
  assert.doesNotMatch(await documentOf(browser), /v7#Kq-92nR_wd/)
  await browser.click(`${row} [data-act=reveal]`)
  await browser.find(`${row} .revealed`)
  assert.equal(await textOf(browser, `${row} .password`), 'v7#Kq-92nR_wd')
  await browser.click(`${row} [data-act=reveal]`)
  assert.doesNotMatch(await documentOf(browser), /v7#Kq-92nR_wd/)
  await hurry(browser)
  await browser.click(`${row} [data-act=reveal]`)
  await browser.until("return !document.querySelector('.revealed')")
})

inBrowser('a deletion can be undone for six seconds, by button and by key, and then takes effect', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await holdTime(browser)
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=remove]`)
  await told(browser, '«Correo» eliminada.')
  assert.ok(!(await systems(browser)).includes('Correo'))
  assert.equal(await textOf(browser, '#count'), '7 entradas')
  assert.equal(await focus(browser), 'rowheader: GitHub', 'the focus goes to the next row')
  await browser.click('#refresh')
  await browser.until("return document.getElementById('refresh').ariaBusy === null")
  assert.ok(!(await systems(browser)).includes('Correo'), 'the list of the service still has it, the page does not show it')
  await browser.click('.message .offer')
  assert.equal(await focus(browser), 'rowheader: Correo')
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=remove]`)
  await browser.click(`${await rowOf(browser, 'Impresora')} [data-act=remove]`)
  await browser.press(KEYS.control, 'z')
  await browser.press(KEYS.control, 'z')
  assert.equal((await systems(browser)).length, 8)
  // Also from where no text is typed.
  for (const place of ['query', 'order']) {
    await browser.click(`${await rowOf(browser, 'Correo')} [data-act=remove]`)
    await browser.run('document.getElementById(arguments[0]).focus()', place)
    await browser.press(KEYS.control, 'z')
    assert.equal((await systems(browser)).length, 8, place)
  }
  assert.equal(service.store.state.entries.active, 8)
  await hurry(browser)
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=remove]`)
  await until(() => service.store.state.entries.get(1)?.status === 0)
})

const leaves = async (t: TestContext, isCut: boolean): Promise<void> => {
  const { browser, service } = await openService(t)
  if (isCut) await browser.run("addEventListener('pagehide', event => event.stopImmediatePropagation(), true)")
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=remove]`)
  await browser.until("return document.querySelectorAll('#rows .row').length === 7")
  assert.equal(service.store.state.entries.get(1)?.status, 1)
  await browser.go('about:blank')
  await until(() => service.store.state.entries.get(1)?.status === 0)
}

inBrowser('leaving the page carries out what was deleted', EVERYWHERE, t => leaves(t, false))

// Firefox does that at times to a page that is left for another site.
inBrowser('leaving the page carries it out also where its scripts end before pagehide', ['chromium', 'firefox'], t => leaves(t, true))

inBrowser('a page that is hidden carries out what was deleted, and offers no longer to undo it', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await browser.run('const real = setTimeout; window.setTimeout = (f, ms, ...rest) => ms === 6000 ? 0 : real(f, ms, ...rest)')
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=remove]`)
  await told(browser, '«Correo» eliminada.')
  const release = await holdAnswers(browser)
  // As on a phone, where another program comes to the front and the page may be ended without a word.
  await browser.run(`Object.defineProperty(document, 'hidden', { configurable: true, value: true })
    document.dispatchEvent(new Event('visibilitychange'))`)
  await until(() => service.store.state.entries.get(1)?.status === 0)
  assert.equal(await browser.run("return document.querySelector('.message .offer') !== null"), false)
  await browser.press(KEYS.control, 'z')
  assert.ok(!(await systems(browser)).includes('Correo'), 'nor by key')
  await release(1)
})

inBrowser('a deletion that fails brings the entry back and says so', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  Object.assign(service.store, { commit: () => Promise.reject(new Error('broken')) })
  await hurry(browser)
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=remove]`)
  await browser.until("return document.querySelectorAll('#rows .row').length === 8")
})

inBrowser('what was just created is in sight, focused and marked, also while a search hides it', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  for (let i = 0; i < 60; i++) await createEntry(service.store, { sistema: `M ${i}`, usuario: 'u', password: 'p' }, null)
  await browser.fill('#query', 'correo')
  await browser.click('#create')
  for (const [name, text] of [['sistema', 'Zeta'], ['usuario', 'ana'], ['password', 'p']] as const) await browser.fill(`#${name}`, text)
  await browser.press(KEYS.enter)
  await browser.until("return document.activeElement.textContent === 'Zeta'")
  assert.equal(await valueOf(browser, 'query'), '')
  const [top, bottom, isMarked] = await browser.run<[number, number, boolean]>(`
    const row = document.activeElement.closest('.row'), box = row.getBoundingClientRect()
    return [box.top, innerHeight - box.bottom, row.classList.contains('new')]`)
  assert.ok(top > 0 && bottom > 0 && isMarked, `${top} ${bottom} ${isMarked}`)
})

inBrowser('sorted by system, by user, or newest first, numbers by their value, and grouped', CHROMIUM, async t => {
  const { browser } = await openService(t, {},
    entries(['srv 10', 'a2', 'p'], ['srv 9', 'a10', 'p'], ['SRV 9', 'a1', 'p'], ['alfa', 'z', 'p']))
  const users = (): Promise<string[]> => browser.run("return [...document.querySelectorAll('#rows .user bdi')].map(one => one.textContent)")
  const sort = (order: string): Promise<unknown> => browser.run(`
    const select = document.getElementById('order')
    select.value = arguments[0]
    select.dispatchEvent(new Event('change'))`, order)
  assert.deepEqual(await users(), ['z', 'a1', 'a10', 'a2'])
  await sort('usuario')
  assert.deepEqual(await users(), ['a1', 'a2', 'a10', 'z'])
  await sort('newest')
  assert.deepEqual(await users(), ['z', 'a1', 'a10', 'a2'])
  await browser.click('#group')
  assert.deepEqual(await browser.run("return [...document.querySelectorAll('#rows > *')].map(one => one.innerText.split('\\n')[0].trim())"),
    ['A', 'SRV 9 2', 'S', 'S', 'S'], 'a heading only where there is more than one')
  await browser.reload()
  await browser.find('#rows .group')
  assert.equal(await valueOf(browser, 'order'), 'newest', 'a reload keeps it')
})

inBrowser('a system that is a web address opens in a new tab, without a referrer and without a password in it', CHROMIUM, async t => {
  const { browser } = await openService(t, {}, entries(...[
    'https://one.example/x?y', 'http://ana:secret@two.example/', 'javascript:alert(1)', 'https:three', 'ftp://four.example'
  ].map(sistema => [sistema, 'u', 'p'] as const)))
  assert.deepEqual(await browser.run(`return [...document.querySelectorAll('#rows .visit a')].filter(one => one.checkVisibility())
    .map(one => [one.href, one.target, one.rel, one.referrerPolicy, one.ariaLabel])`), [
    ['https://one.example/x?y', '_blank', 'noopener noreferrer', 'no-referrer', 'Abrir https://one.example/x?y en otra pestaña']])
})

inBrowser('a click on a row or Enter opens its entry, unless somebody else has deleted it', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await browser.click(`${await rowOf(browser, 'Correo')} .user`)
  const isSeen = "return document.getElementById('viewer').open && document.getElementById('viewer-title').textContent === 'Correo'"
  await browser.until(isSeen)
  await browser.press(KEYS.escape)
  await browser.until("return !document.getElementById('viewer').textContent.includes('ana@example.org')")
  await browser.press(KEYS.enter)
  await browser.until(isSeen)
  await browser.press(KEYS.escape)
  const row = await rowOf(browser, 'Ágora')
  await deleteEntry(service.store, 7, null)
  await browser.click(`${row} [data-act=edit]`)
  await browser.until("return /Otra persona ha eliminado/.test(document.getElementById('messages').textContent)")
  assert.ok(!(await systems(browser)).includes('Ágora'))
})

inBrowser('the language is the browser\'s, and switched by a button, also across a reload', CHROMIUM, async t => {
  const { browser } = await openService(t)
  const seen = (): Promise<string> => browser.run('return document.documentElement.lang + document.title')
  assert.equal(await seen(), 'esContraseñas')
  await browser.click('[data-language=en]')
  assert.equal(await seen(), 'enPasswords')
  assert.equal(await textOf(browser, '#count'), '8 entries')
  assert.equal(await (await browser.find('#rows [data-act=copy]')).name(), 'Copy password of Ágora')
  await browser.reload()
  await settled(browser)
  assert.equal(await seen(), 'enPasswords')
  await browser.click('[data-language=es]')
  assert.equal(await seen(), 'esContraseñas')
})

