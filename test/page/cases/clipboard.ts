/** What the clipboard holds after a copy, and for how long. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import {
  CHROMIUM, EVERYWHERE, holdAnswers, hurry, inBrowser, keepCopies, logIn, openProtected, openService, rowOf, settled,
  textOf, told, view
} from '../../support/page.ts'
import { atEnd } from '../../support/service.ts'
import type { Browser } from '../../support/webdriver.ts'
import { deleteEntry } from '../../../src/store/commands.ts'

/** Lets the page of a test read and write the clipboard, as its user may have allowed. */
async function allowClipboard(t: TestContext, browser: Browser, url: string): Promise<void> {
  const permissions = ['clipboardReadWrite', 'clipboardSanitizedWrite']
  await browser.devtools('Browser.grantPermissions', { origin: url, permissions })
  atEnd(t, () => browser.devtools('Browser.resetPermissions'))
}

inBrowser('a password is copied, and the clipboard emptied after a while', CHROMIUM, async t => {
  const { browser, url } = await openService(t)
  await allowClipboard(t, browser, url)
  const clipboard = (): Promise<string> => browser.run('return navigator.clipboard.readText()')
  const row = await rowOf(browser, 'Nómina')
  await browser.click(`${row} [data-act=copy]`)
  await told(browser, 'Copiada')
  assert.equal(await clipboard(), 'mesa-nube-faro-trigo-loro')
  // As over plain HTTP from another machine: nothing is promised that the browser does not allow.
  await browser.run("Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })")
  await browser.click(`${row} [data-act=copy]`)
  await browser.until("return /no permite vaciar/.test(document.getElementById('messages').textContent)")
  await browser.run('delete navigator.clipboard')
  await hurry(browser)
  await browser.click(`${row} [data-act=copy]`)
  await browser.until("return navigator.clipboard.readText().then(text => text === '')")
  // The same, but the time is over when the test says so, and something else was copied since.
  await browser.run(`window.setTimeout = (f, ms) => { if (ms === 30000) window.clear = f }
    const { clipboard } = navigator, { readText, writeText } = clipboard
    window.done = []
    clipboard.readText = () => { done.push('read'); return readText.call(clipboard) }
    clipboard.writeText = text => { done.push('write'); return writeText.call(clipboard, text) }`)
  await browser.click(`${row} [data-act=copy]`)
  await browser.until('return window.clear')
  await browser.run("return navigator.clipboard.writeText('something else')")
  await browser.run('done.length = 0; clear()')
  await browser.until('return done.length > 0')
  assert.equal(await clipboard(), 'something else', 'what came since is left alone')
  assert.ok(!(await browser.run<string[]>('return done')).includes('write'))
})

inBrowser('what was asked to be copied last is what the clipboard has, also where an earlier answer comes later', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await keepCopies(browser)
  for (const [act, said] of [['copy', 'Copiada'], ['copyUser', 'Usuario copiado']] as const) {
    const copied = act === 'copy' ? 'ghp-no-es-esto' : 'anagarcia'
    // The first answer is kept back, not the next.
    const release = await holdAnswers(browser)
    await browser.click(`${await rowOf(browser, 'Nómina')} [data-act=copy]`)
    await browser.until('return held.length === 1')
    await browser.run('window.fetch = realFetch')
    await browser.click(`${await rowOf(browser, 'GitHub')} [data-act=${act}]`)
    await told(browser, said)
    await browser.run("for (const one of document.querySelectorAll('.message .dismiss')) one.click()")
    await release(1)
    await browser.run('return new Promise(done => setTimeout(done, 100))')
    assert.deepEqual(await browser.run('return copied.splice(0)'), [copied])
    assert.equal(await browser.run("return document.querySelectorAll('.message').length"), 0, 'nothing else is said')
  }
})

inBrowser('over plain HTTP the view of an entry copies what it says, not nothing', CHROMIUM, async t => {
  const { browser, url } = await openService(t)
  await allowClipboard(t, browser, url)
  await browser.run("return navigator.clipboard.writeText('something else')")
  await view(browser, 'Nómina')
  const user = await textOf(browser, '#view-user bdi')
  for (const [act, says, text] of [['copyUser', 'Usuario copiado', user], ['copy', 'no permite vaciar', 'mesa-nube-faro-trigo-loro']]) {
    await browser.run("Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })")
    await browser.click(`#viewer [data-act=${act}]`)
    await browser.until("return document.getElementById('messages').textContent.includes(arguments[0])", says)
    await browser.run('delete navigator.clipboard')
    assert.equal(await browser.run('return navigator.clipboard.readText()'), text)
  }
  assert.equal(await browser.run("return document.querySelectorAll('textarea').length"), 0, 'nothing stays in the document')
})

inBrowser('a browser that refuses to empty the clipboard is asked again when it may not', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  // As Firefox and Safari: the page may write just after the person has done something, and never read.
  await browser.run(`window.held = 'nothing'
    Object.defineProperty(navigator, 'clipboard', { configurable: true, value: {
      writeText: text => window.mayWrite ? (window.mayWrite = false, Promise.resolve(window.held = text)) : Promise.reject(new Error('not now'))
    } })
    window.realTimeout = setTimeout`)
  const held = (): Promise<string> => browser.run('return window.held')
  const copy = async (system: string, password: string): Promise<void> => {
    await browser.run('window.mayWrite = true')
    await browser.click(`${await rowOf(browser, system)} [data-act=copy]`)
    await browser.until('return window.held === arguments[0]', password)
  }
  for (const act of ["dispatchEvent(new Event('focus'))", 'document.body.click()']) {
    await browser.run('window.setTimeout = (f, ms) => window.realTimeout(f, ms === 30000 ? 100 : ms)')
    await copy('Correo', 'S3cr3ta-del-correo')
    await new Promise(resolve => setTimeout(resolve, 200))
    assert.equal(await held(), 'S3cr3ta-del-correo')
    await browser.run(`window.mayWrite = true; ${act}`)
    await browser.until("return window.held === '' && /Portapapeles vaciado/.test(document.getElementById('messages').textContent)")
  }
  await copy('Correo', 'S3cr3ta-del-correo')
  await new Promise(resolve => setTimeout(resolve, 200))
  await browser.run('window.setTimeout = window.realTimeout')
  await copy('GitHub', 'ghp-no-es-esto')
  await browser.run('window.mayWrite = true; document.body.click()')
  await new Promise(resolve => setTimeout(resolve, 50))
  assert.equal(await held(), 'ghp-no-es-esto', 'what was copied instead has its own time')
  // A user name stays, though what was copied before was to be emptied; and so does all else once that is over.
  await browser.run(`window.due = []
    window.setTimeout = (f, ms) => ms === 30000 ? void due.push(f) : window.realTimeout(f, ms)`)
  const timeIsOver = (): Promise<unknown> => browser.run('window.mayWrite = true; for (const f of due.splice(0)) f()')
  await copy('Correo', 'S3cr3ta-del-correo')
  await browser.run('window.mayWrite = true')
  await browser.click(`${await rowOf(browser, 'GitHub')} [data-act=copyUser]`)
  await browser.until("return window.held === 'anagarcia'")
  await timeIsOver()
  await new Promise(resolve => setTimeout(resolve, 50))
  assert.equal(await held(), 'anagarcia')
  await copy('Correo', 'S3cr3ta-del-correo')
  await timeIsOver()
  await browser.until("return window.held === ''")
  await deleteEntry(service.store, 5, null)
  await browser.run("window.held = 'something else'; window.mayWrite = false")
  await browser.click(`${await rowOf(browser, 'GitHub')} [data-act=copy]`)
  await told(browser, 'Otra persona')
  await timeIsOver()
  await new Promise(resolve => setTimeout(resolve, 50))
  assert.equal(await held(), 'something else')
  // Who leaves takes nothing along, on a phone as well.
  await copy('Correo', 'S3cr3ta-del-correo')
  await browser.run("window.mayWrite = true; dispatchEvent(new Event('pagehide'))")
  assert.equal(await held(), '')
})

inBrowser('who leaves the page leaves no password in the clipboard', CHROMIUM, async t => {
  const { browser, url } = await openService(t)
  await allowClipboard(t, browser, url)
  const clipboard = (): Promise<string> => browser.run('return navigator.clipboard.readText()')
  // The browser does not wait for the page to be done with that: on a busy machine it takes more than one try.
  let left = 'untried'
  for (let tries = 0; left !== '' && tries < 10; tries++) {
    await browser.click(`${await rowOf(browser, 'Nómina')} [data-act=copy]`)
    await told(browser, 'Copiada')
    assert.equal(await clipboard(), 'mesa-nube-faro-trigo-loro')
    await browser.reload()
    await settled(browser)
    left = await clipboard()
  }
  assert.equal(left, '')
  // But only what the page has put there.
  await browser.run("return navigator.clipboard.writeText('something else')")
  await browser.reload()
  await settled(browser)
  assert.equal(await clipboard(), 'something else')
})

inBrowser('who logs out leaves no password in the clipboard, and all else in it', CHROMIUM, async t => {
  const { browser, url } = await openProtected(t)
  await allowClipboard(t, browser, url)
  for (const since of ['', 'something else']) {
    await logIn(browser)
    await browser.click(`${await rowOf(browser, 'Nómina')} [data-act=copy]`)
    await told(browser, 'Copiada')
    if (since !== '') await browser.run('return navigator.clipboard.writeText(arguments[0])', since)
    await browser.click('#logout')
    if (since === '') await told(browser, 'Portapapeles vaciado')
    await browser.until("return document.getElementById('login-note').textContent === 'Has salido.'")
    await browser.run('return new Promise(done => setTimeout(done, 100))')
    assert.equal(await browser.run('return navigator.clipboard.readText()'), since)
  }
})

inBrowser('the message says when the clipboard is cleared in this very browser', EVERYWHERE, async t => {
  const { browser, url } = await openService(t)
  if (browser.native.devtools !== undefined) await allowClipboard(t, browser, url)
  await browser.click(`${await rowOf(browser, 'Nómina')} [data-act=copy]`)
  await told(browser, 'Copiada.')
  const text = await textOf(browser, '#messages')
  if (browser.native.devtools === undefined) assert.match(text, /Pasados 30 s, el portapapeles se vacía cuando pulses algo/)
  else assert.match(text, /se vacía en 30 s, o cuando vuelvas/)
})
