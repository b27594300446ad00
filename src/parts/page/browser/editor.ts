/** The dialog that creates an entry, changes one, or shows one to a person who may not change it. */
import type { Entry, EntryFields } from './api.ts'
import { find } from './dom.ts'
import { Form, type Outcome } from './form.ts'
import { Generator } from './generate.ts'
import { say } from './language.ts'
import { plainText } from './plain.ts'
import { estimateBits, FAIR_BITS, STRONG_BITS } from './strength.ts'
import { REVEALED_MS } from './wait.ts'

const NAMES = ['sistema', 'usuario', 'password'] as const
/** How many entries with the same password are named. */
const MAX_NAMED = 3

type Fields = { readonly [name in typeof NAMES[number]]: string }
/** Which buttons the foot of the dialog has. */
type Mode = 'edit' | 'generate' | 'discard' | 'read'

/** What was typed, and into which entry; `before` is what the fields had at first. */
export interface Draft {
  readonly entry: Entry | undefined
  readonly before: Fields
  readonly typed: Fields
}

interface EditorOptions {
  /**
   * Gets the entry that was opened, undefined for a new one, the fields that were changed, and what closes the dialog,
   * unless that was closed, and perhaps opened on something else, before.
   */
  save(entry: Entry | undefined, fields: Partial<EntryFields>, close: () => void): Promise<Outcome>
  /** The other entries that have this password. */
  sharing(password: string, entry: Entry | undefined): readonly Entry[]
  /** Called when it opens, and when it closes. */
  onOpen(): void
}

/** The dialog of an entry. What was typed is only discarded when asked. */
export class Editor {
  readonly #options: EditorOptions
  readonly #dialog = find(HTMLDialogElement, '#editor')
  readonly #form = find(HTMLFormElement, '#editor form')
  readonly #password = find(HTMLInputElement, '#password')
  readonly #peek = find(HTMLButtonElement, '#peek')
  readonly #view: Form
  readonly #generator: Generator
  #mode: Mode = 'edit'
  #entry: Entry | undefined
  #hiding: ReturnType<typeof setTimeout> | undefined
  /** As the fields had it, which take no line breaks: what was not changed is not sent. */
  #before: Fields = EMPTY

  constructor(options: EditorOptions) {
    this.#options = options
    this.#generator = new Generator()
    // Before the form's own: while the generator is open, Enter takes its password.
    this.#form.addEventListener('submit', event => {
      if (this.#mode === 'edit') return
      event.preventDefault()
      event.stopImmediatePropagation()
      if (this.#mode === 'generate') this.#useGenerated()
    })
    this.#view = new Form(this.#form, async texts => {
      const before = this.#before
      const close = (): void => { if (this.#before === before) this.close() }
      const changed = NAMES.filter(name => this.#entry === undefined || texts[name] !== before[name])
      if (changed.length === 0) { close(); return undefined }
      return options.save(this.#entry, Object.fromEntries(changed.map(name => [name, texts[name]!])), close)
    })
    this.#listen()
  }

  get isOpen(): boolean { return this.#dialog.open }

  /** The entry that it is open on. */
  get entry(): Entry | undefined { return this.#entry }

  /** Opens it on an entry, or for a new one; `isReadOnly` for a person who may not change it. */
  open(entry?: Entry, isReadOnly: boolean = false): void {
    this.#reset(entry, entry ?? EMPTY)
    this.#before = this.#typed()
    this.#start(isReadOnly ? 'read' : 'edit')
  }

  /** Opens it with what was typed before. */
  resume({ entry, before, typed }: Draft): void {
    this.#reset(entry, typed)
    this.#before = before
    this.#start('edit')
    this.#rate()
  }

  /** Closes it and forgets what was typed. */
  close(): void {
    this.#dialog.close()
    this.#reset(undefined, EMPTY)
  }

  /** What was typed and not saved; undefined if there is nothing to lose. */
  draft(): Draft | undefined {
    return this.#dialog.open && this.#isDirty() ? { entry: this.#entry, before: this.#before,
      typed: this.#typed() } : undefined
  }

  #listen(): void {
    this.#peek.addEventListener('click', () => this.#show(this.#password.classList.contains('masked')))
    this.#password.addEventListener('input', () => this.#rate())
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
    this.#dialog.addEventListener('close', () => { if (!this.#dialog.open) this.#reset(undefined, EMPTY) })
  }

  #start(mode: Mode): void {
    const title = mode === 'read' ? 'readTitle' : this.#entry === undefined ? 'createTitle' : 'editTitle'
    find(HTMLElement, '#editor-title').textContent = say(title)
    this.#setMode(mode)
    this.#dialog.showModal()
    this.#options.onOpen()
    this.#field('sistema').focus()
  }

  #field(name: typeof NAMES[number]): HTMLInputElement { return find(HTMLInputElement, `#${name}`, this.#form) }

  #typed(): Fields {
    return { sistema: this.#field('sistema').value, usuario: this.#field('usuario').value,
      password: this.#password.value }
  }

  #isDirty(): boolean {
    const typed = this.#typed()
    return NAMES.some(name => typed[name] !== this.#before[name])
  }

  /** One step back: out of the generator, out of the question, or out of the dialog. */
  #askToClose(): void {
    if (this.#mode === 'generate' || this.#mode === 'discard') this.#leaveMode()
    else if (this.#mode === 'read' || this.#view.isBusy || !this.#isDirty()) this.close()
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
    for (const name of NAMES) this.#field(name).readOnly = mode === 'read'
    const button = find(HTMLButtonElement, '#generate')
    button.hidden = mode === 'read'
    button.ariaExpanded = String(mode === 'generate')
    this.#generator.show(mode === 'generate')
    if (mode === 'discard') find(HTMLElement, '[data-mode=discard] [data-back]', this.#dialog).focus()
  }

  #useGenerated(): void {
    const text = this.#generator.password
    this.#setMode('edit')
    this.#password.value = text
    this.#password.dispatchEvent(new Event('input', { bubbles: true }))
    this.#show(true)
    this.#password.focus()
  }

  /** Nothing secret stays in the document once it is closed. */
  #reset(entry: Entry | undefined, fields: Fields): void {
    this.#entry = entry
    this.#before = EMPTY
    this.#view.clear()
    this.#setMode('edit')
    for (const name of NAMES) this.#field(name).value = fields[name]
    find(HTMLElement, '#rating').hidden = true
    this.#show(false)
  }

  /** A password in sight is masked again after a while. It is never in a field that browsers offer to keep. */
  #show(isShown: boolean): void {
    clearTimeout(this.#hiding)
    if (isShown) this.#hiding = setTimeout(() => this.#show(false), REVEALED_MS)
    this.#password.classList.toggle('masked', !isShown)
    this.#peek.ariaPressed = String(isShown)
    find(SVGUseElement, 'use', this.#peek).setAttribute('href', isShown ? '#i-hide' : '#i-eye')
  }

  /** Says how strong a password is, and which entries have the same. */
  #rate(): void {
    const { value } = this.#password
    find(HTMLElement, '#rating').hidden = value === ''
    const bits = estimateBits(value)
    find(HTMLMeterElement, '#rating meter').value = Math.min(bits, 128)
    const word = say(bits < FAIR_BITS ? 'weak' : bits < STRONG_BITS ? 'fair' : 'strong')
    const sharing = value === '' ? [] : this.#options.sharing(value, this.#entry)
    const names = [...sharing.slice(0, MAX_NAMED).map(({ sistema }) => plainText(sistema)),
      ...sharing.length > MAX_NAMED ? ['…'] : []]
    find(HTMLElement, '#rating span').textContent =
      sharing.length === 0 ? word : `${word}. ${say('reused', { names: names.join(', ') })}`
  }
}

const EMPTY: Fields = { sistema: '', usuario: '', password: '' }
