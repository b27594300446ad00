/** The page of a service in a browser. */
import type { Store } from '../../src/store/store.ts'
import assert from 'node:assert/strict'
import { ANA, PASSWORD, startProtected } from './accounts.ts'
import './compressed-once.ts'
import { atEnd, startService, type Started } from './service.ts'
import { after, type TestContext } from 'node:test'
import { MISSING, SCRIPT_TIMEOUT_MS, startBrowser, type Engine } from './engines.ts'
import { KEYS, type Browser } from './webdriver.ts'
import { createEntry as create } from '../../src/entries/entry-commands.ts'

/** All of them: for what browsers draw, focus, type or keep in their own way. */
export const EVERYWHERE: readonly Engine[] = ['chromium', 'firefox', 'webkit']
/** One of them: for what the page does by itself, and what needs the DevTools Protocol. */
export const CHROMIUM: readonly Engine[] = ['chromium']

const MAX_FOCUS_TRIES = 5
const WIDTH = 1200
const HEIGHT = 900

/**
 * One origin for all tests of a process: another one costs a browser twice what the page does. No port that the system
 * gives away.
 */
const PORT = String(20_000 + process.pid % 10_000)

type Test = (name: string, options: { skip: string | false }, body: (t: TestContext) => Promise<void>) => unknown

let engine: Engine | undefined
let test: Test
let shared: Promise<Browser> | undefined

/** The engine of this process; its tests share one browser, and each opens the page again. */
export function useEngine(chosen: Engine, declare: Test = () => {}): void {
  engine = chosen
  test = declare
  after(closeSharedBrowser)
}

/**
 * A test of the page in those of the engines that this process is for; skipped where that is not installed, or where
 * `missing` says what else is not there.
 */
export function inBrowser(
  name: string, engines: readonly Engine[], body: (t: TestContext) => Promise<void>, missing: () => string
    | false = () => false
): void {
  if (engine === undefined || !engines.includes(engine)) return
  const reason = MISSING[engine] || missing()
  test(`${name} (${engine})`, { skip: reason }, body)
}

export function sharedBrowser(): Promise<Browser> { return shared ??= startBrowser(engine!) }

export async function closeSharedBrowser(): Promise<void> { await (await shared)?.close() }

/** Opens the page of a service and waits until it shows a list, or that there is none, or asks for a login. */
export async function openPage(t: TestContext, url: string): Promise<Browser> {
  const browser = await sharedBrowser()
  // A page that is left sends what it has put off, which must not reach the service of the next test.
  atEnd(t, () => browser.run('window.fetch = () => new Promise(() => {})').then(() => {}, () => {}))
  await browser.setSize(WIDTH, HEIGHT)
  await browser.go(`${url}/?lang=es`)
  await settled(browser)
  return browser
}

/** Waits until the page shows what has come of its first question; from then on its time stands still. */
export async function settled(browser: Browser): Promise<void> {
  await browser.until(
    "return ['grid', 'blank', 'login', 'notice'].some(id => " +
      "document.getElementById(id)?.checkVisibility())")
  await browser.run(STANDSTILL, SCRIPT_TIMEOUT_MS)
}

/**
 * Timers of a second and more wait for the test, so that none of them ends what a test waits for. The driver's own run.
 */
const STANDSTILL = `
  if (window.isDue) return
  const real = setTimeout, realClear = clearTimeout, due = new Map(), [driver] = arguments
  let next = 1e9
  window.setTimeout = (f, ms, ...rest) =>
    ms >= 1000 && ms !== driver ? (due.set(++next, [f, ms]), next) : real(f, ms, ...rest)
  window.clearTimeout = id => { if (!due.delete(id)) realClear(id) }
  window.isDue = ms => [...due.values()].some(([, own]) => own === ms)
  window.pass = ms => { for (const [id, [f, own]] of [...due]) if (own === ms && due.delete(id)) f() }`

/** Lets the time of the page's timers of `ms` be over, as soon as there are any. */
export async function pass(browser: Browser, ms: number): Promise<void> {
  await browser.until('return isDue(arguments[0])', ms)
  await browser.run('pass(arguments[0])', ms)
}

export async function logIn(browser: Browser, email: string = ANA, password: string = PASSWORD): Promise<void> {
  await browser.fill('#email', email)
  await browser.fill('#secret', password)
  await browser.click('#login form > .wide')
  await browser.until("return document.getElementById('login') === null && document.getElementById('loading') === null")
}

/** A login beside that of the page. */
export async function logInElsewhere({ url }: Started): Promise<void> {
  const body = JSON.stringify({ email: ANA, password: PASSWORD })
  const headers = { 'Content-Type': 'application/json' }
  const answer = await fetch(`${url}/api/login`, { method: 'POST', body, headers })
  assert.equal(answer.status, 200)
}

/** Keeps the service's answers from the page until what it gives is called, with the number that must be there. */
export async function holdAnswers(browser: Browser): Promise<(count: number) => Promise<void>> {
  await browser.run(`
    window.held = []
    window.realFetch ??= window.fetch
    window.fetch = (...asked) => realFetch(...asked)
      .then(answer => new Promise(done => held.push(() => done(answer))))`)
  return async count => {
    await browser.until('return held.length === arguments[0]', count)
    await browser.run('window.fetch = realFetch; for (const release of held) release()')
  }
}

/** Emulates a window of this size, and a scheme. */
export async function show(
  browser: Browser, width: number, height: number, scheme: 'light' | 'dark', forcedColors: boolean = false
): Promise<void> {
  await browser.resize(width, height)
  await browser.native.prefer?.(scheme, forcedColors)
}

export function systems(browser: Browser): Promise<string[]> {
  return browser.run("return [...document.querySelectorAll('#rows .system bdi')].map(one => one.textContent)")
}

/**
 * All of the document: its markup, and its text, in which no mark of a digit or a symbol stands between two letters.
 */
export function documentOf(browser: Browser): Promise<string> {
  return browser.run('const { outerHTML, textContent } = document.documentElement; return outerHTML + textContent')
}

export function textOf(browser: Browser, selector: string): Promise<string> {
  return browser.run('return document.querySelector(arguments[0]).innerText', selector)
}

/** The row of a system, as the beginning of a selector. */
export async function rowOf(browser: Browser, system: string): Promise<string> {
  const index = await browser.run<string>(`return [...document.querySelectorAll('#rows .row')]
    .find(row => row.querySelector('.system bdi').textContent === arguments[0]).ariaRowIndex`, system)
  return `#rows .row[aria-rowindex="${index}"]`
}

export function told(browser: Browser, text: string): Promise<unknown> {
  return browser.until("return [...document.querySelectorAll('.message span')].some(one => " +
    "one.textContent.startsWith(arguments[0]))", text)
}

export function valueOf(browser: Browser, id: string): Promise<string> {
  return browser.run('return document.getElementById(arguments[0]).value', id)
}

export function isEditing(browser: Browser): Promise<boolean> {
  return browser.run("return document.getElementById('editor')?.open === true")
}

/** Fills the open dialog for a new entry, and sends it. */
export async function sendEntry(browser: Browser, system: string = 'sistema'): Promise<void> {
  for (const [name, text] of [['sistema', system], ['usuario', 'usuario'], ['password', 'password']] as const) {
    await browser.fill(`#${name}`, text)
  }
  await browser.press(KEYS.enter)
}

export async function createEntry(browser: Browser, system?: string): Promise<void> {
  await browser.click('#create')
  await sendEntry(browser, system)
}

export async function remove(browser: Browser, system: string): Promise<void> {
  const row = await rowOf(browser, system)
  await browser.hover(`${row} .system`)
  await browser.click(`${row} [data-act=remove]`)
}

export async function edit(browser: Browser, system: string): Promise<void> {
  await browser.click(`${await rowOf(browser, system)} [data-act=edit]`)
  await browser.until("return document.getElementById('editor')?.open")
}

/** Ends once the list is the new one: what is shown of an entry that changed is hidden then. */
export async function loadAgain(browser: Browser): Promise<void> {
  await browser.click('#refresh')
  await browser.until("return document.getElementById('refresh').ariaBusy !== 'true'")
}

export async function view(browser: Browser, system: string): Promise<void> {
  await browser.click(`${await rowOf(browser, system)} .system`)
  await browser.until("return document.getElementById('viewer')?.open")
}

/** Role and name of what has the focus; asked again if the page has made that anew meanwhile. */
export async function focus(browser: Browser): Promise<string> {
  for (let tries = 1; ; tries++) {
    try {
      return await focusOnce(browser)
    } catch (error) {
      if (tries === MAX_FOCUS_TRIES || !/stale element/.test((error as Error).message)) throw error
    }
  }
}

async function focusOnce(browser: Browser): Promise<string> {
  const element = await browser.focused()
  // WebKit's driver has no name for a row's header, which is named by its content.
  const name = await element.name() ||
    await browser.run<string>("return (document.activeElement.querySelector('bdi') ?? " +
      "document.activeElement).innerText")
  return `${await element.role()}: ${name}`
}

type Opened = Started & { readonly browser: Browser }

type Fill = (store: Store) => Promise<unknown>

export function entries(...all: readonly (readonly [sistema: string, usuario: string, password: string])[]): Fill {
  return async store => {
    for (const [sistema, usuario, password] of all) await create(store, { sistema, usuario, password }, null)
  }
}

export const everyday: Fill = entries(
  ['Correo', 'ana@example.org', 'S3cr3ta-del-correo'], ['Banco Central', 'ana.garcia', 'v7#Kq-92nR_wd'],
  ['Nómina', 'agarcia', 'mesa-nube-faro-trigo-loro'], ['Router de la oficina', 'admin', 'R0uter!2026'],
  ['GitHub', 'anagarcia', 'ghp-no-es-esto'], ['Impresora', 'pin', '4711'], ['Ágora', 'ana', 'x'.repeat(24)],
  ['Biblioteca municipal', '0042-8817-3391', 'lectora']
)

/**
 * After each test no stored secret is in the document, in a text, an attribute or a field, but those that are shown.
 */
async function holdsNothing(browser: Browser, { state }: Store): Promise<void> {
  const secrets = [...state.entries.entries()].filter(({ password, sistema }) => password !== sistema)
    .map(({ password }) => password).filter(({ length }) => length > 8 && length < 1_000)
  const held = await browser.run(`
    const shown = [...document.querySelectorAll('.revealed')].map(one => one.textContent).join()
    const { outerHTML, textContent } = document.documentElement
    const fields = [...document.querySelectorAll('input, textarea, output')].map(one => one.value).join()
    const all = outerHTML + textContent + fields
    return arguments[0].filter(secret => all.includes(secret) && !shown.includes(secret))`, secrets)
  assert.deepEqual(held, [])
}

async function open(t: TestContext, start: (port: string) => Promise<Started>, fill: Fill): Promise<Opened> {
  const started = await start(PORT).catch(() => start('0')) // where another one of the test has it
  await fill(started.service.store)
  const browser = await openPage(t, started.url)
  atEnd(t, () => holdsNothing(browser, started.service.store))
  return { ...started, browser }
}

export function openService(t: TestContext, flags: Record<string, string> = {},
  fill: Fill = everyday): Promise<Opened> {
  return open(t, port => startService(t, { page: 'on', journal: 'memory', port, ...flags }), fill)
}

/** The protected configuration with one user, everyday entries, and its page. */
export function openProtected(
  t: TestContext, abilities: readonly string[] = ['*'], flags: Record<string, string> = {}
): Promise<Opened> {
  return open(t, port => startProtected(t, { page: 'on', port, ...flags }, { [ANA]: abilities }), everyday)
}

/** Waits until something holds in this process, where the service is. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 30_000
  while (!await holds()) {
    if (performance.now() > endMs) throw new Error(`waited 30 s for ${holds}`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

/** Keeps in `window.copied` what the page copies. */
export function keepCopies(browser: Browser): Promise<unknown> {
  return browser.run(`window.copied = []
    Object.defineProperty(navigator, 'clipboard', { configurable: true, value: {
      write: async ([item]) => window.copied.push(await (await item.getType('text/plain')).text()),
      writeText: async text => { window.copied.push(text) } } })`)
}

/**
 * Lets minutes pass, and something happen; gives whether the page is locked at once, which looks each second as well.
 */
export function laterBy(browser: Browser, minutes: number, event: string = 'visibilitychange'): Promise<boolean> {
  return browser.run(`
    const now = window.Date.now
    window.Date.now = () => now() + arguments[0] * 60000
    document.dispatchEvent(new Event(arguments[1]))
    return document.getElementById('locked') !== null`, minutes, event)
}
