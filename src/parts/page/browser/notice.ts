/** What went wrong, in words, and the notice of it above the list. */
import type { Refusal } from './api.ts'
import { keepFocus } from './dialogs.ts'
import { find } from './dom.ts'
import { say } from './language.ts'
import { plainText } from './plain.ts'
import { countDown } from './wait.ts'

const ICONS: { readonly [why in Refusal['why']]?: string } = { lost: '#i-unlinked', limited: '#i-clock',
  busy: '#i-clock' }

/** A refusal in words: a title, and a sentence; `secondsLeft` counts down what is left to wait. */
export function explain(refusal: Refusal, secondsLeft: number = refusal.waitSeconds): readonly [string, string] {
  const { why, message, requestId } = refusal
  if (why === 'lost') return [say(navigator.onLine ? 'lostTitle' : 'offlineTitle'), say('lostText')]
  if (why === 'forbidden') return [say('forbiddenTitle'), say('forbiddenText')]
  if (why === 'login') return [say('loginTitle'), say('ended')]
  if (why === 'unknown' || why === 'changed') return [say('failedTitle'), say('gone')]
  if (isWait(refusal)) {
    const text = secondsLeft > 0 ? say('waitText', { seconds: secondsLeft }) : say('waitOver')
    return [say(why === 'busy' ? 'busyTitle' : 'limitedTitle'), text]
  }
  const text = say('failedText', { message: plainText(message) })
  return [say('failedTitle'), requestId === '' ? text : `${text} · ${say('request', { id: requestId })}`]
}

/** Whether the service asks to wait. */
export function isWait({ why }: Refusal): boolean { return why === 'limited' || why === 'busy' }

/** The message above the list, with a button to try again. */
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
   * Shows a refusal; `retry` is what the button does. `shows`: what there is besides: nothing, the beginning of the
   * list, or a list that was there before.
   */
  show(refusal: Refusal, shows: 'nothing' | 'part' | 'all', retry: () => void): void {
    this.hide()
    this.#box.classList.toggle('alone', shows === 'nothing')
    this.#retry = retry
    this.#box.dataset['why'] = refusal.why
    find(SVGUseElement, 'use', this.#box).setAttribute('href', ICONS[refusal.why] ?? '#i-close')
    this.#box.hidden = false
    const isWaiting = isWait(refusal)
    this.#stop = countDown(isWaiting ? refusal.waitSeconds : 0, left => {
      this.#show = () => {
        const [title, text] = shows === 'part' ? [say('partTitle'), say('partText')] : explain(refusal, left)
        find(HTMLElement, 'h2', this.#box).textContent = title
        find(HTMLElement, 'p', this.#box).textContent = text
        this.#button.textContent = say('retry')
      }
      this.#show()
      this.#button.ariaDisabled = left > 0 ? 'true' : null
      // Read out once, and not each second.
      this.#box.ariaLive = isWaiting && left > 0 ? 'off' : 'assertive'
    })
  }

  /** Shows the same in another language. */
  renew(): void { this.#show() }

  hide(): void {
    this.#stop()
    this.#show = () => {}
    this.#retry = undefined
    this.#box.hidden = true
    delete this.#box.dataset['why']
  }

  #again(): void {
    if (this.#button.ariaDisabled === 'true') return
    const retry = this.#retry
    this.hide()
    keepFocus()
    retry?.()
  }
}
