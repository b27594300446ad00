/** Small windows and large letters: nothing has to be scrolled sideways, nothing is cut off. */
import assert from 'node:assert/strict'
import { CHROMIUM, EVERYWHERE, holdTime, inBrowser, logIn, openProtected, openService, settled, show } from '../../support/page.ts'
import { atEnd } from '../../support/service.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'

/** What sticks out sideways, of the page or of the open dialog. */
const OUT = `const top = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.documentElement
  const wide = top.scrollWidth > top.clientWidth || document.documentElement.scrollWidth > innerWidth
  return !wide ? [] : [...top.querySelectorAll('*')].filter(one => one.checkVisibility() && one.closest('#status') === null && one.getBoundingClientRect().right > Math.min(innerWidth, top.getBoundingClientRect().right) + .5)
    .map(one => one.tagName + '#' + one.id + '.' + one.className).concat(String(top.scrollWidth))`

/** Goes through what the page shows, and looks at each for something that sticks out. */
async function look(browser: Browser, what: string): Promise<void> {
  const fits = async (state: string): Promise<void> =>
    assert.deepEqual(await browser.run(OUT), [], `${state}, ${what}`)
  // Not by the mouse: in a low window browsers scroll a moment later than they are told to.
  const press = (selector: string): Promise<unknown> => browser.run('document.querySelector(arguments[0]).click()', selector)
  await fits('the list')
  await browser.fill('#query', 'ana')
  await fits('a hit count')
  await browser.fill('#query', 'zanahoria'.repeat(9))
  await fits('no hit')
  await browser.fill('#query', '')
  await press('#rows .system')
  await fits('an entry')
  await browser.press(KEYS.escape)
  await press('#create')
  await press('#generate')
  await fits('the generator')
  await press('input[value=words]')
  await fits('the generator of words')
  await browser.press(KEYS.escape)
  await browser.fill('#sistema', 'x')
  await browser.press(KEYS.escape)
  await fits('the question')
  await press('#discard')
  await press('#help')
  await fits('the help')
  await browser.press(KEYS.escape)
  await press('#show-trash')
  await fits('the deleted ones')
  await browser.press(KEYS.escape)
}

inBrowser('at 320 px nothing sticks out, in both languages', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  // No window of WebKit's own browser is narrower.
  const least = browser.native.prefer === undefined ? 360 : 320
  for (const [width, height] of [[least, 640], [least, 256]] as const) {
    await show(browser, width, height, 'light')
    for (const language of ['es', 'en']) {
      await browser.click(`[data-language=${language}]`)
      await look(browser, `${width} x ${height} ${language}`)
    }
  }
})

inBrowser('with letters of twice the size nothing sticks out, at 320 px, on a phone and on a screen', ['chromium', 'firefox'], async t => {
  const { browser, url } = await openService(t)
  const setFont = (size: number): Promise<unknown> => browser.native.chrome === undefined
    ? browser.devtools('Page.setFontSizes', { fontSizes: { standard: size, fixed: size } })
    : browser.native.chrome(`for (const script of ['x-western', 'x-unicode']) Services.prefs.setIntPref('font.size.variable.' + script, ${size})`)
  await setFont(32)
  atEnd(t, async () => { await setFont(16) })
  await browser.go(`${url}/?lang=es`)
  await settled(browser)
  await browser.until("return getComputedStyle(document.documentElement).fontSize === '32px'")
  for (const width of [320, 640, 1280]) {
    await show(browser, width, 800, 'light')
    await look(browser, `${width} px`)
  }
})

inBrowser('the head of a person who is logged in, and an empty list, fit at 320 px too', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  await show(browser, 320, 640, 'light')
  assert.deepEqual(await browser.run(OUT), [])
  await logIn(browser)
  assert.deepEqual(await browser.run(OUT), [])
  const tops = await browser.run<number[]>(`return [...new Set([...document.querySelectorAll('header > *')].filter(one => one.checkVisibility())
    .map(one => { const box = one.getBoundingClientRect(); return Math.round((box.top + box.bottom) / 2 / 10) }))]`)
  assert.equal(tops.length, 1, 'one line')
  for (let id = 1; id <= 8; id++) await service.store.deleteEntry(id, null)
  await browser.click('#refresh')
  await browser.find('#blank')
  assert.deepEqual(await browser.run(OUT), [])
})

inBrowser('the dialogs of one\'s account and of one\'s own password do not scroll sideways', EVERYWHERE, async t => {
  const { browser } = await openProtected(t, ['*'], { 'extra-routes': 'on' })
  await logIn(browser)
  for (const width of [browser.native.prefer === undefined ? 360 : 320, 1280]) {
    await show(browser, width, 640, 'light')
    for (const opens of ['show-account', 'show-own']) {
      await browser.run('document.getElementById(arguments[0]).click()', opens)
      const state = await browser.run(`${OUT.replace('return !wide', 'const left = top.scrollLeft; return !wide && left === 0')}`)
      assert.deepEqual(state, [], `${opens}, ${width} px`)
    }
    await browser.press(KEYS.escape)
  }
})

inBrowser('messages do not cover what has the focus, in a low window either', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await holdTime(browser)
  const least = browser.native.prefer === undefined ? 360 : 320
  await show(browser, least, 256, 'light')
  // Some browsers scroll a moment later.
  const isSeen = (): Promise<unknown> => browser.until(`
    const { left, top, width, height } = document.activeElement.getBoundingClientRect()
    return document.activeElement.contains(document.elementFromPoint(left + width / 2, top + height / 2))`)
  await browser.run("document.querySelector('#rows [data-act=remove]').click()")
  await isSeen()
  await browser.run("document.querySelector('#rows [data-act=edit]').click()")
  await browser.until("return document.getElementById('editor').open")
  for (const id of ['sistema', 'usuario', 'password', 'peek', 'generate']) {
    await browser.run('document.getElementById(arguments[0]).focus()', id)
    await isSeen()
  }
})
