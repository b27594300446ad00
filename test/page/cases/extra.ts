/** Deleted entries, which the page always has; history and own password with `EXTRA_ROUTES=on`. */
import assert from 'node:assert/strict'
import { ANA, PASSWORD, tokenOf } from '../../support/accounts.ts'
import { deleteEntry, updateEntry } from '../../../src/entries/entry-commands.ts'
import {
  CHROMIUM, documentOf, edit, EVERYWHERE, focus, inBrowser, keepCopies, logIn, logInElsewhere, openProtected,
  openService, remove,
  rowOf, systems,
  textOf, told, until, view
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
  assert.equal(await textOf(browser, '#count'), '3 eliminadas')
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

inBrowser('the history says who changed what, when, from what to what; secrets are asked for', CHROMIUM, async t => {
  const { browser, service } = await openService(t, { 'extra-routes': 'on', journal: 'file' })
  await updateEntry(service.store, 1, { password: 'the newer one', usuario: 'ana' }, null)
  await view(browser, 'Correo')
  await browser.click('#history summary')
  await browser.find('#history li .was')
  const text = await textOf(browser, '#history')
  assert.match(text, /Hoy\s\d+:\d\d\s[^]*Usuario\s+ana@example\.org\s+→\s+ana\s[^]*Hoy\s\d+:\d\d\s+creada\s*$/)
  assert.match(text, /Contraseña\s+antes\s+•{8}/)
  assert.doesNotMatch(await documentOf(browser), /S3cr3ta-del-correo|the newer one/)
  await browser.click('#history .was .icon')
  await browser.until("return document.querySelector('#history .revealed .code')?.textContent === 'S3cr3ta-del-correo'")
  await keepCopies(browser)
  await browser.click('#history .was .icon:last-of-type')
  await browser.until("return copied[0] === 'S3cr3ta-del-correo'")
  await browser.click('#history summary')
  await browser.until("return document.querySelector('#history li') === null")
  assert.doesNotMatch(await documentOf(browser), /S3cr3ta-del-correo/, 'closed, it holds nothing')
})

inBrowser('"Deleted" that is opened while a deletion is under way waits for it', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await browser.run(`const real = window.fetch
    window.fetch = async (url, init) => {
      if (String(url).includes('deletePassword')) await new Promise(resolve => setTimeout(resolve, 700))
      return real(url, init)
    }`)
  await remove(browser, 'Correo')
  await browser.click('header .to-deleted')
  await browser.until("return document.querySelectorAll('#rows .row').length === 1")
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
  await browser.click('#confirm .main')
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
  assert.match(await textOf(browser, '#account'), /ana\s+ana@example\.org\s[^]*Grupos\s+Todos/)
  await browser.find('#sessions li') // it moves what is below it
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
  await browser.find('#sessions li') // it moves what is below it
  await browser.click('#show-own')
  await browser.fill('#current', PASSWORD)
  await browser.fill('#fresh', 'short')
  await browser.click('.field:has(#fresh) .icon')
  assert.equal(await browser.run("return document.getElementById('fresh').type"), 'text')
  await browser.click('#own .main')
  await browser.until("return document.getElementById('fresh-fault').textContent === 'Necesita al menos 12 " +
    "caracteres.'")
})

inBrowser('pages and programs of the account are apart; the others end at once, a program after a question', CHROMIUM,
  async t => {
    const started = await openProtected(t)
    const { browser, service } = started
    for (let n = 0; n < 2; n++) await logInElsewhere(started)
    await tokenOf(started)
    await logIn(browser)
    await browser.run("document.getElementById('show-account').click()")
    await browser.until("return document.querySelectorAll('#pages li').length === 3")
    assert.match(await textOf(browser, '#pages li'), /Iniciada: hoy\s\d+:\d\d\s+Esta/)
    await browser.click('#end-others')
    await until(() => service.accounts!.tokens().length === 2)
    await told(browser, 'Sesiones finalizadas: 2')
    await browser.until("return document.querySelectorAll('#pages li').length === 1")
    await browser.click('#programs .link')
    await browser.find('#confirm')
    assert.equal(service.accounts!.tokens().length, 2, 'not before the answer')
    await browser.press(KEYS.escape)
    await browser.click('#programs .link')
    await browser.click('#confirm .danger')
    await until(() => service.accounts!.tokens().length === 1)
    await browser.until("return document.getElementById('programs') === null")
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
  await browser.until("return document.querySelector('#rows .group')?.checkVisibility()")
  await edit(browser, 'Correo')
  assert.deepEqual(await browser.run("return [...document.getElementById('grupo').list.options].map(one => one.value)"),
    ['Finanzas'])
  await browser.fill('#grupo', 'Finanzas')
  await browser.press(KEYS.enter)
  await until(() => service.store.state.entries.get(1)?.grupo === 'Finanzas')
  await browser.until("return document.getElementById('editor') === null")
  await browser.click('#filter')
  await browser.click('#choices [role=group]:last-of-type .item:nth-of-type(3)')
  assert.deepEqual(await systems(browser), ['Banco Central', 'Correo'])
})
