/**
 * Pictures of the page in each of its states, for the eye: `node --import tsx test/web/gallery.ts FOLDER`. Every state
 * is taken in both schemes and three widths. Those of the README go to `test/web/screenshots/`, each time anew.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test, { after, type TestContext } from 'node:test'
import { ANA, startProtected } from '../support/accounts.ts'
import { closeSharedBrowser, everyday, logIn, openPage, show } from '../support/page.ts'
import { startService, type Started } from '../support/service.ts'
import type { Browser } from '../support/webdriver.ts'

const FOLDER = process.argv[2] || undefined
const ONLY = process.argv[3]
const OURS = fileURLToPath(new URL('screenshots', import.meta.url))
const SIZES = [[360, 740], [768, 900], [1440, 900]] as const

/** The pictures of the README: state, width, height, scheme. */
const README: readonly (readonly [state: string, width: number, height: number, scheme: 'light' | 'dark'])[] = [
  ['revealed', 860, 560, 'light'], ['generator', 420, 800, 'dark']
]

type Stage = (t: TestContext) => Promise<{ readonly browser: Browser, readonly started: Started }>

const empty: Stage = async t => {
  const started = await startService(t, { page: 'on' })
  return { started, browser: await openPage(started.url) }
}
const filled: Stage = async t => {
  const started = await startService(t, { page: 'on' })
  await everyday(started.service.store)
  return { started, browser: await openPage(started.url) }
}
const locked: Stage = async t => {
  const started = await startProtected(t, { page: 'on' }, { [ANA]: ['password:read'] })
  await everyday(started.service.store)
  return { started, browser: await openPage(started.url) }
}
const crowded: Stage = async t => {
  const started = await startService(t, { 'page': 'on', 'rate-limit': '1' })
  await fetch(`${started.url}/api/listPassword`)
  return { started, browser: await openPage(started.url) }
}

const STATES: { readonly [name: string]: readonly [Stage, ((browser: Browser, started: Started) => Promise<void>)?] } = {
  empty: [empty],
  list: [filled],
  nohit: [filled, async browser => { await browser.fill('#query', 'zanahoria') }],
  invalid: [filled, async browser => {
    await browser.click('#create')
    await browser.fill('#usuario', 'ana')
    await browser.click('#editor button.main')
  }],
  generator: [filled, async browser => {
    await browser.click('#create')
    await browser.fill('#sistema', 'Correo')
    await browser.fill('#usuario', 'ana@example.org')
    await browser.click('#generate')
  }],
  words: [filled, async browser => {
    await browser.click('#create')
    await browser.click('#generate')
    await browser.click('input[value=words]')
  }],
  revealed: [filled, async browser => {
    await browser.click('.row[aria-rowindex="3"] [data-act=reveal]')
    await browser.click('.row[aria-rowindex="3"] [data-act=copy]')
  }],
  removal: [filled, async browser => { await browser.click('.row[aria-rowindex="3"] [data-act=remove]') }],
  login: [locked],
  badLogin: [locked, async browser => {
    await browser.fill('#email', ANA)
    await browser.fill('#secret', 'wrong')
    await browser.click('#login button')
    await browser.find('#login .alert')
  }],
  abilities: [locked, async browser => {
    await logIn(browser)
    await browser.click('#create')
    for (const name of ['sistema', 'usuario', 'password']) await browser.fill(`#${name}`, 'x')
    await browser.click('#editor button.main')
    await browser.find('#editor .alert')
    await browser.click('#editor .second[data-close]')
  }],
  tooMany: [crowded],
  lost: [filled, async (browser, { service }) => {
    await service.close()
    await browser.click('#refresh')
    await browser.find('#notice')
  }],
  failed: [filled, async (browser, { service }) => {
    Object.assign(service.store, { list: () => { throw new Error('broken') } })
    await browser.reload()
    await browser.find('#notice')
  }],
  hostile: [empty, async (browser, { service }) => {
    const texts = ['<img src=x onerror=alert(1)>', 'abc\u202egnp.exe', 'שלום עולם', 'a\u0000b\nc', '👨‍👩‍👧 familia', 'w'.repeat(300)]
    for (const sistema of texts) await service.store.createEntry({ sistema, usuario: texts[1]!, password: texts[1]! }, null)
    await browser.reload()
    await browser.click('.row[aria-rowindex="4"] [data-act=reveal]')
  }]
}

after(closeSharedBrowser)
for (const [state, [stage, act]] of Object.entries(STATES)) {
  if (ONLY !== undefined && !ONLY.split(',').includes(state)) continue
  test(state, async t => {
    const { browser, started } = await stage(t)
    await show(browser, 1440, 900, 'light')
    await act?.(browser, started)
    const take = async (file: string): Promise<void> => {
      await browser.run('document.activeElement.blur(); return new Promise(done => setTimeout(done, 60))')
      writeFileSync(file, await browser.screenshot(), 'base64')
    }
    for (const scheme of ['light', 'dark'] as const) {
      if (FOLDER === undefined) break
      mkdirSync(FOLDER, { recursive: true })
      for (const [width, height] of SIZES) {
        await show(browser, width, height, scheme)
        await take(join(FOLDER, `${state}-${scheme}-${width}.png`))
      }
    }
    for (const [name, width, height, scheme] of README) {
      if (name !== state) continue
      mkdirSync(OURS, { recursive: true })
      await show(browser, width, height, scheme)
      await take(join(OURS, `${name}-${scheme}.png`))
    }
    await browser.go('about:blank')
  })
}
