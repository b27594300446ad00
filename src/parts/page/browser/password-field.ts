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
  #password = ''
  /** What the field has made of the text that was put into it; else the field is empty, or has what is typed. */
  #placed = ''
  #isShown = false
  /** What was typed is gone on with; what came from elsewhere is replaced. */
  #isTyped = false
  #hiding: ReturnType<typeof setTimeout> | undefined

  constructor(onInput: () => void) {
    this.#button.addEventListener('click', () => this.show(!this.#isShown))
    this.#field.addEventListener('input', () => {
      this.#isTyped = true
      onInput()
    })
    this.#field.addEventListener('focus', () => this.#place())
    // Who turns to another window goes on typing later.
    this.#field.addEventListener('blur', () => { if (document.activeElement !== this.#field) this.#place() })
    inEachLanguage(() => this.#label())
  }

  /** A field takes no line breaks: what is as it was put there still has its own. */
  get value(): string {
    const { value } = this.#field
    return value === this.#placed ? this.#password : value
  }

  /** Stands for another password from now on, hidden. */
  set(password: string): void {
    this.#isTyped = false
    this.#field.value = this.#placed = ''
    this.#password = password
    this.show(false)
  }

  /** A password that is shown is hidden again after a while. */
  show(isShown: boolean): void {
    clearTimeout(this.#hiding)
    if (isShown) this.#hiding = setTimeout(() => this.show(false), REVEALED_MS)
    this.#isShown = isShown
    this.#place()
  }

  focus(): void { this.#field.focus() }

  /** Takes the text out of the field, or puts it there, where it is shown or typed. */
  #place(): void {
    this.#password = this.value
    const isIn = this.#isShown || (this.#isTyped && document.activeElement === this.#field)
    const text = isIn ? this.#password : ''
    if (this.#field.value !== text) this.#field.value = text
    this.#placed = this.#field.value
    this.#label()
  }

  #label(): void {
    this.#field.classList.toggle('masked', !this.#isShown)
    this.#field.placeholder = this.#placed !== '' || this.#password === '' ? '' : say('hiddenField')
    this.#button.ariaPressed = String(this.#isShown)
    find(SVGUseElement, 'use', this.#button).setAttribute('href', this.#isShown ? '#i-hide' : '#i-eye')
  }
}
