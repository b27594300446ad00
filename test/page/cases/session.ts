/** The page in the protected configuration: login, logout, the lock; and what is left of a session. */
import assert from 'node:assert/strict'
import { ANA, PASSWORD } from '../../support/accounts.ts'
import {
  CHROMIUM, documentOf, EVERYWHERE, holdAnswers, inBrowser, isEditing, laterBy, logIn, openProtected, openService,
  remove,
  textOf, told, until, valueOf, view
} from '../../support/page.ts'
import { startService } from '../../support/service.ts'
import { openPage } from '../../support/page.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'

const leave = (browser: Browser): Promise<unknown> => browser.run("document.getElementById('logout').click()")

inBrowser('login and logout: the token is in memory alone, and revoked; nothing stays in the document', EVERYWHERE, async t => {
  const { browser, service } = await openProtected(t)
  assert.equal(await (await browser.focused()).name(), 'Correo electrónico', 'the focus is on the first field')
  await browser.click('#login .main')
  assert.deepEqual([await textOf(browser, '#email-fault'), await textOf(browser, '#secret-fault')],
    ['Este campo es obligatorio.', 'Este campo es obligatorio.'])
  await browser.fill('#email', ANA)
  await browser.fill('#secret', 'wrong')
  await browser.press(KEYS.enter)
  await browser.until("return /no son correctos/.test(document.querySelector('#login .alert').textContent)")
  await logIn(browser)
  assert.equal(await textOf(browser, '#count'), '8 entradas')
  assert.equal(service.accounts!.tokens().length, 1)
  assert.deepEqual(await browser.run('return [localStorage.length, sessionStorage.length, document.cookie, ' +
    'location.search]'),
    [0, 0, '', '?lang=es'])
  assert.ok(!(await documentOf(browser)).includes(PASSWORD))
  await view(browser, 'Correo')
  await browser.click('#view-password .icon')
  await browser.find('#viewer .revealed')
  await browser.press(KEYS.escape)
  await remove(browser, 'GitHub')
  await told(browser, 'Eliminada: GitHub')
  await browser.fill('#query', 'searched')
  await leave(browser)
  await browser.until("return document.getElementById('login-note')?.textContent === 'Has salido.'")
  await until(() => service.accounts!.tokens().length === 0)
  await browser.run('return new Promise(done => setTimeout(done, 50))')
  assert.doesNotMatch(await documentOf(browser), /S3cr3ta|Correo<|GitHub|searched|ana@example|\d entradas/)
  await browser.click('#login [data-language=en]')
  assert.equal(await textOf(browser, '#login h2'), 'Log in', 'the language is switched at its foot')
})

inBrowser('what was requested before the logout shows nothing to the next user', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  const eva = 'eva@example.org'
  await service.accounts!.addUser(eva, 'Eva', ['password:create'], PASSWORD)
  await logIn(browser)
  const release = await holdAnswers(browser)
  await browser.click('#refresh')
  await browser.click('#rows [data-act=edit]')
  await browser.until('return held.length === 2')
  await leave(browser)
  await release(3)
  await browser.run("return new Promise(done => setTimeout(done, 50))")
  assert.equal(await isEditing(browser), false)
  await logIn(browser, eva)
  await browser.find('#note-noList')
  assert.equal(await browser.run("return document.querySelectorAll('#rows .row').length"), 0)
})

inBrowser('after ten minutes without input the page locks itself, counts down before, and gives back what was typed', CHROMIUM, async t => {
  const open = await openService(t)
  await laterBy(open.browser, 9.5, 'nothing')
  await open.browser.until("return /se bloqueará en \\d+ s/.test(document.getElementById('idle').innerText)")
  await open.browser.press(KEYS.shift)
  await open.browser.until("return document.getElementById('idle').hidden")
  await open.browser.click('#create')
  await open.browser.fill('#password', 'typed')
  assert.ok(await laterBy(open.browser, 10.1), 'as soon as somebody looks')
  assert.deepEqual(await open.browser.run("return [document.querySelectorAll('#rows .row').length, " +
    "document.querySelector('dialog')]"), [0, null])
  await open.browser.click('#locked .main')
  await open.browser.until("return document.querySelectorAll('#rows .row').length === 8 && " +
    "document.getElementById('editor')?.open")
  assert.equal(await valueOf(open.browser, 'password'), 'typed')
  assert.ok(await laterBy(open.browser, 10.1, 'pointerdown'), 'input that comes too late prolongs nothing')

  const { browser, service } = await openProtected(t)
  await logIn(browser)
  await laterBy(browser, 10.1)
  await browser.until("return document.getElementById('login-note')?.textContent === 'La sesión se ha cerrado tras " +
    "10 minutos sin actividad.'")
  await until(() => service.accounts!.tokens().length === 0)
})

inBrowser('too many logins: the waiting time is counted down in the form', CHROMIUM, async t => {
  const { browser } = await openProtected(t, ['*'], { 'login-limit': '1' })
  await browser.fill('#email', ANA)
  await browser.fill('#secret', 'wrong')
  await browser.press(KEYS.enter)
  await browser.find('#login .alert')
  await browser.press(KEYS.enter)
  await browser.until("return /Espera \\d+ s/.test(document.querySelector('#login .alert').textContent)")
  assert.equal(await browser.run("return document.querySelector('#login .main').ariaDisabled"), 'true')
})

inBrowser('a service without users says how the first one is made', CHROMIUM, async t => {
  const { url } = await startService(t, { page: 'on', auth: 'bearer' })
  const browser = await openPage(t, url)
  assert.match(await textOf(browser, '#no-users'), /Todavía no hay usuarios[^]*admin user add EMAIL/)
})
