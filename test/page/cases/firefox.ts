/** What Firefox alone does. */
import assert from 'node:assert/strict'
import { inBrowser, openService, sendEntry } from '../../support/page.ts'

inBrowser('Firefox does not offer to keep an entry as a login', ['firefox'], async t => {
  const { browser } = await openService(t)
  // A login of a test before may still be offered.
  await browser.native.chrome!("const one = window.PopupNotifications.getNotification('password'); if (one) " +
    "window.PopupNotifications.remove(one)")
  await browser.click('#create')
  await sendEntry(browser)
  await browser.until("return document.getElementById('editor') === null")
  await new Promise(resolve => setTimeout(resolve, 300))
  assert.equal(await browser.native.chrome!("return window.PopupNotifications.getNotification('password') !== null"),
    false)
})
