/** Copied passwords: what is done to the clipboard, and what is said of it. */
import assert from 'node:assert/strict'
import {
  CHROMIUM, holdAnswers, inBrowser, logIn, openProtected, openService, pass, rowOf, told
} from '../../support/page.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'

/** What the browser's own clipboard holds: Firefox says it, Chromium pastes it into a field of the test. */
async function clipboardOf(browser: Browser): Promise<string> {
  if (browser.native.chrome !== undefined) {
    return browser.native.chrome(`const { Services: { clipboard }, Components: { classes, interfaces } } = window
      const held = classes['@mozilla.org/widget/transferable;1'].createInstance(interfaces.nsITransferable)
      held.init(null)
      held.addDataFlavor('text/plain')
      clipboard.getData(held, clipboard.kGlobalClipboard)
      const found = {}
      try { held.getTransferData('text/plain', found) } catch { return '' }
      return found.value.QueryInterface(interfaces.nsISupportsString).data`)
  }
  // Its key must not reach the page, which clears at a key.
  await browser.run(`const field = document.createElement('textarea')
    field.id = 'pasted'
    window.before = document.activeElement
    window.swallow = event => event.stopImmediatePropagation()
    for (const type of ['keydown', 'keyup']) document.addEventListener(type, swallow, true)
    document.body.append(field)
    field.focus()`)
  await browser.devtools('Input.dispatchKeyEvent', { type: 'rawKeyDown', key: 'v', code: 'KeyV', commands: ['paste'] })
  await browser.devtools('Input.dispatchKeyEvent', { type: 'keyUp', key: 'v', code: 'KeyV' })
  return browser.run(`const field = document.getElementById('pasted')
    for (const type of ['keydown', 'keyup']) document.removeEventListener(type, swallow, true)
    field.remove()
    before.focus()
    return field.value`)
}

/** Notes what the page does to the clipboard. */
function holdClipboard(browser: Browser): Promise<unknown> {
  return browser.run(`window.done = []
    Object.defineProperty(navigator, 'clipboard', { configurable: true, value: {
      write: async ([item]) => { done.push(await (await item.getType('text/plain')).text()) },
      writeText: async text => { done.push(text) }, readText: async () => { done.push('read'); return '' } } })
    Object.defineProperty(document, 'hasFocus', { configurable: true, value: () => window.hasIt !== false })`)
}

inBrowser('who was elsewhere since a copy finds the clipboard as it is, and is told', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await holdClipboard(browser)
  await browser.click(`${await rowOf(browser, 'GitHub')} [data-act=copy]`)
  await browser.until('return done.length === 1')
  await browser.run("hasIt = false; dispatchEvent(new Event('blur'))")
  await pass(browser, 30_000)
  await browser.run("return new Promise(done => setTimeout(done, 50))")
  await browser.run("hasIt = true; dispatchEvent(new Event('focus'))")
  await told(browser, 'La contraseña puede seguir en el portapapeles')
  assert.deepEqual(await browser.run('return done'), ['ghp-no-es-esto'], 'neither read nor cleared')
  await browser.click('.message .offer')
  await browser.until("return done.at(-1) === ''")
})

inBrowser('who was elsewhere for a moment only finds the clipboard as it is, too', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await holdClipboard(browser)
  await browser.click(`${await rowOf(browser, 'GitHub')} [data-act=copy]`)
  await browser.until('return isDue(30000) && done.length === 1')
  await browser.run("dispatchEvent(new Event('blur')); dispatchEvent(new Event('focus'))")
  await told(browser, 'La contraseña puede seguir en el portapapeles')
  assert.equal(await browser.run('return isDue(30000)'), false, 'and nothing clears it later')
  assert.deepEqual(await browser.run('return done'), ['ghp-no-es-esto'])
})

inBrowser('who was elsewhere when the copy was made finds the clipboard as it is, too', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await holdClipboard(browser)
  await browser.run('window.hasIt = false')
  await browser.click(`${await rowOf(browser, 'GitHub')} [data-act=copy]`)
  await browser.until('return isDue(30000) && done.length === 1')
  await browser.run("hasIt = true; dispatchEvent(new Event('focus'))")
  await told(browser, 'La contraseña puede seguir en el portapapeles')
  assert.deepEqual(await browser.run('return [isDue(30000), done]'), [false, ['ghp-no-es-esto']])
})

inBrowser('the first press after 30 s clears the browser\'s own clipboard', ['chromium', 'firefox'], async t => {
  const { browser } = await openService(t)
  await browser.until('return document.hasFocus()')
  await browser.click(`${await rowOf(browser, 'GitHub')} [data-act=copy]`)
  await browser.until("return document.querySelector('#rows .done .said')?.textContent === 'Copiado'")
  assert.equal(await browser.run("return document.querySelector('.message')"), null, 'a copy needs no message')
  await browser.until('return isDue(30000)')
  assert.equal(await clipboardOf(browser), 'ghp-no-es-esto')
  await pass(browser, 30_000)
  await told(browser, 'La contraseña puede seguir en el portapapeles. Pulsa algo aquí y se vacía.')
  assert.equal(await clipboardOf(browser), 'ghp-no-es-esto', 'a look alone clears nothing')
  await browser.press(KEYS.shift)
  await browser.until("return document.getElementById('spoken').textContent === 'Portapapeles vaciado'")
  assert.equal(await browser.run("return document.querySelector('.message')"), null)
  assert.equal(await clipboardOf(browser), '')
})

inBrowser('a click after 30 s clears it, too', ['chromium', 'firefox'], async t => {
  const { browser } = await openService(t)
  await browser.until('return document.hasFocus()')
  await browser.click(`${await rowOf(browser, 'GitHub')} [data-act=copy]`)
  // A request that waits has a timer of 30 s, too.
  await browser.until("return document.querySelector('#rows .done .said')?.textContent === 'Copiado'")
  await pass(browser, 30_000)
  await told(browser, 'La contraseña puede seguir en el portapapeles. Pulsa algo aquí y se vacía.')
  await browser.click('#count')
  await browser.until("return document.getElementById('spoken').textContent === 'Portapapeles vaciado'")
  assert.equal(await clipboardOf(browser), '')
})

inBrowser('a user name that is copied after a password is not cleared', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await holdClipboard(browser)
  const row = await rowOf(browser, 'GitHub')
  await browser.click(`${row} [data-act=copy]`)
  await browser.until('return done.length === 1 && isDue(30000)')
  await browser.hover(`${row} .system`)
  await browser.click(`${row} [data-act=copyUser]`)
  await browser.until('return done.length === 2')
  assert.equal(await browser.run('return isDue(30000)'), false)
})

inBrowser('what was copied by hand after a password is not cleared', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await holdClipboard(browser)
  await browser.click(`${await rowOf(browser, 'GitHub')} [data-act=copy]`)
  await browser.until('return done.length === 1 && isDue(30000)')
  await browser.run("document.dispatchEvent(new ClipboardEvent('copy', { bubbles: true }))")
  assert.equal(await browser.run('return isDue(30000)'), false)
  await browser.run("dispatchEvent(new Event('blur')); dispatchEvent(new Event('focus'))")
  assert.equal(await browser.run("return document.querySelector('.message')"), null)
})

inBrowser('a copy begins within the click, before the secret has come', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await holdClipboard(browser)
  await browser.run(`const { write } = navigator.clipboard
    navigator.clipboard.write = items => { window.isBegun = true; return write(items) }`)
  const release = await holdAnswers(browser)
  await browser.click(`${await rowOf(browser, 'GitHub')} [data-act=copy]`)
  assert.equal(await browser.run('return window.isBegun'), true)
  assert.deepEqual(await browser.run('return done'), [])
  await release(1)
  await browser.until("return done[0] === 'ghp-no-es-esto'")
})

inBrowser('a page that a phone has hidden meanwhile clears nothing by itself either', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await holdClipboard(browser)
  await browser.click(`${await rowOf(browser, 'GitHub')} [data-act=copy]`)
  await browser.until('return done.length === 1')
  const hide = (isHidden: boolean): Promise<unknown> =>
    browser.run(`Object.defineProperty(document, 'hidden', { configurable: true, value: arguments[0] })
    document.dispatchEvent(new Event('visibilitychange'))`, isHidden)
  await hide(true)
  await pass(browser, 30_000)
  await hide(false)
  await told(browser, 'La contraseña puede seguir en el portapapeles')
  assert.deepEqual(await browser.run('return done'), ['ghp-no-es-esto'])
})

inBrowser('a password that was copied is cleared after a logout, too', CHROMIUM, async t => {
  const { browser } = await openProtected(t)
  await logIn(browser)
  await holdClipboard(browser)
  await browser.click(`${await rowOf(browser, 'GitHub')} [data-act=copy]`)
  await browser.until('return done.length === 1')
  await browser.run("document.getElementById('logout').click()")
  await browser.find('#login')
  assert.equal(await browser.run('return done.length'), 1, 'not before its time')
  await pass(browser, 30_000)
  await browser.press(KEYS.shift)
  await browser.until("return done.at(-1) === ''")
})
