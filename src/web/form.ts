/** A form that asks the service: what is missing or refused is said at its field, and what else fails above them. */
import type { Refusal } from './api.ts'
import { find, values } from './dom.ts'
import { say } from './language.ts'
import { explain, toast } from './notice.ts'
import type { TextName } from './texts.ts'
import { countDown } from './wait.ts'

/** What came of a form: nothing that went wrong, what the service refused, or a text of the page. */
export type Outcome = Refusal | TextName | undefined

/** A form; `submit` gets its fields' texts, none of which is empty. */
export class Form {
  readonly #form: HTMLFormElement
  readonly #button: HTMLButtonElement
  readonly #alert: HTMLElement
  readonly #submit: (texts: { readonly [name: string]: string }) => Promise<Outcome>
  /** What an answer is awaited for; a form that was cleared awaits none. */
  #asked: object | undefined
  #stop = (): void => {}

  constructor(form: HTMLFormElement, submit: (texts: { readonly [name: string]: string }) => Promise<Outcome>) {
    this.#form = form
    this.#button = find(HTMLButtonElement, 'button:not([type=button])', form)
    this.#alert = find(HTMLElement, '.alert', form)
    this.#submit = submit
    form.addEventListener('submit', event => {
      event.preventDefault()
      void this.#run()
    })
    form.addEventListener('input', ({ target }) => { if (target instanceof HTMLInputElement) setFault(target, '') })
  }

  /** Takes away all that was said. */
  clear(): void {
    this.#stop()
    this.#asked = undefined
    this.#form.ariaBusy = null
    this.#button.disabled = false
    this.#alert.hidden = true
    this.#alert.textContent = ''
    for (const field of this.#fields()) setFault(field, '')
  }

  #fields(): readonly HTMLInputElement[] { return [...this.#form.querySelectorAll<HTMLInputElement>('.field input')] }

  async #run(): Promise<void> {
    if (this.#asked !== undefined || this.#button.disabled) return
    this.clear()
    for (const field of this.#fields()) if (field.value === '') setFault(field, say('required'))
    if (this.#focusFault()) return
    const asked = this.#asked = {}
    this.#form.ariaBusy = 'true'
    const outcome = await this.#submit(values(this.#form))
    if (this.#asked === asked) {
      this.#asked = undefined
      this.#form.ariaBusy = null
      if (outcome !== undefined) this.#show(outcome)
    } else if (outcome !== undefined) {
      // The form may be gone, or another's by now.
      toast(typeof outcome === 'string' ? say(outcome) : explain(outcome).join('. '))
    }
  }

  #show(outcome: Exclude<Outcome, undefined>): void {
    if (typeof outcome === 'string') { this.#warn(say(outcome)); return }
    if (outcome.why === 'invalid') {
      for (const field of this.#fields()) setFault(field, outcome.errors[field.name]?.join(' ') ?? '')
      if (!this.#focusFault()) this.#warn([say('invalid'), ...Object.values(outcome.errors).flat()].join(' '))
      return
    }
    this.#stop = countDown(outcome.why === 'wait' ? outcome.waitSeconds : 0, left => {
      this.#warn(explain(outcome, left).join('. '))
      this.#button.disabled = left > 0
    })
  }

  #warn(text: string): void {
    this.#alert.textContent = text
    this.#alert.hidden = false
  }

  #focusFault(): boolean {
    const field = this.#fields().find(one => one.ariaInvalid === 'true')
    field?.focus()
    return field !== undefined
  }
}

function setFault(field: HTMLInputElement, text: string): void {
  const fault = document.getElementById(`${field.id}-fault`)
  if (fault === null) return
  fault.textContent = text
  field.ariaInvalid = text === '' ? null : 'true'
}
