/** What an account does not allow is not offered, from the login on. */
import assert from 'node:assert/strict'
import { ANA, PASSWORD } from '../../support/accounts.ts'
import {
  CHROMIUM, createEntry, focus, holdTime, inBrowser, isEditing, logIn, openProtected, rowOf, textOf, told, until, view
} from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'
import { deleteEntry } from '../../../src/store/commands.ts'

inBrowser('who may only read is offered nothing else, by button, key or dialog', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t, ['password:read'])
  await logIn(browser)
  await browser.find('#rows .row')
  const seen = (selector: string): Promise<boolean> =>
    browser.run('return document.querySelector(arguments[0])?.checkVisibility() === true', selector)
  for (const one of ['#create', '#show-trash', '#rows [data-act=edit]', '#rows [data-act=remove]']) {
    assert.equal(await seen(one), false, one)
  }
  assert.ok(await seen('#rows [data-act=copy]'))
  await browser.run('document.activeElement.blur()')
  await browser.press('n')
  assert.equal(await isEditing(browser), false)
  await view(browser, 'Correo')
  assert.deepEqual(await browser.run(`return [...document.querySelectorAll('#viewer .end button')]
    .filter(one => one.checkVisibility()).map(one => one.innerText)`), ['Cerrar'])
  await browser.press(KEYS.escape)
  await browser.click('#show-account')
  assert.match(await textOf(browser, '#account'), /Tu cuenta permite: ver la lista\./)
  assert.equal(await seen('#show-own'), false)
  assert.equal(service.store.state.entries.active, 8)
})

inBrowser('an account that allows nothing is told what it does not allow', CHROMIUM, async t => {
  const { browser } = await openProtected(t, ['password:none'])
  await logIn(browser)
  await browser.until("return document.getElementById('limits').checkVisibility()")
  await browser.run("document.getElementById('show-account').click()")
  assert.match(await textOf(browser, '#account-may'), /^Tu cuenta no permite: ver la lista, crear, editar, eliminar, restaurar\.$/)
  await browser.press(KEYS.escape)
  await browser.click('#logout')
  await browser.until("return !document.getElementById('login').hidden")
  await browser.click('[data-language=en]')
  assert.ok(await browser.run("return document.getElementById('limits').hidden"), 'nor is the next person told')
})

inBrowser('each ability brings what it is for, and nothing is asked that would be refused', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t, ['password:create'])
  await browser.fill('#email', ANA)
  await browser.fill('#secret', PASSWORD)
  await browser.press(KEYS.enter)
  await browser.until("return document.getElementById('limits').checkVisibility() && document.getElementById('limits').textContent === 'Tu cuenta no permite: ver la lista.'")
  const asked = await browser.run<string[]>("return performance.getEntriesByType('resource').map(one => one.name)")
  assert.deepEqual(asked.filter(name => name.includes('/api/')).map(name => name.split('/').at(-1)), ['login'])
  await createEntry(browser)
  await browser.until("return !document.getElementById('editor').open")
  assert.equal(service.store.state.entries.active, 9)
  assert.equal(await browser.run('return document.activeElement === document.body'), false, await focus(browser))
})

inBrowser('an ability that was taken away meanwhile is refused with a message, and not offered again', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  await logIn(browser)
  const { accounts } = service
  const session = accounts!.session.bind(accounts!)
  Object.assign(accounts!, { session: (token: string) => {
    const found = session(token)
    return found === undefined ? undefined : { ...found, abilities: ['password:read'] }
  } })
  await createEntry(browser)
  await browser.until("return /Tu cuenta no permite/.test(document.querySelector('#editor .alert').textContent)")
  await browser.press(KEYS.escape)
  await browser.click('#discard')
  assert.equal(await browser.run("return document.getElementById('create').checkVisibility()"), false)
  const timeIsOver = await holdTime(browser)
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=remove]`)
  await timeIsOver()
  await told(browser, '«Correo» no se eliminó. Sin permiso. Tu cuenta')
  assert.equal(service.store.state.entries.active, 8)
  await browser.until("return document.querySelectorAll('#rows .row').length === 8")
  assert.equal(await browser.run("return document.querySelector('#rows [data-act=remove]').checkVisibility()"), false)
})

inBrowser('a session that has ended is noticed anywhere, and ends everything in the same way', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t, ['*'], { 'extra-routes': 'on', journal: 'file' })
  await logIn(browser)
  await browser.find('#rows .row')
  await deleteEntry(service.store, 2, null)
  const steps: readonly (readonly [what: string, prepare: () => Promise<unknown>, act: () => Promise<unknown>])[] = [
    ['the deleted ones', async () => {}, () => browser.click('#show-trash')],
    ['restoring', async () => { await browser.click('#show-trash'); await browser.find('#deleted button') }, () => browser.click('#deleted button')],
    // What is viewed is asked for as well, and may be what notices it first: then the button is gone.
    ['editing', () => view(browser, 'Correo'), () => browser.run("document.querySelector('#viewer [data-act=edit]').click()")],
    ['the history', () => view(browser, 'Correo'), () => browser.run("document.querySelector('#history summary').click()")],
    ['the own password', async () => {
      await browser.click('#show-account')
      await browser.click('#show-own')
      await browser.fill('#current', PASSWORD)
      await browser.fill('#fresh', 'another long password')
    }, () => browser.click('#own .main')]
  ]
  for (const [what, prepare, act] of steps) {
    await prepare()
    await service.accounts!.revokeAll(ANA)
    await act()
    await browser.until("return document.getElementById('login-note').textContent === 'Tu sesión ha terminado. Entra de nuevo.' && document.getElementById('login').checkVisibility()")
    assert.deepEqual(await browser.run("return [document.querySelectorAll('dialog[open]').length, document.querySelectorAll('#rows .row').length]"),
      [0, 0], what)
    await browser.until("return document.activeElement.id === 'email'")
    await logIn(browser)
    await browser.find('#rows .row')
    assert.equal(await browser.run("return document.querySelectorAll('[aria-busy=true]').length"), 0, what)
  }
})

inBrowser('logging out waits for the rate limit by itself, and says so', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  await logIn(browser)
  let refused = 0
  const revoke = service.accounts!.revoke.bind(service.accounts!)
  // In seconds, as the service says it, and by a date, as a proxy may.
  await browser.run(`const real = window.fetch, realTimeout = setTimeout, retry = ['2', new Date().toUTCString()]
    window.setTimeout = (f, ms, ...rest) => { if (Number.isNaN(ms)) window.isUntimed = true; return realTimeout(f, ms, ...rest) }
    window.asked = 0
    window.fetch = async (url, init) => {
      if (!String(url).includes('logout') || window.isOver) return real(url, init)
      const headers = { 'Retry-After': retry[Math.min(1, asked++)] }
      return new Response('{"message":"Too Many Requests","status":429}', { status: 429, headers })
    }`)
  Object.assign(service.accounts!, { revoke: (...args: Parameters<typeof revoke>) => { refused++; return revoke(...args) } })
  await browser.click('#logout')
  await browser.until("return /pide esperar para cerrar la sesión/.test(document.getElementById('login-note').textContent)")
  assert.equal(service.accounts!.tokens().length, 1)
  assert.equal(await browser.run("return document.querySelectorAll('#rows .row').length"), 0)
  await browser.until('return asked > 1')
  await browser.run('window.isOver = true')
  await browser.until("return document.getElementById('login-note').textContent === 'Has salido.'")
  assert.notEqual(await browser.run('return window.isUntimed'), true, 'not without a pause')
  await until(() => service.accounts!.tokens().length === 0 && refused === 1)
})

inBrowser('a deletion that a lost session cuts off is not carried out for the next person', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  const eva = 'eva@example.org'
  await service.accounts!.addUser(eva, 'Eva', ['*'], PASSWORD)
  await logIn(browser)
  await holdTime(browser)
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=remove]`)
  await told(browser, '«Correo» eliminada.')
  await service.accounts!.revokeAll(ANA)
  await browser.click('#refresh')
  await browser.find('#login')
  assert.equal(await browser.run("return document.querySelectorAll('.message').length"), 0)
  await logIn(browser, eva)
  await browser.until("return document.getElementById('count').textContent === '8 entradas'")
  await browser.run(`Object.defineProperty(document, 'hidden', { configurable: true, value: true })
    document.dispatchEvent(new Event('visibilitychange'))`)
  await browser.click('#refresh')
  await browser.until("return document.getElementById('refresh').ariaBusy === null")
  assert.equal(service.store.state.entries.active, 8)
})
