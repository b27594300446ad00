/** A form that is sent to the service: what is missing or refused is shown at its field, other failures above them. */
import type { Refusal } from './api.ts'
import { find, values } from './dom.ts'
import { say } from './language.ts'
import { tell } from './messages.ts'
import { explain, isWait } from './notice.ts'
import { sentences } from './plain.ts'
import type { TextName } from './texts.ts'
import { countDown } from './wait.ts'

/** What went wrong, if anything did: a refusal, a refusal with what the page knows beyond it, or a text of the page. */
export type Outcome = Refusal | { readonly refusal: Refusal, readonly note: TextName } | TextName | undefined

/** The texts of a form by the names of its fields. */
type Texts = { readonly [name: string]: string }

/** A form; `submit` gets the texts of its fields, none of them empty. `read` gives them, where a field does not. */
export class Form {
  readonly #form: HTMLFormElement
  readonly #button: HTMLButtonElement
  readonly #alert: HTMLElement
  readonly #submit: (texts: Texts) => Promise<Outcome>
  readonly #read: () => Texts
  /** What is under way; nothing in a form that was cleared. */
  #asked: object | undefined
  #stop = (): void => {}

  constructor(
    form: HTMLFormElement, submit: (texts: Texts) => Promise<Outcome>, read: () => Texts = () => values(form)
  ) {
    this.#form = form
    this.#read = read
    this.#button = find(HTMLButtonElement, 'button:not([type=button])', form)
    this.#alert = find(HTMLElement, '.alert', form)
    this.#submit = submit
    form.addEventListener('submit', event => {
      event.preventDefault()
      void this.#run()
    })
    form.addEventListener('input', ({ target }) => { if (target instanceof HTMLInputElement) setFault(target, '') })
  }

  /** Whether it waits for an answer. */
  get isBusy(): boolean { return this.#asked !== undefined }

  /** Removes all messages. */
  clear(): void {
    this.#stop()
    this.#asked = undefined
    this.#setBusy(false)
    this.#button.ariaDisabled = null
    this.#alert.hidden = true
    this.#alert.textContent = ''
    for (const field of this.#fields()) setFault(field, '')
  }

  /** What is typed while a form is sent would be neither sent nor kept: its fields take nothing meanwhile. */
  #setBusy(isBusy: boolean): void {
    this.#form.ariaBusy = isBusy ? 'true' : null
    for (const field of this.#fields()) field.readOnly = isBusy
  }

  #fields(): readonly HTMLInputElement[] { return [...this.#form.querySelectorAll<HTMLInputElement>('.field input')] }

  async #run(): Promise<void> {
    if (this.#asked !== undefined || this.#button.ariaDisabled === 'true') return
    this.clear()
    const texts = this.#read()
    for (const field of this.#fields()) if (texts[field.name] === '') setFault(field, say('required'))
    if (this.#focusFault()) return
    const asked = this.#asked = {}
    this.#setBusy(true)
    const outcome = await this.#submit(texts)
    if (this.#asked === asked) {
      this.#asked = undefined
      this.#setBusy(false)
      if (outcome !== undefined) this.#show(outcome)
    } else if (outcome !== undefined) {
      // The form may be closed by now, or open on something else.
      tell(typeof outcome === 'string' ? say(outcome) : textOf(outcome))
    }
  }

  #show(outcome: Exclude<Outcome, undefined>): void {
    if (typeof outcome === 'string') return this.#warn(say(outcome))
    const refusal = 'refusal' in outcome ? outcome.refusal : outcome
    if (refusal.why === 'invalid') {
      for (const field of this.#fields()) setFault(field, refusal.errors[field.name]?.join(' ') ?? '')
      if (!this.#focusFault()) this.#warn([say('invalid'), ...Object.values(refusal.errors).flat()].join(' '))
      return
    }
    this.#stop = countDown(isWait(refusal) ? refusal.waitSeconds : 0, left => {
      this.#warn(textOf(outcome, left))
      this.#button.ariaDisabled = left > 0 ? 'true' : null
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

function textOf(outcome: Exclude<Outcome, string | undefined>, secondsLeft?: number): string {
  if (!('refusal' in outcome)) return sentences(...explain(outcome, secondsLeft))
  return sentences(...explain(outcome.refusal, secondsLeft), say(outcome.note))
}

function setFault(field: HTMLInputElement, text: string): void {
  const fault = document.getElementById(`${field.id}-fault`)
  if (fault === null) return
  fault.textContent = text
  field.ariaInvalid = text === '' ? null : 'true'
}
