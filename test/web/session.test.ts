/** The page in the protected configuration: login, logout, abilities, and a token that ends. */
import assert from 'node:assert/strict'
import test, { after, type TestContext } from 'node:test'
import { ANA, PASSWORD, startProtected } from '../support/accounts.ts'
import { closeSharedBrowser, everyday, holdAnswers, logIn, openPage, settled } from '../support/page.ts'
import type { Started } from '../support/service.ts'
import { KEYS, NO_BROWSER, type Browser } from '../support/webdriver.ts'

after(closeSharedBrowser)

async function open(
  t: TestContext, abilities: readonly string[] = ['*'], flags: Record<string, string> = {}
): Promise<Started & { readonly browser: Browser }> {
  const started = await startProtected(t, { page: 'on', ...flags }, { [ANA]: abilities })
  await everyday(started.service.store)
  const browser = await openPage(started.url)
  return { ...started, browser }
}

const textOf = (browser: Browser, selector: string): Promise<string> =>
  browser.run('return document.querySelector(arguments[0]).innerText', selector)

test('login and logout: the token is in memory alone, and revoked', { skip: NO_BROWSER }, async t => {
  const { browser, service } = await open(t)
  assert.equal(await (await browser.focused()).name(), 'Correo electrónico', 'the focus is on the first field')
  await browser.click('#login button')
  assert.deepEqual([await textOf(browser, '#email-fault'), await textOf(browser, '#secret-fault')],
    ['Este campo es obligatorio.', 'Este campo es obligatorio.'])
  await browser.fill('#email', ANA)
  await browser.fill('#secret', 'wrong')
  await browser.press(KEYS.enter)
  await browser.until("return /no son correctos/.test(document.querySelector('#login .alert').textContent)")
  await logIn(browser)
  assert.equal(await textOf(browser, '#count'), '8 entradas')
  assert.equal(await browser.run("return document.getElementById('secret').value"), '')
  assert.equal(service.store.accounts.tokens().length, 1)
  assert.deepEqual(await browser.run('return [localStorage.length, sessionStorage.length, document.cookie, location.search]'),
    [0, 0, '', ''])
  await browser.click('#logout')
  await browser.until("return document.getElementById('login-note').textContent === 'Has salido.'")
  for (let i = 0; i < 100 && service.store.accounts.tokens().length > 0; i++) await new Promise(r => setTimeout(r, 10))
  assert.equal(service.store.accounts.tokens().length, 0)
  assert.equal(await browser.run("return document.querySelectorAll('#rows .row').length"), 0, 'nothing stays in sight')
  await logIn(browser)
  await browser.reload()
  await settled(browser)
  await browser.find('#login')
  await logIn(browser)
  // As the browser tells it to a page that was left and is shown again.
  await browser.run("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
  await browser.find('#login')
})

test('the login takes an address that is not ASCII, and a logout that failed is told', { skip: NO_BROWSER }, async t => {
  const { browser, service } = await open(t)
  const españa = 'ana@españa.es'
  await service.store.accounts.addUser(españa, 'Ana', ['*'], PASSWORD)
  await logIn(browser, españa)
  Object.assign(service.store.accounts, { revoke: () => Promise.reject(new Error('broken')) })
  await browser.click('#logout')
  await browser.until("return /sigue siendo válido/.test(document.getElementById('login-note').textContent)")
  await browser.click('[data-language=en]')
  assert.match(await textOf(browser, '#login-note'), /still valid/, 'in the other language too')
  const description = await browser.run("return document.getElementById('email').getAttribute('aria-describedby')")
  assert.match(String(description), /login-note/, 'it is read out with the field that has the focus')
})

test('what was asked before the logout shows nothing to whoever logs in next', { skip: NO_BROWSER }, async t => {
  const { browser, service } = await open(t)
  const eva = 'eva@example.org'
  await service.store.accounts.addUser(eva, 'Eva', ['password:create'], PASSWORD)
  await logIn(browser)
  const release = await holdAnswers(browser)
  await browser.click('#refresh')
  await browser.click('#rows [data-act=edit]')
  await browser.click('#logout')
  await release(3)
  await browser.run("return new Promise(done => setTimeout(done, 50))")
  assert.equal(await browser.run("return document.getElementById('editor').open"), false)
  await logIn(browser, eva)
  await browser.until("return document.getElementById('limits').textContent === 'Con tu cuenta no se puede: ver la lista.'")
  assert.equal(await browser.run("return document.querySelectorAll('#rows .row').length"), 0)
})

test('a revoked token leads back to the login, from a dialog as well', { skip: NO_BROWSER }, async t => {
  const { browser, service } = await open(t)
  await logIn(browser)
  await browser.click('#create')
  for (const name of ['sistema', 'usuario', 'password']) await browser.fill(`#${name}`, name)
  await service.store.accounts.revokeAll(ANA)
  await browser.press(KEYS.enter)
  await browser.until("return document.getElementById('login-note').textContent === 'Tu sesión ha terminado. Entra de nuevo.'")
  assert.equal(await browser.run("return document.getElementById('editor').open"), false)
  assert.equal(await browser.run("return document.querySelectorAll('#rows .row').length"), 0)
  await logIn(browser)
  assert.equal(await textOf(browser, '#count'), '8 entradas')
})

test('what the token may not do disappears once it was refused, and is said', { skip: NO_BROWSER }, async t => {
  const { browser } = await open(t, ['password:read'])
  await logIn(browser)
  await browser.click('#create')
  for (const name of ['sistema', 'usuario', 'password']) await browser.fill(`#${name}`, name)
  await browser.press(KEYS.enter)
  await browser.until("return /Tu cuenta no puede/.test(document.querySelector('#editor .alert').textContent)")
  await browser.press(KEYS.escape)
  await browser.click('#rows [data-act=remove]')
  await browser.click('#removal .danger')
  await browser.until("return /Tu cuenta no puede/.test(document.querySelector('#removal .alert').textContent)")
  await browser.press(KEYS.escape)
  assert.equal(await textOf(browser, '#limits'), 'Con tu cuenta no se puede: crear, eliminar.')
  const seen = (selector: string): Promise<boolean> =>
    browser.run('return document.querySelector(arguments[0]).checkVisibility()', selector)
  assert.deepEqual([await seen('#create'), await seen('#rows [data-act=remove]'), await seen('#rows [data-act=edit]')],
    [false, false, true])
})

test('without the ability to list, what is allowed is still there', { skip: NO_BROWSER }, async t => {
  const { browser, service } = await open(t, ['password:create'])
  await browser.fill('#email', ANA)
  await browser.fill('#secret', PASSWORD)
  await browser.press(KEYS.enter)
  await browser.until("return document.getElementById('limits').textContent === 'Con tu cuenta no se puede: ver la lista.'")
  await browser.click('#create')
  for (const name of ['sistema', 'usuario', 'password']) await browser.fill(`#${name}`, name)
  await browser.press(KEYS.enter)
  await browser.until("return !document.getElementById('editor').open")
  assert.equal(service.store.activeCount, 9)
})

test('too many logins: the waiting time is counted down in the form', { skip: NO_BROWSER }, async t => {
  const { browser } = await open(t, ['*'], { 'login-limit': '1' })
  await browser.fill('#email', ANA)
  await browser.fill('#secret', 'wrong')
  await browser.press(KEYS.enter)
  await browser.find('#login .alert')
  await browser.press(KEYS.enter)
  await browser.until("return /esperar \\d+ s/.test(document.querySelector('#login .alert').textContent)")
  assert.equal(await browser.run("return document.querySelector('#login button').disabled"), true)
})
