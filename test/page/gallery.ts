/**
 * Pictures of the page for the eye, in one engine: `node --import tsx test/page/gallery.ts FOLDER [ENGINE]`. With
 * `screenshots` as the folder and Chromium, the pictures of the README are taken again.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import type { Engine } from '../support/engines.ts'
import { openService, show, useEngine } from '../support/page.ts'
import type { Browser } from '../support/webdriver.ts'

const [folder = join(import.meta.dirname, 'screenshots'), engine = 'chromium'] = process.argv.slice(2)
const isForReadme = folder === 'screenshots' || folder === join(import.meta.dirname, 'screenshots')
const target = isForReadme ? join(import.meta.dirname, 'screenshots') : folder
useEngine(engine as Engine)

const STATES: { readonly [name: string]: readonly string[] } = {
  list: [],
  revealed: ['.row[aria-rowindex="3"] [data-act=reveal]', '.row[aria-rowindex="3"] [data-act=copy]'],
  generator: ['#create', '#generate'],
  invalid: ['#create', '#editor [data-mode=edit] .main'],
  help: ['#help'],
  undo: ['.row[aria-rowindex="3"] [data-act=remove]']
}
/** State, width, height, scheme. */
const README = [['revealed', 860, 560, 'light'], ['generator', 420, 800, 'dark']] as const
const SIZES = [[360, 740], [768, 900], [1366, 625]] as const
const ALL = Object.keys(STATES).flatMap(state => (['light', 'dark'] as const)
  .flatMap(scheme => SIZES.map(([width, height]) => [state, width, height, scheme] as const)))

async function take(browser: Browser, name: string): Promise<void> {
  await browser.run('document.activeElement.blur()')
  await new Promise(resolve => setTimeout(resolve, 200))
  mkdirSync(target, { recursive: true })
  writeFileSync(join(target, `${name}.png`), await browser.screenshot(), 'base64')
}

for (const [state, width, height, scheme] of isForReadme ? README : ALL) {
  test(`${state} ${width} ${scheme}`, async t => {
    const { browser } = await openService(t)
    await show(browser, width, height, scheme)
    for (const selector of STATES[state]!) await browser.click(selector)
    await take(browser, isForReadme ? `${state}-${scheme}` : `${engine}-${state}-${scheme}-${width}`)
    if (!isForReadme && width === 768 && scheme === 'light') {
      await show(browser, width, height, scheme, true)
      await take(browser, `${engine}-${state}-forced-${width}`)
    }
    await show(browser, width, height, 'light')
  })
}
