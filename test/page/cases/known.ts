/** Who knows a password, and one-time codes: of entries, and at the login. */
import assert from 'node:assert/strict'
import { ANA, PASSWORD, tokenOf } from '../../support/accounts.ts'
import {
  CHROMIUM, documentOf, edit, EVERYWHERE, inBrowser, keepCopies, logIn, openProtected, openService, pass,
  rowOf, systems, textOf, view
} from '../../support/page.ts'
import type { Started } from '../../support/service.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'
import { updateEntry } from '../../../src/entries/entry-commands.ts'
import { codeAt, otpIn, stepAt } from '../../../src/accounts/totp.ts'

const EVA = 'eva@example.org'
const KEY = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'

/** Eva reads these entries over HTTP, and then leaves the team. */
async function readAndLeave(started: Started, ...ids: readonly number[]): Promise<void> {
  const accounts = started.service.accounts!
  await accounts.addUser(EVA, 'Eva', ['*'], PASSWORD)
  const headers = { Authorization: `Bearer ${await tokenOf(started, EVA)}` }
  for (const id of ids) assert.equal((await fetch(`${started.url}/api/getPassword/${id}`, { headers })).status, 200)
  await accounts.removeUser(EVA)
}

const knowersIn = (browser: Browser): Promise<string[]> =>
  browser.run("return [...document.querySelectorAll('#knowers li')].map(one => " +
    "one.innerText.replace(/\\s+/g, ' ').trim())")

const filters = (browser: Browser): Promise<string[]> =>
  browser.run(`document.getElementById('filter').click()
    const items = [...document.querySelectorAll('#choices .item')]
    const texts = items.map(one => one.innerText.replace(/\\s+/g, ' ').trim())
    document.getElementById('choices').hidePopover()
    return texts`)

inBrowser('the viewer says who knows the password, how, and who has left; no secret is told', EVERYWHERE, async t => {
  const started = await openProtected(t)
  const { browser, service } = started
  await readAndLeave(started, 1)
  await updateEntry(service.store, 2, { password: 'of nobody yet' }, null)
  await logIn(browser)
  await view(browser, 'Banco Central')
  assert.equal(await browser.run("return document.getElementById('knowers').open"), false, 'only where it matters')
  await browser.click('#knowers summary')
  await browser.until("return document.querySelector('#knowers li bdi') !== null")
  assert.ok((await knowersIn(browser)).every(text => !text.includes(EVA)), String(await knowersIn(browser)))
  await browser.press(KEYS.escape)
  await view(browser, 'Correo')
  await browser.until("return document.querySelector('#knowers li bdi') !== null")
  const before = await knowersIn(browser)
  assert.ok(before.includes(`Evasin acceso ${EVA} la vio`), before.join())
  assert.equal(await browser.run("return document.querySelectorAll('#knowers .gone').length"), 1)
  assert.ok(before.every(text => !text.includes(ANA)), 'looking at this is no reading')
  assert.doesNotMatch(await documentOf(browser), /S3cr3ta-del-correo/)
  await browser.click('#view-password .icon')
  await browser.until("return document.querySelector('#view-password .revealed') !== null")
  await browser.run("document.querySelector('#knowers summary').click()")
  await browser.until("return document.getElementById('knowers').open === false")
  await browser.run("document.querySelector('#knowers summary').click()")
  await browser.until("return [...document.querySelectorAll('#knowers li')].some(one => " +
    "one.innerText.includes('(tú)') && one.innerText.includes('la vio'))")
})

inBrowser('what somebody knows who may read it no more is marked and filtered, until changed', CHROMIUM, async t => {
  const started = await openProtected(t)
  const { browser, service } = started
  await readAndLeave(started, 1, 2)
  await logIn(browser)
  assert.ok((await filters(browser)).includes('Expuestas 2'), String(await filters(browser)))
  const row = await rowOf(browser, 'Correo')
  assert.equal(await browser.run("return document.querySelectorAll('#rows .exposed').length"), 2)
  await browser.click(`${row} .exposed`)
  assert.deepEqual(await systems(browser), ['Banco Central', 'Correo'])
  for (const [system, left] of [['Banco Central', ['Correo']], ['Correo', []]] as const) {
    await edit(browser, system)
    await browser.click('#change-password')
    await browser.fill('#password', `another one of ${system}`)
    await browser.click('#editor .main')
    await browser.until(`return document.getElementById('editor') === null`)
    await browser.until(`return document.querySelectorAll('#rows .row').length === ${left.length} ||
      document.querySelector('.body .blank') !== null`)
    if (left.length > 0) assert.deepEqual(await systems(browser), left)
  }
  assert.match(await textOf(browser, '.body'), /No queda ninguna/)
  await browser.click('.body .second')
  await browser.until("return document.querySelectorAll('#rows .row').length === 8")
  assert.equal(await browser.run("return document.querySelectorAll('#rows .exposed').length"), 0)
  assert.ok((await filters(browser)).includes('Expuestas 0'))
  assert.equal(service.store.state.entries.get(1)?.password, 'another one of Correo')
})

inBrowser('who may not ask who knows a password has neither the mark nor the list', CHROMIUM, async t => {
  const started = await openProtected(t, ['password:read', 'password:update'])
  const { browser } = started
  await readAndLeave(started, 1)
  await logIn(browser)
  assert.equal(await browser.run("return document.querySelectorAll('#rows .exposed').length"), 0)
  await view(browser, 'Correo')
  assert.equal(await browser.run("return document.getElementById('knowers')"), null)
})

inBrowser('a shown code has a ring of its seconds, is copied, and hides by itself', EVERYWHERE, async t => {
  const { browser, service } = await openService(t)
  await updateEntry(service.store, 1, { otp: `otpauth://totp/a?secret=${KEY}&period=300` }, null)
  await browser.click('#refresh')
  await browser.until("return document.querySelector('#rows [data-act=copyCode]') !== null")
  await view(browser, 'Correo')
  await keepCopies(browser)
  assert.equal(await textOf(browser, '#view-code .code'), '••••••')
  assert.equal(await browser.run("return document.querySelector('#view-code .ring').checkVisibility()"), false)
  await browser.click('#view-code [data-act=copyCode]')
  await browser.until('return /^\\d{6}$/.test(copied[0])')
  const otp = otpIn(`otpauth://totp/a?secret=${KEY}&period=300`)!
  const before = codeAt(otp, stepAt(otp, Date.now()))
  await browser.run("document.querySelector('#view-code .icon').click()")
  await browser.until("return document.querySelector('#view-code .revealed') !== null")
  const shown = (await textOf(browser, '#view-code .code')).replace(' ', '')
  assert.ok([before, codeAt(otp, stepAt(otp, Date.now()))].includes(shown), shown)
  assert.match(await browser.run<string>("return document.querySelector('#view-code .ring').ariaLabel"),
    /^Quedan \d+ s$/)
  assert.equal(await browser.run("return document.querySelector('#view-code .ring').checkVisibility()"), true)
  await pass(browser, 60_000)
  await browser.until("return document.querySelector('#view-code .revealed') === null")
  assert.equal(await textOf(browser, '#view-code .code'), '••••••')
  assert.equal(await browser.run("return document.querySelector('#view-code .ring').checkVisibility()"), false)
})

inBrowser('who has a second factor logs in with its code, once, and else is told no more', EVERYWHERE, async t => {
  const { browser, service } = await openProtected(t)
  const otp = otpIn(KEY)!
  const code = (steps: number): string => codeAt(otp, stepAt(otp, Date.now()) + steps)
  await service.accounts!.giveFactor(ANA, KEY, code(-1))
  await browser.click('#has-factor')
  assert.equal(await textOf(browser, '.field:has(#code) label'), 'Código de un solo uso')
  const refused = async (typed: string): Promise<void> => {
    await browser.run("document.querySelector('#login .alert').textContent = ''")
    await browser.fill('#email', ANA)
    await browser.fill('#secret', PASSWORD)
    await browser.fill('#code', typed)
    await browser.click('#login .main')
    await browser.until("return document.querySelector('#login .alert').textContent !== ''")
    assert.equal(await textOf(browser, '#login .alert'), 'El correo, la contraseña o el código no son correctos.')
  }
  await refused('')
  await refused('000')
  const now = code(0)
  await browser.fill('#code', `${now.slice(0, 3)} ${now.slice(3)}`)
  await browser.click('#login .main')
  await browser.find('#rows .row')
  await browser.run("document.getElementById('logout').click()")
  await browser.until("return document.getElementById('login') !== null")
  await browser.click('#has-factor')
  await refused(now)
})
