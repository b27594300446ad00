/** The page in the protected configuration: login, logout, abilities, and a token that ends. */
import assert from 'node:assert/strict'
import { ANA, PASSWORD } from '../../support/accounts.ts'
import {
  CHROMIUM, EVERYWHERE, holdAnswers, inBrowser, isEditing, laterBy, logIn, openProtected, openService, passwordIn, settled,
  textOf, until, valueOf
} from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'

inBrowser('login and logout: who is logged in can be seen, the token is in memory alone, and revoked', EVERYWHERE, async t => {
  const { browser, service } = await openProtected(t)
  assert.equal(await (await browser.focused()).name(), 'Correo electrónico', 'the focus is on the first field')
  await browser.click('#login button')
  assert.deepEqual([await textOf(browser, '#email-fault'), await textOf(browser, '#secret-fault')],
    ['Este campo es obligatorio.', 'Este campo es obligatorio.'])
  await browser.fill('#email', ANA)
  await browser.fill('#secret', 'wrong')
  await browser.press(KEYS.enter)
  await browser.until("return /no son correctos/.test(document.querySelector('#login .alert').textContent)")
  await logIn(browser)
  assert.deepEqual([await textOf(browser, '#count'), await textOf(browser, '#who')], ['8 entradas', 'ana'])
  assert.equal(await valueOf(browser, 'secret'), '')
  assert.equal(service.accounts!.tokens().length, 1)
  assert.deepEqual(await browser.run('return [localStorage.length, sessionStorage.length, document.cookie, location.search]'),
    [0, 0, '', '?lang=es'])
  await browser.click('#show-account')
  assert.match(await textOf(browser, '#account'), /Has entrado como ana \(ana@example\.org\)[^]*Tu cuenta permite: ver la lista, crear/)
  await browser.press(KEYS.escape)
  await browser.click('#rows [data-act=reveal]')
  await browser.find('#rows .revealed')
  await browser.click('#logout')
  await browser.until("return document.getElementById('login-note').textContent === 'Has salido.'")
  await until(() => service.accounts!.tokens().length === 0)
  assert.equal(await browser.run("return document.querySelectorAll('#rows .row').length"), 0, 'nothing stays in sight')
  await logIn(browser)
  assert.equal(await browser.run("return document.querySelectorAll('#rows .revealed').length"), 0, 'nor comes back')
  await browser.reload()
  await settled(browser)
  await browser.find('#login')
  await logIn(browser)
  // As the browser tells it to a page that was left and is shown again.
  await browser.run("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
  await browser.find('#login')
})

inBrowser('the login takes an address that is not ASCII, and a failed logout is reported', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  const españa = 'ana@españa.es'
  await service.accounts!.addUser(españa, 'Ana', ['*'], PASSWORD)
  await logIn(browser, españa)
  Object.assign(service.accounts!, { revoke: () => Promise.reject(new Error('broken')) })
  await browser.click('#logout')
  await browser.until("return /puede seguir siendo válida/.test(document.getElementById('login-note').textContent)")
  await browser.click('[data-language=en]')
  assert.match(await textOf(browser, '#login-note'), /may be valid there/, 'in the other language too')
  const description = await browser.run("return document.getElementById('email').getAttribute('aria-describedby')")
  assert.match(String(description), /login-note/, 'it is read out with the field that has the focus')
})

inBrowser('what was requested before the logout shows nothing to the next user', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  const eva = 'eva@example.org'
  await service.accounts!.addUser(eva, 'Eva', ['password:create'], PASSWORD)
  await logIn(browser)
  const release = await holdAnswers(browser)
  await browser.click('#refresh')
  await browser.click('#rows [data-act=edit]')
  await browser.click('#logout')
  await release(3)
  await browser.run("return new Promise(done => setTimeout(done, 50))")
  assert.equal(await isEditing(browser), false)
  await logIn(browser, eva)
  await browser.until("return document.getElementById('limits').textContent === 'Tu cuenta no permite: ver la lista.'")
  assert.equal(await browser.run("return document.querySelectorAll('#rows .row').length"), 0)
})

inBrowser('after ten minutes without input the page locks itself, and counts down before', CHROMIUM, async t => {
  const isCounting = "return /se bloqueará en \\d+ s/.test(document.getElementById('idle').checkVisibility() && document.getElementById('idle').textContent)"
  const open = await openService(t)
  await laterBy(open.browser, 9.5, 'nothing')
  await open.browser.until(isCounting)
  await open.browser.press(KEYS.shift)
  await open.browser.until("return document.getElementById('idle').hidden")
  await open.browser.click('#create')
  await open.browser.fill('#password', 'typed')
  assert.ok(await laterBy(open.browser, 10.1), 'as soon as somebody looks')
  assert.deepEqual(await open.browser.run("return [document.querySelectorAll('#rows .row').length, document.querySelector('dialog[open]')]"), [0, null])
  await open.browser.click('#locked button')
  await open.browser.until("return document.querySelectorAll('#rows .row').length === 8 && document.getElementById('editor').open")
  assert.equal(await passwordIn(open.browser), 'typed')
  assert.ok(await laterBy(open.browser, 10.1, 'pointerdown'), 'input that comes too late prolongs nothing')
  // Nor does a clock that is put back.
  const back = async (minutes: number, steadyMinutes: number): Promise<void> => {
    await open.browser.click('#locked button')
    await open.browser.find('#rows .row')
    await open.browser.run('const now = performance.now(); performance.now = () => now + arguments[0] * 60000', steadyMinutes)
    assert.ok(await laterBy(open.browser, -minutes), `${minutes} minutes back`)
  }
  await back(5, 10.1)
  await back(60, 0)

  const { browser, service } = await openProtected(t)
  await logIn(browser)
  await browser.click('#create')
  await browser.fill('#password', 'typed')
  await laterBy(browser, 10.1)
  await browser.until("return document.getElementById('login-note').textContent === 'La sesión se ha cerrado tras 10 minutos sin actividad.'")
  await until(() => service.accounts!.tokens().length === 0)
  assert.equal(await browser.run("return document.querySelectorAll('#rows .row').length"), 0)
  await logIn(browser)
  await browser.until("return document.getElementById('editor').open")
  assert.equal(await passwordIn(browser), 'typed')
})

inBrowser('too many logins: the waiting time is counted down in the form', CHROMIUM, async t => {
  const { browser } = await openProtected(t, ['*'], { 'login-limit': '1' })
  await browser.fill('#email', ANA)
  await browser.fill('#secret', 'wrong')
  await browser.press(KEYS.enter)
  await browser.find('#login .alert')
  await browser.press(KEYS.enter)
  await browser.until("return /Espera \\d+ s/.test(document.querySelector('#login .alert').textContent)")
  assert.equal(await browser.run("return document.querySelector('#login button').ariaDisabled"), 'true')
})
