/** Deleted entries, which the page always has; history and own password with `EXTRA_ROUTES=on`. */
import assert from 'node:assert/strict'
import { ANA, PASSWORD } from '../../support/accounts.ts'
import { deleteEntry, updateEntry } from '../../../src/entries/entry-commands.ts'
import {
  CHROMIUM, documentOf, edit, EVERYWHERE, focus, inBrowser, keepCopies, logIn, openProtected, openService, remove,
  rowOf, systems,
  textOf, until, view
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
  assert.equal(await textOf(browser, '#count'), 'Eliminadas: 3')
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

inBrowser('the history says who changed what, when, without values; a former one is asked for', CHROMIUM, async t => {
  const { browser, service } = await openService(t, { 'extra-routes': 'on', journal: 'file' })
  await updateEntry(service.store, 1, { password: 'the newer one' }, null)
  await view(browser, 'Correo')
  await browser.click('#history summary')
  await browser.find('#history li .icon')
  assert.match(await textOf(browser, '#history'), /hoy · editada[^]*Contraseña[^]*hoy · creada[^]*Sistema/)
  assert.doesNotMatch(await documentOf(browser), /S3cr3ta-del-correo|the newer one/)
  await keepCopies(browser)
  await browser.click('#history li:last-child .line:nth-of-type(2) .icon')
  await browser.until("return /S3cr3ta-del-correo/.test(document.getElementById('history').textContent)")
  await browser.click('#history li:first-of-type .line .icon:last-child')
  await browser.until("return copied[0] === 'the newer one'")
  await browser.click('#history summary')
  await browser.until("return document.querySelector('#history li') === null")
})

inBrowser('deleted entries say when and who, are opened one by one, and restored together', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  for (const id of [1, 2, 3]) await deleteEntry(service.store, id, null)
  await browser.click('#refresh')
  await browser.click('header .to-deleted')
  await browser.until("return document.querySelectorAll('#rows .row').length === 3")
  await view(browser, 'Correo')
  assert.equal(await textOf(browser, '#view-since'), 'Eliminada hoy')
  assert.doesNotMatch(await documentOf(browser), /S3cr3ta/, 'without its secret')
  await browser.click('#view-password .icon')
  await browser.until("return document.querySelector('#viewer .revealed .code')?.textContent === 'S3cr3ta-del-correo'")
  await browser.press(KEYS.escape)
  await browser.fill('#query', 'ana')
  assert.equal(await textOf(browser, '#restore-all'), 'Restaurar estas 2')
  await browser.click('#restore-all')
  await browser.click('#confirm .danger')
  await until(() => service.store.state.entries.active === 7)
  await browser.fill('#query', '')
  await browser.until("return document.querySelectorAll('#rows .row').length === 1")
})

inBrowser('the password of the user is changed, and the new one asked for', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t, ['*'], { 'extra-routes': 'on' })
  await logIn(browser)
  await browser.click('#show-menu')
  await browser.click('#show-account')
  await browser.find('#account')
  assert.match(await textOf(browser, '#account'), /Has entrado como ana \(ana@example\.org\)/)
  await browser.click('#show-own')
  await browser.fill('#current', 'wrong')
  await browser.fill('#fresh', 'another long password')
  await browser.click('#own .main')
  await browser.until("return /actual no es correcta/.test(document.getElementById('current-fault').textContent)")
  await browser.fill('#current', PASSWORD)
  await browser.click('#own .main')
  await browser.until("return document.getElementById('login-note')?.textContent === 'Tu contraseña ha cambiado. " +
    "Entra con la nueva.'")
  assert.equal(service.accounts!.tokens().length, 0)
  await logIn(browser, ANA, 'another long password')
})

inBrowser('a refused new password is said in the page\'s language, and can be seen while typed', CHROMIUM, async t => {
  const { browser } = await openProtected(t, ['*'], { 'extra-routes': 'on' })
  await logIn(browser)
  await browser.run("document.getElementById('show-account').click()")
  await browser.click('#show-own')
  await browser.fill('#current', PASSWORD)
  await browser.fill('#fresh', 'short')
  await browser.click('.field:has(#fresh) .icon')
  assert.equal(await browser.run("return document.getElementById('fresh').type"), 'text')
  await browser.click('#own .main')
  await browser.until("return document.getElementById('fresh-fault').textContent === 'Necesita al menos 12 " +
    "caracteres.'")
})

inBrowser('the sessions of the account are listed, this one is marked, and all others are ended', CHROMIUM, async t => {
  const { browser, service, url } = await openProtected(t)
  for (let i = 0; i < 2; i++) {
    await fetch(`${url}/api/login`, { method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ email: ANA, password: PASSWORD }) })
  }
  await logIn(browser)
  assert.equal(service.accounts!.tokens().length, 3)
  await browser.run("document.getElementById('show-account').click()")
  await browser.click('#sessions summary')
  await browser.until("return document.querySelectorAll('#sessions li').length === 4")
  assert.match(await textOf(browser, '#sessions'), /Esta/)
  await browser.click('#end-others')
  await until(() => service.accounts!.tokens().length === 1)
  await browser.until("return document.querySelectorAll('#sessions li').length === 1")
})

inBrowser('a one-time code is set, shown with its seconds, copied from a row, replaced, removed', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await edit(browser, 'Correo')
  await browser.fill('#otp', 'no base32 !')
  await browser.click('#editor .main')
  await browser.until("return /base32/.test(document.getElementById('otp-fault').textContent)")
  await browser.fill('#otp', 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
  await browser.click('#editor .main')
  await browser.until("return document.getElementById('editor') === null")
  const row = await rowOf(browser, 'Correo')
  await keepCopies(browser)
  await browser.click(`${row} [data-act=copyCode]`)
  await browser.until('return /^\\d{6}$/.test(copied[0])')
  assert.equal(await browser.run("return document.querySelectorAll('#rows [data-act=copyCode]').length"), 1,
    'only where there is one')
  await view(browser, 'Correo')
  await browser.click('#view-code .icon')
  await browser.until("return /^\\d{3} \\d{3}$/.test(document.querySelector('#view-code .revealed " +
    ".code')?.textContent)")
  assert.match(await browser.run<string>("return document.querySelector('#view-code .ring').ariaLabel"),
    /^Quedan \d+ s$/)
  assert.doesNotMatch(await documentOf(browser), /GEZDGNBVGY3TQOJQ/)
  await browser.click('#viewer .end .main')
  await browser.find('#replace-code')
  await browser.click('#replace-code')
  await browser.click('#keep-typed')
  await browser.click('#remove-code')
  await browser.click('#editor .main')
  await browser.until("return document.getElementById('editor') === null")
  assert.equal(await browser.run("return document.querySelectorAll('#rows [data-act=copyCode]').length"), 0)
  await view(browser, 'Correo')
  assert.equal(await browser.run("return document.getElementById('view-code')"), null)
  assert.equal(service.store.state.entries.get(1)?.status, 1)
})

inBrowser('the group of an entry is offered where there are groups, filtered by, and changed', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await edit(browser, 'Correo')
  assert.equal(await browser.run("return document.getElementById('grupo')"), null, 'not where there is none')
  await browser.press(KEYS.escape)
  await updateEntry(service.store, 2, { grupo: 'Finanzas' }, null)
  await browser.click('#refresh')
  await browser.until("return [...document.getElementById('filter')?.options ?? []].some(one => one.text === " +
    "'Finanzas')")
  await edit(browser, 'Correo')
  assert.deepEqual(await browser.run("return [...document.getElementById('grupo').list.options].map(one => one.value)"),
    ['Finanzas'])
  await browser.fill('#grupo', 'Finanzas')
  await browser.press(KEYS.enter)
  await until(() => service.store.state.entries.get(1)?.grupo === 'Finanzas')
  await browser.until("return document.getElementById('editor') === null")
  await browser.run("const filter = document.getElementById('filter'); filter.value = 'group Finanzas'; " +
    "filter.dispatchEvent(new Event('change'))")
  assert.deepEqual(await systems(browser), ['Banco Central', 'Correo'])
})
