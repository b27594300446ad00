/** The three engines that the page is tested in. Each is driven without a package. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePorts } from './etcd.ts'
import { missing } from './programs.ts'
import { Browser, COMMANDS, type Call, type Native } from './webdriver.ts'

/** Chromium over chromedriver, Firefox over Marionette, WebKitGTK's MiniBrowser over WebKitWebDriver. */
export type Engine = 'chromium' | 'firefox' | 'webkit'

const MINI_BROWSER = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/libexec']
  .flatMap(folder => ['webkit2gtk-4.1', 'webkit2gtk-4.0', 'webkitgtk-6.0'].map(name =>
    join(folder, name, 'MiniBrowser')))
  .find(existsSync)

/** What a command may take; a browser that has not started by then will not. */
const COMMAND_TIMEOUT_MS = 20_000
const START_TIMEOUT_MS = 90_000
/** WebKit's driver measures it with the page's own `setTimeout`, so it is a time that the page itself does not use. */
export const SCRIPT_TIMEOUT_MS = 25_000

/** Why an engine cannot be driven here; false where it can. */
export const MISSING: { readonly [engine in Engine]: string | false } = {
  chromium: missing('chromium', 'chromedriver'),
  firefox: missing('firefox-esr'),
  webkit: missing('WebKitWebDriver', 'Xvfb') || (MINI_BROWSER === undefined && 'MiniBrowser is not installed')
}

/** Starts a browser, once more where it does not come up: on a busy machine Firefox was seen to answer nobody. */
export async function startBrowser(engine: Engine, tries = 2): Promise<Browser> {
  const scene = new Scene()
  try {
    return new Browser(await { chromium: startChromium, firefox: startFirefox, webkit: startWebkit }[engine](scene))
  } catch (error) {
    await scene.close()
    if (tries > 1) return startBrowser(engine, tries - 1)
    throw error
  }
}

/** A folder and processes, which end with the browser, or with this process. */
class Scene {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'pes-browser-'))
  readonly #processes: ChildProcess[] = []
  readonly #pids: number[] = []
  readonly #end = (): void => {
    // Quitting in good order would take its time, at times a minute.
    for (const pid of [...this.#pids, ...this.#processes.map(({ pid }) => pid)]) {
      try {
        if (pid !== undefined) process.kill(pid, 'SIGKILL')
      } catch {
        // It has ended by itself.
      }
    }
  }

  constructor() { process.once('exit', this.#end) }

  /** Starts a program; what it writes to its third extra descriptor can be read. */
  start(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
    const child = spawn(program, args, {
      env: { PATH: process.env['PATH'], HOME: this.folder, LANGUAGE: 'es', LC_ALL: 'C.UTF-8', ...env },
      stdio: ['ignore', 'pipe', 'ignore', 'pipe']
    })
    this.#processes.push(child)
    return child
  }

  /** Ends a process with the others that was started by one of them. */
  adopt(pid: number | undefined): void { if (pid !== undefined) this.#pids.push(pid) }

  async close(): Promise<void> {
    this.#end()
    process.off('exit', this.#end)
    for (const child of this.#processes) {
      child.stdout?.destroy()
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    }
    // Their children may still write into it.
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 20 })
  }
}

async function openSession(base: string, capabilities: object): Promise<{ readonly call: Call, readonly opened: any,
  request: any }> {
  const request = async (method: string, path: string, body?: object): Promise<any> => {
    const signal = AbortSignal.timeout(path === '' ? START_TIMEOUT_MS : COMMAND_TIMEOUT_MS)
    const init = { method, signal, ...method === 'POST' && { body: JSON.stringify(body ?? {}) } }
    const response = await fetch(base + path, init)
    const { value } = await response.json() as { value: any }
    if (!response.ok) throw new Error(`${method} ${path}: ${value.error}: ${value.message}`)
    return value
  }
  const timeouts = { script: SCRIPT_TIMEOUT_MS }
  const opened = await request('POST', '', { capabilities: { alwaysMatch: { timeouts, ...capabilities } } })
  base += `/${opened.sessionId}`
  const call: Call = (command, params = {}) => {
    const [method, path] = COMMANDS[command]
    return request(method, path.replace('{id}', String(params['id'])), params)
  }
  return { call, opened, request }
}

async function startChromium(scene: Scene): Promise<Native> {
  const driver = scene.start('chromedriver', ['--port=0'])
  let port: string | undefined
  for await (const line of createInterface(driver.stdout!)) {
    port = / successfully on port (\d+)/.exec(line)?.[1]
    if (port !== undefined) break
  }
  driver.stdout!.resume()
  const args = [
    '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage',
    '--disable-extensions', '--disable-breakpad', '--in-process-gpu',
    '--hide-scrollbars', '--force-prefers-reduced-motion', '--lang=es', '--accept-lang=es',
    `--user-data-dir=${join(scene.folder, 'profile')}`
  ]
  const { call, opened, request } = await openSession(`http://127.0.0.1:${port}/session`, {
    browserName: 'chrome', pageLoadStrategy: 'eager', 'goog:chromeOptions': { args }
  })
  scene.adopt(opened.capabilities['goog:processID'])
  const devtools = (cmd: string, params: object = {}): Promise<any> =>
    request('POST', '/goog/cdp/execute', { cmd, params })
  return {
    call, devtools,
    resize: (width, height) => devtools('Emulation.setDeviceMetricsOverride',
      { width, height, deviceScaleFactor: 1, mobile: width < 600 }),
    prefer: (scheme, forcedColors) => devtools('Emulation.setEmulatedMedia', { features: [
      { name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: 'reduce' },
      { name: 'forced-colors', value: forcedColors ? 'active' : 'none' }
    ] }),
    close: () => scene.close()
  }
}

async function startWebkit(scene: Scene): Promise<Native> {
  const server = scene.start('Xvfb', ['-displayfd', '3', '-screen', '0', '1500x1200x24', '-nolisten', 'tcp'])
  const [number] = await once(server.stdio[3]!, 'data')
  const [port] = await freePorts(1) as [number]
  // Then WebKit asks the page for less motion. A click can miss a button that still slides.
  for (const gtk of ['gtk-3.0', 'gtk-4.0']) {
    mkdirSync(join(scene.folder, '.config', gtk), { recursive: true })
    writeFileSync(join(scene.folder, '.config', gtk, 'settings.ini'), '[Settings]\ngtk-enable-animations=false\n')
  }
  const env = { DISPLAY: `:${String(number).trim()}`, LIBGL_ALWAYS_SOFTWARE: '1', NO_AT_BRIDGE: '1' }
  scene.start('WebKitWebDriver', [`--port=${port}`], env)
  for (const endMs = performance.now() + START_TIMEOUT_MS; !await isOpen(port) &&
    performance.now() < endMs;) await pause()
  const { call, request } = await openSession(`http://127.0.0.1:${port}/session`, {
    pageLoadStrategy: 'eager',
    // Full screen, so that no tool bar is in the way of a small window.
    'webkitgtk:browserOptions': { binary: MINI_BROWSER, args: ['--automation', '--full-screen'] }
  })
  return {
    call,
    clicksLate: true,
    resize: (width, height) => request('POST', '/window/rect', { x: 0, y: 0, width, height }),
    close: async () => {
      await request('DELETE', '').catch(() => {}) // the browser is the driver's child
      await scene.close()
    }
  }
}

async function startFirefox(scene: Scene): Promise<Native> {
  const preferences = {
    'marionette.port': 0, 'intl.accept_languages': 'es', 'ui.prefersReducedMotion': 1, 'browser.startup.page': 0,
    'browser.shell.checkDefaultBrowser': false, 'datareporting.policy.dataSubmissionEnabled': false,
    'dom.ipc.processPrelaunch.enabled': false, 'browser.newtabpage.enabled': false,
    'toolkit.cosmeticAnimations.enabled': false,
    'signon.rememberSignons': true, 'browser.sessionhistory.max_total_viewers': 4,
    // What the machine's network does is none of a page that is served on this machine.
    'network.manage-offline-status': false
  }
  writeFileSync(join(scene.folder, 'user.js'), Object.entries(preferences)
    .map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`).join(''))
  scene.start('firefox-esr', ['--headless', '--marionette', '--remote-allow-system-access', '--no-remote', '--profile',
    scene.folder],
    { MOZ_DISABLE_CONTENT_SANDBOX: '1' }).stdout!.resume()
  const portFile = join(scene.folder, 'MarionetteActivePort')
  for (const endMs = performance.now() + START_TIMEOUT_MS; !existsSync(portFile) &&
    performance.now() < endMs;) await pause()
  const send = marionette(Number(readFileSync(portFile, 'utf8')))
  await send('WebDriver:NewSession', { pageLoadStrategy: 'eager' })
  const call: Call = async (command, params = {}) => {
    const given = { ...params, full: false }
    const answer = await send(COMMANDS[command][2], given)
    return answer !== null && typeof answer === 'object' && 'value' in answer ? answer.value : answer
  }
  const chrome = async <T>(body: string): Promise<T> => {
    await send('Marionette:SetContext', { value: 'chrome' })
    const script = `const window = Services.wm.getMostRecentWindow('navigator:browser'); ${body}`
    const { value } = await send('WebDriver:ExecuteScript', { script, args: [] })
      .finally(() => send('Marionette:SetContext', { value: 'content' }))
    return value
  }
  return {
    call, chrome,
    resize: (width, height) => chrome(`
      const { style } = window.gBrowser.selectedBrowser
      for (const [side, length] of [['width', ${width}], ['height', ${height}]]) {
        for (const name of [side, 'min-' + side, 'max-' + side]) style.setProperty(name, length + 'px', 'important')
      }
      style.setProperty('flex', 'none')`),
    prefer: (scheme, forcedColors) => chrome(`
      Services.prefs.setIntPref('layout.css.prefers-color-scheme.content-override', ${scheme === 'dark' ? 0 : 1})
      Services.prefs.setIntPref('browser.display.document_color_use', ${forcedColors ? 2 : 1})`),
    close: () => scene.close()
  }
}

/** Firefox's own protocol: `LENGTH:[0,ID,NAME,PARAMS]`, answered by `LENGTH:[1,ID,ERROR,VALUE]`. */
function marionette(port: number): (command: string, params: object) => Promise<any> {
  const socket = connect(port, '127.0.0.1')
  const waiting = new Map<number, (answer: readonly [number, number, any, any]) => void>()
  let id = 0
  let received = Buffer.alloc(0)
  socket.on('error', () => {}) // whoever waits has a timeout
  socket.on('data', chunk => {
    received = Buffer.concat([received, chunk])
    for (;;) {
      const colon = received.indexOf(':')
      const end = colon + 1 + Number(received.subarray(0, colon))
      if (colon < 0 || received.length < end) return
      const message = JSON.parse(String(received.subarray(colon + 1, end)))
      received = received.subarray(end)
      if (Array.isArray(message)) waiting.get(message[1])?.(message as never)
    }
  })
  return (command, params) => new Promise((resolve, reject) => {
    const own = ++id
    const ms = command === 'WebDriver:NewSession' ? START_TIMEOUT_MS : COMMAND_TIMEOUT_MS
    const timer = setTimeout(() => reject(new Error(`${command}: no answer`)), ms)
    waiting.set(own, ([, , error, value]) => {
      clearTimeout(timer)
      waiting.delete(own)
      if (error === null) resolve(value)
      else reject(new Error(`${command}: ${error.error}: ${error.message}`))
    })
    const text = JSON.stringify([0, own, command, params])
    socket.write(`${Buffer.byteLength(text)}:${text}`)
  })
}

function pause(): Promise<void> { return new Promise(resolve => setTimeout(resolve, 25)) }

function isOpen(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true) })
    socket.on('error', () => resolve(false))
  })
}
