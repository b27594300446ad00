/** The dialog that makes an entry or changes one. */
import type { Entry, EntryFields } from './api.ts'
import { find } from './dom.ts'
import { Form, type Outcome } from './form.ts'
import { startGenerator } from './generate.ts'
import { say } from './language.ts'
import { REVEALED_MS } from './wait.ts'

const NAMES = ['sistema', 'usuario', 'password'] as const

/**
 * The dialog; `save` gets the entry that was opened, undefined for a new one, the fields that are to change, and what
 * closes the dialog, unless that was closed, and perhaps opened on something else, before.
 */
export class Editor {
  readonly #dialog = find(HTMLDialogElement, '#editor')
  readonly #form = find(HTMLFormElement, '#editor form')
  readonly #password = find(HTMLInputElement, '#password')
  readonly #peek = find(HTMLButtonElement, '#peek')
  readonly #view: Form
  readonly #closeGenerator: () => void
  #entry: Entry | undefined
  #hiding: ReturnType<typeof setTimeout> | undefined
  /** As the fields had it, which take no line breaks: what the person leaves alone is not sent. */
  #before: { readonly [name: string]: string } = {}

  constructor(save: (entry: Entry | undefined, fields: Partial<EntryFields>, close: () => void) => Promise<Outcome>) {
    this.#closeGenerator = startGenerator(text => {
      this.#password.value = text
      this.#password.dispatchEvent(new Event('input', { bubbles: true }))
      this.#show(true)
      this.#password.focus()
    })
    this.#view = new Form(this.#form, async texts => {
      const before = this.#before
      const close = (): void => { if (this.#before === before) this.#dialog.close() }
      const changed = NAMES.filter(name => this.#entry === undefined || texts[name] !== before[name])
      if (changed.length === 0) { close(); return undefined }
      return save(this.#entry, Object.fromEntries(changed.map(name => [name, texts[name]!])), close)
    })
    this.#peek.addEventListener('click', () => this.#show(this.#password.type === 'password'))
    closeByButtons(this.#dialog)
    this.#dialog.addEventListener('close', () => this.#empty())
  }

  /** Opens it on an entry, or for a new one. */
  open(entry?: Entry): void {
    this.#empty()
    this.#entry = entry
    find(HTMLElement, '#editor-title').textContent = say(entry === undefined ? 'createTitle' : 'editTitle')
    for (const name of NAMES) this.#field(name).value = entry?.[name] ?? ''
    this.#before = Object.fromEntries(NAMES.map(name => [name, this.#field(name).value]))
    this.#dialog.showModal()
    this.#field('sistema').focus()
  }

  /** Closes it, whatever is in it. */
  close(): void { this.#dialog.close() }

  #field(name: typeof NAMES[number]): HTMLInputElement { return find(HTMLInputElement, `#${name}`) }

  /** Nothing secret stays in the document. */
  #empty(): void {
    this.#entry = undefined
    this.#before = {}
    this.#form.reset()
    this.#view.clear()
    this.#show(false)
    this.#closeGenerator()
  }

  /** What is shown is hidden again after a while. */
  #show(isShown: boolean): void {
    clearTimeout(this.#hiding)
    if (isShown) this.#hiding = setTimeout(() => this.#show(false), REVEALED_MS)
    this.#password.type = isShown ? 'text' : 'password'
    this.#peek.ariaPressed = String(isShown)
    find(SVGUseElement, 'use', this.#peek).setAttribute('href', isShown ? '#i-hide' : '#i-eye')
  }
}

/** Lets the buttons that say so close a dialog. */
export function closeByButtons(dialog: HTMLDialogElement): void {
  for (const button of dialog.querySelectorAll('[data-close]')) button.addEventListener('click', () => dialog.close())
}
