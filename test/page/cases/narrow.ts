/** Small windows and large letters: nothing has to be scrolled sideways, nothing is cut off. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { deleteEntry } from '../../../src/entries/entry-commands.ts'
import { CHROMIUM, EVERYWHERE, inBrowser, logIn, openProtected, openService, pass, settled, show,
  told } from '../../support/page.ts'
import { atEnd, startService } from '../../support/service.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'

/** What sticks out sideways, of the page or of the open dialog. */
const OUT = `const top = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.documentElement
  const inner = top.querySelector('.content') ?? top
  const wide = inner.scrollWidth > inner.clientWidth || document.documentElement.scrollWidth > innerWidth
  const end = Math.min(innerWidth, top.getBoundingClientRect().right) + .5
  return !wide ? [] : [...top.querySelectorAll('*')].filter(one => one.checkVisibility() &&
    one.closest('#status') === null && one.getBoundingClientRect().right > end)
    .map(one => one.tagName + '#' + one.id + '.' + one.className).concat(String(inner.scrollWidth))`

/** Goes through what the page shows, and looks at each for something that sticks out. */
async function look(browser: Browser, what: string): Promise<void> {
  const fits = async (state: string): Promise<void> => assert.deepEqual(await browser.run(OUT), [], `${state}, ${what}`)
  // Not by the mouse: in a low window browsers scroll a moment later than they are told to.
  const press = (selector: string): Promise<unknown> =>
    browser.run('document.querySelector(arguments[0]).click()', selector)
  await fits('the list')
  await browser.fill('#query', 'zanahoria'.repeat(9))
  await fits('no hit')
  await browser.fill('#query', '')
  await press('#rows .system')
  await press('#view-password .icon')
  await fits('an entry')
  await browser.press(KEYS.escape)
  await press('#create')
  await press('#generate')
  await fits('the generator')
  await press('input[value=words]')
  await fits('the generator of words')
  await browser.fill('#sistema', 'x')
  await browser.press(KEYS.escape)
  await fits('the question')
  await press('#confirm .danger')
  await press('#rows [data-act=edit]')
  await browser.until("return document.getElementById('editor')?.open")
  await press('#change-password')
  await fits('a change')
  await browser.press(KEYS.escape)
  await press('#help')
  await fits('the help')
  await browser.press(KEYS.escape)
  await press('.to-deleted')
  await fits('the deleted ones')
  await press('.to-deleted')
}

inBrowser('at 320 px nothing sticks out, in both languages', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  // No window of WebKit's own browser is narrower.
  const least = browser.native.prefer === undefined ? 360 : 320
  for (const [width, height] of [[least, 640], [least, 256]] as const) {
    await show(browser, width, height, 'light')
    for (const language of ['en', 'es']) {
      await browser.run("document.querySelector(`#menu [data-language=${arguments[0]}]`).click()", language)
      await look(browser, `${width} x ${height} ${language}`)
    }
  }
})

inBrowser('at 320 px, on a phone and a screen letters of twice the size fit', ['chromium', 'firefox'], async t => {
  const { browser, url } = await openService(t)
  await openWithLetters(t, browser, url, 32)
  for (const width of [320, 640, 1280]) {
    await show(browser, width, 800, 'light')
    await look(browser, `${width} px`)
  }
})

/** Letters of this size, until the test ends; the page is opened again. */
async function openWithLetters(t: TestContext, browser: Browser, url: string, size: number): Promise<void> {
  const setFont = (size: number): Promise<unknown> => browser.native.chrome === undefined
    ? browser.devtools('Page.setFontSizes', { fontSizes: { standard: size, fixed: size } })
    : browser.native.chrome(`for (const script of ['x-western', 'x-unicode']) {
        Services.prefs.setIntPref('font.size.variable.' + script, ${size})
      }`)
  await setFont(size)
  atEnd(t, async () => { await setFont(16) })
  await browser.go(`${url}/?lang=es`)
  await settled(browser)
  await browser.until('return getComputedStyle(document.documentElement).fontSize === arguments[0]', `${size}px`)
}

inBrowser('letters of twice the size stand in lines: a filter, a date, a message', CHROMIUM, async t => {
  const { browser, service: { store }, url } = await openService(t)
  await deleteEntry(store, 1, null)
  await openWithLetters(t, browser, url, 32)
  await show(browser, 390, 844, 'light')
  await browser.run("document.getElementById('filter').click()")
  await browser.run("document.querySelectorAll('#choices .item')[2].click()")
  // Not a letter in each.
  const lines = (selector: string): Promise<number> => browser.run(`const one = document.querySelector(arguments[0])
    return one.getBoundingClientRect().height / parseFloat(getComputedStyle(one).fontSize)`, selector)
  assert.ok(await lines('#chip') < 6, `${await lines('#chip')}`)
  await browser.run("document.getElementById('chip').click(); document.querySelector('.to-deleted').click()")
  await browser.find('#rows [data-act=restore]')
  assert.deepEqual(await browser.run(`
    const { left, right } = document.getElementById('restore-all').getBoundingClientRect()
    const since = document.querySelector('#rows .since')
    return [left >= 0, right <= innerWidth, since.scrollWidth > since.clientWidth]`), [true, true, false])
  await browser.run("document.getElementById('back').click(); document.getElementById('show-menu').click()")
  assert.deepEqual(await browser.run(`return [...document.querySelectorAll('#menu button')]
    .filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)`), [])
  await browser.run(`document.getElementById('menu').hidePopover()
    document.querySelector('#rows [data-act=remove]').click()`)
  await told(browser, 'Eliminada')
  assert.ok(await browser.run("return document.querySelector('.message > span').clientWidth > 200"), 'of what')
  await browser.run(`
    window.fetch = () => Promise.reject(new TypeError('lost'))
    document.getElementById('refresh').click()`)
  await pass(browser, 3_000)
  await told(browser, 'El servicio no responde')
  assert.ok(await lines('.message > span') < 8, `${await lines('.message > span')}`)
  await browser.go(`${(await startService(t, { page: 'on', journal: 'memory' })).url}/?lang=es`)
  await settled(browser)
  await browser.find('#blank')
  const end = await browser.run<number>("return document.getElementById('show-menu').getBoundingClientRect().right")
  assert.ok(end <= 390, 'without a search the title gives way to the menu')
})

inBrowser('login, bar, account and own password fit at 320 px, the bar in one line', EVERYWHERE, async t => {
  const { browser } = await openProtected(t, ['*'], { 'extra-routes': 'on' })
  for (const width of [browser.native.prefer === undefined ? 360 : 320, 1280]) {
    await show(browser, width, 640, 'light')
    assert.deepEqual(await browser.run(OUT), [])
    if (width !== 1280) await logIn(browser)
    assert.equal(await browser.run("return document.querySelector('header').offsetHeight"), 60)
    for (const opens of ['show-account', 'show-own']) {
      await browser.run('document.getElementById(arguments[0]).click()', opens)
      assert.deepEqual(await browser.run(OUT), [], `${opens}, ${width} px`)
    }
    await browser.press(KEYS.escape)
  }
})

inBrowser('a message is one line at the bottom, above sheet buttons, and waits while in use', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await show(browser, 390, 640, 'light')
  await browser.run("document.querySelector('#rows [data-act=remove]').click()")
  await told(browser, 'Eliminada: Ágora')
  await browser.run("document.querySelector('#rows .system').click()")
  await browser.until("return document.getElementById('viewer')?.open")
  await browser.drawn()
  const [height, below, inside] = await browser.run<[number, number, boolean]>(`
    const message = document.querySelector('.message').getBoundingClientRect()
    return [message.height, document.querySelector('#viewer .end .main').getBoundingClientRect().top - message.bottom,
      document.getElementById('viewer').contains(document.querySelector('.message'))]`)
  assert.ok(height <= 52 && below >= 0 && inside, `${height} ${below}`)
  await browser.run("document.querySelector('.message .offer').focus()")
  for (let i = 0; i < 3; i++) await pass(browser, 10_000)
  assert.equal(await browser.run("return document.querySelectorAll('.message').length"), 1)
  await browser.hover('#viewer .top')
  await browser.run("document.querySelector('#viewer .main').focus()")
  await pass(browser, 10_000)
  await browser.until("return document.querySelector('.message') === null")
})
