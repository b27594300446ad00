/** What one user leaves behind on the page, at a logout, a lock or the end of a token: for nobody else, and for the same one again. */
import assert from 'node:assert/strict'
import { ANA, PASSWORD, startProtected } from '../../support/accounts.ts'
import {
  CHROMIUM, createEntry, documentOf, EVERYWHERE, holdAnswers, hurryCheck, inBrowser, isEditing, laterBy, logIn, openProtected,
  openService, passwordIn, rowOf, sendEntry, textOf, told, until, valueOf, view
} from '../../support/page.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'
import { createEntry as create } from '../../../src/store/commands.ts'

/** Logs in, and waits until something of the list is there. */
async function enter(browser: Browser, email: string): Promise<void> {
  await browser.fill('#email', email)
  await browser.fill('#secret', PASSWORD)
  await browser.press(KEYS.enter)
  await browser.until("return document.getElementById('login').hidden && document.querySelector('#rows .row')")
}

/** Lets lists begin with one entry; the rest of the last one comes when the test calls what it gives, and others whole. */
async function cutLists(browser: Browser): Promise<() => Promise<unknown>> {
  await browser.run(`
    window.realFetch ??= window.fetch
    window.fetch = async (url, init) => {
      const answer = await realFetch(url, init)
      if (!String(url).includes('listPassword') || !answer.ok) return answer
      const text = await answer.text(), cut = text.indexOf('}') + 1
      return new Response(new ReadableStream({ start(controller) {
        const put = piece => controller.enqueue(new TextEncoder().encode(piece))
        put(text.slice(0, cut))
        window.rest = () => { window.fetch = realFetch; put(text.slice(cut)); controller.close() }
      } }))
    }`)
  return () => browser.run('rest()')
}

inBrowser('a session that ends while its list comes leaves a login that can be used, for one person at a time', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  const isBusy = "return document.querySelector('#login form').ariaBusy === 'true'"
  const ends = [() => browser.click('#logout'), async () => {
    await service.accounts!.revokeAll(ANA)
    await browser.click('#rows .system')
  }]
  for (const end of ends) {
    const rest = await cutLists(browser)
    await enter(browser, ANA)
    await end()
    await browser.until("return !document.getElementById('login').hidden")
    await rest()
    assert.equal(await browser.run(isBusy), false)
  }
  // In another language the form still waits for its answer.
  const release = await holdAnswers(browser)
  await browser.fill('#email', ANA)
  await browser.fill('#secret', PASSWORD)
  await browser.press(KEYS.enter)
  await browser.click('[data-language=en]')
  assert.ok(await browser.run(isBusy))
  await release(1)
  await browser.until("return document.getElementById('login').hidden")
})

inBrowser('while the logout waits for a deletion nothing stored is in the document, whatever comes', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  await logIn(browser)
  await browser.click('#rows [data-act=reveal]')
  await browser.find('#rows .revealed')
  const release = await holdAnswers(browser)
  await browser.click('#refresh')
  await browser.click('#rows [data-act=edit]')
  await browser.click('#rows .row:last-child [data-act=remove]')
  await browser.click('#logout')
  await browser.until('return held.length === 3')
  await browser.run('for (const come of held.splice(0, 2)) come(); return new Promise(done => setTimeout(done, 100))')
  assert.deepEqual(await browser.run("return [document.querySelectorAll('#rows .row').length, document.querySelectorAll('dialog[open]').length]"), [0, 0])
  await browser.run("dispatchEvent(new Event('offline'))")
  await release(1)
  await browser.until("return document.getElementById('login-note').textContent === 'Has salido.'")
  await until(() => service.accounts!.tokens().length === 0)
  assert.equal(service.store.state.entries.active, 7)
  // Nor does the token stay valid where the page is left meanwhile.
  await logIn(browser)
  await holdAnswers(browser)
  await browser.click('#rows [data-act=remove]')
  await browser.click('#logout')
  await browser.until('return held.length === 1')
  await browser.go('about:blank')
  await until(() => service.accounts!.tokens().length === 0)
})

inBrowser('after the logout nothing that was looked at, typed, searched or said of the account is in the document', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t, ['*'], { 'extra-routes': 'on' })
  await create(service.store, { sistema: 'https://host.example/?key=abc', usuario: 'u', password: 'p' }, null)
  await logIn(browser)
  await view(browser, 'https://host.example/?key=abc')
  await browser.press(KEYS.escape)
  await browser.click('#create')
  await browser.fill('#password', '4711')
  assert.match(await textOf(browser, '#rating-text'), /Impresora/)
  await browser.press(KEYS.escape)
  await browser.click('#discard')
  await browser.click('#show-account')
  await browser.click('#show-own')
  await browser.press(KEYS.escape)
  await browser.click('#show-trash')
  await browser.fill('#trash-query', 'searched')
  await browser.click('#trash [data-close]')
  await browser.fill('#query', 'searched')
  await browser.until("return document.getElementById('spoken').textContent !== ''")
  await browser.fill('#query', 'searched for')
  await browser.click('#logout')
  await browser.until("return document.getElementById('login-note').textContent === 'Has salido.'")
  // The number of hits is read out a moment after typing.
  await browser.run('return new Promise(done => setTimeout(done, 700))')
  const left = /host\.example|Impresora|searched|ana@example|Tu cuenta permite|\d entradas|meter[^>]* value="[1-9]/
  assert.equal(left.exec(await documentOf(browser))?.[0], undefined)
  assert.deepEqual([await textOf(browser, '#viewer .tile'), await textOf(browser, '#spoken'), await valueOf(browser, 'own-email'), await valueOf(browser, 'trash-query')],
    ['', '', '', ''])
})

inBrowser('the keys that undo and redo bring back nothing that was typed before, in any field, to whoever comes next', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  const eva = 'eva@example.org'
  await service.accounts!.addUser(eva, 'Eva', ['*'], PASSWORD)
  const back = async (selector: string): Promise<string> => {
    await browser.click(selector)
    const seen: string[] = []
    for (const key of 'zzzzzzyyyyyyyyyy') {
      await browser.press(KEYS.control, key)
      seen.push(await browser.run("return [...document.querySelectorAll('.field input, #query')].map(one => one.value).join('')"))
    }
    return seen.join('')
  }
  await enter(browser, ANA)
  assert.equal(await back('#query'), '', 'nor to oneself, of the login')
  await browser.click('#create')
  await sendEntry(browser, ' typed')
  await told(browser, 'Contraseña guardada.')
  await browser.click('#create')
  assert.equal(await back('#password'), '')
  await sendEntry(browser, ' and discarded')
  await browser.until("return !document.getElementById('editor').open")
  await browser.fill('#query', 'typed')
  await browser.click('#logout')
  await browser.until("return document.getElementById('login-note').textContent === 'Has salido.'")
  for (const id of ['#email', '#secret']) assert.equal(await back(id), '', id)
  await enter(browser, eva)
  assert.equal(await back('#query'), '')
  await browser.click('#create')
  for (const id of ['#sistema', '#usuario', '#password']) assert.equal(await back(id), '', id)
})

inBrowser('a revoked token leads back to the login, and what was typed comes back to the same person', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  const eva = 'eva@example.org'
  await service.accounts!.addUser(eva, 'Eva', ['*'], PASSWORD)
  const type = async (): Promise<void> => {
    await browser.click('#create')
    await service.accounts!.revokeAll(ANA)
    await sendEntry(browser, ' typed')
    await browser.until("return document.getElementById('login-note').textContent === 'Tu sesión ha terminado. Entra de nuevo.'")
  }
  await logIn(browser)
  await type()
  assert.equal(await browser.run("return document.getElementById('editor').open || document.getElementById('password').value !== ''"), false)
  assert.equal(await browser.run("return document.querySelectorAll('#rows .row').length"), 0)
  await enter(browser, ANA)
  await browser.until("return document.getElementById('editor').open")
  assert.equal(await passwordIn(browser), 'password typed')
  await browser.press(KEYS.enter)
  await told(browser, 'Contraseña guardada.')
  assert.equal(service.store.state.entries.active, 9)
  // Where an entry was opened while the list came, as soon as that is closed.
  await type()
  const rest = await cutLists(browser)
  await enter(browser, ANA)
  await browser.click('#rows .system')
  await rest()
  await browser.until("return document.getElementById('loading').hidden && document.getElementById('viewer').open")
  assert.equal(await isEditing(browser), false)
  await browser.press(KEYS.escape)
  await browser.until("return document.getElementById('editor').open")
  assert.equal(await passwordIn(browser), 'password typed')
  await browser.press(KEYS.escape)
  await browser.click('#discard')
  await type()
  await cutLists(browser)
  // Another person, whose session ends while the list comes, and begins again.
  await enter(browser, eva)
  await service.accounts!.revokeAll(eva)
  await browser.click('#rows .system')
  await browser.until("return !document.getElementById('login').hidden")
  await rest()
  await enter(browser, eva)
  await browser.until("return document.activeElement.className === 'system'")
  assert.equal(await isEditing(browser), false, 'not to another person')
})

inBrowser('what is kept for the next login is asked about before the page is left, and comes back one after the other', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  const endBy = async (text: string): Promise<void> => {
    await service.accounts!.revokeAll(ANA)
    await sendEntry(browser, text)
    await browser.until("return !document.getElementById('login').hidden")
  }
  const isAsked = (): Promise<unknown> => browser.run("return !dispatchEvent(new Event('beforeunload', { cancelable: true }))")
  await logIn(browser)
  await browser.click('#create')
  await endBy(' first')
  assert.equal(await isAsked(), true)
  const rest = await cutLists(browser)
  await enter(browser, ANA)
  await browser.click('#create')
  await rest()
  await browser.until("return document.getElementById('loading').hidden")
  await endBy(' second')
  await logIn(browser)
  for (const text of ['second', 'first']) {
    await browser.until("return document.getElementById('sistema').value === arguments[0]", `sistema ${text}`)
    await browser.press(KEYS.escape)
    await browser.click('#discard')
  }
  assert.equal(await isAsked(), false)
})

inBrowser('what was typed while no login was asked for comes back to who logs in first', CHROMIUM, async t => {
  const { browser, service, url } = await openService(t)
  await browser.click('#create')
  await browser.fill('#sistema', 'typed')
  await service.close()
  await startProtected(t, { page: 'on', port: new URL(url).port })
  await sendEntry(browser, ' typed')
  await browser.until("return !document.getElementById('login').hidden")
  await logIn(browser)
  await browser.until("return document.getElementById('sistema').value === 'sistema typed'")
})

inBrowser('once the token is no longer valid, nothing can be revealed or copied', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  for (const act of ['reveal', 'copy']) {
    await logIn(browser)
    await service.accounts!.revokeAll(ANA)
    await browser.click(`${await rowOf(browser, 'Nómina')} [data-act=${act}]`)
    await browser.find('#login')
    assert.doesNotMatch(await documentOf(browser), /mesa-nube/)
    assert.equal(await browser.run("return document.querySelectorAll('#rows .row').length"), 0)
  }
})

inBrowser('a create that was on its way when the page locked itself is not stored twice', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await hurryCheck(browser)
  const release = await holdAnswers(browser)
  await createEntry(browser)
  await until(() => service.store.state.entries.active === 9)
  await laterBy(browser, 10.1)
  await browser.find('#locked')
  await release(1)
  await browser.click('#locked button')
  await browser.until("return document.getElementById('editor').open")
  await browser.press(KEYS.enter)
  await told(browser, 'El servicio no respondió, pero la contraseña se guardó.')
  assert.equal(service.store.state.entries.active, 9)
})

inBrowser('a page that locks itself before it has looked for a lost create shows nothing, and looks when it is open again', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await browser.run(`const real = setTimeout, { fetch } = window
    window.setTimeout = (f, ms, ...rest) => ms === 1000 ? void (window.look = f) : real(f, ms, ...rest)
    window.fetch = (...asked) => fetch(...asked).finally(() => { if (asked[0].pathname.endsWith('createPassword')) throw new TypeError('lost') })`)
  await createEntry(browser)
  await browser.until('return window.look')
  await laterBy(browser, 10.1)
  await browser.run('look(); window.look = undefined; return new Promise(done => setTimeout(done, 100))')
  assert.equal(await browser.run("return document.querySelectorAll('#rows .row').length"), 0)
  await browser.click('#locked button')
  await browser.until("return document.getElementById('editor').open")
  await browser.press(KEYS.enter)
  await browser.until('return window.look')
  await browser.run('look()')
  await told(browser, 'El servicio no respondió, pero la contraseña se guardó.')
  assert.equal(service.store.state.entries.active, 9)
})

inBrowser('the way back to a page that was left finds nothing of it', EVERYWHERE, async t => {
  const { browser, url } = await openProtected(t)
  await logIn(browser)
  await browser.click(`${await rowOf(browser, 'Nómina')} [data-act=reveal]`)
  await browser.find('#rows .revealed')
  await browser.run("addEventListener('pagehide', () => { const { outerHTML, textContent } = document.documentElement; window.name = outerHTML + textContent })")
  await browser.go(`${url}/?lang=en`)
  await browser.run('setTimeout(() => history.back(), 200)')
  // WebKit's driver never answers a script that a reload cuts off: mostly it is over by then, and `until` asks again where it is not.
  if (browser.native.clicksLate === true) await new Promise(resolve => setTimeout(resolve, 2_500))
  await browser.until("return document.getElementById('login')?.hidden === false && location.search === '?lang=es'")
  const left = await browser.until<string>('return window.name')
  await browser.until("window.name = ''; return true")
  assert.doesNotMatch(left, /mesa-nube|Banco Central/)
  await browser.find('#login')
})

