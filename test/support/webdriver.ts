/** A client of the WebDriver protocol (https://www.w3.org/TR/webdriver2/), and a browser to drive with it. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'
const WAIT_MS = 8_000
const PAUSE_MS = 20
/** What a command may take; a browser that has not started by then will not. */
const COMMAND_TIMEOUT_MS = 15_000

/** Keys without a character (WebDriver §17.4.2). */
export const KEYS = {
  tab: '\uE004', enter: '\uE007', escape: '\uE00C', space: ' ', pageUp: '\uE00E', pageDown: '\uE00F', end: '\uE010', home: '\uE011',
  left: '\uE012', up: '\uE013', right: '\uE014', down: '\uE015', delete: '\uE017', shift: '\uE008', control: '\uE009'
} as const

/** Why the browser cannot be driven here; false where it can. */
export const NO_BROWSER: string | false = missing('chromium', 'chromedriver')

function missing(...programs: readonly string[]): string | false {
  for (const program of programs) {
    try {
      execFileSync('which', [program], { stdio: 'ignore' })
    } catch {
      return `${program} is not installed`
    }
  }
  return false
}

/** A browser with one window. */
export interface Browser {
  /** Opens an address. */
  go(url: string): Promise<void>
  reload(): Promise<void>
  /** Runs the body of a function in the page; gives what it returns, a promise's result too. */
  run<T = unknown>(body: string, ...args: readonly unknown[]): Promise<T>
  /** The element of a CSS selector, once it is there and to be seen. */
  find(selector: string): Promise<Element>
  /** Waits until the body of a function returns something true, and gives that. */
  until<T = unknown>(body: string, ...args: readonly unknown[]): Promise<T>
  click(selector: string): Promise<void>
  /** Types into an element in the place of what is in it. */
  fill(selector: string, text: string): Promise<void>
  /** Presses keys one after the other where the focus is; modifiers stay down until the end. */
  press(...keys: readonly string[]): Promise<void>
  /** The element that has the focus. */
  focused(): Promise<Element>
  /** A command of the Chrome DevTools Protocol. */
  devtools(command: string, params?: object): Promise<any>
  /** A picture of the window, PNG in base64. */
  screenshot(): Promise<string>
  close(): Promise<void>
}

/** An element as assistive technology is told of it. */
export interface Element {
  readonly id: string
  name(): Promise<string>
  role(): Promise<string>
  text(): Promise<string>
}

/** Starts a browser of a language; `flags` go to Chromium as they are. */
export async function startBrowser(language: string = 'es', flags: readonly string[] = []): Promise<Browser> {
  const folder = mkdtempSync(join(tmpdir(), 'pes-browser-'))
  const env = { PATH: process.env['PATH'], HOME: folder, LANGUAGE: language }
  const driver = spawn('chromedriver', ['--port=0'], { env, stdio: ['ignore', 'pipe', 'ignore'] })
  const exited = once(driver, 'exit')
  // Quitting in good order would take its time, at times a minute.
  let browserId: number | undefined
  const end = (): void => {
    try {
      if (browserId !== undefined) process.kill(browserId, 'SIGKILL')
    } catch {
      // It has ended by itself.
    }
    driver.kill('SIGKILL')
    driver.stdout.destroy() // the browser has it open as well
  }
  process.once('exit', end)
  let base = ''
  for await (const line of createInterface(driver.stdout)) {
    const port = / successfully on port (\d+)/.exec(line)?.[1]
    if (port === undefined) continue
    base = `http://127.0.0.1:${port}/session`
    break
  }
  driver.stdout.resume()
  const args = [
    '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage',
    '--hide-scrollbars', '--force-prefers-reduced-motion', `--lang=${language}`, `--accept-lang=${language}`, `--user-data-dir=${join(folder, 'profile')}`,
    ...flags
  ]
  const call = async (method: string, path: string, body?: object): Promise<any> => {
    const signal = AbortSignal.timeout(COMMAND_TIMEOUT_MS)
    const init = { method, signal, ...body === undefined ? {} : { body: JSON.stringify(body) } }
    const response = await fetch(base + path, init)
    const { value } = await response.json() as { value: any }
    if (!response.ok) throw new Error(`${method} ${path}: ${value.error}: ${value.message}`)
    return value
  }
  const opened = await call('POST', '', {
    capabilities: { alwaysMatch: { browserName: 'chrome', pageLoadStrategy: 'eager', 'goog:chromeOptions': { args } } }
  }).catch(error => {
    driver.kill('SIGTERM') // then it ends what it has started
    driver.stdout.destroy()
    throw error
  })
  base += `/${opened.sessionId}`
  browserId = opened.capabilities['goog:processID']

  const elementOf = (found: { readonly [key: string]: string }): Element => {
    const id = found[ELEMENT]!
    return {
      id,
      name: () => call('GET', `/element/${id}/computedlabel`),
      role: () => call('GET', `/element/${id}/computedrole`),
      text: () => call('GET', `/element/${id}/text`)
    }
  }
  const run = <T>(body: string, ...args: readonly unknown[]): Promise<T> =>
    call('POST', '/execute/sync', { script: body, args })
  const until = async <T>(body: string, ...args: readonly unknown[]): Promise<T> => {
    const endMs = performance.now() + WAIT_MS
    for (;;) {
      const value = await run<T>(body, ...args)
      if (value) return value
      if (performance.now() > endMs) throw new Error(`waited ${WAIT_MS} ms for ${body} ${JSON.stringify(args)}`)
      await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
    }
  }
  const find = async (selector: string): Promise<Element> => elementOf(await until(
    'const found = document.querySelector(arguments[0]); return found?.checkVisibility() ? found : null', selector))
  return {
    go: url => call('POST', '/url', { url }),
    reload: () => call('POST', '/refresh', {}),
    run, until, find,
    click: async selector => { await call('POST', `/element/${(await find(selector)).id}/click`, {}) },
    fill: async (selector, text) => {
      const { id } = await find(selector)
      await call('POST', `/element/${id}/clear`, {})
      await call('POST', `/element/${id}/value`, { text })
    },
    press: async (...keys) => {
      const modifiers: readonly string[] = [KEYS.shift, KEYS.control]
      const held = keys.filter(key => modifiers.includes(key))
      const actions = [
        ...keys.flatMap(value => modifiers.includes(value) ? [{ type: 'keyDown', value }]
          : [{ type: 'keyDown', value }, { type: 'keyUp', value }]),
        ...held.map(value => ({ type: 'keyUp', value }))
      ]
      await call('POST', '/actions', { actions: [{ type: 'key', id: 'keyboard', actions }] })
    },
    focused: async () => elementOf(await call('GET', '/element/active')),
    devtools: (cmd, params = {}) => call('POST', '/goog/cdp/execute', { cmd, params }),
    screenshot: () => call('GET', '/screenshot'),
    close: async () => {
      end()
      await exited
      // Its children may still write into it.
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 20 })
    }
  }
}
