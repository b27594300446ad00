/** Takes the pictures of the README again: `node --import tsx test/page/gallery.ts`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { openService, show, useEngine } from '../support/page.ts'

useEngine('chromium')

for (const [name, width, height, scheme, ...clicked] of [
  ['revealed', 860, 560, 'light', '.row[aria-rowindex="3"] [data-act=reveal]', '.row[aria-rowindex="3"] [data-act=copy]'],
  ['generator', 420, 800, 'dark', '#create', '#generate']
] as const) {
  test(name, async t => {
    const { browser } = await openService(t)
    await show(browser, width, height, scheme)
    for (const selector of clicked) await browser.click(selector)
    await browser.until("return document.querySelector('.revealed') !== null || document.getElementById('editor').open")
    await browser.run('document.activeElement.blur()')
    await new Promise(resolve => setTimeout(resolve, 200))
    writeFileSync(join(import.meta.dirname, 'screenshots', `${name}-${scheme}.png`), await browser.screenshot(), 'base64')
  })
}
