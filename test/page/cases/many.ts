/** Ten thousand entries. */
import assert from 'node:assert/strict'
import type { Store } from '../../../src/store/store.ts'
import { CHROMIUM, EVERYWHERE, focus, inBrowser, openService, systems } from '../../support/page.ts'
import { KEYS } from '../../support/webdriver.ts'
import { createEntry } from '../../../src/entries/entry-commands.ts'

const MANY = 10_000
/** Made in one step, and in the document. */
const MAX_ROWS = 60
/**
 * Of the page's own thread, not of the clock: 16 to 90 ms were seen, the most on a machine with twenty other programs
 * at work. All rows at once would take seconds.
 */
const MAX_STEP_MS = 500

/** So many at once: a change that has waited for seconds is withdrawn. */
const AT_ONCE = 500

const many = (count: number) => async (store: Store): Promise<void> => {
  for (let first = 0; first < count; first += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, i) => {
      const n = first + i
      const sistema = `Sistema ${String(n).padStart(5, '0')}`
      return createEntry(store, { sistema, usuario: `usuario${n % 97}@example.org`, password: `p${n}` }, null)
    }))
  }
}

inBrowser(`${MANY} entries scroll and filter without a long frame, a few rows at a time`, CHROMIUM, async t => {
  const { browser } = await openService(t, {}, many(MANY))
  const grid = await browser.find('#grid')
  assert.deepEqual([await grid.role(), await browser.run("return document.getElementById('grid').ariaRowCount")],
    ['grid', String(MANY + 1)])
  await browser.devtools('Performance.enable', { timeDomain: 'threadTicks' })
  const spentMs = async (): Promise<number> => {
    const { metrics } = await browser.devtools('Performance.getMetrics')
    return 1000 * metrics.find(({ name }: { name: string }) => name === 'TaskDuration').value
  }
  await browser.run(`window.made = 0
    new MutationObserver(all => {
      for (const { addedNodes } of all) made += [...addedNodes].filter(one => one.matches?.('.row')).length
    }).observe(document.getElementById('rows'), { childList: true })`)
  // What the page's own thread works, with the style, the layout and the driver's question.
  const step = async (body: string, ...args: readonly unknown[]): Promise<void> => {
    await browser.run('made = 0')
    const startMs = await spentMs()
    await browser.run(body, ...args)
    await browser.drawn()
    const ms = await spentMs() - startMs
    const [made, rows] = await browser.run<[number, number]>(
      "return [made, document.querySelectorAll('#rows .row').length]")
    t.diagnostic(`${args}: ${ms.toFixed(1)} ms, ${made} rows made, ${rows} in the document`)
    assert.ok(Math.max(made, rows) < MAX_ROWS, `${args}: ${made} rows made, ${rows} in the document`)
    assert.ok(ms < MAX_STEP_MS, `${args}: ${ms} ms`)
  }
  for (let i = 1; i <= 4; i++) await step("scrollTo({ top: arguments[0], behavior: 'instant' })", i * 150_000)
  for (const text of ['s', '', 'sis 99', '', 'usuario3', '', 'nada', '']) {
    await step(`const query = document.getElementById('query')
      query.value = arguments[0]
      query.dispatchEvent(new Event('input', { bubbles: true }))`, text)
  }
  // Any of them in reach of the keyboard, and told which it is.
  await browser.run("document.getElementById('query').focus()")
  await browser.press(KEYS.down)
  await browser.press(KEYS.control, KEYS.end)
  assert.equal(await focus(browser), 'button: Copiar la contraseña de Sistema 09999')
  assert.equal(await browser.run("return document.activeElement.closest('.row').ariaRowIndex"), String(MANY + 1))
  await browser.press(KEYS.pageUp)
  const index = await browser.run<string>("return document.activeElement.closest('.row').ariaRowIndex")
  assert.ok(Number(index) < MANY && Number(index) > MANY - 50, index)
  // Scrolled far away, the row with the focus is still there.
  await browser.run("scrollTo({ top: 0, behavior: 'instant' })")
  await browser.until('return document.querySelector(\'#rows .row[aria-rowindex="2"]\')')
  assert.equal(await browser.run("return document.activeElement.closest('.row').ariaRowIndex"), index)
})

inBrowser('a search after scrolling shows its first hits', EVERYWHERE, async t => {
  const { browser } = await openService(t, {}, many(1_000))
  await browser.run("scrollTo({ top: 40000, behavior: 'instant' })")
  await browser.fill('#query', 'sistema 009')
  await browser.until(`const row = document.querySelector('#rows .row[aria-rowindex="2"]')
    return row !== null && row.getBoundingClientRect().top >= 0 && row.getBoundingClientRect().bottom <= innerHeight`)
  assert.match((await systems(browser))[0]!, /^Sistema 00009$/)
})
