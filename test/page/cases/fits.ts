/**
 * Every bar, row and dialog, measured: no text is cut that has no more room to ask for, and nothing lies over another.
 */
import assert from 'node:assert/strict'
import { updateEntry } from '../../../src/store/commands.ts'
import { ANA } from '../../support/accounts.ts'
import { CHROMIUM, edit, entries, inBrowser, logIn, openProtected, openService, show } from '../../support/page.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'

/** Widths of a window in CSS pixels: 1,280 px at 100 to 400 % are 1280 to 320. */
const WIDTHS = [320, 360, 390, 480, 560, 640, 700, 768, 900, 1024, 1280, 1536, 1920]

/**
 * Faults of what is in sight: two controls or texts of one bar, row or dialog that lie over each other; a label that is
 * cut; a search too narrow for its placeholder.
 */
const FAULTS = `
  const top = [...document.querySelectorAll('dialog[open]')].at(-1)
  const groups = top === undefined ? [document.querySelector('header'), document.querySelector('.summary'), ...document.querySelectorAll('#rows .row, .head .row')]
    : [top.querySelector('.top'), top.querySelector('.end'), ...top.querySelectorAll('.field, .facts > div, .choice, .range, summary, li')]
  const isSeen = one => one.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && one.closest('.unseen') === null
  const found = []
  for (const group of groups) {
    if (!group?.checkVisibility() || getComputedStyle(group.parentElement).clipPath !== 'none') continue
    const parts = [...group.querySelectorAll('button, a, input:not([type=radio], [type=checkbox]), select, textarea, bdi, .since, label > span, #count, dt, h1, h2')]
      .filter(one => isSeen(one) && getComputedStyle(one).clipPath === 'none')
    const boxes = parts.map(one => [one, one.getBoundingClientRect()]).filter(([, box]) => box.width > 1 && box.height > 1)
    for (const [i, [a, one]] of boxes.entries()) for (const [b, other] of boxes.slice(i + 1)) {
      const inner = a.contains(b) || b.contains(a) || a.closest('.search') !== null && b.closest('.search') !== null
      const width = Math.min(one.right, other.right) - Math.max(one.left, other.left)
      const height = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top)
      if (!inner && width > 1 && height > 1) found.push([a, b].map(one => one.id || one.className || one.tagName).join(' over ') + ' ' + width + 'x' + height)
    }
    for (const one of group.querySelectorAll('button, label, summary, dt, option, .end *')) {
      if (isSeen(one) && one.clientWidth > 1 && one.scrollWidth > one.clientWidth + 1) found.push('cut: ' + (one.id || one.textContent))
    }
  }
  const search = document.getElementById('query')
  if (top === undefined && search?.checkVisibility()) {
    const canvas = document.createElement('canvas').getContext('2d')
    canvas.font = getComputedStyle(search).font
    const style = getComputedStyle(search)
    const room = search.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)
    if (room < canvas.measureText(search.placeholder).width) found.push('the search has ' + room + ' px')
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push('wider than the window')
  return found`

async function assertFits(browser: Browser, state: string): Promise<void> {
  for (const width of WIDTHS) {
    await show(browser, width, 800, 'light')
    // The buttons of the row with the focus have a ground of their own over its texts.
    await browser.run("if (document.querySelector('dialog') === null) document.activeElement.blur()")
    assert.deepEqual(await browser.run(FAULTS), [], `${state}, ${width} px`)
  }
}

const setLanguage = (browser: Browser, language: string): Promise<unknown> =>
  browser.run("document.querySelector(`#menu [data-language=${arguments[0]}]`).click()", language)

const rows = entries(
  ['Correo', 'ana@example.org', 'same-password'],
  ['Banco Central de la Comunidad Autónoma, sede electrónica y registro', 'ana.garcia', 'same-password'],
  ['https://intranet.administracion.example.org/acceso/personal', 'un.nombre.de.usuario.muy.largo@example.org',
    'R0uter!2026'],
  ['Biblioteca municipal de Santiago de Compostela y alrededores', '0042', 'lectora']
)

inBrowser('bar and rows fit in both languages from 320 to 1,920 px, which is 100 to 400 %', CHROMIUM, async t => {
  const { browser, service } = await openService(t, {}, rows)
  await updateEntry(service.store, 1, { grupo: 'Finanzas', notas: 'n', otp: 'GEZDGNBVGY3TQOJQ' }, null)
  await browser.run("document.getElementById('refresh').click()")
  await browser.until("return document.querySelector('#rows [data-act=copyCode]') !== null")
  for (const language of ['es', 'en']) {
    await setLanguage(browser, language)
    await assertFits(browser, `the list in ${language}`)
  }
  await setLanguage(browser, 'es')
})

inBrowser('dialogs fit in both languages from 320 to 1,920 px, which is 100 to 400 %', CHROMIUM, async t => {
  const { browser, service } = await openService(t, { 'extra-routes': 'on', journal: 'file' }, rows)
  await updateEntry(service.store, 1, { grupo: 'Finanzas', notas: 'n', otp: 'GEZDGNBVGY3TQOJQ' }, null)
  await browser.run("document.getElementById('refresh').click()")
  await browser.until("return document.querySelector('#rows [data-act=copyCode]') !== null")
  for (const language of ['es', 'en']) {
    await setLanguage(browser, language)
    await show(browser, 1280, 800, 'light')
    await browser.run("document.querySelector('#rows .row:has([data-act=copyCode] use) .system').click()")
    await browser.run("document.querySelector('#history summary').click()")
    await browser.until("return document.querySelector('#history .line') !== null")
    await assertFits(browser, `the viewer in ${language}`)
    await browser.press(KEYS.escape)
    await edit(browser, 'Correo')
    await browser.run("document.getElementById('change-password').click(); document.getElementById('generate').click()")
    await browser.until("return document.getElementById('generator') !== null")
    await assertFits(browser, `the editor in ${language}`)
    await browser.press(KEYS.escape)
    await assertFits(browser, `the question in ${language}`)
    await browser.run("document.querySelector('#confirm .danger').click()")
  }
  await setLanguage(browser, 'es')
})

inBrowser('the account fits in both languages from 320 to 1,920 px', CHROMIUM, async t => {
  const { browser } = await openProtected(t, ['*'], { 'extra-routes': 'on' })
  await logIn(browser, ANA)
  for (const language of ['es', 'en']) {
    await setLanguage(browser, language)
    await browser.run("document.getElementById('show-account').click(); document.getElementById('show-own').click()")
    await assertFits(browser, `the account in ${language}`)
    await browser.press(KEYS.escape)
  }
})

inBrowser('a message covers no button of a dialog, in a low window either', CHROMIUM, async t => {
  const { browser } = await openService(t)
  for (const [width, height] of [[1366, 650], [1280, 720], [768, 600], [390, 700]] as const) {
    await show(browser, width, height, 'light')
    await browser.run("document.querySelector('#rows [data-act=remove]').click()")
    await browser.until("return document.querySelector('.message') !== null")
    await browser.run("document.getElementById('create').click()")
    await browser.run("document.getElementById('generate').click()")
    await browser.until("return document.getElementById('password').value !== ''")
    await browser.drawn()
    const covered = await browser.run(`const message = document.querySelector('.message').getBoundingClientRect()
      return [...document.querySelectorAll('#editor .end button')].map(one => one.getBoundingClientRect())
        .filter(({ top, bottom, left, right }) => top < message.bottom && bottom > message.top && left < message.right && right > message.left).length`)
    assert.equal(covered, 0, `${width} x ${height}`)
    await browser.run("document.querySelector('#editor .second').click()")
    await browser.run("document.querySelector('#confirm .danger').click()")
  }
})
