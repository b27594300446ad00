/** The dialog that creates an entry, or changes one. What was typed is only discarded when asked. */
import type { EntryFields } from './answers.ts'
import { confirm, openDialog } from './dialogs.ts'
import { make, textButton } from './dom.ts'
import { Form, type Field, type Outcome } from './form.ts'
import { say } from './language.ts'
import { PasswordField } from './password-field.ts'

/** An entry that is edited, and the version of it that was opened. */
export interface Edited {
  readonly id: number
  readonly tag: string | undefined
  /** As it is stored; its secrets are not known to an account that may change an entry and not get it. */
  readonly fields: Partial<EntryFields>
}

/** What was typed, and into what; without an entry, for a new one. */
export interface Draft {
  readonly edited: Edited | undefined
  readonly typed: Partial<EntryFields>
}

/** What is to be saved: the fields that were changed; all of them for a new entry. */
export interface Changed {
  readonly edited: Edited | undefined
  readonly fields: Partial<EntryFields>
  /** Another one each time that the editor is opened. */
  readonly session: object
}

interface EditorOptions {
  /** `close` closes the dialog, unless it is open on something else by then. */
  save(changed: Changed, close: () => void): Promise<Outcome>
}

type Name = keyof EntryFields

/** The dialog of an entry. */
export class Editor {
  readonly #options: EditorOptions
  #close: (() => void) | undefined
  #form: Form | undefined
  #password: PasswordField | undefined
  #edited: Edited | undefined
  #inputs: { readonly [name in Exclude<Name, 'password'>]?: HTMLInputElement | HTMLTextAreaElement } = {}

  constructor(options: EditorOptions) { this.#options = options }

  /** Opens it on a version of an entry, or for a new one; with what was typed before. */
  open(edited?: Edited, typed: Partial<EntryFields> = {}): void {
    if (this.#close !== undefined) return
    this.#edited = edited
    const stored = edited?.fields ?? { url: '', notas: '' }
    const known = edited && (stored.password ?? '')
    const password = this.#password = new PasswordField(known, () => this.#keepPassword(form))
    const notas = make('textarea', { id: 'notas', dir: 'auto', rows: 2, autocomplete: 'off' })
    const inputs = this.#inputs = {
      sistema: make('input', { id: 'sistema', dir: 'auto', autocomplete: 'off' }),
      usuario: make('input', { id: 'usuario', dir: 'auto', autocomplete: 'off', spellcheck: false }),
      url: make('input', { id: 'url', dir: 'ltr', inputMode: 'url', autocomplete: 'off', spellcheck: false }),
      ...stored.notas !== undefined && { notas }
    }
    for (const [name, input] of Object.entries(inputs)) {
      if (name !== 'notas') input.autocapitalize = 'off'
      input.value = typed[name as Name] ?? stored[name as Name] ?? ''
    }
    const save = make('button', { className: 'main' }, say('save'))
    const field = (name: 'sistema' | 'usuario' | 'url' | 'notas'): Field[] => inputs[name] === undefined ? []
      : [{ name, label: say(name), input: inputs[name], isRequired: name === 'sistema' || name === 'usuario' }]
    const fields = [...field('sistema'), ...field('usuario'), password.field, ...field('url'), ...field('notas')]
    const session = {}
    const form = this.#form = new Form(fields, save, () => this.#save(session))
    this.#guardEnter(form)
    if (edited !== undefined && typed.password === undefined) this.#keepPassword(form)
    const cancel = textButton('second', say('cancel'), () => { if (this.#mayClose()) this.close() })
    this.#close = openDialog({
      id: 'editor', title: say(edited === undefined ? 'createTitle' : 'editTitle'), content: [form.element],
      foot: [cancel, save], mayClose: () => this.#mayClose(), onClose: () => this.#forget()
    })
    if (typed.password !== undefined) password.set(typed.password)
    inputs.sistema.focus()
  }

  /** Closes it and forgets what was typed. */
  close(): void { this.#close?.() }

  /** What was typed and not saved; undefined if there is nothing to lose. */
  draft(): Draft | undefined {
    if (this.#close === undefined) return undefined
    const typed = this.#changed()
    return Object.keys(typed).length === 0 ? undefined : { edited: this.#edited, typed }
  }

  /** The line of the stored password in the place of the field; "Change" makes the field. */
  #keepPassword({ element }: Form): void {
    const password = this.#password!
    const field = password.field.input.closest('.field')!
    const line = password.line(this.#edited?.fields.password !== undefined, () => {
      line.replaceWith(field)
      password.focus()
    })
    field.replaceWith(line)
    if (element.isConnected) line.querySelector<HTMLElement>('#change')?.focus()
  }

  /** Enter takes what is generated while the generator is open; with Ctrl it saves from anywhere. */
  #guardEnter(form: Form): void {
    form.element.addEventListener('submit', event => {
      if (this.#password?.isGenerating !== true) return
      event.preventDefault()
      event.stopImmediatePropagation()
      this.#password.useGenerated()
    }, { capture: true })
    form.element.addEventListener('keydown', event => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.submit()
    })
  }

  async #save(session: object): Promise<Outcome> {
    const close = this.#close!
    const typed = this.#changed()
    if (this.#edited !== undefined && Object.keys(typed).length === 0) {
      close()
      return undefined
    }
    const fields = this.#edited === undefined ? { sistema: '', usuario: '', password: '', ...typed } : typed
    return this.#options.save({ edited: this.#edited, fields, session }, () => { if (this.#close === close) close() })
  }

  /** The fields that are not as they were. An input takes no line breaks: what it cannot hold is not changed by it. */
  #changed(): Partial<EntryFields> {
    const before = this.#edited?.fields ?? {}
    const changed = Object.entries(this.#inputs).map(([name, { value }]) => [name as Name, value] as const)
      .filter(([name, value]) => value !== heldBy(name, before[name] ?? ''))
    const password = this.#password?.typed
    if (password !== undefined && (password !== '' || this.#edited !== undefined)) changed.push(['password', password])
    return Object.fromEntries(changed)
  }

  /** One step back: out of the generator, or out of the dialog; while it is saved there is no way back. */
  #mayClose(): boolean {
    if (this.#form?.isBusy === true || this.#password?.closeGenerator() === true) return false
    const draft = this.draft()
    if (draft === undefined || (Object.keys(draft.typed).length === 1 && draft.typed.password === '')) return true
    void this.#askToDiscard()
    return false
  }

  async #askToDiscard(): Promise<void> {
    const close = this.#close
    if (await confirm(say('discardTitle'), say('discardText'), 'discard', 'keep')) close?.()
  }

  #forget(): void {
    this.#close = this.#form = this.#password = this.#edited = undefined
    this.#inputs = {}
  }
}

/** A text as its input has it. */
function heldBy(name: Name, text: string): string {
  return name === 'notas' ? text.replace(/\r\n?/g, '\n') : text.replace(/[\r\n]/g, '')
}
