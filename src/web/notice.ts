/** What the page says of what went wrong, and of what went well. */
import type { Refusal } from './api.ts'
import { find } from './dom.ts'
import { say } from './language.ts'
import { plainText } from './plain.ts'
import { countDown } from './wait.ts'

const TOAST_MS = 6_000
const ICONS: { readonly [why in Refusal['why']]?: string } = { lost: '#i-unlinked', wait: '#i-clock' }

/** A refusal in words: a title, and a sentence; `secondsLeft` counts what is left to wait. */
export function explain(refusal: Refusal, secondsLeft: number = refusal.waitSeconds): readonly [string, string] {
  const { why, message, requestId } = refusal
  if (why === 'lost') return [say('lostTitle'), say('lostText')]
  if (why === 'unable') return [say('unableTitle'), say('unableText')]
  if (why === 'login') return [say('loginTitle'), say('ended')]
  if (why === 'unknown') return [say('failedTitle'), say('gone')]
  if (why === 'wait') {
    return [say('waitTitle'), secondsLeft > 0 ? say('waitText', { seconds: secondsLeft }) : say('waitOver')]
  }
  const text = say('failedText', { message: plainText(message) })
  return [say('failedTitle'), requestId === '' ? text : `${text} · ${say('request', { id: requestId })}`]
}

/** The place above the list that says what went wrong, with a button to try again. */
export class Notice {
  readonly #box = find(HTMLElement, '#notice')
  readonly #button = find(HTMLButtonElement, '#notice button')
  #retry: (() => void) | undefined
  #show = (): void => {}
  #stop = (): void => {}

  constructor() {
    this.#button.addEventListener('click', () => this.#again())
    addEventListener('online', () => { if (this.#box.dataset['why'] === 'lost') this.#again() })
  }

  /**
   * Shows a refusal; `retry` is what the button does, once there is nothing to wait for. `isAlone`: nothing else is to
   * be seen.
   */
  show(refusal: Refusal, isAlone: boolean, retry: () => void): void {
    this.hide()
    this.#box.classList.toggle('alone', isAlone)
    this.#retry = retry
    this.#box.dataset['why'] = refusal.why
    find(SVGUseElement, 'use', this.#box).setAttribute('href', ICONS[refusal.why] ?? '#i-close')
    this.#box.hidden = false
    const isWaiting = refusal.why === 'wait'
    this.#stop = countDown(isWaiting ? refusal.waitSeconds : 0, left => {
      this.#show = () => {
        const [title, text] = explain(refusal, left)
        find(HTMLElement, 'h2', this.#box).textContent = title
        find(HTMLElement, 'p', this.#box).textContent = text
        this.#button.textContent = say('retry')
      }
      this.#show()
      this.#button.disabled = left > 0
      // The title is read out once, and not each second.
      this.#box.ariaLive = isWaiting && left > 0 ? 'off' : 'assertive'
    })
  }

  /** Says the same in the language that is now spoken. */
  renew(): void { this.#show() }

  hide(): void {
    this.#stop()
    this.#show = () => {}
    this.#retry = undefined
    this.#box.hidden = true
    delete this.#box.dataset['why']
  }

  #again(): void {
    const retry = this.#retry
    this.hide()
    retry?.()
  }
}

let toastTimer: ReturnType<typeof setTimeout> | undefined

/** Says for a while what has been done. */
export function toast(text: string): void {
  const box = find(HTMLElement, '#toast')
  clearTimeout(toastTimer)
  box.textContent = text
  toastTimer = setTimeout(() => { box.textContent = '' }, TOAST_MS)
}
