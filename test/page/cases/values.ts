/** What an entry holds: long, hidden, cut, or not to be seen. */
import assert from 'node:assert/strict'
import {
  CHROMIUM, createEntry, edit, entries, EVERYWHERE, inBrowser, openService, passwordIn, show, systems, textOf, told, valueOf, view
} from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'

const LONG = '#0 '.repeat(20_000)

inBrowser('a password of sixty thousand signs is shown whole, and stops no tab', EVERYWHERE, async t => {
  const { browser } = await openService(t, {}, entries(['Largo', 'ana', LONG], [LONG, LONG, 'p']))
  const elements = (): Promise<number> => browser.run("return document.querySelectorAll('.row *, #viewer *').length")
  const before = await elements()
  await browser.click('#rows .row:last-child [data-act=reveal]')
  await browser.find('#rows .revealed')
  assert.equal(await browser.run("return document.querySelector('#rows .revealed').textContent === arguments[0]", LONG), true)
  assert.ok(await elements() - before < 2_100, 'beyond two thousand signs it is one text')
  await browser.click('#rows .row:first-child .user')
  await browser.until("return document.getElementById('viewer').open")
  assert.equal(await browser.run("return document.querySelector('#view-user bdi').textContent === arguments[0]", LONG), true)
  await browser.press(KEYS.escape)
  await browser.fill('#query', 'largo')
  assert.deepEqual(await systems(browser), ['Largo'])
})

inBrowser('a hidden password is in no field, for nobody: not to read out, to count, to select', CHROMIUM, async t => {
  const { browser, service } = await openService(t)
  const secret = 'S3cr3ta-del-correo'
  const heard = async (): Promise<string> => JSON.stringify(await browser.devtools('Accessibility.getFullAXTree'))
  await edit(browser, 'Correo')
  assert.ok(!(await heard()).includes(secret))
  assert.ok(!(await heard()).includes('"description":{"type":"computedString","value":"0'), 'no number describes an empty field')
  assert.equal(await valueOf(browser, 'password'), '')
  assert.equal(await browser.run("return document.getElementById('password').placeholder"), 'Oculta; escribe para cambiarla')
  await browser.click('#peek')
  assert.ok((await heard()).includes(secret), 'shown, it is there for everybody')
  await browser.press(KEYS.enter)
  await browser.until("return document.getElementById('password').value === ''")
  // What is typed is hidden when the person goes on, and is what is saved.
  await browser.run("document.getElementById('password').focus()")
  await browser.press(...'typed')
  await browser.press(KEYS.tab)
  assert.ok(!(await heard()).includes('typed'))
  assert.equal(await valueOf(browser, 'password'), '')
  assert.equal(await passwordIn(browser), 'typed')
  await browser.fill('#usuario', 'eva')
  await browser.press(KEYS.enter)
  await told(browser, 'Cambios guardados.')
  assert.equal(service.store.state.entries.get(1)?.password, 'typed')
  // Nor in the dialog that shows the entry.
  await view(browser, 'Correo')
  assert.ok(!(await heard()).includes('typed'))
  await browser.click('#view-password button')
  await browser.find('#viewer .secret.revealed')
  assert.equal(await textOf(browser, '#viewer .secret .code'), 'typed')
  assert.equal(await textOf(browser, '#view-password button'), 'Ocultar')
  await browser.press(KEYS.escape)
  await browser.until("return !document.documentElement.outerHTML.includes('typed')")
})

inBrowser('an unchanged password is not sent, and an emptied field keeps it', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await edit(browser, 'Correo')
  await browser.run("document.getElementById('password').focus()")
  await browser.press('x', '\uE003')
  await browser.fill('#usuario', 'eva')
  await browser.press(KEYS.enter)
  await told(browser, 'Cambios guardados.')
  assert.equal(service.store.state.entries.get(1)?.password, 'S3cr3ta-del-correo')
})

inBrowser('a long name is cut in a message, and shows whole under the pointer', CHROMIUM, async t => {
  const name = `Sistema ${'muy largo '.repeat(12)}`
  const { browser } = await openService(t, {}, entries([name, 'ana', 'p'], ['Corto', 'ana', 'p']))
  await browser.hover('#rows .row:last-child .system')
  await browser.until("return document.querySelector('#rows .row:last-child .system').title.startsWith('Sistema muy largo')")
  await browser.hover('#rows .row:first-child .system')
  assert.equal(await browser.run("return document.querySelector('#rows .row:first-child .system').title"), '')
  await browser.click('#rows .row:last-child [data-act=remove]')
  await told(browser, '«Sistema muy largo')
  assert.ok((await textOf(browser, '.message span')).length < 80)
})

inBrowser('a phone shows seven rows where it showed four, one act each, and a help without keys', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await show(browser, 390, 700, 'light')
  const [height, acts] = await browser.run<[number, string[]]>(`const row = document.querySelector('#rows .row')
    return [row.offsetHeight, [...row.querySelectorAll('button, a')].filter(one => one.checkVisibility()).map(one => one.dataset.act)]`)
  assert.ok(height <= 72, `${height} px`)
  assert.deepEqual(acts, ['copy'])
  await browser.click('#help')
  assert.equal(await browser.run("return document.getElementById('keys').checkVisibility()"), false)
  await browser.press(KEYS.escape)
  await createEntry(browser)
  await told(browser, 'Contraseña guardada.')
})
