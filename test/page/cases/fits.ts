/**
 * Every bar, row and dialog, measured: no label is cut, columns stand in one place in all rows, and nothing lies over
 * another.
 */
import assert from 'node:assert/strict'
import { createEntry, updateEntry } from '../../../src/entries/entry-commands.ts'
import { ANA, PASSWORD, tokenOf } from '../../support/accounts.ts'
import { CHROMIUM, inBrowser, logIn, openProtected, openService, show } from '../../support/page.ts'
import type { Started } from '../../support/service.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'

/** Widths of a window in CSS pixels: 1,280 px at 100 to 400 % are 1280 to 320. */
const WIDTHS = [320, 390, 560, 640, 700, 768, 900, 1024, 1280, 1920]

/**
 * Faults of what is in sight: two controls or texts of one bar, row or dialog that lie over each other; a label that is
 * cut; a column that begins in several places; a search too narrow for its placeholder.
 */
const FAULTS = `
  const top = [...document.querySelectorAll('dialog[open]')].at(-1)
  const all = selector => [...(top ?? document).querySelectorAll(selector)]
  const groups = top !== undefined
    ? all('.top, .end, .field, .facts > div, .choice, .range, summary, li > p, #knowers li, #sessions li, .was, dd')
    : all('header, .summary, #rows .row, .head .row, .login .field, .login, .blank, .message, .menu .item, .languages')
  const isSeen = one => one.checkVisibility({ opacityProperty: true, visibilityProperty: true })
    && one.closest('.unseen') === null && getComputedStyle(one).clipPath === 'none'
  const nameOf = one => one.id || one.className || one.textContent || one.tagName
  const partsOf = 'button, a, input:not([type=radio], [type=checkbox]), select, textarea, bdi, .code, .since, ' +
    '.badge, label > span, #count, dt, h1, h2, .message > span'
  const found = []
  for (const group of groups) {
    if (!group.checkVisibility() || getComputedStyle(group.parentElement).clipPath !== 'none') continue
    const boxes = [...group.querySelectorAll(partsOf)].filter(isSeen).map(one => [one, one.getBoundingClientRect()])
      .filter(([, { width, height }]) => width > 1 && height > 1)
    for (const [i, [a, one]] of boxes.entries()) for (const [b, other] of boxes.slice(i + 1)) {
      const isInner = a.contains(b) || b.contains(a)
        || a.closest('.search') !== null && b.closest('.search') !== null
      const width = Math.min(one.right, other.right) - Math.max(one.left, other.left)
      const height = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top)
      if (!isInner && width > 1 && height > 1) found.push(nameOf(a) + ' over ' + nameOf(b) + ' ' + width + 'x' + height)
    }
    for (const one of group.querySelectorAll('button, label, summary, dt, option, #count, .end *')) {
      const isCut = one.clientWidth > 1 && one.scrollWidth > one.clientWidth + 1
      if (isCut && isSeen(one)) found.push('cut: ' + nameOf(one))
    }
  }
  // Names may be cut beside a free column: all columns stand in one place.
  for (const column of ['.system bdi', '.user-place', '.group', '#rows .copy .icon']) {
    const starts = [...document.querySelectorAll('#rows .row ' + column.replace('#rows ', ''))]
      .filter(one => one.checkVisibility()).map(one => Math.round(one.getBoundingClientRect().left))
    if (top === undefined && new Set(starts).size > 1) found.push(column + ' begins at ' + [...new Set(starts)])
  }
  const search = document.getElementById('query')
  if (top === undefined && search?.checkVisibility()) {
    const canvas = document.createElement('canvas').getContext('2d')
    const style = getComputedStyle(search)
    canvas.font = style.font
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

const press = (selector: string) => (browser: Browser): Promise<unknown> =>
  browser.until('const one = document.querySelector(arguments[0]); one?.click(); return one !== null', selector)
const there = (selector: string) => (browser: Browser): Promise<unknown> =>
  browser.until('return document.querySelector(arguments[0]) !== null', selector)
const filled = (selector: string, text: string) => (browser: Browser): Promise<unknown> => browser.fill(selector, text)
const choose = (text: string) => (browser: Browser): Promise<unknown> =>
  browser.run(`document.getElementById('filter').click()
    const items = [...document.querySelectorAll('#choices .item')]
    items.find(one => one.textContent.startsWith(arguments[0])).click()`, text)
const escape = (browser: Browser): Promise<unknown> => browser.press(KEYS.escape)
const setLanguage = (language: string) => press(`#menu [data-language=${language}]`)

type Step = (browser: Browser, started: Started) => Promise<unknown>

const row = (id: number, rest: string): string => `.row[data-id="${id}"] ${rest}`
const discard = [escape, press('#confirm .danger')]

/** What a person sees who is logged in: the way there, and the way back to the list. */
const STATES: readonly (readonly [what: string, there: readonly Step[], back: readonly Step[]])[] = [
  ['the list', [], []],
  ['the menu', [browser => browser.run("document.getElementById('menu').showPopover()")],
    [browser => browser.run("document.getElementById('menu').hidePopover()")]],
  ['the choices of the filter', [press('#filter'), there('#choices .item')],
    [browser => browser.run("document.getElementById('choices').hidePopover()")]],
  ['a group', [choose('Finanzas')], [press('#chip')]],
  ['a group, and no hit', [choose('Finanzas'), filled('#query', 'nothing of this')],
    [press('#search .icon'), press('#chip')]],
  ['no hit', [filled('#query', 'nothing of this')], [press('#search .icon')]],
  ['the viewer', [press(row(1, '.system')), press('#view-password .icon'), press('#view-code .icon'),
    press('#view-notes .icon'), there('#view-notes .revealed')], [escape]],
  ['known by, and the history', [press(row(9, '.system')), there('#knowers li bdi'), press('#history summary'),
    there('#history li')], [escape]],
  ['a new entry', [press('#create'), press('#editor .main'), there('#sistema[aria-invalid=true]')], [escape]],
  ['the generator', [press('#create'), press('#generate'), there('#generator')], discard],
  ['the editor', [press(row(1, '[data-act=edit]')), press('#show-password'), there('#editor .revealed'),
    press('#change-notas'), there('#notas'), press('#replace-code'), filled('#otp', 'no base32 !'),
    press('#editor .main'),
    there('#otp[aria-invalid=true]')], discard],
  ['the question', [press('#create'), filled('#sistema', 'x'), escape, there('#confirm')],
    [press('#confirm .danger')]],
  ['the conflict', [press(row(2, '[data-act=edit]')), there('#editor'), (_, { service }) =>
    updateEntry(service.store, 2, { usuario: `eva ${Math.random()}` }, null), filled('#usuario', 'mine'),
    press('#editor .main'), there('#conflict')], [press('#take-theirs')]],
  ['the deleted ones', [press('.to-deleted'), there('.row [data-act=restore]')], [press('.to-deleted')]],
  ['a deleted one', [press('.to-deleted'), there('.row [data-act=restore]'), press('#rows .system'),
    there('#viewer')], [escape, press('.to-deleted')]],
  ['the account', [press('#show-account'), there('#sessions li'), press('#show-own')],
    [escape, escape]],
  ['the help', [press('#help')], [escape]],
  ['a message', [press(row(3, '[data-act=remove]')), there('.message')], [press('.message .offer'), there(row(3, ''))]]
]

async function walk(started: Started & { readonly browser: Browser }, states: typeof STATES): Promise<void> {
  const { browser } = started
  for (const language of ['es', 'en']) {
    await setLanguage(language)(browser)
    for (const [what, steps, back] of states) {
      await show(browser, 1280, 800, 'light')
      for (const step of steps) await step(browser, started)
      await assertFits(browser, `${what} in ${language}`)
      for (const step of back) await step(browser, started)
    }
  }
  await setLanguage('es')(browser)
}

const LONG = [
  { sistema: 'Banco Central de la Comunidad Autónoma, sede electrónica y registro', usuario: 'ana.garcia',
    password: 'lectora', grupo: 'Finanzas' },
  { sistema: 'https://intranet.administracion.example.org/acceso/personal', password: 'R0uter!2026',
    usuario: 'un.nombre.de.usuario.muy.largo@example.org' },
  { sistema: 'Biblioteca municipal de Santiago de Compostela y alrededores', usuario: '0042', password: 'x' }
]

inBrowser('whatever is shown fits in both languages from 320 to 1,920 px, which is 100 to 400 %', CHROMIUM, async t => {
  const started = await openProtected(t, ['*'], { 'extra-routes': 'on', 'rate-limit': '10000' })
  const { browser, service: { store, accounts }, url } = started
  for (const fields of LONG) await createEntry(store, fields, null)
  await updateEntry(store, 1, { notas: 'PIN: 4711\nof the door', otp: 'GEZDGNBVGY3TQOJQ', grupo: 'Finanzas',
    url: 'https://correo.example.org/entrar' }, null)
  const eva = 'eva.garcia.fernandez@administracion.example.org'
  await accounts!.addUser(eva, 'Eva', ['*'], PASSWORD)
  const headers = { Authorization: `Bearer ${await tokenOf(started, eva)}` }
  for (const id of [3, 9]) await fetch(`${url}/api/getPassword/${id}`, { headers })
  await fetch(`${url}/api/deletePassword/11`, { headers, method: 'POST' })
  await accounts!.removeUser(eva)
  for (let n = 0; n < 2; n++) await tokenOf(started)
  await walk(started, [['the login', [press('#login .main'), there('#email[aria-invalid=true]')], []]])
  await logIn(browser, ANA)
  await walk(started, STATES)
})

inBrowser('an empty list fits, too', CHROMIUM, async t => {
  const started = await openService(t, {}, async () => {})
  await walk(started, [['the empty list', [], []]])
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
        .filter(({ top, bottom, left, right }) => top < message.bottom && bottom > message.top &&
          left < message.right && right > message.left).length`)
    assert.equal(covered, 0, `${width} x ${height}`)
    await browser.run("document.querySelector('#editor .second').click()")
    await browser.run("document.querySelector('#confirm .danger').click()")
  }
})
