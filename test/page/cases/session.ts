/** The page in the protected configuration: login, logout, the lock; and what is left of a session. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { openService as embed, type Service } from '../../../src/embedding/embedded-service.ts'
import { ANA, PASSWORD } from '../../support/accounts.ts'
import {
  CHROMIUM, documentOf, EVERYWHERE, holdAnswers, inBrowser, isEditing, logIn, openProtected,
  remove,
  textOf, told, until, view
} from '../../support/page.ts'
import { atEnd, freshFolder, startService } from '../../support/service.ts'
import { openPage } from '../../support/page.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'

const leave = (browser: Browser): Promise<unknown> => browser.run("document.getElementById('logout').click()")

inBrowser('login, logout: the token is in memory alone, is revoked; nothing stays in the page', EVERYWHERE, async t => {
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
  await browser.until("return document.getElementById('login-note')?.textContent === 'Has cerrado sesión.'")
  await until(() => service.accounts!.tokens().length === 0)
  await browser.run('return new Promise(done => setTimeout(done, 50))')
  assert.doesNotMatch(await documentOf(browser), /S3cr3ta|Correo<|GitHub|searched|ana@example|\d entradas/)
  await browser.click('#login [data-language=en]')
  await browser.until("return document.querySelector('#login h2').innerText === 'Log in'")
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
  await browser.find('#blank')
  assert.equal(await browser.run("return document.querySelectorAll('#rows .row').length"), 0)
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

const notesOf = (browser: Browser): Promise<unknown> => browser.run(`
  return [...document.querySelectorAll('.login :is(.lasting, .alert)')].filter(one => one.checkVisibility())
    .map(one => one.innerText.replace(/\\s+/g, ' '))`)

inBrowser('a service without users says how the first one is made, until it refuses a login', CHROMIUM, async t => {
  const { url } = await startService(t, { page: 'on', auth: 'bearer' })
  const browser = await openPage(t, url)
  assert.deepEqual(await notesOf(browser),
    ['Todavía no hay usuarios. Créalos en el servidor: admin user add EMAIL'])
  await browser.fill('#email', ANA)
  await browser.fill('#secret', PASSWORD)
  await browser.press(KEYS.enter)
  await browser.until("return /no son correctos/.test(document.querySelector('#login .alert').textContent)")
  assert.deepEqual(await notesOf(browser), ['El correo, la contraseña o el código no son correctos.'])
})

inBrowser('who is vouched for by the host is in at once, after a logout by a button', EVERYWHERE, async t => {
  const { service, url, state } = await vouchingHost(t)
  const browser = await openPage(t, url)
  await browser.until("return /0 entradas|no hay|Todav/.test(document.body.innerText) && " +
    "document.getElementById('login') === null")
  assert.deepEqual([state.asked, (await service.accounts.tokens()).map(({ email }) => email)], [1, [ANA]])
  await leave(browser)
  await browser.until("return document.getElementById('login-note')?.textContent === 'Has cerrado sesión.'")
  await browser.run('return new Promise(done => setTimeout(done, 200))')
  assert.equal(state.asked, 1)
  await until(async () => (await service.accounts.tokens()).length === 0)
  await browser.click('#proxy-login')
  await browser.until("return document.getElementById('login') === null")
  assert.equal(state.asked, 2)
  state.user = undefined
  await leave(browser)
  await browser.until("return document.getElementById('login-note')?.textContent === 'Has cerrado sesión.'")
  // By key: a second click at the same place is a double click in some browsers, and acts once.
  await browser.run("document.getElementById('proxy-login').focus()")
  await browser.press(KEYS.enter)
  await browser.until("return /^La empresa no ha dicho/.test(document.getElementById('proxy-alert').innerText)")
  assert.equal(state.asked, 3)
  assert.deepEqual(await notesOf(browser), ['La empresa no ha dicho quién eres, o no tienes cuenta aquí.'])
  // A line that fails says nothing of the company.
  await browser.run("window.real = window.fetch; window.fetch = () => Promise.reject(new TypeError('lost'))")
  await browser.press(KEYS.enter)
  await browser.until("return /^El servicio no responde/.test(document.getElementById('proxy-alert').innerText)")
  await browser.run('window.fetch = window.real')
  await until(async () => (await service.accounts.tokens()).length === 0)
  await logIn(browser)
  assert.equal((await service.accounts.tokens()).length, 1, 'a password is enough, too')
})

inBrowser('without company login the page does not ask for it', CHROMIUM, async t => {
  const { browser } = await openProtected(t)
  assert.equal(await browser.run("return document.getElementById('proxy-login')"), null)
  assert.equal(await browser.run("return performance.getEntriesByType('resource').filter(one => " +
    "one.name.endsWith('/api/proxyLogin')).length"), 0)
})

interface Host {
  readonly service: Service
  readonly url: string
  readonly state: { user: string | undefined, asked: number }
}

/** A program with a login of its own, which embeds the service. */
async function vouchingHost(t: TestContext): Promise<Host> {
  const service = await embed({
    dataDir: freshFolder(t), auth: 'bearer', tokenTtlMinutes: 720, rateLimit: 0, loginLimit: 0, vouches: true
  })
  atEnd(t, () => service.close())
  await service.accounts.addUser({ email: ANA, name: 'Ana', abilities: ['*'], password: PASSWORD, groups: null })
  const state: Host['state'] = { user: ANA, asked: 0 }
  const host = createServer((request, response) => {
    if (request.url === '/api/proxyLogin') state.asked++
    if (state.user !== undefined) service.vouch(request, { user: state.user })
    service.handle(request, response)
  }).listen(0, '127.0.0.1')
  atEnd(t, () => { host.close(); host.closeAllConnections() })
  await once(host, 'listening')
  return { service, state, url: `http://127.0.0.1:${(host.address() as AddressInfo).port}` }
}
