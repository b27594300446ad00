/**
 * Makes elements from texts, never from markup; keeps a few choices, none of them secret, in the
 * address.
 */

type Properties<T> = { readonly [name in keyof T]?: T[name] | undefined }

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties<Omit<HTMLElementTagNameMap[K], 'style' | 'dataset'>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = Object.assign(document.createElement(tag), properties)
  element.append(...children)
  return element
}

/** A long address has no space to break at: it may break behind its signs. */
export function breakable(text: string): readonly (Node | string)[] {
  return text.split(/(?<=[@/.])(?=\w)/).flatMap((part, i) => (i === 0 ? part : [make('wbr'), part]))
}

export function icon(name: string): SVGSVGElement {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use')
  use.setAttribute('href', `#i-${name}`)
  svg.ariaHidden = 'true'
  svg.append(use)
  return svg
}

export function iconButton(name: string, label: string, onclick?: () => void): HTMLButtonElement {
  const properties = { type: 'button' as const, className: 'icon', ariaLabel: label, title: label }
  return make('button', { ...properties, onclick: onclick ?? null }, icon(name))
}

export function textButton(
  className: string,
  text: string,
  onclick?: () => void
): HTMLButtonElement {
  return make('button', { type: 'button', className, onclick: onclick ?? null }, text)
}

export function setIcon(button: HTMLElement, name: string): void {
  button.querySelector('use')?.setAttribute('href', `#i-${name}`)
}

export function isOpening(event: Event): boolean {
  return event instanceof ToggleEvent && event.newState === 'open'
}

/** Opens a menu at the right edge of its button; `fill` makes its items before. */
export function opensMenu(
  button: HTMLButtonElement,
  menu: HTMLElement,
  fill = (): void => {}
): void {
  const place = (): void => {
    const { bottom, right } = button.getBoundingClientRect()
    // Without the space kept for a scroll bar.
    const end = document.documentElement.getBoundingClientRect().right - right
    // A button that was scrolled out of sight can be pressed, too.
    menu.style.setProperty('--top', `${Math.max(0, bottom) + 4}px`)
    menu.style.setProperty('--end', `${end}px`)
  }
  button.popoverTargetElement = menu
  // Before it is drawn: a click could hit it elsewhere.
  menu.addEventListener('beforetoggle', event => {
    button.ariaExpanded = String(isOpening(event))
    if (isOpening(event)) fill()
    place()
  })
  addEventListener('resize', place)
}

/** As high as its text. */
export function grow(area: HTMLTextAreaElement): void {
  if (CSS.supports('field-sizing', 'content')) return
  area.style.blockSize = 'auto'
  const { scrollHeight, offsetHeight, clientHeight } = area
  if (scrollHeight > 0) area.style.blockSize = `${scrollHeight + offsetHeight - clientHeight}px`
}

/** Elements that only the pointer or the focus makes visible count. */
export function isThere(element: HTMLElement): boolean {
  return element.isConnected && element.checkVisibility()
}

export function describe(element: HTMLElement, by: HTMLElement): void {
  element.setAttribute('aria-describedby', by.id)
}

export function recall(name: string): string | undefined {
  return new URLSearchParams(location.search).get(name) ?? undefined
}

/** Undefined forgets it. */
export function remember(name: string, value?: string): void {
  const all = new URLSearchParams(location.search)
  if (value === undefined) all.delete(name)
  else all.set(name, value)
  history.replaceState(history.state, '', `?${all}`)
}

/**
 * The Back key closes what is open instead of leaving the page. `warned`: the next press leaves.
 */
export function catchBack(onBack: () => 'caught' | 'leave' | 'warned'): void {
  let address = location.href
  let isArmed = history.state === 'caught'
  const arm = (): void => {
    address = location.href
    if (isArmed) return
    isArmed = true
    history.pushState('caught', '', address)
  }
  // Browsers skip history entries made before the first input.
  for (const input of ['pointerdown', 'keydown'] as const)
    addEventListener(input, arm, { capture: true })
  addEventListener('popstate', () => {
    if (!isArmed) return
    isArmed = false
    history.replaceState(null, '', address)
    const outcome = onBack()
    if (outcome === 'caught') arm()
    else if (outcome === 'leave') history.back()
  })
}

/** Calls `each` every second, at last with 0; gives the function that stops it. */
export function countDown(seconds: number, each: (left: number) => void): () => void {
  const endMs = performance.now() + seconds * 1000
  const count = (): void => {
    const left = Math.max(0, Math.ceil((endMs - performance.now()) / 1000))
    if (left === 0) clearInterval(timer)
    each(left)
  }
  const timer = setInterval(count, 1000)
  count()
  return () => clearInterval(timer)
}
