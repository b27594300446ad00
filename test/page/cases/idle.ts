/** A session in which nobody does anything ends, on the page and in the service. */
import assert from 'node:assert/strict'
import {
  CHROMIUM, inBrowser, isEditing, laterBy, logIn, openProtected, openService, until, valueOf
} from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'

inBrowser('after ten idle minutes the page counts down, locks, and gives back what was typed', CHROMIUM, async t => {
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

inBrowser('a page that is left keeps nothing of what was typed before the lock', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await browser.click('#create')
  await browser.fill('#password', 'typed')
  await laterBy(browser, 10.1)
  await browser.find('#locked')
  for (const event of ['pagehide', 'pageshow']) {
    await browser.run(`dispatchEvent(new PageTransitionEvent('${event}', { persisted: true }))`)
  }
  await browser.until("return document.querySelectorAll('#rows .row').length === 8")
  await browser.run('return new Promise(done => setTimeout(done, 50))')
  assert.equal(await isEditing(browser), false)
})
