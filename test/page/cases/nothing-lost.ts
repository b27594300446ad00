/** What the page promises about what was typed and deleted, and about sessions. */
import assert from 'node:assert/strict'
import { ANA } from '../../support/accounts.ts'
import {
  CHROMIUM, createEntry, documentOf, edit, entries, EVERYWHERE, holdAnswers, inBrowser, keepCopies, laterBy, logIn,
  openProtected, openService, pass, remove, rowOf, systems, textOf, told, until, valueOf, view
} from '../../support/page.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'
import { createEntry as storeEntry } from '../../../src/entries/entry-commands.ts'

const LINES = '-----BEGIN KEY-----\nabc 0O1l\n-----END KEY-----\n4711'

/** What a gateway between the page and the service says, to each request whose address has this in it. */
function gateway(browser: Browser, part: string, status: number, body: object): Promise<unknown> {
  return browser.run(`const [part, status, body] = arguments
    window.realFetch ??= window.fetch
    window.fetch = async (url, init) => String(url).includes(part)
      ? new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json' } })
      : realFetch(url, init)`,
  part, status, body)
}

inBrowser('a stray key in the editor does not replace a stored password', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await edit(browser, 'Correo')
  await browser.press(KEYS.tab, KEYS.tab, KEYS.space)
  await browser.press(KEYS.tab, 'x')
  await browser.fill('#usuario', 'changed')
  await browser.click('#editor .main')
  await browser.until("return document.getElementById('editor')?.open !== true")
  const { usuario, password } = service.store.state.entries.get(1)!
  assert.deepEqual([usuario, password], ['changed', 'S3cr3ta-del-correo'])
})

inBrowser('behind a compressing proxy, which makes every tag weak, what is changed is saved', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await browser.run(`const { fetch } = window
    window.fetch = async (...asked) => {
      const answer = await fetch(...asked)
      const headers = new Headers(answer.headers)
      if (headers.has('ETag')) headers.set('ETag', 'W/' + headers.get('ETag'))
      return new Response(answer.status === 304 ? null : answer.body, { status: answer.status, headers })
    }`)
  await edit(browser, 'Banco Central')
  await browser.fill('#usuario', 'mine')
  await browser.press(KEYS.enter)
  await until(() => service.store.state.entries.get(2)?.usuario === 'mine')
})

inBrowser('only "Change" makes a field, the old password can be kept, and a change be undone', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await edit(browser, 'Correo')
  assert.doesNotMatch(await documentOf(browser), /S3cr3ta-del-correo/)
  await browser.click('#show-password')
  await browser.until("return document.querySelector('#editor .revealed .code')?.textContent === 'S3cr3ta-del-correo'")
  await browser.click('#change-password')
  assert.doesNotMatch(await documentOf(browser), /S3cr3ta-del-correo/, 'in the document only while it is shown')
  assert.equal(await valueOf(browser, 'password'), '')
  await browser.fill('#password', 'not this one')
  await browser.click('#keep-old')
  await browser.click('#change-password')
  assert.equal(await valueOf(browser, 'password'), '', 'each time an empty field')
  await browser.click('#keep-old')
  await browser.click('#editor .main')
  await browser.until("return document.getElementById('editor') === null")
  await edit(browser, 'Correo')
  await browser.click('#change-password')
  await browser.fill('#password', 'quite another one')
  await browser.click('#editor .main')
  await until(() => service.store.state.entries.get(1)?.password === 'quite another one')
  await browser.click('.message .offer')
  await until(() => service.store.state.entries.get(1)?.password === 'S3cr3ta-del-correo')
})

inBrowser('a secret of several lines keeps them, is counted, is shown and copied with them', EVERYWHERE, async t => {
  const { browser, service } = await openService(t, {}, entries())
  await browser.click('#create')
  await browser.fill('#sistema', 'Llave')
  await browser.fill('#usuario', 'ana')
  const before = await browser.run<number>("return document.getElementById('password').offsetHeight")
  await browser.fill('#password', LINES)
  assert.ok(await browser.run<number>("return document.getElementById('password').offsetHeight") > before, 'it grows')
  await browser.until("return /4 líneas/.test(document.getElementById('editor').innerText)")
  await browser.press(KEYS.enter)
  assert.equal(await valueOf(browser, 'password'), `${LINES}\n`, 'Enter makes another')
  await browser.fill('#password', LINES)
  await browser.click('#editor .main')
  await until(() => service.store.state.entries.get(1)?.password === LINES)
  await browser.until("return document.getElementById('editor')?.open !== true")
  await keepCopies(browser)
  await browser.click('#rows .system')
  await browser.click('#viewer [data-act=copy]')
  await browser.until('return copied.length > 0')
  assert.deepEqual(await browser.run('return copied'), [LINES])
  await browser.click('#view-password .icon')
  await browser.until("return document.querySelector('#view-password .revealed') !== null")
  assert.equal(await textOf(browser, '#view-password .code'), LINES)
})

inBrowser('a password that was typed stays when its field is left, masked', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await browser.click('#create')
  await browser.click('#password')
  await browser.press(...'typed by hand', KEYS.tab)
  await browser.run("document.getElementById('usuario').focus()")
  assert.equal(await valueOf(browser, 'password'), 'typed by hand')
  assert.ok(await browser.run("return document.getElementById('password').matches('.masked')"))
  await browser.press(KEYS.escape)
  await browser.click('#confirm .danger')
  await browser.until("return document.getElementById('editor') === null")
  assert.doesNotMatch(await documentOf(browser), /typed by hand/)
})

inBrowser('what a gateway says in its words is no empty list, no deletion, and nobody else\'s', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await gateway(browser, '/api/list', 404, { error: 'no route' })
  await browser.click('#refresh')
  await browser.until("return document.querySelector('.message, #notice:not([hidden])')")
  assert.equal((await systems(browser)).length, 8)
  await gateway(browser, 'deletePassword', 200, { ok: true })
  await remove(browser, 'Correo')
  await told(browser, '«Correo» no se ha eliminado')
  assert.equal(service.store.state.entries.get(1)?.status, 1)
  assert.ok((await systems(browser)).includes('Correo'))
  await gateway(browser, 'getPassword', 404, { message: 'not found', status: 404 })
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=edit]`)
  await browser.until("return /ha fallado/.test(document.querySelector('.message')?.innerText)")
  assert.ok((await systems(browser)).includes('Correo'), 'nobody has deleted it')
})

inBrowser('the common or short is warned of, the typed has no meter, the generated is strong', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await browser.click('#create')
  const said = (): Promise<string> => textOf(browser, '.field:has(#password)')
  for (const [text, word] of [['Empresa2026*', /más usadas/], ['corta', /Corta/], ['qm7 4tz 9wp', /Corta/],
    ['qm7 4tz 9wpk', /^Contraseña\s*$/],
    ['correcthorsebatterystaple', /más usadas/], ['P@ssw0rd12345', /más usadas/],
    ['zanahorias y barcos', /^Contraseña\s*$/]] as const) {
    await browser.fill('#password', text)
    await browser.until('return new ' +
      'RegExp(arguments[0]).test(document.querySelector(".field:has(#password)").innerText)', word.source)
    assert.doesNotMatch(await said(), /segura|aceptable|débil/i, text)
  }
  assert.equal(await browser.run("return document.querySelectorAll('meter').length"), 0)
  await browser.click('#generate')
  await browser.until("return /Muy fuerte/.test(document.querySelector('.field:has(#password)').innerText)")
})

inBrowser('leaving the page revokes the token, hiding it does not', EVERYWHERE, async t => {
  const { browser, service } = await openProtected(t)
  await logIn(browser)
  await browser.run(`Object.defineProperty(document, 'hidden', { configurable: true, value: true })
    document.dispatchEvent(new Event('visibilitychange'))`)
  await browser.run('return new Promise(done => setTimeout(done, 100))')
  assert.equal(service.accounts!.tokens().length, 1)
  await browser.go('about:blank')
  await until(() => service.accounts!.tokens().length === 0)
})

inBrowser('a reload leaves no token either, and Back to the page asks for a login', EVERYWHERE, async t => {
  const { browser, service, url } = await openProtected(t)
  await logIn(browser)
  await browser.reload()
  await until(() => service.accounts!.tokens().length === 0)
  await browser.find('#login')
  await logIn(browser)
  await browser.go(`${url}/?lang=en`)
  await browser.run('setTimeout(() => history.back(), 200)')
  await browser.until("return !location.search.includes('en')")
  await browser.find('#login')
  assert.equal(await browser.run("return document.querySelectorAll('#rows .row').length"), 0)
})

inBrowser('a page that is left keeps nothing, and begins again when the cache brings it back', EVERYWHERE, async t => {
  const leave = async (browser: Browser): Promise<void> => {
    await view(browser, 'GitHub')
    await browser.run("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    assert.doesNotMatch(await documentOf(browser), /GitHub/)
  }
  const comeBack = "dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))"
  const open = await openService(t)
  await leave(open.browser)
  await open.browser.run(comeBack)
  await open.browser.until("return document.querySelectorAll('#rows .row').length === 8")
  const { browser, service } = await openProtected(t)
  await logIn(browser)
  await leave(browser)
  await until(() => service.accounts!.tokens().length === 0)
  await browser.run(comeBack)
  await browser.find('#login')
})

inBrowser('Back closes a dialog and does not log out', EVERYWHERE, async t => {
  const { browser, service } = await openProtected(t)
  await logIn(browser)
  await browser.click('#rows .system')
  await browser.until("return document.getElementById('viewer')?.open")
  await browser.run('history.back()')
  await browser.until("return document.getElementById('viewer')?.open !== true")
  assert.equal((await systems(browser)).length, 8)
  await browser.run('history.back()')
  await told(browser, 'Pulsa Atrás otra vez')
  assert.equal(service.accounts!.tokens().length, 1)
})

inBrowser('a logout that is refused is not tried again', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  await logIn(browser)
  await browser.run(`const real = window.fetch
    window.asked = 0
    const refused = () => new Response('{"message":"Too Many Requests"}',
      { status: 429, headers: { 'Retry-After': '0' } })
    window.fetch = async (url, init) => String(url).includes('logout')
      ? (window.isKept = init.keepalive, asked++, refused()) : real(url, init)`)
  await browser.run("document.getElementById('help').click()")
  assert.match(await textOf(browser, '#more'), /Sin conexión, la sesión sigue abierta hasta que caduque/)
  await browser.run("document.getElementById('logout').click()")
  await browser.until("return /sigue allí hasta que caduque/.test(document.getElementById('login-note')?.textContent)")
  assert.deepEqual(await browser.run('return [asked, isKept]'), [1, true], 'once, by a request that outlives the page')
  assert.equal(service.accounts!.tokens().length, 1)
})

inBrowser('a dropped line is told in a while; list, place and dialog stay, also when it is back', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  await browser.resize(1200, 320)
  await browser.run("scrollTo({ top: 200, behavior: 'instant' })")
  await view(browser, 'GitHub')
  await browser.click('#view-password .icon')
  await browser.find('#viewer .revealed')
  await browser.run(`Object.defineProperty(navigator, 'onLine', { configurable: true, value: false })
    dispatchEvent(new Event('offline'))`)
  assert.equal(await browser.run("return document.querySelector('.message')"), null)
  await pass(browser, 3_000)
  await told(browser, 'Sin conexión')
  const sign = "return document.getElementById('refresh').ariaLabel"
  assert.equal(await browser.run(sign), 'Actualizar. Sin conexión. Se reintenta sola.', 'and a sign stays')
  const seen = `return [scrollY, document.querySelector('#viewer .revealed .code')?.textContent]`
  assert.deepEqual(await browser.run(seen), [200, 'ghp-no-es-esto'])
  await storeEntry(service.store, { sistema: 'Zeta', usuario: 'eva', password: 'p' }, null)
  await browser.run("dispatchEvent(new Event('online'))")
  await browser.until("return document.getElementById('grid').ariaRowCount === '10'")
  assert.deepEqual(await browser.run(seen), [200, 'ghp-no-es-esto'])
  assert.equal(await browser.run("return document.querySelector('.message')"), null)
  assert.equal(await browser.run(sign), 'Actualizar')
})

inBrowser('another person\'s draft is dropped with a word, one\'s own is opened again', EVERYWHERE, async t => {
  const { browser, service } = await openProtected(t)
  const eva = 'eva@example.org'
  await service.accounts!.addUser(eva, 'Eva', ['*'], 'correct horse battery staple')
  for (const [email, isBack] of [[ANA, true], [eva, false]] as const) {
    await logIn(browser)
    assert.ok(await browser.run("return document.querySelector('.message, dialog') === null"), 'no other is left')
    await browser.click('#create')
    await browser.fill('#sistema', 'unsaved')
    await service.accounts!.revokeAll(ANA)
    await browser.fill('#usuario', 'ana')
    await browser.fill('#password', 'some password')
    await browser.click('#editor .main')
    await browser.find('#login')
    assert.doesNotMatch(await documentOf(browser), /unsaved/)
    await logIn(browser, email)
    if (isBack) {
      await browser.until("return document.getElementById('editor')?.open")
      assert.deepEqual([await valueOf(browser, 'sistema'), await valueOf(browser, 'password')],
        ['unsaved', 'some password'])
      await browser.press(KEYS.escape)
      await browser.click('#confirm .danger')
      await service.accounts!.revokeAll(ANA)
      await browser.click('#refresh')
      await browser.find('#login')
    } else {
      await told(browser, 'Se ha descartado')
      assert.ok(await browser.run("return document.getElementById('editor') === null"))
    }
  }
})

inBrowser('an editor that a login opens again holds what was typed, and asks for the password', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  await logIn(browser)
  await view(browser, 'Correo')
  await browser.click('#viewer .end .main')
  await browser.click('#show-password')
  await browser.until("return document.querySelector('#editor .revealed') !== null")
  await service.accounts!.revokeAll(ANA)
  await browser.fill('#usuario', 'typed')
  await browser.click('#editor .main')
  await browser.find('#login')
  await logIn(browser)
  await browser.until("return document.getElementById('editor')?.open")
  assert.equal(await valueOf(browser, 'usuario'), 'typed')
  assert.doesNotMatch(await documentOf(browser), /S3cr3ta-del-correo/)
  const release = await holdAnswers(browser)
  await browser.click('#show-password')
  await release(1)
  await browser.until("return document.querySelector('#editor .revealed .code')?.textContent === 'S3cr3ta-del-correo'")
  await browser.click('#editor .main')
  await browser.until("return document.getElementById('editor') === null")
  const { usuario, password } = service.store.state.entries.get(1)!
  assert.deepEqual([usuario, password], ['typed', 'S3cr3ta-del-correo'])
})

inBrowser('what the lock has interrupted is not shown to another person', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  const eva = 'eva@example.org'
  await service.accounts!.addUser(eva, 'Eva', ['*'], 'correct horse battery staple')
  await logIn(browser)
  await browser.click('#create')
  await browser.fill('#sistema', 'unsaved')
  await laterBy(browser, 10.1)
  await browser.find('#login')
  await logIn(browser, eva)
  await told(browser, 'Se ha descartado')
  assert.doesNotMatch(await documentOf(browser), /unsaved/)
})

inBrowser('a deletion is done at once; several are one message, undone by it or by the key', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await remove(browser, 'Correo')
  await until(() => service.store.state.entries.get(1)?.status === 0)
  await told(browser, 'Eliminada: Correo')
  await remove(browser, 'Impresora')
  await told(browser, '2 eliminadas')
  assert.equal(await browser.run("return document.querySelectorAll('.message').length"), 1)
  await browser.click('.message .offer')
  await until(() => service.store.state.entries.active === 8)
  await browser.until("return document.querySelectorAll('#rows .row').length === 8")
  await remove(browser, 'Correo')
  await told(browser, 'Eliminada: Correo')
  await browser.press(KEYS.control, 'z')
  await until(() => service.store.state.entries.active === 8)
})

inBrowser('of like systems the message names the user; who may not restore is asked before', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t, ['password:read', 'password:create', 'password:delete'])
  await logIn(browser)
  await createEntry(browser, 'Correo')
  await browser.until("return document.querySelectorAll('#rows .row').length === 9")
  await remove(browser, 'Correo')
  assert.match(await textOf(browser, '#confirm'), /Eliminar Correo \([^)]+\)[^]*no podrás deshacerlo/)
  assert.equal(service.store.state.entries.active, 9)
  await browser.press(KEYS.escape)
  assert.equal((await systems(browser)).length, 9)
  await remove(browser, 'Correo')
  await browser.click('#confirm .danger')
  await until(() => service.store.state.entries.active === 8)
})
