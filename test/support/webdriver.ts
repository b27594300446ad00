/** A browser driven by the commands of WebDriver (https://www.w3.org/TR/webdriver2/), whichever way they get there. */

const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'
// Long: on a loaded machine one question alone may take many seconds. Only a test that fails waits for its end.
const WAIT_MS = 30_000
const MAX_LOST = 2
const PAUSE_MS = 15

/** Keys without a character (WebDriver §17.4.2). */
export const KEYS = {
  tab: '\uE004', enter: '\uE007', escape: '\uE00C', space: ' ', pageUp: '\uE00E', pageDown: '\uE00F', end: '\uE010',
  home: '\uE011',
  left: '\uE012', up: '\uE013', right: '\uE014', down: '\uE015', delete: '\uE017', shift: '\uE008', control: '\uE009'
} as const

/** The commands that the tests use: the method and path of the protocol, and the name that Marionette has for each. */
export const COMMANDS = {
  go: ['POST', '/url', 'WebDriver:Navigate'],
  reload: ['POST', '/refresh', 'WebDriver:Refresh'],
  back: ['POST', '/back', 'WebDriver:Back'],
  run: ['POST', '/execute/sync', 'WebDriver:ExecuteScript'],
  active: ['GET', '/element/active', 'WebDriver:GetActiveElement'],
  role: ['GET', '/element/{id}/computedrole', 'WebDriver:GetComputedRole'],
  label: ['GET', '/element/{id}/computedlabel', 'WebDriver:GetComputedLabel'],
  act: ['POST', '/actions', 'WebDriver:PerformActions'],
  screenshot: ['GET', '/screenshot', 'WebDriver:TakeScreenshot']
} as const

export type Call = (command: keyof typeof COMMANDS, params?: { readonly [name: string]: unknown }) => Promise<any>

export interface Native {
  readonly call: Call
  resize(width: number, height: number): Promise<unknown>
  prefer?(scheme: 'light' | 'dark', forcedColors: boolean): Promise<unknown>
  /** A command of the Chrome DevTools Protocol, in Chromium only. */
  devtools?(command: string, params?: object): Promise<any>
  /** Runs the body of a function in the browser's own window, in Firefox only. */
  chrome?<T>(body: string): Promise<T>
  /** Whether the driver says that it has clicked before the page knows. */
  readonly clicksLate?: boolean
  close(): Promise<void>
}

export interface Element {
  readonly id: string
  name(): Promise<string>
  role(): Promise<string>
}

export class Browser {
  readonly native: Native
  readonly #call: Call
  #size = ''

  constructor(native: Native) {
    this.native = native
    this.#call = native.call
  }

  /** Opens an address, and waits until the page is loaded: `until` asks again where WebKit's driver lost a question. */
  async go(url: string): Promise<void> {
    await this.#call('go', { url })
    await this.#loaded()
  }

  async reload(): Promise<void> {
    await this.#call('reload')
    await this.#loaded()
  }

  async back(): Promise<void> {
    await this.#call('back')
    await this.#loaded()
  }

  #loaded(): Promise<unknown> { return this.until("return document.readyState === 'complete'") }

  /** Emulates a window of this size, and waits until the page has it. */
  async resize(width: number, height: number): Promise<void> {
    await this.setSize(width, height)
    await this.until('return innerWidth === arguments[0] && innerHeight === arguments[1]', width, height)
    await this.drawn()
  }

  /** Waits until the page was drawn, with all that was changed and focused before. */
  async drawn(): Promise<void> {
    await this.run('window.isDrawn = false; requestAnimationFrame(() => requestAnimationFrame(() => { window.isDrawn ' +
      '= true }))')
    await this.until('return window.isDrawn')
  }

  /** Emulates a window of this size, unless it has it; that takes WebKit as long as loading the page. */
  async setSize(width: number, height: number): Promise<void> {
    const size = `${width} ${height}`
    if (size !== this.#size) await this.native.resize(width, height)
    this.#size = size
  }

  screenshot(): Promise<string> { return this.#call('screenshot') }
  close(): Promise<void> { return this.native.close() }

  devtools(command: string, params: object = {}): Promise<any> {
    if (this.native.devtools === undefined) throw new Error('only Chromium has its DevTools Protocol')
    return this.native.devtools(command, params)
  }

  /** Runs the body of a function in the page; gives what it returns, a promise's result too. */
  run<T = unknown>(body: string, ...args: readonly unknown[]): Promise<T> {
    return this.#call('run', { script: body, args })
  }

  /** Waits until the body of a function returns something true, and gives that. */
  async until<T = unknown>(body: string, ...args: readonly unknown[]): Promise<T> {
    let endMs = performance.now() + WAIT_MS
    for (let lost = 0; ;) {
      let value: T | undefined
      try {
        value = await this.run<T>(body, ...args)
      } catch (error) {
        // WebKit's driver, idle as its page is, sometimes never answers what it is asked while a page loads: it is
        // asked again.
        if ((error as Error).name !== 'TimeoutError' || ++lost > MAX_LOST) throw error
        endMs = performance.now() + WAIT_MS
      }
      if (value) return value
      if (performance.now() > endMs) throw new Error(`waited ${WAIT_MS} ms for ${body} ${JSON.stringify(args)}`)
      await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
    }
  }

  /** The element of a CSS selector, once it is visible. */
  async find(selector: string): Promise<Element> {
    return this.#element(await this.until(
      'const found = document.querySelector(arguments[0]); return found?.checkVisibility() ? found : null', selector))
  }

  async focused(): Promise<Element> { return this.#element(await this.#call('active')) }

  /**
   * Clicks at the middle of what is in sight of an element, as a mouse: the drivers' own click takes several times as
   * long.
   */
  async click(selector: string, heldMs: number = 0): Promise<void> {
    const [x, y, covering] = await this.#placeOf(selector)
    if (covering !== '') throw new Error(`${covering} covers ${selector} at ${x} ${y}`)
    const parts = [
      { type: 'pointerMove', x, y, duration: 0 }, { type: 'pointerDown', button: 0 },
      { type: 'pause', duration: heldMs }, { type: 'pointerUp', button: 0 }
    ]
    if (this.native.clicksLate === true) {
      await this.run("window.hasClick = false; addEventListener('pointerup', () => { window.hasClick = true }, { " +
        "capture: true, once: true })")
    }
    await this.#call('act', { actions: [{ type: 'pointer', id: 'mouse', actions: parts }] })
    // Another page, where the click led there, knows nothing of it.
    if (this.native.clicksLate === true) await this.until('return window.hasClick !== false')
  }

  /** The middle of what is in sight of an element once it is visible, and what covers it there. */
  #placeOf(selector: string): Promise<readonly [x: number, y: number, covering: string]> {
    return this.until(`
      const found = document.querySelector(arguments[0])
      if (!found?.checkVisibility()) return null
      found.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' })
      const { left, top, right, bottom } = found.getClientRects()[0]
      const x = Math.floor((Math.max(left, 0) + Math.min(right, innerWidth)) / 2)
      const y = Math.floor((Math.max(top, 0) + Math.min(bottom, innerHeight)) / 2)
      const at = document.elementFromPoint(x, y)
      return [x, y, found.contains(at) ? '' : at?.outerHTML.slice(0, 80) ?? 'nothing']`, selector)
  }

  async hover(selector: string): Promise<void> {
    const [x, y] = await this.until<readonly [number, number]>(`
      const { left, top, right, bottom } = document.querySelector(arguments[0]).getBoundingClientRect()
      return [Math.floor((left + right) / 2), Math.floor((top + bottom) / 2)]`, selector)
    await this.#call('act', { actions: [{ type: 'pointer', id: 'mouse',
      actions: [{ type: 'pointerMove', x, y, duration: 0 }] }] })
  }

  /** Replaces what is in a field by a text, as pasting it would. */
  async fill(selector: string, text: string): Promise<void> {
    const filled = await this.until<readonly string[]>(`
      const field = document.querySelector(arguments[0])
      if (!field?.checkVisibility()) return false
      field.focus()
      field.select()
      document.execCommand(arguments[1] === '' ? 'delete' : 'insertText', false, arguments[1])
      return [field.value]`, selector, text)
    if (filled[0] !== text) throw new Error(`${selector} takes no text, or not ${text}`)
  }

  /** Presses keys one after the other where the focus is; modifiers stay down until the end. */
  async press(...keys: readonly string[]): Promise<void> {
    const modifiers: readonly string[] = [KEYS.shift, KEYS.control]
    const held = keys.filter(key => modifiers.includes(key))
    const actions = [
      ...keys.flatMap(value => modifiers.includes(value) ? [{ type: 'keyDown', value }]
        : [{ type: 'keyDown', value }, { type: 'keyUp', value }]),
      ...held.map(value => ({ type: 'keyUp', value }))
    ]
    await this.#call('act', { actions: [{ type: 'key', id: 'keyboard', actions }] })
  }

  #element(found: { readonly [key: string]: string }): Element {
    const id = found[ELEMENT]!
    return { id, name: () => this.#call('label', { id }), role: () => this.#call('role', { id }) }
  }
}
