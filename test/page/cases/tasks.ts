/** What people come for, in clicks and keys, counted by the browser. */
import assert from 'node:assert/strict'
import { CHROMIUM, inBrowser, keepCopies, logIn, logInElsewhere, openProtected, rowOf } from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'
import { updateEntry } from '../../../src/entries/entry-commands.ts'

type Opened = Awaited<ReturnType<typeof openProtected>>

/** A chord is one key. Texts of a form count as nothing, since they are as long as they are. */
type Task = readonly [what: string, clicks: number, keys: number, act: (opened: Opened) => Promise<unknown>]

const IS_COPIED = 'return copied.length === 1'
const IS_CLOSED = "return document.querySelector('dialog') === null"

async function inRow({ browser }: Opened, system: string, act: string): Promise<void> {
  const row = await rowOf(browser, system)
  await browser.hover(`${row} .system`)
  await browser.click(`${row} [data-act=${act}]`)
}

const passwordOf = ({ service }: Opened, id: number): string | undefined =>
  service.store.state.entries.get(id)?.password

const TASKS: readonly Task[] = [
  ['find a password by keys, and copy it', 0, 7, async ({ browser }) => {
    await browser.press('/', 'b', 'a', 'n', 'c', KEYS.down)
    await browser.press(KEYS.control, 'c')
    await browser.until(IS_COPIED)
    assert.deepEqual(await browser.run('return copied'), ['v7#Kq-92nR_wd'])
  }],
  ['copy a password in sight', 1, 0, async opened => {
    await opened.browser.run("document.querySelector('#search .icon').click()")
    await inRow(opened, 'Correo', 'copy')
    await opened.browser.until(IS_COPIED)
  }],
  ['copy a one-time code', 1, 0, async opened => {
    await inRow(opened, 'Correo', 'copyCode')
    await opened.browser.until(IS_COPIED)
  }],
  ['show a password, and close it', 1, 1, async opened => {
    await inRow(opened, 'Correo', 'reveal')
    await opened.browser.until("return document.querySelector('#viewer .revealed') !== null")
    await opened.browser.press(KEYS.escape)
  }],
  ['a new entry with a generated password', 3, 0, async ({ browser, service }) => {
    await browser.click('#create')
    await browser.fill('#sistema', 'Zeta')
    await browser.fill('#usuario', 'zoe')
    await browser.click('#generate')
    await browser.until("return document.getElementById('password').value !== ''")
    await browser.click('#editor .main')
    await browser.until(IS_CLOSED)
    assert.equal(service.store.state.entries.active, 9)
  }],
  ['change a password for a generated one', 4, 0, async opened => {
    const { browser } = opened
    await inRow(opened, 'Correo', 'edit')
    await browser.find('#editor')
    await browser.click('#change-password')
    await browser.click('#generate')
    await browser.until("return document.getElementById('password').value !== ''")
    await browser.click('#editor .main')
    await browser.until(IS_CLOSED)
    assert.notEqual(passwordOf(opened, 1), 'S3cr3ta-del-correo')
  }],
  ['take that back', 0, 1, async opened => {
    await opened.browser.press(KEYS.control, 'z')
    await opened.browser.until("return document.querySelector('.message') === null")
    await opened.browser.until("return document.getElementById('spoken').textContent === 'Deshecho'")
    assert.equal(passwordOf(opened, 1), 'S3cr3ta-del-correo')
  }],
  ['rename an entry', 1, 1, async opened => {
    await inRow(opened, 'Impresora', 'edit')
    await opened.browser.find('#editor')
    await opened.browser.fill('#sistema', 'Impresora nueva')
    await opened.browser.press(KEYS.enter)
    await opened.browser.until(IS_CLOSED)
  }],
  ['delete an entry, and restore it another day', 4, 0, async opened => {
    const { browser, service } = opened
    await inRow(opened, 'GitHub', 'remove')
    await browser.until("return document.querySelector('.message') !== null")
    await browser.click('header .to-deleted')
    await browser.until("return document.querySelectorAll('#rows .row').length === 1")
    await browser.click('#rows [data-act=restore]')
    await browser.until("return document.querySelectorAll('#rows .row').length === 0")
    await browser.click('#back')
    await browser.until("return document.querySelectorAll('#rows .row').length === 9")
    assert.equal(service.store.state.entries.get(5)?.status, 1)
  }],
  ['end all other sessions', 3, 0, async ({ browser, service }) => {
    await browser.click('#show-menu')
    await browser.click('#show-account')
    await browser.find('#end-others')
    await browser.click('#end-others')
    await browser.until("return document.querySelectorAll('#sessions li').length === 1")
    assert.equal(service.accounts!.tokens().length, 1)
  }]
]

inBrowser('ten tasks take so many clicks and keys', CHROMIUM, async t => {
  const opened = await openProtected(t)
  const { browser, service } = opened
  for (let n = 0; n < 2; n++) await logInElsewhere(opened)
  await updateEntry(service.store, 1, { otp: 'GEZDGNBVGY3TQOJQ' }, null)
  await logIn(browser)
  await browser.find('#rows .row')
  await browser.run(`window.taken = [0, 0]
    addEventListener('click', event => { if (event.isTrusted && event.detail > 0) taken[0]++ }, true)
    addEventListener('keydown', event => { if (event.isTrusted && event.key !== 'Control') taken[1]++ }, true)`)
  for (const [what, clicks, keys, act] of TASKS) {
    await keepCopies(browser)
    await browser.run('taken.fill(0)')
    await act(opened)
    assert.deepEqual(await browser.run('return taken'), [clicks, keys], what)
  }
})
