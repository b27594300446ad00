/** A form that is sent to the service: what is missing or refused is shown at its field, other failures above them. */
import type { Refusal } from './api.ts'
import { find, values } from './dom.ts'
import { say } from './language.ts'
import { explain, isWait, toast } from './notice.ts'
import type { TextName } from './texts.ts'
import { countDown } from './wait.ts'

/** What went wrong, if anything did: a refusal, a refusal with what the page knows beyond it, or a text of the page. */
export type Outcome = Refusal | { readonly refusal: Refusal, readonly note: TextName } | TextName | undefined

/** A form; `submit` gets the texts of its fields, none of them empty. */
export class Form {
  readonly #form: HTMLFormElement
  readonly #button: HTMLButtonElement
  readonly #alert: HTMLElement
  readonly #submit: (texts: { readonly [name: string]: string }) => Promise<Outcome>
  /** What is under way; nothing in a form that was cleared. */
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

  /** Whether it waits for an answer. */
  get isBusy(): boolean { return this.#asked !== undefined }

  /** Removes all messages. */
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
      // The form may be closed by now, or open on something else.
      toast(typeof outcome === 'string' ? say(outcome) : textOf(outcome))
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

function textOf(outcome: Exclude<Outcome, string | undefined>, secondsLeft?: number): string {
  if (!('refusal' in outcome)) return explain(outcome, secondsLeft).join('. ')
  return `${explain(outcome.refusal, secondsLeft).join('. ')}. ${say(outcome.note)}`
}

function setFault(field: HTMLInputElement, text: string): void {
  const fault = document.getElementById(`${field.id}-fault`)
  if (fault === null) return
  fault.textContent = text
  field.ariaInvalid = text === '' ? null : 'true'
}
