/** Deleted entries, which the page always has; history and own password with `EXTRA_ROUTES=on`. */
import assert from 'node:assert/strict'
import { ANA, PASSWORD } from '../../support/accounts.ts'
import { deleteEntry, updateEntry } from '../../../src/store/commands.ts'
import {
  CHROMIUM, documentOf, EVERYWHERE, focus, inBrowser, logIn, openProtected, openService, remove, systems, textOf, until, view
} from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'

inBrowser('"Deleted" is a view of the same list: searched, restored by keyboard, left by Back', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  for (const id of [1, 2, 3]) await deleteEntry(service.store, id, null)
  await browser.click('#refresh')
  await browser.until("return document.querySelectorAll('#rows .row').length === 5")
  await browser.click('header .to-deleted')
  await browser.until("return document.querySelectorAll('#rows .row').length === 3")
  assert.deepEqual(await systems(browser), ['Banco Central', 'Correo', 'Nómina'])
  assert.equal(await textOf(browser, '#count'), 'Eliminadas · 3 entradas')
  assert.doesNotMatch(await documentOf(browser), /S3cr3ta/, 'without their secrets')
  await browser.fill('#query', 'corr')
  assert.deepEqual(await systems(browser), ['Correo'])
  await browser.press(KEYS.escape)
  await browser.run("document.querySelectorAll('#rows [data-act=restore]')[1].focus()")
  await browser.press(KEYS.enter)
  await browser.until("return document.querySelectorAll('#rows .row').length === 2")
  await until(() => service.store.state.entries.get(1)?.status === 1)
  assert.equal(await focus(browser), 'rowheader: Nómina', 'the one that follows')
  await browser.run('history.back()')
  await browser.until("return document.querySelectorAll('#rows .row').length === 6")
  assert.ok((await systems(browser)).includes('Correo'))
})

inBrowser('what was deleted is found there, and undone there', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await remove(browser, 'Correo')
  await until(() => service.store.state.entries.get(1)?.status === 0)
  await browser.click('header .to-deleted')
  await browser.until("return document.querySelectorAll('#rows .row').length === 1")
  await browser.click('.message .offer')
  await browser.until("return /No hay contraseñas eliminadas/.test(document.getElementById('blank')?.innerText)")
  assert.equal(service.store.state.entries.get(1)?.status, 1)
})

inBrowser('the history of an entry, its former passwords hidden until asked for', CHROMIUM, async t => {
  const { browser, service } = await openService(t, { 'extra-routes': 'on', journal: 'file' })
  await updateEntry(service.store, 1, { password: 'the newer one' }, null)
  await view(browser, 'Correo')
  await browser.click('#history summary')
  await browser.find('#history li .icon')
  assert.match(await textOf(browser, '#history'), /editada[^]*creada[^]*Sistema:\s*Correo/)
  assert.doesNotMatch(await documentOf(browser), /S3cr3ta-del-correo/)
  await browser.click('#history li:last-child .icon')
  await browser.until("return /S3cr3ta-del-correo/.test(document.getElementById('history').textContent)")
  await browser.click('#history summary')
  await browser.until("return document.querySelector('#history li') === null")
})

inBrowser('the password of the user is changed, and the new one asked for', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t, ['*'], { 'extra-routes': 'on' })
  await logIn(browser)
  await browser.click('#show-menu')
  await browser.click('#show-account')
  assert.match(await textOf(browser, '#account'), /Has entrado como ana \(ana@example\.org\)/)
  await browser.click('#show-own')
  await browser.fill('#current', 'wrong')
  await browser.fill('#fresh', 'another long password')
  await browser.click('#own .main')
  await browser.until("return /actual no es correcta/.test(document.querySelector('#own .alert').textContent)")
  await browser.fill('#current', PASSWORD)
  await browser.click('#own .main')
  await browser.until("return document.getElementById('login-note')?.textContent === 'Tu contraseña ha cambiado. Entra con la nueva.'")
  assert.equal(service.accounts!.tokens().length, 0)
  await logIn(browser, ANA, 'another long password')
})
