/** The page of a service in a browser. */
import type { Store } from '../../src/store/store.ts'
import { ANA, PASSWORD } from './accounts.ts'
import { startBrowser, type Browser } from './webdriver.ts'

let shared: Promise<Browser> | undefined

/** The browser that the tests of a file share, in Spanish; each test opens the page anew. */
export function sharedBrowser(): Promise<Browser> { return shared ??= startBrowser('es') }

/** Closes it, if it was ever opened. */
export async function closeSharedBrowser(): Promise<void> { await (await shared)?.close() }

/** Opens the page of a service and waits until it shows a list, or that there is none, or asks for a login. */
export async function openPage(url: string): Promise<Browser> {
  const browser = await sharedBrowser()
  await browser.go(`${url}/`)
  await settled(browser)
  return browser
}

/** Waits until the page shows what has come of its first question. */
export async function settled(browser: Browser): Promise<void> {
  await browser.until(
    "return ['list', 'blank', 'login', 'notice', 'limits'].some(id => document.getElementById(id)?.hidden === false)")
}

/** Logs in and waits for the list, or for what is shown instead. */
export async function logIn(browser: Browser, email: string = ANA, password: string = PASSWORD): Promise<void> {
  await browser.fill('#email', email)
  await browser.fill('#secret', password)
  await browser.click('#login button')
  await browser.until("return document.getElementById('login').hidden && document.activeElement.id === 'query'")
}

/** Keeps the service's answers from the page until what it gives is called, with the number that must be there. */
export async function holdAnswers(browser: Browser): Promise<(count: number) => Promise<void>> {
  await browser.run(`
    window.held = []
    window.realFetch ??= window.fetch
    window.fetch = (...asked) => realFetch(...asked).then(answer => new Promise(done => held.push(() => done(answer))))`)
  return async count => {
    await browser.until('return held.length === arguments[0]', count)
    await browser.run('window.fetch = realFetch; for (const release of held) release()')
  }
}

/** Entries of everyday systems. */
export async function everyday(store: Store): Promise<void> {
  const entries = [
    ['Correo', 'ana@example.org', 'S3cr3ta-del-correo'], ['Banco Central', 'ana.garcia', 'v7#Kq-92nR_wd'],
    ['Nómina', 'agarcia', 'mesa-nube-faro-trigo-loro'], ['Router de la oficina', 'admin', 'R0uter!2026'],
    ['GitHub', 'anagarcia', 'ghp-no-es-esto'], ['Impresora', 'pin', '4711'], ['Ágora', 'ana', 'x'.repeat(24)],
    ['Biblioteca municipal', '0042-8817-3391', 'lectora']
  ] as const
  for (const [sistema, usuario, password] of entries) await store.createEntry({ sistema, usuario, password }, null)
}

/** Emulates a window of this width, and a scheme. */
export async function show(
  browser: Browser, width: number, height: number, scheme: 'light' | 'dark', scale: number = 1
): Promise<void> {
  await browser.devtools('Emulation.setDeviceMetricsOverride',
    { width, height, deviceScaleFactor: scale, mobile: width < 600 })
  const features = [{ name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: 'reduce' }]
  await browser.devtools('Emulation.setEmulatedMedia', { features })
}
