/** What an account does not allow is not offered, and said in words. */
import assert from 'node:assert/strict'
import { ANA, PASSWORD } from '../../support/accounts.ts'
import {
  CHROMIUM, createEntry, inBrowser, isEditing, logIn, openProtected, textOf, until, view
} from '../../support/page.ts'
import { KEYS, type Browser } from '../../support/webdriver.ts'

const isSeen = (browser: Browser, selector: string): Promise<boolean> =>
  browser.run('return document.querySelector(arguments[0])?.checkVisibility() === true', selector)

inBrowser('who may only read is offered nothing else, by button, key or dialog', CHROMIUM, async t => {
  const { browser } = await openProtected(t, ['password:read'])
  await logIn(browser)
  await browser.find('#rows .row')
  for (const one of ['#create', '.to-deleted', '#rows [data-act=edit]', '#rows [data-act=remove]']) {
    assert.equal(await isSeen(browser, one), false, one)
  }
  assert.ok(await isSeen(browser, '#rows [data-act=copy]'))
  await browser.run('document.activeElement.blur()')
  await browser.press('n')
  assert.equal(await isEditing(browser), false)
  await view(browser, 'Correo')
  assert.equal(await browser.run("return document.querySelectorAll('#viewer .end button').length"), 0)
  await browser.press(KEYS.escape)
  await browser.run("document.getElementById('show-account').click()")
  assert.match(await textOf(browser, '#account'), /Puedes\s+ver la lista y ver las contraseñas\s/)
  assert.ok(await isSeen(browser, '#show-own'), 'the own password is everybody\'s own')
})

inBrowser('who may not see the list is told so, and can do what the account allows', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t, ['password:create'])
  await browser.fill('#email', ANA)
  await browser.fill('#secret', PASSWORD)
  await browser.press(KEYS.enter)
  await browser.find('#blank')
  assert.match(await textOf(browser, '#blank'), /^Tu cuenta no permite ver la lista\s+Nueva contraseña$/)
  const asked = await browser.run<string[]>("return performance.getEntriesByType('resource').map(one => one.name)")
  assert.deepEqual(asked.filter(name => name.includes('/api/')).map(name => name.split('/').at(-1)), ['login'])
  await createEntry(browser)
  await browser.until("return document.getElementById('editor') === null")
  await until(() => service.store.state.entries.active === 9)
})

inBrowser('an account that allows nothing is told what it does not allow', CHROMIUM, async t => {
  const { browser } = await openProtected(t, ['password:none'])
  await logIn(browser)
  await browser.find('#blank')
  assert.equal(await textOf(browser, '#blank'), 'Tu cuenta no permite ver la lista')
  await browser.run("document.getElementById('show-account').click()")
  assert.match(await textOf(browser, '#account'), /Puedes\s+nada de lo que hay aquí\s/)
})

inBrowser('who may see the list and not the passwords has it without them', CHROMIUM, async t => {
  const { browser } = await openProtected(t, ['entry:list'])
  await logIn(browser)
  await browser.find('#rows .row')
  assert.equal(await textOf(browser, '#note-noSecrets'), 'Tu cuenta permite ver la lista, pero no las contraseñas.')
  assert.equal(await isSeen(browser, '#rows [data-act=copy]'), false)
  await view(browser, 'Correo')
  assert.deepEqual(await browser.run("return [...document.querySelectorAll('.facts > div')].map(one => one.id)"),
    ['view-user'])
})

inBrowser('an ability taken away is refused with a message, not offered before the next login', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t)
  await logIn(browser)
  const { accounts } = service
  const session = accounts!.session.bind(accounts!)
  Object.assign(accounts!, { session: (token: string) => {
    const found = session(token)
    return found === undefined ? undefined : { ...found, abilities: ['password:read'] }
  } })
  await createEntry(browser)
  await browser.until("return /Tu cuenta no permite/.test(document.querySelector('#editor .alert').textContent)")
  await browser.press(KEYS.escape)
  await browser.click('#confirm .danger')
  assert.equal(await isSeen(browser, '#create'), false)
  Object.assign(accounts!, { session })
  await browser.run("document.getElementById('logout').click()")
  await logIn(browser)
  await browser.find('#create')
})

inBrowser('a session that has ended is noticed anywhere, and ends everything in the same way', CHROMIUM, async t => {
  const { browser, service } = await openProtected(t, ['*'], { 'extra-routes': 'on', journal: 'file' })
  await logIn(browser)
  const click = (selector: string) => (): Promise<unknown> =>
    browser.run('document.querySelector(arguments[0]).click()', selector)
  const steps: readonly (readonly [what: string, prepare: () => Promise<unknown>, act: () => Promise<unknown>])[] = [
    ['the deleted ones', async () => {}, click('.to-deleted')],
    ['editing', () => view(browser, 'Correo'), click('#viewer [data-act=edit]')],
    ['showing', () => view(browser, 'Correo'), click('#view-password .icon')],
    ['the history', () => view(browser, 'Correo'), click('#history summary')],
    ['the own password', async () => {
      await click('#show-account')()
      await browser.find('#sessions li') // it moves what is below it
      await browser.click('#show-own')
      await browser.fill('#current', PASSWORD)
      await browser.fill('#fresh', 'another long password')
    }, click('#own .main')]
  ]
  for (const [what, prepare, act] of steps) {
    await prepare()
    await service.accounts!.revokeAll(ANA)
    await act()
    await browser.until("return document.getElementById('login-note')?.textContent === 'Tu sesión ha terminado. " +
      "Entra de nuevo.'")
    assert.deepEqual(await browser.run("return [document.querySelectorAll('dialog').length, " +
      "document.querySelectorAll('#rows .row').length]"),
      [0, 0], what)
    await browser.until("return document.activeElement.id === 'email'")
    await logIn(browser)
    await browser.find('#rows .row')
  }
})
