/** The dialog that creates an entry, or changes one. */
import type { Entry, EntryFields } from './api.ts'
import { closeModal, openModal } from './dialogs.ts'
import { find } from './dom.ts'
import { Form, type Outcome } from './form.ts'
import { Generator } from './generate.ts'
import { say } from './language.ts'
import { PasswordField } from './password-field.ts'
import { briefName, sentences } from './plain.ts'
import { estimateBits, FAIR_BITS, STRONG_BITS } from './strength.ts'

const NAMES = ['sistema', 'usuario', 'password'] as const
/** How many entries with the same password are named. */
const MAX_NAMED = 3

/** Which buttons the foot of the dialog has. */
type Mode = 'edit' | 'generate' | 'discard'

/** What is edited: an entry, undefined for a new one, and the version of it that was opened. */
interface Opened {
  readonly entry: Entry | undefined
  readonly tag: string | undefined
}

/** What was typed, and into what; `before` is what the fields had at first. */
export interface Draft extends Opened {
  readonly before: EntryFields
  readonly typed: EntryFields
}

/** What is to be saved: the fields that were changed, and all as they are to be; `before` is another one each time. */
export interface Changed extends Opened {
  readonly before: EntryFields
  readonly fields: Partial<EntryFields>
  readonly all: EntryFields
}

interface EditorOptions {
  /** `close` closes the dialog, unless that was closed, and perhaps opened on something else, before. */
  save(changed: Changed, close: () => void): Promise<Outcome>
  /** The other entries that have this password. */
  sharing(password: string, entry: Entry | undefined): readonly Entry[]
}

const EMPTY: EntryFields = { sistema: '', usuario: '', password: '' }
const NOTHING: Opened = { entry: undefined, tag: undefined }

/** The dialog of an entry. What was typed is only discarded when asked. */
export class Editor {
  readonly #options: EditorOptions
  readonly #dialog = find(HTMLDialogElement, '#editor')
  readonly #form = find(HTMLFormElement, '#editor form')
  readonly #password = new PasswordField(() => this.#rate())
  readonly #view: Form
  readonly #generator = new Generator()
  #mode: Mode = 'edit'
  #opened = NOTHING
  /** As the fields had it, which take no line breaks: what was not changed is not sent. */
  #before = EMPTY

  constructor(options: EditorOptions) {
    this.#options = options
    // Before the form's own: while the generator is open, Enter takes its password.
    this.#form.addEventListener('submit', event => {
      if (this.#mode === 'edit') return
      event.preventDefault()
      event.stopImmediatePropagation()
      if (this.#mode === 'generate') this.#useGenerated()
    })
    this.#view = new Form(this.#form, () => this.#save(), () => ({ ...this.#typed() }))
    this.#listen()
  }

  /** Opens it on a version of an entry, or for a new one. */
  open(entry?: Entry, tag?: string): void {
    this.#reset({ entry, tag }, entry ?? EMPTY)
    this.#before = this.#typed()
    this.#start()
  }

  /** Opens it with what was typed before. */
  resume({ entry, tag, before, typed }: Draft): void {
    this.#reset({ entry, tag }, typed)
    this.#before = before
    this.#start()
    this.#rate()
  }

  /** Closes it and forgets what was typed. */
  close(): void {
    closeModal(this.#dialog)
    this.#reset(NOTHING, EMPTY)
  }

  /** What was typed and not saved; undefined if there is nothing to lose. */
  draft(): Draft | undefined {
    if (!this.#dialog.open || !this.#isDirty()) return undefined
    return { ...this.#opened, before: this.#before, typed: this.#typed() }
  }

  async #save(): Promise<Outcome> {
    const before = this.#before
    const close = (): void => { if (this.#before === before) this.close() }
    const typed = this.#typed()
    const names = NAMES.filter(name => this.#opened.entry === undefined || typed[name] !== before[name])
    if (names.length === 0) {
      close()
      return undefined
    }
    const fields = Object.fromEntries(names.map(name => [name, typed[name]]))
    // What was not typed keeps what the fields cannot hold.
    const all = { ...typed, ...this.#opened.entry, ...fields }
    return this.#options.save({ ...this.#opened, before, fields, all }, close)
  }

  #listen(): void {
    find(HTMLButtonElement, '#generate').addEventListener('click', () =>
      this.#setMode(this.#mode === 'generate' ? 'edit' : 'generate'))
    find(HTMLButtonElement, '#use').addEventListener('click', () => this.#useGenerated())
    find(HTMLButtonElement, '#discard').addEventListener('click', () => this.close())
    for (const button of this.#dialog.querySelectorAll('[data-back]')) {
      button.addEventListener('click', () => this.#leaveMode())
    }
    for (const button of this.#dialog.querySelectorAll('[data-close]')) {
      button.addEventListener('click', () => this.#askToClose())
    }
    // Esc, and what a phone has for it. A browser lets the second such wish pass without asking, but for the key.
    this.#dialog.addEventListener('keydown', event => {
      if (event.key !== 'Escape') return
      event.preventDefault()
      this.#askToClose()
    })
    this.#dialog.addEventListener('cancel', event => {
      event.preventDefault()
      this.#askToClose()
    })
    this.#dialog.addEventListener('close', () => { if (!this.#dialog.open) this.#reset(NOTHING, EMPTY) })
  }

  #start(): void {
    find(HTMLElement, '#editor-title').textContent =
      say(this.#opened.entry === undefined ? 'createTitle' : 'editTitle')
    this.#setMode('edit')
    openModal(this.#dialog)
    this.#field('sistema').focus()
  }

  #field(name: 'sistema' | 'usuario'): HTMLInputElement { return find(HTMLInputElement, `#${name}`, this.#form) }

  #typed(): EntryFields {
    return { sistema: this.#field('sistema').value, usuario: this.#field('usuario').value,
      password: this.#password.value }
  }

  #isDirty(): boolean {
    const typed = this.#typed()
    return NAMES.some(name => typed[name] !== this.#before[name])
  }

  /** One step back: out of the generator, out of the question, or out of the dialog. */
  #askToClose(): void {
    if (this.#mode !== 'edit') this.#leaveMode()
    else if (!this.#isDirty()) this.close()
    else this.#setMode('discard')
  }

  #leaveMode(): void {
    const wasGenerator = this.#mode === 'generate'
    this.#setMode('edit')
    if (wasGenerator) find(HTMLButtonElement, '#generate').focus()
    else this.#field('sistema').focus()
  }

  #setMode(mode: Mode): void {
    this.#mode = mode
    for (const foot of this.#dialog.querySelectorAll<HTMLElement>('.end')) foot.hidden = foot.dataset['mode'] !== mode
    find(HTMLButtonElement, '#generate').ariaExpanded = String(mode === 'generate')
    this.#generator.show(mode === 'generate')
    if (mode === 'discard') find(HTMLElement, '[data-mode=discard] [data-back]', this.#dialog).focus()
  }

  #useGenerated(): void {
    if (this.#view.isBusy) return
    this.#password.set(this.#generator.password)
    this.#setMode('edit')
    this.#password.show(true)
    this.#password.focus()
    this.#view.clear()
    this.#rate()
  }

  /** Nothing secret stays in the document once it is closed. */
  #reset(opened: Opened, fields: EntryFields): void {
    this.#opened = opened
    this.#before = EMPTY
    this.#view.clear()
    this.#setMode('edit')
    this.#field('sistema').value = fields.sistema
    this.#field('usuario').value = fields.usuario
    this.#password.set(fields.password)
    find(HTMLElement, '#rating').hidden = true
    find(HTMLElement, '#rating-text').textContent = ''
    find(HTMLMeterElement, '#rating meter').value = 0
  }

  /** Says how strong a password is, and which entries have the same. */
  #rate(): void {
    const { value } = this.#password
    find(HTMLElement, '#rating').hidden = value === ''
    const bits = estimateBits(value)
    find(HTMLMeterElement, '#rating meter').value = Math.min(bits, 128)
    const sharing = value === '' ? [] : this.#options.sharing(value, this.#opened.entry)
    const names = sharing.slice(0, MAX_NAMED).map(({ sistema }) => briefName(sistema))
    if (sharing.length > MAX_NAMED) names.push('…')
    find(HTMLElement, '#rating-text').textContent =
      sentences(wordFor(bits), names.length === 0 ? '' : say('reused', { names: names.join(', ') }))
  }
}

function wordFor(bits: number): string {
  if (bits >= STRONG_BITS) return say('strong')
  return say(bits < FAIR_BITS ? 'weak' : 'fair')
}
