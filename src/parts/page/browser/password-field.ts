/**
 * The field of a password. Its text is in the document only while it is shown or typed: what is merely masked could be
 * read out, counted, selected and copied. It is never of the type that browsers offer to keep.
 */
import { find } from './dom.ts'
import { inEachLanguage, say } from './language.ts'
import { REVEALED_MS } from './wait.ts'

/** The field, and the button that shows what is in it. */
export class PasswordField {
  readonly #field = find(HTMLInputElement, '#password')
  readonly #button = find(HTMLButtonElement, '#peek')
  /** What the field stands for while it is empty because it is hidden. */
  #kept = ''
  #isShown = false
  #hiding: ReturnType<typeof setTimeout> | undefined

  constructor(onInput: () => void) {
    this.#button.addEventListener('click', () => this.show(!this.#isShown))
    this.#field.addEventListener('input', onInput)
    // Who turns to another window goes on typing later.
    this.#field.addEventListener('blur', () => { if (document.activeElement !== this.#field) this.#hideTyped() })
    inEachLanguage(() => this.#label())
  }

  get value(): string { return this.#isShown || this.#field.value !== '' ? this.#field.value : this.#kept }

  /** Stands for another password from now on, hidden. */
  set(password: string): void {
    this.#isShown = false
    this.#field.value = ''
    this.#kept = password
    this.show(false)
  }

  /** A password that is shown is hidden again after a while. */
  show(isShown: boolean): void {
    clearTimeout(this.#hiding)
    if (isShown) this.#hiding = setTimeout(() => this.show(false), REVEALED_MS)
    this.#kept = this.value
    this.#isShown = isShown
    this.#field.value = isShown ? this.#kept : ''
    this.#label()
  }

  focus(): void { this.#field.focus() }

  #hideTyped(): void {
    if (this.#isShown || this.#field.value === '') return
    this.show(false)
  }

  #label(): void {
    this.#field.classList.toggle('masked', !this.#isShown)
    this.#field.placeholder = this.#isShown || this.#kept === '' ? '' : say('hiddenField')
    this.#button.ariaPressed = String(this.#isShown)
    find(SVGUseElement, 'use', this.#button).setAttribute('href', this.#isShown ? '#i-hide' : '#i-eye')
  }
}
