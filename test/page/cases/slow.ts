/** A slow line: a list shows as it comes, and only silence ends it. */
import assert from 'node:assert/strict'
import { CHROMIUM, EVERYWHERE, inBrowser, openService, systems, textOf } from '../../support/page.ts'
import type { Browser } from '../../support/webdriver.ts'

const entryOf = (id: number): string =>
  JSON.stringify({ id, password: `p"}]{${id}\\`, sistema: `Sistema ${id}`, usuario: 'ñ "}, {"', status: 1 })

/** Answers the next question for the list with what the test gives piece by piece. */
async function feedList(browser: Browser, length: number): Promise<(text: string) => Promise<unknown>> {
  await browser.run(`const real = window.fetch, [length] = arguments
    window.fetch = async (url, init) => {
      if (!String(url).includes('listPassword')) return real(url, init)
      window.fetch = real
      return new Response(new ReadableStream({ start(controller) {
        init.signal.addEventListener('abort', () => controller.error(init.signal.reason))
        window.feed = bytes => controller.enqueue(Uint8Array.from(bytes))
        window.endFeed = () => controller.close()
      } }), { headers: { 'Content-Length': String(length) } })
    }`, length)
  return text => browser.run('feed(arguments[0])', [...new TextEncoder().encode(text)])
}

/** Opens the page as if it had nothing yet. */
async function openEmpty(browser: Browser): Promise<void> {
  await browser.run(`const now = window.Date.now
    window.Date.now = () => now() + 10.1 * 60000
    document.dispatchEvent(new Event('visibilitychange'))`)
  await browser.find('#locked')
}

inBrowser('rows come as the list does, in pieces that are cut anywhere, and it is said how far it is', EVERYWHERE, async t => {
  const { browser } = await openService(t)
  await openEmpty(browser)
  const text = `[${Array.from({ length: 40 }, (_, i) => entryOf(i + 1)).join(',')}]`
  const feed = await feedList(browser, new TextEncoder().encode(text).length)
  await browser.click('#locked button')
  await browser.until('return window.feed')
  assert.match(await textOf(browser, '#loading'), /^Cargando…/)
  const half = text.indexOf('"sistema":"Sistema 20"') + 5
  await feed(text.slice(0, half))
  await browser.until("return document.querySelectorAll('#rows .row').length > 0")
  assert.equal(await textOf(browser, '#count'), '19 entradas')
  assert.match(await textOf(browser, '#loading'), /^Cargando… 19 entradas, [45]\d %/)
  // A person can work with what is there.
  await browser.fill('#query', '7')
  assert.deepEqual(await systems(browser), ['Sistema 7', 'Sistema 17'])
  for (const piece of text.slice(half).match(/[^]{1,30}/gu)!) await feed(piece)
  await browser.run('endFeed()')
  await browser.until("return document.getElementById('loading').hidden")
  assert.deepEqual(await systems(browser), ['Sistema 7', 'Sistema 17', 'Sistema 27', 'Sistema 37'])
  assert.equal(await textOf(browser, '#count'), '4 de 40 entradas')
})

inBrowser('a list may take longer than any time limit as long as something comes; silence ends it, and what came stays', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await openEmpty(browser)
  await browser.run('const real = AbortSignal.timeout; AbortSignal.timeout = ms => real.call(AbortSignal, ms / 6)')
  const feed = await feedList(browser, 100_000)
  await browser.click('#locked button')
  await browser.until('return window.feed')
  await feed('[')
  const startMs = performance.now()
  let id = 0
  // Silence is five seconds here; each piece comes well before that, also where a process stands still for two.
  while (performance.now() - startMs < 6_500) {
    await feed(`${id > 0 ? ',' : ''}${entryOf(++id)}`)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  assert.equal(await browser.run("return document.getElementById('notice').hidden"), true)
  await browser.until("return !document.getElementById('notice').hidden")
  assert.match(await textOf(browser, '#notice'), /Faltan entradas[^]*solo en parte/)
  assert.ok((await systems(browser)).length > 10)
  // Another failure does not make it whole.
  await browser.run("const real = window.fetch; window.fetch = async () => { window.fetch = real; window.hasFailed = true; throw new TypeError('lost') }")
  await browser.click('#notice button')
  await browser.until("return window.hasFailed && !document.getElementById('notice').hidden")
  assert.match(await textOf(browser, '#notice'), /Faltan entradas[^]*solo en parte/)
  await browser.click('#notice button')
  await browser.until("return document.getElementById('count').textContent === '8 entradas'")
})

inBrowser('what is made while the list comes stays, and so does the focus on its entry', CHROMIUM, async t => {
  const { browser } = await openService(t)
  await openEmpty(browser)
  const feed = await feedList(browser, 100_000)
  await browser.click('#locked button')
  await browser.until('return window.feed')
  await feed(`[${entryOf(500)}`)
  await browser.find('#rows .row')
  await browser.run("document.querySelector('#rows .system').focus()")
  await new Promise(resolve => setTimeout(resolve, 400))
  await feed(`,${entryOf(100)},${entryOf(200)}]`)
  await browser.run('endFeed()')
  await browser.until("return document.getElementById('loading').hidden")
  assert.equal(await browser.run('return document.activeElement.textContent'), 'Sistema 500')
  assert.deepEqual(await systems(browser), ['Sistema 100', 'Sistema 200', 'Sistema 500'])
})
