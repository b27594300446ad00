/** The key of an entry's one-time codes, in the editor: set, replaced or removed, and never shown again. */
import { make, textButton } from './dom.ts'
import type { Field } from './form.ts'
import { say } from './language.ts'

export class CodeField {
  readonly field: Field
  readonly #input = make('input', {
    id: 'otp', className: 'code masked', autocomplete: 'off', autocapitalize: 'off', spellcheck: false, dir: 'ltr',
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

  set(text: string): void { this.#input.value = text }

  /** A line in place of the field. */
  keep(): void {
    this.#input.value = ''
    const replace = this.#button('replace-code', 'replace', () => this.#replace())
    this.#show('kept', say('codeIsSet'), [replace, this.#button('remove-code', 'removeCode', () => this.#remove())])
  }

  #remove(): void {
    this.#show('removed', say('codeRemoved'), [this.#button('keep-code', 'keepCode', () => this.keep())])
  }

  #replace(): void {
    this.#state = 'typed'
    if (this.#place !== null) this.#line.replaceWith(this.#place)
    this.#input.focus()
  }

  #button(id: string, text: 'replace' | 'removeCode' | 'keepCode', onclick: () => void): HTMLElement {
    return Object.assign(textButton('link', say(text), onclick), { id })
  }

  #show(state: 'kept' | 'removed', text: string, buttons: readonly HTMLElement[]): void {
    this.#state = state
    this.#place ??= this.#input.closest('.field')
    const hadFocus = this.#line.contains(document.activeElement) || this.#place?.contains(document.activeElement)
    this.#line.replaceChildren(make('span', { className: 'label' }, say('oneTimeCode')),
      make('div', { className: 'stored' }, make('span', { className: 'secret' }, text), ...buttons))
    this.#place?.replaceWith(this.#line)
    if (hadFocus === true) buttons[0]?.focus()
  }
}
