/** The list: search, order, hosts, what comes with the list without secrets, and the language. */
import assert from 'node:assert/strict'
import { createEntry as storeEntry, deleteEntry, updateEntry } from '../../../src/entries/entry-commands.ts'
import {
  CHROMIUM, createEntry, documentOf, entries, EVERYWHERE, focus, holdAnswers, inBrowser, loadAgain, openService, remove,
  rowOf, settled, systems, textOf, told, valueOf
} from '../../support/page.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'

const users = (browser: Browser): Promise<string[]> =>
  browser.run("return [...document.querySelectorAll('#rows .user bdi')].map(one => one.textContent)")

inBrowser('an empty service says so and that it is open; a first entry comes by the generator', EVERYWHERE, async t => {
  const { browser, service } = await openService(t, {}, entries())
  assert.match(await textOf(browser, '#blank'), /Todavía no hay contraseñas\s+Abierto: cualquiera[^]*admin import FILE/)
  assert.equal(await browser.run("return document.getElementById('query')"), null, 'nothing to search')
  assert.equal(await browser.run("return document.querySelectorAll('.main').length"), 1)
  await browser.click('#blank button')
  await browser.fill('#sistema', 'Correo')
  await browser.fill('#usuario', 'ana')
  await browser.click('#generate')
  const proposed = await valueOf(browser, 'password')
  assert.match(proposed, /^[!-~]{20}$/)
  await browser.press(KEYS.enter)
  await browser.until("return document.getElementById('editor') === null && document.querySelector('#rows .row')")
  assert.deepEqual(await systems(browser), ['Correo'])
  assert.equal(service.store.state.entries.get(1)?.password, proposed)
  assert.ok(!(await documentOf(browser)).includes(proposed))
})

inBrowser('the list is asked for without secrets, and revalidated when the page is seen again', CHROMIUM, async t => {
  const { browser, service } = await openService(t, {},
    entries(['Uno', 'ana', 'same'], ['Dos', 'ana', 'same'], ['Tres', 'eva', 'x']))
  const asked = await browser.run<string[]>("return performance.getEntriesByType('resource').map(one => " +
    "one.name).filter(name => name.includes('/api/'))")
  assert.deepEqual(asked.map(name => name.split('/').at(-1)), ['listEntries'])
  assert.deepEqual(await browser.run("return [...document.querySelectorAll('#rows .badge')].map(one => one.innerText)"),
    ['1', '1'])
  assert.deepEqual(await browser.run("return document.querySelector('#rows .badge').ariaLabel"), '1: Repetida en 1 más')
  await browser.run(`const real = window.fetch
    window.answers = []
    window.fetch = async (...asked) => {
      const answer = await real(...asked)
      answers.push(answer.status)
      return answer
    }`)
  const look = "document.dispatchEvent(new Event('visibilitychange'))"
  await browser.run(look)
  await browser.until('return answers.length === 1')
  assert.deepEqual(await browser.run('return answers'), [304])
  await storeEntry(service.store, { sistema: 'Cuatro', usuario: 'eva', password: 'y' }, null)
  await browser.run(look)
  await browser.until("return document.querySelectorAll('#rows .row').length === 4")
})

inBrowser('a click on a mark shows what it is about alone, a chip says so, and takes that off', CHROMIUM, async t => {
  const { browser } = await openService(t, {}, entries(['Uno', 'ana', 'same'], ['Dos', 'ana', 'same'],
    ['Tres', 'eva', 'x']))
  await browser.click('#rows .badge')
  assert.deepEqual(await systems(browser), ['Dos', 'Uno'])
  assert.equal((await textOf(browser, '#chip')).trim(), '2 de 3 · Repetidas')
  assert.equal(await browser.run("return document.getElementById('viewer')"), null)
  await browser.click('#chip')
  assert.equal((await systems(browser)).length, 3)
  assert.equal(await focus(browser), 'button: Filtrar')
  await browser.resize(390, 700)
  assert.ok(await browser.run<number>("return document.querySelector('.row:has(.badge) " +
    ".user').getBoundingClientRect().width") > 20, 'the user is seen on a phone')
})

inBrowser('state and group are chosen from one menu by keys, with counts, and combined', EVERYWHERE, async t => {
  const { browser, service } = await openService(t, {}, entries(['Uno', 'ana', 'same'], ['Dos', 'ana', 'same'],
    ['Tres', 'eva', 'x']))
  await updateEntry(service.store, 1, { grupo: 'Finanzas' }, null)
  await loadAgain(browser)
  await browser.run("document.getElementById('filter').focus()")
  await browser.press(KEYS.enter)
  await browser.until("return document.getElementById('choices')?.matches(':popover-open')")
  const items = (): Promise<string[]> => browser.run("return [...document.querySelectorAll('#choices " +
    "[role=menuitemradio]')].map(one => one.innerText.replace(/\\s+/g, ' ').trim() + (one.ariaChecked === " +
    "'true' ? ' ✓' : ''))")
  assert.deepEqual(await items(), ['Todas 3 ✓', 'Expuestas 0', 'Repetidas 2', 'Antiguas 0', 'Todos los grupos 3 ✓',
    'Finanzas 1', 'Sin grupo 2'])
  await browser.press('r', KEYS.space)
  assert.deepEqual((await items()).slice(2, 6), ['Repetidas 2 ✓', 'Antiguas 0', 'Todos los grupos 2 ✓', 'Finanzas 1'],
    'Space chooses and stays; a section counts with the other choice')
  await browser.press('f', KEYS.enter)
  assert.deepEqual(await systems(browser), ['Uno'])
  assert.equal((await textOf(browser, '#chip')).trim(), '1 de 3 · Repetidas · Finanzas')
  assert.equal(await focus(browser), 'button: Filtrar')
  await browser.fill('#query', 'tres')
  assert.match(await textOf(browser, '#blank'),
    /Nada entre las repetidas en Finanzas contiene «tres»\.\s+Buscar en todas \(1\)\s+Borrar la búsqueda/)
  await browser.click('#blank .main')
  assert.deepEqual(await systems(browser), ['Tres'])
  assert.equal(await valueOf(browser, 'query'), 'tres')
})

inBrowser('a mark that comes with a refresh shows in its row', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  assert.equal(await browser.run("return document.querySelectorAll('#rows .badge').length"), 0)
  await storeEntry(service.store, { sistema: 'Zeta', usuario: 'eva', password: 'S3cr3ta-del-correo' }, null)
  await loadAgain(browser)
  assert.equal(await textOf(browser, `${await rowOf(browser, 'Correo')} .badge`), '1')
})

inBrowser('an address that names an entry opens it, and an open entry is in the address', CHROMIUM, async t => {
  const { browser, url } = await openService(t)
  await browser.go(`${url}/?lang=es&entry=5`)
  await settled(browser)
  await browser.until("return document.getElementById('viewer-title')?.textContent === 'GitHub'")
  assert.equal(await browser.run('return location.search'), '?lang=es&entry=5')
  await browser.press(KEYS.escape)
  assert.equal(await browser.run('return location.search'), '?lang=es')
  await browser.go(`${url}/?lang=es&entry=99`)
  await settled(browser)
  await told(browser, 'Esta entrada ya no existe o ya no está en tus grupos.')
})

inBrowser('the browser\'s own search finds every row of a list of 500', CHROMIUM, async t => {
  const { browser } = await openService(t, {}, async store => {
    for (let i = 0; i < 500; i++) await storeEntry(store, { sistema: `Sistema ${i}`, usuario: 'u', password: 'p' },
      null)
  })
  assert.equal(await browser.run("return document.querySelectorAll('#rows .row').length"), 500)
  assert.ok(await browser.run("return window.find('Sistema 499')"), 'it is found')
  await browser.until("const { top, bottom } = getSelection().getRangeAt(0).getBoundingClientRect(); return top >= 0 " +
    "&& bottom <= innerHeight")
})

inBrowser('an older list that comes later is not shown', CHROMIUM, async t => {
  const { browser, service } = await openService(t, {}, entries(['Uno', 'ana', 'a']))
  const release = await holdAnswers(browser)
  for (const [n, system] of ['Dos', 'Tres'].entries()) {
    await storeEntry(service.store, { sistema: system, usuario: 'eva', password: 'p' }, null)
    await browser.click('#refresh')
    await browser.until('return held.length === arguments[0]', n + 1)
  }
  await browser.run('held.reverse()')
  await release(2)
  await browser.until("return document.querySelectorAll('#rows .row').length > 1")
  await browser.run('return new Promise(done => setTimeout(done, 50))')
  assert.deepEqual(await systems(browser), ['Dos', 'Tres', 'Uno'])
})

inBrowser('a list that was asked for before a deletion does not bring the entry back', CHROMIUM, async t => {
  const { browser, service } = await openService(t, {}, entries(['Uno', 'ana', 'a'], ['Dos', 'ana', 'b']))
  await storeEntry(service.store, { sistema: 'Tres', usuario: 'eva', password: 'p' }, null)
  const release = await holdAnswers(browser)
  await browser.click('#refresh')
  await browser.until('return held.length === 1')
  await browser.run('window.fetch = realFetch')
  await remove(browser, 'Uno')
  await told(browser, 'Eliminada: Uno')
  await release(1)
  await browser.until("return document.getElementById('refresh').ariaBusy === null")
  assert.deepEqual(await systems(browser), ['Dos', 'Tres'])
})

inBrowser('a list that comes while an entry is being deleted does not bring it back', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await browser.run(`const real = window.fetch
    window.fetch = async (...asked) => {
      if (String(asked[0]).includes('deletePassword')) await new Promise(done => { window.release = done })
      return real(...asked)
    }`)
  await remove(browser, 'Correo')
  await browser.until('return window.release !== undefined')
  await storeEntry(service.store, { sistema: 'Of Eva', usuario: 'eva', password: 'p' }, null)
  await loadAgain(browser)
  await browser.run('release()')
  await told(browser, 'Eliminada: Correo')
  const names = await systems(browser)
  assert.ok(names.includes('Of Eva') && !names.includes('Correo'), String(names))
})

inBrowser('search takes words of system and user in any case or accent; Enter opens the first', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  for (const [query, hits] of [
    ['nomina', ['Nómina']], ['GARCIA', ['Banco Central', 'GitHub', 'Nómina']], ['cen ana', ['Banco Central']],
    ['zanahoria', []]
  ] as const) {
    await browser.fill('#query', query)
    assert.deepEqual(await systems(browser), hits, query)
  }
  assert.match(await textOf(browser, '#blank'),
    /Ningún sistema, usuario, dirección ni grupo contiene «zanahoria»[^]*Borrar la búsqueda/)
  await browser.click('#blank .link')
  assert.equal((await systems(browser)).length, 8)
  assert.equal(await textOf(browser, '#count'), '8 entradas')
  await browser.fill('#query', 'garcia')
  assert.equal(await textOf(browser, '#count'), '3 de 8 entradas')
  await browser.press(KEYS.enter)
  await browser.until("return document.getElementById('viewer')?.open && " +
    "document.getElementById('viewer-title').textContent === 'Banco Central'")
})

inBrowser('headers sort, numbers by their value, and say how', CHROMIUM, async t => {
  const { browser } = await openService(t, {}, entries(['srv 10', 'a2', 'p'], ['srv 9', 'a10', 'p'],
    ['SRV 9', 'a1', 'p'], ['alfa', 'z', 'p']))
  const sorted = (): Promise<string[]> =>
    browser.run("return [...document.querySelectorAll('[role=columnheader]')].map(one => one.ariaSort).filter(sort " +
      "=> sort !== null)")
  assert.deepEqual(await users(browser), ['z', 'a1', 'a10', 'a2'])
  assert.deepEqual(await sorted(), ['ascending', 'none', 'none', 'none'])
  await browser.click('#sort-usuario')
  assert.deepEqual(await users(browser), ['a1', 'a2', 'a10', 'z'])
  await browser.click('#sort-usuario')
  assert.deepEqual(await users(browser), ['z', 'a10', 'a2', 'a1'])
  assert.deepEqual(await sorted(), ['none', 'descending', 'none', 'none'])
  await browser.reload()
  await settled(browser)
  assert.deepEqual(await users(browser), ['z', 'a10', 'a2', 'a1'], 'a reload keeps it')
  const names = await browser.run<string[]>("return [...document.querySelectorAll('[role=columnheader]')].map(one => " +
    "one.textContent.trim())")
  assert.ok(names.length === 12 && names.every(name => name !== ''), 'each column has a name')
})

inBrowser('a web address is shown and sorted by host, and opens in a new tab without a referrer', CHROMIUM, async t => {
  const { browser } = await openService(t, {}, entries(...[
    'https://one.example/x?y', 'http://ana:secret@two.example/', 'javascript:alert(1)', 'https:three',
    'ftp://four.example', 'oa', 'oz'
  ].map(sistema => [sistema, 'u', 'p'] as const)))
  assert.deepEqual((await systems(browser)).filter(name => /^o/.test(name)), ['oa', 'one.example/x?y', 'oz'])
  assert.deepEqual(await browser.run(`return [...document.querySelectorAll('#rows .visit a')]
    .map(one => [one.href, one.target, one.rel, one.referrerPolicy, one.ariaLabel])`), [
    ['https://one.example/x?y', '_blank', 'noopener noreferrer', 'no-referrer',
      'Abrir https://one.example/x?y en otra pestaña']])
})

inBrowser('what was just created is in sight and focused, also while a search hides it', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  for (let i = 0; i < 60; i++) await storeEntry(service.store, { sistema: `M ${i}`, usuario: 'u', password: 'p' }, null)
  await browser.fill('#query', 'correo')
  await createEntry(browser, 'Zeta')
  await browser.until("return document.activeElement.querySelector('bdi')?.textContent === 'Zeta'")
  assert.equal(await valueOf(browser, 'query'), '')
  const [top, bottom] = await browser.run<[number, number]>(`
    const row = document.activeElement.closest('.row'), box = row.getBoundingClientRect()
    return [box.top, innerHeight - box.bottom]`)
  assert.ok(top > 0 && bottom > 0, `${top} ${bottom}`)
})

inBrowser('what is no longer there is said and dropped, in the list and in the dialog', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await deleteEntry(service.store, 7, null)
  await browser.click(`${await rowOf(browser, 'Ágora')} [data-act=edit]`)
  await told(browser, 'Esta entrada ya no existe o ya no está en tus grupos.')
  assert.ok(!(await systems(browser)).includes('Ágora'))
  await browser.click(`${await rowOf(browser, 'Correo')} .system`)
  await deleteEntry(service.store, 1, null)
  await browser.click('#view-password .icon')
  await browser.until("return document.getElementById('viewer') === null")
})

inBrowser('the language is the browser\'s, and switched by the menu, also across a reload', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  const seen = (): Promise<string> => browser.run('return document.documentElement.lang + document.title')
  assert.equal(await seen(), 'esContraseñas')
  await browser.click('#show-menu')
  await browser.click('#menu [data-language=en]')
  await browser.until("return document.title === 'Passwords'") // its texts are loaded first
  assert.equal(await seen(), 'enPasswords')
  assert.equal(await textOf(browser, '#count'), '8 entries')
  assert.equal(await (await browser.find('#rows [data-act=copy]')).name(), 'Copy password of Ágora')
  await browser.reload()
  await settled(browser)
  assert.equal(await seen(), 'enPasswords')
})

inBrowser('copying gives what is stored now, and only the last copy that was asked for', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await browser.run(`window.copied = []
    Object.defineProperty(navigator, 'clipboard', { configurable: true, value: {
      write: async ([item]) => copied.push(await (await item.getType('text/plain')).text()),
      writeText: async text => copied.push(text)
    } })
    const real = window.fetch
    window.fetch = (...asked) => real(...asked).then(answer => !String(asked[0]).endsWith('/3') ? answer :
      new Promise(done => { window.release = () => done(answer) }))`)
  await updateEntry(service.store, 1, { password: 'the newer one' }, null)
  await browser.click(`${await rowOf(browser, 'Nómina')} [data-act=copy]`)
  await browser.until('return window.release')
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=copy]`)
  await browser.until('return copied.length === 1')
  await browser.run('release()')
  await browser.run('return new Promise(done => setTimeout(done, 50))')
  assert.deepEqual(await browser.run('return copied'), ['the newer one'])
  assert.equal(await focus(browser), 'button: Copiar la contraseña de Correo')
})
