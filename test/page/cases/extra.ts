/** What the page offers where `EXTRA_ROUTES=on`. */
import assert from 'node:assert/strict'
import { ANA, PASSWORD } from '../../support/accounts.ts'
import {
  CHROMIUM, holdAnswers, hurry, inBrowser, logIn, openProtected, openService, systems, textOf, view
} from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'
import { deleteEntry, updateEntry } from '../../../src/store/commands.ts'

inBrowser('deleted entries can be seen and restored, where the service serves them', CHROMIUM, async t => {
  const { browser, service } = await openService(t, { 'extra-routes': 'on' })
  await deleteEntry(service.store, 1, null)
  await browser.click('#refresh')
  await browser.until("return document.querySelectorAll('#rows .row').length === 7")
  await browser.fill('#query', 'Banco')
  await browser.click('#show-trash')
  await browser.find('#deleted button')
  assert.match(await textOf(browser, '#deleted'), /Correo\s+ana@example\.org/)
  await browser.click('#deleted button')
  await browser.until("return document.querySelectorAll('#rows .row').length === 8")
  assert.equal(service.store.state.entries.get(1)?.status, 1)
  assert.ok((await systems(browser)).includes('Correo'))
  await browser.press(KEYS.escape)
  // Deleted again it is found again, and a failure of before is over.
  await deleteEntry(service.store, 1, null)
  await browser.run('window.realFetch = fetch; window.fetch = () => Promise.reject(new Error())')
  await browser.click('#show-trash')
  await browser.until("return document.getElementById('deleted-count').textContent.includes('no responde')")
  await browser.press(KEYS.escape)
  await browser.run('window.fetch = realFetch')
  await browser.click('#show-trash')
  await browser.find('#deleted button')
  assert.equal(await textOf(browser, '#deleted-count'), 'Eliminadas: 1, las más recientes primero')
  await browser.press(KEYS.escape)
  await browser.until("return document.querySelectorAll('#deleted li').length === 0")
})

inBrowser('by keyboard deleted entries are restored one after the other: the focus goes to the one that follows, or to the last', CHROMIUM, async t => {
  const { browser, service } = await openService(t, { 'extra-routes': 'on' })
  for (const id of [1, 2, 3]) await deleteEntry(service.store, id, null)
  await browser.click('#refresh')
  await browser.until("return document.querySelectorAll('#rows .row').length === 5")
  await browser.click('#show-trash')
  await browser.until("return document.querySelectorAll('#deleted button').length === 3")
  const names = await browser.run<string[]>("return [...document.querySelectorAll('#deleted button')].map(one => one.ariaLabel)")
  await browser.run("document.querySelectorAll('#deleted button')[1].focus()")
  for (const [left, focused] of [[2, names[2]], [1, names[0]]] as const) {
    await browser.press(KEYS.enter)
    await browser.until("return document.querySelectorAll('#deleted button').length === arguments[0]", left)
    await browser.until('return document.activeElement.ariaLabel === arguments[0]', focused)
  }
})

inBrowser('the history of an entry, its former passwords hidden until asked for', CHROMIUM, async t => {
  const { browser, service } = await openService(t, { 'extra-routes': 'on', journal: 'file' })
  await updateEntry(service.store, 1, { password: 'the newer one' }, null)
  await browser.click('#refresh')
  await browser.until("return document.getElementById('refresh').ariaBusy === null")
  await view(browser, 'Correo')
  await browser.click('#history summary')
  await browser.find('#history li')
  const shown = await textOf(browser, '#history')
  assert.match(shown, /editada[^]*creada[^]*Sistema: Correo/)
  assert.doesNotMatch(shown, /S3cr3ta-del-correo/)
  // There is a button to hide it, and it hides itself like any other; the focus stays on the button.
  const former = '#history li:last-child .secret'
  await browser.run('document.querySelector(arguments[0]).focus()', `${former} button`)
  const says = (text: string): Promise<unknown> => browser.until('return document.activeElement.textContent === arguments[0]', text)
  await browser.press(KEYS.enter)
  await says('Ocultar')
  await browser.press(KEYS.enter)
  await says('Mostrar')
  assert.doesNotMatch(await textOf(browser, '#history'), /S3cr3ta-del-correo/)
  await hurry(browser, 60_000)
  await browser.run(`window.shown = []
    const note = () => shown.push(document.getElementById('history').innerText)
    new MutationObserver(note).observe(document.getElementById('history'), { subtree: true, childList: true, characterData: true })`)
  await browser.press(KEYS.enter)
  await browser.until('return shown.some(text => /S3cr3ta-del-correo/.test(text))')
  await says('Mostrar')
  assert.doesNotMatch(await textOf(browser, '#history'), /S3cr3ta-del-correo/)
})

inBrowser('a history that comes when it is closed, or another entry is looked at, is not shown', CHROMIUM, async t => {
  const { browser } = await openService(t, { 'extra-routes': 'on', journal: 'file' })
  const isThere = "return document.querySelector('#history li') !== null"
  await view(browser, 'Correo')
  for (const isOther of [false, true]) {
    const release = await holdAnswers(browser)
    await browser.click('#history summary')
    await browser.until('return held.length === 1')
    await browser.run('window.fetch = realFetch')
    if (isOther) {
      await browser.press(KEYS.escape)
      await view(browser, 'GitHub')
      await browser.click('#history summary')
      await browser.until(isThere)
    } else await browser.click('#history summary')
    await release(1)
    await browser.run('return new Promise(done => setTimeout(done, 100))')
    if (isOther) assert.match(await textOf(browser, '#history'), /Sistema: GitHub/)
    else assert.equal(await browser.run(isThere), false, 'nothing of it is in the document')
  }
})

inBrowser('the password of the user is changed, and the new one asked for', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t, ['*'], { 'extra-routes': 'on' })
  await logIn(browser)
  await browser.click('#show-account')
  await browser.click('#show-own')
  await browser.fill('#current', 'wrong')
  await browser.fill('#fresh', 'another long password')
  await browser.click('#own .main')
  await browser.until("return /actual no es correcta/.test(document.querySelector('#own .alert').textContent)")
  await browser.fill('#current', PASSWORD)
  await browser.click('#own .main')
  await browser.until("return document.getElementById('login-note').textContent === 'Tu contraseña ha cambiado. Entra con la nueva.'")
  assert.equal(service.accounts!.tokens().length, 0)
  await logIn(browser, ANA, 'another long password')
})
