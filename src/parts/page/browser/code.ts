/** The one-time code of an entry in the viewer, and its key in the editor. */
import { iconButton, make, setIcon, textButton } from './dom.ts'
import type { Field } from './form.ts'
import { explained, say } from './language.ts'
import { hideLater } from './showing.ts'
import { api } from './state.ts'
import { tell } from './dialogs.ts'

/** Of most codes; the ring of a longer one stays full at first. */
const PERIOD_SECONDS = 30

/** Hidden until it is asked for, then with a ring of its seconds. */
export function codeOf(id: number): {
  readonly text: HTMLElement
  readonly button: HTMLButtonElement
} {
  const digits = make('span', { className: 'code' })
  const ring = make('span', { className: 'ring', role: 'timer', hidden: true })
  const text = make('span', { className: 'secret one-time' }, digits, ring)
  const button = iconButton('eye', '')
  let counting: ReturnType<typeof setInterval> | undefined
  let hiding: ReturnType<typeof setTimeout> | undefined
  const hide = (): void => {
    clearInterval(counting)
    clearTimeout(hiding)
    text.classList.remove('revealed')
    digits.textContent = '•'.repeat(6)
    digits.ariaHidden = 'true'
    ring.hidden = true
    button.ariaLabel = button.title = say('revealCode')
    setIcon(button, 'eye')
  }
  const show = async (): Promise<void> => {
    const answer = await api.code(id)
    if (!text.isConnected) return
    if (!answer.ok) return void tell(explained(answer))
    const { code, seconds } = answer.value
    const endMs = performance.now() + seconds * 1000
    if (!text.classList.contains('revealed')) hiding = hideLater(digits)
    text.classList.add('revealed')
    digits.ariaHidden = null
    digits.textContent = code.replace(/^(\d{3,4})(\d{3,4})$/, '$1 $2')
    ring.hidden = false
    button.ariaLabel = button.title = say('hideCode')
    setIcon(button, 'hide')
    const count = (): void => {
      const left = Math.ceil((endMs - performance.now()) / 1000)
      ring.title = ring.ariaLabel = say('secondsLeft', { seconds: Math.max(0, left) })
      ring.style.setProperty('--part', String(Math.min(1, left / PERIOD_SECONDS)))
      if (left > 0 && text.isConnected) return
      clearInterval(counting)
      if (text.isConnected) void show()
    }
    clearInterval(counting)
    counting = setInterval(count, 1000)
    count()
  }
  digits.addEventListener('hide', hide)
  button.addEventListener('click', () => {
    if (text.classList.contains('revealed')) hide()
    else void show()
  })
  hide()
  return { text, button }
}

/** Set, replaced or removed, and never shown again. */
export class CodeField {
  readonly field: Field
  readonly #input = make('input', {
    id: 'otp',
    className: 'code masked',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: false,
    dir: 'ltr',
    placeholder: 'otpauth://totp/…'
  })
  readonly #line = make('div', { className: 'field' })
  #state: 'kept' | 'typed' | 'removed' = 'typed'
  #place: Element | null = null

  constructor(isSet: boolean) {
    const keep = this.#button('keep-typed', 'keepCode', () => this.keep())
    keep.hidden = !isSet
    this.field = { name: 'otp', label: say('oneTimeKey'), input: this.#input, below: [keep] }
  }

  /** Undefined without a change; empty if it is removed. */
  get typed(): string | undefined {
    if (this.#state === 'removed') return ''
    return this.#state === 'typed' && this.#input.value !== '' ? this.#input.value : undefined
  }

  set(text: string): void {
    this.#input.value = text
  }

  /** A line in place of the field. */
  keep(): void {
    this.#input.value = ''
    const replace = this.#button('replace-code', 'replace', () => this.#replace())
    this.#show('kept', say('codeIsSet'), [
      replace,
      this.#button('remove-code', 'removeCode', () => this.#remove())
    ])
  }

  #remove(): void {
    this.#show('removed', say('codeRemoved'), [
      this.#button('keep-code', 'keepCode', () => this.keep())
    ])
  }

  #replace(): void {
    this.#state = 'typed'
    if (this.#place !== null) this.#line.replaceWith(this.#place)
    this.#input.focus()
  }

  #button(
    id: string,
    text: 'replace' | 'removeCode' | 'keepCode',
    onclick: () => void
  ): HTMLElement {
    return Object.assign(textButton('link', say(text), onclick), { id })
  }

  #show(state: 'kept' | 'removed', text: string, buttons: readonly HTMLElement[]): void {
    this.#state = state
    this.#place ??= this.#input.closest('.field')
    const hadFocus =
      this.#line.contains(document.activeElement) || this.#place?.contains(document.activeElement)
    this.#line.replaceChildren(
      make('span', { className: 'label' }, say('oneTimeCode')),
      make('div', { className: 'stored' }, make('span', { className: 'secret' }, text), ...buttons)
    )
    this.#place?.replaceWith(this.#line)
    if (hadFocus === true) buttons[0]?.focus()
  }
}
