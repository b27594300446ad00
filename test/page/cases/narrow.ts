/** Small windows and large letters: nothing has to be scrolled sideways, nothing is cut off. */
import assert from 'node:assert/strict'
import {
  CHROMIUM, EVERYWHERE, holdTime, inBrowser, logIn, openProtected, openService, settled, show
} from '../../support/page.ts'
import { atEnd } from '../../support/service.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'
import { deleteEntry } from '../../../src/store/commands.ts'

/** What sticks out sideways, of the page or of the open dialog. */
const OUT = `const top = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.documentElement
  const wide = top.scrollWidth > top.clientWidth || document.documentElement.scrollWidth > innerWidth
  return !wide ? [] : [...top.querySelectorAll('*')].filter(one => one.checkVisibility() && one.closest('#status') === null && one.getBoundingClientRect().right > Math.min(innerWidth, top.getBoundingClientRect().right) + .5)
    .map(one => one.tagName + '#' + one.id + '.' + one.className).concat(String(top.scrollWidth))`

/**
 * Goes through what the page shows, and looks at each for something that sticks out; `detail` is what the browser says
 * of the second of two taps (in a very low window the dialog scrolls between them).
 */
async function look(browser: Browser, what: string, detail: number = 2): Promise<void> {
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
  const isOpen = await browser.run(`const cancel = document.querySelector('#editor [data-mode=edit] [data-close]')
    cancel.scrollIntoView({ block: 'nearest' })
    const { left, top, right, bottom } = cancel.getBoundingClientRect()
    cancel.click()
    const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2)
    there.dispatchEvent(new MouseEvent('click', { bubbles: true, detail: arguments[0] }))
    return document.getElementById('editor').open`, detail)
  assert.ok(isOpen, `a double tap that cancels discards nothing, ${what}`)
  await browser.run("if (document.querySelector('[data-mode=discard]').hidden) document.querySelector('#editor [data-close]').click()")
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
      await look(browser, `${width} x ${height} ${language}`, height === 640 ? 1 : 2)
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
  for (let id = 1; id <= 8; id++) await deleteEntry(service.store, id, null)
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

/** Focuses each thing that is there, and gives what of it is out of sight or below something else. */
const COVERED = `const [selector, isMessageOnly] = arguments
  // WebKit does not scroll to what is in sight by half, behind the foot of a dialog.
  const covered = []
  for (const one of document.querySelectorAll(selector)) {
    if (!one.checkVisibility() || one.matches('.unseen')) continue
    one.focus()
    if (one.matches('h2')) one.scrollIntoView({ block: 'nearest' })
    const { left, top, right, bottom } = one.getBoundingClientRect()
    for (const y of [top + 4, bottom - 4]) {
      const at = document.elementFromPoint((left + right) / 2, y)
      if (!isMessageOnly && !one.contains(at) && !at?.contains(one)) covered.push(one.outerHTML.slice(0, 60) + ' below ' + at?.outerHTML.slice(0, 60))
      if (at?.closest('#status')) covered.push('a message over ' + one.outerHTML.slice(0, 60))
    }
  }
  return covered`

inBrowser('in a small window no message covers what has the focus, nor the head of a dialog', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await holdTime(browser)
  const press = (selector: string): Promise<unknown> => browser.run('document.querySelector(arguments[0]).click()', selector)
  const least = browser.native.prefer === undefined ? 360 : 320
  const inDialog = ['h2', '[data-close]', 'input', 'button'].map(one => `dialog[open] > :not(#status) ${one}, dialog[open] > ${one}`).join()
  for (const [width, height] of [[least, 568], [least, 256]] as const) {
    // Browsers scroll, and measure messages, a moment later than they are told to.
    const look = async (what: string, selector: string = inDialog): Promise<void> => {
      let covered: unknown[] = []
      for (const endMs = performance.now() + 10_000; performance.now() < endMs;) {
        await browser.drawn()
        covered = await browser.run(COVERED, selector, browser.native.prefer === undefined)
        if (covered.length === 0) break
      }
      assert.deepEqual(covered, [], `${what}, ${width} x ${height}`)
      // With its next frame Firefox scrolls to a field that got the focus, also where something else has it by then.
      await browser.drawn()
    }
    await show(browser, width, height, 'light')
    await press('#rows .system')
    await press('#viewer [data-act=remove]')
    await press('#rows .system')
    await press('#viewer [data-act=copyUser]')
    await browser.until("return document.querySelectorAll('#viewer .message').length > 1")
    const lines = await browser.run<number>(`const range = document.createRange()
      range.selectNodeContents([...document.querySelectorAll('.message span')].find(one => one.textContent.includes('eliminada')))
      return new Set([...range.getClientRects()].map(one => one.top)).size`)
    assert.ok(lines <= 2, `${lines} lines: no full stop is alone on one`)
    await look('an entry')
    await browser.press(KEYS.escape)
    await press('#create')
    await look('the editor')
    await browser.press(KEYS.escape)
    await look('the list', '#query, #create, header button, .summary button, #order, #rows [tabindex="0"]')
    await browser.run("document.querySelector('#rows .system').focus()")
    for (let i = 0; i < 5; i++) {
      await browser.press(KEYS.down)
      await look('a row', '#rows [tabindex="0"]')
    }
  }
})
