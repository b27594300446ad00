/**
 * A form sent to the service; each fault is shown at its field, other failures above the fields.
 */
import { isWait, type Refusal } from './answers.ts'
import { tell } from './dialogs.ts'
import { countDown, describe, make } from './dom.ts'
import { explain, refused, say } from './language.ts'
import { sentences } from './plain.ts'
import type { TextName } from './texts-es.ts'

/** A refusal, with or without a note of the page, or a text of the page; undefined: success. */
export type Outcome =
  Refusal | { readonly refusal: Refusal; readonly note: TextName } | TextName | undefined

export interface Field {
  readonly name: string
  readonly label: string
  readonly input: HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement
  /** What is said if it is left empty. */
  readonly missing?: TextName
  /** At the end of the label's line. */
  readonly aside?: HTMLElement | string
  readonly isRequired?: boolean
  readonly beside?: readonly Element[]
  readonly below?: readonly HTMLElement[]
}

export class Form {
  readonly element: HTMLFormElement
  readonly #fields: readonly Field[]
  readonly #alert = make('p', { className: 'alert', role: 'alert', hidden: true })
  readonly #button: HTMLButtonElement
  readonly #send: () => Promise<Outcome>
  #isBusy = false
  #stop = (): void => {}

  constructor(fields: readonly Field[], button: HTMLButtonElement, send: () => Promise<Outcome>) {
    this.#fields = fields
    this.#send = send
    this.#button = button
    const id = `form-${fields[0]!.input.id}`
    this.element = make('form', { id, noValidate: true }, this.#alert, ...fields.map(fieldOf))
    // Outside the form, at the dialog's foot, it stays in sight.
    button.setAttribute('form', this.element.id)
    this.element.addEventListener('submit', event => {
      event.preventDefault()
      void this.#run()
    })
    this.element.addEventListener('input', ({ target }) => {
      const field = fields.find(({ input }) => input === target)
      if (field !== undefined) setFault(field, '')
    })
  }

  get isBusy(): boolean {
    return this.#isBusy
  }

  submit(): void {
    this.element.requestSubmit()
  }

  /** Text typed during a request would be lost. */
  #setBusy(isBusy: boolean): void {
    this.#isBusy = isBusy
    this.element.ariaBusy = this.#button.ariaBusy = isBusy ? 'true' : null
    for (const { input } of this.#fields) input.toggleAttribute('readonly', isBusy)
  }

  async #run(): Promise<void> {
    if (this.#isBusy || this.#button.ariaDisabled === 'true') return
    this.#stop()
    this.#warn('')
    for (const field of this.#fields) {
      const isMissing =
        field.isRequired === true && field.input.value === '' && field.input.isConnected
      setFault(field, isMissing ? say(field.missing ?? 'required') : '')
    }
    if (this.#focusFault()) return
    this.#setBusy(true)
    const outcome = await this.#send().finally(() => this.#setBusy(false))
    if (outcome === undefined) return
    if (this.element.isConnected) this.#show(outcome)
    else tell(typeof outcome === 'string' ? say(outcome) : textOf(outcome))
  }

  #show(outcome: Exclude<Outcome, undefined>): void {
    if (typeof outcome === 'string') return this.#warn(say(outcome))
    const refusal = 'refusal' in outcome ? outcome.refusal : outcome
    if (refusal.why === 'large') {
      const longest = [...this.#fields].sort((a, b) => b.input.value.length - a.input.value.length)
      setFault(longest[0]!, say('tooLong'))
    }
    if (refusal.why === 'invalid') {
      for (const field of this.#fields)
        setFault(field, refusal.errors[field.name]?.map(refused).join(' ') ?? '')
    }
    if (this.#focusFault()) return
    if (refusal.why === 'invalid') {
      const sentences = Object.values(refusal.errors).flatMap(all => all ?? [])
      return this.#warn([say('invalid'), ...sentences.map(refused)].join(' '))
    }
    this.#stop = countDown(isWait(refusal) ? refusal.waitSeconds : 0, left => {
      this.#warn(textOf(outcome, left))
      this.#button.ariaDisabled = left > 0 ? 'true' : null
    })
  }

  #warn(text: string): void {
    this.#alert.textContent = text
    this.#alert.hidden = text === ''
  }

  #focusFault(): boolean {
    const field = this.#fields.find(({ input }) => input.ariaInvalid === 'true')
    field?.input.focus()
    return field !== undefined
  }
}

function fieldOf({
  name,
  label,
  input,
  isRequired = false,
  aside,
  beside = [],
  below = []
}: Field): HTMLElement {
  const fault = make('p', { id: `${input.id}-fault`, className: 'fault' })
  input.name = name
  input.ariaRequired = String(isRequired)
  describe(input, fault)
  const line = beside.length === 0 ? input : make('div', { className: 'joined' }, input, ...beside)
  const named = make('label', { htmlFor: input.id }, label)
  return make(
    'div',
    { className: 'field' },
    aside === undefined ? named : make('div', { className: 'label-line' }, named, aside),
    line,
    fault,
    ...below
  )
}

function textOf(outcome: Exclude<Outcome, string | undefined>, secondsLeft?: number): string {
  if (!('refusal' in outcome)) return sentences(...explain(outcome, secondsLeft))
  return sentences(...explain(outcome.refusal, secondsLeft), say(outcome.note))
}

function setFault({ input }: Field, text: string): void {
  const fault = input.closest('.field')?.querySelector('.fault')
  if (fault !== null && fault !== undefined) fault.textContent = text
  input.ariaInvalid = text === '' ? null : 'true'
}
