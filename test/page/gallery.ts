/** Takes the pictures of the README again: `node --import tsx test/page/gallery.ts`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { openService, show, useEngine } from '../support/page.ts'

useEngine('chromium')

for (const [name, width, height, scheme, ...clicked] of [
  ['../../src/parts/page/page.png', 1100, 560, 'light', '#show-menu', '#menu [data-language=en]'],
  ['screenshots/revealed-light.png', 860, 560, 'light', '.row[aria-rowindex="3"] .system', '#view-password .icon'],
  ['screenshots/generator-dark.png', 420, 800, 'dark', '#create', '#generate']
] as const) {
  test(name, async t => {
    const { browser } = await openService(t)
    await show(browser, width, height, scheme)
    for (const selector of clicked) await browser.click(selector)
    await browser.run('document.activeElement.blur()')
    await new Promise(resolve => setTimeout(resolve, 500))
    writeFileSync(join(import.meta.dirname, name), await browser.screenshot(), 'base64')
  })
}
