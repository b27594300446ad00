/** The page in the open configuration, in a real browser: every act, and what is in its way. */
import assert from 'node:assert/strict'
import test, { after, type TestContext } from 'node:test'
import { composeService, FaultyDisk } from '../support/compose.ts'
import { closeSharedBrowser, everyday, holdAnswers, openPage, settled } from '../support/page.ts'
import { startService, type Started } from '../support/service.ts'
import { KEYS, NO_BROWSER, type Browser } from '../support/webdriver.ts'
import { pageRoutes } from '../../src/page.ts'
import { disk } from '../../src/journal/files.ts'

after(closeSharedBrowser)

interface Opened extends Started {
  readonly browser: Browser
}

async function open(t: TestContext, flags: Record<string, string> = {}, isFilled = true): Promise<Opened> {
  const started = await startService(t, { page: 'on', journal: 'memory', ...flags })
  if (isFilled) await everyday(started.service.store)
  const browser = await openPage(started.url)
  return { ...started, browser }
}

function systems(browser: Browser): Promise<string[]> {
  return browser.run("return [...document.querySelectorAll('#rows .system bdi')].map(one => one.textContent)")
}

const textOf = (browser: Browser, selector: string): Promise<string> =>
  browser.run('return document.querySelector(arguments[0]).innerText', selector)

/** The row of a system, as a selector's beginning. */
async function rowOf(browser: Browser, system: string): Promise<string> {
  const index = await browser.run<string>(`return [...document.querySelectorAll('#rows .row')]
    .find(row => row.querySelector('.system bdi').textContent === arguments[0]).ariaRowIndex`, system)
  return `#rows .row[aria-rowindex="${index}"]`
}

/** Makes the page's timers run a thousand times as fast from now on. */
const hurry = (browser: Browser): Promise<unknown> => browser.run(
  'const real = setTimeout; window.setTimeout = (f, ms, ...rest) => real(f, ms / 1000, ...rest)')

test('an empty service says so, and its first entry is created with the generator', { skip: NO_BROWSER }, async t => {
  const { browser, service } = await open(t, {}, false)
  assert.match(await textOf(browser, '#blank'), /Todavía no hay nada guardado/)
  await service.store.createEntry({ sistema: 'De otra persona', usuario: 'eva', password: 'x' }, null)
  await browser.click('#refresh')
  await browser.find('#rows .row')
  await service.store.deleteEntry(1, null)
  await browser.click('#refresh')
  await browser.click('#blank button')
  await browser.fill('#sistema', 'Correo')
  await browser.fill('#usuario', 'ana')
  await browser.click('#generate')
  await browser.click('#again')
  const proposed = await textOf(browser, '#proposal')
  assert.match(proposed, /^[!-~]{20}$/)
  await browser.click('#use')
  assert.equal(await browser.run("return document.getElementById('password').value"), proposed)
  await browser.press(KEYS.enter)
  await browser.until("return !document.getElementById('editor').open")
  await browser.until("return document.getElementById('toast').textContent === 'Contraseña guardada.'")
  assert.deepEqual(await systems(browser), ['Correo'])
  assert.deepEqual(JSON.parse(String(service.store.entryText(2))),
    { id: 2, password: proposed, sistema: 'Correo', usuario: 'ana', status: 1 })
  assert.equal(await browser.run("return document.getElementById('password').value"), '', 'nothing stays in the form')
})

test('the generator: length, classes, of which one always stays, and words', { skip: NO_BROWSER }, async t => {
  const { browser } = await open(t)
  await browser.click('#create')
  await browser.click('#generate')
  const set = (selector: string, value: string): Promise<unknown> => browser.run(`
    const field = document.querySelector(arguments[0])
    field.value = arguments[1]
    field.dispatchEvent(new Event('input', { bubbles: true }))`, selector, value)
  await set('#length', '33')
  for (const name of ['lower', 'upper', 'symbols', 'digits']) await browser.click(`#classes input[value=${name}]`)
  assert.match(await textOf(browser, '#proposal'), /^[2-9]{33}$/)
  assert.equal(await textOf(browser, '#bits'), '99 bits de azar')
  await browser.click('input[value=words]')
  assert.match(await textOf(browser, '#proposal'), /^[a-z]+(-[a-z]+){6}$/)
})

test('what is missing is said at its field, and nothing is sent', { skip: NO_BROWSER }, async t => {
  const { browser } = await open(t)
  await browser.click('#create')
  await browser.fill('#usuario', 'ana')
  await browser.click('#editor .end .main')
  assert.equal(await textOf(browser, '#sistema-fault'), 'Este campo es obligatorio.')
  assert.equal(await textOf(browser, '#usuario-fault'), '')
  assert.equal(await browser.run('return document.activeElement.id'), 'sistema')
  assert.equal(await browser.run("return document.getElementById('sistema').ariaInvalid"), 'true')
  await browser.press('x')
  assert.equal(await textOf(browser, '#sistema-fault'), '', 'it goes with the first letter')
  const asked = await browser.run("return performance.getEntriesByType('resource').map(one => one.name)")
  assert.equal((asked as string[]).filter(name => name.includes('/api/')).length, 1, 'the list was asked for once')
})

test('the search takes words of system and user, without case and accents', { skip: NO_BROWSER }, async t => {
  const { browser } = await open(t)
  assert.deepEqual(await systems(browser), ['Ágora', 'Banco Central', 'Biblioteca municipal', 'Correo', 'GitHub',
    'Impresora', 'Nómina', 'Router de la oficina'])
  for (const [query, hits] of [
    ['nomina', ['Nómina']], ['GARCIA', ['Banco Central', 'GitHub', 'Nómina']], ['cen ana', ['Banco Central']],
    ['zanahoria', []]
  ] as const) {
    await browser.fill('#query', query)
    assert.deepEqual(await systems(browser), hits, query)
  }
  assert.match(await textOf(browser, '#blank'), /Ningún sistema ni usuario contiene «zanahoria»/)
  await browser.until("return document.getElementById('spoken').textContent === 'Nada coincide'")
  await browser.click('#blank button')
  assert.equal((await systems(browser)).length, 8)
  assert.equal(await textOf(browser, '#count'), '8 entradas')
})

test('a password is hidden until asked for, and hides itself again', { skip: NO_BROWSER }, async t => {
  const { browser } = await open(t)
  const row = await rowOf(browser, 'Banco Central')
  assert.doesNotMatch(await browser.run('return document.documentElement.outerHTML'), /v7#Kq-92nR_wd/)
  await browser.click(`${row} [data-act=reveal]`)
  assert.equal(await textOf(browser, `${row} .password`), 'v7#Kq-92nR_wd')
  await browser.click(`${row} [data-act=reveal]`)
  assert.doesNotMatch(await browser.run('return document.documentElement.outerHTML'), /v7#Kq-92nR_wd/)
  await hurry(browser)
  await browser.click(`${row} [data-act=reveal]`)
  await browser.until("return !document.querySelector('.revealed')")
})

test('a password that is looked at in the dialog hides itself again, and not too early', { skip: NO_BROWSER }, async t => {
  const { browser } = await open(t)
  const isSeen = (): Promise<boolean> => browser.run(`return document.getElementById('password').type === 'text'
    && document.getElementById('peek').ariaPressed === 'true'`)
  const hidden = "return document.getElementById('password').type === 'password'"
  // What is to happen after a while happens when the test says so.
  await browser.run(`const real = setTimeout, due = window.due = []
    window.setTimeout = (f, ms, ...rest) => ms === 60000 ? due.push(f) : real(f, ms, ...rest)
    window.clearTimeout = id => { if (due[id - 1]) due[id - 1] = () => {} }`)
  const wait = (which: number): Promise<unknown> => browser.run('due[arguments[0]]()', which)
  await browser.click(`${await rowOf(browser, 'Correo')} [data-act=edit]`)
  await browser.click('#peek')
  assert.ok(await isSeen())
  await browser.click('#peek')
  await browser.click('#peek')
  await wait(0)
  assert.ok(await isSeen(), 'it was looked at again since')
  await wait(1)
  assert.ok(await browser.run(hidden))
  assert.equal(await browser.run("return document.getElementById('password').value"), 'S3cr3ta-del-correo')
  await browser.click('#generate')
  await browser.click('#use')
  assert.ok(await isSeen())
  await wait(2)
  assert.ok(await browser.run(hidden), 'a generated one too')
})

test('a password is copied, and the clipboard emptied after a while', { skip: NO_BROWSER }, async t => {
  const { browser, url } = await open(t)
  const permissions = ['clipboardReadWrite', 'clipboardSanitizedWrite']
  await browser.devtools('Browser.grantPermissions', { origin: url, permissions })
  const clipboard = (): Promise<string> => browser.run('return navigator.clipboard.readText()')
  const row = await rowOf(browser, 'Nómina')
  await browser.click(`${row} [data-act=copy]`)
  await browser.until("return /^Copiada/.test(document.getElementById('toast').textContent)")
  assert.equal(await clipboard(), 'mesa-nube-faro-trigo-loro')
  // As over plain HTTP from another machine: nothing is promised that the browser does not allow.
  await browser.run("Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })")
  await browser.click(`${row} [data-act=copy]`)
  await browser.until("return /no permite vaciar/.test(document.getElementById('toast').textContent)")
  await browser.run('delete navigator.clipboard')
  await hurry(browser)
  await browser.click(`${row} [data-act=copy]`)
  await browser.until("return navigator.clipboard.readText().then(text => text === '')")
  await browser.click(`${row} [data-act=copy]`)
  await browser.run("return navigator.clipboard.writeText('something else')")
  await new Promise(resolve => setTimeout(resolve, 150))
  assert.equal(await clipboard(), 'something else', 'what came since is left alone')
})

test('a browser that refuses to empty the clipboard is asked again when it may not', { skip: NO_BROWSER }, async t => {
  const { browser } = await open(t)
  // As Firefox and Safari: the page may write just after the person has done something, and never read.
  await browser.run(`window.held = 'nothing'
    Object.defineProperty(navigator, 'clipboard', { configurable: true, value: {
      writeText: text => mayWrite ? Promise.resolve(held = text) : Promise.reject(new Error('not now'))
    } })
    window.realTimeout = setTimeout`)
  const held = (): Promise<string> => browser.run('return held')
  const copy = async (system: string): Promise<void> => {
    await browser.run('window.mayWrite = true')
    await browser.click(`${await rowOf(browser, system)} [data-act=copy]`)
    await browser.run('mayWrite = false')
  }
  for (const act of ["dispatchEvent(new Event('focus'))", 'document.body.click()']) {
    await browser.run('window.setTimeout = (f, ms) => realTimeout(f, ms === 30000 ? 100 : ms)')
    await copy('Correo')
    await browser.run('return new Promise(done => realTimeout(done, 200))')
    assert.equal(await held(), 'S3cr3ta-del-correo')
    await browser.run(`mayWrite = true; ${act}`)
    await browser.until("return held === '' && document.getElementById('toast').textContent === 'Portapapeles vaciado.'")
  }
  await copy('Correo')
  await browser.run('return new Promise(done => realTimeout(done, 200))')
  await browser.run('window.setTimeout = realTimeout')
  await copy('GitHub')
  await browser.run('mayWrite = true; document.body.click(); return new Promise(done => realTimeout(done, 50))')
  assert.equal(await held(), 'ghp-no-es-esto', 'what was copied instead has its own time')
})

test('who leaves the page leaves no password in the clipboard', { skip: NO_BROWSER }, async t => {
  const { browser, url } = await open(t)
  const permissions = ['clipboardReadWrite', 'clipboardSanitizedWrite']
  await browser.devtools('Browser.grantPermissions', { origin: url, permissions })
  const clipboard = (): Promise<string> => browser.run('return navigator.clipboard.readText()')
  // The browser does not wait for the page to be done with that: on a busy machine it takes more than one try.
  let left = 'untried'
  for (let tries = 0; left !== '' && tries < 10; tries++) {
    await browser.click(`${await rowOf(browser, 'Nómina')} [data-act=copy]`)
    await browser.until("return /^Copiada/.test(document.getElementById('toast').textContent)")
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

test('editing sends what was changed, and what was not stays as it is, line breaks too', { skip: NO_BROWSER }, async t => {
  const { browser, service } = await open(t, {}, false)
  await service.store.createEntry({ sistema: 'Dos\nlíneas', usuario: 'ana', password: 'a\nb' }, null)
  await service.store.createEntry({ sistema: 'Zeta', usuario: 'ana', password: 'z' }, null)
  await browser.click('#blank')
  await browser.reload()
  await settled(browser)
  // Somebody else changes it meanwhile: the dialog has it as it is now.
  await service.store.updateEntry(1, { usuario: 'eva' }, null)
  await browser.click('#rows [data-act=edit]')
  await browser.until("return document.getElementById('editor').open")
  assert.equal(await browser.run("return document.getElementById('usuario').value"), 'eva')
  await browser.fill('#usuario', 'luz')
  await browser.press(KEYS.enter)
  await browser.until("return !document.getElementById('editor').open")
  assert.deepEqual(JSON.parse(String(service.store.entryText(1))),
    { id: 1, password: 'a\nb', sistema: 'Dos\nlíneas', usuario: 'luz', status: 1 })
  assert.equal(await textOf(browser, '#rows .user'), 'luz')
  assert.equal(await browser.run("return document.activeElement.className"), 'system', 'the focus is on its row')
})

test('deleting asks first, and the focus goes to the next row', { skip: NO_BROWSER }, async t => {
  const { browser, service } = await open(t)
  const row = await rowOf(browser, 'Correo')
  await browser.click(`${row} [data-act=remove]`)
  assert.match(await textOf(browser, '#removal'), /¿Eliminar esta contraseña\?[^]*Correo[^]*ana@example.org/)
  assert.equal(await (await browser.focused()).name(), 'Cancelar')
  await browser.press(KEYS.escape)
  await browser.until("return !document.getElementById('removal').open")
  assert.equal(service.store.activeCount, 8)
  await browser.click(`${row} [data-act=remove]`)
  await browser.click('#removal .danger')
  await browser.until("return !document.getElementById('removal').open")
  assert.equal(service.store.activeCount, 7)
  assert.ok(!(await systems(browser)).includes('Correo'))
  assert.equal(await browser.run("return document.activeElement.closest('.row').querySelector('bdi').textContent"), 'GitHub')
})

test('an answer that comes late disturbs no dialog that was opened since, and is told', { skip: NO_BROWSER }, async t => {
  const { browser, service } = await open(t)
  const typed = (): Promise<unknown> =>
    browser.run("return [document.getElementById('editor').open, document.getElementById('sistema').value]")
  const told = (text: string): Promise<unknown> =>
    browser.until("return document.getElementById('toast').textContent.startsWith(arguments[0])", text)
  const create = async (text: string): Promise<void> => {
    await browser.click('#create')
    await browser.run("for (const one of document.querySelectorAll('#editor .field input')) one.value = arguments[0]", text)
  }
  // Saved, closed before that was answered, and another one begun.
  const release = await holdAnswers(browser)
  await create('first')
  await browser.press(KEYS.enter)
  await browser.press(KEYS.escape)
  await create('second')
  await release(1)
  await told('Contraseña guardada.')
  assert.deepEqual(await typed(), [true, 'second'])
  // The same, when the first one fails.
  const releaseFailure = await holdAnswers(browser)
  Object.assign(service.store, { createEntry: () => Promise.reject(new Error('broken')) })
  await browser.press(KEYS.enter)
  await browser.press(KEYS.escape)
  await create('third')
  await releaseFailure(1)
  await told('El servicio ha fallado. No se pudo hacer:')
  assert.deepEqual(await typed(), [true, 'third'])
  assert.equal(await browser.run("return document.querySelector('#editor .alert').hidden"), true)
  await browser.press(KEYS.escape)
  // Asked to edit one, and to make a new one before it was there.
  const releaseEntry = await holdAnswers(browser)
  await browser.click('#rows [data-act=edit]')
  await create('fourth')
  await releaseEntry(1)
  await browser.run('return new Promise(done => setTimeout(done, 50))')
  assert.deepEqual(await typed(), [true, 'fourth'])
})

test('an entry that somebody else has deleted is dropped when it is edited', { skip: NO_BROWSER }, async t => {
  const { browser, service } = await open(t)
  const row = await rowOf(browser, 'Ágora')
  await service.store.deleteEntry(7, null)
  await browser.click(`${row} [data-act=edit]`)
  await browser.until("return /alguien la eliminó/.test(document.getElementById('toast').textContent)")
  assert.ok(!(await systems(browser)).includes('Ágora'))
})

test('the language is the browser\'s, and switched by a button, also across a reload', { skip: NO_BROWSER }, async t => {
  const { browser } = await open(t)
  const seen = (): Promise<string> => browser.run('return document.documentElement.lang + document.title')
  assert.equal(await seen(), 'esContraseñas')
  await browser.click('[data-language=en]')
  assert.equal(await seen(), 'enPasswords')
  assert.equal(await textOf(browser, '#count'), '8 entries')
  assert.equal(await (await browser.find('#rows [data-act=copy]')).name(), 'Copy the password of Ágora')
  await browser.reload()
  await settled(browser)
  assert.equal(await seen(), 'enPasswords')
  await browser.click('[data-language=es]')
  assert.equal(await seen(), 'esContraseñas')
})

test('429: the waiting time counts down, and then the page may ask again', { skip: NO_BROWSER }, async t => {
  let nowMs = 0
  const { browser, store } = await composed(t, { rateLimit: 1, nowMs: () => nowMs })
  await store.createEntry({ sistema: 's', usuario: 'u', password: 'p' }, null)
  nowMs = 59_000
  await browser.reload()
  await settled(browser)
  assert.match(await textOf(browser, '#notice'), /Demasiadas peticiones[^]*esperar [12] s/)
  assert.equal(await browser.run("return document.querySelector('#notice button').disabled"), true)
  nowMs = 62_000
  await browser.until("return /Ya se puede/.test(document.querySelector('#notice p').textContent)")
  await browser.click('#notice button')
  await browser.find('#rows .row')
  // In the dialog as well; what was typed is still there.
  await browser.click('#create')
  for (const name of ['sistema', 'usuario', 'password']) await browser.fill(`#${name}`, name)
  await browser.press(KEYS.enter)
  await browser.find('#editor .alert')
  assert.match(await textOf(browser, '#editor .alert'), /Demasiadas peticiones. El servicio pide esperar \d+ s/)
  assert.equal(await browser.run("return document.querySelector('#editor .end .main').disabled"), true)
  assert.equal(await browser.run("return document.getElementById('sistema').value"), 'sistema')
})

test('a lost connection keeps what is seen, and the button tries again', { skip: NO_BROWSER }, async t => {
  const { browser } = await open(t)
  const network = (offline: boolean): Promise<unknown> => browser.devtools('Network.emulateNetworkConditions',
    { offline, latency: 0, downloadThroughput: -1, uploadThroughput: -1 })
  await browser.devtools('Network.enable')
  await network(true)
  await browser.click('#refresh')
  await browser.find('#notice')
  assert.match(await textOf(browser, '#notice'), /No se llega al servicio/)
  assert.equal((await systems(browser)).length, 8)
  await network(false)
  await browser.run("const button = document.querySelector('#notice button'); if (button.checkVisibility()) button.click()")
  await browser.until("return document.getElementById('notice').hidden")
})

test('a failure is told with the number of its request, and in the dialog', { skip: NO_BROWSER }, async t => {
  const faulty = new FaultyDisk()
  const { browser, store } = await composed(t, { files: faulty.files })
  await browser.click('#blank button')
  for (const name of ['sistema', 'usuario', 'password']) await browser.fill(`#${name}`, name)
  faulty.fault = 'ENOSPC'
  await browser.press(KEYS.enter)
  await browser.find('#editor .alert')
  assert.match(await textOf(browser, '#editor .alert'), /El servicio ha fallado. No se pudo hacer: Error creating password/)
  faulty.fault = undefined
  await browser.press(KEYS.enter)
  await browser.until("return !document.getElementById('editor').open")
  Object.assign(store, { list: () => { throw new Error('broken') } })
  await browser.click('#refresh')
  await browser.find('#notice')
  assert.match(await textOf(browser, '#notice'), /Server Error · Petición [0-9a-f-]{36}/)
})

test('what an entry holds is shown as text, and cannot rearrange the page', { skip: NO_BROWSER }, async t => {
  const { browser, service } = await open(t, {}, false)
  const texts = ['<img src=x onerror="document.title=1">', 'abc\u202egnp.exe', 'a\u0000b\nc\u2066', '👨‍👩‍👧 x\u200dy', '\ud800',
    'Banco\u3164\u034f\ufe0f\u2800', '❤\ufe0f 1\ufe0f\u20e3', `${'x'.repeat(399)}👨${'y'.repeat(9)}`]
  for (const sistema of texts) await service.store.createEntry({ sistema, usuario: sistema, password: sistema }, null)
  await browser.reload()
  await settled(browser)
  await browser.run("for (const one of document.querySelectorAll('[data-act=reveal]')) one.click()")
  const shown = ['<img src=x onerror="document.title=1">', 'abcU+202Egnp.exe', 'aU+0000bU+000AcU+2066', '👨‍👩‍👧 xU+200Dy',
    'U+D800', 'BancoU+3164U+034FU+FE0FU+2800', '❤\ufe0f 1\ufe0f\u20e3', `${'x'.repeat(399)}…`]
  assert.deepEqual(new Set(await systems(browser)), new Set(shown))
  const column = async (name: string): Promise<ReadonlySet<string>> => new Set(await browser.run<string[]>(
    'return [...document.querySelectorAll(`#rows .${arguments[0]} bdi`)].map(one => one.textContent)', name))
  assert.deepEqual(await column('user'), new Set(shown))
  assert.deepEqual(await column('password'), new Set([...shown.slice(0, -1), texts.at(-1)]), 'of a password nothing is cut')
  assert.equal(await browser.run("return document.querySelectorAll('#rows img').length"), 0)
  assert.equal(await browser.run('return document.title'), 'Contraseñas')
  const name = await (await browser.find(`${await rowOf(browser, 'abcU+202Egnp.exe')} [data-act=copy]`)).name()
  assert.equal(name, 'Copiar la contraseña de abc⟨U+202E⟩gnp.exe')
})

test('an injected script, handler, style or foreign request is stopped by the policy', { skip: NO_BROWSER }, async t => {
  const { browser } = await open(t)
  const stopped = await browser.run<string[]>(`
    const stopped = []
    document.addEventListener('securitypolicyviolation', event => stopped.push(event.effectiveDirective))
    const script = document.createElement('script')
    try { script.text = 'window.injected = 1' } catch { stopped.push('trusted-types') }
    document.body.append(script)
    try { document.body.innerHTML += '<p>' } catch { stopped.push('trusted-types') }
    setTimeout(() => { try { eval('1') } catch { stopped.push('eval') } })
    const image = document.createElement('img')
    try { image.setAttribute('onerror', 'window.injected = 2') } catch { stopped.push('trusted-types') }
    image.src = 'http://127.0.0.2:9/x'
    document.body.append(image)
    document.body.append(document.createElement('style'))
    document.body.lastChild.textContent = 'body { display: none }'
    document.body.setAttribute('style', 'color: red')
    return fetch('http://127.0.0.2:9/').catch(() => {}).then(() => new Promise(done => setTimeout(done, 50, stopped)))`)
  for (const one of ['trusted-types', 'eval', 'img-src', 'connect-src', 'style-src-elem', 'style-src-attr']) {
    assert.ok(stopped.includes(one), `${one} in ${stopped}`)
  }
  assert.equal(await browser.run('return window.injected'), null)
})

/** The page on a service that the test has put together. */
async function composed(
  t: TestContext, options: Parameters<typeof composeService>[1]
): Promise<Awaited<ReturnType<typeof composeService>> & { readonly browser: Browser }> {
  const service = await composeService(t, { routes: pageRoutes(disk), ...options })
  const browser = await openPage(service.url)
  return { ...service, browser }
}
